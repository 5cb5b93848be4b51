"""A pod whose group label changes is tried again, and so is the group that it joins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.api.resources import PODS
from moorage_sandbox.testing.builders import Manifest
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)

OBJECT_LABEL = "scheduling.x-k8s.io/pod-group"
NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"


async def _label(live: Cluster, name: str, label: str, value: str | None) -> None:
    body = {"metadata": {"labels": {label: value}}}
    await live.patch_object(PODS, name, body, namespace="default")


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize(
    ("label", "make", "groups"),
    [
        pytest.param(NAME_LABEL, of_labels, (), id="labels"),
        pytest.param(
            OBJECT_LABEL,
            of_object,
            (pod_group("g", least=2), pod_group("h", least=2)),
            id="objects",
        ),
    ],
)
def test_a_pod_that_joins_a_group_completes_it(
    mode: str, label: str, make: Callable[..., Manifest], groups: tuple[Manifest, ...]
) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*groups, make("m1", of="g", least=2), make("m2", of="h", least=2))
        await live.until(lambda: bool(live.message_of("m1") and live.message_of("m2")))
        await _label(live, "m2", label, "g")
        await live.until(lambda: live.bound("m1", "m2") == 2, seconds=5)

    play(scenario, cluster=nodes(2), config=coscheduling(mode))


def test_a_pod_that_leaves_its_group_starts_alone() -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(of_labels("m1", least=2))
        await live.until(lambda: bool(live.message_of("m1")))
        await _label(live, "m1", NAME_LABEL, None)
        await live.until(lambda: live.bound("m1") == 1, seconds=5)

    play(scenario, cluster=nodes(1), config=coscheduling())

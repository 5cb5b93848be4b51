"""Members that succeeded count towards the minimum: what replaces a member needs only its own room.

The three ways to name a group, each with members that are tried together or held at Permit.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from moorage.api.resources import POD_GROUPS, PODS
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)

GATES = feature_gates({"GenericWorkload": True, "GangScheduling": True})
KUBERNETES_GROUP = {
    "apiVersion": POD_GROUPS.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}


def _of_kubernetes(name: str, *, least: int) -> Manifest:
    del least
    return pod_manifest(name, cpu="1", schedulingGroup={"podGroupName": "g"})


def _config(form: str, mode: str) -> LoadedConfiguration:
    config = coscheduling(mode)
    return msgspec.structs.replace(config, gates=GATES) if form == "kubernetes" else config


FORMS = {
    "labels": (of_labels, ()),
    "object": (of_object, (pod_group(least=2),)),
    "kubernetes": (_of_kubernetes, (KUBERNETES_GROUP,)),
}


async def _end(live: Cluster, name: str, phase: str = "Succeeded") -> None:
    await live.client.patch(
        PODS,
        name,
        patch_body({"status": {"phase": phase}}),
        namespace="default",
        subresource="status",
        content_type=MERGE_PATCH,
    )
    assert live.phase_of(name) == phase


def _play(form: str, mode: str, replaced: Sequence[str], *, succeeded: Sequence[str]) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("m1", least=2), make("m2", least=2))
        await live.until(lambda: live.bound("m1", "m2") == 2)
        for name in succeeded:
            await _end(live, name)
        await live.delete("m2")
        for name in replaced:
            await live.create_objects(make(name, least=2))
        await live.until(lambda: live.bound(*replaced) == len(replaced), seconds=15)

    play(scenario, cluster=nodes(3), config=_config(form, mode))


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("form", FORMS)
def test_a_replacement_starts_next_to_a_member_that_succeeded(form: str, mode: str) -> None:
    _play(form, mode, ["m2b"], succeeded=["m1"])


@pytest.mark.parametrize("form", FORMS)
def test_a_replacement_starts_if_its_partner_succeeds_later(form: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("m1", least=2), make("m2", least=2))
        await live.until(lambda: live.bound("m1", "m2") == 2)
        await live.delete("m1", "m2")
        await live.create_objects(make("m3", least=2))
        await live.until(lambda: bool(live.message_of("m3")))
        await live.create_objects(make("m4", least=2))
        await live.until(lambda: live.bound("m3", "m4") == 2)
        await live.delete("m4")
        await live.create_objects(make("m5", least=2))
        await _end(live, "m3")
        await live.until(lambda: live.bound("m5") == 1, seconds=15)

    play(scenario, cluster=nodes(2), config=_config(form, "trial"))


@pytest.mark.parametrize("form", FORMS)
def test_a_member_that_failed_does_not_count(form: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("m1", least=2), make("m2", least=2))
        await live.until(lambda: live.bound("m1", "m2") == 2)
        await _end(live, "m1", "Failed")
        await live.delete("m2")
        await live.create_objects(make("m2b", least=2))
        await live.until(lambda: bool(live.message_of("m2b")))
        assert live.bound("m2b") == 0

    play(scenario, cluster=nodes(2), config=_config(form, "trial"))

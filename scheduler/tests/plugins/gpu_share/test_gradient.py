"""The device of a share: the same whether the node is as it was graded, or has changed since."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config.args import default_args
from moorage.framework.cycle_state import CycleState
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import cluster, handle
from scheduler.tests.plugins.gpu_share.test_asking import annotated
from scheduler.tests.plugins.gpu_share.test_gpu_share import gpus


def share(name: str, milli: int, index: int | None = None) -> Any:
    more = {} if index is None else {"index": str(index)}
    return annotated(name, count="1", milli=str(milli), **more)


@pytest.mark.parametrize("policy", ["GpuFragmentation", "GpuLookahead"])
@pytest.mark.parametrize(
    ("comes", "is_followed", "expected"),
    [
        pytest.param(None, False, 0, id="nothing changed after the score"),
        pytest.param(share("other", 500, 1), False, 0, id="a pod came, and was not looked at"),
        pytest.param(share("other", 500, 1), True, 0, id="a pod came, and other nodes were scored"),
        pytest.param(share("o", 500, 0), False, 1, id="a pod came to the best device"),
        pytest.param(share("o", 500, 0), True, 1, id="a pod came there, and nodes were scored"),
    ],
)
def test_the_device_is_chosen_from_the_node_as_it_is(policy, comes, is_followed, expected):
    def chosen(*, scored: bool) -> tuple[int, ...] | None:
        snapshot = cluster(gpus("a", 3), gpus("b", 1), pods={"a": [share("held", 500, 0)]})
        given = handle(snapshot)
        made: dict[str, Any] = {}
        for name in ("GpuShare", policy):
            entry = in_tree_registry().find(name)
            assert entry is not None
            made[name] = entry.make(default_args(name), given)
        asked, state = share("new", 400), CycleState()
        if scored:
            made[policy].score(state, PodInfo(asked), snapshot.all())
        if comes is not None:
            snapshot.table.add_pod(comes, "a")
        if is_followed and scored:
            made[policy].score(state, PodInfo(share("third", 300)), snapshot.all())
        snapshot.table.add_pod(asked, "a")
        assert made["GpuShare"].reserve(state, PodInfo(asked), "a").ok
        found: tuple[int, ...] | None = made["GpuShare"]._sharing.devices.devices_of("uid-new")
        return found

    assert (chosen(scored=False), chosen(scored=True)) == ((expected,), (expected,))

"""The queue wakes one member of a group where members are tried together, else every member."""

from __future__ import annotations

import pytest

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage_sandbox.testing.builders import node, pod
from tests.scenarios.gangs import coscheduling

LABELS = {
    "pod-group.scheduling.sigs.k8s.io/name": "g",
    "pod-group.scheduling.sigs.k8s.io/min-available": "2",
}


@pytest.mark.parametrize(
    ("mode", "labels", "woken"),
    [
        pytest.param("trial", LABELS, 1, id="members tried in one attempt"),
        pytest.param("permit", LABELS, 3, id="members tried one by one"),
        pytest.param("trial", {}, 3, id="pods without a group"),
    ],
)
def test_how_many_waiting_pods_a_new_node_wakes(mode: str, labels: dict[str, str], woken: int):
    clock = ManualClock()
    core = build_core(coscheduling(mode), in_tree_registry(), clock=clock, streams=Streams(1))
    queue = core.queue
    for name in ("p0", "p1", "p2"):
        made = pod(name, cpu="1", labels=labels)
        core.snapshot.groups.put_pod(made)
        queue.add(made)
        popped = queue.pop()
        assert popped is not None
        popped.rejected_by(["NodeResourcesFit"], [])
        queue.add_unschedulable_if_not_present(popped)
    clock.advance_ns(60_000_000_000)
    queue.move_all(ClusterEvent(Resource.NODE, Action.ADD), None, node("n0", cpu="8"))
    assert queue.counts().active == woken

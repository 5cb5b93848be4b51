"""How full nodes and zones are before and after a change."""

from __future__ import annotations

from moorage.virtual.deciding_half import ClusterInputs
from moorage.what_if.change import Cordon, Drain, RemoveNode
from moorage.what_if.course import try_steps
from moorage.what_if.fullness import Use, UseChange
from moorage_sandbox.testing.builders import node_manifest
from scheduler.tests.what_if.cluster import inputs_of, pod_of, replica_set

_ZONE = "topology.kubernetes.io/zone"


def _inputs() -> ClusterInputs:
    nodes = [
        node_manifest(name, cpu="4", memory="8Gi", labels={_ZONE: zone})
        for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"))
    ]
    return inputs_of(*nodes, replica_set("web", 1), pod_of("web", 0, "a1"), nodes=0)


def _use(pods: int, cpu: float, *, of: float = 4) -> Use:
    gib = of * 2 * 2**30
    return Use(pods, {"cpu": cpu, "memory": 0}, {"cpu": of, "memory": gib})


def test_only_nodes_and_zones_whose_use_changes_are_told() -> None:
    """The pod of two cores goes from one node to another."""
    course = try_steps(_inputs(), [Cordon("a2"), Drain("a1")])
    assert course.nodes == (
        UseChange("a1", _use(1, 2.0), _use(0, 0.0)),
        UseChange("b1", _use(0, 0.0), _use(1, 2.0)),
    )
    assert course.zones == (
        UseChange("a", _use(1, 2.0, of=8), _use(0, 0.0, of=8)),
        UseChange("b", _use(0, 0.0), _use(1, 2.0)),
    )


def test_a_node_that_goes_has_no_use_afterwards() -> None:
    """Its zone goes with it."""
    course = try_steps(_inputs(), [RemoveNode("b1")])
    assert course.nodes == (UseChange("b1", _use(0, 0.0), None),)
    assert course.zones == (UseChange("b", _use(0, 0.0), None),)


def test_nothing_is_told_where_no_use_changes() -> None:
    """A cordon moves no pod."""
    course = try_steps(_inputs(), [Cordon("b1")])
    assert (course.nodes, course.zones) == ((), ())

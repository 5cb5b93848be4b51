"""A model decides as a scheduler over the same objects would."""

from __future__ import annotations

import json

import msgspec
import pytest

from moorage.base.errors import UsageError
from moorage.config.load import parse_config
from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import ClusterObjects, read_objects
from moorage_sandbox.testing.builders import node_manifest, pod_manifest


def _objects() -> ClusterObjects:
    bound = pod_manifest("bound", cpu="3", node_name="n1")
    bound["metadata"]["uid"] = "u1"
    waiting = pod_manifest("waiting", cpu="2", schedulerName="default-scheduler")
    waiting["metadata"]["uid"] = "u2"
    foreign = pod_manifest("foreign", schedulerName="other")
    foreign["metadata"]["uid"] = "u3"
    items = [node_manifest("n1"), node_manifest("n2"), bound, waiting, foreign]
    return read_objects(json.dumps({"kind": "List", "items": items}).encode(), "file")


def test_pending_pods_are_queued_and_bound_pods_hold_their_room() -> None:
    """The pod with a request of two cores fits beside no pod of three cores."""
    filled = ClusterInputs(objects=_objects(), registry=in_tree_registry()).fill()
    core = filled.core
    queued = core.queue.pop()
    assert queued is not None
    assert queued.pod.metadata.name == "waiting"
    assert core.cycles["default-scheduler"].decide(queued.info).node_name == "n2"
    assert core.queue.pop() is None
    core.queue.validate()


def test_two_decisions_over_one_world_are_equal() -> None:
    """A model is never changed by filling it."""
    inputs = ClusterInputs(objects=_objects(), registry=in_tree_registry(), seed=7)
    nodes = []
    for _ in range(2):
        core = inputs.fill().core
        queued = core.queue.pop()
        assert queued is not None
        nodes.append(core.cycles["default-scheduler"].decide(queued.info).node_name)
    assert nodes == ["n2", "n2"]


def test_extenders_are_refused() -> None:
    """An extender is a program of somebody else's: asking it would be no mere trial."""
    config = parse_config(
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://127.0.0.1:1/
  filterVerb: filter
"""
    )
    inputs = ClusterInputs(objects=_objects(), registry=in_tree_registry())
    with pytest.raises(UsageError, match="extenders"):
        msgspec.structs.replace(inputs, config=config).fill()

"""The sentence about a pod that no filter decides about: held, unserved, bound, ended, queued."""

from __future__ import annotations

import pytest

from moorage.explain.answer import Where
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting

NODE = node_manifest("n")


def _ended(pod: Manifest) -> Manifest:
    return {**pod, "status": {"phase": "Succeeded"}}


def _leaving(pod: Manifest) -> Manifest:
    metadata = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {**pod, "metadata": metadata}


def _nominated(pod: Manifest) -> Manifest:
    return {**pod, "status": {"nominatedNodeName": "n"}}


@pytest.mark.parametrize(
    ("manifests", "where", "sentence"),
    [
        pytest.param(
            [NODE, waiting("p", gates=["example.com/quota"])],
            Where.GATED,
            "held before the queue by plugin SchedulingGates: waiting for scheduling gates: "
            "[example.com/quota]",
            id="scheduling gates",
        ),
        pytest.param(
            [NODE, waiting("p", schedulerName="other")],
            Where.UNSERVED,
            "this scheduler does not serve schedulerName other: it serves default-scheduler; "
            "whether another scheduler does is not known here",
            id="a pod of another scheduler",
        ),
        pytest.param(
            [NODE, _ended(bound("p", "n"))],
            Where.FINISHED,
            "has ended on n: Succeeded",
            id="ended",
        ),
        pytest.param(
            [NODE, _leaving(waiting("p"))],
            Where.TERMINATING,
            "is being deleted, so no node is sought for it",
            id="being deleted",
        ),
        pytest.param(
            [NODE, waiting("p")],
            Where.FITS,
            "fits now on 1 node; it is the next in the queue",
            id="fits, nobody before it",
        ),
        pytest.param(
            [NODE, waiting("p"), waiting("q", priority=5), waiting("r", priority=9)],
            Where.FITS,
            "fits now on 1 node; it is queued behind default/r, default/q",
            id="fits, pods of higher priority before it",
        ),
        pytest.param(
            [
                NODE,
                _leaving(bound("v", "n", cpu="4", priority=1)),
                _nominated(waiting("p", cpu="2", priority=7)),
            ],
            Where.NOMINATED,
            "is nominated to n and waits for default/v to leave",
            id="waits for its victims",
        ),
        pytest.param(
            [NODE, node_manifest("m", cpu="8"), bound("p", "n", cpu="1")],
            Where.BOUND,
            "bound to n because of its score then; now it has 454 (TaintToleration 300, "
            "NodeResourcesFit 86, NodeResourcesBalancedAllocation 68), and 463 is the highest",
            id="bound",
        ),
        pytest.param(
            [waiting("p")],
            Where.REJECTED,
            "fits on no node now: there are no nodes",
            id="no nodes",
        ),
    ],
)
def test_where_the_pod_is(manifests: list[Manifest], where: Where, sentence: str) -> None:
    found = explained(*manifests)
    assert (found.where, found.sentence) == (where, sentence)


def test_a_held_pod_is_told_the_nodes_that_would_take_it() -> None:
    """The full node is told with its rejection, the free one with its score."""
    full = [node_manifest("m"), bound("v", "m", cpu="4")]
    found = explained(NODE, *full, waiting("p", cpu="1", gates=["example.com/quota"]))
    assert (found.feasible, [each.node for each in found.nodes]) == (1, ["n", "m"])
    assert found.nodes[0].score is not None
    assert found.nodes[1].rejections == {"NodeResourcesFit": ("Insufficient cpu",)}

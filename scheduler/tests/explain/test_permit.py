"""A member that Permit holds, and a pod that is being bound, have an answer."""

from __future__ import annotations

import pytest

from moorage.base.clock import ManualClock
from moorage.explain.answer import Where
from moorage.explain.explaining import explain
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    pod_group,
)


def test_a_member_at_permit_is_told_how_many_have_a_place() -> None:
    """Two of three members hold their nodes for the third, which fits no node yet.

    The table has every node, and the node of the member with its score, the member taken off.
    """
    clock = ManualClock()

    async def main() -> list[tuple[Where, str, int, list[bool], tuple[str, ...]]]:
        args = "{permitWaitingTimeSeconds: 60, podGroupRejectPercentage: 100}"
        config = coscheduling("permit", args=args)
        async with VirtualCluster(clock, nodes=nodes(3), config=config) as cluster:
            core = cluster.scheduler.core
            await cluster.create_objects(
                of_labels("a", least=3),
                of_labels("b", least=3),
                of_labels("c", least=3, nodeSelector={"late": "yes"}),
            )
            await cluster.until(lambda: len(core.waiting.undecided_pods()) == 2)
            held = sorted(each.pod.name for each in core.waiting.undecided_pods())
            found = []
            for name in held:
                pod = core.store.get("default", name)
                assert pod is not None
                answer = explain(core, pod)
                own = answer.sentence.rpartition(" ")[2]
                tables = [each.score is not None for each in answer.nodes if each.node == own]
                start = answer.sentence.split("; ")[0]
                found.append((answer.where, start, len(answer.nodes), tables, answer.notes))
            return found

    expected = "waits at Permit of Coscheduling with 2 of 3 of its group default/g"
    note = (
        "Its group lacks a member: the next, pod default/c, never fits here, not even on an empty "
        "node, because of its nodeSelector late=yes (no node has the label late)."
    )
    assert run_virtual(main(), clock) == [(Where.PERMIT, expected, 3, [True], (note,))] * 2


def test_a_pod_that_is_being_bound_is_told_its_node() -> None:
    clock = ManualClock()

    async def main() -> tuple[Where, str]:
        async with VirtualCluster(clock, nodes=[node_manifest("n")]) as cluster:
            core = cluster.scheduler.core
            await cluster.create_objects(pod_manifest("p"))
            await cluster.until(lambda: core.cache.counts().assumed_pods == 1)
            pod = core.store.get("default", "p")
            assert pod is not None
            answer = explain(core, pod)
            return answer.where, answer.sentence

    assert run_virtual(main(), clock) == (Where.BINDING, "being bound to n")


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([of_labels(name, least=3) for name in "abc"], id="a group of labels"),
        pytest.param(
            [pod_group(least=3), *(of_object(name) for name in "abc")], id="a group of an object"
        ),
    ],
)
@pytest.mark.parametrize("backoff_seconds", [0, 20])
def test_the_cause_behind_a_recent_failure_is_reported(
    members: list[Manifest], backoff_seconds: int
) -> None:
    """Two nodes take two of three members; between attempts the group is not tried."""
    clock = ManualClock()

    async def main() -> set[str]:
        config = coscheduling("permit", args=f"{{podGroupBackoffSeconds: {backoff_seconds}}}")
        async with Cluster(clock, nodes=nodes(2), config=config) as cluster:
            core = cluster.scheduler.core
            await cluster.create_objects(*members)
            end = cluster.seconds + 3
            found = set()
            while cluster.seconds < end:
                await _later(cluster, cluster.seconds + 0.4)
                for name in "abc":
                    pod = core.store.get("default", name)
                    if pod is not None and not core.waiting.find(pod.uid):
                        found.add(explain(core, pod).sentence)
            return found

    assert run_virtual(main(), clock) == {
        "would fit on 2 nodes alone, but its group default/g needs 3 pods with a place, and only 2 "
        "fit together: the next, pod default/c, would fit on 2 nodes of 2 but for cpu (it requests "
        "1, the most that is free on one of them is 0)"
    }


async def _later(cluster: Cluster, seconds: float) -> None:
    await cluster.until(lambda: cluster.seconds >= seconds)

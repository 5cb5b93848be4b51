"""Groups of a scheduler with a slow extender, from the pods that are created to the pods that run.

Not covered: what the extender is asked about each member (engine).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.errors import ExtenderError
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from scheduler.tests.service.test_extenders import node_of, play
from tests.scenarios.gangs import of_labels

COSCHEDULING = """
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
"""
SETTINGS = "filterVerb: filter, nodeCacheCapable: true"


async def accepting(verb: str, body: Any) -> Any:
    await aio.sleep(1)
    return {"NodeNames": body["NodeNames"]}


async def places(cluster: VirtualCluster, *names: str) -> list[str]:
    return [await node_of(cluster, name) for name in names]


def test_a_gang_is_placed_and_the_extender_is_asked_about_each_member(monkeypatch):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*(of_labels(name, least=2) for name in ("a", "b")))
        await aio.sleep(6)
        assert sorted(await places(cluster, "a", "b")) == ["n1", "n2"]

    seen = play(monkeypatch, SETTINGS, accepting, scenario, more=COSCHEDULING, cpu="1").bodies
    asked = [(body["Pod"]["metadata"]["name"], body["NodeNames"]) for _, body in seen]
    assert asked[0] == ("a", ["n1", "n2"])
    assert asked[1][0] == "b"
    assert len(asked[1][1]) == 1, "the node of the first member is full"
    assert len(asked) == 2


def test_a_pod_that_comes_meanwhile_waits_and_room_that_goes_is_noticed(monkeypatch):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*(of_labels(name, least=2) for name in ("a", "b")))
        await aio.sleep(1.5)
        stranger = pod_manifest("stranger", cpu="1")
        stranger["spec"]["nodeName"] = "n1"
        await cluster.create_objects(stranger)
        await aio.sleep(20)
        assert await places(cluster, "a", "b") == ["", ""]
        assert cluster.scheduler.core.cache.counts().assumed_pods == 0
        await cluster.client.delete(PODS, "stranger", namespace="default")
        await aio.sleep(20)
        assert sorted(await places(cluster, "a", "b")) == ["n1", "n2"]
        assert cluster.scheduler.compare().empty

    play(monkeypatch, SETTINGS, accepting, scenario, more=COSCHEDULING, cpu="1")


def test_a_member_deleted_while_the_extender_thinks_is_left_out(monkeypatch):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*(of_labels(name, least=2) for name in ("a", "b", "c")))
        await aio.sleep(1.5)
        await cluster.client.delete(PODS, "a", namespace="default")
        await aio.sleep(20)
        assert sorted(await places(cluster, "b", "c")) == ["n1", "n2"]
        assert cluster.scheduler.compare().empty
        assert cluster.scheduler.core.queue.pop() is None

    play(monkeypatch, SETTINGS, accepting, scenario, more=COSCHEDULING, cpu="1")


def test_a_gang_for_which_the_extender_has_no_room_holds_nothing(monkeypatch):
    async def answers(verb: str, body: Any) -> Any:
        await aio.sleep(1)
        left = [name for name in body["NodeNames"] if name != "n2"]
        return {"NodeNames": left, "FailedNodes": {"n2": "no licence"}}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*(of_labels(name, least=2) for name in ("a", "b")))
        await aio.sleep(4)
        assert await places(cluster, "a", "b") == ["", ""]
        assert cluster.scheduler.core.cache.counts().assumed_pods == 0
        status, _, message = cluster.condition_of("b")
        assert (status, message) == (
            "False",
            "0/2 nodes are available: 1 Insufficient cpu, 1 no licence. no new claims to "
            "deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for "
            "incoming pod.",
        )

    play(monkeypatch, SETTINGS, answers, scenario, more=COSCHEDULING, cpu="1")


# --- preemption -----------------------------------------------------------------------------------

PREEMPTING = "filterVerb: filter, preemptVerb: preempt, nodeCacheCapable: true"


def low(name: str, node_name: str) -> Manifest:
    """Return a pod of lower priority that fills a node."""
    manifest = pod_manifest(name, cpu="1")
    manifest["spec"]["nodeName"] = node_name
    return manifest


def high(name: str) -> Manifest:
    return of_labels(name, least=2, priorityClassName="system-cluster-critical")


def keeping(*node_names: str) -> Callable[[str, Any], Awaitable[Any]]:
    """Return an extender that accepts all nodes, and lets victims leave some nodes only."""

    async def answers(verb: str, body: Any) -> Any:
        await aio.sleep(0.2)
        if verb == "filter":
            return {"NodeNames": body["NodeNames"]}
        offered = body["NodeNameToMetaVictims"]
        kept = {name: each for name, each in offered.items() if name in node_names}
        return {"NodeNameToMetaVictims": kept}

    return answers


def offered(seen: Sequence[tuple[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return for each question about victims: the pod, and the nodes offered."""
    return [
        (body["Pod"]["metadata"]["name"], sorted(body["NodeNameToMetaVictims"]))
        for verb, body in seen
        if verb == "preempt"
    ]


def test_a_gang_evicts_one_pod_that_the_extender_lets_go(monkeypatch):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("low", "n2"))
        await aio.sleep(1)
        await cluster.create_objects(*(high(name) for name in ("a", "b")))
        await cluster.until(lambda: bool(cluster.node_of("a") and cluster.node_of("b")), seconds=60)
        assert sorted(await places(cluster, "a", "b")) == ["n1", "n2"]
        assert "default/low" not in cluster.placements()

    seen = play(monkeypatch, PREEMPTING, keeping("n2"), scenario, more=COSCHEDULING, cpu="1").bodies
    assert offered(seen) == [("b", ["n2"])]


def test_a_gang_evicts_a_pod_from_each_node_for_a_member_each(monkeypatch):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("low1", "n1"), low("low2", "n2"))
        await aio.sleep(1)
        await cluster.create_objects(*(high(name) for name in ("a", "b")))
        await cluster.until(lambda: bool(cluster.node_of("a") and cluster.node_of("b")), seconds=60)
        assert sorted(await places(cluster, "a", "b")) == ["n1", "n2"]

    answers = keeping("n1", "n2")
    seen = play(monkeypatch, PREEMPTING, answers, scenario, more=COSCHEDULING, cpu="1").bodies
    (first, nodes), (second, left) = offered(seen)
    assert (first, nodes) == ("a", ["n1", "n2"])
    assert (second, len(left)) == ("b", 1), "the node of the first member is taken"


def test_no_pod_is_evicted_for_a_gang_when_the_extender_keeps_a_victim(monkeypatch):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("low1", "n1"), low("low2", "n2"))
        await aio.sleep(1)
        await cluster.create_objects(*(high(name) for name in ("a", "b")))
        await aio.sleep(30)
        assert await places(cluster, "a", "b", "low1", "low2") == ["", "", "n1", "n2"]
        assert cluster.scheduler.core.cache.counts().assumed_pods == 0

    seen = play(monkeypatch, PREEMPTING, keeping("n1"), scenario, more=COSCHEDULING, cpu="1").bodies
    assert offered(seen)[:1] == [("a", ["n1", "n2"])]


def test_a_gang_does_not_preempt_while_the_extender_that_judges_victims_fails(monkeypatch):
    async def answers(verb: str, body: Any) -> Any:
        if verb == "preempt":
            raise ExtenderError("out of order")
        return {"NodeNames": body["NodeNames"]}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("low", "n2"))
        await aio.sleep(1)
        await cluster.create_objects(*(high(name) for name in ("a", "b")))
        await aio.sleep(10)
        assert await places(cluster, "a", "b", "low") == ["", "", "n2"]
        assert cluster.scheduler.core.cache.counts().assumed_pods == 0
        assert "out of order" in "".join(cluster.condition_of(name)[2] for name in ("a", "b"))

    play(monkeypatch, PREEMPTING, answers, scenario, more=COSCHEDULING, cpu="1")

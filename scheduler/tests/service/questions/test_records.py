"""The records of a running scheduler, as ``/moorage/v1/records`` answers: whole answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage.base.clock import ManualClock
from moorage.observe.group_attempts import GroupAttemptFacts
from moorage.service.process.facts import Facts
from moorage.service.questions.pages import OPENAPI_PATH, question_pages
from moorage.service.questions.records import records_question
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.questions.openapi_check import check
from tests.scenarios.gangs import Cluster, coscheduling, nodes, of_object, play, pod_group

PATH = "/moorage/v1/records"
Ask = Callable[..., Awaitable[tuple[int, Any]]]


def asking(cluster: VirtualCluster) -> Ask:
    """Return a function that asks, and holds each answer against the document."""
    pages = question_pages([records_question(cluster.scheduler, cluster.clock)])

    async def ask(**query: str) -> tuple[int, Any]:
        document = json.loads((await pages[OPENAPI_PATH]({})).body)
        page = await pages[PATH](query)
        body = json.loads(page.body)
        check(body, PATH, document, status=str(page.status))
        return page.status, body

    return ask


def on_cluster(scenario: Callable[[VirtualCluster, Ask], Awaitable[None]]) -> None:
    clock = ManualClock()
    three = [node_manifest(f"n{index}", cpu="2") for index in range(3)]

    async def main() -> None:
        async with VirtualCluster(clock, nodes=three) as cluster:
            await scenario(cluster, asking(cluster))

    run_virtual(main(), clock)


def plain(attempt: dict[str, Any]) -> dict[str, Any]:
    """Return a record without times."""
    left_out = {"time", "seconds", "ended", "uid", "number", "steps", "before", "best", "drawn"}
    return {name: value for name, value in attempt.items() if name not in left_out}


def test_an_attempt_that_bound_its_pod_has_scores_steps_and_an_end() -> None:
    async def scenario(cluster: VirtualCluster, ask: Ask) -> None:
        await cluster.create_objects(pod_manifest("web", cpu="1"))
        ring = cluster.scheduler.core.recorder.ring  # type: ignore[union-attr]
        await cluster.until(lambda: [each.end for each in ring] == ["bound"])
        status, found = await ask(pod="default/web", attempt="1")
        assert status == 200
        (attempt,) = found["attempts"]
        node = cluster.node_of("web")
        assert plain(attempt) == {
            "namespace": "default",
            "name": "web",
            "schedulerName": "default-scheduler",
            "attempt": 1,
            "waitedFor": [],
            "outcome": "bind",
            "node": node,
            "total": attempt["best"][0]["total"],
            "feasible": 3,
            "evaluated": 3,
            "ties": 3,
            "message": "",
            "reason": "",
            "nominatedNode": None,
            "victims": [],
            "victimsChosenBy": "",
            "preFilterPlugins": [],
            "filterResults": "kept",
            "rejections": [],
            "passed": 3,
            "extenders": [],
            "brokenBy": "",
            "end": "bound",
        }
        assert f"n{attempt['drawn']}" == node
        assert attempt["best"][0]["node"] == node
        assert {each["node"] for each in attempt["best"]} == {"n0", "n1", "n2"}
        for each in attempt["best"]:
            assert each["total"] == sum(score["weighted"] for score in each["scores"])
            for score in each["scores"]:
                assert score["weighted"] == score["weight"] * score["normalized"]
        assert [(each["name"], each["plugin"]) for each in attempt["steps"]] == [
            ("Reserve", ""),
            ("Permit", ""),
            ("Bind", "DefaultBinder"),
        ]
        assert [(each["what"], each["cause"]) for each in attempt["before"]] == [
            ("-> active", "UnschedulablePodAdd"),
            ("-> in-flight", "pop"),
        ]

    on_cluster(scenario)


def test_each_attempt_says_what_woke_the_pod_and_which_nodes_rejected_it() -> None:
    async def scenario(cluster: VirtualCluster, ask: Ask) -> None:
        await cluster.create_objects(pod_manifest("big", cpu="3"))
        queue = cluster.scheduler.core.queue
        await cluster.until(lambda: queue.counts().unschedulable == 1)
        await cluster.play([node_manifest("large", cpu="4")])
        await cluster.until(lambda: cluster.node_of("big") == "large")
        _, listed = await ask(pod="default/big")
        assert [(each["attempt"], each["outcome"]) for each in listed["attempts"]] == [
            (1, "reject"),
            (2, "bind"),
        ]
        assert [each["rejections"] for each in listed["attempts"]] == [None, None]
        _, first = await ask(pod="default/big", attempt="1")
        assert first["attempts"][0]["rejections"] == [
            {
                "plugin": "NodeResourcesFit",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["Insufficient cpu"],
                "nodes": ["n0", "n1", "n2"],
            }
        ]
        second = listed["attempts"][1]
        assert second["waitedFor"] == ["NodeResourcesFit"]
        assert second["before"][-2]["cause"] == "NodeAdd"

    on_cluster(scenario)


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        pytest.param({}, 200, None, id="no pod: the totals alone"),
        pytest.param(
            {"pod": "default/nosuch"},
            404,
            'no attempt of pod "default/nosuch" is on record',
            id="a pod without attempts",
        ),
        pytest.param(
            {"pod": "default/web", "attempt": "7"},
            404,
            'attempt 7 of pod "default/web" is not on record; on record: 1',
            id="an attempt that was not made",
        ),
        pytest.param({"pod": "web"}, 400, "pod: 'web': write NAMESPACE/NAME", id="no namespace"),
        pytest.param(
            {"attempt": "1"},
            400,
            "attempt: name the pod as well, as pod=NAMESPACE/NAME",
            id="an attempt of no pod",
        ),
    ],
)
def test_attempts_without_a_record_are_named(query: Any, status: int, told: str | None) -> None:
    async def scenario(cluster: VirtualCluster, ask: Ask) -> None:
        await cluster.create_objects(pod_manifest("web"))
        await cluster.until(lambda: bool(cluster.node_of("web")))
        code, found = await ask(**query)
        assert code == status
        assert found.get("message") == told
        if status == 200:
            assert found["held"]["records"] == 1
            assert found["held"]["bytesMax"] == 64 * 2**20

    on_cluster(scenario)


def test_members_of_a_group_have_records_of_their_own() -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            pod_group("g", least=2), of_object("a", of="g"), of_object("b", of="g")
        )
        await live.until(lambda: live.bound("a", "b") == 2)
        recorder = live.scheduler.core.recorder
        assert recorder is not None
        await live.until(lambda: {each.end for each in recorder.ring} == {"bound"})
        last = {each.key[1]: each for each in recorder.ring if each.node}
        assert {name: each.node for name, each in last.items()} == {
            name: live.node_of(name) for name in ("a", "b")
        }
        recorder.ring.validate()

    play(scenario, cluster=nodes(3), config=coscheduling())


class _Slow(GroupAttemptFacts):
    """Facts by which each decision about a group takes seven milliseconds."""

    def decided(self, *, since_ns: int) -> int:
        super().decided(since_ns=since_ns)
        return 7_000_000


def test_the_record_of_a_member_tells_how_long_the_decision_about_its_group_took() -> None:
    clock = ManualClock()

    async def main() -> None:
        facts = Facts(clock, group_attempts=_Slow(clock))
        config = coscheduling()
        async with Cluster(clock, nodes=nodes(3), config=config, facts=facts) as live:
            await live.create_objects(
                pod_group("g", least=2), of_object("a", of="g"), of_object("b", of="g")
            )
            await live.until(lambda: live.bound("a", "b") == 2)
            recorder = live.scheduler.core.recorder
            assert recorder is not None
            took_ns = {each.key[1]: each.took_ns for each in recorder.ring if each.node}
            assert took_ns == {"a": 7_000_000, "b": 7_000_000}

    run_virtual(main(), clock)


@pytest.mark.parametrize(
    ("priorities", "rule"),
    [
        pytest.param((1, 2, 3), "lowest priority of the most important victim", id="priority"),
        pytest.param((1, 1), "by name among candidates equal by every other rule", id="name"),
        pytest.param((1,), "the only candidate", id="one candidate"),
    ],
)
def test_a_record_tells_the_rule_that_chose_the_victims(priorities, rule) -> None:
    clock = ManualClock()
    nodes = [node_manifest(f"n{index}", cpu="2") for index in range(len(priorities))]
    lows = [f"low-{index}" for index in range(len(priorities))]

    async def main() -> None:
        async with VirtualCluster(clock, nodes=nodes) as cluster:
            ask = asking(cluster)
            for priority in {*priorities, 100}:
                await cluster.create_objects(
                    {
                        "apiVersion": "scheduling.k8s.io/v1",
                        "kind": "PriorityClass",
                        "metadata": {"name": f"p{priority}"},
                        "value": priority,
                    }
                )
            for index, priority in enumerate(priorities):
                there = {"kubernetes.io/hostname": f"n{index}"}
                name, klass = f"low-{index}", f"p{priority}"
                await cluster.create_objects(
                    pod_manifest(name, cpu="2", priorityClassName=klass, node_selector=there)
                )
            await cluster.until(lambda: all(map(cluster.node_of, lows)))
            await cluster.create_objects(pod_manifest("high", cpu="2", priorityClassName="p100"))
            await cluster.until(lambda: bool(cluster.node_of("high")))
            _, found = await ask(pod="default/high", attempt="1")
            (attempt,) = found["attempts"]
            assert len(attempt["victims"]) == 1
            assert attempt["victimsChosenBy"] == rule

    run_virtual(main(), clock)

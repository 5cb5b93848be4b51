"""The question about a pod over HTTP: true to its document, refused in words, changing nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.base.clock import ManualClock
from moorage.config.feature_gates import parse_feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.explain.question import explain_question
from moorage.service.questions.pages import OPENAPI_PATH, question_pages
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.questions.openapi_check import check

EXPLAIN = "/moorage/v1/explain"
GANGS = LoadedConfiguration(
    gates=parse_feature_gates("GenericWorkload=true,GangScheduling=true", "1.36")
)
PODS = 30
GROUP: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}


def _member(name: str, group: str = "g") -> dict[str, Any]:
    return pod_manifest(name, cpu="1", schedulingGroup={"podGroupName": group})


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        pytest.param(
            {"pod": "default/p"},
            200,
            "would fit on 1 node of 1 but for cpu (it requests 3, the most that is free on one "
            "of them is 2)",
            id="a pod that no node takes",
        ),
        pytest.param(
            {"pod": "default/w", "all": "true", "node": "n"},
            200,
            "bound to n, the only feasible node in its attempt 1",
            id="a bound pod",
        ),
        pytest.param(
            {"pod": "default/gone"}, 404, 'pods "gone" not found in default', id="no such pod"
        ),
        pytest.param({"pod": "p"}, 400, "pod: 'p': write NAMESPACE/NAME", id="no namespace"),
        pytest.param(
            {"pod": "default/p", "node": "m"}, 400, 'node "m" not found', id="no such node"
        ),
    ],
)
def test_answers_and_errors_are_as_the_document_describes(
    query: dict[str, str], status: int, told: str
) -> None:
    clock = ManualClock()

    async def main() -> tuple[int, Any, Any]:
        async with VirtualCluster(clock, nodes=[node_manifest("n")]) as cluster:
            await cluster.create_objects(pod_manifest("w", cpu="2"), pod_manifest("p", cpu="3"))
            await cluster.until(lambda: cluster.condition_of("p")[0] == "False")
            pages = question_pages([explain_question(cluster.scheduler, clock)])
            page = await pages[EXPLAIN](query)
            document = json.loads((await pages[OPENAPI_PATH]({})).body)
            return page.status, json.loads(page.body), document

    found, body, document = run_virtual(main(), clock)
    check(body, EXPLAIN, document, status=str(found))
    assert found == status
    assert (body["explanation"]["sentence"] if status == 200 else body["message"]) == told


def _course(*, asked: bool, seed: int) -> tuple[Any, ...]:
    """Schedule pods on equal nodes, so that random draws decide; return all that came of it."""
    clock = ManualClock()
    nodes = [node_manifest(f"n{index}", cpu="4") for index in range(6)]

    async def main() -> tuple[Any, ...]:
        async with VirtualCluster(clock, nodes=nodes, seed=seed) as cluster:
            core = cluster.scheduler.core
            pages = question_pages([explain_question(cluster.scheduler, clock)])
            for index in range(PODS):
                await cluster.create_objects(
                    pod_manifest(f"p{index}", cpu="3" if index % 7 == 0 else "1")
                )
                for name in (index, index // 2) if asked else ():
                    assert (await pages[EXPLAIN]({"pod": f"default/p{name}"})).status == 200
            await cluster.until(lambda: not core.queue.counts().active)
            await cluster.until(lambda: core.cache.counts().assumed_pods == 0)
            histories = [
                (history.key, [(each.what, each.cause) for each in history.entries])
                for history in core.queue.lifecycle.histories
            ]
            facts = cluster.scheduler.facts
            counts = (facts.decisions, facts.rejected, facts.errors, facts.bound)
            core.queue.validate()
            return cluster.placements(), histories, core.queue.counts(), counts

    return run_virtual(main(), clock)


def _groups(*, asked: bool) -> tuple[Any, ...]:
    """Schedule groups, the last of which lacks room or members; return all that came of it."""
    clock = ManualClock()
    nodes = [node_manifest(f"n{index}", cpu="2") for index in range(4)]

    async def main() -> tuple[Any, ...]:
        async with VirtualCluster(clock, nodes=nodes, config=GANGS, seed=3) as cluster:
            core = cluster.scheduler.core
            pages = question_pages([explain_question(cluster.scheduler, clock)])
            for group, members in (("g", 3), ("h", 3), ("i", 4), ("j", 2)):
                await cluster.create_objects(
                    {**GROUP, "metadata": {**GROUP["metadata"], "name": group}}
                )
                for index in range(members):
                    name = f"{group}{index}"
                    await cluster.create_objects(_member(name, group))
                    if asked:
                        query = {"pod": f"default/{name}"}
                        assert (await pages[EXPLAIN](query)).status == 200
            await cluster.until(lambda: not core.queue.counts().active)
            await cluster.until(lambda: core.cache.counts().assumed_pods == 0)
            core.queue.validate()
            core.snapshot.groups.validate()
            groups = core.snapshot.groups.all_groups()
            names = {key: sorted(found.pods) for key, found in groups.items()}
            return cluster.placements(), core.queue.counts(), names

    return run_virtual(main(), clock)


def test_groups_are_placed_alike_with_questions_in_between() -> None:
    plain = _groups(asked=False)
    assert sum(map(bool, plain[0].values())) == 6, "two groups are placed"
    assert _groups(asked=True) == plain


@pytest.mark.parametrize("seed", range(3))
def test_placements_and_histories_are_equal_with_questions_in_between(seed: int) -> None:
    plain = _course(asked=False, seed=seed)
    assert plain[3][1], "no pod is rejected"
    assert _course(asked=True, seed=seed) == plain


def test_an_incomplete_group_is_told_the_members_that_it_lacks() -> None:
    """The suggestion was placed with the cycle of groups, and binds the members once it is done."""
    clock = ManualClock()

    async def main() -> tuple[str, list[str], str]:
        async with VirtualCluster(clock, nodes=[node_manifest("n")], config=GANGS) as cluster:
            await cluster.create_objects(GROUP, _member("a"))
            await cluster.until(lambda: cluster.scheduler.core.queue.counts().gated == 1)
            pages = question_pages([explain_question(cluster.scheduler, clock)])
            body = json.loads((await pages[EXPLAIN]({"pod": "default/a"})).body)["explanation"]
            for way in body["waysOut"]:
                await cluster.create_objects(*way["create"])
            await cluster.until(lambda: bool(cluster.node_of("a")))
            texts = [way["text"] for way in body["waysOut"]]
            return body["sentence"], texts, cluster.node_of("a")

    sentence, texts, node = run_virtual(main(), clock)
    assert sentence == (
        "held before the queue by plugin GangScheduling: waiting for minCount pods from a gang to "
        "appear in scheduling queue (group default/g has 1 of the 3 pods it needs)"
    )
    assert texts == ["2 more pods like this one in its group default/g"]
    assert node == "n"


def test_a_group_that_does_not_fit_together_is_told_so() -> None:
    """Each member fits alone."""
    clock = ManualClock()

    async def main() -> str:
        nodes = [node_manifest("n", cpu="2")]
        async with VirtualCluster(clock, nodes=nodes, config=GANGS) as cluster:
            await cluster.create_objects(GROUP, *map(_member, "abc"))
            await cluster.until(lambda: cluster.condition_of("a")[0] == "False")
            pages = question_pages([explain_question(cluster.scheduler, clock)])
            body = json.loads((await pages[EXPLAIN]({"pod": "default/a"})).body)["explanation"]
            return str(body["sentence"])

    assert run_virtual(main(), clock) == (
        "would fit on 1 node alone, but its group default/g needs 3 pods with a place, and only 2 "
        "fit together: the next, pod default/c, would fit on 1 node of 1 but for cpu (it requests "
        "1, the most that is free on one of them is 0)"
    )

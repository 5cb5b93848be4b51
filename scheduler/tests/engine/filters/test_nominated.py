"""Nominated pods: a node must take the pod with them and without them; the own node comes first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moorage.engine.decision import Outcome
from moorage.framework.capabilities import Reads
from moorage.framework.points import PreFilterResult
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.builders import decide, filterer, nodes, scorer, summary
from scheduler.tests.framework.builders import answers, profile
from scheduler.tests.snapshot.builders import pod

NO = unschedulable("no")
ALONE = unschedulable("not alone")
LONELY = unschedulable("too lonely")


def alone(info: Any, asked: PodInfo) -> Status:
    """Only an empty node will do."""
    return ALONE if info.pod_count else SUCCESS


def company(info: Any, asked: PodInfo) -> Status:
    """Only a node with somebody on it will do."""
    return SUCCESS if info.pod_count else LONELY


def named(name: str, priority: int = 0, **more: Any) -> PodInfo:
    return PodInfo(pod(name, priority=priority, **more))


@pytest.mark.parametrize(
    ("nominations", "filters", "expected"),
    [
        pytest.param({}, {"A": alone}, ("bind", "n1", ""), id="no nominated pods"),
        pytest.param(
            {"n1": [named("q", 5)]},
            {"A": alone},
            ("bind", "n2", ""),
            id="a nominated pod of equal priority counts",
        ),
        pytest.param(
            {"n1": [named("q", 6)]},
            {"A": alone},
            ("bind", "n2", ""),
            id="a nominated pod of higher priority counts",
        ),
        pytest.param(
            {"n1": [named("q", 4)]},
            {"A": alone},
            ("bind", "n1", ""),
            id="a nominated pod of lower priority does not count",
        ),
        pytest.param(
            {"n1": [named("p", 5)]},
            {"A": alone},
            ("bind", "n1", ""),
            id="the pod's own nomination does not count",
        ),
        pytest.param(
            {"n2": [named("q", 5)], "gone": [named("r", 5)]},
            {"A": alone},
            ("bind", "n1", ""),
            id="only the nominated row is affected, and unknown nodes are ignored",
        ),
        pytest.param(
            {"n1": [named("q", 5)], "n2": [named("r", 5)]},
            {"A": company},
            ("reject", "", "0/2 nodes are available: 2 too lonely."),
            id="the node must fit without the nominated pods as well",
        ),
        pytest.param(
            {"n1": [named("q", 5)], "n2": [named("r", 5)]},
            {"A": alone, "B": company},
            ("reject", "", "0/2 nodes are available: 2 not alone."),
            id="the failure with the nominated pods is reported",
        ),
        pytest.param(
            {"n1": [named("q", 5)]},
            {"B": company, "A": alone},
            ("reject", "", "0/2 nodes are available: 1 not alone, 1 too lonely."),
            id="the failure with nominated pods is reported even if a plugin fails without them",
        ),
    ],
)
@pytest.mark.parametrize("reads", [Reads.PODS, Reads.CLUSTER])
def test_two_passes(nominations: Mapping[str, Any], filters, expected, reads):
    snapshot = nodes("n1", "n2")
    snapshot.nominations = nominations
    plugins = [filterer(name, judge, reads) for name, judge in filters.items()]
    decision = decide(profile(*plugins, snapshot=snapshot), snapshot, named("p", 5))
    assert summary(decision) == expected
    assert snapshot.pod_count.tolist() == [0, 0]


def test_a_nominated_pod_that_is_counted_already_is_not_added_again():
    snapshot = nodes("n1")
    assumed = pod("q", priority=9)
    snapshot.table.add_pod(assumed, "n1")
    snapshot.nominations = {"n1": [PodInfo(assumed)]}

    def at_most_one(info: Any, asked: PodInfo) -> Status:
        return SUCCESS if info.pod_count <= 1 else NO

    given = profile(filterer("A", at_most_one, Reads.PODS), snapshot=snapshot)
    assert summary(decide(given, snapshot, named("p"))) == ("bind", "n1", "")


def test_plugins_follow_the_pods_added_in_a_pass():
    snapshot, followed = nodes("n1"), []

    def add_pod(state: Any, asked: PodInfo, added: PodInfo, *, row: int) -> None:
        followed.append((asked.name, added.name, row))
        if added.name == "bad":
            raise RuntimeError("cannot follow")

    plugin = filterer(
        "A",
        {},
        Reads.PODS,
        pre_filter=answers((None, SUCCESS)),
        add_pod=add_pod,
        remove_pod=answers(None),
    )
    given = profile(plugin, snapshot=snapshot)
    snapshot.nominations = {"n1": [named("q"), named("r")]}
    assert summary(decide(given, snapshot, named("p"))) == ("bind", "n1", "")
    assert set(followed) == {("p", "q", 0), ("p", "r", 0)}
    snapshot.nominations = {"n1": [named("bad")]}
    assert summary(decide(given, snapshot, named("p"))) == (
        "error",
        "",
        'running AddPod on PreFilter plugin "A": cannot follow',
    )
    assert snapshot.pod_count.tolist() == [0]


def preemptor(node: str) -> PodInfo:
    return PodInfo(pod("p", status={"nominatedNodeName": node}))


@pytest.mark.parametrize(
    ("nominated", "results", "restricted", "expected", "evaluated"),
    [
        pytest.param(
            "n3",
            {},
            None,
            ("bind", "n3", ""),
            1,
            id="the nominated node fits: no other node is asked",
        ),
        pytest.param(
            "n3",
            {"n3": NO},
            None,
            ("bind", "n1", ""),
            3,
            id="the nominated node does not fit: all nodes are asked",
        ),
        pytest.param("gone", {}, None, ("bind", "n1", ""), 3, id="the nominated node is deleted"),
        pytest.param(
            "n3",
            {},
            {"n2"},
            ("bind", "n3", ""),
            1,
            id="the nominated node is taken although PreFilter leaves it out",
        ),
        pytest.param(
            "n3",
            {"n3": NO, "n2": NO},
            {"n2"},
            (
                "reject",
                "",
                "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [A], 2 no.",
            ),
            2,
            id="the nominated node, left out by PreFilter, keeps its own reason",
        ),
        pytest.param(
            "n3",
            {"n3": error("bad")},
            {"n2"},
            ("bind", "n2", ""),
            1,
            id="an error on the nominated node is ignored where the search leaves the node out",
        ),
        pytest.param(
            "n3",
            {"n3": error("bad")},
            None,
            ("error", "", 'running "A" filter plugin: bad'),
            0,
            id="an error on the nominated node ends the attempt where the search has the node",
        ),
    ],
)
def test_the_own_nominated_node_is_asked_first(nominated, results, restricted, expected, evaluated):
    snapshot = nodes()
    result = PreFilterResult(None if restricted is None else frozenset(restricted))
    plugin = filterer("A", results, pre_filter=answers((result, SUCCESS)))
    given = profile(plugin, scorer("S", {"n1": 100}), snapshot=snapshot)
    decision = decide(given, snapshot, preemptor(nominated))
    assert (summary(decision), decision.evaluated) == (expected, evaluated)
    if nominated == "n3" and decision.outcome is Outcome.BIND and decision.node_name == "n3":
        assert decision.total_score is None


def test_a_rejector_of_the_nominated_node_is_named_among_those_that_restrict():
    snapshot = nodes()
    restricting = filterer(
        "R", {}, pre_filter=answers((PreFilterResult(frozenset({"n2"})), SUCCESS))
    )
    judging = filterer("J", {"n2": NO, "n3": NO})
    decision = decide(profile(restricting, judging, snapshot=snapshot), snapshot, preemptor("n3"))
    assert decision.message == (
        "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [J R], 2 no."
    )
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"J", "R"}

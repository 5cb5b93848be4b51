"""The steps of a cycle: nothing to choose from, restricted, one left, several, and none."""

from __future__ import annotations

import pytest

from moorage.base.rng import Streams
from moorage.engine.attempt import Preemption, Scope
from moorage.engine.cycle import GROUP_TOO_LARGE, Cycle
from moorage.engine.decision import CLEAR_NOMINATION, Nomination, Outcome
from moorage.engine.select_node import positional, seeded, smallest_name
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.points import PostFilterResult, PreFilterResult
from moorage.framework.roles import Role
from moorage.framework.status import SUCCESS, error, unresolvable, unschedulable
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.builders import decide, filterer, nodes, scorer, summary
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import cluster, pod

POD = PodInfo(pod("p"))
NO = unschedulable("no")
BOOM = RuntimeError("boom")


def restrict(name: str, *names: str) -> Fake:
    return Fake(name, pre_filter=answers((PreFilterResult(frozenset(names)), SUCCESS)))


def test_no_nodes():
    snapshot = cluster()
    decision = decide(profile(filterer("A", {}), snapshot=snapshot), snapshot, POD)
    assert decision.status == unresolvable("no nodes available to schedule pods")
    assert summary(decision) == ("reject", "", "no nodes available to schedule pods")
    assert (decision.diagnosis, decision.nomination) == (None, CLEAR_NOMINATION)


def test_the_only_feasible_node_is_taken_unscored():
    snapshot = nodes()
    judge = filterer("A", {"n1": NO, "n3": NO})
    given = profile(judge, scorer("S", {"n2": BOOM}), snapshot=snapshot)
    decision = decide(given, snapshot, POD)
    assert summary(decision) == ("bind", "n2", "")
    assert (decision.total_score, decision.feasible, decision.evaluated, decision.ties) == (
        None,
        1,
        3,
        1,
    )


def test_several_feasible_nodes_are_scored_and_the_best_is_taken():
    snapshot = nodes()
    given = profile(filterer("A", {"n3": NO}), scorer("S", {"n2": 7, "n3": 100}), snapshot=snapshot)
    decision = decide(given, snapshot, POD)
    assert summary(decision) == ("bind", "n2", "")
    assert (decision.total_score, decision.feasible, decision.ties) == (7, 2, 1)


@pytest.mark.parametrize(
    ("passing", "seen"),
    [
        pytest.param(("n1", "n2", "n3"), [("p", [0, 1, 2])], id="every node"),
        pytest.param(("n1", "n3"), [("p", [0, 2])], id="a part of the nodes"),
        pytest.param(("n2",), [], id="one node, which is taken unscored"),
        pytest.param((), [], id="no node"),
    ],
)
def test_a_listener_is_called_with_the_rows_that_have_scores(
    passing: tuple[str, ...], seen: list[tuple[str, list[int]]]
):
    snapshot, heard = nodes(), list[tuple[str, list[int]]]()
    rejecting = filterer("A", {name: NO for name in ("n1", "n2", "n3") if name not in passing})
    cycle = Cycle(
        profile(rejecting, scorer("S", {"n2": 7}), snapshot=snapshot),
        snapshot,
        smallest_name,
        on_scored=lambda attempt, rows: heard.append((attempt.pod.name, rows.tolist())),
    )
    cycle.decide(POD)
    assert heard == seen


def test_without_score_plugins_every_node_is_as_good():
    snapshot = nodes()
    decision = decide(profile(filterer("A", {}), snapshot=snapshot), snapshot, POD)
    assert (decision.total_score, decision.feasible, decision.ties) == (0, 3, 3)


@pytest.mark.parametrize(
    ("restricting", "expected", "evaluated"),
    [
        pytest.param(
            [restrict("R", "n2", "n3")],
            ("bind", "n2", ""),
            2,
            id="PreFilter restricts to known nodes",
        ),
        pytest.param(
            [restrict("R", "gone", "n3")],
            ("bind", "n3", ""),
            1,
            id="PreFilter names unknown nodes, which are dropped",
        ),
        pytest.param(
            [restrict("R", "gone")],
            ("reject", "", "0/4 nodes are available: 4 node(s) didn't satisfy plugin(s) [R]."),
            0,
            id="PreFilter restricts to unknown nodes only",
        ),
        pytest.param(
            [restrict("R", "full", "n2"), restrict("Q", "full")],
            (
                "reject",
                "",
                "0/4 nodes are available: 1 no, 3 node(s) didn't satisfy plugin(s) [Q R].",
            ),
            1,
            id="the nodes left out count with their own reason",
        ),
        pytest.param(
            [restrict("R", "n1"), restrict("Q", "n2")],
            (
                "reject",
                "",
                "0/4 nodes are available: node(s) didn't satisfy plugin(s) [Q R] simultaneously.",
            ),
            0,
            id="PreFilter restricts to no node",
        ),
    ],
)
def test_prefilter_restricts_the_search(restricting, expected, evaluated):
    snapshot = nodes("n1", "n2", "n3", "full")
    given = profile(*restricting, filterer("A", {"full": NO}), snapshot=snapshot)
    decision = decide(given, snapshot, POD)
    assert (summary(decision), decision.evaluated) == (expected, evaluated)


@pytest.mark.parametrize(
    ("answer", "expected", "rejectors"),
    [
        pytest.param(
            (None, unresolvable("never")),
            ("reject", "", "0/3 nodes are available: never."),
            {"P"},
            id="a rejection stands for every node",
        ),
        pytest.param(
            BOOM,
            ("error", "", 'running PreFilter plugin "P": boom'),
            None,
            id="an exception in PreFilter is an error",
        ),
    ],
)
def test_prefilter_ends_the_attempt(answer, expected, rejectors):
    snapshot = nodes()
    given = profile(
        Fake("P", pre_filter=answers(answer)), filterer("A", {"n1": BOOM}), snapshot=snapshot
    )
    decision = decide(given, snapshot, POD)
    assert summary(decision) == expected
    found = None if decision.diagnosis is None else decision.diagnosis.unschedulable_plugins
    assert found == rejectors


@pytest.mark.parametrize(
    ("answer", "message", "nomination"),
    [
        pytest.param(
            (PostFilterResult("n2"), SUCCESS),
            "",
            Nomination("n2"),
            id="PostFilter nominates a node",
        ),
        pytest.param(
            (PostFilterResult(""), unschedulable("preemption: none helps")),
            " preemption: none helps",
            Nomination(""),
            id="PostFilter clears the nomination and gives a reason",
        ),
        pytest.param(
            (None, unschedulable("nope")), " nope", None, id="PostFilter proposes nothing"
        ),
        pytest.param(
            (PostFilterResult("n2"), error("bad")),
            " bad",
            None,
            id="PostFilter raises: nothing changes",
        ),
    ],
)
def test_postfilter_after_a_failed_search(answer, message, nomination):
    snapshot = nodes()
    given = profile(
        filterer("A", dict.fromkeys(("n1", "n2", "n3"), NO)),
        Fake("Post", post_filter=answers(answer)),
        snapshot=snapshot,
    )
    decision = decide(given, snapshot, POD)
    text = f"0/3 nodes are available: 3 no.{message}"
    assert summary(decision) == ("reject", "", text)
    assert (decision.status, decision.nomination) == (unschedulable(text), nomination)


@pytest.mark.parametrize(
    ("preemption", "message", "nomination"),
    [
        pytest.param(Preemption.ALLOWED, "nope, evicts", Nomination("n2"), id="both plugins"),
        pytest.param(
            Preemption.ALONE, "evicts", Nomination("n2"), id="only the plugin that preempts"
        ),
        pytest.param(
            Preemption.REFUSED,
            f"nope, {GROUP_TOO_LARGE}",
            Nomination(""),
            id="the pod's group does not fit: its nomination would hold room in vain",
        ),
    ],
)
def test_who_is_asked_for_a_member_of_a_group(preemption, message, nomination):
    snapshot = nodes()
    preempts = (PostFilterResult("n2"), unschedulable("evicts"))
    given = profile(
        filterer("A", dict.fromkeys(("n1", "n2", "n3"), NO)),
        Fake("Other", post_filter=answers((None, unschedulable("nope")))),
        Fake("Preempts", post_filter=answers(preempts), roles=Role.PREEMPTS),
        snapshot=snapshot,
    )
    cycle = Cycle(given, snapshot, smallest_name)
    decision = cycle.decide(POD, Scope(preemption=preemption))
    assert decision.status == unschedulable(f"0/3 nodes are available: 3 no. {message}")
    assert decision.nomination == nomination


def test_postfilter_sees_the_status_of_every_node():
    snapshot, seen = nodes(), []

    def post_filter(state, info, node_to_status):
        seen.append(dict(node_to_status))
        return None, unschedulable()

    plugins = (
        restrict("R", "n1", "n2"),
        filterer("A", {"n1": NO, "n2": unresolvable("never")}),
        Fake("Post", post_filter=post_filter),
    )
    decide(profile(*plugins, snapshot=snapshot), snapshot, POD)
    left_out = unresolvable("node(s) didn't satisfy plugin(s) [R]")
    told = {"n1": NO.by("A"), "n2": unresolvable("never").by("A"), "n3": left_out}
    assert seen
    assert all(each == told for each in seen)


def test_postfilter_after_prefilter_gets_its_status_for_every_node():
    snapshot, seen = nodes("n1"), []

    def post_filter(state, info, node_to_status):
        seen.append(dict(node_to_status))
        return None, unschedulable("post")

    given = profile(
        Fake("P", pre_filter=answers((None, NO))),
        Fake("Post", post_filter=post_filter),
        snapshot=snapshot,
    )
    decision = decide(given, snapshot, POD)
    assert seen[0] == {"n1": NO.by("P")}
    assert decision.diagnosis == Diagnosis(
        1,
        unschedulable_plugins=frozenset("P"),
        pre_filter_message="no",
        post_filter_message="post",
    )


@pytest.mark.parametrize(
    ("tie_break", "chosen"),
    [
        pytest.param(smallest_name, "N2", id="the smallest name, bytewise"),
        pytest.param(positional, "n3", id="the first row"),
    ],
)
def test_ties(tie_break, chosen):
    snapshot = nodes("worse", "n3", "N2", "n1")
    given = profile(scorer("S", {"n3": 5, "N2": 5, "n1": 5}), snapshot=snapshot)
    decision = decide(given, snapshot, POD, tie_break)
    assert (decision.node_name, decision.ties, decision.total_score) == (chosen, 3, 5)
    assert decision.outcome is Outcome.BIND


def test_seeded_ties_are_uniform_and_repeat():
    names = [f"n{i}" for i in range(4)]
    snapshot = nodes(*names)
    rows = snapshot.all().row_numbers()

    def draws(seed: int) -> list[int]:
        draw = seeded(Streams(seed).stream("ties"))
        return [draw(rows, names) for _ in range(400)]

    drawn = draws(1)
    assert drawn == draws(1)
    assert drawn != draws(2)
    assert all(60 <= drawn.count(row) <= 140 for row in range(4))


def test_a_lone_best_node_costs_no_draw():
    streams = Streams(3)
    draw, twin = seeded(streams.stream("ties")), Streams(3).stream("ties")
    assert draw(nodes("a").all().row_numbers(), ["a"]) == 0
    assert draw(nodes("a", "b").all().row_numbers(), ["a", "b"]) == twin.randrange(2)

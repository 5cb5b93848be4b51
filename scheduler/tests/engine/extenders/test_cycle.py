"""Attempts with extenders: who is asked what, what answers do, and what changes meanwhile.

Not covered: how extenders are spoken to (client), and recorded attempts (conformance).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.errors import ExtenderError, ExtenderSilentError
from moorage.engine.decision import Decision, Outcome
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.extenders.replies import ExtenderReplies
from moorage.engine.sampling import Rotation
from moorage.engine.select_node import smallest_name
from moorage.framework.capabilities import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.extender import EVERY_EVENT, in_order
from moorage.framework.points import PostFilterResult
from moorage.framework.preemption import NARROWING, Candidate
from moorage.framework.runner_binding import run_bind
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.builders import filterer, nodes, scorer, summary
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.snapshot.builders import cluster, node, pod

POD = PodInfo(pod("p"))
NO = unschedulable("no")
FAILS = ExtenderError("out of order")


class Scripted:
    """An extender that knows its answers; what it is asked goes into a log shared by several."""

    def __init__(self, name: str, log: list[str] | None = None, **script: Any) -> None:
        self.name, self.script = name, script
        self.log = [] if log is None else log
        self.ignorable = bool(script.get("ignorable"))
        self.weight = script.get("weight", 1)
        self.filters, self.prioritizes = "passing" in script, "scores" in script
        self.preempts, self.binds = "victims" in script, "bound" in script
        self.meanwhile: Callable[[], object] = lambda: None

    def interested(self, pod: Pod) -> bool:
        return pod.name in self.script.get("pods", (pod.name,))

    def _answer(self, verb: str, asked: str) -> Any:
        self.log.append(f"{self.name} {verb} {asked}".rstrip())
        self.meanwhile()
        answer = self.script[verb]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def filter(
        self, pod: Pod, nodes: Sequence[Node]
    ) -> tuple[Sequence[str], Mapping[str, str], Mapping[str, str]]:
        answer = self._answer("passing", " ".join(each.name for each in nodes))
        told = any(isinstance(part, dict) for part in answer)
        passing, failed, beyond = answer if told else (answer, {}, {})
        return [each.name for each in nodes if each.name in passing], failed, beyond

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        scores: Mapping[str, int] = self._answer("scores", " ".join(each.name for each in nodes))
        return scores

    async def preempt(self, pod: Pod, victims: Any, *, on_node: Any) -> Any:
        told = " ".join(
            f"{name}:{','.join(each.name for each in pods)}/{count}"
            for name, (pods, count) in victims.items()
        )
        kept = self._answer("victims", told)
        return {
            name: ([p for p in on_node(name) if p.name in wanted], count)
            for name, (wanted, count) in kept.items()
        }

    async def bind(self, pod: Pod, node_name: str) -> None:
        self._answer("bound", f"{pod.name} {node_name}")


def ask(
    snapshot: Snapshot, plugins: Sequence[Any], *extenders: Scripted, pod: PodInfo = POD
) -> Decision:
    made = profile(*plugins, snapshot=snapshot)
    made.extenders = in_order(extenders)
    cycle = ExtendedCycle(made, snapshot, smallest_name)
    return decided(cycle, pod)


def decided(cycle: ExtendedCycle, pod: PodInfo) -> Decision:
    """Return the decision in which extenders take part."""

    async def decide() -> Decision:
        asking = cycle.asking(pod)
        assert asking is not None
        return await asking

    return asyncio.run(decide())


@pytest.mark.parametrize(
    ("scripts", "log", "expected"),
    [
        pytest.param(
            [{"passing": ("n1", "n2")}, {"passing": ("n2",)}],
            ["e0 passing n1 n2 n3", "e1 passing n1 n2"],
            ("bind", "n2", ""),
            id="each extender is asked about the nodes that the one before left",
        ),
        pytest.param(
            [{"passing": FAILS, "ignorable": True}, {"passing": ("n3",)}],
            ["e1 passing n1 n2 n3", "e0 passing n3"],
            ("bind", "n3", ""),
            id="ignorable extenders come last and may fail",
        ),
        pytest.param(
            [{"passing": FAILS}],
            ["e0 passing n1 n2 n3"],
            ("error", "", "out of order"),
            id="an extender that fails ends the attempt",
        ),
        pytest.param(
            [{"passing": ()}, {"passing": ("n1",)}],
            ["e0 passing n1 n2 n3"],
            ("reject", "", "0/3 nodes are available:"),
            id="no extender is asked without nodes, and nodes without a reason are not counted",
        ),
        pytest.param(
            [{"passing": ((), {"n1": "busy", "n2": "busy"}, {"n2": "never", "other": "x"})}],
            ["e0 passing n1 n2 n3"],
            ("reject", "", "0/3 nodes are available: 1 busy, 1 never."),
            id="unresolvable takes precedence, and unknown nodes are not counted",
        ),
        pytest.param(
            [{"passing": ("n1",), "pods": ("another",)}, {"passing": ("n2",)}],
            ["e1 passing n1 n2 n3"],
            ("bind", "n2", ""),
            id="an extender that is not interested is not asked",
        ),
    ],
)
def test_filtering(scripts, log, expected):
    seen: list[str] = []
    extenders = [Scripted(f"e{i}", seen, **script) for i, script in enumerate(scripts)]
    decision = ask(nodes(), [filterer("A", {})], *extenders)
    assert (seen, summary(decision)) == (log, expected)


def test_a_rejection_by_an_extender_waits_for_everything():
    decision = ask(nodes(), [filterer("A", {"n1": NO})], Scripted("e", passing=()))
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"A", "Extender"}
    made = profile(filterer("A", {}))
    made.extenders = (Scripted("e", passing=()),)
    assert made.registrations()["Extender"] == EVERY_EVENT


@pytest.mark.parametrize(
    ("scripts", "total", "winner"),
    [
        pytest.param([{"scores": {"n2": 3}, "weight": 2}], 60, "n2", id="score x weight x 10"),
        pytest.param(
            [{"scores": {"n2": 3}}, {"scores": {"n3": 4}}],
            40,
            "n3",
            id="scores of several extenders add up",
        ),
        pytest.param(
            [{"scores": FAILS}, {"scores": {}}], 20, "n1", id="an extender that fails adds nothing"
        ),
        pytest.param(
            [{"scores": {"n2": 2**62, "n9": 1}}], 2**61, "n2", id="a score out of range is bounded"
        ),
    ],
)
def test_scoring(scripts, total, winner):
    extenders = [Scripted(f"e{i}", **script) for i, script in enumerate(scripts)]
    decision = ask(nodes(), [filterer("A", {}), scorer("S", {"n1": 20})], *extenders)
    assert (decision.node_name, decision.total_score) == (winner, total)


BIG = 2**63


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abc"), st.integers(-BIG, BIG - 1)),
            st.integers(0, 1000),
        ),
        max_size=4,
    )
)
def test_sums_of_scores_are_bounded_after_every_extender(answers):
    heard, expected = ExtenderReplies(), dict[str, int]()
    for scores, factor in answers:
        heard.add_scores(scores, factor)
        for name, score in scores.items():
            total = expected.get(name, 0) + score * factor
            expected[name] = max(-(2**61), min(total, 2**61))
    assert {name: heard.scores.get(name, 0) for name in expected} == expected


def test_a_single_node_is_not_scored():
    seen: list[str] = []
    extender = Scripted("e", seen, passing=("n2",), scores={"n2": 1})
    decision = ask(nodes(), [filterer("A", {})], extender)
    assert (seen, decision.node_name) == (["e passing n1 n2 n3"], "n2")


@pytest.mark.parametrize(
    ("passing", "log", "expected"),
    [
        pytest.param(("n2",), ["e passing n2"], "n2", id="the extender accepts the nominated node"),
        pytest.param(
            ("n1",),
            ["e passing n2", "e passing n1 n2 n3"],
            "n1",
            id="the extender rejects the nominated node",
        ),
    ],
)
def test_the_nominated_node_comes_first(passing, log, expected):
    seen: list[str] = []
    nominated = PodInfo(pod("p", status={"nominatedNodeName": "n2"}))
    extender = Scripted("e", seen, passing=passing)
    decision = ask(nodes(), [filterer("A", {})], extender, pod=nominated)
    assert (seen, decision.node_name) == (log, expected)


def full(info: Any, pod: PodInfo) -> Status:
    return NO if info.pod_count else SUCCESS


def test_a_node_that_fills_up_meanwhile_loses_to_the_next():
    snapshot = nodes()
    extender = Scripted("e", passing=("n1", "n2"), scores={"n1": 10})

    def fill() -> None:
        if snapshot.table.pod_info("uid-late") is None:
            snapshot.table.add_pod(pod("late"), "n1")

    extender.meanwhile = fill
    decision = ask(snapshot, [filterer("A", full, Reads.PODS)], extender)
    assert summary(decision) == ("bind", "n2", "")


def test_extenders_are_asked_again_when_only_other_nodes_are_left():
    snapshot, seen = nodes("n1"), list[str]()

    def replace() -> None:
        if snapshot.row_of("n1") is not None:
            snapshot.table.remove_node("n1")
            snapshot.table.add_node(node("n2"))

    extender = Scripted("e", seen, passing=("n1", "n2"))
    extender.meanwhile = replace
    decision = ask(snapshot, [filterer("A", {})], extender)
    assert (seen, decision.node_name) == (["e passing n1", "e passing n2"], "n2")


def test_after_too_many_changes_the_attempt_is_retried_later():
    snapshot, names = nodes("n0"), iter(range(1, 99))

    def replace() -> None:
        number = next(names)
        snapshot.table.remove_node(f"n{number - 1}")
        snapshot.table.add_node(node(f"n{number}"))

    extender = Scripted("e", passing=[f"n{i}" for i in range(99)])
    extender.meanwhile = replace
    decision = ask(snapshot, [filterer("A", {})], extender)
    assert decision.outcome is Outcome.ERROR
    assert decision.message == "the nodes changed while extenders were asked about them"


# --- preemption ---------------------------------------------------------------------------------


def offering(snapshot: Snapshot) -> Fake:
    """A PostFilter plugin whose candidates are all nodes, with every pod a victim."""

    def post_filter(state: Any, pod: PodInfo, statuses: Any) -> Any:
        narrowing = state.read(NARROWING)
        if not narrowing.answered:
            narrowing.offered = tuple(
                Candidate(name, tuple(snapshot.pods(row)), row)
                for row, name in enumerate(snapshot.names)
            )
            return None, unschedulable("not to be seen")
        if narrowing.failure:
            return None, error(narrowing.failure)
        if not narrowing.remaining:
            return None, unschedulable("nothing left")
        (best, *_) = narrowing.remaining
        return PostFilterResult(best.node_name, tuple(v.pod for v in best.victims)), SUCCESS

    return Fake("Offers", post_filter=post_filter)


def noting(log: list[str], name: str) -> Callable[..., Any]:
    """A PostFilter that has nothing to offer."""

    def post_filter(*_: Any) -> Any:
        log.append(name)
        return None, unschedulable()

    return post_filter


@pytest.mark.parametrize(
    ("scripts", "log", "expected"),
    [
        pytest.param(
            [{"victims": {"n2": (("c",), 1)}}, {"victims": {"n2": (("b", "c"), 0)}}],
            ["e0 victims n1:a/0 n2:b,c/1", "e1 victims n2:c/1"],
            ("n2", ["b", "c"], ""),
            id="each extender narrows the candidates, or names other victims",
        ),
        pytest.param(
            [{"victims": FAILS}], ["e0 victims n1:a/0 n2:b,c/1"], (None, [], "out of order"),
            id="an extender that fails ends preemption",
        ),
        pytest.param(
            [{"victims": FAILS, "ignorable": True}],
            ["e0 victims n1:a/0 n2:b,c/1"],
            ("n1", ["a"], ""),
            id="an ignorable extender that fails is ignored",
        ),
        pytest.param(
            [{"victims": {"n1": ((), 0)}}],
            ["e0 victims n1:a/0 n2:b,c/1"],
            (None, [], 'expected at least one victim pod on node "n1"'),
            id="a node without victims is an error",
        ),
        pytest.param(
            [{"victims": {"n1": ((), 0)}, "ignorable": True}, {"victims": {}, "ignorable": True}],
            ["e0 victims n1:a/0 n2:b,c/1"],
            (None, [], "nothing left"),
            id="a candidate without victims is dropped; no extender is asked without candidates",
        ),
    ],
)  # fmt: skip
def test_preemption(scripts, log, expected):
    pods = {"n1": [pod("a")], "n2": [pod("b"), pod("c")]}
    snapshot = cluster(node("n1"), node("n2"), pods=pods)
    seen: list[str] = []
    extenders = [Scripted(f"e{i}", seen, **script) for i, script in enumerate(scripts)]
    asked: list[str] = []
    first, last = (Fake(name, post_filter=noting(asked, name)) for name in ("First", "Last"))
    plugins = [filterer("A", {"n1": NO, "n2": NO}), first, offering(snapshot), last]
    decision = ask(snapshot, plugins, *extenders)
    nominated = decision.nomination.node_name if decision.nomination else None
    assert decision.diagnosis is not None
    message = decision.diagnosis.post_filter_message
    victims = [victim.name for victim in decision.victims]
    assert (seen, (nominated, victims, message)) == (log, expected)
    # Plugins after a success, or an error, are not asked; nobody else is asked twice.
    assert asked == (["First", "Last"] if expected[2] == "nothing left" else ["First"])


# --- binding ------------------------------------------------------------------------------------

LOST = ExtenderSilentError("timed out")


@pytest.mark.parametrize(
    ("scripts", "found", "log", "expected"),
    [
        pytest.param([{"bound": None}], None, ["e0 bound p n1"], SUCCESS, id="the extender binds"),
        pytest.param(
            [{"bound": FAILS}], True, ["e0 bound p n1"], error("out of order"),
            id="the extender fails",
        ),
        pytest.param(
            [{"bound": FAILS, "ignorable": True}], True, ["e0 bound p n1", "plugin"],
            SUCCESS.by("B"), id="the ignorable extender fails",
        ),
        pytest.param(
            [{"bound": None, "pods": ()}], None, ["plugin"], SUCCESS.by("B"),
            id="the extender is not interested",
        ),
        pytest.param(
            [{"bound": LOST}], True, ["e0 bound p n1", "look p uid-p n1"], SUCCESS,
            id="no answer, and the pod is bound",
        ),
        pytest.param(
            [{"bound": LOST}], False, ["e0 bound p n1", "look p uid-p n1"], error("timed out"),
            id="no answer, and the pod is not bound",
        ),
        pytest.param(
            [{"bound": LOST}], None, ["e0 bound p n1"], error("timed out"),
            id="no answer, and the pod cannot be read",
        ),
        pytest.param(
            [{"bound": LOST, "ignorable": True}], True, ["e0 bound p n1", "look p uid-p n1"],
            SUCCESS, id="an ignorable extender does not answer, the pod is bound",
        ),
        pytest.param(
            [{"bound": LOST, "ignorable": True}], False,
            ["e0 bound p n1", "look p uid-p n1", "plugin"],
            SUCCESS.by("B"), id="an ignorable extender does not answer, the pod is not bound",
        ),
    ],
)  # fmt: skip
def test_binding(scripts, found, log, expected):
    seen: list[str] = []

    def bind(*_: Any) -> Status:
        seen.append("plugin")
        return SUCCESS

    class Client:
        async def is_bound(self, namespace: str, name: str, uid: str, node_name: str) -> bool:
            seen.append(f"look {name} {uid} {node_name}")
            return bool(found)

    made = profile(Fake("B", bind=bind))
    client: Any = None if found is None else Client()
    made.handle = msgspec.structs.replace(made.handle, client=client)
    made.extenders = in_order(
        [Scripted(f"e{i}", seen, **script) for i, script in enumerate(scripts)]
    )
    status = asyncio.run(run_bind(made, CycleState(), POD, "n1"))
    assert (seen, status) == (log, expected)


def test_nodes_are_named_in_the_order_in_which_the_search_met_them() -> None:
    snapshot = nodes("n1", "n2", "n3", "n4")
    log: list[str] = []
    made = profile(filterer("A", {"n2": NO}), snapshot=snapshot)
    made.extenders = in_order([Scripted("e", log, passing=("n3",))])
    rotation = Rotation()
    rotation.advance(3, 4)
    cycle = ExtendedCycle(made, snapshot, smallest_name, rotation=rotation)
    decided(cycle, POD)
    assert log == ["e passing n4 n1 n3"]

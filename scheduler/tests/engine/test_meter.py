"""What the deciding half tells a meter: which points ran, how they ended, and which plugins.

Left out: how it is added up (``scheduler/tests/observe``), and the binding half.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from moorage.base.clock import ManualClock
from moorage.engine.cycle import Cycle
from moorage.engine.select_node import smallest_name
from moorage.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from moorage.observe.plugin_facts import PluginFacts
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.builders import filterer, nodes, scorer, told
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import pod

POD = PodInfo(pod("p"))
NO = unschedulable("no")
BROKEN = RuntimeError("broken")
SKIP = Status(Code.SKIP)


class Listing:
    """A meter that writes down what it is told."""

    def __init__(self, *, timed: bool = True) -> None:
        self.points: list[str] = []
        self.plugins: list[str] = []
        self.calls: Counter[str] = Counter()
        self._timed = timed
        self._now_ns = 0

    def sample(self) -> bool:
        return self._timed

    def start(self) -> None:
        pass

    def lap(self, point: str, code: Code) -> None:
        self.points.append(f"{point} {code.text}")

    def meter_ns(self) -> int:
        self._now_ns += 1
        return self._now_ns

    def called(self, plugin: str, point: str) -> None:
        self.calls[f"{plugin} {point}"] += 1

    def took(self, plugin: str, point: str, code: Code, *, since_ns: int) -> None:
        assert since_ns == self._now_ns, "a call was begun in between"
        self.plugins.append(f"{plugin} {point} {code.text}")


def pre_filterer(answer: Any) -> Fake:
    return Fake("X", pre_filter=answers(answer))


def pre_scorer(answer: Any) -> Fake:
    return scorer("X", {}, pre_score=answers(answer))


PLACED = ["PreFilter Success", "Filter Success", "PreScore Success", "Score Success"]
REJECTED = ["PreFilter Success", "Filter Success"]
# In an attempt whose only other plugin is a Filter that lets every node pass.
F = ["F Filter Success"]


@pytest.mark.parametrize(
    ("plugin", "points", "plugins"),
    [
        pytest.param(
            scorer("X", {}),
            PLACED,
            [*F, "X Score Success"],
            id="PreFilter, Filter, PreScore and Score are told in this order",
        ),
        pytest.param(
            pre_filterer((None, SKIP)),
            PLACED,
            ["X PreFilter Skip", *F],
            id="a PreFilter that skips does not make the point skip",
        ),
        pytest.param(
            pre_filterer((None, unresolvable("no"))),
            ["PreFilter UnschedulableAndUnresolvable"],
            ["X PreFilter UnschedulableAndUnresolvable"],
            id="nothing is filtered after a rejection by PreFilter",
        ),
        pytest.param(
            pre_filterer(BROKEN),
            ["PreFilter Error"],
            ["X PreFilter Error"],
            id="a PreFilter that breaks is an Error",
        ),
        pytest.param(
            filterer("X", dict.fromkeys(("n1", "n2", "n3"), NO)),
            REJECTED,
            [*F, "X Filter Success"],
            id="a rejection of every node is Success of Filter",
        ),
        pytest.param(
            filterer("X", {"n2": BROKEN}),
            ["PreFilter Success", "Filter Error"],
            [*F, "X Filter Error"],
            id="a Filter that breaks is an Error",
        ),
        pytest.param(
            filterer("X", dict.fromkeys(("n1", "n2", "n3"), NO), post_filter=answers((None, NO))),
            [*REJECTED, "PostFilter Unschedulable"],
            [*F, "X Filter Success", "X PostFilter Unschedulable"],
            id="PostFilter is told with its answer",
        ),
        pytest.param(
            pre_scorer(SKIP),
            PLACED,
            [*F, "X PreScore Skip"],
            id="a plugin that PreScore takes out is not asked for scores",
        ),
        pytest.param(
            pre_scorer(error("broken")),
            [*PLACED[:2], "PreScore Error"],
            [*F, "X PreScore Error"],
            id="a PreScore that breaks is an Error, and Score does not run",
        ),
        pytest.param(
            scorer("X", {"n1": BROKEN}),
            [*PLACED[:3], "Score Error"],
            [*F, "X Score Error"],
            id="a Score that breaks is an Error",
        ),
        pytest.param(
            scorer("X", {}, normalize=lambda _state, _pod, raw_n: raw_n),
            PLACED,
            [*F, "X Score Success", "X ScoreExtensionNormalize Success"],
            id="normalising belongs to Score and is told by itself",
        ),
    ],
)
def test_points_and_plugins_are_told_as_they_end(
    plugin: Fake, points: list[str], plugins: list[str]
) -> None:
    snapshot = nodes()
    given = profile(filterer("F", {}), plugin, snapshot=snapshot)
    meter = Listing()
    Cycle(given, snapshot, smallest_name, reuse=False, meter=meter).decide(POD)
    assert meter.points == points
    assert meter.plugins == plugins
    assert meter.calls == Counter(
        line.rpartition(" ")[0] for line in plugins if not line.endswith("Skip")
    )


def test_plugins_of_an_attempt_that_is_not_sampled_are_counted_and_not_timed() -> None:
    snapshot = nodes()
    given = profile(filterer("F", {}), scorer("S", {}), snapshot=snapshot)
    meter = Listing(timed=False)
    Cycle(given, snapshot, smallest_name, reuse=False, meter=meter).decide(POD)
    assert meter.points == PLACED
    assert meter.plugins == []
    assert meter.calls == {"F Filter": 1, "S Score": 1}


def test_an_answer_reused_for_a_replica_is_no_call_and_the_points_are_told_all_the_same() -> None:
    snapshot = nodes()
    plugins = filterer("F", {"n2": NO}), scorer("S", {"n3": 5}, pre_score=answers(SUCCESS))
    given = profile(*plugins, snapshot=snapshot)
    meter = Listing()
    cycle = Cycle(given, snapshot, smallest_name, meter=meter)
    plain = Cycle(given, snapshot, smallest_name, reuse=False).decide(POD)
    for _ in range(3):
        assert told(cycle.decide(POD)) == told(plain)
    assert meter.points == PLACED * 3
    assert meter.calls == {"F Filter": 1, "S PreScore": 1, "S Score": 1}


def test_a_cycle_nobody_listens_to_leaves_the_state_without_a_meter() -> None:
    snapshot = nodes()
    given = profile(filterer("F", {}), snapshot=snapshot)
    decision = Cycle(given, snapshot, smallest_name).decide(POD)
    assert (decision.state.meter, decision.state.timed) == (None, False)
    assert decision.status == SUCCESS


def test_laps_are_what_passed_since_the_lap_before() -> None:
    clock = ManualClock()
    facts = PluginFacts(clock.monotonic_ns, lambda: 0.05)
    meter = facts.meter("p")
    meter.start()
    for seconds, point in ((1, "PreFilter"), (2, "Filter"), (4, "Filter")):
        clock.advance(seconds)
        meter.lap(point, Code.SUCCESS)
    began_ns = meter.meter_ns()
    clock.advance(8)
    meter.took("X", "Filter", Code.ERROR, since_ns=began_ns)
    assert {key: (h.count, h.total) for key, h in facts.durations.items()} == {
        ("PreFilter", "Success", "p"): (1, 1.0),
        ("Filter", "Success", "p"): (2, 6.0),
    }
    assert {key: h.total for key, h in facts.executions.items()} == {("X", "Filter", "Error"): 8.0}


def test_more_laps_than_are_kept_are_all_counted() -> None:
    clock = ManualClock()
    facts = PluginFacts(clock.monotonic_ns, lambda: 0.5)
    meter = facts.meter("p")
    for attempt in range(12_500):
        meter.start()
        clock.advance_ns(1000)
        meter.lap("Filter", Code.ERROR if attempt % 2 else Code.SUCCESS)
        clock.advance_ns(5000)
    found = facts.durations
    for status in ("Success", "Error"):
        assert found["Filter", status, "p"].count == 6250
        assert found["Filter", status, "p"].total == pytest.approx(6250e-6)


def test_a_reading_in_the_middle_of_an_attempt_loses_nothing() -> None:
    clock = ManualClock()
    facts = PluginFacts(clock.monotonic_ns, lambda: 0.5)
    meter = facts.meter("p")
    clock.advance(1)
    meter.start()
    assert facts.durations == {}
    clock.advance(2)
    meter.lap("Filter", Code.SUCCESS)
    assert facts.durations["Filter", "Success", "p"].total == 2.0
    clock.advance(3)
    meter.lap("Score", Code.SUCCESS)
    assert facts.durations["Score", "Success", "p"].total == 3.0


@pytest.mark.parametrize(("drawn", "sampled"), [(0.0, True), (0.099, True), (0.1, False)])
def test_a_tenth_of_the_attempts_is_sampled(drawn: float, *, sampled: bool) -> None:
    assert PluginFacts(lambda: 0, lambda: drawn).meter("p").sample() is sampled

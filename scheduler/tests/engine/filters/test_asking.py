"""Which plugin decides a row, what breaks an attempt, and the text that comes of it."""

from __future__ import annotations

import numpy as np
import pytest

from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.decision import CLEAR_NOMINATION, Outcome
from moorage.engine.filters.asking import run_filters
from moorage.engine.select_node import smallest_name
from moorage.framework.capabilities import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.status import (
    SKIP,
    Code,
    FilterAnswer,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.builders import decide, filterer, nodes, scorer, summary
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import pod

POD = PodInfo(pod("p"))
NO, NEVER = unschedulable("no"), unresolvable("never")
PENDING = Status(Code.PENDING, ("soon",))
READS = [
    pytest.param(Reads.NODE, Reads.PODS, id="node, pods"),
    pytest.param(Reads.PODS, Reads.NODE, id="pods, node"),
    pytest.param(Reads.NODE, Reads.CLUSTER, id="node, cluster"),
    pytest.param(Reads.CLUSTER, Reads.NODE, id="cluster, node"),
]


@pytest.mark.parametrize(("reads_a", "reads_b"), READS)
@pytest.mark.parametrize(
    ("a", "b", "diagnosis"),
    [
        pytest.param(
            dict.fromkeys(("n1", "n2", "n3"), NO),
            dict.fromkeys(("n1", "n2", "n3"), NEVER),
            Diagnosis(3, {"no": 3}, frozenset("A")),
            id="the first plugin decides every row",
        ),
        pytest.param(
            {"n2": NO},
            {"n1": NEVER, "n2": NEVER, "n3": NEVER},
            Diagnosis(3, {"no": 1, "never": 2}, frozenset("AB")),
            id="the second decides the rows the first lets pass",
        ),
        pytest.param(
            {"n1": unschedulable("no", "never"), "n2": PENDING},
            {"n2": NEVER, "n3": NEVER},
            Diagnosis(3, {"no": 1, "never": 2, "soon": 1}, frozenset("AB"), frozenset("A")),
            id="several reasons count one by one, Pending is remembered",
        ),
        pytest.param(
            {"n1": unschedulable(), "n2": NO, "n3": NO},
            {},
            Diagnosis(3, {"no": 2}, frozenset("A")),
            id="a rejection without a reason is a rejection",
        ),
    ],
)
def test_the_first_failing_plugin_decides_a_row(reads_a, reads_b, a, b, diagnosis):
    snapshot = nodes()
    given = profile(filterer("A", a, reads_a), filterer("B", b, reads_b), snapshot=snapshot)
    decision = decide(given, snapshot, POD)
    assert decision.diagnosis == diagnosis
    assert (decision.outcome, decision.evaluated, decision.feasible) == (Outcome.REJECT, 3, 0)
    assert decision.status == unschedulable(diagnosis.message)
    assert decision.nomination == CLEAR_NOMINATION


@pytest.mark.parametrize(("reads_a", "reads_b"), READS)
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(
            {},
            {"n2": error("bad")},
            ("error", "", 'running "B" filter plugin: bad'),
            id="an error over one row ends the attempt",
        ),
        pytest.param(
            {},
            {"n3": error("late"), "n2": RuntimeError("boom")},
            ("error", "", 'running "B" filter plugin: boom'),
            id="the first row decides the text, raised or answered",
        ),
        pytest.param(
            {"n2": NO},
            {"n2": error("bad")},
            ("bind", "n1", ""),
            id="a plugin is not asked about a row that an earlier plugin rejects",
        ),
        pytest.param(
            {"n2": error("bad")},
            {"n2": NO},
            ("error", "", 'running "A" filter plugin: bad'),
            id="a later rejection does not hide an error",
        ),
        pytest.param(
            {"n1": Status(Code.WAIT, ("slow",))},
            {},
            ("error", "", 'running "A" filter plugin: slow'),
            id="a code that Filter does not allow is an error",
        ),
    ],
)
def test_errors(reads_a, reads_b, a, b, expected):
    snapshot = nodes()
    given = profile(filterer("A", a, reads_a), filterer("B", b, reads_b), snapshot=snapshot)
    decision = decide(given, snapshot, POD)
    assert summary(decision) == expected
    if decision.outcome is Outcome.ERROR:
        assert (decision.diagnosis, decision.nomination) == (None, CLEAR_NOMINATION)


def rows_of(n: int) -> FilterAnswer:
    return FilterAnswer(np.zeros(n, np.uint8), np.zeros(n, np.int32))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(rows_of(2), "plugin answered for 2 rows instead of 3", id="too few rows"),
        pytest.param(ValueError("boom"), "boom", id="raising"),
    ],
)
def test_a_vector_plugin_that_breaks_fails_every_row(answer, text):
    snapshot = nodes()
    broken = Fake("V", filter=answers(answer), filter_reads=Reads.NODE, shape_parts=())
    decision = decide(profile(broken, snapshot=snapshot), snapshot, POD)
    assert summary(decision) == ("error", "", f'running "V" filter plugin: {text}')


def test_a_plugin_whose_prefilter_skips_is_not_asked():
    snapshot = nodes("n1")
    plugins = filterer("A", {"n1": NO}, pre_filter=answers((None, SKIP)))
    assert summary(decide(profile(plugins, snapshot=snapshot), snapshot, POD)) == ("bind", "n1", "")


def test_run_filters_over_some_rows_answers_in_their_order():
    snapshot = nodes()
    given = profile(filterer("A", {"n1": NO, "n3": NEVER}), snapshot=snapshot)
    filtered = run_filters(Attempt(given, snapshot, CycleState(), POD), snapshot.rows([2, 1, 0]))
    assert [filtered.status(given, i) for i in range(3)] == [
        NEVER.by("A"),
        Status(),
        NO.by("A"),
    ]
    assert filtered.passed.tolist() == [False, True, False]
    assert filtered.tally.rejectors(given.filters) == {"A"}


def test_run_filters_raises_the_status_the_attempt_ends_with():
    snapshot = nodes()
    given = profile(filterer("A", {"n1": error("bad")}), snapshot=snapshot)
    with pytest.raises(CycleError) as caught:
        run_filters(Attempt(given, snapshot, CycleState(), POD), snapshot.all())
    assert caught.value.status == error('running "A" filter plugin: bad').by("A")


def test_an_error_that_is_gone_is_forgotten_with_reuse_too():
    snapshot, weather = nodes(), {"n2": error("bad")}
    cycle = Cycle(
        profile(filterer("A", weather), scorer("S", {"n2": 5}), snapshot=snapshot),
        snapshot,
        smallest_name,
    )
    assert cycle.decide(POD).outcome is Outcome.ERROR
    weather.clear()
    assert summary(cycle.decide(POD)) == ("bind", "n2", "")

"""Raw scores, normalising, weights, bounds, and what is said when any of it breaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.engine.attempt import Attempt
from moorage.engine.scoring import run_scores
from moorage.framework.capabilities import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SKIP, error, unschedulable
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.builders import decide, filterer, nodes, scorer, summary
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import pod

POD = PodInfo(pod("p"))
NO = unschedulable("no")
BOOM = RuntimeError("boom")
EVERY_READS = [Reads.NODE, Reads.PODS, Reads.CLUSTER]


def reverse(state: Any, info: PodInfo, raw_n: Any) -> Any:
    return 100 - raw_n


def test_raw_normalized_weighted_and_summed():
    snapshot = nodes()
    given = profile(
        scorer("A", {"n1": 10, "n2": 20, "n3": 30}),
        scorer("B", {"n1": 100, "n2": 40}, normalize=reverse),
        scorer("C", {"n1": 100}, pre_score=answers(SKIP)),
        snapshot=snapshot,
        weights={"A": 3, "B": 2, "C": 50},
    )
    table = run_scores(Attempt(given, snapshot, CycleState(), POD), snapshot.rows([0, 2]))
    assert {
        name: (each.weight, each.raw_n.tolist(), each.normalized_n.tolist())
        for name, each in table.plugins.items()
    } == {"A": (3, [10, 30], [10, 30]), "B": (2, [100, 0], [0, 100])}
    assert table.total_n.tolist() == [30, 290]
    assert table.total_n.dtype.name == "int64"


@pytest.mark.parametrize("reads", EVERY_READS)
@pytest.mark.parametrize(
    ("plugins", "weights", "expected"),
    [
        pytest.param(
            [("A", {"n1": 1, "n2": 2}, {})], {}, ("n2", 2, 1), id="the greatest raw score"
        ),
        pytest.param(
            [("A", {"n1": 1}, {}), ("B", {"n2": 2}, {})],
            {"A": 3},
            ("n1", 3, 1),
            id="weights are multiplied with scores",
        ),
        pytest.param(
            [("A", {"n1": 1, "n2": 2}, {"normalize": reverse})],
            {},
            ("n3", 100, 1),
            id="normalised scores count, not raw ones",
        ),
        pytest.param(
            [("A", {"n1": 7, "n2": 7, "n3": 7}, {"normalize": reverse}), ("B", {"n2": 1}, {})],
            {"A": 2},
            ("n2", 187, 1),
            id="a plugin with equal scores still adds to the total",
        ),
        pytest.param(
            [("A", {"n1": 100}, {"pre_score": answers(SKIP)}), ("B", {"n2": 1}, {})],
            {},
            ("n2", 1, 1),
            id="a skipped plugin adds nothing",
        ),
        pytest.param(
            [("A", {"n1": 100, "n2": 100, "n3": 0}, {})],
            {},
            ("n1", 100, 2),
            id="the bounds 0 and 100 are allowed",
        ),
    ],
)
def test_totals(reads, plugins, weights, expected):
    snapshot = nodes()
    made = [scorer(name, by_node, reads, **more) for name, by_node, more in plugins]
    decision = decide(profile(*made, snapshot=snapshot, weights=weights), snapshot, POD)
    assert (decision.node_name, decision.total_score, decision.ties) == expected


INVALID = (
    'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {}, it '
    "should in the range of [0, 100] after normalizing"
)


@pytest.mark.parametrize("reads", EVERY_READS)
@pytest.mark.parametrize(
    ("by_node", "more", "text"),
    [
        pytest.param({"n1": 101}, {}, INVALID.format(101), id="a score above 100"),
        pytest.param(
            {"n2": -1, "n1": 200},
            {},
            INVALID.format(200),
            id="the first node out of range is named",
        ),
        pytest.param(
            {"n2": 101},
            {"normalize": reverse},
            INVALID.format(-1),
            id="a normalised score out of range",
        ),
        pytest.param(
            {"n2": BOOM},
            {},
            'running Score plugins: plugin "A" failed with: boom',
            id="Score raises",
        ),
        pytest.param(
            {},
            {"normalize": answers(BOOM)},
            'running Normalize on Score plugins: plugin "A" failed with: boom',
            id="NormalizeScore raises",
        ),
        pytest.param(
            {},
            {"pre_score": answers(BOOM)},
            'running PreScore plugin "A": boom',
            id="PreScore raises",
        ),
        pytest.param(
            {},
            {"pre_score": answers(NO)},
            'running PreScore plugin "A": no',
            id="PreScore rejects",
        ),
    ],
)
def test_a_plugin_that_breaks_scoring_ends_the_attempt(reads, by_node, more, text):
    snapshot = nodes("n1", "n2")
    given = profile(scorer("A", by_node, reads, **more), snapshot=snapshot)
    decision = decide(given, snapshot, POD)
    assert summary(decision) == ("error", "", text)
    assert decision.status == error(text).by("A")


@pytest.mark.parametrize("reads", EVERY_READS)
@pytest.mark.parametrize(
    "bad", [pytest.param(BOOM, id="raising"), pytest.param(1000, id="out of range")]
)
def test_a_row_that_is_not_feasible_is_not_scored(reads, bad):
    snapshot = nodes()
    given = profile(
        filterer("F", {"n2": NO}), scorer("A", {"n2": bad, "n3": 9}, reads), snapshot=snapshot
    )
    decision = decide(given, snapshot, POD)
    assert (summary(decision), decision.total_score) == (("bind", "n3", ""), 9)


def test_a_vector_score_of_the_wrong_length():
    snapshot = nodes()
    plugin = Fake("A", score=answers(np.zeros(2, np.int64)), score_reads=Reads.NODE, shape_parts=())
    decision = decide(profile(plugin, snapshot=snapshot), snapshot, POD)
    text = 'running Score plugins: plugin "A" failed with: plugin answered for 2 rows instead of 3'
    assert summary(decision) == ("error", "", text)


def test_normalising_sees_the_feasible_rows_only():
    def to_max(state: Any, info: PodInfo, raw_n: Any) -> Any:
        return raw_n * 100 // max(int(raw_n.max()), 1)

    snapshot = nodes()
    given = profile(
        filterer("F", {"n3": NO}),
        scorer("A", {"n1": 2, "n2": 4, "n3": 400}, normalize=to_max),
        snapshot=snapshot,
    )
    decision = decide(given, snapshot, POD)
    assert (decision.node_name, decision.total_score) == ("n2", 100)

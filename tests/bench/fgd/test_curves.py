"""The columns of a run, and the comparison with published columns."""

from __future__ import annotations

import msgspec
import pytest

from moorage.bench.fgd.curves import COLUMNS, Curves, Step, curves
from moorage.bench.fgd.experiment import Run
from moorage.bench.fgd.published import Published, summarize


def test_columns_are_means_over_the_steps_that_round_to_them():
    steps = [
        Step(arrived=996, used=900, fragmented=30.0, idle=100),
        Step(arrived=1004, used=910, fragmented=10.0, idle=90),
        Step(arrived=1020, used=915, fragmented=1.0, idle=0),
    ]
    found = curves(steps, 1)
    assert len(found.allocated) == COLUMNS
    assert found.allocated[99:104] == (90.5, 90.5, 90.83, 91.5, 91.5)
    assert found.fragmented[99:103] == ((30.0 + 11.11) / 2,) * 3 + (None,)
    assert found.allocated[50] is None


def run_of(policy: str, seed: int, allocated: float) -> Run:
    return Run(
        trace="default",
        policy=policy,
        seed=seed,
        curves=Curves((allocated,) * COLUMNS, (12.34567,) * COLUMNS),
        failed=1,
        decisions=4,
        seconds=2e-4,
        seconds_in_all=1.5,
        digest="",
    )


def test_runs_agree_where_every_column_is_equal_to_its_last_digit():
    runs = [run_of("FGD", 1, 95.0), run_of("FGD", 2, 95.01)]
    published = {("default", "FGD", seed): Published({100: 95.0}, {90: 12.3457}) for seed in (1, 2)}
    first = summarize(runs[:1], published)
    assert (first.columns_equal, first.columns, first.agrees) == (2, 2, True)
    both = summarize(runs, published)
    assert (both.columns_equal, both.columns, both.agrees) == (3, 4, False)
    assert msgspec.structs.replace(both, agrees=None).as_json() == {
        "trace": "default",
        "policy": "FGD",
        "runs": 2,
        "unallocatedPercent": 4.995,
        "unallocatedDeviation": 0.005,
        "publishedPercent": 5.0,
        "publishedDeviation": 0.0,
        "columns": 4,
        "columnsEqual": 3,
        "agrees": None,
        "seconds": 1.5,
        "microsecondsADecision": 50.0,
    }


@pytest.mark.parametrize(
    ("allocated", "expected"),
    [
        pytest.param(86.9, True, id="within three deviations of the published mean"),
        pytest.param(89.1, False, id="further away"),
    ],
)
def test_random_runs_agree_in_the_mean(allocated, expected):
    published = {
        ("default", "Random", 1): Published({100: 85.0}, {}),
        ("default", "Random", 2): Published({100: 87.0}, {}),
    }
    runs = [run_of("Random", seed, allocated) for seed in (1, 2)]
    found = summarize(runs, published)
    assert (found.agrees, found.columns) == (expected, 0)


def test_a_policy_that_is_not_published_is_not_judged():
    found = summarize([run_of("Lookahead", 1, 96.0)], {})
    assert (found.agrees, found.published_mean) == (None, None)

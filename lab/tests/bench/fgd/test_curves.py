"""The columns of a run, and the comparison with published columns."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from moorage.base.rng import Streams
from moorage_lab.bench.fgd.curves import COLUMNS, Curves, Step, _sum, curves
from moorage_lab.bench.fgd.experiment import Run
from moorage_lab.bench.fgd.published import Published, summarize


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


# Allocated at 50 % of FGD on gpushare40 with seed 49, in hundredths; published: 50.01.
ALMOST = """
4951 4952 4953 4954 4955 4957 4959 4960 4961 4963 4964 4966 4966 4968
4968 4974 4976 4977 4977 4978 4978 4980 4982 4982 4982 4983 4984 4986
4986 4987 4988 4990 4990 4992 4993 4993 4994 4996 4997 4997 4999 5001
5002 5004 5006 5007 5008 5010 5010 5011 5013 5014 5014 5014 5015 5016
5017 5019 5020 5022 5022 5024 5026 5027 5028 5029 5030 5032 5033 5035
5036 5036 5037 5038 5039 5039 5039 5041 5042 5043 5045 5046 5048 5050
"""


def test_a_mean_between_two_decimals_is_rounded_as_published():
    total = 10_000
    steps = [
        Step(arrived=500 * total, used=value * total // 10, fragmented=0, idle=0)
        for value in map(int, ALMOST.split())
    ]
    assert curves(steps, total).allocated[50] == 50.01


@pytest.mark.parametrize("count", [1, 7, 8, 9, 84, 128, 129, 300])
def test_values_are_added_in_the_order_of_numpy(count: int):
    draws = Streams(count).stream("values")
    values = [draws.randrange(4000, 6000) / 100 for _ in range(count)]
    assert _sum(values) == float(np.array(values).sum())

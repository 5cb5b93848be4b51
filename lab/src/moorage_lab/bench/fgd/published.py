"""The published results of the experiments, and how runs compare with them.

Allocated GPU is published with two decimals, fragmented GPU is kept with four. Five policies draw
nothing at random once pods and nodes are ordered, so their runs are equal in every column. Runs of
Random agree in the mean only.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Final

import msgspec

from moorage.base.errors import UsageError
from moorage_lab.bench.fgd.experiment import Run

_FILE: Final = "expected.csv"
_ALLOCATED: Final = "allocated_at_"
_FRAGMENTED: Final = "frag_ratio_at_"
_ALLOCATED_STEP: Final = 0.005  # half of the last decimal that was published
_FRAGMENTED_STEP: Final = 0.0000501  # half of the last decimal that is kept, and noise
_SIGMAS: Final = 3
_DRAWN: Final = "Random"

Key = tuple[str, str, int]
"""(trace, policy, seed)."""


class Published(msgspec.Struct, frozen=True):
    """The published columns of one run, by percent of the GPUs asked for."""

    allocated: Mapping[int, float]
    fragmented: Mapping[int, float]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one policy on one trace, next to the published ones.

    Parameters
    ----------
    trace, policy, runs
        What was run, and how often.
    unallocated_mean, unallocated_deviation
        Percent of the GPUs that no pod has at 100 % asked for: mean, and population deviation.
    published_mean, published_deviation
        The same of the published runs of these seeds; None where none are published.
    columns, columns_equal
        Published columns of these runs, and those that are equal. 0 for Random.
    agrees
        Whether every column is equal; for Random, whether the mean is within three deviations. None
        without published runs.
    seconds
        Mean processor time of an experiment with its preparation.
    microseconds_a_decision
        Mean processor time of a decision, with Reserve and the note of the changed node.
    """

    trace: str
    policy: str
    runs: int
    unallocated_mean: float
    unallocated_deviation: float
    published_mean: float | None
    published_deviation: float | None
    columns: int
    columns_equal: int
    agrees: bool | None
    seconds: float
    microseconds_a_decision: float

    def as_json(self) -> dict[str, Any]:
        """Return the figures, for programs."""
        return {
            "trace": self.trace,
            "policy": self.policy,
            "runs": self.runs,
            "unallocatedPercent": round(self.unallocated_mean, 4),
            "unallocatedDeviation": round(self.unallocated_deviation, 4),
            "publishedPercent": _rounded(self.published_mean),
            "publishedDeviation": _rounded(self.published_deviation),
            "columns": self.columns,
            "columnsEqual": self.columns_equal,
            "agrees": self.agrees,
            "seconds": round(self.seconds, 3),
            "microsecondsADecision": round(self.microseconds_a_decision, 1),
        }


def read_published(folder: Path) -> dict[Key, Published]:
    """Return the published runs; none where the folder has no such file.

    Raises
    ------
    UsageError
        The file is not as expected.
    """
    path = folder / _FILE
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return {
            (row["trace"], row["policy"], int(row["seed"])): Published(
                _columns(row, _ALLOCATED), _columns(row, _FRAGMENTED)
            )
            for row in rows
        }
    except (KeyError, ValueError) as problem:
        raise UsageError(f"{path}: not a table of published results: {problem}") from problem


def summarize(runs: Sequence[Run], published: Mapping[Key, Published]) -> Summary:
    """Return the summary of runs of one policy on one trace.

    Parameters
    ----------
    runs
        At least one; of one policy and trace.
    published
        As of `read_published`.
    """
    first = runs[0]
    rows = [
        (run, published[key])
        for run in runs
        if (key := (run.trace, run.policy, run.seed)) in published
    ]
    theirs = [100 - each.allocated[100] for _, each in rows]
    ours = [run.unallocated_percent for run in runs]
    equal = [same for run, each in rows for same in _compare(run, each)]
    agrees: bool | None = None
    if first.policy == _DRAWN and rows:
        agrees = abs(fmean(ours) - fmean(theirs)) <= _SIGMAS * pstdev(theirs)
        equal = []
    elif rows:
        agrees = all(equal)
    return Summary(
        trace=first.trace,
        policy=first.policy,
        runs=len(runs),
        unallocated_mean=fmean(ours),
        unallocated_deviation=pstdev(ours),
        published_mean=fmean(theirs) if theirs else None,
        published_deviation=pstdev(theirs) if theirs else None,
        columns=len(equal),
        columns_equal=sum(equal),
        agrees=agrees,
        seconds=fmean(run.seconds_in_all for run in runs),
        microseconds_a_decision=fmean(1e6 * run.seconds / run.decisions for run in runs),
    )


def _compare(run: Run, published: Published) -> list[bool]:
    """Return whether each published column of a run is equal."""
    own = run.curves
    return [
        *(
            _is_near(own.allocated[column], value, _ALLOCATED_STEP)
            for column, value in published.allocated.items()
        ),
        *(
            _is_near(own.fragmented[column], value, _FRAGMENTED_STEP)
            for column, value in published.fragmented.items()
        ),
    ]


def _is_near(value: float | None, other: float, step: float) -> bool:
    return value is not None and abs(value - other) < step


def _columns(row: Mapping[str, str], prefix: str) -> dict[int, float]:
    return {
        int(name.removeprefix(prefix)): float(value)
        for name, value in row.items()
        if name.startswith(prefix)
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)

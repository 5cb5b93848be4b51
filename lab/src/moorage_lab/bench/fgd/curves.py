"""The columns of one run: allocated and fragmented GPU by the GPU that pods have asked for.

Rules: ``analysis.py`` and ``merge_*.py`` of
kubernetes-scheduler-simulator. Numbers are rounded half to even, as Python does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

_LANES: Final = 8
_BLOCK: Final = 128

COLUMNS: Final = 131
"""Columns of a curve: 0 to 130 percent of the GPUs of the cluster asked for."""


class Step(msgspec.Struct, frozen=True):
    """The cluster after one pod, in milli-GPU.

    Parameters
    ----------
    arrived
        GPU that the pods so far have asked for, those that found no node included.
    used
        GPU that pods have.
    fragmented
        Idle GPU that typical pods cannot use.
    idle
        GPU that no pod has.
    """

    arrived: int
    used: int
    fragmented: float
    idle: int


class Curves(msgspec.Struct, frozen=True):
    """The columns of one run; None where no pod arrived at about so much.

    Parameters
    ----------
    allocated
        Percent of all GPUs that pods have, by percent asked for.
    fragmented
        Percent of the idle GPU that typical pods cannot use.
    """

    allocated: tuple[float | None, ...]
    fragmented: tuple[float | None, ...]


def curves(steps: Sequence[Step], total_gpus: int) -> Curves:
    """Return the columns of a run."""
    allocated: list[list[float]] = [[] for _ in range(COLUMNS)]
    fragmented: list[list[float]] = [[] for _ in range(COLUMNS)]
    for step in steps:
        column = round(step.arrived / total_gpus / 10)
        if column >= COLUMNS:
            continue
        allocated[column].append(round(step.used / total_gpus / 10, 2))
        if step.idle:
            fragmented[column].append(round(100 * step.fragmented / step.idle, 2))
    return Curves(
        tuple(None if each is None else round(each, 2) for each in _means(allocated)),
        tuple(_means(fragmented)),
    )


def _means(values: list[list[float]]) -> list[float | None]:
    means: list[float | None] = []
    for column, own in enumerate(values):
        near = own or [
            value
            for beside in range(max(0, column - 1), min(len(values), column + 2))
            for value in values[beside]
        ]
        means.append(_sum(near) / len(near) if near else None)
    return means


def _sum(values: Sequence[float]) -> float:
    """Add values in the order of NumPy, with which the published means were made.

    Means such as 50.015 and 63.105 come out above or below by the order, and are rounded after.
    Rules: the pairwise sum of NumPy, numpy/_core/src/umath/loops_utils.h.src.
    """
    count = len(values)
    if count > _BLOCK:
        half = count // 2 // _LANES * _LANES
        return _sum(values[:half]) + _sum(values[half:])
    whole = count // _LANES * _LANES
    total = 0.0
    if whole:
        lanes = list(values[:_LANES])
        for start in range(_LANES, whole, _LANES):
            for lane in range(_LANES):
                lanes[lane] += values[start + lane]
        while len(lanes) > 1:
            lanes = [one + two for one, two in zip(lanes[::2], lanes[1::2], strict=True)]
        (total,) = lanes
    for value in values[whole:]:
        total += value
    return total

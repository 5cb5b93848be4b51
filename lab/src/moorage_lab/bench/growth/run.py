"""Measures each size of each axis in a process of its own, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.gangs.run import GangRun
from moorage_lab.bench.growth.axes import AXES
from moorage_lab.bench.report import peak_memory_mib
from moorage_lab.bench.timing import in_new_processes

_GANG_NODES: Final = 5000
_GANG_PODS: Final = 4


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One size of one axis.

    Parameters
    ----------
    axis, size
        What grew, and how large it was.
    decision_us
        Median microseconds of a decision; of a gang, of its whole decision.
    pod_us
        Mean microseconds of all steps of a pod; of a gang, for each of its pods.
    memory_mib
        Peak resident memory of the process that measured.
    digest
        Digest of the placements.
    """

    axis: str
    size: int
    decision_us: float
    pod_us: float
    memory_mib: float
    digest: str


def measure(axis: str, size: int, seed: int) -> Point:
    """Measure one size of an axis in this process."""
    workload, clock, streams = AXES[axis].workload, SystemClock(), Streams(seed)
    if workload is None:
        gangs = GangRun(_GANG_NODES, in_tree_registry(), clock=clock, streams=streams).run(
            (), repeats=1, gangs=size, gang_pods=_GANG_PODS
        )
        gang_us = 1e6 / gangs.gangs_per_second
        decision_us, pod_us, digest = gang_us, gang_us / _GANG_PODS, gangs.digest
    else:
        found = EngineRun(workload(size), in_tree_registry(), clock=clock, streams=streams).run()
        assert found.decision is not None, "every workload measures pods"
        decision_us, digest = found.decision.p50_us, found.digest
        pod_us = found.seconds * 1e6 / found.scheduled
    return Point(
        axis=axis,
        size=size,
        decision_us=decision_us,
        pod_us=pod_us,
        memory_mib=peak_memory_mib(),
        digest=digest,
    )


def measured(work: Sequence[tuple[str, int]], seed: int) -> Iterator[Point]:
    """Return the measurements of each (axis, size), in order.

    Each is made in a new process, so that none finds the memory or the caches of another.
    """
    return in_new_processes(measure, [(*each, seed) for each in work])

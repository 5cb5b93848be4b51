"""Measurements of a run: a few lines for people, scheduler_perf's dataItems for programs."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.base.digests import digest
from moorage_lab.bench.timing import NS_PER_US, percentile
from moorage_lab.bench.workload import Workload

_PERCENTILES = (50, 90, 95, 99)


class Latency(msgspec.Struct, frozen=True):
    """Durations of single decisions, microseconds."""

    p50_us: float
    p90_us: float
    p95_us: float
    p99_us: float
    max_us: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one workload.

    Parameters
    ----------
    workload, mode, params
        The workload, how it was run, and its parameters.
    scheduled, seconds, pods_per_second
        Measured pods that got a node; time from the first pod's arrival to the last pod's
        placement; and their rate.
    decision
        Time of the scheduling cycle alone (PreFilter to the chosen node).
    digest
        SHA-256 over the placements in order (engine) or by pod name (server).
    memory_peak_mib
        Peak resident memory of each process.
    seconds_by_part
        Measured seconds spent in each step.
    evicted, candidates_per_second
        Pods evicted, and nodes tried out in a second of searching for victims; None where the
        workload has no preemption.
    """

    workload: str
    mode: str
    params: Mapping[str, int]
    scheduled: int
    seconds: float
    pods_per_second: float
    decision: Latency | None
    digest: str
    memory_peak_mib: Mapping[str, float]
    seconds_by_part: Mapping[str, float]
    evicted: int | None = None
    candidates_per_second: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs; ``dataItems`` as scheduler_perf writes them."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        if self.candidates_per_second is None:
            del plain["evicted"], plain["candidates_per_second"]
        plain["version"] = "v1"
        plain["dataItems"] = [self._throughput(), *self._latency()]
        return plain

    def as_lines(self) -> list[str]:
        """Return the result for people."""
        params = ", ".join(f"{name} {value}" for name, value in self.params.items())
        lines = [
            f"{self.workload} ({params}), mode {self.mode}",
            f"  {self.pods_per_second:,.0f} pods/s: {self.scheduled:,} pods in "
            f"{self.seconds:.2f} s",
        ]
        if self.decision is not None:
            d = self.decision
            lines.append(
                f"  decision: p50 {d.p50_us:.0f} us, p90 {d.p90_us:.0f} us, "
                f"p99 {d.p99_us:.0f} us, max {d.max_us:.0f} us"
            )
        if self.candidates_per_second is not None:
            lines.append(
                f"  preemption: {self.evicted:,} pods evicted, "
                f"{self.candidates_per_second:,.0f} candidate nodes/s"
            )
        parts = ", ".join(f"{name} {s:.2f} s" for name, s in self.seconds_by_part.items())
        memory = ", ".join(f"{name} {mib:.0f} MiB" for name, mib in self.memory_peak_mib.items())
        return [
            *lines,
            f"  time: {parts}",
            f"  peak memory: {memory}",
            f"  placements: sha256 {self.digest}",
        ]

    def _labels(self) -> dict[str, str]:
        params = "/".join(str(value) for value in self.params.values())
        return {"Name": f"{self.workload}/{params}/{self.mode}"}

    def _throughput(self) -> dict[str, Any]:
        labels = {**self._labels(), "Metric": "SchedulingThroughput"}
        return {"data": {"Average": self.pods_per_second}, "unit": "pods/s", "labels": labels}

    def _latency(self) -> list[dict[str, Any]]:
        if self.decision is None:
            return []
        d = self.decision
        by_percent = zip(_PERCENTILES, (d.p50_us, d.p90_us, d.p95_us, d.p99_us), strict=True)
        data = {f"Perc{percent}": us / 1000 for percent, us in by_percent}
        labels = {**self._labels(), "Metric": "scheduler_scheduling_algorithm_duration_seconds"}
        return [{"data": data, "unit": "ms", "labels": labels}]


def latency(durations_ns: list[int]) -> Latency | None:
    """Summarise decision times, nanoseconds; None when there are none."""
    if not durations_ns:
        return None
    microseconds = [percentile(durations_ns, each) / NS_PER_US for each in (*_PERCENTILES, 100)]
    return Latency(*microseconds)


def peak_memory_mib() -> float:
    """Return the peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "linux" else peak / 1024 / 1024


def make_result(
    workload: Workload,
    mode: str,
    *,
    placements: list[tuple[str, str]],
    seconds: float,
    decisions_ns: list[int],
    memory_peak_mib: Mapping[str, float],
    seconds_by_part: Mapping[str, float],
) -> Result:
    """Build the result of a run."""
    return Result(
        workload=workload.name,
        mode=mode,
        params=dict(workload.params),
        scheduled=len(placements),
        seconds=seconds,
        pods_per_second=len(placements) / seconds if seconds else 0.0,
        decision=latency(decisions_ns),
        digest=digest(placements),
        memory_peak_mib=memory_peak_mib,
        seconds_by_part=seconds_by_part,
    )

"""The figures of jobs in a run: completion time, slowdown, group wait, fairness, GPU hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final

import msgspec

from moorage_lab.traces.jobs.labels import Key, key_of
from moorage_lab.traces.records import PodRecord
from moorage_lab.traces.statistics import percentile

_BOUND_SECONDS: Final = 10
"""Shorter run times count as this one in a slowdown, or jobs of a second would decide the mean."""
_HOUR_SECONDS: Final = 3600.0
_WHOLE_GPUS: Final = "nvidia.com/gpu"
_GPU_MILLI: Final = "alibabacloud.com/gpu-milli"


class JobEnd(msgspec.Struct, frozen=True):
    """A job of a run.

    Parameters
    ----------
    key
        Its namespace, which stands for its tenant, and its name.
    arrived, placed, ended
        Seconds: when its first pod came, when its last member was placed, and when its last member
        completed; None for what did not happen.
    """

    key: Key
    arrived: float
    placed: float | None
    ended: float | None

    @property
    def slowdown(self) -> float | None:
        """The bounded slowdown of a job that completed."""
        if self.placed is None or self.ended is None:
            return None
        return bounded_slowdown(self.ended - self.arrived, self.ended - self.placed)


def bounded_slowdown(seconds: float, run: float) -> float:
    """Return a job's time in the system by its run time, at least 1."""
    return max(1.0, seconds / max(run, _BOUND_SECONDS))


def job_ends(records: Iterable[PodRecord]) -> list[JobEnd]:
    """Return the jobs of a run; a pod that came again counts from when it first came."""
    pods: dict[Key, dict[str, list[PodRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.group >= 0:
            pods[key_of(record.pod)][record.pod.name].append(record)
    ends = []
    for key, members in pods.items():
        last = [each[-1] for each in members.values()]
        placed = [each.placed for each in last if each.placed is not None]
        ended = [each.ended for each in last if each.outcome == "completed" and each.ended]
        ends.append(
            JobEnd(
                key,
                min(each[0].arrived for each in members.values()),
                max(placed) if len(placed) == len(last) else None,
                max(ended) if len(ended) == len(last) else None,
            )
        )
    return ends


def job_figures(records: Sequence[PodRecord], now: float) -> dict[str, float]:
    """Return the figures of jobs.

    Parameters
    ----------
    records
        The pods of a run.
    now
        Seconds at the end of the run.

    Returns
    -------
    dict
        ``jobs``, ``jobsCompleted``; ``jobCompletionMean`` and ``...P90`` in seconds;
        ``slowdownMean``; ``groupWaitMean`` and ``...P90``, from arrival until all members have a
        node; ``fairnessSlowdown`` and ``fairnessShare``, Jain's index over namespaces;
        ``gpuHours``; ``makespan``.
    """
    ends = job_ends(records)
    if not ends:
        return {}
    done = [each for each in ends if each.ended is not None]
    completion = sorted((each.ended or 0.0) - each.arrived for each in done)
    waits = sorted(each.placed - each.arrived for each in ends if each.placed is not None)
    slowdowns: dict[str, list[float]] = defaultdict(list)
    for each in done:
        slowdowns[each.key[0]].append(each.slowdown or 1.0)
    everyone = [value for values in slowdowns.values() for value in values]
    last = max((each.ended or 0.0 for each in done), default=now)
    return {
        "jobs": len(ends),
        "jobsCompleted": len(done),
        "jobCompletionMean": _mean(completion),
        "jobCompletionP90": percentile(completion, 90),
        "slowdownMean": _mean(everyone),
        "groupWaitMean": _mean(waits),
        "groupWaitP90": percentile(waits, 90),
        "fairnessSlowdown": jain([fmean(values) for values in slowdowns.values()]),
        "fairnessShare": jain(list(_core_hours(records, now).values())),
        "gpuHours": round(sum(_gpus(each) * _hours(each, now) for each in records), 9),
        "makespan": round(last - min(each.arrived for each in ends), 9),
    }


def jain(values: Sequence[float]) -> float:
    """Return Jain's index of fairness: 1 where all are equal, 1 / count where one has all.

    Rules: Jain, Chiu and Hawe, DEC-TR-301 (1984). Without values, or with zeros alone, it is 1.
    """
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def _core_hours(records: Iterable[PodRecord], now: float) -> dict[str, float]:
    """Return the hours of GPUs that each namespace had; of cores where nobody has a GPU."""
    gpus: dict[str, float] = defaultdict(float)
    cores: dict[str, float] = defaultdict(float)
    for each in records:
        if each.group >= 0:
            gpus[each.pod.namespace] += _gpus(each) * _hours(each, now)
            cores[each.pod.namespace] += each.amounts.get("cpu", 0) * _hours(each, now)
    return gpus if any(gpus.values()) else cores


def _gpus(record: PodRecord) -> float:
    whole = record.amounts.get(_WHOLE_GPUS, 0)
    return whole + record.amounts.get(_GPU_MILLI, 0) / 1000


def _hours(record: PodRecord, now: float) -> float:
    if record.placed is None:
        return 0.0
    end = now if record.ended is None else record.ended
    return (end - record.placed) / _HOUR_SECONDS


def _mean(values: Sequence[float]) -> float:
    return round(fmean(values), 9) if values else 0.0

"""Measures each size of each case in a process of its own, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, SystemClock
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.report import Latency, latency, peak_memory_mib
from moorage_lab.bench.tails.cases import CASES
from moorage_lab.bench.tails.groups import decide_gangs
from moorage_lab.bench.timing import in_new_processes

_GANGS: Final = 200


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions of one size of one case.

    Parameters
    ----------
    case, size
        The case, and its size.
    decisions
        Number of decisions. A preemptor has two: one that finds victims, and one that follows.
    per_second
        Decisions in a second of deciding.
    decision
        The time of a decision; of a gang, of all its pods.
    memory_mib
        Peak resident memory of the process that measured.
    digest
        Digest of the placements, and of the victims.
    """

    case: str
    size: int
    decisions: int
    per_second: float
    decision: Latency
    memory_mib: float
    digest: str


def measure(name: str, size: int, seed: int) -> Tail:
    """Measure one size of a case in this process."""
    case, registry, clock, streams = CASES[name], in_tree_registry(), SystemClock(), Streams(seed)
    if case.workload is None:
        durations_ns, digest = decide_gangs(
            size, _GANGS, registry, topology=name == "topology", clock=clock, streams=streams
        )
    else:
        loaded = case.configuration() if case.configuration is not None else None
        engine = EngineRun(
            case.workload(size), registry, clock=clock, streams=streams, loaded=loaded
        )
        digest, durations_ns = engine.run().digest, engine.decisions_ns
    decision = latency(durations_ns)
    assert decision is not None, "every case decides something"
    return Tail(
        case=name,
        size=size,
        decisions=len(durations_ns),
        per_second=len(durations_ns) * NS_PER_SECOND / sum(durations_ns),
        decision=decision,
        memory_mib=peak_memory_mib(),
        digest=digest,
    )


def measured(work: Sequence[tuple[str, int]], seed: int) -> Iterator[Tail]:
    """Return the measurements of each (case, size), in order.

    Each is made in a new process, so that none finds the memory or the caches of another.
    """
    return in_new_processes(measure, [(*each, seed) for each in work])

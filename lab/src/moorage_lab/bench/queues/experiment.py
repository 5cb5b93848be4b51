"""Everything that one command plays: traces by policies, without and with backfill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

import msgspec

from moorage.base.clock import Clock
from moorage.base.digests import digest
from moorage.base.errors import UsageError
from moorage_lab.bench.queues.fresh_head import play_fresh
from moorage_lab.bench.queues.lublin import Kinds, lublin_jobs
from moorage_lab.bench.queues.policies import Policy
from moorage_lab.bench.queues.published import (
    POLICIES,
    PROCESSORS,
    Published,
    published_figures,
    published_trace,
)
from moorage_lab.bench.queues.samples import SAMPLE_JOBS, SAMPLES, samples_of
from moorage_lab.bench.queues.schedule import Start, mean_slowdown, utilisation
from moorage_lab.bench.queues.sticky_head import play_sticky
from moorage_lab.traces.jobs.swf import Job, read_jobs

DRAWN_JOBS: Final = 10_000
"""Jobs of a drawn trace: as many as the published ones have."""


class Queue(NamedTuple):
    """The jobs of one trace, and the machine that they are for.

    Parameters
    ----------
    name
        In tables.
    published
        The name under which its figures are published; "" for other traces.
    kinds
        The kinds of jobs that a drawn trace has; "" for files.
    """

    name: str
    jobs: Sequence[Job]
    processors: int
    published: str = ""
    kinds: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How every queue is played.

    Parameters
    ----------
    policies
        In the order of the table.
    backfill
        False: jobs start in order; True: EASY; or both.
    head
        ``sticky``: as published. ``fresh``: a new head at each arrival and end. ``usual``: sticky
        for policies that were published, fresh for others.
    samples, sample_jobs
        Number of samples, and jobs of each.
    """

    policies: tuple[Policy, ...]
    backfill: tuple[bool, ...]
    head: str = "usual"
    samples: int = SAMPLES
    sample_jobs: int = SAMPLE_JOBS


class QueueRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A policy on a trace.

    Parameters
    ----------
    trace, policy, backfill, head
        What was played.
    kinds
        The kinds of jobs that a drawn trace has; "" for files.
    slowdown
        Average bounded slowdown: mean over the jobs of a sample, then over the samples.
    utilisation
        Share of the machine in use until the last start, mean over the samples.
    wait_mean_seconds, wait_max_seconds
        Mean wait of all jobs, and the longest wait of any.
    published
        The published figures; None where there are none.
    equal
        How many of them are equal to the last digit.
    digest
        Of all starts.
    seconds
        Processor time.
    """

    trace: str
    kinds: str
    policy: str
    backfill: bool
    head: str
    slowdown: float
    utilisation: float
    wait_mean_seconds: float
    wait_max_seconds: float
    published: Published | None
    equal: int
    digest: str
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        if self.published is not None:
            plain["published"] = self.published._asdict()
        return plain


def queue_of_file(file: str, processors: int | None) -> Queue:
    """Return the queue of a trace in Standard Workload Format.

    Raises
    ------
    UsageError
        The trace has faults, or the size of the machine is not known.
    """
    trace = read_jobs(file)
    known = published_trace(trace.content)
    size = processors or (PROCESSORS if known else trace.processors)
    if size is None:
        raise UsageError(f"{file}: no header says MaxProcs or MaxNodes: give --processors")
    wide = next((job for job in trace.jobs if job.processors > size), None)
    if wide is not None:
        raise UsageError(
            f"{file}: job {wide.number} asks for {wide.processors} processors, and the machine "
            f"has {size}: give --processors"
        )
    return Queue(known or trace.name, trace.jobs, size, known if size == PROCESSORS else "")


def drawn_queue(kinds: Kinds, seed: int, processors: int | None) -> Queue:
    """Return a queue drawn from the model of Lublin and Feitelson."""
    size = processors or PROCESSORS
    jobs = lublin_jobs(kinds, seed, jobs=DRAWN_JOBS, processors=size)
    return Queue(f"{kinds} {seed}", jobs, size, kinds=kinds)


def play_queue(queue: Queue, plan: Plan, clock: Clock) -> Iterator[QueueRun]:
    """Yield the runs of a queue, each as soon as it is done.

    Raises
    ------
    UsageError
        The queue is too short for the samples.
    """
    samples = samples_of(queue.jobs, length=plan.sample_jobs, samples=plan.samples)
    usual = (plan.samples, plan.sample_jobs) == (SAMPLES, SAMPLE_JOBS)
    for policy in plan.policies:
        for easy in plan.backfill:
            sticky = _is_sticky(policy, plan.head)
            begin = clock.monotonic_ns()
            play = play_sticky if sticky else play_fresh
            starts = [
                play(sample, policy, processors=queue.processors, easy=easy) for sample in samples
            ]
            known = published_figures(queue.published, policy.name, easy=easy)
            yield _run_of(
                queue,
                starts,
                policy=policy.name,
                backfill=easy,
                head="sticky" if sticky else "fresh",
                published=known if sticky and usual else None,
                seconds=(clock.monotonic_ns() - begin) / 1e9,
            )


def _is_sticky(policy: Policy, head: str) -> bool:
    if policy.headroom is not None:
        return False
    return head == "sticky" or (head == "usual" and policy.name in POLICIES)


def _run_of(
    queue: Queue,
    samples: Sequence[Sequence[Start]],
    *,
    published: Published | None,
    **more: Any,
) -> QueueRun:
    slowdown = sum(map(mean_slowdown, samples)) / len(samples)
    used = sum(utilisation(starts, queue.processors) for starts in samples) / len(samples)
    waits = [start.wait for starts in samples for start in starts]
    equal = 0
    if published is not None:
        equal = (f"{slowdown:.2f}" == published.slowdown) + (f"{used:.3f}" == published.utilisation)
    return QueueRun(
        trace=queue.name,
        kinds=queue.kinds,
        slowdown=slowdown,
        utilisation=used,
        wait_mean_seconds=fmean(waits),
        wait_max_seconds=max(waits),
        published=published,
        equal=equal,
        digest=digest(
            (f"{number} {start.job.number}", f"{start.at:g}")
            for number, starts in enumerate(samples)
            for start in starts
        ),
        **more,
    )

"""Runs the selected workloads of files, each in a cluster of its own, and reports on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import ConfigError, MoorageError, UsageError
from moorage.base.rng import Streams
from moorage_lab.bench.scheduler_perf.cases import THROUGHPUT, TestCase, Workload
from moorage_lab.bench.scheduler_perf.clusters import Cluster
from moorage_lab.bench.scheduler_perf.data_items import DataItem, apply_threshold, document
from moorage_lab.bench.scheduler_perf.executor import Progress
from moorage_lab.bench.scheduler_perf.files import WorkloadFile
from moorage_lab.bench.scheduler_perf.objects import NotSupportedError
from moorage_lab.bench.scheduler_perf.run_workload import Planned, Running, plan
from moorage_lab.bench.scheduler_perf.selecting import NameFilter, has_labels
from moorage_lab.bench.timing import Stopwatch

Outcome = Literal["done", "below threshold", "failed", "not supported"]
Failed = Callable[[str, BaseException], None]
Open = Callable[[Planned, Failed], AbstractAsyncContextManager[Cluster]]

WAIT_SECONDS: Final = 600.0
"""Time for which an operation waits for pods, as in the suite."""


class WorkloadReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One workload that was selected.

    Parameters
    ----------
    name
        ``<test case>/<workload>``.
    outcome
        How it ended.
    messages
        Why it is not ``done``, and notes.
    items
        The results.
    seconds
        Time of the whole run, its cluster included.
    """

    name: str
    outcome: Outcome
    messages: tuple[str, ...] = ()
    items: tuple[DataItem, ...] = ()
    seconds: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether the workload should have ended otherwise."""
        return self.outcome in ("failed", "below threshold")

    def as_lines(self) -> list[str]:
        """Return the report for people."""
        lines = [f"{self.name}: {self.outcome}"]
        for item in self.items:
            if item.metric == THROUGHPUT:
                numbers = ", ".join(f"{name} {value:,.0f}" for name, value in item.data.items())
                lines.append(f"  {item.labels['Name'].rsplit('/', 1)[-1]}: {numbers} {item.unit}")
        return [*lines, *(f"  {message}" for message in self.messages)]


class SuiteReport(msgspec.Struct, frozen=True):
    """All workloads that were selected, and the files with faults."""

    workloads: tuple[WorkloadReport, ...]
    malformed: tuple[WorkloadFile, ...] = ()

    @property
    def items(self) -> list[DataItem]:
        """The results of all workloads."""
        return [item for each in self.workloads for item in each.items]

    def as_json(self) -> dict[str, Any]:
        """Return scheduler_perf's document, and how each workload ended."""
        ended = [
            {"name": each.name, "outcome": each.outcome, "messages": list(each.messages)}
            for each in self.workloads
        ]
        faults = {str(each.path): list(each.faults) for each in self.malformed}
        return {**document(self.items), "workloads": ended, "malformed": faults}


class Suite:
    """Runs workloads.

    Parameters
    ----------
    open_cluster
        Starts a cluster for a workload; a part of it that ends is reported by a callback.
    clock, streams
        Time and randomness.
    names, labels
        Which workloads are run.
    topic
        Name under which thresholds are looked up.
    wait_seconds
        How long an operation waits for pods.
    progress
        Called with what is being done.

    Attributes
    ----------
    ended
        The workloads that have ended; what is left of a run that is interrupted.
    """

    def __init__(
        self,
        open_cluster: Open,
        *,
        clock: Clock,
        streams: Streams,
        names: str = "",
        labels: str = "",
        topic: str = "",
        wait_seconds: float = WAIT_SECONDS,
        progress: Progress = lambda line: None,
    ) -> None:
        self._open = open_cluster
        self._clock = clock
        self._streams = streams
        self._names = NameFilter(names)
        self._labels = labels
        self._topic = topic
        self._wait_seconds = wait_seconds
        self._progress = progress
        self.ended: list[WorkloadReport] = []

    async def run(
        self,
        files: Sequence[WorkloadFile],
        on_lines: Callable[[Sequence[str]], None] = lambda lines: None,
    ) -> SuiteReport:
        """Run the selected workloads of files, one after the other.

        Parameters
        ----------
        on_lines
            Called with the lines of the report for people: the faults of files before all else, and
            each workload when it ends.

        Raises
        ------
        UsageError
            No workload is selected.
        """
        malformed = tuple(file for file in files if file.faults)
        for file in malformed:
            on_lines(_lines_of_faults(file))
        for case, workload in self._selected(files):
            self.ended.append(await self._report(case, workload))
            on_lines(self.ended[-1].as_lines())
        if not self.ended and not malformed:
            raise UsageError("no workload is selected; leave out --filter or --labels to see all")
        return SuiteReport(tuple(self.ended), malformed)

    def _selected(self, files: Sequence[WorkloadFile]) -> Iterator[tuple[TestCase, Workload]]:
        for file in files:
            for case in file.cases:
                for workload in case.written.workloads:
                    labels = (*case.written.labels, *workload.labels)
                    if self._names.selects(case.name, workload.name) and has_labels(
                        self._labels, labels
                    ):
                        yield case, workload

    async def _report(self, case: TestCase, workload: Workload) -> WorkloadReport:
        name = f"{case.name}/{workload.name}"
        self._progress(name)
        try:
            planned, notes = plan(case, workload)
        except NotSupportedError as error:
            return WorkloadReport(name=name, outcome="not supported", messages=error.what)
        except ConfigError as error:
            return WorkloadReport(name=name, outcome="failed", messages=error.faults)
        watch = Stopwatch(self._clock.monotonic_ns)
        outcome, messages, items = await self._measure(planned)
        bound, selected = workload.bound(self._topic), case.threshold_metric(workload)
        missed = apply_threshold(items, bound, selected)
        if bound and not any(selected.applies_to(item.metric, item.labels) for item in items):
            notes.append(f"{selected.name} was not measured, nothing was compared with {bound:g}")
        if missed and outcome == "done":
            outcome = "below threshold"
        return WorkloadReport(
            name=name,
            outcome=outcome,
            messages=(*messages, *missed, *notes),
            items=tuple(items),
            seconds=watch.seconds,
        )

    async def _measure(self, planned: Planned) -> tuple[Outcome, list[str], list[DataItem]]:
        """Run a workload in a cluster of its own; failures of its parts are messages."""
        messages: list[str] = []
        items: list[DataItem] = []

        work: asyncio.Task[None] | None = None

        def failed(part: str, error: BaseException) -> None:
            messages.append(f"{part}: {error}")
            if work is not None:
                work.cancel()

        run = Running(
            planned,
            clock=self._clock,
            streams=self._streams,
            wait_seconds=self._wait_seconds,
            progress=self._progress,
        )
        try:
            async with self._open(planned, failed) as cluster:
                work = asyncio.get_running_loop().create_task(run.run(cluster, items, messages))
                await _ended(work, messages)
        except NotSupportedError as error:
            return "not supported", [*error.what, *messages], items
        except MoorageError as error:
            messages.append(str(error))
        return ("failed" if messages else "done"), messages, items


def _lines_of_faults(file: WorkloadFile) -> list[str]:
    plural = "" if len(file.faults) == 1 else "s"
    heading = f"{file.path}: {len(file.faults)} fault{plural}"
    return [heading, *(f"  {fault}" for fault in file.faults)]


async def _ended(work: asyncio.Task[None], messages: Sequence[str]) -> None:
    """Wait for a run; a run that was cancelled because a part failed has ended, too."""
    try:
        await work
    except asyncio.CancelledError:
        if not work.cancelled() or not messages:
            work.cancel()
            raise

"""`moorage up`: starts the parts in order, shows progress, ends everything.

server -> kubeconfig -> nodes -> scheduler -> first objects -> watch until told to end.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock, process_age_seconds
from moorage.base.errors import KubeconfigError, MoorageError, UsageError
from moorage.base.files import read_file
from moorage.base.process import Ending, until_ended
from moorage.base.rng import Streams
from moorage.base.running_sandboxes import LockedRecord
from moorage_sandbox.sandbox.lines import Started, View
from moorage_sandbox.sandbox.processes.parts import Parts
from moorage_sandbox.sandbox.progress import Progress
from moorage_sandbox.sandbox.settings import SANDBOX_CONTEXT

if TYPE_CHECKING:
    from moorage_sandbox.sandbox.onlooker import Onlooker

_TICK_SECONDS = 0.25
_COUNT_TICKS = 4  # nodes are counted once a second


def _nothing(*_: object) -> None:
    """Ignore a call without a receiver."""


class UpPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The work to do once the parts run.

    Parameters
    ----------
    kubeconfig
        Path of the administrator's kubeconfig, which is written.
    scheduler_kubeconfig
        Path of the scheduler's kubeconfig, which is written; None to use the administrator's.
    objects
        Makes the first objects, unless the cluster was restored; called once the other processes
        have been started.
    scheduler
        Whether to start a scheduler.
    page
        Whether the scheduler serves a page.
    until_settled
        Whether to end when every pod is bound or explained.
    seed
        Seed of the scheduler's random streams.
    watch
        Whether to follow pods and Events; otherwise only the start is shown.
    served
        The schedulerNames the scheduler serves; None if unknown, so that no pod is reported as
        unserved.
    record_lock
        The sandbox's record, which is kept up to date; None to keep none.
    context
        The context in the user's own kubeconfig; "" for none.
    autoscale
        ``MIN:MAX`` where nodes come and go; "" where they stay.
    example
        The pod of the first objects that no node takes; "" where there is none.
    on_kubeconfig
        Called with the text of the kubeconfig once it is written.
    on_up
        Called once pods are scheduled and the first objects are created.
    """

    kubeconfig: Path
    scheduler_kubeconfig: Path | None = None
    objects: Callable[[], Sequence[dict[str, object]]] = tuple
    scheduler: bool = True
    page: bool = False
    until_settled: bool = False
    seed: int = 0
    watch: bool = True
    served: frozenset[str] | None = None
    record_lock: LockedRecord | None = None
    context: str = ""
    autoscale: str = ""
    example: str = ""
    on_kubeconfig: Callable[[str], None] = _nothing
    on_up: Callable[[], None] = _nothing


async def up(plan: UpPlan, parts: Parts, view: View, *, clock: Clock) -> None:
    """Run a cluster until a signal comes or, if the plan says so, everything is settled.

    It also ends when its output is a pipe whose reader has gone.

    Raises
    ------
    MoorageError
        A part failed; everything has ended.
    """
    ending = Ending(on_second=parts.kill)
    ending.listen()
    try:
        run = _Run(plan, parts, view, clock=clock)
        await until_ended(run.run(), ending, name="up")
    finally:
        await parts.stop()


class _Run:
    """One run of a cluster, from start to end."""

    def __init__(self, plan: UpPlan, parts: Parts, view: View, *, clock: Clock) -> None:
        self._plan = plan
        self._parts = parts
        self._view = view
        self._clock = clock
        self._streams = Streams(plan.seed)
        self._progress = Progress(clock, view.change, served=plan.served)
        self._created = asyncio.Event()

    async def run(self) -> None:
        plan, parts = self._plan, self._parts
        report = await parts.start_server()
        write_private(plan.kubeconfig, report.kubeconfig)
        if plan.scheduler_kubeconfig is not None:
            write_private(plan.scheduler_kubeconfig, report.scheduler_kubeconfig)
        plan.on_kubeconfig(report.kubeconfig)
        self._note(url=report.url, nodes=report.nodes)
        tasks = TaskOwner()
        # Failures of the tasks are raised below, so they need no log line.
        quiet = TaskOwner(on_failure=lambda _name, _error: None)
        onlooker: Onlooker | None = None
        settled = False
        try:
            await parts.nodes_ready()
            self._view.started(
                Started(
                    report.url,
                    str(plan.kubeconfig.resolve()),
                    report.nodes,
                    plan.scheduler,
                    plan.seed,
                    plan.context,
                    plan.autoscale,
                    example="" if report.restored else plan.example,
                )
            )
            if plan.scheduler:
                await parts.start_scheduler()
            tasks.spawn(self._tell_ready(), name="tell that all is ready")
            onlooker = await self._onlooker(tasks)
            failed = quiet.spawn(parts.failed(), name="wait for failures")
            living = quiet.spawn(self._live(onlooker, new=not report.restored), name="live")
            await asyncio.wait({failed, living}, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()
            living.result()
            settled = not self._view.closed()
        finally:
            await quiet.cancel_all()
            await tasks.cancel_all()
            self._view.ended(self._progress, settled=settled)
            if onlooker is not None:
                await onlooker.close()

    async def _onlooker(self, tasks: TaskOwner) -> Onlooker:
        # The time its import takes is better spent while the scheduler starts; in a thread, so
        # that a signal is not kept waiting.
        return (await asyncio.to_thread(_import_onlooker))(
            self._plan.kubeconfig,
            self._progress,
            clock=self._clock,
            streams=self._streams,
            tasks=tasks,
        )

    async def _tell_ready(self) -> None:
        """Show the time until everything works."""
        if self._plan.scheduler:
            await self._parts.scheduling()
        self._view.ready(process_age_seconds())
        if self._plan.scheduler and (health := await self._parts.serving()):
            self._note(health=health)
            self._view.serving(health)
            if self._plan.page:
                await self._show_link()
        await self._created.wait()
        self._note(state="ready")
        self._plan.on_up()
        while self._plan.page:
            await self._show_link()

    async def _show_link(self) -> None:
        """Show and record the next login link; the one before was used."""
        link = await self._parts.page()
        self._note(page=link)
        self._view.page(link)

    def _note(self, **fields: object) -> None:
        if self._plan.record_lock is not None:
            self._plan.record_lock.change(**fields)

    async def _live(self, onlooker: Onlooker, *, new: bool) -> None:
        """Create the first objects, then show progress until everything is settled, or for ever."""
        if self._plan.watch or self._plan.until_settled:
            await onlooker.watch()
        objects = self._plan.objects() if new else ()
        expected = await onlooker.create_objects(objects, self._view.message)
        self._created.set()
        for tick in itertools.count():
            await aio.sleep(_TICK_SECONDS)
            if tick % _COUNT_TICKS == 0:
                await self._count_nodes(onlooker)
            self._view.tick(self._progress)
            if self._view.closed():
                if self._plan.until_settled:
                    raise MoorageError("nobody reads the output any more, and pods are undecided")
                return
            if not self._plan.until_settled or self._progress.pods_ever < expected:
                continue
            if self._progress.is_at_rest():
                return

    async def _count_nodes(self, onlooker: Onlooker) -> None:
        try:
            self._progress.nodes_counted(await onlooker.count_nodes())
        except MoorageError:
            return  # the last count stays; a server that has failed is told of by its part


def _import_onlooker() -> type[Onlooker]:
    from moorage_sandbox.sandbox.onlooker import Onlooker

    return Onlooker


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and create its directory.

    Raises
    ------
    UsageError
        The file cannot be written, or belongs to another cluster.
    """
    if not _ours(path):
        raise UsageError(
            f"{path} is a kubeconfig of another cluster, or something else; "
            "name another file with --kubeconfig-out"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            # A file that was there before keeps its mode otherwise.
            os.fchmod(descriptor, 0o600)
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"cannot write the kubeconfig to {path}: {error.strerror}; "
            "name another file with --kubeconfig-out"
        ) from error


def _ours(path: Path) -> bool:
    """Whether a file may be overwritten: it is missing, or an earlier sandbox wrote it."""
    try:
        text = read_file(path)
    except OSError:
        return True  # the later write reports the fault
    if not text:
        return True
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _ours_changed(text, path)
    return isinstance(found, dict) and found.get("current-context") == SANDBOX_CONTEXT


def _ours_changed(text: bytes, path: Path) -> bool:
    """Whether a YAML file, as `kubectl config` writes it, names only the sandbox."""
    # Few users change the file, so this slow import is made only here.
    from moorage.client.kubeconfig_file import parse_kubeconfig

    try:
        found = parse_kubeconfig(text, path)
    except KubeconfigError:
        return False
    return [each.name for each in found.clusters or ()] == [SANDBOX_CONTEXT]

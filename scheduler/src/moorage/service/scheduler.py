"""The scheduler as a part of a process: starts its tasks, ends them, tells how it is doing.

`moorage.service.assembly` builds the parts; here they run:

reflectors -> ingest -> cache, queue -> pump -> engine -> binding cycles -> API -> (watch) -> ...
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.api.node import Node
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import TaskEndedError
from moorage.base.memory import settle_memory
from moorage.client.events import EventRecorder
from moorage.client.reflector import Reflector
from moorage.client.writes import Client
from moorage.service.attempts.extenders import OpenExtenders
from moorage.service.attempts.first_failure import FirstFailure
from moorage.service.attempts.flushes import flush_backoff, flush_groups, flush_leftover
from moorage.service.attempts.pump import Pump
from moorage.service.binding.pod_writes import PodWrites
from moorage.service.binding.slots import BindingSlots
from moorage.service.core import Core
from moorage.service.groups.disabled_groups.objects import GroupObjects
from moorage.service.groups.disabled_groups.reports import DisabledGroupReports
from moorage.service.groups.incomplete_groups import IncompleteGroups
from moorage.service.history.moments import History
from moorage.service.intake.catching_up import CatchUp
from moorage.service.loads.fetcher import NodeLoadFetcher
from moorage.service.process.facts import Facts
from moorage.service.process.leader import Elector
from moorage.service.process.reload import Reload
from moorage.state.compare import Mismatch, compare

if TYPE_CHECKING:
    from moorage.estimates.start_observer import StartObserver

_log = logging.getLogger(__name__)

# A sandbox ends within two seconds, and a standby should bind within one.
_LAST_BINDINGS_SECONDS: Final = 0.5


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a running scheduler consists of.

    Parameters
    ----------
    clock
        The time.
    tasks, failure
        The owner of every task, and the keeper of the first failure of a task.
    ready
        Set when the first lists are in and scheduling has started.
    facts
        Running totals.
    elector
        Holds the lease that allows to write; None without leader election.
    waits_to_watch
        Whether the watches begin only when the lease is held (delayCacheUntilActive).
    client
        Sends calls to the API server.
    recorder, writes
        Send Events, and status patches about pods.
    catch_up
        Waits for the writes of the last leader, where a lease was taken over.
    extenders
        The connections to the configuration's extenders.
    core
        The deciding half: state, snapshot, profiles, cycles.
    nodes, others
        The reflector of nodes, and the reflectors of every other watched kind.
    slots
        Counts the bindings on their way to the API server.
    reload
        Takes another configuration over.
    incomplete_groups
        Tells groups of Kubernetes that lack pods; None where there are no such groups.
    disabled_groups
        Reports groups that no plugin schedules.
    node_loads
        Fetches the loads of nodes that plugins ask for.
    group_objects
        Watches the objects of such groups; None where only groups with pods are reported.
    start_observer
        What estimates of starts rest on; None where no estimates are asked for.
    """

    clock: Clock
    tasks: TaskOwner
    failure: FirstFailure
    ready: asyncio.Event
    facts: Facts
    elector: Elector | None
    waits_to_watch: bool
    client: Client
    recorder: EventRecorder
    writes: PodWrites
    catch_up: CatchUp
    extenders: OpenExtenders
    core: Core
    nodes: Reflector[Node]
    others: tuple[Reflector[Any], ...]
    slots: BindingSlots
    reload: Reload
    incomplete_groups: IncompleteGroups | None
    disabled_groups: DisabledGroupReports
    node_loads: NodeLoadFetcher
    group_objects: GroupObjects | None
    start_observer: StartObserver | None = None

    @property
    def pump(self) -> Pump:
        """Schedules one pod after another."""
        return self.reload.pump

    @property
    def reflectors(self) -> tuple[Reflector[Any], ...]:
        """Every reflector; nodes come first, so that pods find their nodes."""
        return (self.nodes, *self.others)


class Scheduler:
    """A scheduler, from its first list to its clean end.

    Parameters
    ----------
    parts
        All parts of the scheduler, ready to run.

    Attributes
    ----------
    synced
        Whether every first list is in.
    ending
        Whether `run` is about to return.
    only_watches
        Whether this scheduler keeps the state of the cluster and schedules nothing.
    history
        The last hour in numbers.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.history = History(parts.core, parts.facts, parts.clock)
        self.synced = False
        self.ending = False
        self.only_watches = False
        self._pumping: asyncio.Task[None] | None = None

    @property
    def ready(self) -> asyncio.Event:
        """Set when the first lists are in and scheduling has started."""
        return self.parts.ready

    @property
    def core(self) -> Core:
        """The deciding half."""
        return self.parts.core

    @property
    def facts(self) -> Facts:
        """Running totals."""
        return self.parts.facts

    @property
    def elector(self) -> Elector | None:
        """The holder of the lease; None without leader election."""
        return self.parts.elector

    @property
    def schedules(self) -> bool:
        """Whether this scheduler schedules; false for one that waits for the lease, or watches."""
        return not self.only_watches and (self.elector is None or self.elector.leading)

    @property
    def decides(self) -> bool:
        """Whether the loop of decisions runs, or has not been started yet."""
        return self._pumping is None or not self._pumping.done()

    @property
    def bindings(self) -> int:
        """Number of bindings on their way to the API server."""
        return self.parts.slots.used

    async def run(self) -> None:
        """Schedule until cancelled.

        Raises
        ------
        LeaseLostError
            The lease could not be renewed; another replica may be scheduling.
        Exception
            The failure of one of the scheduler's own tasks, without which it cannot go on.
        """
        parts = self.parts
        try:
            parts.tasks.spawn(self._start_in_order(), name="start")
            await parts.failure.raise_first()
        finally:
            self.ending = True
            try:
                await self._finish_bindings()
            finally:
                await parts.tasks.cancel_all()
            await parts.extenders.close()
            if parts.elector is not None:
                # Released only now, when no task is left that could write.
                await parts.elector.release()

    async def watch(self) -> None:
        """Keep the state of the cluster until cancelled, and schedule nothing.

        Raises
        ------
        Exception
            The failure of one of the scheduler's own tasks, without which it cannot go on.
        """
        self.only_watches = True
        await self.run()

    def compare(self) -> Mismatch:
        """Compare the cache's belief with the objects last watched, and log the result.

        A difference need not be a fault, since changes are on their way. A difference that stays
        is a fault.
        """
        core = self.core
        mismatch = compare(
            core.cache,
            core.queue,
            core.store.all_pods(),
            self.parts.nodes.known_objects.values(),
            responsible=lambda pod: pod.spec.scheduler_name in core.profiles,
        )
        counts, pending = core.cache.counts(), core.queue.pending().summary_text
        if mismatch.empty:
            _log.warning("cache and API agree: %s; %s", counts, pending)
        else:
            _log.warning("cache and API differ: %s; %s; %s", mismatch, counts, pending)
        return mismatch

    async def _finish_bindings(self) -> None:
        """Decide no more, and wait a short time for the answers to bindings on their way.

        A binding that arrives after the lease was released would surprise the next leader.
        """
        elector, slots = self.elector, self.parts.slots
        if self._pumping is None or not (elector is None or elector.leading):
            return
        self._pumping.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_BINDINGS_SECONDS):
                while slots.used:
                    slots.wake.clear()
                    await slots.wake.wait()

    async def _start_in_order(self) -> None:
        """Watch, wait for the lease, schedule; with delayCacheUntilActive watch after the wait."""
        parts = self.parts
        if parts.waits_to_watch and not self.only_watches:
            await self._lead()
        settle_memory()
        for reflector in parts.reflectors:
            self._start_essential(reflector.run(), f"reflector {reflector!r}")
        for reflector in parts.reflectors:
            await reflector.synced.wait()
        self.synced = True
        # Not collected first: among the objects of 150,000 pods that takes seconds.
        settle_memory(collect=False)
        if self.only_watches:
            return
        if not parts.waits_to_watch and await self._lead():
            await parts.catch_up.wait_newest()
        self._start_scheduling()

    async def _lead(self) -> bool:
        """Wait until this process holds the lease, and keep it; return whether it had to wait."""
        elector = self.elector
        if elector is None:
            return False
        waited = await elector.acquire()
        self._start_essential(elector.keep(), "lease")
        self.parts.tasks.spawn(elector.tell("became leader"), name="lease event")
        return waited

    def _start_scheduling(self) -> None:
        parts, core = self.parts, self.core
        self._start_essential(parts.recorder.run(), "events")
        self._start_essential(flush_backoff(core.queue, parts.clock), "flush backoff")
        self._start_essential(flush_leftover(core.queue), "flush leftover")
        self._start_essential(flush_groups(core, parts.pump), "flush groups")
        self._pumping = self._start_essential(parts.pump.run(), "pump")
        if parts.incomplete_groups is not None:
            self._start_essential(parts.incomplete_groups.run(), "incomplete groups")
        self._start_essential(parts.disabled_groups.run(), "disabled groups")
        self._start_essential(parts.node_loads.run(), "loads of nodes")
        self._start_essential(self.history.run(), "history")
        if parts.start_observer is not None and parts.start_observer.file is not None:
            # Imported here: a scheduler without estimates does not pay for it.
            from moorage.service.process.run_time_saves import save_run_times

            self._start_essential(save_run_times(parts.start_observer), "run times")
        if parts.group_objects is not None:
            watch = parts.group_objects.run(parts.disabled_groups.take_object)
            parts.tasks.spawn(watch, name="group objects")
        _log.info(
            "scheduling started: %d nodes, %d pods",
            core.snapshot.num_nodes,
            len(core.store.all_pods()),
        )
        self.ready.set()

    def _start_essential(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task without which the scheduler cannot go on, whatever ends the task."""
        task = self.parts.tasks.spawn(self._endless(work, name), name=name)
        # A task that is cancelled before it begins never awaits its work.
        task.add_done_callback(lambda _task: work.close())
        return task

    async def _endless(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except asyncio.CancelledError:
            if self.ending:
                raise
            # A plugin can cancel the task that calls it. Without this, a leader would stay that
            # renews its lease and does nothing.
            raise TaskEndedError(
                f"the task {name} was cancelled by something in this process, perhaps a plugin"
            ) from None
        if not self.ending:
            raise TaskEndedError(f"the task {name} has ended")

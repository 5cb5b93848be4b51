"""Pops, decides, hands on; yields to the loop after a bounded batch.

Between looking at the snapshot and assuming the pod nothing is awaited, so an attempt sees one
state of the world without a lock or a copy. Where extenders are asked, the look that counts is the
one after their answers; the next attempt waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence

from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.errors import NotBuiltError
from moorage.client.events import EventRecorder
from moorage.engine.cycle import Cycle
from moorage.engine.decision import CLEAR_NOMINATION, Decision, Outcome
from moorage.engine.extended import ExtendedCycle
from moorage.framework.status import error
from moorage.service.effects import Effects
from moorage.service.evictions import Evictor
from moorage.service.facts import Facts
from moorage.service.failure import FailureHandler, failed_scheduling
from moorage.service.group_attempt import GroupAttempts
from moorage.state.cache import Cache
from moorage.state.queue import SchedulingQueue
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

# Attempts between two looks at the network: a few milliseconds at 100 to 300 us each.
_BATCH = 16
# Bindings under way at once; beyond it deciding waits for the API server. A guess: enough to fill
# a connection pool many times over, few enough that a slow server is not buried.
_BINDING_MAX = 512


class Pump:
    """The loop that schedules one pod after another.

    Parameters
    ----------
    cycles
        The deciding half of each profile, by schedulerName.
    queue, cache
        The state.
    effects, failures
        Where decisions go.
    recorder
        Events; None where nothing is written.
    evictor
        Evicts the victims of decisions; None where nobody is evicted.
    facts
        Totals.
    """

    def __init__(
        self,
        *,
        cycles: Mapping[str, Cycle],
        queue: SchedulingQueue,
        cache: Cache,
        effects: Effects,
        failures: FailureHandler,
        recorder: EventRecorder | None,
        evictor: Evictor | None,
        facts: Facts,
    ) -> None:
        self._evictor = evictor
        self._cycles = cycles
        self._queue = queue
        self._cache = cache
        self._effects = effects
        self._failures = failures
        self._recorder = recorder
        self._facts = facts
        self.groups: GroupAttempts | None = None
        """Takes the pods that belong to groups; None where there are no groups."""
        self._wake = asyncio.Event()
        queue.on_wake = self._wake.set

    def wake(self) -> None:
        """Look at the queue again."""
        self._wake.set()

    async def run(self) -> None:
        """Schedule until cancelled."""
        while True:
            if await self._batch():
                await aio.sleep(0)
                continue
            self._wake.clear()
            if self._effects.binding < _BINDING_MAX and await self._batch():
                continue  # something came between the last look and the clear
            await self._wake.wait()

    async def _batch(self) -> int:
        done = 0
        while done < _BATCH and self._effects.binding < _BINDING_MAX:
            queued = self._queue.pop()
            if queued is None:
                break
            done += 1
            self._facts.attempts.began(queued.uid)
            if self.groups is not None and self.groups.take(queued):
                continue
            asking = self.attempt((queued,))
            if asking is not None:
                await asking
        return done

    def attempt(self, entries: Sequence[QueuedPod]) -> Awaitable[None] | None:
        """Decide about the popped pods of one attempt and carry the decisions out.

        Parameters
        ----------
        entries
            The queue entries the attempt owns: usually one. Several get their nodes all or none.

        Returns
        -------
        Awaitable or None
            What is left to do where extenders are asked; no other attempt may start before.
        """
        if len(entries) > 1:
            self._attempt_together(entries)
            return None
        return self._attempt_one(entries[0])

    def _attempt_together(self, entries: Sequence[QueuedPod]) -> None:
        """Place several pods, all or none; whoever is skipped takes no part.

        Nothing is evicted for them. A rejection by Reserve comes later and is its pod's own.
        """
        taking: list[QueuedPod] = []
        for queued in entries:
            if self.skip(queued.pod):
                self._queue.done(queued.uid)
            else:
                taking.append(queued)
        if not taking:
            return
        try:
            cycle = self._cycle_of(taking)
            decisions = cycle.decide_together([queued.info for queued in taking])
        except Exception as problem:
            for queued in taking:
                self._broken(queued, problem)
            return
        last = decisions[-1]
        if last.outcome is not Outcome.BIND:
            self._facts.note(last)
            for queued in taking:
                self._left_behind(queued, last)
            return
        for queued, decision in zip(taking, decisions, strict=True):
            self._carry_out(cycle, queued, decision)

    def _cycle_of(self, entries: Sequence[QueuedPod]) -> Cycle:
        names = sorted({queued.profile for queued in entries})
        cycle = self._cycles.get(names[0])
        if len(names) > 1 or cycle is None:
            raise NotBuiltError(f"the pods of one attempt need one profile, they name {names}")
        if isinstance(cycle, ExtendedCycle) and any(cycle.asks_about(q.pod) for q in entries):
            raise NotBuiltError("extenders are not asked about several pods at once yet")
        return cycle

    def _left_behind(self, queued: QueuedPod, last: Decision) -> None:
        """Return a pod of an attempt in which one, itself or another, found no node."""
        message = last.message
        if queued.uid != last.pod.uid:
            message = f"pod {last.pod.key} of the same attempt has no node: {message}"
        self._failures.handle(
            queued, last.status, last.diagnosis, message=message, nomination=CLEAR_NOMINATION
        )

    def _attempt_one(self, queued: QueuedPod) -> Awaitable[None] | None:
        cycle = self._cycles.get(queued.profile)
        if cycle is None:
            _log.error("profile not found for scheduler name %r", queued.profile)
        if cycle is None or self.skip(queued.pod):
            self._queue.done(queued.uid)
            return None
        if isinstance(cycle, ExtendedCycle) and cycle.asks_about(queued.pod):
            return self._ask(cycle, queued)
        try:
            decision = cycle.decide(queued.info)
        except Exception as problem:
            self._broken(queued, problem)
            return None
        self._carry_out(cycle, queued, decision)
        return None

    async def _ask(self, cycle: ExtendedCycle, queued: QueuedPod) -> None:
        """Decide with the extenders; events flow meanwhile, other attempts wait."""
        try:
            decision = await cycle.decide_asking(queued.info)
        except Exception as problem:
            self._broken(queued, problem)
            return
        self._carry_out(cycle, queued, decision)

    def _carry_out(self, cycle: Cycle, queued: QueuedPod, decision: Decision) -> None:
        self._facts.note(decision)
        if decision.outcome is Outcome.BIND:
            self._effects.carry_out(cycle.profile, queued, decision)
        else:
            self._failed(queued, decision)

    def _failed(self, queued: QueuedPod, decision: Decision) -> None:
        if self._evictor is not None and decision.victims:
            self._evictor.start(decision)
        self._failures.handle(
            queued,
            decision.status,
            decision.diagnosis,
            message=decision.message,
            nomination=decision.nomination,
        )

    def _broken(self, queued: QueuedPod, problem: Exception) -> None:
        """Retry a pod whose attempt broke; one pod must not keep the others waiting for ever."""
        _log.error("attempt for pod %s broke", queued.pod.full_name, exc_info=problem)
        status = error(str(problem) or type(problem).__name__)
        self._facts.errors += 1
        self._failures.handle(
            queued, status, None, message=status.message, nomination=CLEAR_NOMINATION
        )

    def skip(self, pod: Pod) -> bool:
        """Whether the pod needs no attempt (scheduling spec, cycle section 1)."""
        if pod.metadata.deletion_timestamp:
            if self._recorder is not None:
                note = f"skip schedule deleting pod: {pod.full_name}"
                self._recorder.record(failed_scheduling(pod, note))
        elif not self._cache.is_assumed(pod.metadata.uid):
            return False
        self._facts.attempts.dropped(pod.metadata.uid)
        return True

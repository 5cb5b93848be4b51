"""Pops pods, has each one decided, hands the decision on; yields after a bounded batch.

Between the look at the snapshot and the assumption of the pod nothing is awaited. So an attempt
sees one state of the cluster without a lock or a copy. `group_attempt` runs the attempts of groups,
and `extended_attempts` the attempts in which extenders are asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.engine.attempt import Preemption, Scope
from moorage.engine.cycle import Cycle
from moorage.service.attempts.attempt_log import attempt_begins
from moorage.service.attempts.extended_attempts import ExtendedAttempts
from moorage.service.attempts.outcomes import Outcomes
from moorage.service.attempts.skipping import Skipping
from moorage.service.binding.slots import BindingSlots
from moorage.service.binding.waiting import WaitingPods
from moorage.service.groups.backfill import Backfill
from moorage.service.groups.group_attempt import GroupAttempts
from moorage.service.process.facts import Facts
from moorage.state.queue import SchedulingQueue
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

# Attempts between two looks at the network: a few milliseconds at 100 to 300 us each.
_BATCH: Final = 16


class Pump:
    """The loop that schedules one pod after another.

    Parameters
    ----------
    cycles
        The deciding half of each profile, by schedulerName.
    queue
        Gives the pods.
    wake
        Set whenever the queue or the slots may have something new.
    slots
        Says whether another binding may begin.
    waiting
        Says whether pods that were turned away still hold their room.
    skipping
        Drops pods that need no attempt.
    groups
        Takes the pods that belong to groups; None where there are no groups.
    extended
        Takes the pods that extenders are asked about; None where no profile has extenders.
    outcomes
        Carries the decisions out.
    facts
        Totals.
    clock
        Measures how long attempts have kept other tasks from the loop.
    backfill
        Holds room back for a group that waits for long; None where no profile asks for that.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each part it drives
        self,
        *,
        cycles: Mapping[str, Cycle],
        queue: SchedulingQueue,
        wake: asyncio.Event,
        slots: BindingSlots,
        waiting: WaitingPods,
        skipping: Skipping,
        groups: GroupAttempts | None,
        extended: ExtendedAttempts | None = None,
        outcomes: Outcomes,
        facts: Facts,
        clock: Clock,
        backfill: Backfill | None = None,
    ) -> None:
        self._cycles = cycles
        self._queue = queue
        self._wake = wake
        self._slots = slots
        self._waiting = waiting
        self._skipping = skipping
        self._groups = groups
        self._extended = extended
        self._outcomes = outcomes
        self._facts = facts
        self._stretch = aio.Stretch(clock)
        self.backfill = backfill
        self._running = False
        # Functions to call before the next attempt, in order.
        self._before_next: list[Callable[[], None]] = []

    def between_attempts(self, act: Callable[[], None]) -> None:
        """Have something done when no attempt is under way; at once where the pump does not run."""
        if self._running:
            self._before_next.append(act)
            self._wake.set()
        else:
            act()

    def adopt(self, other: Pump) -> None:
        """Go on with the parts of another pump, which was built for other profiles."""
        self._cycles = other._cycles
        self._skipping = other._skipping
        self._groups = other._groups
        self._extended = other._extended
        self._outcomes = other._outcomes
        self.backfill = other.backfill

    async def run(self) -> None:
        """Schedule until cancelled."""
        self._running = True
        while True:
            if await self._batch():
                await aio.sleep(0)
                continue
            self._wake.clear()
            if not self._slots.full and await self._batch():
                continue  # a pod came between the last look and the clear
            await self._wake.wait()

    async def _batch(self) -> int:
        """Start up to a batch of attempts, fewer if they take long; returns how many."""
        self._stretch.start_stretch()
        if self._before_next:
            acts, self._before_next = self._before_next, []
            for act in acts:
                act()
        done = 0
        while done < _BATCH and not self._slots.full:
            queued = self._queue.pop()
            if queued is None:
                break
            done += 1
            asking = self.attempt(queued)
            if asking is not None:
                await asking
            if self._waiting.any_leaving:
                # Their tasks give the room back when they next run. An attempt before that would
                # find no room, and two groups would go on missing the same room in turn.
                break
            if self._stretch.is_over:
                break
        return done

    def attempt(self, queued: QueuedPod) -> Awaitable[None] | None:
        """Decide about a popped pod, or about its whole group, and carry the decision out.

        Returns
        -------
        Awaitable or None
            The rest of the attempt where extenders are asked. No other attempt may start before
            it ends.
        """
        self._facts.attempts.began(queued.uid)
        if self._groups is not None and self._groups.takes(queued):
            return self._groups.attempt(queued)
        if self._extended is not None and self._extended.takes(queued):
            return self._extended.attempt(queued)
        self._attempt_one(queued)
        return None

    def _attempt_one(self, queued: QueuedPod) -> None:
        cycle = self._cycles.get(queued.profile)
        if cycle is None:
            _log.error("profile not found for scheduler name %r", queued.profile)
            self._queue.end_in_flight(queued.uid)
            return
        if self._skipping.skips(queued):
            return
        attempt_begins(queued)
        try:
            if self.backfill is None:
                decision = cycle.decide(queued.info)
            else:
                decision = self.backfill.decide_pod(cycle, queued)
            if decision.victims and not (
                self._groups is None or self._groups.would_complete(queued)
            ):
                decision = cycle.decide(queued.info, Scope(preemption=Preemption.REFUSED))
        except Exception as problem:
            self._outcomes.broke(queued, problem)
        else:
            self._outcomes.carry_out(cycle.profile, queued, decision)

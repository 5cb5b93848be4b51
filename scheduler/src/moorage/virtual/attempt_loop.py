"""The deciding half of a model at work: pods are popped, and the scheduler's own parts decide.

Place in the flow: `model` lets time pass and asks for attempts; effects of decisions go through
`effects` to the agenda, and come back to the model as changes.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.base.clock import ManualClock
from moorage.service.attempts.failure import FailureHandler
from moorage.service.attempts.outcomes import Outcomes
from moorage.service.attempts.pump import Pump
from moorage.service.attempts.skipping import Skipping
from moorage.service.binding.slots import BindingSlots
from moorage.service.groups.backfill import Backfill
from moorage.service.groups.group_attempt import GroupAttempts
from moorage.virtual.agenda import Agenda, HeldPods
from moorage.virtual.deciding_half import DecidingHalf
from moorage.virtual.effects import Bindings, Cluster, Evictions, Reports


class AttemptLoop:
    """The scheduler's own parts that decide, over the counterparts of the parts that write.

    Parameters
    ----------
    half
        The deciding half.
    cluster, agenda
        Take the effects of decisions.
    held_pods
        The pods held at Permit.
    clock
        The time of the model.

    Attributes
    ----------
    reports
        Why pods have no node.
    attempted
        Number of attempts so far.
    pump
        Decides about one pod or group after another.
    """

    def __init__(
        self,
        half: DecidingHalf,
        cluster: Cluster,
        agenda: Agenda,
        *,
        held_pods: HeldPods,
        clock: ManualClock,
    ) -> None:
        self._core = half.core
        self._facts = half.facts
        self._clock = clock
        self.reports = Reports(cluster, agenda, now_ns=clock.now_ns)
        self.attempted = 0
        self._slots = BindingSlots()
        self._failures = FailureHandler(
            self._core.queue,
            self._core.store.get,
            recorder=None,
            writes=self.reports,
            attempts=self._facts.attempts,
        )
        self._bindings = Bindings(
            self._core,
            failures=self._failures,
            facts=self._facts,
            slots=self._slots,
            cluster=cluster,
            agenda=agenda,
            held_pods=held_pods,
        )
        self.pump = self._attempts(Evictions(self._core, cluster, agenda, now_ns=clock.now_ns))

    def _attempts(self, evictions: Evictions) -> Pump:
        core, facts = self._core, self._facts
        skipping = Skipping(core.queue, core.cache, recorder=None, facts=facts)
        backfill = None
        if core.hold_back_after_seconds:
            backfill = Backfill(core, after_seconds=core.hold_back_after_seconds, clock=self._clock)
        groups = GroupAttempts(
            core,
            binding_cycles=self._bindings,
            failures=self._failures,
            evictor=evictions,
            reports=None,
            facts=facts,
            skipping=skipping,
            backfill=backfill,
        )
        outcomes = Outcomes(
            binding_cycles=self._bindings,
            failures=self._failures,
            evictor=evictions,
            facts=facts,
            plugin_facts=core.plugin_facts,
        )
        return Pump(
            cycles=core.cycles,
            queue=core.queue,
            wake=self._slots.wake,
            slots=self._slots,
            waiting=core.waiting,
            skipping=skipping,
            groups=groups if core.snapshot.groups.has_source else None,
            outcomes=outcomes,
            facts=facts,
            clock=self._clock,
            backfill=backfill,
        )

    def attempt_all(self, check: Callable[[], object], most: int | None = None) -> bool:
        """Try every pod that can be tried now; False when there would be more than `most` attempts.

        Parameters
        ----------
        check
            Is called before each attempt, and raises to end the model.
        most
            Bound of all attempts so far; None for no bound.
        """
        while not self._slots.full:
            check()
            queued = self._core.queue.pop()
            if queued is None:
                break
            self.attempted += 1
            if most is not None and self.attempted > most:
                return False
            asking = self.pump.attempt(queued)
            assert asking is None, "a model has no extenders"
            self._bindings.carry_on()
        return True

"""Attempts of the pods that extenders are asked about; `pump` decides about all other pods itself.

Events flow while an extender is asked, but no other attempt starts before the answers are in. The
search after these answers counts, so an attempt still sees one state of the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.observe.traces.attempts import Traces
from moorage.service.attempts.attempt_log import attempt_begins
from moorage.service.attempts.outcomes import Outcomes
from moorage.service.attempts.skipping import Skipping
from moorage.service.attempts.traced import traced
from moorage.state.queued_pod import QueuedPod


class ExtendedAttempts:
    """Runs the attempts of single pods with extenders.

    Parameters
    ----------
    cycles
        The deciding half of each profile with extenders, by schedulerName.
    skipping
        Drops pods that need no attempt.
    outcomes
        Carries the decisions out.
    traces
        Traces attempts; None where nothing is traced.
    """

    def __init__(
        self,
        cycles: Mapping[str, ExtendedCycle],
        *,
        skipping: Skipping,
        outcomes: Outcomes,
        traces: Traces | None = None,
    ) -> None:
        self._traces = traces
        self._cycles = cycles
        self._skipping = skipping
        self._outcomes = outcomes

    def takes(self, queued: QueuedPod) -> bool:
        """Return whether an extender takes part in the attempt of a popped pod."""
        cycle = self._cycles.get(queued.profile)
        return cycle is not None and cycle.asks(queued.pod)

    def attempt(self, queued: QueuedPod) -> Awaitable[None] | None:
        """Begin the attempt of a popped pod.

        Returns
        -------
        Awaitable or None
            The rest of the attempt; None for a pod that needs no attempt.
        """
        if self._skipping.skips(queued):
            return None
        attempt_begins(queued)
        return self._decide(self._cycles[queued.profile], queued)

    async def _decide(self, cycle: ExtendedCycle, queued: QueuedPod) -> None:
        try:
            with traced(self._traces, queued.uid):
                decision = await cycle.decide_asking(queued.info)
        except Exception as problem:
            self._outcomes.broke(queued, problem)
        else:
            self._outcomes.carry_out(cycle.profile, queued, decision)

"""Sends the outcome of an attempt on: to the binding cycle, or back to the queue.

`pump` hands every `Decision` over here. A decision to bind goes to `binding_cycle`. Any other
decision goes to `failure`, after its evictions have begun.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from moorage.base.verbosity import ObjectName
from moorage.engine.decision import CLEAR_NOMINATION, Decision, Outcome
from moorage.framework.profile import Profile
from moorage.framework.status import error
from moorage.observe.plugin_facts import Lap, PluginFacts
from moorage.observe.traces.attempts import Trace
from moorage.service.attempts.attempt_log import LONG_NS, decided, trace
from moorage.service.attempts.failure import FailureHandler
from moorage.service.attempts.traced import within
from moorage.service.binding.binding_cycle import BindingCycles
from moorage.service.binding.evictions import Evicting
from moorage.service.core import Core
from moorage.service.process.facts import Facts
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)


class Outcomes:
    """Carries out the decisions about single pods.

    Parameters
    ----------
    binding_cycles
        Takes the decisions to bind.
    failures
        Takes back the pods that got no node.
    evictor
        Evicts the victims of decisions; None where no pod is ever evicted.
    facts
        Totals.
    core
        Has the recorder of attempts, if records are kept, and the histories of pods; None where no
        attempt is recorded.
    plugin_facts
        Knows the parts of attempts that take long; None where attempts are not measured.
    """

    def __init__(
        self,
        *,
        binding_cycles: BindingCycles,
        failures: FailureHandler,
        evictor: Evicting | None,
        facts: Facts,
        core: Core | None = None,
        plugin_facts: PluginFacts | None = None,
    ) -> None:
        self._binding_cycles = binding_cycles
        self._failures = failures
        self._evictor = evictor
        self._facts = facts
        self._plugin_facts = plugin_facts
        self._recorder = None if core is None else core.recorder
        self._histories = None if core is None else core.queue.lifecycle.histories

    def carry_out(self, profile: Profile, queued: QueuedPod, decision: Decision) -> None:
        """Bind the pod, or begin the evictions and return the pod to the queue."""
        took_ns = self._facts.count_decision(decision)
        decided(decision)
        trace: Trace | None = None
        if self._recorder is not None and self._histories is not None:
            if self._recorder.traces is not None:
                laps = partial(self._laps, profile, queued.uid)
                self._recorder.traces.decided(queued.uid, laps)
                trace = self._recorder.traces.trace_of(queued.uid)
            self._recorder.decided(queued, decision, self._histories, took_ns=took_ns)
        if took_ns > LONG_NS:
            self._note_slow(profile, queued, took_ns)
        if decision.outcome is Outcome.BIND:
            self._binding_cycles.carry_out(profile, queued, decision)
            return
        # PreEnqueue asks for evictions under way, so they begin before the pod goes back.
        if self._evictor is not None and decision.victims:
            with within(trace):
                self._evictor.start(decision)
        self._failures.handle(
            queued,
            decision.status,
            decision.diagnosis,
            message=decision.message,
            nomination=decision.nomination,
        )

    def _laps(self, profile: Profile, uid: str) -> Sequence[Lap]:
        """Return the extension points of the attempt that has just been decided."""
        if self._plugin_facts is None:
            return ()
        began_ns = self._facts.attempts.began_ns(uid)
        return self._plugin_facts.laps(profile.name, since_ns=began_ns)

    def _note_slow(self, profile: Profile, queued: QueuedPod, took_ns: int) -> None:
        parts: Mapping[str, int] = {}
        if self._plugin_facts is not None:
            began_ns = self._facts.attempts.began_ns(queued.uid)
            parts = self._plugin_facts.parts(profile.name, since_ns=began_ns)
        namespace, name = queued.key
        self._facts.attempts.decided_slowly(f"{namespace}/{name}", took_ns)
        trace(ObjectName(name, namespace), took_ns, parts)

    def broke(self, queued: QueuedPod, problem: Exception) -> None:
        """Return a pod whose attempt raised, so that it does not keep the other pods waiting."""
        _log.error("attempt for pod %s broke", queued.pod.full_name, exc_info=problem)
        status = error(str(problem) or type(problem).__name__)
        self._facts.note_error()
        self._failures.handle(
            queued, status, None, message=status.message, nomination=CLEAR_NOMINATION
        )

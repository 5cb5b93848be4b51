"""Wake-ups by hints: the rejectors of a waiting pod say whether an event is worth another attempt.

The `moorage.state.wakeups.Wakeups` of kubernetes v1.36.

Errors fail towards progress: a hint that breaks, a profile without hints and a pod without a known
rejector all mean "try again after backoff".
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from moorage.api.changes import WILDCARD, ClusterEvent, matches
from moorage.api.claims import ClaimUsers
from moorage.api.pod import Pod
from moorage.snapshot.pod_info import keep_lately
from moorage.state.contracts import (
    BROKEN_HINT,
    Hint,
    HintMap,
    NullObserver,
    QueueObserver,
    RegisteredHint,
)
from moorage.state.in_flight import InFlight
from moorage.state.queued_pod import PodKey, QueuedPod
from moorage.state.wakeups import Requeue, WakingEvents

_log = logging.getLogger(__name__)

# Under names of their own: finding a member in its class takes ten times as long.
_SKIP, _AFTER_BACKOFF = Requeue.SKIP, Requeue.AFTER_BACKOFF
_KEEP_WAITING, _TRY_AGAIN = Hint.SKIP, Hint.QUEUE
_TOLD_WAITING, _TOLD_AGAIN = Hint.SKIP.value, Hint.QUEUE.value


class HintIndex:
    """The hints of all profiles, arranged by event.

    Parameters
    ----------
    hints
        Profile name to the hints of its plugins; not changed later.
    observer
        Counts every answer.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/scheduling_queue.go`` isPodWorthRequeuing.
    """

    keeps_events = True
    update_ends_backoff = False

    def __init__(self, hints: HintMap, observer: QueueObserver | None = None) -> None:
        self._observer = observer if observer is not None else NullObserver()
        self._by_profile: Mapping[str, tuple[RegisteredHint, ...]] = MappingProxyType(
            {profile: tuple(registered) for profile, registered in hints.items()}
        )
        # Answers already worked out; bounded by the few distinct events there are.
        self._matching: dict[tuple[str, ClusterEvent], tuple[RegisteredHint, ...]] = {}
        self._of_interest: dict[ClusterEvent, bool] = {}
        self._warned: set[str] = set()

    def replace(self, hints: HintMap) -> None:
        """Take over the hints of other plugins; the answers worked out from the old are dropped."""
        self._by_profile = MappingProxyType(
            {profile: tuple(registered) for profile, registered in hints.items()}
        )
        self._matching.clear()
        self._of_interest.clear()
        self._warned.clear()

    def of_interest(self, event: ClusterEvent) -> bool:
        """Whether an event could move any pod: it is a wildcard, or some plugin registered it."""
        is_wanted = self._of_interest.get(event)
        if is_wanted is None:
            is_wanted = event.is_wildcard or any(
                self.matching(profile, event) for profile in self._by_profile
            )
            self._of_interest[event] = is_wanted
        return is_wanted

    def matching(self, profile: str, event: ClusterEvent) -> tuple[RegisteredHint, ...]:
        """Return the hints of a profile whose registered event matches."""
        key = (profile, event)
        hints = self._matching.get(key)
        if hints is None:
            registered = self._by_profile.get(profile, ())
            hints = tuple(hint for hint in registered if matches(hint.event, event))
            self._matching[key] = hints
        return hints

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """Return every event a plugin registered, in any profile, each once."""
        events = {
            hint.event: None
            for registered in self._by_profile.values()
            for hint in registered
            if hint.plugin == plugin
        }
        return tuple(events)

    def waking(self, queued: QueuedPod) -> WakingEvents:
        """Return the events that the pod's rejectors registered; of a gated pod, its gate's."""
        if queued.gating_plugin:
            return {queued.gating_plugin: queued.gating_events}
        registered = self._by_profile.get(queued.profile)
        if registered is None or not queued.rejectors:
            return {"": (WILDCARD,)}
        return {
            plugin: tuple(dict.fromkeys(hint.event for hint in registered if hint.plugin == plugin))
            for plugin in sorted(queued.rejectors)
        }

    def may_help(self, profile: str, rejectors: frozenset[str], event: ClusterEvent) -> bool:
        """Whether `worth_requeuing` could wake any pod with these rejectors.

        Asked for a pod that comes back: the pods that an event concerned are no longer known then.
        """
        if not rejectors or event.is_wildcard or profile not in self._by_profile:
            return True
        return any(hint.plugin in rejectors for hint in self.matching(profile, event))

    def concerned(
        self,
        event: ClusterEvent,
        profile: str,
        rejectors: frozenset[str],
        *,
        old: object | None,
        new: object | None,
    ) -> Collection[PodKey | ClaimUsers] | None:
        """Return the pods with these rejectors that an event may help; None means all of them.

        Asked once for all pods of a profile with the same rejectors. An event that no rejector
        registered, or that concerns named pods only, costs the same however many pods wait.
        """
        if not rejectors or event.is_wildcard or profile not in self._by_profile:
            return None
        keys: dict[PodKey | ClaimUsers, None] = {}
        for hint in self.matching(profile, event):
            if hint.plugin in rejectors:
                named = None if hint.concerns is None else self._asked_whom(hint, old, new)
                if named is None:
                    return None
                keys.update(dict.fromkeys(named))
        return keys.keys()

    def replicas_agree(self, event: ClusterEvent, profile: str, rejectors: frozenset[str]) -> bool:
        """Whether every hint that `worth_requeuing` asks declares one answer for equal pods."""
        return event.is_wildcard or all(
            hint.replicas_agree or hint.hint is None
            for hint in self.matching(profile, event)
            if hint.plugin in rejectors
        )

    def worth_requeuing(
        self,
        queued: QueuedPod,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        *,
        pods: int = 1,
    ) -> Requeue:
        """Ask the hints of a pod's rejectors about an event.

        Parameters
        ----------
        queued
            The pod that waits, or comes back from an attempt.
        event
            What happened.
        old, new
            The object before and after; None where it did not exist. A wildcard event with a pod as
            ``new`` concerns that pod only.
        pods
            The number of equal pods that the answer is for.
        """
        if not (queued.unschedulable_plugins or queued.pending_plugins):
            return Requeue.AFTER_BACKOFF
        if event.is_wildcard:
            if isinstance(new, Pod) and new.uid != queued.uid:
                return Requeue.SKIP
            return Requeue.AFTER_BACKOFF
        profile = queued.pod.spec.scheduler_name
        if profile not in self._by_profile:
            self._warn_unknown(queued)
            return _AFTER_BACKOFF
        result = _SKIP
        for registered in self.matching(profile, event):
            pending = registered.plugin in queued.pending_plugins
            if not pending and registered.plugin not in queued.unschedulable_plugins:
                continue
            if self._run_hint(registered, queued, event, old, new, pods=pods) is _KEEP_WAITING:
                continue
            if pending:
                return Requeue.IMMEDIATELY
            result = _AFTER_BACKOFF
            if not queued.pending_plugins:
                return result
        return result

    def after_update(
        self, queued: QueuedPod, events: Sequence[ClusterEvent], old: Pod | None, new: Pod
    ) -> Iterator[tuple[Requeue, ClusterEvent]]:
        """Ask about each change in turn, as long as the pod has not moved."""
        for event in events:
            yield self.worth_requeuing(queued, event, old, new), event

    def on_return(self, queued: QueuedPod, in_flight: InFlight) -> Requeue:
        """Ask about every event that came while the pod was in flight.

        Parameters
        ----------
        queued
            The pod, with the rejectors of the attempt that failed; none means an error.
        in_flight
            The events since the pod was popped.
        """
        if not (queued.unschedulable_plugins or queued.pending_plugins):
            return Requeue.AFTER_BACKOFF
        events = in_flight.events_for(queued.uid)
        if events is None:
            _log.error(
                "pod %s/%s came back, but what happened meanwhile is not known; it is retried "
                "after backoff",
                *queued.key,
            )
            return Requeue.AFTER_BACKOFF
        # Members of a group come back together and find an event for each; most do not matter.
        rejectors = queued.rejectors
        telling: dict[ClusterEvent, bool] = {}
        if not events:
            return _SKIP
        best = _SKIP
        for _, event, old, new in events:
            may_help = telling.get(event)
            if may_help is None:
                may_help = telling[event] = self.may_help(queued.profile, rejectors, event)
            if not may_help:
                continue
            answer = self.worth_requeuing(queued, event, old, new)
            if answer is Requeue.IMMEDIATELY:
                return answer
            if answer is Requeue.AFTER_BACKOFF:
                best = answer
                if not queued.pending_plugins:
                    return best
        return best

    def _run_hint(
        self,
        registered: RegisteredHint,
        queued: QueuedPod,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        *,
        pods: int,
    ) -> Hint:
        """Ask one hint; a hint that breaks means "try the pod again" and is counted as broken."""
        began_ns = self._observer.observer_now_ns()
        answer, outcome = _TRY_AGAIN, _TOLD_AGAIN
        if registered.hint is not None:
            keep_lately(queued.info)  # a hint that reads what was compiled of the pod finds it
            try:
                answer = registered.hint(queued.pod, old, new)
                outcome = _TOLD_AGAIN if answer is _TRY_AGAIN else _TOLD_WAITING
            except Exception:
                outcome = BROKEN_HINT
                _log.exception(
                    "the hint of plugin %s for %s broke on pod %s/%s; the pod is retried",
                    registered.plugin,
                    registered.event.label,
                    *queued.key,
                )
        self._observer.hint_asked(
            registered.plugin, event.label, outcome, since_ns=began_ns, pods=pods
        )
        return answer

    def _asked_whom(
        self, registered: RegisteredHint, old: object | None, new: object | None
    ) -> list[PodKey | ClaimUsers] | None:
        """Ask which pods an event concerns; if that breaks, the hint is asked about all pods."""
        assert registered.concerns is not None, "asked only where somebody answers"
        try:
            pods = registered.concerns(old, new)
            if pods is None:
                return None
            return [pods] if isinstance(pods, ClaimUsers) else [pod.key for pod in pods]
        except Exception:
            _log.exception(
                "plugin %s broke when asked whom %s concerns; every pod it rejected is looked at",
                registered.plugin,
                registered.event.label,
            )
            return None

    def _warn_unknown(self, queued: QueuedPod) -> None:
        # Once for each profile: this can happen for every pod and every event.
        if queued.profile not in self._warned:
            self._warned.add(queued.profile)
            _log.error(
                "no hints are registered for profile %r of pod %s/%s; its pods are retried on "
                "every event",
                queued.profile,
                *queued.key,
            )

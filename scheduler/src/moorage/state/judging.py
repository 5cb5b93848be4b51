"""One cluster event, as the waiting pods are judged by it: equal pods are judged once for all.

A thousand replicas that wait get the same answer, so an event costs as much as the kinds of pods
that wait. Asked each by itself are: pods of which a hint reads more than replicas share, the pod
that the event is about, and pods that are tried together (`moorage.state.companions`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moorage.api.changes import ClusterEvent, matches
from moorage.api.claims import ClaimUsers
from moorage.api.pod import Pod
from moorage.state.companions import Companions
from moorage.state.contracts import Precheck
from moorage.state.queued_pod import PodKey, QueuedPod
from moorage.state.wakeups import Requeue, Wakeups


class Judging:
    """The meaning of one event for the waiting pods.

    Parameters
    ----------
    wakeups
        Judges a pod.
    companions
        The pods that are tried together; None where there are none.
    event
        What happened.
    old, new
        The object before and after; None where it did not exist.
    precheck
        Waiting pods for which it answers False are left alone.
    is_news
        Pods for which it answers False may be moved, but have no news. None for news to all.
    """

    def __init__(
        self,
        wakeups: Wakeups,
        companions: Companions | None,
        event: ClusterEvent,
        *,
        old: object | None,
        new: object | None,
        precheck: Precheck | None = None,
        is_news: Precheck | None = None,
    ) -> None:
        self._wakeups = wakeups
        self._companions = companions
        self.event = event
        self._old = old
        self._new = new
        self._precheck = precheck
        self._is_news = is_news
        self._subjects = frozenset(each.key for each in (old, new) if isinstance(each, Pod))

    def concerned(
        self, profile: str, rejectors: frozenset[str]
    ) -> Collection[PodKey | ClaimUsers] | None:
        """Return the pods with these rejectors that may be helped; None means all of them."""
        return self._wakeups.concerned(self.event, profile, rejectors, old=self._old, new=self._new)

    def replicas_agree(self, profile: str, rejectors: frozenset[str]) -> bool:
        """Whether equal pods with these rejectors get the same answer."""
        return self._wakeups.replicas_agree(self.event, profile, rejectors)

    def answer_for(self, equal: Mapping[PodKey, QueuedPod]) -> Requeue | None:
        """Judge equal pods at once; None if each has to be judged by itself."""
        first = next(iter(equal.values()))
        if self._companions is not None and self._companions.may_have(first):
            return None
        if not self._subjects.isdisjoint(equal):
            return None
        count = len(equal)
        if self._precheck is not None:
            count = sum(self.is_open_to(queued) for queued in equal.values())
        return self._judge(first, count) if count else Requeue.SKIP

    def is_news_to(self, queued: QueuedPod) -> bool:
        """Whether the event may change what is reported about a pod that it moves."""
        return self._is_news is None or self._is_news(queued.pod)

    def is_open_to(self, queued: QueuedPod) -> bool:
        """Whether the event may move a pod at all."""
        return self._precheck is None or self._precheck(queued.pod)

    def judge_pod(self, queued: QueuedPod) -> Requeue:
        """Judge a pod by itself."""
        companions = self._companions
        if companions is not None and companions.taken_along(queued):
            return Requeue.SKIP
        return self._judge(queued, 1)

    def _judge(self, queued: QueuedPod, count: int) -> Requeue:
        gate = queued.gating_events
        if queued.gated and not any(matches(own, self.event) for own in gate):
            return Requeue.SKIP
        return self._wakeups.worth_requeuing(queued, self.event, self._old, self._new, pods=count)

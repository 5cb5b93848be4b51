"""Pods that are tried together: an event wakes one of them, and that one takes the others along.

A pod that ends may help every member of every group that waits. To move each member would cost more
than the attempts. So once a member is woken, the others stay in unschedulablePods. If the woken
member leaves the queue without an attempt, another member is activated in its place, because the
others have missed the event.

A member that had a node and failed, at Reserve, Permit or later, waits out its backoff. A woken
member that would take it along is not popped before the end of its own backoff. Otherwise a binding
that fails again and again would free room each time, wake a member, and be repeated at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeAlias

from moorage.api.pod import Pod
from moorage.state.lifecycle import PodState
from moorage.state.queued_pod import PodKey, QueuedPod
from moorage.state.sub_queues import SubQueues

GroupOf: TypeAlias = Callable[[Pod], Hashable | None]
"""Equal values for pods that are tried together; None for a pod that is tried by itself."""

_POPPABLE: Final = frozenset({PodState.ACTIVE, PodState.BACKOFF})
_FORGET_MIN: Final = 64  # groups that are gone are not looked for before; a guess


class Companions:
    """Remembers which member of each group was woken, and which others were left for it to take.

    It also remembers which members had a node and failed.

    Parameters
    ----------
    group_of
        Tells which pods are tried together.
    sub_queues
        Where the pods wait.
    activate
        Moves pods to activeQ; PreEnqueue may refuse.
    """

    def __init__(
        self,
        group_of: GroupOf,
        sub_queues: SubQueues,
        *,
        activate: Callable[[Iterable[Pod]], None],
    ) -> None:
        self._group_of = group_of
        self._activate = activate
        self._sub_queues = sub_queues
        # The woken member of a group, and how often it was tried before.
        self._woken: dict[Hashable, tuple[QueuedPod, int]] = {}
        # The members that were not woken since another was, by group, in order.
        self._left: dict[Hashable, dict[PodKey, QueuedPod]] = {}
        self._forget_at = _FORGET_MIN
        # The members that had a node and failed, by group, and how often each was tried before.
        self._unbound: dict[Hashable, dict[PodKey, tuple[QueuedPod, int]]] = {}
        self._forget_unbound_at = _FORGET_MIN

    def may_have(self, queued: QueuedPod) -> bool:
        """Return whether a pod, and so each equal pod, is of a group."""
        return self._group_of(queued.pod) is not None

    def taken_along(self, queued: QueuedPod) -> bool:
        """Return whether a waiting pod may stay, since a woken companion takes it along."""
        if not self._woken:
            return False
        group = self._group_of(queued.pod)
        woken = None if group is None else self._woken.get(group)
        if woken is None or woken[0] is queued:
            return False
        if not self._is_to_be_tried(*woken):
            self._forget(group)
            return False
        self._left.setdefault(group, {})[queued.key] = queued
        return True

    def woke(self, queued: QueuedPod) -> None:
        """Note that an event moved a pod to where it is popped from."""
        group = self._group_of(queued.pod)
        if group is None:
            return
        if len(self._woken) >= self._forget_at:
            self._forget_gone()
        self._left.pop(group, None)
        self._woken[group] = queued, queued.attempts

    def pass_on(self, pod: Pod) -> None:
        """Activate a companion of a woken pod that takes no companion along after all.

        The companions were not woken by the same event. To be called for a pod that was popped, and
        ends without an attempt of its group for a reason of its own.
        """
        last = self._next_after(pod)
        while last is not None:
            self._activate([last])
            if last.key in self._sub_queues.active:
                return
            last = self._next_after(last)

    def updated(self, old: Pod, new: Pod) -> None:
        """Pass the event on if an update takes a woken pod out of its group."""
        if self._group_of(old) != self._group_of(new):
            self.pass_on(old)

    def had_a_node(self, queued: QueuedPod) -> None:
        """Note that a pod came back although a node had been chosen for it."""
        group = self._group_of(queued.pod)
        if group is None:
            return
        if len(self._unbound) >= self._forget_unbound_at:
            for each in list(self._unbound):
                self._has_unbound(each)
            self._forget_unbound_at = 2 * len(self._unbound) + _FORGET_MIN
        self._unbound.setdefault(group, {})[queued.key] = queued, queued.attempts

    def would_take_unbound(self, queued: QueuedPod) -> bool:
        """Return whether a pod would take a companion along that had a node and backs off."""
        return bool(self._unbound) and self._has_unbound(self._group_of(queued.pod))

    def _has_unbound(self, group: Hashable | None) -> bool:
        """Return whether a member that had a node backs off; forget the members that do not."""
        members = self._unbound.get(group, {})
        while members:
            key, (queued, attempts) = next(iter(members.items()))
            waits = self._waits_since(queued, attempts)
            if waits and self._sub_queues.backoff.is_backing_off(queued):
                return True
            del members[key]
        self._unbound.pop(group, None)
        return False

    def _is_to_be_tried(self, woken: QueuedPod, attempts: int) -> bool:
        """Return whether a woken pod still waits for the attempt that it was woken for."""
        # After another attempt it may wait out its backoff, for no event.
        waits = self._waits_since(woken, attempts)
        return waits and self._sub_queues.sub_queue_of(woken.key) in _POPPABLE

    def _waits_since(self, queued: QueuedPod, attempts: int) -> bool:
        """Return whether a pod still waits, and has not been tried since it had these attempts."""
        return queued.attempts == attempts and self._sub_queues.find(queued.key) is queued

    def _next_after(self, pod: Pod) -> Pod | None:
        group = self._group_of(pod)
        woken = None if group is None else self._woken.get(group)
        if woken is None or woken[0].uid != pod.metadata.uid:
            return None
        left = self._left.get(group, {})
        while left:
            key = next(iter(left))
            other = left.pop(key)
            if self._sub_queues.unschedulable.get(key) is other:
                self._woken[group] = other, other.attempts
                return other.pod
        self._forget(group)
        return None

    def _forget(self, group: Hashable) -> None:
        self._woken.pop(group, None)
        self._left.pop(group, None)

    def _forget_gone(self) -> None:
        """Forget woken pods that were popped; the cost is proportional to the groups woken."""
        for group, woken in list(self._woken.items()):
            if not self._is_to_be_tried(*woken):
                self._forget(group)
        self._forget_at = 2 * len(self._woken) + _FORGET_MIN

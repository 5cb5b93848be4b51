"""Progress of a cluster, seen through its API: the state of each pod, and its changes.

A watch of pods and a watch of Events feed it, so any process may schedule. Views read it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection
from enum import Enum

import msgspec

from moorage.api.coscheduling import group_naming
from moorage.api.event import Event
from moorage.api.pod import Pod
from moorage.api.pod_group import GROUP_SCHEDULING, GROUPS_NOT_SCHEDULED
from moorage.api.reasons.codes import code_of_message
from moorage.base.clock import NS_PER_SECOND, Clock

_RECENT = 200
_RATE_WINDOW_SECONDS = 5
# How long all pods must have been bound or explained to count as settled: longer than the
# scheduler needs to look again at pods that an event has woken.
_SETTLED_SECONDS = 1.0
# How long pods that have a node are waited for: nodes start them within a second, but on a busy
# machine, and nodes that another program plays may never start them. A guess.
_STARTING_SECONDS = 10.0
_FAILED = "FailedScheduling"


class PodState(Enum):
    """The state of a pod, in words for people."""

    PENDING = "pending"
    """The pod has no node, and no condition explains why."""
    GATED = "gated"
    """The pod's scheduling gates keep it out of the queue."""
    UNSCHEDULABLE = "unschedulable"
    """No node takes the pod, and its condition says why."""
    BOUND = "bound"
    """The pod has a node and has not started there."""
    RUNNING = "running"
    FINISHED = "finished"
    """The pod succeeded, or failed on its node."""


class Change(msgspec.Struct, frozen=True):
    """A pod that moved to another state, or got another reason.

    Parameters
    ----------
    pod
        ``namespace/name``.
    state
        The new state.
    node
        The pod's node, "" for none.
    message
        Why the pod has no node, "" if unknown or irrelevant.
    reason
        The code of that reason; "" for a pod with a node.
    owner
        ``kind/name`` of the pod's owner, "" for none.
    group
        ``namespace/name`` of the pod's group, "" for none.
    """

    pod: str
    state: PodState
    node: str = ""
    message: str = ""
    reason: str = ""
    owner: str = ""
    group: str = ""


def state_of(pod: Pod, served: Collection[str] | None = None) -> tuple[PodState, str]:
    """Return a pod's state and, where it waits, why.

    Parameters
    ----------
    pod
        The pod's API object.
    served
        The schedulerNames that are served; None when that is not known.
    """
    if pod.status.phase in {"Succeeded", "Failed"}:
        return PodState.FINISHED, pod.status.reason
    if pod.spec.node_name:
        return (PodState.RUNNING if pod.status.phase == "Running" else PodState.BOUND), ""
    failure = pod.status.scheduling_failure
    if failure is not None and failure.reason:
        gated = failure.reason == "SchedulingGated"
        return (PodState.GATED if gated else PodState.UNSCHEDULABLE), (
            failure.message or failure.reason
        )
    name = pod.spec.scheduler_name
    if served is not None and name not in served:
        profiles = ", ".join(sorted(served))
        text = f"spec.schedulerName is {name}, and no profile has that name (there are: {profiles})"
        return PodState.UNSCHEDULABLE, text
    return PodState.PENDING, ""


class Progress:
    """Counts, the last changes, and whether everything has been decided.

    Parameters
    ----------
    clock
        Clock for rates and for `settled_seconds`.
    on_change
        Called with every change, in order.
    served
        The schedulerNames that are served; None when that is not known.
    """

    def __init__(
        self,
        clock: Clock,
        on_change: Callable[[Change], None],
        *,
        served: Collection[str] | None = None,
    ) -> None:
        self._clock = clock
        self._served = served
        self._on_change = on_change
        self._pods: dict[str, Change] = {}
        self._attempts: dict[str, int] = {}
        self._ticks: deque[tuple[int, int]] = deque()
        self._settled_ns = clock.monotonic_ns()
        self.counts: Counter[PodState] = Counter()
        self.pods_ever = 0
        """Number of pods there ever were."""
        self.decisions = 0
        self.nodes = 0
        """Number of nodes when they were last counted; 0 before."""
        self._decided: dict[str, None] = {}
        # The messages about groups that no plugin schedules, by the uid of the Event or pod.
        self._groups: dict[str, str] = {}

    @property
    def disabled_groups(self) -> list[str]:
        """The message about each group that no plugin schedules as a group, sorted."""
        return sorted(set(self._groups.values()))

    @property
    def total(self) -> int:
        """Number of pods."""
        return len(self._pods)

    @property
    def recent(self) -> list[Change]:
        """The pods decided last, each as it is now; the newest decision comes last."""
        return [change for uid in self._decided if (change := self._pods.get(uid))]

    @property
    def waiting(self) -> list[Change]:
        """Pods without a node, by name."""
        nowhere = (each for each in self._pods.values() if not each.node)
        return sorted(nowhere, key=lambda each: each.pod)

    def nodes_counted(self, count: int) -> None:
        """Take in how many nodes there are now."""
        self.nodes = count

    def settled_seconds(self) -> float:
        """For how long every pod has been bound or explained; 0 while a pod is neither."""
        if self.counts[PodState.PENDING]:
            return 0.0
        return (self._clock.monotonic_ns() - self._settled_ns) / NS_PER_SECOND

    def is_settled(self) -> bool:
        """Whether every pod has been bound or explained for a moment."""
        return self.settled_seconds() >= _SETTLED_SECONDS

    def is_at_rest(self) -> bool:
        """Whether all is settled, and the pods that have a node have had time to start."""
        starting = self.counts[PodState.BOUND]
        return self.is_settled() and not (starting and self.settled_seconds() < _STARTING_SECONDS)

    def decisions_per_second(self) -> float:
        """Decisions a second over the last few seconds."""
        now_ns = self._clock.monotonic_ns()
        self._ticks.append((now_ns, self.decisions))
        while now_ns - self._ticks[0][0] > _RATE_WINDOW_SECONDS * NS_PER_SECOND:
            self._ticks.popleft()
        then_ns, then = self._ticks[0]
        elapsed = (now_ns - then_ns) / NS_PER_SECOND
        return (self.decisions - then) / elapsed if elapsed else 0.0

    # --- from the watches -------------------------------------------------------------------

    def pod_seen(self, pod: Pod) -> None:
        """Record the newest version of a pod."""
        self._note_group(pod)
        state, message = state_of(pod, self._served)
        node, owner = pod.spec.node_name, pod.metadata.owner_title
        reason = "" if node else code_of_message(message)
        named = group_naming(pod)
        group = "" if named is None else f"{pod.metadata.namespace}/{named[1]}"
        change = Change(pod.full_name, state, node, message, reason, owner, group)
        before = self._pods.get(pod.uid)
        if before == change:
            return
        pending = self.counts[PodState.PENDING]
        self._pods[pod.uid] = change
        self.counts[state] += 1
        if before is not None:
            self.counts[before.state] -= 1
        else:
            self.pods_ever += 1
        self._note_settling(pending)
        placed = bool(change.node) and (before is None or not before.node)
        self.decisions += placed
        if placed or state in {PodState.UNSCHEDULABLE, PodState.GATED}:
            self._note_decision(pod.uid)
        self._on_change(change)

    def pod_gone(self, pod: Pod) -> None:
        """Record that a pod has been removed."""
        self._groups.pop(pod.uid, None)
        before = self._pods.pop(pod.uid, None)
        if before is not None:
            pending = self.counts[PodState.PENDING]
            self.counts[before.state] -= 1
            self._note_settling(pending)

    def event_seen(self, event: Event) -> None:
        """Count the failed attempts that an Event reports."""
        if event.reason == GROUPS_NOT_SCHEDULED and event.regarding.kind != "Pod":
            self._groups[event.metadata.uid] = event.note
        if event.reason != _FAILED:
            return
        count = event.series.count if event.series else max(1, event.deprecated_count)
        before = self._attempts.get(event.metadata.uid, 0)
        self._attempts[event.metadata.uid] = max(count, before)
        self.decisions += max(0, count - before)

    def event_gone(self, event: Event) -> None:
        """Forget an Event."""
        self._attempts.pop(event.metadata.uid, None)
        self._groups.pop(event.metadata.uid, None)

    def _note_group(self, pod: Pod) -> None:
        self._groups.pop(pod.uid, None)
        for each in pod.status.conditions:
            if each.type == GROUP_SCHEDULING and each.status == "False":
                self._groups[pod.uid] = each.message

    def _note_decision(self, uid: str) -> None:
        self._decided.pop(uid, None)
        self._decided[uid] = None
        if len(self._decided) > _RECENT:
            del self._decided[next(iter(self._decided))]

    def _note_settling(self, pending_before: int) -> None:
        if pending_before or self.counts[PodState.PENDING]:
            self._settled_ns = self._clock.monotonic_ns()

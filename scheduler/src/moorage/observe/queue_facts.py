"""The numbers of the scheduling queue, in plain dictionaries because every pod passes here.

Since 1.37 kube-scheduler has metrics of entities, which count a pod group once. `EntityFacts`
counts for them where groups are entities. The queue itself keeps the members of a group one by one.
The first member that waits stands for its group: where it is, the group is.

Source of the entities: kubernetes v1.37 ``pkg/scheduler/metrics``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.observe.catalogue import BUCKETS
from moorage.observe.plugin_facts import PluginFacts
from moorage.observe.series import Histograms
from moorage.snapshot.pod_groups import GroupMembers
from moorage.snapshot.snapshot import Snapshot
from moorage.state.lifecycle import PodState

Entity = Literal["pod", "podgroup"]

_HINT = BUCKETS["scheduler_queueing_hint_execution_duration_seconds"]
_SUB_QUEUES: Final = (
    PodState.ACTIVE,
    PodState.BACKOFF,
    PodState.UNSCHEDULABLE,
    PodState.GATED,
)
_INCOMPLETE: Final = "incomplete"


class QueueFacts:
    """A `QueueObserver` that counts.

    Parameters
    ----------
    plugins
        Keeps the durations of PreEnqueue.

    Attributes
    ----------
    plugins
        The same object.
    incoming_pods
        Pods that entered a sub-queue, by (queue, event).
    pending_pods
        Pods in each sub-queue now.
    rejected_pods
        Queued pods last rejected by a plugin, by (plugin, profile).
    events_in_flight
        Entries kept for pods in flight, by event.
    hints
        Seconds, by (plugin, event, answer).
    """

    __slots__ = (
        "events_in_flight",
        "hints",
        "incoming_pods",
        "observer_now_ns",
        "pending_pods",
        "plugins",
        "rejected_pods",
    )

    def __init__(self, plugins: PluginFacts) -> None:
        self.plugins = plugins
        self.observer_now_ns: Callable[[], int] = plugins.now_ns
        self.hints: Histograms[tuple[str, str, str]] = Histograms(_HINT)
        self.incoming_pods: Counter[tuple[str, str]] = Counter()
        self.pending_pods: Counter[str] = Counter(
            {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        )
        self.rejected_pods: Counter[tuple[str, str]] = Counter()
        self.events_in_flight: Counter[str] = Counter()

    def incoming(self, queue: str, event: str, pod: Pod) -> None:
        """Count a pod that entered a sub-queue because of an event."""
        del pod
        self.incoming_pods[queue, event] += 1

    def incoming_entities(self) -> Iterator[tuple[tuple[str, str, Entity], int]]:
        """Yield how many entities entered a sub-queue, by (queue, event, type)."""
        for (queue, event), count in self.incoming_pods.items():
            yield (queue, event, "pod"), count

    def queued_entities(
        self, state_of: Callable[[str], PodState]
    ) -> Mapping[tuple[str, Entity], int]:
        """Return how many entities are in each sub-queue, by (queue, type).

        Parameters
        ----------
        state_of
            The state of a pod, by uid.
        """
        del state_of
        return {(queue, "pod"): count for queue, count in self.pending_pods.items()}

    def pods_by_queue(self, state_of: Callable[[str], PodState]) -> Mapping[str, int]:
        """Return the pods in each sub-queue; the parameter is that of `queued_entities`."""
        del state_of
        return self.pending_pods

    def pending(self, queue: str, delta: int) -> None:
        """Change the number of pods in a sub-queue."""
        self.pending_pods[queue] += delta

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        """Change the number of queued pods last rejected by a plugin."""
        self.rejected_pods[plugin, profile] += delta

    def in_flight_events(self, event: str, delta: int) -> None:
        """Change the number of entries kept for pods in flight."""
        self.events_in_flight[event] += delta

    def hint_asked(
        self, plugin: str, event: str, answer: str, *, since_ns: int, pods: int = 1
    ) -> None:
        """Note how long a requeue hint took; of equal pods, each has an equal part of the time."""
        took_ns = self.observer_now_ns() - since_ns
        self.hints[plugin, event, answer].observe_equal(took_ns / NS_PER_SECOND / pods, pods)

    def pre_enqueue_asked(self, profile: str, *, since_ns: int) -> None:
        """Note how long PreEnqueue took, under the status Success for any answer, as upstream."""
        told = self.plugins.durations_of("PreEnqueue", "Success", profile)
        told.add(self.observer_now_ns() - since_ns)


class EntityFacts(QueueFacts):
    """`QueueFacts` that count the groups of Kubernetes as well.

    Parameters
    ----------
    plugins
        Keeps the durations of PreEnqueue.
    snapshot
        Has the groups.

    Attributes
    ----------
    incoming_members, incoming_groups
        Members, and groups, that entered a sub-queue, by (queue, event).
    """

    __slots__ = ("_snapshot", "incoming_groups", "incoming_members")

    def __init__(self, plugins: PluginFacts, snapshot: Snapshot) -> None:
        super().__init__(plugins)
        self._snapshot = snapshot
        self.incoming_members: Counter[tuple[str, str]] = Counter()
        self.incoming_groups: Counter[tuple[str, str]] = Counter()

    def incoming(self, queue: str, event: str, pod: Pod) -> None:
        """Count a pod that entered a sub-queue, and its group with the group's first member."""
        super().incoming(queue, event, pod)
        groups = self._snapshot.groups
        key = groups.key_of(pod)
        if key is None or key.source:
            return
        self.incoming_members[queue, event] += 1
        if next(iter(groups.members(key).waiting), pod.uid) == pod.uid:
            self.incoming_groups[queue, event] += 1

    def incoming_entities(self) -> Iterator[tuple[tuple[str, str, Entity], int]]:
        """Yield how many entities entered a sub-queue, by (queue, event, type)."""
        for (queue, event), count in self.incoming_pods.items():
            single = count - self.incoming_members[queue, event]
            if single:
                yield (queue, event, "pod"), single
        for (queue, event), count in self.incoming_groups.items():
            yield (queue, event, "podgroup"), count

    def queued_entities(
        self, state_of: Callable[[str], PodState]
    ) -> Mapping[tuple[str, Entity], int]:
        """Return how many entities are in each sub-queue; a group is where its first member is."""
        counts: Counter[tuple[str, Entity]] = Counter(super().queued_entities(state_of))
        for queue in self.pending_pods:
            counts[queue, "podgroup"] = 0
        for members in self._groups():
            states = [state_of(uid) for uid in members.waiting]
            for state in states:
                if state in _SUB_QUEUES:
                    counts[state.value, "pod"] -= 1
            if states and states[0] in _SUB_QUEUES:
                counts[states[0].value, "podgroup"] += 1
        return counts

    def pods_by_queue(self, state_of: Callable[[str], PodState]) -> Mapping[str, int]:
        """Return the pods in each sub-queue, and the members that wait for their group.

        Such a member has no scheduling gate and is gated all the same: its group is incomplete.
        """
        incomplete = sum(
            state_of(uid) is PodState.GATED and uid not in members.gated
            for members in self._groups()
            for uid in members.waiting
        )
        gated = PodState.GATED.value
        rest = self.pending_pods[gated] - incomplete
        return {**self.pending_pods, gated: rest, _INCOMPLETE: incomplete}

    def _groups(self) -> Iterator[GroupMembers]:
        for key, members in self._snapshot.groups.all_groups().items():
            if not key.source:
                yield members

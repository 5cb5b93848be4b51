"""Builders for this room's tests: pods in a word, a queue whose world is visible, a recorder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.claims import PodResourceClaim, PodResourceClaimStatus
from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.snapshot.pod_info import PodInfo
from moorage.state.activations import Activations
from moorage.state.companions import GroupOf
from moorage.state.contracts import (
    GateResult,
    Hint,
    HintFn,
    HintMap,
    PreEnqueueMap,
    QueueSettings,
    RegisteredHint,
)
from moorage.state.lifecycle import Lifecycle
from moorage.state.nominations import Nominator
from moorage.state.queue import SchedulingQueue
from moorage.state.queue_version import V1_36, QueueVersion, v1_20
from moorage.state.queued_pod import QueuedPod

PROFILE = "default-scheduler"
SECOND = NS_PER_SECOND

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
PVC_ADD = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)


def pod(
    name: str = "a",
    *,
    uid: str | None = None,
    namespace: str = "ns",
    priority: int | None = None,
    node: str = "",
    nominated: str = "",
    labels: dict[str, str] | None = None,
    profile: str = PROFILE,
    phase: str = "",
    version: str = "1",
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid if uid is not None else f"uid-{name}",
            labels=labels or {},
            resource_version=version,
        ),
        spec=PodSpec(priority=priority, node_name=node, scheduler_name=profile),
        status=PodStatus(nominated_node_name=nominated, phase=phase),
    )


def naming(
    name: str,
    *,
    claims: Sequence[str] = (),
    template: str = "",
    made: str = "",
    namespace: str = "ns",
) -> Pod:
    """A pod that names claims, and one that is made of a template once ``made`` is its name."""
    plain = pod(name, namespace=namespace)
    wanted = [PodResourceClaim(name=each, resource_claim_name=each) for each in claims]
    if template:
        wanted.append(PodResourceClaim(name="own", resource_claim_template_name=template))
    told = [PodResourceClaimStatus(name="own", resource_claim_name=made)] if made else []
    return msgspec.structs.replace(
        plain,
        spec=msgspec.structs.replace(plain.spec, resource_claims=wanted),
        status=msgspec.structs.replace(plain.status, resource_claim_statuses=told),
    )


NAMESPACE_LABELS = {"ns": {"team": "a"}, "other": {"team": "b"}}
V1_20 = v1_20(lambda namespace: NAMESPACE_LABELS.get(namespace, {}))
VERSIONS = {"v1.36": V1_36, "v1.20": V1_20}


class Recorder:
    """A `QueueObserver` that adds everything up."""

    def __init__(self) -> None:
        self.entered: Counter[tuple[str, str]] = Counter()
        self.gauges: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.hints: Counter[tuple[str, str, str]] = Counter()
        self.gated: Counter[str] = Counter()

    def incoming(self, queue: str, event: str, pod: Pod) -> None:
        self.entered[queue, event] += 1

    def pending(self, queue: str, delta: int) -> None:
        self.gauges[queue] += delta

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        self.rejected[plugin] += delta

    def in_flight_events(self, event: str, delta: int) -> None:
        self.kept[event] += delta

    def observer_now_ns(self) -> int:
        return 0

    def hint_asked(
        self, plugin: str, event: str, answer: str, *, since_ns: int, pods: int = 1
    ) -> None:
        self.hints[plugin, event, answer] += pods

    def pre_enqueue_asked(self, profile: str, *, since_ns: int) -> None:
        self.gated[profile] += 1

    def now(self) -> dict[str, int]:
        """The gauges that are not zero."""
        return {name: count for name, count in sorted(self.gauges.items()) if count}


def hint(plugin: str, event: ClusterEvent, answer: Hint | HintFn = Hint.QUEUE) -> RegisteredHint:
    if isinstance(answer, Hint):
        return RegisteredHint(plugin, event, lambda waiting, old, new: answer)
    return RegisteredHint(plugin, event, answer)


def by_priority(queued: QueuedPod) -> tuple[int, int]:
    return (-queued.priority, queued.timestamp_ns)


class World:
    """A queue with everything handed to it in sight.

    Hints: plugin ``Fit`` cares for added nodes, ``Label`` for labels of nodes but never finds them
    useful, ``Claim`` for added claims. ``gates`` maps a pod's name to the PreEnqueue plugin's
    answer.
    """

    def __init__(
        self,
        *,
        hints: HintMap | list[RegisteredHint] | None = None,
        pre_enqueue: PreEnqueueMap | None = None,
        settings: QueueSettings | None = None,
        version: QueueVersion = V1_36,
        group_of: GroupOf | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.start_ns = self.clock.now_ns()
        self.api: dict[tuple[str, str], Pod] = {}
        self.gates: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.gate_calls: list[str] = []
        self.seen = Recorder()
        self.wakes = 0
        self.lifecycle = Lifecycle(self.clock)
        if hints is None:
            hints = [
                hint("Fit", NODE_ADD),
                hint("Label", NODE_LABEL, Hint.SKIP),
                hint("Claim", PVC_ADD),
                hint("Gate", POD_DELETE),
            ]
        self.activations = Activations(self._wake)
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=by_priority,
            pre_enqueue=pre_enqueue or {PROFILE: [("Gate", self._gate)]},
            hints={PROFILE: hints} if isinstance(hints, list) else hints,
            nominator=Nominator(lambda namespace, name: self.api.get((namespace, name))),
            activations=self.activations,
            version=version,
            settings=settings,
            observer=self.seen,
            lifecycle=self.lifecycle,
            on_wake=self._wake,
            group_of=group_of,
        )

    def _wake(self) -> None:
        self.wakes += 1

    def _gate(self, waiting: Pod) -> GateResult | None:
        self.gate_calls.append(waiting.name)
        return self.gates.get(waiting.name)

    def close_gate(self, name: str) -> None:
        self.gates[name] = ("UnschedulableAndUnresolvable", ("closed",))

    def at(self, seconds: float) -> None:
        """Move the clock to a time since the start."""
        self.clock.advance_ns(round(seconds * SECOND) - self.clock.monotonic_ns())

    def seconds(self, time_ns: int) -> float:
        """A wall-clock time as seconds since the start."""
        return (time_ns - self.start_ns) / SECOND

    def next_release_ns(self) -> int | None:
        """Return when backoff will next release a pod, wall-clock nanoseconds, or None."""
        backoff = self.queue._sub_queues.backoff
        return min((backoff.release_ns(pod) for pod in backoff.queued_pods()), default=None)

    def add(self, *pods: Pod) -> None:
        for each in pods:
            self.api[each.key] = each
            self.queue.add(each)

    def pop(self) -> QueuedPod:
        queued = self.queue.pop()
        assert queued is not None
        return queued

    def fail(self, queued: QueuedPod, *rejectors: str, pending: Sequence[str] = ()) -> None:
        """Give a pod back from a failed attempt."""
        queued.rejected_by(rejectors, pending)
        self.queue.add_unschedulable_if_not_present(queued)

    def waiting(self, name: str = "a", *rejectors: str, priority: int | None = None) -> QueuedPod:
        """A pod that was tried once and rejected."""
        self.add(pod(name, priority=priority))
        queued = self.pop()
        assert queued.pod.name == name
        self.fail(queued, *(rejectors or ("Fit",)))
        return queued

    def places(self) -> dict[str, str]:
        """Pod name -> where it is; checks the invariants, too."""
        self.queue.validate()
        pending = self.queue.pending()
        found = {}
        for place in ("active", "backoff", "unschedulable", "gated"):
            for each in getattr(pending, place):
                assert each.pod.name not in found
                found[each.pod.name] = place
        for uid in pending.in_flight:
            found.setdefault(uid.removeprefix("uid-"), "in-flight")
        return found

    def drain(self) -> list[str]:
        names = []
        while (queued := self.queue.pop()) is not None:
            names.append(queued.pod.name)
        return names


class Table:
    """A `NodeTableLike` of dicts, as strict as the real one."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[str, Pod]] = {}

    def add_node(self, node: Node) -> None:
        assert node.name not in self.nodes
        self.nodes[node.name] = node

    def update_node(self, node: Node) -> None:
        assert node.name in self.nodes
        self.nodes[node.name] = node

    def remove_node(self, name: str) -> None:
        del self.nodes[name]

    def has_node(self, name: str) -> bool:
        return name in self.nodes

    @property
    def hidden_nodes(self) -> set[str]:
        return {name for name, _ in self.pods.values()} - self.nodes.keys()

    def add_pod(self, pod: Pod | PodInfo, node_name: str) -> None:
        pod = pod.pod if isinstance(pod, PodInfo) else pod
        assert pod.uid not in self.pods
        self.pods[pod.uid] = (node_name, pod)

    def update_pod(self, pod: Pod, node_name: str) -> None:
        assert pod.uid in self.pods
        self.pods[pod.uid] = (node_name, pod)

    def remove_pod(self, uid: str) -> None:
        del self.pods[uid]

    def placed(self) -> dict[str, str]:
        return {uid: node_name for uid, (node_name, _) in self.pods.items()}


def node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))

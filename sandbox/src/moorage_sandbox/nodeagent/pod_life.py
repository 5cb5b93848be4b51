"""The life of bound pods, without I/O: versions of pods and moments in, effects out.

    bound -> starting -> running -> ended
       |         |          |         |
       |         +----------+---------+--> stopping -> removed
       +-> refused (ended at once)

``agents`` passes in watched pods and the moments asked for here, and carries out the effects.
``pod_containers`` decides what happens to the containers of a running pod. After a restart of the
agent, a running pod continues from its status.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

import msgspec

from moorage.api.meta import ObjectReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339, rfc3339
from moorage.nodeshapes.annotations import START_SECONDS, faults, number
from moorage.nodeshapes.stopping import stopping_of
from moorage_sandbox.nodeagent import kubelet_status
from moorage_sandbox.nodeagent.admission import NodeLoad, refuse
from moorage_sandbox.nodeagent.kubelet_status import ConditionTimes, PodFacts
from moorage_sandbox.nodeagent.pod_containers import STOPPED_CODE, Phase, PodContainers
from moorage_sandbox.nodeagent.pressure import eviction_text, pressures_of, victim_of
from moorage_sandbox.nodeagent.resizing import ResourcesInForce
from moorage_sandbox.nodeagent.timers import Timers

_START_SECONDS = 1.0  # a guess: soon, and long enough to be seen
_KILLED_CODE = 137  # 128 and the number of SIGKILL
_TERMINAL = ("Succeeded", "Failed")
_POD_NETWORK = ipaddress.IPv4Address("10.128.0.0")
_POD_ADDRESSES = 1 << 22


class PatchPod(msgspec.Struct, frozen=True):
    """Effect: merge a patch into the status of the pod with this uid."""

    pod: ObjectReference
    status: dict[str, object]


class RemovePod(msgspec.Struct, frozen=True):
    """Effect: delete the pod with this uid for good."""

    pod: ObjectReference


class Complain(msgspec.Struct, frozen=True):
    """Effect: emit a warning Event about the pod in the name of its node."""

    pod: ObjectReference
    node_name: str
    reason: str
    message: str
    action: str = "Admission"


PodEffect: TypeAlias = PatchPod | RemovePod | Complain


class _Stage(Enum):
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    STOPPING = "stopping"


class _Record:
    __slots__ = ("containers", "facts", "pod", "resources", "stage", "times", "version")

    def __init__(self, pod: Pod, facts: PodFacts, stage: _Stage) -> None:
        self.pod = pod
        self.facts = facts
        self.stage = stage
        # The version that the agents have seen or written last.
        self.version = pod.metadata.resource_version
        self.containers = PodContainers(pod)
        # The resources in force, once a resize was asked for.
        self.resources: ResourcesInForce | None = None
        self.times: ConditionTimes = kubelet_status.times_of(pod)


class PodLife:
    """Plays the pods bound to a set of nodes.

    Parameters
    ----------
    nodes
        Our nodes by name, as registered; updated by `on_node`.
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = dict(nodes)
        self._loads = {name: NodeLoad() for name in nodes}
        # Node -> the pods whose resize waits for room.
        self._deferred: dict[str, dict[str, None]] = {}
        # Deleted nodes that still have pods.
        self._deleted: set[str] = set()
        self._records: dict[str, _Record] = {}
        self._timers: Timers[str] = Timers()
        self._addresses: dict[str, str] = {}
        self._next_address = 0

    def __len__(self) -> int:
        return len(self._records)

    def add_node(self, node: Node) -> None:
        """Play one more node."""
        self._deleted.discard(node.name)
        self._nodes[node.name] = node
        self._loads.setdefault(node.name, NodeLoad())

    def remove_node(self, name: str) -> None:
        """Take in that a node is deleted: it is forgotten once its last pod is gone."""
        if name in self._nodes:
            self._deleted.add(name)
            self._forget_empty(name)

    def plays(self, node_name: str) -> bool:
        """Whether the pods of a node are played: it is ours, or deleted and not empty yet."""
        return node_name in self._nodes

    def on_node(self, node: Node) -> None:
        """Take in the newest version of one of our nodes; other nodes are ignored."""
        if node.name in self._nodes:
            self._nodes[node.name] = node

    def on_pod(self, pod: Pod, *, now_ns: int) -> list[PodEffect]:
        """Take in a pod that appeared or changed; pods of other nodes are ignored."""
        if pod.spec.node_name not in self._nodes:
            return []
        record = self._records.get(pod.uid)
        if record is None:
            return self._first_look(pod, now_ns)
        before, record.pod = record.pod, pod
        record.version = pod.metadata.resource_version
        newer = pod.metadata.generation > before.metadata.generation
        if newer and record.resources is None:
            record.resources = ResourcesInForce(before)
        effects: list[PodEffect] = self._resize(record) if newer else []
        if pod.status.phase in _TERMINAL and record.stage in {_Stage.STARTING, _Stage.RUNNING}:
            effects.append(self._end_with_others(record, now_ns))
        effects += self._stop(record, now_ns)
        if record.stage is not _Stage.RUNNING:
            return effects
        told_anew = before.metadata.annotations != pod.metadata.annotations
        if newer or told_anew:
            self._set_timer(record, now_ns)
        # The spec changed, such as the image: a kubelet reports the observed generation.
        if newer or told_anew or self._gates_moved(record, now_ns):
            effects.append(_report(record, now_ns))
        return effects

    def patch_of(self, report: PatchPod) -> dict[str, object] | None:
        """Return the patch of a report: it is for the pod's known version, and no other.

        A terminal phase stays, whoever gave it. None if the report is outdated: the pod is gone,
        or it has ended and the report tells of a living pod.
        """
        record = self._records.get(report.pod.uid)
        if record is None:
            return None
        status, known = report.status, record.pod.status.phase
        if known in _TERMINAL:
            if status["phase"] not in _TERMINAL:
                return None
            status = status | {"phase": known}
        # The uid: a new pod of the same name must not get the old one's status.
        metadata = {"uid": report.pod.uid, "resourceVersion": record.version}
        return {"metadata": metadata, "status": status}

    def on_written(self, uid: str, version: str) -> None:
        """Take in the version that a pod has since a report."""
        record = self._records.get(uid)
        if record is not None:
            record.version = version

    def on_read(self, pod: Pod, *, now_ns: int) -> list[PodEffect]:
        """Take in a pod that was read because a report was for an older version.

        Of its changes only a terminal phase counts now: the watch will tell them all in order.
        """
        if pod.status.phase in _TERMINAL and pod.uid in self._records:
            return self.on_pod(pod, now_ns=now_ns)
        self.on_written(pod.uid, pod.metadata.resource_version)
        return []

    def on_gone(self, pod: Pod) -> bool:
        """Take in that a pod has been removed; return whether `on_due` is due by that."""
        record = self._records.pop(pod.uid, None)
        if record is None:
            return False
        self._timers.cancel(pod.uid)
        self._make_room(record)
        if self._addresses.get(record.facts.pod_ip) == pod.uid:
            del self._addresses[record.facts.pod_ip]
        self._forget_empty(record.pod.spec.node_name)
        return record.pod.spec.node_name in self._deferred

    def next_due_ns(self) -> int | None:
        """Return when `on_due` should be called next, wall-clock nanoseconds; None for never."""
        return self._timers.next_due_ns()

    def on_due(self, now_ns: int) -> list[PodEffect]:
        """Run the steps of all pods that are due."""
        effects: list[PodEffect] = []
        for uid in self._timers.pop_due(now_ns):
            record = self._records[uid]
            if record.stage is _Stage.STOPPING:
                effects += self._remove(record, now_ns)
                continue
            deadline_ns = _deadline_ns(record)
            if deadline_ns is not None and deadline_ns <= now_ns:
                effects += self._fail(record, kubelet_status.OVERDUE, now_ns)
            elif record.stage is _Stage.STARTING:
                effects += self._run(record, now_ns)
            elif record.stage is _Stage.RUNNING:
                effects += self._resize(record)
                effects += self._advance(record, now_ns)
        return effects

    def evict(self, node_name: str, *, now_ns: int) -> list[PodEffect]:
        """Evict the first pod in the eviction order of a node under pressure, if any."""
        pressures = pressures_of(self._nodes[node_name])
        records = [self._records[uid] for uid in self._loads[node_name].uids()]
        here = [each.pod for each in records if each.stage in {_Stage.STARTING, _Stage.RUNNING}]
        victim = victim_of(pressures[0], here) if pressures else None
        if victim is None:
            return []
        text = eviction_text(pressures[0], victim)
        record = self._records[victim.uid]
        status = kubelet_status.evicted(victim, text, record.times, now_ns=now_ns)
        complaint = Complain(reference(victim), node_name, "Evicted", text, action="Evicting")
        return [*self._fail(record, status, now_ns), complaint]

    # --- resizes ----------------------------------------------------------------------------

    def _resize(self, record: _Record) -> list[PodEffect]:
        """Resize a pod if its spec asks for it; the next report tells the outcome."""
        pod, in_force = record.pod, record.resources
        if in_force is None or record.stage not in {_Stage.STARTING, _Stage.RUNNING}:
            return []
        name, before, was = pod.spec.node_name, in_force.pending, in_force.resources
        in_force.resize(pod, self._nodes[name], self._loads[name])
        if in_force.pending is not None and in_force.pending.reason == "Deferred":
            self._deferred.setdefault(name, {})[pod.uid] = None
        else:
            self._forget_deferred(record)
        if in_force.resources is not was:
            self._retry_deferred(name)
        if in_force.pending is None or in_force.pending == before:
            return []
        reason, why = in_force.pending.reason, in_force.pending.message
        return [Complain(reference(pod), name, f"Resize{reason}", why, action="Resizing")]

    def _make_room(self, record: _Record) -> None:
        """Stop counting a pod of a node, so that the resizes of others may fit."""
        name = record.pod.spec.node_name
        self._loads[name].remove(record.pod.uid)
        self._forget_deferred(record)
        self._retry_deferred(name)

    def _forget_deferred(self, record: _Record) -> None:
        waiting = self._deferred.get(record.pod.spec.node_name, {})
        waiting.pop(record.pod.uid, None)
        if not waiting:
            self._deferred.pop(record.pod.spec.node_name, None)

    def _retry_deferred(self, name: str) -> None:
        for uid in self._deferred.get(name, ()):
            self._timers.set(uid, 0)

    # --- steps ------------------------------------------------------------------------------

    def _forget_empty(self, name: str) -> None:
        """Forget a deleted node that has no pods left."""
        if name not in self._deleted:
            return
        if any(record.pod.spec.node_name == name for record in self._records.values()):
            return
        self._deleted.remove(name)
        del self._nodes[name]
        del self._loads[name]

    def _first_look(self, pod: Pod, now_ns: int) -> list[PodEffect]:
        status = pod.status
        started = status.start_time or rfc3339(now_ns)
        facts = PodFacts(
            host_ip=_internal_ip(self._nodes[pod.spec.node_name]),
            pod_ip=status.pod_ip,
            start_time=started,
        )
        record = self._records[pod.uid] = _Record(pod, facts, _Stage.ENDED)
        if status.phase in _TERMINAL:
            return self._stop(record, now_ns)
        load = self._loads[pod.spec.node_name]
        if status.start_time is None:
            if pod.metadata.deletion_timestamp:
                record.stage = _Stage.STARTING
                return self._stop(record, now_ns)
            refusal = refuse(pod, self._nodes[pod.spec.node_name], load)
            if refusal is not None:
                return self._refuse(record, refusal.reason, refusal.message)
        try:
            in_force = ResourcesInForce(pod)
            if in_force.differs(pod):
                record.resources = in_force
            load.add(pod if record.resources is None else record.resources.with_resources(pod))
        except ValueError as error:
            # Only a pod taken up after a restart gets here: `refuse` reads the requests of a new
            # pod.
            return self._refuse(record, "UnexpectedAdmissionError", str(error))
        if status.pod_ip:
            self._addresses[status.pod_ip] = pod.uid
        if status.pod_ip:
            record.stage = _Stage.RUNNING
            record.containers.take_up(pod, parse_rfc3339(started))
            self._set_timer(record, now_ns)
            if record.resources is not None:
                # The resize is judged once all pods of the node are known.
                self._timers.set(pod.uid, now_ns)
            return self._stop(record, now_ns)
        return self._start_pod(record, now_ns)

    def _refuse(self, record: _Record, reason: str, message: str) -> list[PodEffect]:
        pod = record.pod
        status = kubelet_status.refused(
            pod, reason=reason, message=message, now=record.facts.start_time
        )
        return [
            PatchPod(reference(pod), status),
            Complain(reference(pod), pod.spec.node_name, reason, message),
        ]

    def _start_pod(self, record: _Record, now_ns: int) -> list[PodEffect]:
        record.stage = _Stage.STARTING
        pod = record.pod
        effects: list[PodEffect] = []
        if text := "; ".join(faults(pod)):
            complaint = Complain(reference(pod), pod.spec.node_name, "InvalidAnnotation", text)
            effects.append(complaint)
        effects.append(_report(record, now_ns))
        start_ns = round(number(pod, START_SECONDS, _START_SECONDS) * NS_PER_SECOND)
        self._timers.set(pod.uid, _soonest(now_ns + start_ns, _deadline_ns(record)))
        return effects + self._stop(record, now_ns)

    def _run(self, record: _Record, now_ns: int) -> list[PodEffect]:
        """Start the containers of a pod whose sandbox is ready."""
        record.stage = _Stage.RUNNING
        pod, facts = record.pod, record.facts
        address = facts.host_ip if pod.spec.host_network else self._address(pod)
        record.facts = msgspec.structs.replace(facts, pod_ip=address)
        return self._advance(record, now_ns)

    def _advance(self, record: _Record, now_ns: int) -> list[PodEffect]:
        """Advance the containers of a pod, and report its status."""
        pod, containers = record.pod, record.containers
        effects: list[PodEffect] = [
            Complain(
                reference(pod),
                pod.spec.node_name,
                "BackOff",
                kubelet_status.crash_text(pod, seat),
                action="Restarting",
            )
            for seat in containers.advance(pod, now_ns)
        ]
        if containers.phase(pod) in _TERMINAL:
            # The sidecars stop with the last regular container.
            containers.stop(pod, now_ns)
            self._end(record)
        else:
            self._set_timer(record, now_ns)
        return [_report(record, now_ns), *effects]

    def _fail(self, record: _Record, status: dict[str, object], now_ns: int) -> list[PodEffect]:
        """End a pod from outside; ``status`` says why."""
        record.containers.stop(record.pod, now_ns)
        self._end(record)
        report = _report(record, now_ns, phase="Failed")
        conditions = [*_listed(report.status), *_listed(status)]
        return [
            msgspec.structs.replace(
                report, status=report.status | status | {"conditions": conditions}
            )
        ]

    def _end_with_others(self, record: _Record, now_ns: int) -> PatchPod:
        """End a pod to which another client gave a terminal phase, and report its containers.

        Notes
        -----
        Kubernetes v1.36 pkg/kubelet: a pod with a terminal phase is torn down (pod_workers.go), and
        keeps its phase (kubelet_pods.go, generateAPIPodStatus).
        """
        phase: Phase = "Succeeded" if record.pod.status.phase == "Succeeded" else "Failed"
        record.containers.stop(record.pod, now_ns)
        self._end(record)
        return _report(record, now_ns, phase=phase)

    def _set_timer(self, record: _Record, now_ns: int) -> None:
        """Set the timer for the next change of a running pod, if any."""
        due_ns = record.containers.next_due_ns(record.pod, now_ns)
        deadline_ns = _deadline_ns(record)
        if due_ns is None and deadline_ns is None:
            self._timers.cancel(record.pod.uid)
        else:
            self._timers.set(record.pod.uid, _soonest(due_ns, deadline_ns))

    def _gates_moved(self, record: _Record, now_ns: int) -> bool:
        return kubelet_status.gates_moved(
            record.pod, record.times, record.containers, now_ns=now_ns
        )

    def _end(self, record: _Record) -> None:
        record.stage = _Stage.ENDED
        self._timers.cancel(record.pod.uid)
        self._make_room(record)

    def _stop(self, record: _Record, now_ns: int) -> list[PodEffect]:
        """Stop a pod that is being deleted; the grace may have been shortened since."""
        pod = record.pod
        if not pod.metadata.deletion_timestamp:
            return []
        if record.stage is _Stage.STOPPING:
            due_ns = self._timers.due_ns(pod.uid)
            if due_ns is not None:
                self._timers.set(pod.uid, min(due_ns, stopping_of(pod).ended_ns))
            return []
        stage, record.stage = record.stage, _Stage.STOPPING
        if stage is _Stage.ENDED:
            self._timers.cancel(pod.uid)
            return [RemovePod(reference(pod))]
        if stage is _Stage.STARTING:
            # Its phase has to become Failed, too: a Job may wait for that.
            return self._remove(record, now_ns)
        due_ns = stopping_of(pod).ended_ns
        if due_ns <= now_ns:
            return self._remove(record, now_ns)
        self._timers.set(pod.uid, due_ns)
        return []

    def _remove(self, record: _Record, now_ns: int) -> list[PodEffect]:
        """Report how the containers of a deleted pod ended, and remove the pod."""
        pod = record.pod
        # The scheduler counts a pod that has ended no longer, so the node must not either.
        self._make_room(record)
        self._timers.cancel(pod.uid)
        code = _KILLED_CODE if stopping_of(pod).killed else STOPPED_CODE
        record.containers.stop(pod, now_ns, code)
        phase = record.containers.phase_when_stopped(pod)
        return [_report(record, now_ns, phase=phase), RemovePod(reference(pod))]

    def _address(self, pod: Pod) -> str:
        if pod.status.pod_ip:
            return pod.status.pod_ip
        for _ in range(_POD_ADDRESSES):
            self._next_address = self._next_address % (_POD_ADDRESSES - 1) + 1
            address = str(_POD_NETWORK + self._next_address)
            if address not in self._addresses:
                self._addresses[address] = pod.uid
                return address
        raise AssertionError("more pods than pod addresses")


def reference(pod: Pod) -> ObjectReference:
    """Return the object reference for Events and preconditions."""
    return ObjectReference(
        api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid
    )


def _deadline_ns(record: _Record) -> int | None:
    seconds = record.pod.spec.active_deadline_seconds
    if seconds is None:
        return None
    return parse_rfc3339(record.facts.start_time) + seconds * NS_PER_SECOND


def _report(record: _Record, now_ns: int, phase: Phase | None = None) -> PatchPod:
    status = kubelet_status.report(
        record.pod,
        record.facts,
        record.times,
        record.containers,
        in_force=record.resources,
        now_ns=now_ns,
        phase=phase,
    )
    return PatchPod(reference(record.pod), status)


def _listed(status: Mapping[str, object]) -> list[object]:
    found = status.get("conditions", [])
    assert isinstance(found, list), "built in this room"
    return found


def _soonest(*moments: int | None) -> int:
    return min(moment for moment in moments if moment is not None)


def _internal_ip(node: Node) -> str:
    return next((a.address for a in node.status.addresses if a.type == "InternalIP"), "127.0.0.1")

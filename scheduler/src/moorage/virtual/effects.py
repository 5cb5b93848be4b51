"""Carries decisions out in a model: bindings, evictions and status reports become changes of it.

The scheduler's own parts decide and keep the books (`moorage.service`). Here are the counterparts
of the parts that call an API server: what they would write happens in the model a moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

import msgspec

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.base.clock import rfc3339
from moorage.client.pod_status import changed_condition, with_condition
from moorage.engine.decision import Decision
from moorage.framework.diagnosis import of_one_node
from moorage.framework.status import error
from moorage.service.attempts.failure import FailureHandler
from moorage.service.binding.binding_cycle import Binding, BindingCycles
from moorage.service.binding.evictions import disruption_target
from moorage.service.binding.slots import BindingSlots
from moorage.service.binding.waiting import CallOff
from moorage.service.core import Core
from moorage.service.process.facts import Facts
from moorage.state.lifecycle import PodState
from moorage.virtual.agenda import Agenda, HeldPods

CALL_SECONDS: Final = 0.002
"""Time from a call until its effect is seen: a guess, short next to other waits."""


class Cluster(Protocol):
    """The parts of a model that carrying out a decision needs."""

    def current(self, pod: Pod) -> Pod | None:
        """Return the newest version of a pod, None if it is gone."""
        ...

    def bind(self, pod: Pod, node_name: str) -> bool:
        """Bind a pod; False if it is gone."""
        ...

    def update_pod(self, pod: Pod) -> None:
        """Put a new version of a pod."""
        ...

    def leave(self, pod: Pod, *, by: Pod | None = None) -> None:
        """Delete a pod to make room for another; its owner makes another."""
        ...


class NoSpawning:
    """Spawns nothing: everything that happens in a model is on its agenda."""

    def spawn(self, coro: Coroutine[Any, Any, Any], *, name: str) -> object:
        """Refuse."""
        coro.close()
        raise AssertionError(f"a model spawns nothing, and {name} was to be spawned")


class Bindings(BindingCycles):
    """Reserve and Permit as in a scheduler; the binding itself is noted on the agenda.

    PreBind and Bind are not run. What Reserve noted stays in force: a volume or device that was
    chosen for a pod is chosen for no other.

    Parameters
    ----------
    core, failures, facts, slots
        As in `BindingCycles`.
    cluster, agenda, held_pods
        Binds pods, tells the time, and holds the pods that wait at Permit.
    """

    def __init__(
        self,
        core: Core,
        *,
        failures: FailureHandler,
        facts: Facts,
        slots: BindingSlots,
        cluster: Cluster,
        agenda: Agenda,
        held_pods: HeldPods,
    ) -> None:
        super().__init__(
            core,
            failures=failures,
            tasks=NoSpawning(),
            recorder=None,
            writes=None,
            facts=facts,
            slots=slots,
        )
        self._cluster = cluster
        self._agenda = agenda
        self._held_pods = held_pods
        self._at_permit: dict[str, Binding] = {}

    def carry_on(self) -> None:
        """Bind, or take back, the pods at Permit that were decided about."""
        for uid, status in self._held_pods.take_decided():
            binding = self._at_permit.pop(uid, None)
            if binding is None:
                continue
            if status.ok:
                self._begin(binding)
            else:
                node_name = binding.decision.node_name
                diagnosis = of_one_node(node_name, status) if status.rejected else None
                self._binding_failed(binding, status, diagnosis)

    def _start_binding(self, binding: Binding) -> None:
        if self._waiting.holds_pod(binding.queued.uid):
            self._at_permit[binding.queued.uid] = binding
        else:
            self._begin(binding)

    def _begin(self, binding: Binding) -> None:
        self._goes_on(binding)
        self._queue.end_in_flight(binding.queued.uid)
        self._agenda.after(CALL_SECONDS, lambda: self._end(binding))

    def _end(self, binding: Binding) -> None:
        binding.uncount()
        queued = binding.queued
        if not self._cluster.bind(queued.pod, binding.decision.node_name):
            self._binding_failed(binding, error("the pod is gone"), None)
            return
        self._facts.note_bound()
        if self._cache.lifecycle.state(queued.uid) is PodState.IN_FLIGHT:
            self._queue.end_in_flight(queued.uid)
        self._activate(binding.decision)


class Reports:
    """Takes the status reports about pods without a node; nominations reach the model.

    Attributes
    ----------
    reasons
        Why a pod has no node, by uid.
    """

    def __init__(self, cluster: Cluster, agenda: Agenda, *, now_ns: Callable[[], int]) -> None:
        self._cluster = cluster
        self._agenda = agenda
        self._now_ns = now_ns
        self.reasons: dict[str, str] = {}

    def report_status(
        self, pod: Pod, condition: Condition | None, *, nominated: str | None
    ) -> None:
        """Note the reason, and change the pod's status a moment later."""
        if condition is not None:
            self.reasons[pod.uid] = condition.message
        self._agenda.after(CALL_SECONDS, lambda: self._write_report(pod, condition, nominated))

    def _write_report(self, pod: Pod, condition: Condition | None, nominated: str | None) -> None:
        current = self._cluster.current(pod)
        if current is None or current.spec.node_name:
            return
        status, conditions = current.status, current.status.conditions
        node_name = status.nominated_node_name if nominated is None else nominated
        changed = None
        if condition is not None:
            changed = changed_condition(conditions, condition, now=rfc3339(self._now_ns()))
        if changed is None and node_name == status.nominated_node_name:
            return
        if changed is not None:
            conditions = with_condition(conditions, changed)
        status = msgspec.structs.replace(
            status, conditions=conditions, nominated_node_name=node_name
        )
        self._cluster.update_pod(msgspec.structs.replace(current, status=status))


class Evictions:
    """Evicts the victims of decisions, in the order of `moorage.service.binding.evictions`.

    Parameters
    ----------
    core
        Nominations, the ledger of evictions, and the pods that are not bound yet.
    cluster, agenda
        Evicts pods, a moment later.
    now_ns
        Tells the time, wall-clock nanoseconds.
    """

    def __init__(
        self, core: Core, cluster: Cluster, agenda: Agenda, *, now_ns: Callable[[], int]
    ) -> None:
        self._queue = core.queue
        self._ledger = core.evictions
        preempting = {
            name: profile.preempting[0]
            for name, profile in core.profiles.items()
            if profile.preempting
        }
        self._call_off = CallOff(core.waiting, core.pre_binding, preempting)
        self._cluster = cluster
        self._agenda = agenda
        self._now_ns = now_ns

    def start(self, decision: Decision) -> None:
        """Begin to evict the victims of a decision about a pod."""
        if decision.nomination is not None:
            pod, node_name = decision.pod.pod, decision.nomination.node_name
            self._start_evictions(pod.uid, (pod,), decision.victims, node_name)

    def start_for_group(self, uid: str, pods: Sequence[Pod], victims: Sequence[Pod]) -> None:
        """Begin to evict the victims of a pod group as a whole."""
        self._start_evictions(uid, tuple(pods), victims, "")

    def _start_evictions(
        self, uid: str, preemptors: Sequence[Pod], all_victims: Sequence[Pod], node_name: str
    ) -> None:
        victims = self._ledger.begin_evictions(uid, all_victims)
        if victims:
            self._agenda.after(
                CALL_SECONDS, lambda: self._make_room(uid, preemptors, victims, node_name)
            )

    def _make_room(
        self, uid: str, preemptors: Sequence[Pod], victims: Sequence[Pod], node_name: str
    ) -> None:
        if node_name:
            self._clear_lower_nominations(preemptors[0], node_name)
        what = "pod" if node_name else "podgroup"
        *others, last = victims
        for victim in others:
            self._evict(victim, preemptors[0], what)
        self._ledger.only(uid, last)
        unheard = not self._ledger.running_for(uid)
        self._evict(last, preemptors[0], what)
        last_of_group = self._ledger.end_evictions(uid)
        if unheard or last_of_group:
            self._queue.activate(preemptors)

    def _evict(self, victim: Pod, preemptor: Pod, what: str) -> None:
        if self._call_off(victim.uid, preemptor.spec.scheduler_name):
            return
        self._mark(victim, disruption_target(preemptor.spec.scheduler_name, what))
        self._cluster.leave(victim, by=preemptor)

    def _mark(self, victim: Pod, wanted: Condition) -> None:
        """Note on a victim that it is preempted, or its preemptor would soon preempt again."""
        current = self._cluster.current(victim)
        if current is None:
            return
        conditions = current.status.conditions
        marked = changed_condition(conditions, wanted, now=rfc3339(self._now_ns()))
        if marked is None:
            return
        status = msgspec.structs.replace(
            current.status, conditions=with_condition(conditions, marked)
        )
        self._cluster.update_pod(msgspec.structs.replace(current, status=status))

    def _clear_lower_nominations(self, preemptor: Pod, node_name: str) -> None:
        for pod in list(self._queue.nominator.for_node(node_name)):
            current = self._cluster.current(pod)
            if pod.priority < preemptor.priority and current is not None:
                status = msgspec.structs.replace(current.status, nominated_node_name="")
                self._cluster.update_pod(msgspec.structs.replace(current, status=status))

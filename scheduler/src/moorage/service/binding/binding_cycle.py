"""Carries a decision out: assume, Reserve, Permit, and the binding cycle in a task of its own.

Rules: scheduling spec, cycle sections 2.2 to 2.4 and 5. The watch, not the reply, confirms a
binding; every outcome goes back to the state as a stimulus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from moorage.api.changes import RESERVATION_DELETE
from moorage.api.pod import Pod
from moorage.base.aio import TaskOwner
from moorage.base.errors import CacheCorruptedError, CacheError
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.traced import TRACE
from moorage.engine.decision import Decision, Nomination
from moorage.framework.diagnosis import Diagnosis, of_one_node
from moorage.framework.profile import Profile
from moorage.framework.runner import PermitOutcome, run_permit, run_reserve, run_unreserve
from moorage.framework.runner_binding import (
    Work,
    run_bind,
    run_post_bind,
    run_pre_bind,
    run_pre_bind_pre_flight,
)
from moorage.framework.status import SUCCESS, Code, Status, error
from moorage.service.attempts.attempt_log import bound
from moorage.service.attempts.failure import FailureHandler
from moorage.service.binding.confirmations import Confirmations
from moorage.service.binding.pod_writes import PodWrites, reference
from moorage.service.binding.slots import BindingSlots
from moorage.service.core import Core
from moorage.service.intake.ingest import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE
from moorage.service.process.facts import Facts
from moorage.state.lifecycle import PodState
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

_Failure = tuple[Status, Diagnosis | None]


class Spawns(Protocol):
    """Starts tasks; `TaskOwner` does."""

    def spawn(self, coro: Coroutine[Any, Any, Any], *, name: str) -> object:
        """Start a task."""
        ...


class Binding:
    """One pod between its decision and its binding; the pod holds a slot, or none."""

    __slots__ = ("_has_slot", "_slots", "decision", "profile", "queued")

    def __init__(
        self, profile: Profile, queued: QueuedPod, decision: Decision, slots: BindingSlots
    ) -> None:
        self.profile = profile
        self.queued = queued
        self.decision = decision
        self._slots = slots
        self._has_slot = False

    def count(self) -> None:
        """Take a slot, unless the pod has one."""
        if not self._has_slot:
            self._has_slot = True
            self._slots.take_slot()

    def uncount(self) -> None:
        """Give the slot back, if the pod has one."""
        if self._has_slot:
            self._has_slot = False
            self._slots.free()


class BindingCycles:
    """Carries out decisions to bind.

    Parameters
    ----------
    core
        The state, which is told of every outcome, and the waiting pods.
    failures
        Takes back pods whose attempt ended without a binding.
    tasks
        Owner of the binding tasks.
    recorder, writes
        Events and status patches; None where nothing is written.
    facts
        Totals.
    slots
        Counts the pods whose binding is on its way to the API server.
    confirmations
        Told of bindings that the watch is to confirm; None where missing bindings are not looked
        for.
    """

    def __init__(
        self,
        core: Core,
        *,
        failures: FailureHandler,
        tasks: Spawns,
        recorder: EventRecorder | None,
        writes: PodWrites | None,
        facts: Facts,
        slots: BindingSlots,
        confirmations: Confirmations | None = None,
    ) -> None:
        self._confirmations = confirmations
        self._cache = core.cache
        self._evictions = core.evictions
        self._queue = core.queue
        self._waiting = core.waiting
        self._pre_binding = core.pre_binding
        self._failures = failures
        self._tasks = tasks
        self._recorder = recorder
        self._writes = writes
        self._facts = facts
        self._slots = slots
        self._records = core.recorder
        self._traces = None if core.recorder is None else core.recorder.traces

    def carry_out(self, profile: Profile, queued: QueuedPod, decision: Decision) -> Status:
        """Assume the pod on the chosen node, reserve, ask Permit, and start its binding cycle.

        Returns
        -------
        Status
            Success: the pod's binding has begun. Wait: the pod is assumed and held at Permit; its
            task binds the pod once Permit lets it go. Any other status: everything is undone, and
            the pod is back in the queue.
        """
        node_name, pod = decision.node_name, queued.pod
        try:
            self._cache.assume_pod(pod, node_name)
        except CacheCorruptedError:
            raise
        except CacheError as problem:
            # Another scheduler may have bound the pod while an extender was asked.
            _log.warning("pod %s cannot be assumed: %s", pod.full_name, problem)
            status = error(str(problem))
            self._fail(queued, status, None)
            return status
        nominated = self._queue.nominator.node_of(pod.uid) or ""
        queued.note_nomination(nominated)
        self._queue.nominator.withdraw_nomination(pod)
        self._evictions.forget_victim(pod.uid)
        permit = self._reserve_and_permit(profile, decision)
        status = permit.status
        if not (status.ok or status.code is Code.WAIT):
            self._undo(profile, decision)
            self._fail(queued, status, _diagnosis(decision, status))
            return status
        if permit.waits:
            self._waiting.hold(pod, node_name, permit.waits)
            names = ", ".join(permit.waits)
            self._cache.lifecycle.progress(pod, PodState.WAITING, cause=f"plugin {names}")
            if nominated:
                # Others may wait until this pod is placed. It is bound much later, or never, if
                # one of them is a member of its group.
                self._queue.move_all(ASSIGNED_POD_ADD, None, self._cache.get_pod(pod.uid))
        self._start_binding(Binding(profile, queued, decision, self._slots))
        self._activate(decision)
        return status

    def _reserve_and_permit(self, profile: Profile, decision: Decision) -> PermitOutcome:
        """Run Reserve, and Permit if it succeeded."""
        state, pod, node_name = decision.state, decision.pod, decision.node_name
        points = self._facts.points
        began_ns = points.now_ns()
        status = run_reserve(profile, state, pod, node_name)
        self._ran("Reserve", status, profile, began_ns, pod.uid)
        if not status.ok:
            return PermitOutcome(status)
        began_ns = points.now_ns()
        outcome = run_permit(profile, state, pod, node_name)
        self._ran("Permit", outcome.status, profile, began_ns, pod.uid)
        return outcome

    def _ran(
        self, point: str, status: Status, profile: Profile, began_ns: int, uid: str = ""
    ) -> None:
        """Note how long the plugins of a point took together, also in the record of a pod."""
        took_ns = self._facts.points.ran(point, status.code.text, profile.name, since_ns=began_ns)
        if self._records is not None and uid:
            self._records.stepped(uid, point, status, took_ns=took_ns)

    def _activate(self, decision: Decision) -> None:
        """Activate the pods that plugins put into the cycle state."""
        pods = decision.state.pods_to_activate
        if pods:
            # That a member has a node is no news to its group: it may be turned away again.
            for pod in pods.values():
                self._queue.activate([pod], news=not self._same_group(pod, decision.pod.pod))
            pods.clear()

    def _same_group(self, pod: Pod, other: Pod) -> bool:
        groups = self._cache.groups
        key = groups.key_of(pod)
        return key is not None and groups.key_of(other) == key

    # --- the binding task -----------------------------------------------------------------------

    def _start_binding(self, binding: Binding) -> None:
        if not self._waiting.holds_pod(binding.queued.uid):
            self._goes_on(binding)
        self._tasks.spawn(self._bind(binding), name=f"bind {binding.decision.pod.key}")

    def _goes_on(self, binding: Binding) -> None:
        """Note that a pod is on its way to the API server."""
        pod, node_name = binding.queued.pod, binding.decision.node_name
        self._cache.lifecycle.progress(pod, PodState.BINDING, cause=f"binding to {node_name}")
        binding.count()

    async def _bind(self, binding: Binding) -> None:
        if self._traces is not None:
            TRACE.set(self._traces.trace_of(binding.queued.uid))  # for this task alone
        try:
            failure = await self._contained(binding)
            if failure is None:
                await self._bound(binding)
            else:
                self._binding_failed(binding, *failure)
        finally:
            self._waiting.release(binding.queued.uid)
            binding.uncount()

    async def _contained(self, binding: Binding) -> _Failure | None:
        """Run the binding cycle; an exception does not leave the pod assumed for ever."""
        try:
            return await self._binding_cycle(binding)
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is None or own.cancelling():
                raise
            # This task was not cancelled, but a task that a plugin awaited.
            return error("binding was cancelled by a plugin"), None
        except Exception as problem:
            _log.exception("binding of pod %s broke", binding.queued.pod.full_name)
            return error(str(problem) or type(problem).__name__), None

    async def _binding_cycle(self, binding: Binding) -> _Failure | None:
        """Wait, prepare, bind; return None when the pod is bound, else the failure."""
        profile, decision, uid = binding.profile, binding.decision, binding.queued.uid
        state, pod, node_name = decision.state, decision.pod, decision.node_name
        # 1. Is there anything to prepare? If so, or if the pod has to wait, report its node. A pod
        # that Permit has let go already, like the last members of a group, needs no report.
        points = self._facts.points
        began_ns = points.now_ns()
        ahead = run_pre_bind_pre_flight(profile, state, pod, node_name)
        self._ran("PreBindPreFlight", ahead, profile, began_ns)
        if ahead.code is Code.ERROR or ahead.rejected:
            return ahead, None
        # A member that waits again, without news since its group was rejected, is silent so long.
        silent = self._waiting.holds_pod(uid) and not binding.queued.has_news
        if ahead.ok or self._waiting.find(uid) is not None:
            self._report_node(binding, silent=silent)
        # 2. Wait until Permit lets the pod go. From here on its attempt is not to be repeated.
        if self._waiting.holds_pod(uid):
            began_ns = points.now_ns()
            status = await self._waiting.outcome(uid)
            took_ns = points.waited(status.code.text, since_ns=began_ns)
            if self._records is not None:
                self._records.stepped(uid, "WaitOnPermit", status, took_ns=took_ns)
            if not status.ok:
                return status, _diagnosis(decision, status)
            self._goes_on(binding)
            if silent and ahead.ok:
                self._report_node(binding)
        self._queue.end_in_flight(uid)
        # 3. Prepare, and bind.
        status = SUCCESS
        if ahead.ok:
            began_ns = points.now_ns()
            status = await self._pre_bind(binding)
            self._ran("PreBind", status, profile, began_ns, uid)
        if status.ok and self._writes is not None and self._writes.busy(uid):
            # Writes under way about the pod go first: after the binding, their content is outdated.
            status = await self._unless_called_off(binding, self._settled(uid))
        if not status.ok:
            return status, None
        began_ns = points.now_ns()
        status = await run_bind(profile, state, pod, node_name)
        self._ran("Bind", status, profile, began_ns, uid)
        return None if status.ok else (status, None)

    def _report_node(self, binding: Binding, *, silent: bool = False) -> None:
        """Write the chosen node to the pod, unless the watch has shown it meanwhile."""
        if self._writes is not None and not silent and self._cache.is_assumed(binding.queued.uid):
            node_name = binding.decision.node_name
            self._writes.report_status(binding.queued.pod, None, nominated=node_name)

    async def _pre_bind(self, binding: Binding) -> Status:
        """Run PreBind without a time limit; the pod has no slot meanwhile."""
        decision = binding.decision
        run = run_pre_bind(
            binding.profile,
            decision.state,
            decision.pod,
            decision.node_name,
            together=_together,
        )
        binding.uncount()
        try:
            return await self._unless_called_off(binding, run)
        finally:
            binding.count()

    async def _settled(self, uid: str) -> Status:
        """Wait until the writes about a pod have ended, and give up its reports."""
        if self._writes is not None:
            await self._writes.end_reports(uid)
        return SUCCESS

    async def _unless_called_off(
        self, binding: Binding, run: Coroutine[Any, Any, Status]
    ) -> Status:
        """Prepare a pod for its binding, in a task that a preemptor may call off."""
        uid = binding.queued.uid
        tasks = TaskOwner(on_failure=lambda _name, _problem: None)  # told by the result below
        work = tasks.spawn(run, name=f"prebind {binding.decision.pod.key}")
        self._pre_binding.begin_pod(uid, work)
        try:
            await asyncio.wait([work])
        finally:
            reason = self._pre_binding.end_pod(uid)
            await tasks.cancel_all()
        return error(reason) if reason else work.result()

    async def _bound(self, binding: Binding) -> None:
        """Tell that a pod is bound, and retry the pods that waited for the binding."""
        queued, decision = binding.queued, binding.decision
        self._facts.note_bound()
        if self._records is not None:
            self._records.ended(queued.uid, "bound")
        bound(queued, decision)
        self._facts.attempts.scheduled(
            queued.uid,
            queued.profile,
            attempts=queued.attempts,
            first_attempt_ns=queued.initial_attempt_ns,
        )
        if self._cache.lifecycle.state(queued.uid) is PodState.IN_FLIGHT:
            # Deleted meanwhile: no other part ends its lifecycle.
            self._queue.end_in_flight(queued.uid)
        self._scheduled(queued, decision.node_name)
        if self._confirmations is not None:
            self._confirmations.expect(
                queued.pod,
                decision.node_name,
                take_back=partial(self._take_back, binding),
                gone=self._queue.end_in_flight,
            )
        began_ns = self._facts.points.now_ns()
        await run_post_bind(binding.profile, decision.state, decision.pod, decision.node_name)
        self._ran("PostBind", SUCCESS, binding.profile, began_ns)
        self._activate(decision)

    # --- failure --------------------------------------------------------------------------------

    def _take_back(self, binding: Binding, why: str) -> None:
        """Requeue a pod that is not bound although the server answered its binding with success."""
        self._binding_failed(binding, error(why), None)

    def _binding_failed(
        self, binding: Binding, status: Status, diagnosis: Diagnosis | None
    ) -> None:
        """Undo the attempt, wake pods that what it held may help, and requeue the pod."""
        self._facts.note_bind_failure()
        pod = binding.queued.pod
        freed = self._undo(binding.profile, binding.decision)
        if freed is not None and not status.rejected:
            self._queue.move_all(ASSIGNED_POD_DELETE, freed, None)
        missed = freed is not None and self._is_missed(binding)
        keeps = binding.decision.node_name if missed else ""
        self._fail(binding.queued, status, diagnosis, keeps=keeps)
        wakes = partial(self._wakes, binding, rejected=status.rejected)
        if freed is not None and status.rejected:
            self._queue.move_all(
                ASSIGNED_POD_DELETE,
                freed,
                None,
                precheck=wakes,
                is_news=lambda other: not self._same_group(other, pod),
            )
        # Also where the pod has been removed meanwhile: plugins gave back what they held just now.
        self._queue.move_all(
            RESERVATION_DELETE,
            pod,
            None,
            precheck=wakes,
            is_news=lambda other: not (status.rejected and self._same_group(other, pod)),
        )

    def _wakes(self, binding: Binding, other: Pod, *, rejected: bool) -> bool:
        """Whether what a pod gives back may help another pod.

        A pod that was rejected before this one took the room was rejected with the room free.
        Two groups that wait for the same room would otherwise wake each other for ever.
        """
        queued = binding.queued
        if other.uid == queued.uid:
            return False
        if not rejected or self._same_group(other, queued.pod):
            return True
        return not self._queue.reader.was_tried_before(other, queued)

    def _undo(self, profile: Profile, decision: Decision) -> Pod | None:
        """Undo the changes of the attempt.

        Returns
        -------
        Pod or None
            The pod with the node that it leaves, for the hints; None if the watch has confirmed or
            removed the pod meanwhile.
        """
        run_unreserve(profile, decision.state, decision.pod, decision.node_name)
        try:
            assumed = self._cache.get_pod(decision.pod.uid)
            self._cache.forget_pod(assumed)
        except CacheError as bound:
            _log.info("nothing to take back: %s", bound)
            return None
        return assumed

    def _is_missed(self, binding: Binding) -> bool:
        """Whether a pod's group has too few bound members without the pod.

        The bound members stay, so the pod is to be tried before others. Until then its node is kept
        for the pod, as a nomination.
        """
        groups, pod = self._cache.groups, binding.queued.pod
        if binding.profile.handle.group_mode == "permit":
            return False
        key, terms = groups.key_of(pod), groups.terms_of(pod)
        if key is None or terms is None:
            return False
        return groups.members(key).placed > 0 and groups.missing_for(terms) > 0

    def _fail(
        self, queued: QueuedPod, status: Status, diagnosis: Diagnosis | None, *, keeps: str = ""
    ) -> None:
        message = diagnosis.message if diagnosis is not None else status.message
        if self._records is not None:
            self._records.ended(queued.uid, "requeued", message, status=status)
        self._failures.handle(
            queued, status, diagnosis, message=message, nomination=Nomination(keeps)
        )
        if self._queue.companions is not None:
            self._queue.companions.had_a_node(queued)

    def _scheduled(self, queued: QueuedPod, node_name: str) -> None:
        if self._recorder is None:
            return
        pod = queued.pod
        self._recorder.record_event(
            EventNote(
                regarding=reference(pod),
                controller=pod.spec.scheduler_name,
                type="Normal",
                reason="Scheduled",
                action="Binding",
                note=f"Successfully assigned {pod.full_name} to {node_name}",
            )
        )


async def _together(works: Sequence[Work]) -> Status:
    """Run awaitables at once until one does not succeed; see `moorage.framework.runner_binding`."""
    tasks = TaskOwner(on_failure=lambda _name, _problem: None)  # told by the results below
    running = [tasks.spawn(work, name="one of several PreBinds") for work in works]
    try:
        waiting = set(running)
        while waiting:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                status: Status = SUCCESS if task in waiting else task.result()
                if not status.ok:
                    return status
        return SUCCESS
    finally:
        await tasks.cancel_all()


def _diagnosis(decision: Decision, status: Status) -> Diagnosis | None:
    """Diagnose a rejection by Reserve or Permit; after an error no event may help."""
    return of_one_node(decision.node_name, status) if status.rejected else None

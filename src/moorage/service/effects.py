"""Carries a decision out: assume, Reserve, Permit, and the binding cycle in a task of its own.

Rules: scheduling spec, cycle sections 2.2 to 2.4 and 5. The watch, not the reply, confirms a
binding; every outcome goes back to the state as a stimulus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from moorage.api.codec import encode
from moorage.api.meta import ObjectMeta, ObjectReference
from moorage.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ResourceType,
)
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.errors import (
    CacheCorruptedError,
    CacheError,
    MoorageError,
    NotFoundError,
    RefusedError,
    TransportError,
)
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.requests import MERGE_PATCH
from moorage.client.writes import Client
from moorage.engine.decision import CLEAR_NOMINATION, Decision
from moorage.framework.diagnosis import Diagnosis, of_one_node
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    run_bind,
    run_permit,
    run_post_bind,
    run_pre_bind,
    run_pre_bind_pre_flight,
    run_reserve,
    run_unreserve,
)
from moorage.framework.status import Code, Status, error
from moorage.service.facts import Facts
from moorage.service.failure import FailureHandler
from moorage.service.ingest import ASSIGNED_POD_DELETE
from moorage.service.pod_writes import PodWrites, reference
from moorage.state.cache import Cache
from moorage.state.lifecycle import PodState
from moorage.state.queue import SchedulingQueue
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

# A lost answer is looked after this often, this far apart, before the pod goes back to the queue.
_LOOKS = 5
_LOOK_PAUSE_SECONDS = 1.0


class ApiBinding:
    """The verbs a plugin may await in the binding task, over the API client.

    A binding whose answer was lost may have happened, so the pod is looked at before the attempt
    counts as failed.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.pod_lookup: Callable[[str, str], object | None] | None = None
        """Newest version of a pod by namespace and name; until it is set every pod is there."""

    async def bind_volume(
        self, volume: ObjectMeta, claim: ObjectReference, *, annotations: Mapping[str, str]
    ) -> str:
        """Write a PersistentVolume's claimRef and annotations, at the version given.

        Raises
        ------
        ApiError
            The server refused; ConflictError when the volume has changed.
        TransportError
            No answer.
        """
        metadata = {
            "resourceVersion": volume.resource_version,
            "annotations": dict(annotations),
        }
        return await self._patch(
            PERSISTENT_VOLUMES, volume, {"metadata": metadata, "spec": {"claimRef": claim}}
        )

    async def annotate_claim(self, claim: ObjectMeta, annotations: Mapping[str, str]) -> str:
        """Set annotations of a PersistentVolumeClaim at the version given.

        Raises
        ------
        ApiError
            The server refused; ConflictError when the claim has changed.
        TransportError
            No answer.
        """
        metadata = {"resourceVersion": claim.resource_version, "annotations": dict(annotations)}
        return await self._patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": metadata})

    async def _patch(
        self, resource: ResourceType, obj: ObjectMeta, change: Mapping[str, object]
    ) -> str:
        stored = await self._client.patch(
            resource,
            obj.name,
            encode(change),
            namespace=obj.namespace,
            content_type=MERGE_PATCH,
        )
        metadata = stored.get("metadata")
        return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""

    async def sleep(self, seconds: float) -> None:
        """Wait in the binding task."""
        await aio.sleep(seconds)

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the API still shows a pod of this name."""
        return self.pod_lookup is None or self.pod_lookup(namespace, name) is not None

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node.

        Raises
        ------
        ApiError
            The server refused.
        TransportError
            No answer, and the pod could not be looked at or is not on the node.
        """
        target = ObjectReference(namespace=namespace, name=name, uid=uid)
        try:
            await self._client.bind(target, node_name=node_name)
        except RefusedError:
            raise  # nothing was sent, so there is nothing to look for
        except TransportError as lost:
            if not await self._happened(target.namespace, target.name, uid, node_name):
                raise
            _log.info("binding of %s/%s had happened: %s", namespace, name, lost)

    async def _happened(self, namespace: str, name: str, uid: str, node_name: str) -> bool:
        for _ in range(_LOOKS):
            try:
                found = await self._client.get(PODS, name, namespace=namespace)
            except NotFoundError:
                return False
            except MoorageError:
                await aio.sleep(_LOOK_PAUSE_SECONDS)
                continue
            metadata, spec = found.get("metadata"), found.get("spec")
            same = isinstance(metadata, dict) and metadata.get("uid") == uid
            return same and isinstance(spec, dict) and spec.get("nodeName") == node_name
        return False


class Effects:
    """Carries out decisions to bind.

    Parameters
    ----------
    cache, queue
        The state; told of every outcome.
    failures
        Takes back pods whose attempt ended without a binding.
    tasks
        Owner of the binding tasks.
    recorder, writes
        Events and status patches; None where nothing is written.
    facts
        Totals.
    on_slot
        Called when a binding task ended, so that a pump that waits for room goes on.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        failures: FailureHandler,
        tasks: TaskOwner,
        recorder: EventRecorder | None,
        writes: PodWrites | None,
        facts: Facts,
        on_slot: Callable[[], None],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._failures = failures
        self._tasks = tasks
        self._recorder = recorder
        self._writes = writes
        self._facts = facts
        self._on_slot = on_slot
        self.binding = 0
        """Number of binding tasks that have not ended."""

    def carry_out(self, profile: Profile, queued: QueuedPod, decision: Decision) -> None:
        """Assume the pod on the chosen node, reserve, and start its binding cycle."""
        node_name, pod = decision.node_name, queued.pod
        try:
            self._cache.assume_pod(pod, node_name)
        except CacheCorruptedError:
            raise
        except CacheError as problem:
            _log.error("pod %s cannot be assumed: %s", pod.full_name, problem)
            self._fail(queued, error(str(problem)), None)
            return
        self._queue.nominator.delete(pod)
        status = run_reserve(profile, decision.state, decision.pod, node_name)
        if status.ok:
            permit = run_permit(profile, decision.state, decision.pod, node_name)
            status = permit.status
            if status.code is Code.WAIT:
                names = ", ".join(sorted(permit.waits))
                status = error(
                    f"plugin {names} asked to wait at Permit, which moorage does not do yet; "
                    "disable it or let it answer Success or Unschedulable"
                )
        if not status.ok:
            self._undo(profile, decision)
            diagnosis = of_one_node(node_name, status) if status.rejected else None
            self._fail(queued, status, diagnosis)
            return
        self._cache.lifecycle.progress(pod, PodState.BINDING, cause=f"binding to {node_name}")
        self.binding += 1
        self._tasks.spawn(self._bind(profile, queued, decision), name=f"bind {decision.pod.key}")

    async def _bind(self, profile: Profile, queued: QueuedPod, decision: Decision) -> None:
        try:
            status = await self._contained(profile, queued, decision)
            if status.ok:
                self._facts.bound += 1
                if self._cache.lifecycle.state(queued.uid) is PodState.IN_FLIGHT:
                    self._queue.done(queued.uid)  # deleted meanwhile: nobody else will end it
                self._scheduled(queued, decision.node_name)
                await run_post_bind(profile, decision.state, decision.pod, decision.node_name)
            else:
                self._binding_failed(profile, queued, decision, status=status)
        finally:
            self.binding -= 1
            self._on_slot()

    async def _contained(self, profile: Profile, queued: QueuedPod, decision: Decision) -> Status:
        """Run the binding cycle; whatever breaks in it, the pod is not left assumed for ever."""
        try:
            return await self._binding_cycle(profile, queued, decision)
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is None or own.cancelling():
                raise
            # Not this task was cancelled, but something a plugin awaited.
            return error("binding was cancelled by a plugin")
        except Exception as problem:
            _log.exception("binding of pod %s broke", queued.pod.full_name)
            return error(str(problem) or type(problem).__name__)

    async def _binding_cycle(
        self, profile: Profile, queued: QueuedPod, decision: Decision
    ) -> Status:
        state, pod, node_name = decision.state, decision.pod, decision.node_name
        ahead = run_pre_bind_pre_flight(profile, state, pod, node_name)
        if ahead.code is Code.ERROR or ahead.rejected:
            return ahead
        wanted = bool(profile.pre_binds) and self._cache.is_assumed(queued.uid)
        if ahead.ok and self._writes is not None and wanted:
            self._writes.report_status(queued.pod, None, nominated=node_name)
        self._queue.done(queued.uid)
        if profile.pre_binds:
            status = await run_pre_bind(profile, state, pod, node_name)
            if not status.ok:
                return status
        if self._writes is not None:
            # What is still on its way about the pod was true before; after the binding it is not.
            await self._writes.settled(queued.uid)
        return await run_bind(profile, state, pod, node_name)

    def _binding_failed(
        self, profile: Profile, queued: QueuedPod, decision: Decision, *, status: Status
    ) -> None:
        """Undo, wake others that the freed room may help, and return the pod to the queue."""
        self._facts.bind_failures += 1
        freed = self._undo(profile, decision)
        pod = queued.pod
        if freed and not status.rejected:
            self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        self._fail(queued, status, None)
        if freed and status.rejected:
            others = pod.metadata.uid
            self._queue.move_all(
                ASSIGNED_POD_DELETE, pod, None, precheck=lambda other: other.uid != others
            )

    def _undo(self, profile: Profile, decision: Decision) -> bool:
        """Take back what the attempt did; False if the watch has confirmed the pod meanwhile."""
        run_unreserve(profile, decision.state, decision.pod, decision.node_name)
        try:
            self._cache.forget_pod(decision.pod.pod)
        except CacheError as bound:
            _log.info("nothing to take back: %s", bound)
            return False
        return True

    def _fail(self, queued: QueuedPod, status: Status, diagnosis: Diagnosis | None) -> None:
        message = diagnosis.message if diagnosis is not None else status.message
        self._failures.handle(
            queued, status, diagnosis, message=message, nomination=CLEAR_NOMINATION
        )

    def _scheduled(self, queued: QueuedPod, node_name: str) -> None:
        if self._recorder is None:
            return
        pod = queued.pod
        self._recorder.record(
            EventNote(
                regarding=reference(pod),
                controller=pod.spec.scheduler_name,
                type="Normal",
                reason="Scheduled",
                action="Binding",
                note=f"Successfully assigned {pod.full_name} to {node_name}",
            )
        )

"""Jobs: pods until enough have succeeded, or too many failed, or the time is up.

``job_steps`` and ``job_pods`` decide; this module watches and writes. Retries after failures are
spaced as upstream: 10 s, doubling up to 10 minutes.

Rules: kubernetes v1.36 pkg/controller/job and pkg/controller/ttlafterfinished.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.api.resources import JOBS, PODS
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.base.errors import NotFoundError
from moorage.client.objects import Key, key_of
from moorage.client.requests import patch_body
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.jobs.job_bodies import index_bodies, pod_bodies
from moorage.workloads.jobs.job_indexes import backoff_seconds, fails_by_index
from moorage.workloads.jobs.job_pods import TRACKED, is_indexed, is_tracked, write_indexes
from moorage.workloads.jobs.job_steps import (
    COMPLETE,
    SUSPENDED,
    JobEnd,
    Tally,
    counts,
    deadline_in,
    end_of,
    finished,
    is_ours,
    missing,
    superfluous,
    tally,
    ttl_in,
    with_condition,
)
from moorage.workloads.objects import Json, ViewedPod, Whole
from moorage_sandbox.controllers.pod_control import PodControl, in_batches

_NO_JOB: Final = ""
_BURST: Final = 500  # pods created in one go, as upstream


class JobController(Controller):
    """Keeps the pods of jobs."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="job-controller", resource=JOBS)
        self._jobs = around.views.view_of(JOBS, Whole)
        self._pods = around.views.view_of(PODS, ViewedPod)
        self._control = PodControl(self, self._jobs, self._pods, finalizers=[TRACKED])
        # Job -> (failures since the last success, time of the last failure).
        self._failures: dict[Key, tuple[int, int]] = {}
        # Deleted job -> its tracked pods: only this controller removes their finalizer. Pods that
        # no job owns are under a name that no job has.
        self._strays: dict[Key, dict[Key, None]] = {}
        self.follow(self._jobs)
        self._jobs.tell(self._job_changed)
        self._pods.tell(self._pod_changed)

    # --- following --------------------------------------------------------------------------

    def _job_changed(self, old: Whole | None, new: Whole | None) -> None:
        if new is None and old is not None:
            for pod in self._pods.owned_by(old.metadata.uid):
                self._stray(pod, key_of(old))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not is_tracked(new) or self._is_owned(new):
            return
        owner = new.metadata.controller
        if owner is None or owner.kind == JOBS.kind:
            self._stray(new, (new.namespace, owner.name if owner is not None else _NO_JOB))

    def _is_owned(self, pod: Pod) -> bool:
        """Whether a job that exists owns a pod."""
        owner = pod.metadata.controller
        if owner is None:
            return False
        job = self._jobs.objects.get((pod.namespace, owner.name))
        return job is not None and job.metadata.uid == owner.uid

    def _stray(self, pod: Pod, job: Key) -> None:
        if is_tracked(pod):
            self._strays.setdefault(job, {})[key_of(pod)] = None
            self.queue.add(job)

    # --- working ----------------------------------------------------------------------------

    async def sync(self, key: Key) -> float | None:
        """Count pods, create or delete some, and write the status."""
        job = self._jobs.objects.get(key)
        await self._release_strays(key)
        if job is None:
            self._control.expectations.forget(key)
            self._failures.pop(key, None)
            return None
        if not is_ours(job):
            return None
        pods = await self._control.claim(job)
        if finished(job):
            return await self._clean_up(job, pods)
        return await self._go_on(job, pods)

    async def _go_on(self, job: Whole, pods: list[Pod]) -> float | None:
        now_ns = self.clock.now_ns()
        pod_tally = tally(job, pods)
        self._count_failures(job, pod_tally, now_ns)
        end = end_of(job, pod_tally, now_ns)
        suspended = bool(job.spec.get("suspend")) and end is None
        wait: float | None = None
        if job.metadata.deletion_timestamp is None and self._control.expectations.fulfilled(
            key_of(job)
        ):
            if end is not None:
                await self._control.delete_pods(job, pod_tally.active)
            elif suspended:
                await self._take_back(job, pod_tally.active)
            else:
                wait = await self._manage(job, pod_tally, now_ns)
        status = self._status(job, pod_tally, end, suspended=suspended, now_ns=now_ns)
        await self._write_status(job, status, end)
        await self._release(
            pod_tally.to_release if end is None else self._all_tracked(pods, pod_tally)
        )
        waits = [each for each in (wait, deadline_in(job, now_ns)) if each is not None]
        return max(0.0, min(waits)) if waits and end is None else None

    def _all_tracked(self, pods: list[Pod], tally_now: Tally) -> list[Pod]:
        """Return the pods that an ending job releases: ended pods and pods being deleted."""
        noted = {pod.metadata.uid for pod in tally_now.to_release}
        return [
            pod
            for pod in pods
            if is_tracked(pod) and (pod.metadata.uid in noted or pod.metadata.deletion_timestamp)
        ]

    async def _manage(self, job: Whole, tally_now: Tally, now_ns: int) -> float | None:
        """Create or delete pods; return the seconds to wait before more may be created."""
        number = missing(job, tally_now)
        if gone := superfluous(job, tally_now.active, at_least=max(0, -number), now_ns=now_ns):
            await self._take_back(job, gone)
        elif number > 0:
            number = min(number, _BURST)
            if fails_by_index(job):
                bodies, pause = index_bodies(job, tally_now, number, now_ns)
                await self._control.create_pods(job, bodies)
                return pause or None
            wait = self._backoff_left(key_of(job), now_ns)
            if wait > 0:
                return wait
            await self._control.create_pods(job, pod_bodies(job, tally_now, number))
        return None

    async def _take_back(self, job: Whole, pods: list[Pod]) -> None:
        """Delete pods that are not needed now; without a finalizer they do not count as failed."""
        await self._release(pods)
        await self._control.delete_pods(job, pods)

    def _count_failures(self, job: Whole, tally_now: Tally, now_ns: int) -> None:
        key = key_of(job)
        if tally_now.new_success:
            self._failures.pop(key, None)
        if tally_now.new_failures:
            count, _ = self._failures.get(key, (0, 0))
            self._failures[key] = (count + len(tally_now.new_failures), now_ns)

    def _backoff_left(self, key: Key, now_ns: int) -> float:
        count, last_ns = self._failures.get(key, (0, 0))
        return backoff_seconds(count) - (now_ns - last_ns) / NS_PER_SECOND if count else 0.0

    # --- the status -------------------------------------------------------------------------

    def _status(
        self, job: Whole, tally_now: Tally, end: JobEnd | None, *, suspended: bool, now_ns: int
    ) -> Json:
        status = counts(job, tally_now)
        if is_indexed(job):
            status["completedIndexes"] = write_indexes(tally_now.indexes) or None
        if fails_by_index(job):
            status["failedIndexes"] = write_indexes(tally_now.failed_indexes)
        conditions: list[Json] = list(job.status.get("conditions") or [])
        was_suspended = any(
            each.get("type") == SUSPENDED and each.get("status") == "True" for each in conditions
        )
        if suspended:
            said = ("True", "JobSuspended", "Job suspended")
            conditions = with_condition(conditions, SUSPENDED, said, now_ns)
        elif was_suspended:
            said = ("False", "JobResumed", "Job resumed")
            conditions = with_condition(conditions, SUSPENDED, said, now_ns)
        if not suspended and (was_suspended or not job.status.get("startTime")):
            status["startTime"] = rfc3339(now_ns)
        if end is not None:
            interim = "SuccessCriteriaMet" if end.kind == COMPLETE else "FailureTarget"
            said = ("True", end.reason, end.message)
            conditions = with_condition(conditions, interim, said, now_ns)
            if not (tally_now.active or tally_now.terminating or tally_now.to_release):
                conditions = with_condition(conditions, end.kind, said, now_ns)
                if end.kind == COMPLETE:
                    status["completionTime"] = rfc3339(now_ns)
        status["conditions"] = conditions
        return status

    async def _write_status(self, job: Whole, status: Json, end: JobEnd | None) -> None:
        if not status["conditions"]:
            del status["conditions"]
        await self.write_status(job, status)
        kinds = {each["type"] for each in status.get("conditions", ())}
        if end is not None and end.kind in kinds:
            if end.kind == COMPLETE:
                self.emit_event(job, "Completed", "Job completed")
            else:
                self.emit_event(job, end.reason, end.message, kind="Warning")
        before = {
            (each.get("type"), each.get("status")) for each in job.status.get("conditions") or []
        }
        for each in status.get("conditions", ()):
            if each["type"] == SUSPENDED and (SUSPENDED, each["status"]) not in before:
                self.emit_event(job, each["reason"].removeprefix("Job"), each["message"])

    # --- finalizers -------------------------------------------------------------------------

    async def _release(self, pods: list[Pod]) -> None:
        await in_batches([partial(self._release_one, pod) for pod in pods if is_tracked(pod)])

    async def _release_one(self, pod: Pod, *, unchanged: bool = False) -> None:
        change = {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKED]}
        if unchanged:
            change["resourceVersion"] = pod.metadata.resource_version
        try:
            await self.client.patch(
                PODS, pod.name, patch_body({"metadata": change}), namespace=pod.namespace
            )
        except NotFoundError:
            return

    async def _release_strays(self, key: Key) -> None:
        """Release the pods that no job owns, or only a job that is gone.

        A pod without an owner may be adopted at the same time; then the version is another one.
        """
        for pod_key in list(self._strays.get(key, ())):
            pod = self._pods.objects.get(pod_key)
            if pod is not None and is_tracked(pod) and not self._is_owned(pod):
                await self._release_one(pod, unchanged=pod.metadata.controller is None)
            self._strays[key].pop(pod_key, None)
        if key in self._strays and not self._strays[key]:
            del self._strays[key]

    async def _clean_up(self, job: Whole, pods: list[Pod]) -> float | None:
        """Release the remaining pods, and delete a job whose time to live is over."""
        self._failures.pop(key_of(job), None)
        await self._release([pod for pod in pods if is_tracked(pod)])
        left = ttl_in(job, self.clock.now_ns())
        if left is None or job.metadata.deletion_timestamp is not None:
            return None
        if left > 0:
            return left
        arguments: dict[str, Any] = {"uid": job.metadata.uid, "propagation": "Foreground"}
        await self.client.delete(JOBS, job.name, namespace=job.namespace, **arguments)
        return None

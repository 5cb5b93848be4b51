"""CronJobs: creates a Job at each scheduled time, and deletes finished Jobs beyond the limits.

Rules: kubernetes v1.36 pkg/controller/cronjob/cronjob_controllerv2.go and utils.go.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.api.resources import CRON_JOBS, JOBS
from moorage.api.schedules.cron_schedule import Schedule, read_schedule
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339, rfc3339
from moorage.base.errors import NotFoundError
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.jobs.job_steps import COMPLETE, finished
from moorage.workloads.objects import Json, Whole, owner_reference

_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# The sync is this much later than the scheduled time, so that the scheduled time has passed.
_LATER_SECONDS: Final = 0.1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class CronJobController(Controller):
    """Makes jobs of cron jobs."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="cronjob-controller", resource=CRON_JOBS)
        self._cron_jobs = around.views.view_of(CRON_JOBS, Whole)
        self._jobs = around.views.view_of(JOBS, Whole)
        self.follow(self._cron_jobs)
        self._jobs.tell(self._job_changed)

    def _job_changed(self, old: Whole | None, new: Whole | None) -> None:
        job = new or old
        owner = job.metadata.controller if job is not None else None
        if job is not None and owner is not None and owner.kind == CRON_JOBS.kind:
            self.queue.add((job.namespace, owner.name))

    async def sync(self, key: Key) -> float | None:
        """Tidy up, and start the job that is due."""
        cron_job = self._cron_jobs.objects.get(key)
        if cron_job is None or cron_job.metadata.deletion_timestamp is not None:
            return None
        jobs = self._jobs.owned_by(cron_job.metadata.uid)
        await self._forget_old(cron_job, jobs)
        status = _status(cron_job, jobs)
        schedule = self._schedule(cron_job)
        if schedule is None or cron_job.spec.get("suspend"):
            await self.write_status(cron_job, status)
            return None
        now = _moment(self.clock.now_ns())
        due = _due(cron_job, schedule, now)
        if due is not None:
            await self._start_job(cron_job, due, jobs, status, now)
        await self.write_status(cron_job, status)
        following = schedule.after(now)
        if following is None:
            return None
        return (following - now).total_seconds() + _LATER_SECONDS

    def _schedule(self, cron_job: Whole) -> Schedule | None:
        try:
            zone = ZoneInfo(cron_job.spec["timeZone"]) if cron_job.spec.get("timeZone") else UTC
        except (ZoneInfoNotFoundError, ValueError):
            text = f"invalid timeZone: {cron_job.spec['timeZone']}"
            self.emit_event(cron_job, "UnknownTimeZone", text, kind="Warning")
            return None
        try:
            return read_schedule(cron_job.spec["schedule"], zone)
        except ValueError as error:
            text = f"unparseable schedule: {cron_job.spec['schedule']} : {error}"
            self.emit_event(cron_job, "UnparseableSchedule", text, kind="Warning")
            return None

    async def _start_job(
        self, cron_job: Whole, due: datetime, jobs: list[Whole], status: Json, now: datetime
    ) -> None:
        """Start the job of a moment, if it is not too late and the policy allows it."""
        stamp = rfc3339(_nanoseconds(due))
        late = cron_job.spec.get("startingDeadlineSeconds")
        if late is not None and due + timedelta(seconds=late) < now:
            text = f"Missed scheduled time to start a job: {stamp}"
            self.emit_event(cron_job, "MissSchedule", text, kind="Warning")
            return
        name = f"{cron_job.name}-{_nanoseconds(due) // NS_PER_SECOND // 60}"
        active = [job for job in jobs if not finished(job)]
        policy = cron_job.spec.get("concurrencyPolicy")
        if any(job.name == name for job in jobs):
            # The job of this moment exists already; the view was behind when its status was
            # written.
            status["lastScheduleTime"] = stamp
            return
        if policy == "Forbid" and active:
            text = "Not starting job because prior execution is running and concurrency policy is"
            self.emit_event(cron_job, "JobAlreadyActive", f"{text} Forbid")
            return
        if policy == "Replace":
            for job in active:
                await self._delete(cron_job, job)
            status["active"] = None
        body = _job(cron_job, name, stamp)
        made: Any = await self.client.create(JOBS, body, namespace=cron_job.namespace)
        self.emit_event(cron_job, "SuccessfulCreate", f"Created job {name}", action=name)
        reference = _reference(name, cron_job.namespace, made["metadata"]["uid"])
        status["active"] = [*(status["active"] or []), reference]
        status["lastScheduleTime"] = stamp

    async def _delete(self, cron_job: Whole, job: Whole) -> None:
        try:
            await self.client.delete(
                JOBS, job.name, namespace=job.namespace, propagation="Background"
            )
        except NotFoundError:
            return
        self.emit_event(cron_job, "SuccessfulDelete", f"Deleted job {job.name}", action=job.name)

    async def _forget_old(self, cron_job: Whole, jobs: list[Whole]) -> None:
        """Delete finished jobs beyond the history limits, the oldest first."""
        for limit, complete in (
            ("successfulJobsHistoryLimit", True),
            ("failedJobsHistoryLimit", False),
        ):
            history_limit = cron_job.spec.get(limit)
            done = [
                job
                for job in jobs
                if finished(job)
                and _is_complete(job) is complete
                and job.metadata.deletion_timestamp is None
            ]
            done.sort(key=lambda job: (str(job.status.get("startTime") or ""), job.name))
            if history_limit is not None:
                for job in done[: max(len(done) - history_limit, 0)]:
                    await self._delete(cron_job, job)


def _status(cron_job: Whole, jobs: list[Whole]) -> Json:
    """Return the status that follows from the existing jobs."""
    active = [
        _reference(job.name, job.namespace, job.metadata.uid) for job in jobs if not finished(job)
    ]
    ended = [str(job.status["completionTime"]) for job in jobs if job.status.get("completionTime")]
    before = cron_job.status.get("lastSuccessfulTime")
    return {
        "active": active or None,
        "lastScheduleTime": cron_job.status.get("lastScheduleTime"),
        "lastSuccessfulTime": max([*ended, *([before] if before else [])], default=None),
    }


def _due(cron_job: Whole, schedule: Schedule, now: datetime) -> datetime | None:
    """Return the latest scheduled time since the last job was started; None if there is none."""
    since = cron_job.status.get("lastScheduleTime") or cron_job.metadata.creation_timestamp
    last = schedule.last_until(now)
    if last is None or last <= _moment(parse_rfc3339(str(since))):
        return None
    return last


def _job(cron_job: Whole, name: str, stamp: str) -> Json:
    template = cron_job.spec.get("jobTemplate") or {}
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), _SCHEDULED_AT: stamp}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": name,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": annotations,
            "ownerReferences": [owner_reference(cron_job, CRON_JOBS)],
        },
        "spec": template.get("spec") or {},
    }


def _reference(name: str, namespace: str, uid: str) -> Json:
    kind = {"apiVersion": JOBS.api_version, "kind": JOBS.kind}
    return {**kind, "name": name, "namespace": namespace, "uid": uid}


def _is_complete(job: Whole) -> bool:
    return any(
        each.get("type") == COMPLETE and each.get("status") == "True"
        for each in job.status.get("conditions") or []
    )


def _moment(ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=ns // 1000)


def _nanoseconds(moment: datetime) -> int:
    return round((moment - _EPOCH).total_seconds()) * NS_PER_SECOND

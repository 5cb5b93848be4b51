"""Keeps the pods of Jobs in a model, with the planner of their controller.

Containers do not end in a model, so a Job loses pods only to changes and to preemption. Such a
pod counts as failed: it may be replaced after a pause, or end the Job.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from moorage.api.codec import decode
from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.client.pod_status import with_condition
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key, is_finished
from moorage.virtual.owner_kinds import JOB, kind_of
from moorage.what_if.rules.bounds import Bounds
from moorage.workloads.jobs.job_bodies import index_bodies, pod_bodies
from moorage.workloads.jobs.job_indexes import backoff_seconds, fails_by_index
from moorage.workloads.jobs.job_pods import INDEX, TRACKED, index_of
from moorage.workloads.jobs.job_steps import (
    FAILED,
    Tally,
    end_of,
    finished,
    interim,
    is_ours,
    makes_pods,
    missing,
    tally,
)
from moorage.workloads.objects import Whole

# The pause after several failures grows up to ten minutes. Here a shorter time stands for it,
# because a model would end before.
_PAUSE_SECONDS_MAX: Final = 100.0


class Jobs:
    """Makes and deletes pods whenever a pod of a Job has gone or is going.

    How often a Job failed before is known from its status; how long it pauses now is not.

    Parameters
    ----------
    model
        Holds the pods.
    bounds
        Puts pods as their namespaces allow.

    Attributes
    ----------
    failures
        Why Jobs have failed in the model, by their uid.
    """

    def __init__(self, model: ClusterModel, bounds: Bounds) -> None:
        self._model = model
        self._bounds = bounds
        self.failures: dict[str, str] = {}
        self._at_work: set[Key] = set()
        # Job -> its pods that left, and of these the pods that no other pod follows yet.
        self._left: dict[Key, list[Pod]] = {}
        self._unfollowed: dict[Key, list[Pod]] = {}
        # Job -> number of failures so far, and the time of the last one.
        self._pauses: dict[Key, tuple[int, int]] = {}
        model.changes.append(self._pod_changed)

    def continue_from(self, earlier: Jobs) -> None:
        """Take over the failures so far, under another configuration."""
        self.failures.update(earlier.failures)
        self._left.update(earlier._left)

    def sync_soon(self, key: Key) -> None:
        """Look at a Job a call later."""
        if key not in self._at_work:
            self._at_work.add(key)
            self._model.soon(lambda: self._look(key))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None, "a change is about something"
        owner = pod.metadata.controller
        if owner is None or kind_of(owner) != JOB or is_finished(pod):
            return
        key = (pod.namespace, owner.name)
        was_going = old is not None and old.metadata.deletion_timestamp is not None
        if new is None:
            self._left.setdefault(key, []).append(self._failed(pod))
        elif was_going or not new.metadata.deletion_timestamp:
            return
        if pod.uid in self._model.evictions and not was_going:
            self._unfollowed.setdefault(key, []).append(pod)
        self.sync_soon(key)

    def _failed(self, pod: Pod) -> Pod:
        """Return a pod that left as its kubelet, or the pod garbage collector, leaves it."""
        conditions = list(pod.status.conditions)
        eviction = self._model.evictions.get(pod.uid)
        if eviction is not None and not eviction.deleted:
            conditions = list(
                with_condition(conditions, Condition(type="DisruptionTarget", status="True"))
            )
        now = rfc3339(self._model.virtual_now_ns)
        metadata = msgspec.structs.replace(
            pod.metadata,
            finalizers=[TRACKED],
            deletion_timestamp=pod.metadata.deletion_timestamp or now,
        )
        status = msgspec.structs.replace(pod.status, phase="Failed", conditions=conditions)
        return msgspec.structs.replace(pod, metadata=metadata, status=status)

    def foreign_manager(self, pod: Pod) -> str:
        """Return the Job of a pod and its controller, "" if that is Kubernetes' own."""
        owner = pod.metadata.controller
        if owner is None or kind_of(owner) != JOB:
            return ""
        text = self._model.objects.manifests.get(JOB, {}).get((pod.namespace, owner.name))
        job = None if text is None else decode(Whole, text)
        if job is None or is_ours(job):
            return ""
        return f"Job {job.name} (managed by {job.spec['managedBy']})"

    # --- deciding -------------------------------------------------------------------------------

    def _look(self, key: Key) -> None:
        self._at_work.discard(key)
        text = self._model.objects.manifests.get(JOB, {}).get(key)
        if text is None:
            return
        job = decode(Whole, text)
        if finished(job) or interim(job) or not makes_pods(job):
            return
        now_ns = self._model.virtual_now_ns
        count = tally(job, self._pods(key, job.metadata.uid))
        end = end_of(job, count, now_ns)
        if end is None:
            self._fill_up(job, count, key=key)
            return
        if end.kind == FAILED:
            why = f"Job {job.name} fails: {end.message}"
            self.failures.setdefault(job.metadata.uid, why)
        self._bounds.forget_refused(job.metadata.uid)
        for pod in count.active:
            self._model.leave(pod, deleted=True)

    def _pods(self, key: Key, uid: str) -> list[Pod]:
        pods = {
            pod.uid: pod
            for pod in self._model.objects.pods.values()
            if (owner := pod.metadata.controller) is not None and owner.uid == uid
        }
        left = (pod for pod in self._left.get(key, ()) if pod.uid not in pods)
        return [*pods.values(), *left]

    def _fill_up(self, job: Whole, count: Tally, *, key: Key) -> None:
        """Make the pods that a Job lacks, or look again when its pause is over."""
        number = missing(job, count) - len(self._bounds.refused_of(job.metadata.uid))
        if number <= 0:
            return
        now_ns = self._model.virtual_now_ns
        bodies, pause = list[dict[str, Any]](), self._pause(key, count, now_ns)
        if fails_by_index(job):
            bodies, pause = index_bodies(job, count, number, now_ns)
        elif pause <= 0:
            bodies = pod_bodies(job, count, number)
        for body in bodies:
            self._follow(key, body)
            self._bounds.make(body)
        if pause > 0:
            seconds = min(pause, _PAUSE_SECONDS_MAX)
            due_ns = now_ns + round(seconds * NS_PER_SECOND)
            self._model.call_at(due_ns, partial(self._end_pause, key))

    def _pause(self, key: Key, count: Tally, now_ns: int) -> float:
        """Return the seconds until a Job may make pods again; not positive when it may now."""
        failures = len(count.new_failures)
        known, since_ns = self._pauses.get(key, (0, now_ns))
        if failures > known:
            known, since_ns = self._pauses[key] = (failures, now_ns)
        return backoff_seconds(known) - (now_ns - since_ns) / NS_PER_SECOND if known else 0.0

    def _end_pause(self, key: Key) -> None:
        """Look at a Job whose pause is over; a long one counts as over, too."""
        failures, _ = self._pauses.get(key, (0, 0))
        self._pauses[key] = (failures, 0)
        self.sync_soon(key)

    def _follow(self, key: Key, body: dict[str, Any]) -> None:
        """Name a pod that follows one that left, of the same index if the Job has indexes."""
        unfollowed, metadata = self._unfollowed.get(key, []), body["metadata"]
        index = (metadata.get("labels") or {}).get(INDEX)
        for pod in unfollowed:
            if index is None or str(index_of(pod)) == index:
                unfollowed.remove(pod)
                metadata["name"] = self._model.name_successor(metadata["generateName"], pod)
                return

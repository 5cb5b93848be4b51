"""Plays jobs on one node, under the scheduler's own cycle: each job is a pod of so many cpus."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from moorage.api.codec import encode
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import ClusterObjects
from moorage_lab.traces.jobs.swf import Job

_NAMESPACE: Final = "jobs"


class PlayedJob(msgspec.Struct, frozen=True):
    """A job, and when it started; seconds of the trace."""

    job: Job
    start: float

    @property
    def wait(self) -> float:
        """Seconds that the job waited."""
        return self.start - self.job.submit

    @property
    def end(self) -> float:
        """The second at which the job ended."""
        return self.start + self.job.run


def play_jobs(jobs: Sequence[Job], processors: int) -> list[PlayedJob]:
    """Return when each job started, in the order in which they came."""
    return _Replay(jobs, processors).play()


class _Replay:
    def __init__(self, jobs: Sequence[Job], processors: int) -> None:
        self._jobs = sorted(jobs, key=lambda job: (job.submit, job.number))
        self._begin = self._jobs[0].submit
        objects = ClusterObjects()
        amounts = {"cpu": str(processors), "pods": "100000"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "n"}}
        objects.add_json(encode({**node, "status": {"allocatable": amounts, "capacity": amounts}}))
        self._model = ClusterModel(ClusterInputs(objects=objects, registry=in_tree_registry()))
        self._begin_ns = self._model.virtual_now_ns
        self._starts: dict[int, float] = {}
        self._by_uid: dict[str, Job] = {}
        self._model.changes.append(self._pod_changed)

    def play(self) -> list[PlayedJob]:
        for job in self._jobs:
            due_ns = self._begin_ns + round((job.submit - self._begin) * NS_PER_SECOND)
            self._model.call_at(due_ns, partial(self._arrive, job))
        self._model.run(lambda: len(self._starts) < len(self._jobs))
        return [PlayedJob(job, self._starts[job.number]) for job in self._jobs]

    def _arrive(self, job: Job) -> None:
        pod: Pod = _pod_of(job)
        self._by_uid[pod.uid] = job
        self._model.add_pod(pod)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.spec.node_name or (old is not None and old.spec.node_name):
            return
        job = self._by_uid[new.uid]
        now_ns = self._model.virtual_now_ns
        self._starts[job.number] = self._begin + (now_ns - self._begin_ns) / NS_PER_SECOND
        end_ns = now_ns + round(job.run * NS_PER_SECOND)
        self._model.call_at(end_ns, partial(self._model.drop_pod, new))


def _pod_of(job: Job) -> Pod:
    name = f"job-{job.number}"
    manifest = {
        "metadata": {"name": name, "namespace": _NAMESPACE, "uid": name},
        "spec": {
            "schedulerName": "default-scheduler",
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"requests": {"cpu": str(job.processors)}},
                }
            ],
        },
        "status": {"phase": "Pending"},
    }
    return msgspec.json.decode(msgspec.json.encode(manifest), type=Pod)

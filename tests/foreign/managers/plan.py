"""What each manager does for a job set, apart from its client: the Job, the status, the lease."""

from __future__ import annotations

import json
import sys
from typing import Any

GROUP, VERSION, PLURAL, KIND = "sets.example.com", "v1", "jobsets", "JobSet"
LEASE_NAMESPACE = "sets-system"


def lease(name: str) -> dict[str, Any]:
    """Return the lease that a manager takes when it starts."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 15},
    }


def job_of(job_set: dict[str, Any]) -> dict[str, Any]:
    """Return the Job of a job set, which owns it."""
    meta, spec = job_set["metadata"], job_set["spec"]
    assert spec["successPolicy"] == {"operator": "All"}, "the webhook sets the default"
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    container = {"name": "main", "image": "worker", "command": ["sleep", "0.2"]}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{meta['name']}-workers",
            "namespace": meta["namespace"],
            "ownerReferences": [owner],
        },
        "spec": {
            "parallelism": spec["replicas"],
            "completions": spec["replicas"],
            "template": pod,
        },
    }


def is_complete(job: dict[str, Any]) -> bool:
    """Whether a Job is complete."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return ("Complete", "True") in {(each["type"], each["status"]) for each in conditions}


def status_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return the patch of the status of a job set whose Job is complete."""
    succeeded = job["status"]["succeeded"]
    condition = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted"}
    return {"status": {"conditions": [condition], "succeeded": succeeded}}


def tell(*words: object) -> None:
    """Print a line for the test."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()

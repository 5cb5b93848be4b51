"""How many pods an owner wants, and the status of a replica set.

Rules: kubernetes v1.36 pkg/controller/replicaset/replica_set_utils.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.pod import Pod
from moorage.base.clock import rfc3339
from moorage.base.errors import MoorageError
from moorage.workloads.objects import Whole
from moorage.workloads.pods import available_in, is_available, is_ready


def wanted(obj: Whole) -> int:
    """Return how many pods an object wants."""
    replicas = obj.spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def min_ready_seconds(obj: Whole) -> int:
    """Return how long a pod must be ready to be available, seconds."""
    return int(obj.spec.get("minReadySeconds") or 0)


def next_available(pods: Sequence[Pod], seconds: int, now_ns: int) -> float | None:
    """Return the seconds until the next ready pod is available; None without such a pod."""
    waits = [available_in(pod, min_ready_seconds=seconds, now_ns=now_ns) for pod in pods]
    return min((wait for wait in waits if wait), default=None)


def replica_status(
    owner: Whole, pods: Sequence[Pod], *, failure: MoorageError | None, now_ns: int
) -> dict[str, Any]:
    """Return the status of a replica set with these active pods."""
    labels = ((owner.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    seconds = min_ready_seconds(owner)
    available = [is_available(p, min_ready_seconds=seconds, now_ns=now_ns) for p in pods]
    fully_labelled = sum(labels.items() <= pod.metadata.labels.items() for pod in pods)
    status: dict[str, Any] = {
        "replicas": len(pods),
        "fullyLabeledReplicas": fully_labelled or None,
        "readyReplicas": sum(is_ready(pod) for pod in pods) or None,
        "availableReplicas": sum(available) or None,
        "observedGeneration": owner.metadata.generation,
    }
    conditions = owner.status.get("conditions") or []
    others = [each for each in conditions if each.get("type") != "ReplicaFailure"]
    if failure is not None:
        missing = wanted(owner) - len(pods)
        before = [each for each in conditions if each.get("type") == "ReplicaFailure"]
        others += before or [
            {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate" if missing > 0 else "FailedDelete",
                "message": str(failure),
                "lastTransitionTime": rfc3339(now_ns),
            }
        ]
    if others != conditions:
        status["conditions"] = others
    return status

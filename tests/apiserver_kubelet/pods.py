"""Stored pods in every state a kubelet reports, for calls about their containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.tests.apiserver.harness import MERGE, PODS, Cluster

BEGAN, ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"
RUNNING: dict[str, Any] = {"state": {"running": {"startedAt": BEGAN}}}
TERMINATED: dict[str, Any] = {
    "terminated": {"exitCode": 3, "reason": "Error", "startedAt": BEGAN, "finishedAt": ENDED}
}


async def store_pod(
    cluster: Cluster,
    name: str = "web",
    *,
    node: str = "node-01",
    containers: Mapping[str, dict[str, Any] | None] | None = None,
    phase: str = "Running",
    **metadata: Any,
) -> None:
    """Store a pod with the status of each container, None for one without a status."""
    told = {"main": RUNNING} if containers is None else containers
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": each,
                "image": "nginx:1",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
            for each in told
        ],
        **({"nodeName": node} if node else {}),
    }
    pod = {"metadata": {"name": name, **metadata}, "spec": spec}
    code, _ = await cluster.call("POST", PODS, pod)
    assert code == 201
    await report(cluster, name, told, phase=phase)


async def report(
    cluster: Cluster,
    name: str,
    containers: Mapping[str, dict[str, Any] | None],
    *,
    phase: str = "Running",
) -> None:
    """Write the statuses of containers as their node would."""
    statuses = [
        {"name": each, "image": "nginx:1", "imageID": "", "ready": True, "restartCount": 0} | status
        for each, status in containers.items()
        if status is not None
    ]
    status = {"status": {"phase": phase, "startTime": BEGAN, "containerStatuses": statuses}}
    code, body = await cluster.call("PATCH", f"{PODS}/{name}/status", status, content_type=MERGE)
    assert code == 200, body

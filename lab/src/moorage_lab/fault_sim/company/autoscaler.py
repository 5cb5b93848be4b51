"""A small cluster autoscaler: nodes come while pods wait for room."""

from __future__ import annotations

from typing import Any

from moorage.api.resources import PODS
from moorage.base import aio
from moorage_lab.fault_sim.company.cluster import CompanyCluster
from moorage_lab.fault_sim.history import is_finished, node_of
from moorage_sandbox.testing.builders import node_manifest

_LOOK_SECONDS = 7.0
CPU = "4"
"""Processors of each node that it adds."""


class Autoscaler:
    """Adds a node at each look at which a pod waits for room, up to a number.

    Parameters
    ----------
    cluster
        Its cluster.
    most
        Nodes that it adds at most.
    """

    def __init__(self, cluster: CompanyCluster, *, most: int) -> None:
        self._cluster = cluster
        self._most = most

    async def run(self) -> None:
        """Look at the cluster until cancelled."""
        count = 0
        while count < self._most:
            await aio.sleep(_LOOK_SECONDS)
            records = self._cluster.server.store.shelf(PODS.qualified).records()
            if any(_needs_room(record.decode()) for record in records):
                count += 1
                await self._cluster.join(node_manifest(f"auto{count}", cpu=CPU))


def _needs_room(pod: dict[str, Any]) -> bool:
    """Return whether a pod waits because no node has room, as its condition says."""
    if node_of(pod) or is_finished(pod) or pod["metadata"].get("deletionTimestamp"):
        return False
    return any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in pod.get("status", {}).get("conditions") or ()
    )

"""ReplicaSets and ReplicationControllers: as many pods as wanted, adopted or made from a template.

Rules: kubernetes v1.36 pkg/controller/replicaset/{replica_set,replica_set_utils}.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.api.resources import PODS, REPLICA_SETS, ResourceType
from moorage.base.clock import rfc3339
from moorage.base.errors import MoorageError
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, Surroundings, owner_reference
from moorage.controllers.pod_control import PodControl
from moorage.controllers.pods import (
    available_in,
    deletion_order,
    is_active,
    is_available,
    is_ready,
    pod_from_template,
)
from moorage.controllers.views import ViewedPod, Whole

_BURST: Final = 500  # pods created or deleted in one go, as upstream


class ReplicaSetController(Controller):
    """Keeps the pods of replica sets, or of replication controllers, their older form.

    Parameters
    ----------
    around
        The surroundings of the controller.
    resource
        ``REPLICA_SETS`` or ``REPLICATION_CONTROLLERS``.
    """

    def __init__(self, around: Surroundings, resource: ResourceType = REPLICA_SETS) -> None:
        name = "replicaset" if resource == REPLICA_SETS else "replication"
        super().__init__(around, name=f"{name}-controller", resource=resource)
        self._sets = around.views.of(resource, Whole)
        self._pods = around.views.of(PODS, ViewedPod)
        self._control = PodControl(self, self._sets, self._pods)
        self.follow(self._sets)

    async def sync(self, key: Key) -> float | None:
        """Create and delete pods, then write the status."""
        found = self._sets.objects.get(key)
        if found is None:
            self._control.expectations.forget(key)
            return None
        pods = [pod for pod in await self._control.claim(found) if is_active(pod)]
        failure: MoorageError | None = None
        settled = self._control.expectations.fulfilled(key)
        if settled and found.metadata.deletion_timestamp is None:
            try:
                await self._manage(found, pods)
            except MoorageError as problem:
                failure = problem
        now_ns = self.clock.now_ns()
        status = replica_status(found, pods, failure=failure, now_ns=now_ns)
        await self.write_status(found, status)
        if failure is not None:
            raise failure
        return next_available(pods, min_ready_seconds(found), now_ns)

    async def _manage(self, found: Whole, pods: Sequence[Pod]) -> None:
        missing = wanted(found) - len(pods)
        if missing > 0:
            owner = owner_reference(found, self.resource)
            template = found.spec.get("template") or {}
            bodies = [
                pod_from_template(
                    template, namespace=found.namespace, owner=owner, prefix=f"{found.name}-"
                )
                for _ in range(min(missing, _BURST))
            ]
            await self._control.create(found, bodies)
        elif missing < 0:
            order = deletion_order(pods, rank=self._crowding(found), now_ns=self.clock.now_ns())
            await self._control.delete(found, order[: min(-missing, _BURST)])

    def _crowding(self, found: Whole) -> dict[str, int]:
        """Return how many active pods of this set and its siblings are on each node."""
        above = found.metadata.controller
        family = [found] if above is None else self._sets.owned_by(above.uid)
        return Counter(
            pod.spec.node_name
            for each in family
            for pod in self._pods.owned_by(each.metadata.uid)
            if is_active(pod) and pod.spec.node_name
        )


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
    found: Whole, pods: Sequence[Pod], *, failure: MoorageError | None, now_ns: int
) -> dict[str, Any]:
    """Return the status of a replica set with these active pods."""
    labels = ((found.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    seconds = min_ready_seconds(found)
    available = [is_available(p, min_ready_seconds=seconds, now_ns=now_ns) for p in pods]
    fully_labelled = sum(labels.items() <= pod.metadata.labels.items() for pod in pods)
    status: dict[str, Any] = {
        "replicas": len(pods),
        "fullyLabeledReplicas": fully_labelled or None,
        "readyReplicas": sum(is_ready(pod) for pod in pods) or None,
        "availableReplicas": sum(available) or None,
        "observedGeneration": found.metadata.generation,
    }
    conditions = found.status.get("conditions") or []
    others = [each for each in conditions if each.get("type") != "ReplicaFailure"]
    if failure is not None:
        missing = wanted(found) - len(pods)
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

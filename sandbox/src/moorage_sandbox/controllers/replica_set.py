"""ReplicaSets and ReplicationControllers: as many pods as wanted, adopted or made from a template.

Rules: kubernetes v1.36 pkg/controller/replicaset/{replica_set,replica_set_utils}.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from moorage.api.pod import Pod
from moorage.api.resources import PODS, REPLICA_SETS, ResourceType
from moorage.base.errors import MoorageError
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.objects import ViewedPod, Whole, owner_reference
from moorage.workloads.pods import (
    deletion_order,
    is_active,
    pod_from_template,
)
from moorage.workloads.replicas import (
    min_ready_seconds,
    next_available,
    replica_status,
    wanted,
)
from moorage_sandbox.controllers.pod_control import PodControl

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

    def __init__(self, around: ControllerInputs, resource: ResourceType = REPLICA_SETS) -> None:
        name = "replicaset" if resource == REPLICA_SETS else "replication"
        super().__init__(around, name=f"{name}-controller", resource=resource)
        self._sets = around.views.view_of(resource, Whole)
        self._pods = around.views.view_of(PODS, ViewedPod)
        self._control = PodControl(self, self._sets, self._pods)
        self.follow(self._sets)

    async def sync(self, key: Key) -> float | None:
        """Create and delete pods, then write the status."""
        replica_set = self._sets.objects.get(key)
        if replica_set is None:
            self._control.expectations.forget(key)
            return None
        pods = [pod for pod in await self._control.claim(replica_set) if is_active(pod)]
        failure: MoorageError | None = None
        settled = self._control.expectations.fulfilled(key)
        if settled and replica_set.metadata.deletion_timestamp is None:
            try:
                await self._manage(replica_set, pods)
            except MoorageError as problem:
                failure = problem
        now_ns = self.clock.now_ns()
        status = replica_status(replica_set, pods, failure=failure, now_ns=now_ns)
        await self.write_status(replica_set, status)
        if failure is not None:
            raise failure
        return next_available(pods, min_ready_seconds(replica_set), now_ns)

    async def _manage(self, replica_set: Whole, pods: Sequence[Pod]) -> None:
        missing = wanted(replica_set) - len(pods)
        if missing > 0:
            owner = owner_reference(replica_set, self.resource)
            template = replica_set.spec.get("template") or {}
            bodies = [
                pod_from_template(
                    template,
                    namespace=replica_set.namespace,
                    owner=owner,
                    prefix=f"{replica_set.name}-",
                )
                for _ in range(min(missing, _BURST))
            ]
            await self._control.create_pods(replica_set, bodies)
        elif missing < 0:
            order = deletion_order(
                pods, rank=self._crowding(replica_set), now_ns=self.clock.now_ns()
            )
            await self._control.delete_pods(replica_set, order[: min(-missing, _BURST)])

    def _crowding(self, replica_set: Whole) -> dict[str, int]:
        """Return how many active pods of this set and its siblings are on each node."""
        above = replica_set.metadata.controller
        family = [replica_set] if above is None else self._sets.owned_by(above.uid)
        return Counter(
            pod.spec.node_name
            for each in family
            for pod in self._pods.owned_by(each.metadata.uid)
            if is_active(pod) and pod.spec.node_name
        )

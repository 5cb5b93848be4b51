"""Deployments: rolls a template out over replica sets, forwards, backwards, or not while paused.

``deployment_steps`` and ``deployment_status`` decide; this module watches and writes.

Rules: kubernetes v1.36 pkg/controller/deployment/deployment_controller.go.
"""

from __future__ import annotations

from typing import Any

from moorage.api.meta import ObjectReference
from moorage.api.pod import Pod
from moorage.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from moorage.base.errors import ConflictError, MoorageError, NotFoundError
from moorage.client.objects import Key
from moorage.client.requests import patch_body
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.deployment_status import is_complete, overdue_in, status_due
from moorage.workloads.deployment_steps import (
    ChangeDeployment,
    ChangeSet,
    CreateSet,
    Sets,
    SetStep,
    history_steps,
    is_resized,
    part_sets,
    resize,
    resize_steps,
    revision_steps,
    rolling_steps,
)
from moorage.workloads.objects import ViewedPod, Whole, owner_reference
from moorage.workloads.pods import is_finished
from moorage.workloads.replicas import wanted
from moorage_sandbox.controllers.pod_control import selector_of


class DeploymentController(Controller):
    """Keeps the replica sets of deployments."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="deployment-controller", resource=DEPLOYMENTS)
        self._deployments = around.views.view_of(DEPLOYMENTS, Whole)
        self._sets = around.views.view_of(REPLICA_SETS, Whole)
        self._pods = around.views.view_of(PODS, ViewedPod)
        self.follow(self._deployments)
        self._sets.tell(self._set_changed)
        self._pods.tell(self._pod_changed)

    # --- following --------------------------------------------------------------------------

    def _set_changed(self, old: Whole | None, new: Whole | None) -> None:
        for each in (old, new):
            if each is None:
                continue
            owner = each.metadata.controller
            if owner is not None and owner.kind == DEPLOYMENTS.kind:
                self.queue.add((each.namespace, owner.name))
        if new is not None and new.metadata.controller is None:
            for key, deployment in self._deployments.objects.items():
                if key[0] == new.namespace and _may_adopt(deployment, new):
                    self.queue.add(key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Queue the deployment when a pod is gone: Recreate waits for the last old pod."""
        gone = old if new is None else None
        owner = gone.metadata.controller if gone is not None else None
        if gone is None or owner is None or owner.kind != REPLICA_SETS.kind:
            return
        found = self._sets.objects.get((gone.namespace, owner.name))
        above = found.metadata.controller if found is not None else None
        if above is not None:
            deployment = self._deployments.objects.get((gone.namespace, above.name))
            if deployment is not None and _recreates(deployment):
                self.queue.add((gone.namespace, above.name))

    # --- working ----------------------------------------------------------------------------

    async def sync(self, key: Key) -> float | None:
        """Take the next step of the roll-out, then write the status."""
        deployment = self._deployments.objects.get(key)
        if deployment is None:
            return None
        claimed = await self._claim(deployment)
        if claimed is None:
            return None
        sets = part_sets(deployment, claimed)
        if deployment.metadata.deletion_timestamp is None:
            for step in self._steps(deployment, sets):
                await self._carry_out(deployment, step)
                if isinstance(step, ChangeDeployment):
                    # The object seen is outdated now; the watch shows the newer one.
                    return None
        now_ns = self.clock.now_ns()
        status = status_due(deployment, sets, now_ns)
        await self.write_status(deployment, status)
        return overdue_in(deployment, status, now_ns)

    def _steps(self, deployment: Whole, sets: Sets) -> list[SetStep]:
        paused = bool(deployment.spec.get("paused"))
        if paused or is_resized(deployment, sets):
            return [
                *revision_steps(deployment, sets, create=False),
                *resize_steps(deployment, sets),
            ]
        if _recreates(deployment):
            return self._recreate(deployment, sets)
        steps = revision_steps(deployment, sets, create=True)
        if sets.new is None or any(isinstance(each, ChangeSet) for each in steps):
            return steps
        return [*steps, *(rolling_steps(deployment, sets) or self._tidy(deployment, sets))]

    def _recreate(self, deployment: Whole, sets: Sets) -> list[SetStep]:
        shrunk = [step for each in sets.old if wanted(each) for step in resize(deployment, each, 0)]
        if shrunk or self._any_old_pod(sets):
            return [*revision_steps(deployment, sets, create=False), *shrunk]
        steps = revision_steps(deployment, sets, create=True)
        if sets.new is None or any(isinstance(each, ChangeSet) for each in steps):
            return steps
        grown = resize(deployment, sets.new, wanted(deployment))
        return [*steps, *(grown or self._tidy(deployment, sets))]

    def _any_old_pod(self, sets: Sets) -> bool:
        return any(
            not is_finished(pod)
            for each in sets.old
            for pod in self._pods.owned_by(each.metadata.uid)
        )

    def _tidy(self, deployment: Whole, sets: Sets) -> list[SetStep]:
        complete = is_complete(deployment, status_due(deployment, sets, 0))
        return history_steps(deployment, sets) if complete else []

    # --- claiming ---------------------------------------------------------------------------

    async def _claim(self, deployment: Whole) -> list[Whole] | None:
        """Return a deployment's replica sets, after releasing other ones.

        Matching sets without an owner are adopted first. Then the result is None, because only the
        watch shows the adopted sets, and one of them may be the set of the present template.
        """
        selector = selector_of(deployment)
        leaving = deployment.metadata.deletion_timestamp is not None
        mine = []
        for each in self._sets.owned_by(deployment.metadata.uid):
            if selector.matches(each.metadata.labels) or leaving:
                mine.append(each)
            else:
                uid = deployment.metadata.uid
                await self._change_owners(each, {"$patch": "delete", "uid": uid})
        if leaving:
            return mine
        adopted = False
        for each in self._sets.free_in(deployment.namespace):
            if _may_adopt(deployment, each) and each.metadata.deletion_timestamp is None:
                await self._change_owners(each, owner_reference(deployment, DEPLOYMENTS))
                adopted = True
        return None if adopted else mine

    async def _change_owners(self, replica_set: Whole, change: dict[str, Any]) -> None:
        metadata = {"uid": replica_set.metadata.uid, "ownerReferences": [change]}
        await self.client.patch(
            REPLICA_SETS,
            replica_set.name,
            patch_body({"metadata": metadata}),
            namespace=replica_set.namespace,
        )

    # --- writing ----------------------------------------------------------------------------

    async def _carry_out(self, deployment: Whole, step: SetStep) -> None:
        if isinstance(step, CreateSet):
            await self._create(deployment, step)
        elif isinstance(step, ChangeSet):
            await self.patch_object(REPLICA_SETS, step.replica_set, step.changes)
            if step.scaled_from is not None:
                self._note_size(deployment, step.replica_set.name, step.scaled_from, step.scaled_to)
        elif isinstance(step, ChangeDeployment):
            await self.patch_object(DEPLOYMENTS, deployment, step.changes)
        else:
            uid = step.replica_set.metadata.uid
            try:
                await self.client.delete(
                    REPLICA_SETS, step.replica_set.name, namespace=deployment.namespace, uid=uid
                )
            except NotFoundError:
                return

    async def _create(self, deployment: Whole, step: CreateSet) -> None:
        name = step.body["metadata"]["name"]
        try:
            await self.client.create(REPLICA_SETS, step.body, namespace=deployment.namespace)
        except ConflictError:
            await self._count_collision(deployment, name)
            raise
        except MoorageError as problem:
            text = f"Failed to create new replica set {name!r}: {problem}"
            self.emit_event(deployment, "ReplicaSetCreateError", text, kind="Warning")
            raise
        replicas = step.body["spec"]["replicas"]
        if replicas:
            self._note_size(deployment, name, 0, replicas)

    async def _count_collision(self, deployment: Whole, name: str) -> None:
        """Have the next try take another name, where another owner has this name."""
        found: Any = await self.client.get(REPLICA_SETS, name, namespace=deployment.namespace)
        owners = found["metadata"].get("ownerReferences") or []
        if any(each.get("uid") == deployment.metadata.uid for each in owners):
            return
        count = int(deployment.status.get("collisionCount") or 0) + 1
        await self.write_status(deployment, {"collisionCount": count})

    def _note_size(self, deployment: Whole, name: str, before: int, after: int) -> None:
        way = "up" if after > before else "down"
        text = f"Scaled {way} replica set {name} from {before} to {after}"
        related = ObjectReference(
            api_version="apps/v1", kind="ReplicaSet", namespace=deployment.namespace, name=name
        )
        action = f"Scale{way.title()}To{after}"
        self.emit_event(deployment, "ScalingReplicaSet", text, action=action, related=related)


def _recreates(deployment: Whole) -> bool:
    return (deployment.spec.get("strategy") or {}).get("type") == "Recreate"


def _may_adopt(deployment: Whole, replica_set: Whole) -> bool:
    return bool(replica_set.metadata.labels) and selector_of(deployment).matches(
        replica_set.metadata.labels
    )

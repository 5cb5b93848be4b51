"""Stateful sets: pods with stable names and their own claims.

``stateful_steps`` decides; this module watches and writes.

Rules: kubernetes v1.36 pkg/controller/statefulset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from moorage.api.volume import PersistentVolumeClaim
from moorage.base.errors import ConflictError, MoorageError
from moorage.client.objects import Key, key_of
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.objects import Json, ViewedPod, Whole
from moorage.workloads.replicas import min_ready_seconds, next_available
from moorage.workloads.stateful_steps import (
    Plan,
    claim_name,
    ordinal_of,
    ordinals,
    plan,
    revision_of,
    status_due,
)
from moorage_sandbox.controllers.pod_control import PodControl
from moorage_sandbox.controllers.revisions import Revisions

_SAID = (
    "create Pod {pod} in StatefulSet {owner} successful",
    "delete Pod {pod} in StatefulSet {owner} successful",
)


class StatefulSetController(Controller):
    """Keeps the pods of stateful sets."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="statefulset-controller", resource=STATEFUL_SETS)
        self._sets = around.views.view_of(STATEFUL_SETS, Whole)
        self._claims = around.views.view_of(PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim)
        pods = around.views.view_of(PODS, ViewedPod)
        self._control = PodControl(self, self._sets, pods, said=_SAID)
        self._revisions = Revisions(self, around, hash_label="controller.kubernetes.io/hash")
        self.follow(self._sets)

    async def sync(self, key: Key) -> float | None:
        """Create and delete pods and claims, then write the status."""
        stateful_set = self._sets.objects.get(key)
        if stateful_set is None:
            self._control.expectations.forget(key)
            return None
        claimed = await self._control.claim(
            stateful_set, fits=lambda pod: ordinal_of(stateful_set, pod.name) is not None
        )
        pods = {ordinal_of(stateful_set, pod.name) or 0: pod for pod in claimed}
        await self._keep_claims(stateful_set, pods)
        if stateful_set.metadata.deletion_timestamp is not None:
            return None
        history = await self._revisions.ensure_newest(stateful_set)
        now_ns = self.clock.now_ns()
        failure: MoorageError | None = None
        if self._control.expectations.fulfilled(key):
            try:
                await self._carry_out(stateful_set, plan(stateful_set, pods, history, now_ns))
            except MoorageError as problem:
                failure = problem
        status = status_due(stateful_set, claimed, history, now_ns)
        await self.write_status(stateful_set, status)
        if failure is not None:
            raise failure
        live = {status["currentRevision"], status["updateRevision"]}
        await self._revisions.tidy(
            stateful_set, history, live | {revision_of(pod) for pod in claimed}
        )
        return next_available(claimed, min_ready_seconds(stateful_set), now_ns)

    async def _carry_out(self, stateful_set: Whole, due: Plan) -> None:
        """Write what is due; a claim that cannot be created holds up its own pod only."""
        problems = dict[str, MoorageError]()
        for name, claims in due.claims.items():
            try:
                for claim in claims:
                    await self._create_claim(stateful_set, claim)
            except MoorageError as problem:
                problems[name] = problem
        await self._control.delete_pods(stateful_set, due.delete)
        ready = [each for each in due.create if each["metadata"]["name"] not in problems]
        await self._control.create_pods(stateful_set, ready)
        if problems:
            raise next(iter(problems.values()))  # the set is tried again after a pause

    async def _create_claim(self, stateful_set: Whole, claim: Json) -> None:
        name = claim["metadata"]["name"]
        known = self._claims.objects.get((stateful_set.namespace, name))
        if known is not None and known.metadata.deletion_timestamp is None:
            return
        if known is not None:
            raise MoorageError(f"claim {name} is being deleted; a new one is made afterwards")
        try:
            await self.client.create(
                PERSISTENT_VOLUME_CLAIMS, claim, namespace=stateful_set.namespace
            )
        except ConflictError:
            return  # made already; the watch will show it
        except MoorageError as problem:
            text = f"create Claim {name} in StatefulSet {stateful_set.name} failed error: {problem}"
            self.emit_event(stateful_set, "FailedCreate", text, kind="Warning")
            raise
        text = f"create Claim {name} in StatefulSet {stateful_set.name} success"
        self.emit_event(stateful_set, "SuccessfulCreate", text)

    # --- what becomes of claims -------------------------------------------------------------

    async def _keep_claims(self, stateful_set: Whole, pods: Mapping[int, Pod]) -> None:
        """Set the owners of claims by the set's retention policy, for the garbage collector."""
        policy = stateful_set.spec.get("persistentVolumeClaimRetentionPolicy") or {}
        with_set = policy.get("whenDeleted") == "Delete"
        with_pod = policy.get("whenScaled") == "Delete"
        for template in stateful_set.spec.get("volumeClaimTemplates") or []:
            for ordinal, pod in pods.items():
                claim = self._claims.objects.get(
                    (stateful_set.namespace, claim_name(stateful_set, template, ordinal))
                )
                if claim is None or claim.metadata.deletion_timestamp is not None:
                    continue
                condemned = ordinal not in ordinals(stateful_set)
                wanted: list[Json] = []
                if with_set and not (with_pod and condemned):
                    wanted.append(
                        _owner(
                            "apps/v1", "StatefulSet", stateful_set.name, stateful_set.metadata.uid
                        )
                    )
                if with_pod and condemned:
                    wanted.append(_owner("v1", "Pod", pod.name, pod.metadata.uid))
                await self._own(claim, stateful_set, pod, wanted)

    async def _own(
        self, claim: PersistentVolumeClaim, stateful_set: Whole, pod: Pod, wanted: list[Json]
    ) -> None:
        ours = {stateful_set.metadata.uid, pod.metadata.uid}
        before = [each for each in claim.metadata.owner_references if each.uid in ours]
        if [each.uid for each in before] == [each["uid"] for each in wanted]:
            return
        namespace, name = key_of(claim)
        live: Any = await self.client.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
        owners = live["metadata"].get("ownerReferences") or []
        kept = [each for each in owners if each.get("uid") not in ours]
        await self.patch_object(
            PERSISTENT_VOLUME_CLAIMS,
            claim,
            {"metadata": {"ownerReferences": [*kept, *wanted] or None}},
        )


def _owner(api_version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}

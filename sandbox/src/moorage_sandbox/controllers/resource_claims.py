"""Creates claims from templates for pods, and frees claims whose pods have ended.

Rules: kubernetes v1.36 ``pkg/controller/resourceclaim/controller.go``. Claims of pod groups are
left alone; upstream they are behind a feature gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from moorage.api.codec import encode, from_dict
from moorage.api.pod import Pod
from moorage.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from moorage.base.errors import NotFoundError
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.views import View
from moorage.workloads.claim_steps import POD_CLAIM, claim_of, template_of, unmade
from moorage.workloads.objects import Json, ViewedPod, Whole
from moorage.workloads.pods import is_finished

PROTECTION: Final = "resource.kubernetes.io/delete-protection"

_LOOK_AGAIN_SECONDS: Final = 5.0  # pause while a template does not exist; a guess


class ClaimMaker(Controller):
    """Creates the claims of pods whose entries name templates, and notes them in the pods."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="resource-claim-controller", resource=PODS)
        self._pods: View[ViewedPod] = around.views.view_of(PODS, ViewedPod)
        self._claims: View[Whole] = around.views.view_of(RESOURCE_CLAIMS, Whole)
        self._templates: View[Whole] = around.views.view_of(RESOURCE_CLAIM_TEMPLATES, Whole)
        self._new_claims: dict[tuple[str, str], str] = {}  # unseen: (pod uid, entry) -> name
        self._pods.tell(self._pod_changed)

    async def sync(self, key: Key) -> float | None:
        """Create the missing claims of a pod."""
        pod = self._pods.objects.get(key)
        if pod is None or pod.metadata.deletion_timestamp or is_finished(pod):
            return None
        statuses: list[Json] = []
        missing = False
        for entry in unmade(pod):
            name = self._find(pod, entry) or await self._make(pod, entry)
            missing = missing or name is None
            if name is not None:
                statuses.append({"name": entry, "resourceClaimName": name})
        if statuses:
            body = {
                "metadata": {"uid": pod.uid},
                "status": {"resourceClaimStatuses": [*_known(pod), *statuses]},
            }
            await self.client.patch(
                PODS, pod.name, encode(body), namespace=pod.namespace, subresource="status"
            )
        return _LOOK_AGAIN_SECONDS if missing else None

    def _find(self, pod: Pod, entry: str) -> str | None:
        """Return the claim that was made for an entry; the pod's status may not name it yet."""
        for claim in self._claims.owned_by(pod.uid):
            if claim.metadata.annotations.get(POD_CLAIM) == entry:
                return claim.name
        return self._new_claims.get((pod.uid, entry))

    async def _make(self, pod: Pod, entry: str) -> str | None:
        template_name = template_of(pod, entry)
        template = self._templates.objects.get((pod.namespace, template_name))
        if template is None:
            text = f'resource claim template "{template_name}" not found'
            self.emit_event(pod, "FailedResourceClaimCreation", text, kind="Warning")
            return None
        body = claim_of(pod, entry, template)
        stored: Any = await self.client.create(RESOURCE_CLAIMS, body, namespace=pod.namespace)
        name = self._new_claims[pod.uid, entry] = str(stored["metadata"]["name"])
        return name

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.spec.resource_claims:
            return
        if new is None:
            for entry in pod.spec.resource_claims:
                self._new_claims.pop((pod.uid, entry.name), None)
        elif any(True for _ in unmade(new)):
            self.queue.add(new.key)


class ClaimReleaser(Controller):
    """Removes the reservations of ended pods from claims, and frees unused devices."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="resource-claim-releaser", resource=RESOURCE_CLAIMS)
        self._pods: View[ViewedPod] = around.views.view_of(PODS, ViewedPod)
        self._claims: View[Whole] = around.views.view_of(RESOURCE_CLAIMS, Whole)
        self.follow(self._claims)
        self._pods.tell(self._pod_changed)

    async def sync(self, key: Key) -> float | None:
        """Write the remaining reservations of a claim."""
        claim = self._claims.objects.get(key)
        if claim is None:
            return None
        reserved: list[Json] = claim.status.get("reservedFor") or []
        left = [each for each in reserved if await self._is_used(claim, each)]
        going = claim.metadata.deletion_timestamp is not None
        if left and len(left) < len(reserved):
            change = {"status": {"reservedFor": left}}
            await self.patch_object(RESOURCE_CLAIMS, claim, change, subresource="status")
        elif not left and (reserved or going):
            await self._free(claim)
        elif not reserved and self._pod_has_ended(claim):
            uid = claim.metadata.uid
            await self.client.delete(
                RESOURCE_CLAIMS, claim.name, namespace=claim.namespace, uid=uid
            )
        return None

    async def _free(self, claim: Whole) -> None:
        """Deallocate the devices of a claim, then remove its finalizer.

        The finalizer alone does not mean an allocation: a scheduler sets it just before it
        allocates.
        """
        if claim.status:
            status = {"reservedFor": None, "allocation": None, "devices": None}
            stored = await self.patch_object(
                RESOURCE_CLAIMS, claim, {"status": status}, subresource="status"
            )
            claim = from_dict(Whole, stored)
        if PROTECTION in claim.metadata.finalizers:
            kept = [each for each in claim.metadata.finalizers if each != PROTECTION]
            await self.patch_object(
                RESOURCE_CLAIMS, claim, {"metadata": {"finalizers": kept or None}}
            )

    def _pod_has_ended(self, claim: Whole) -> bool:
        """Whether a claim was made for a pod that will not run (any more)."""
        owner = claim.metadata.controller
        if owner is None or owner.kind != PODS.kind:
            return False
        pod = self._pods.objects.get((claim.namespace, owner.name))
        return pod is not None and pod.uid == owner.uid and _is_done(pod)

    async def _is_used(self, claim: Whole, consumer: Json) -> bool:
        """Whether the owner of a reservation may still use the claim; only pods are judged."""
        if consumer.get("resource") != PODS.plural or consumer.get("apiGroup"):
            return True
        name, uid = str(consumer.get("name")), consumer.get("uid")
        pod = self._pods.objects.get((claim.namespace, name))
        if pod is not None and pod.uid == uid:
            return not _is_done(pod)
        try:  # the watch may be late
            found: Any = await self.client.get(PODS, name, namespace=claim.namespace)
        except NotFoundError:
            return False
        return bool(found["metadata"].get("uid") == uid)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is not None and (new is None or _is_done(pod)):
            for name in _claims_of(pod):
                self.queue.add((pod.namespace, name))


def _is_done(pod: Pod) -> bool:
    """Whether a pod has ended, or was deleted before it had a node."""
    going = pod.metadata.deletion_timestamp is not None
    return is_finished(pod) or (going and not pod.spec.node_name)


def _known(pod: Pod) -> Iterator[Json]:
    for each in pod.status.resource_claim_statuses:
        name = each.resource_claim_name
        yield {"name": each.name, **({} if name is None else {"resourceClaimName": name})}


def _claims_of(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims a pod may have reserved."""
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name:
            yield entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name:
            yield status.resource_claim_name
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield extended.resource_claim_name

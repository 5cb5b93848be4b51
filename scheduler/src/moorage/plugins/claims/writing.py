"""API writes to claims in PreBind, and the writes that undo a failed attempt.

Every change is a patch of the version on which the decision was based. After a conflict, the claim
is read again to check whether the other change matters.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources`` (bindClaim,
Unreserve, deleteClaim) and client-go ``util/retry`` (DefaultRetry).
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.codec import encode, from_dict, to_dict
from moorage.api.devices import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from moorage.api.resources import PODS, RESOURCE_CLAIMS
from moorage.base.clock import Clock, rfc3339
from moorage.base.errors import ApiError, ConflictError, NotFoundError, TransportError
from moorage.framework.handle import MERGE_PATCH, STRATEGIC_MERGE_PATCH, BindingClient
from moorage.plugins.claims.extended import NodeClaim
from moorage.plugins.claims.pod_claims import DELETE_PROTECTION, ClaimError, full_name
from moorage.snapshot.pod_info import PodInfo

_TRIES: Final = 5
_RETRY_SECONDS: Final = 0.01


class ClaimWriter:
    """The API writes to claims; each raises `ClaimError` with kube-scheduler's text.

    Parameters
    ----------
    client
        The client verbs.
    clock
        Clock for the timestamp of an allocation.
    """

    def __init__(self, client: BindingClient, clock: Clock) -> None:
        self._objects = client.objects
        self._client = client
        self._clock = clock

    # -- writes of PreBind ---------------------------------------------------------------------

    async def create_claim(self, node_claim: NodeClaim) -> ResourceClaim:
        """Create the special claim of a pod for its node."""
        claim = node_claim.claim
        metadata = msgspec.structs.replace(claim.metadata, name="", uid="")
        body = to_dict(ResourceClaim(metadata=metadata, spec=claim.spec))
        body |= {"apiVersion": RESOURCE_CLAIMS.api_version, "kind": RESOURCE_CLAIMS.kind}
        try:
            stored = await self._objects.create(RESOURCE_CLAIMS, body, namespace=claim.namespace)
        except (ApiError, TransportError) as problem:
            text = f"create claim for extended resources {full_name(claim)}: {problem}"
            raise ClaimError(text) from problem
        return from_dict(ResourceClaim, stored)

    async def reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo
    ) -> ResourceClaim:
        """Write an allocation, unless it is None, and reserve the claim for a pod."""
        for _ in range(_TRIES - 1):
            try:
                return await self._reserve(claim, allocation, pod)
            except ConflictError:
                await self._client.sleep(_RETRY_SECONDS)
            claim = await self._read_again(claim)
        try:
            return await self._reserve(claim, allocation, pod)
        except ConflictError as problem:
            raise ClaimError(f"{_doing(allocation)} claim {full_name(claim)}: {problem}") from None

    async def _reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo
    ) -> ResourceClaim:
        name = full_name(claim)
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f"claim {name} got deleted in the meantime")
        current = claim.status.allocation
        if allocation is not None and current is not None and not _is_same(current, allocation):
            raise ClaimError(f"claim {name} got allocated elsewhere in the meantime")
        if allocation is None and current is None:
            raise ClaimError(f"claim {name} got deallocated elsewhere in the meantime")
        if allocation is not None:
            claim = await self._protect(claim)
        own = ResourceClaimConsumerReference(resource=PODS.plural, name=pod.name, uid=pod.uid)
        status: dict[str, object] = {"reservedFor": [to_dict(own)]}  # merged with the other entries
        now = rfc3339(self._clock.now_ns())
        if current is None and allocation is not None:
            stamped = msgspec.structs.replace(allocation, allocation_timestamp=now)
            status["allocation"] = to_dict(stamped)
        elif current is not None and current.allocation_timestamp is None:
            status["allocation"] = {"allocationTimestamp": now}
        change: dict[str, object] = {"status": status}
        return await self._patch(claim, change, subresource="status", doing=_doing(allocation))

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        """Add the finalizer that keeps an allocated claim until its pods are gone."""
        if DELETE_PROTECTION in claim.metadata.finalizers:
            return claim
        change = {"finalizers": [DELETE_PROTECTION]}  # merged with the other entries
        return await self._patch(claim, {"metadata": change}, doing="add finalizer to")

    async def _patch(
        self, claim: ResourceClaim, change: dict[str, object], *, doing: str, **how: str
    ) -> ResourceClaim:
        """Patch a claim at its known version.

        Raises
        ------
        ConflictError
            The claim has a newer version.
        """
        try:
            return await self._write_claim(claim, change, **how)
        except ConflictError:
            raise
        except (ApiError, TransportError) as problem:
            raise ClaimError(f"{doing} claim {full_name(claim)}: {problem}") from problem

    async def _write_claim(
        self,
        claim: ResourceClaim,
        change: dict[str, object],
        *,
        subresource: str = "",
        content_type: str = STRATEGIC_MERGE_PATCH,
    ) -> ResourceClaim:
        metadata = change.get("metadata")
        at = {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}
        body = {**change, "metadata": {**at, **(metadata if isinstance(metadata, dict) else {})}}
        stored = await self._objects.patch(
            RESOURCE_CLAIMS,
            claim.name,
            encode(body),
            namespace=claim.namespace,
            subresource=subresource,
            content_type=content_type,
        )
        return from_dict(ResourceClaim, stored)

    async def _read_again(self, claim: ResourceClaim) -> ResourceClaim:
        try:
            stored = await self._objects.get(RESOURCE_CLAIMS, claim.name, namespace=claim.namespace)
        except (ApiError, TransportError) as problem:
            text = f"get updated claim {full_name(claim)} after conflict: {problem}"
            raise ClaimError(text) from problem
        return from_dict(ResourceClaim, stored)

    async def tell_pod(self, pod: PodInfo, claim: ResourceClaim, node_claim: NodeClaim) -> None:
        """Write the name of the special claim into the pod's status."""
        mappings = [to_dict(each) for each in node_claim.mappings]
        told = {"resourceClaimName": claim.name, "requestMappings": mappings}
        body = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": told}}
        try:
            await self._objects.patch(
                PODS,
                pod.name,
                encode(body),
                namespace=pod.namespace,
                subresource="status",
                content_type=STRATEGIC_MERGE_PATCH,
            )
        except (ApiError, TransportError) as problem:
            text = f"update pod {pod.key} ExtendedResourceClaimStatus: {problem}"
            raise ClaimError(text) from problem

    # -- writes that undo ----------------------------------------------------------------------

    async def unreserve(self, claim: ResourceClaim, pod_uid: str) -> ResourceClaim:
        """Remove a pod from a claim's reservedFor, whatever else changed in the claim."""
        entry = {"$patch": "delete", "uid": pod_uid}
        body = {"metadata": {"uid": claim.metadata.uid}, "status": {"reservedFor": [entry]}}
        stored = await self._objects.patch(
            RESOURCE_CLAIMS,
            claim.name,
            encode(body),
            namespace=claim.namespace,
            subresource="status",
            content_type=STRATEGIC_MERGE_PATCH,
        )
        return from_dict(ResourceClaim, stored)

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Deallocate a claim, at the version at which no other pod used the claim."""
        status = {"allocation": None, "reservedFor": None, "devices": None}
        await self._patch(
            claim,
            {"status": status},
            subresource="status",
            doing="deallocate",
            content_type=MERGE_PATCH,
        )

    async def delete_claim(self, claim: ResourceClaim) -> None:
        """Delete a special claim; remove its finalizer first, or the claim would remain.

        A write whose answer was lost may have added the finalizer. So the claim is deleted at the
        version whose finalizers are known, and read again where it has a newer one.
        """
        uid = claim.metadata.uid
        for left in reversed(range(_TRIES)):
            try:
                await self._delete(claim)
            except ConflictError:
                if not left:
                    raise
                await self._client.sleep(_RETRY_SECONDS)
            except NotFoundError:
                return
            else:
                return
            try:
                stored = await self._objects.get(
                    RESOURCE_CLAIMS, claim.name, namespace=claim.namespace
                )
            except NotFoundError:
                return
            claim = from_dict(ResourceClaim, stored)
            if claim.metadata.uid != uid:
                return

    async def _delete(self, claim: ResourceClaim) -> None:
        left = [each for each in claim.metadata.finalizers if each != DELETE_PROTECTION]
        if left != claim.metadata.finalizers:
            change: dict[str, object] = {"metadata": {"finalizers": left or None}}
            claim = await self._write_claim(claim, change, content_type=MERGE_PATCH)
        await self._objects.delete(
            RESOURCE_CLAIMS,
            claim.name,
            namespace=claim.namespace,
            uid=claim.metadata.uid,
            version=claim.metadata.resource_version,
        )


def _doing(allocation: AllocationResult | None) -> str:
    return "add reservation to" if allocation is None else "add allocation and reservation to"


def _is_same(current: AllocationResult, decided: AllocationResult) -> bool:
    """Whether a claim has the decided allocation: another group member may have written it."""
    return current.devices.results == decided.devices.results

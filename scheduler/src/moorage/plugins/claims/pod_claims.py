"""The claims that a pod names, their faults, and the devices that a bound pod holds by them.

Rules mirrored: kubernetes v1.36 ``dynamic-resource-allocation/resourceclaim`` and
``pkg/scheduler/framework/plugins/dynamicresources`` (foreachPodResourceClaim, the hints).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from moorage.api.claims import ClaimUsers, PodResourceClaim
from moorage.api.devices import ResourceClaim
from moorage.api.meta import ObjectMeta
from moorage.api.names import is_extended_resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.base.errors import MoorageError
from moorage.framework.insight.held_devices import HeldDevice
from moorage.plugins.claims.devices.holdings import (
    Capacities,
    claimed_devices,
    device_capacities,
)
from moorage.snapshot.claim_table import ClaimTable
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""Finalizer of allocated claims (kubernetes v1.36 ``api/resource/v1`` Finalizer)."""

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of the claims that schedulers create for extended resources."""


class ClaimError(MoorageError):
    """A claim cannot be used; the text is the reason of a status."""


def full_name(claim: ResourceClaim) -> str:
    """Return ``namespace/name``."""
    return f"{claim.namespace}/{claim.name}"


def claims_of(pod: Pod, table: ClaimTable) -> list[ResourceClaim]:
    """Return the claims that a pod names, in order, without entries that need no claim.

    Raises
    ------
    ClaimError
        A claim does not exist, is not created yet, is being deleted, or belongs to another pod.
    """
    return [_usable(pod, name, table, own=own) for name, own in _names(pod)]


def claim_fault(pod: Pod, table: ClaimTable) -> str | None:
    """Return why a pod cannot use its claims yet; None when it can."""
    try:
        claims_of(pod, table)
    except ClaimError as fault:
        return str(fault)
    return None


def is_reserved_for(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether a claim is reserved for a pod, by uid."""
    return any(each.uid == pod.metadata.uid for each in claim.status.reserved_for)


def is_controlled_by(pod: Pod, metadata: ObjectMeta) -> bool:
    """Whether a pod is the controlling owner of an object, by uid."""
    controller = metadata.controller
    return controller is not None and controller.uid == pod.metadata.uid


def is_special_claim(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether a claim was created for the extended resources of a pod."""
    metadata = claim.metadata
    return metadata.annotations.get(ANNOTATION) == "true" and is_controlled_by(pod, metadata)


def _names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Yield the name of each claim, and whether the pod must own the claim."""
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            yield entry.resource_claim_name, False
            continue
        made = _made_for(pod, entry)
        if made is not None:
            yield made, True


def _made_for(pod: Pod, entry: PodResourceClaim) -> str | None:
    """Return the name of the claim created from a template; None where no claim was needed."""
    who = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    if entry.resource_claim_template_name is None:
        raise ClaimError(
            f'{who}, spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimError(f"{who}: ResourceClaim not created yet")


def _usable(pod: Pod, name: str, table: ClaimTable, *, own: bool) -> ResourceClaim:
    namespace = pod.metadata.namespace
    claim = table.get(namespace, name)
    if claim is None:
        raise ClaimError(f'could not find ResourceClaim "{namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimError(f'resourceclaim "{name}" is being deleted')
    if own and not is_controlled_by(pod, claim.metadata):
        raise ClaimError(
            f"ResourceClaim {full_name(claim)} was not created for Pod "
            f"{namespace}/{pod.metadata.name} (Pod is not owner)"
        )
    return claim


class ClaimDevices:
    """The devices that the bound pods of a snapshot hold by their claims.

    Parameters
    ----------
    snapshot
        The cluster, with its claims and slices.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._table = snapshot.claims
        self._slices = snapshot.listers.resource_slices
        # Read when the first share of a device is asked about, and after each change of slices.
        self._capacities: Capacities = {}
        self._position = -1

    def held_devices(self, pod: PodInfo, node: Node) -> tuple[HeldDevice, ...]:
        """Return the devices that a pod holds by its claims; none for a pod without claims."""
        del node
        claims = self._table.controlled_by(pod.namespace, pod.uid)
        with contextlib.suppress(ClaimError):  # a claim is gone, so the pod holds nothing by it
            claims += claims_of(pod.pod, self._table)
        by_uid = {claim.metadata.uid: claim for claim in claims}
        if not by_uid:
            return ()
        return claimed_devices(pod.pod, by_uid.values(), self._known_capacities())

    def _known_capacities(self) -> Capacities:
        position = self._slices.log.position
        if position != self._position:
            self._position = position
            self._capacities = device_capacities(self._slices.all())
        return self._capacities


class ClaimHints:
    """Hints: which changes of claims and of the pod may help a waiting pod.

    Parameters
    ----------
    table
        The claims.
    """

    def __init__(self, table: ClaimTable) -> None:
        self._table = table

    def claim_changed(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue when devices were given back, or when a claim of the pod has a new status."""
        assert isinstance(new, ResourceClaim)
        try:
            claims = claims_of(waiting, self._table)
        except ClaimError:
            return False
        if _gives_back(old, new):
            return True
        changed = not isinstance(old, ResourceClaim) or old.status != new.status
        return changed and _is_among(new, claims)

    def claim_gone(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue when devices became free with a claim, or when the pod's special claim went.

        kube-scheduler registers no deletion. There, a pod waits up to five minutes after the
        special claim of a failed attempt was deleted, and so does a pod that needs its devices.
        """
        del new
        assert isinstance(old, ResourceClaim)
        if claim_fault(waiting, self._table) is not None:
            return False
        return old.status.allocation is not None or is_special_claim(waiting, old)

    def gone_claim_concerns(self, old: object | None, new: object | None) -> list[Pod] | None:
        """Return the pods for which `claim_gone` may queue: all of them if devices became free."""
        del new
        assert isinstance(old, ResourceClaim)
        if old.status.allocation is not None:
            return None
        owner = old.metadata.controller
        if owner is None:
            return []
        return [Pod(metadata=ObjectMeta(namespace=old.namespace, name=owner.name, uid=owner.uid))]

    def claim_concerns(self, old: object | None, new: object | None) -> ClaimUsers | None:
        """Return the pods for which `claim_changed` may queue: all of them after a deallocation."""
        assert isinstance(new, ResourceClaim)
        if _gives_back(old, new):
            return None
        return ClaimUsers(new.namespace, new.name)

    def pod_changed(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue the pod itself once all its claims exist."""
        del old
        assert isinstance(new, Pod)
        return new.uid == waiting.uid and claim_fault(new, self._table) is None


def devices_given_back(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue when a pod with devices is no longer to be bound, so that they go to others."""
    del waiting, new
    if not isinstance(old, Pod):
        return False
    asked = pod_requests(old, use_status=False, pod_level=False)
    return bool(old.spec.resource_claims) or any(map(is_extended_resource, asked))


def _gives_back(old: object | None, new: ResourceClaim) -> bool:
    """Whether the devices of a claim are free; after a new list it may hold others at once."""
    if not isinstance(old, ResourceClaim) or old.status.allocation is None:
        return False
    allocation = new.status.allocation
    return allocation is None or allocation.devices != old.status.allocation.devices


def _is_among(claim: ResourceClaim, claims: list[ResourceClaim]) -> bool:
    return any(each.metadata.uid == claim.metadata.uid for each in claims)

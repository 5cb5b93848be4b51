"""PreFilter: reads a pod's claims before the search over nodes.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources`` (PreFilter).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.api.devices import AllocationResult, DeviceRequest, ResourceClaim
from moorage.api.selectors import NodeMatcher, compile_node_selector
from moorage.config.feature_gates import FeatureGates
from moorage.framework.status import Status, error, unresolvable
from moorage.plugins.claims.attempt import Attempt, PodClaim
from moorage.plugins.claims.extended import ExtendedPart, is_in_memory, special_claim
from moorage.plugins.claims.pod_claims import ClaimError, claims_of, full_name
from moorage.plugins.resources.device_classes import DeviceClassNames
from moorage.snapshot.claim_table import ClaimTable, UnderWay, allocation_of
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


class Preparation:
    """Creates attempts from the claims of pods.

    Parameters
    ----------
    table
        The claims.
    classes
        The device classes by extended resource.
    gates
        Whether devices may provide extended resources, and requests may have alternatives.
    """

    def __init__(self, table: ClaimTable, classes: DeviceClassNames, gates: FeatureGates) -> None:
        self._table = table
        self._classes = classes
        self._extended = gates("DRAExtendedResource")
        self._alternatives = gates("DRAPrioritizedList")

    def attempt(self, pod: PodInfo, snapshot: Snapshot) -> Attempt | Status:
        """Return a new attempt, empty for a pod without claims, or the status of a rejection."""
        try:
            claims = [
                PodClaim(claim, claim.metadata.uid) for claim in claims_of(pod.pod, self._table)
            ]
        except ClaimError as problem:
            return unresolvable(str(problem))
        part = None
        if self._extended and self._classes.backs(pod):
            special = special_claim(pod, self._table.controlled_by(pod.namespace, pod.uid))
            claims.append(PodClaim(special, special.metadata.uid, special=True))
            if is_in_memory(special):
                part = ExtendedPart(pod, special, self._classes)
        for each in claims:
            fault = self._prepare(each, pod, snapshot)
            if fault is not None:
                return fault
        return Attempt(snapshot, claims, extended=part)

    def _prepare(self, one: PodClaim, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Find the nodes that reach an allocation, or check that the claim can be allocated.

        Notes
        -----
        Upstream lets no pod count on an allocation that is not written yet. A member of a group
        that waits at Permit for another one would so keep it from its place, and a pod that waits
        for its victims would lose its nominated node.
        """
        allocation = one.claim.status.allocation
        if allocation is None:
            under_way = self._table.find_under_way(one.uid)
            if under_way is not None and not _is_shared(under_way, pod, snapshot):
                return unresolvable(
                    f"resource claim {full_name(one.claim)} is in the process of being allocated"
                )
            if under_way is not None:  # by another member of the same group
                allocation = one.shared = allocation_of(under_way.claim)
            elif not one.special:
                return self._class_fault(one.claim, snapshot)
        if allocation is None:
            return None
        try:
            one.reachable = _matcher(allocation)
        except ValueError as fault:
            return error(str(fault))
        return None

    def _class_fault(self, claim: ResourceClaim, snapshot: Snapshot) -> Status | None:
        for request in claim.spec.devices.requests:
            where = f"resource claim {full_name(claim)}, request {request.name}"
            if request.exactly is None and not request.first_available:
                return unresolvable(f"{where}: unknown request type")
            if request.exactly is None and not self._alternatives:
                return unresolvable(
                    f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled"
                )
            for name, class_name in _classes_of(request):
                if not class_name:
                    return error(f"request {name}: unsupported request type")
                if snapshot.listers.device_classes.get(class_name) is None:
                    return unresolvable(f"request {name}: device class {class_name} does not exist")
        return None


def share_allocations(attempt: Attempt, allocations: Mapping[str, AllocationResult]) -> None:
    """Let the claims of an attempt count as allocated that other pods are about to allocate.

    Parameters
    ----------
    attempt
        The attempt, before its search is made.
    allocations
        The allocations by the uid of their claim.
    """
    for each in attempt.unallocated:
        if each.shared is None and each.uid in allocations:
            each.shared = allocations[each.uid]
            each.reachable = _matcher(each.shared)


def _is_shared(under_way: UnderWay, pod: PodInfo, snapshot: Snapshot) -> bool:
    """Whether the pod counts on an allocation that another pod began, on trial or for good.

    kube-scheduler's recordings hold that no pod does.
    """
    if under_way.on_trial or snapshot.nominated_everywhere:
        return True
    group = under_way.group
    return group is not None and snapshot.groups.key_of(pod.pod) == group


def _classes_of(request: DeviceRequest) -> Iterator[tuple[str, str]]:
    """Yield the position in the claim, and the name, of each class."""
    if request.exactly is not None:
        yield request.name, request.exactly.device_class_name
        return
    for alternative in request.first_available:
        yield f"{request.name}/{alternative.name}", alternative.device_class_name


def _matcher(allocation: AllocationResult) -> NodeMatcher | None:
    """Compile the matcher of nodes that reach an allocation; None for every node.

    Raises
    ------
    ValueError
        The selector is invalid.
    """
    if allocation.node_selector is None:
        return None
    matcher = compile_node_selector(allocation.node_selector)
    if matcher.error is not None:
        raise ValueError(matcher.error)
    return matcher

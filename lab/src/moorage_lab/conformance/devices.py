"""Resource claims in a recorded case: possible allocations on nodes, and the allocation made.

In a sequence PreBind of DynamicResources runs before the next pod is scheduled. Here its outcome
goes straight into the listers.
"""

from __future__ import annotations

import msgspec

from moorage.api.codec import to_dict
from moorage.api.devices import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from moorage.framework.cycle_state import CycleState
from moorage.plugins.claims.attempt import Attempt, with_allocation
from moorage.plugins.claims.dynamic_resources import CLAIMS
from moorage.plugins.claims.extended import is_in_memory
from moorage.plugins.claims.pod_claims import is_reserved_for
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.conformance.recordings import Json


def allocations_on(state: CycleState, node_name: str) -> list[Json]:
    """Return the devices that an attempt would allocate on a node, as recorded."""
    attempt = state.find(CLAIMS) or Attempt(Snapshot())
    results = attempt.results_on(node_name)
    pairs = zip(attempt.unallocated, results, strict=False)
    return [_claim_row(each.claim, allocation) for each, allocation in pairs]


def publish(state: CycleState, pod: PodInfo, snapshot: Snapshot) -> None:
    """Mark the claims of a pod as allocated and reserved for the pod."""
    attempt = state.find(CLAIMS) or Attempt(snapshot)
    own = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
    for each in attempt.claims:
        under_way = snapshot.claims.find_under_way(each.uid)
        claim = each.claim if under_way is None else under_way.claim
        if each.allocation is not None:
            # A claim that the pod names twice is written twice; no resourceVersion is compared.
            claim = with_allocation(claim, each.allocation)
        if claim.status.allocation is None or is_reserved_for(pod.pod, claim):
            continue
        reserved = [*claim.status.reserved_for, own]
        status = msgspec.structs.replace(claim.status, reserved_for=reserved)
        name = f"{pod.name}-extended-resources-0" if is_in_memory(claim) else claim.name
        metadata = msgspec.structs.replace(claim.metadata, name=name)
        snapshot.listers.resource_claims.put(
            msgspec.structs.replace(claim, metadata=metadata, status=status)
        )
        snapshot.claims.end_allocation(each.uid)


def _claim_row(claim: ResourceClaim, allocation: AllocationResult) -> Json:
    whole = to_dict(allocation)
    row: Json = {"results": [_result(each) for each in whole.get("devices", {}).get("results", ())]}
    if is_in_memory(claim):
        row["extendedResources"] = True
    else:
        row["claim"] = f"{claim.namespace}/{claim.name}"
    if "nodeSelector" in whole:
        row["nodeSelector"] = whole["nodeSelector"]
    return row


def _result(result: Json) -> Json:
    kept = ("request", "driver", "pool", "device", "adminAccess", "consumedCapacity")
    row = {key: result[key] for key in kept if key in result}
    return row | ({"shared": True} if "shareID" in result else {})

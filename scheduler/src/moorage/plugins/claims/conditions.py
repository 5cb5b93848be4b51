"""Readiness of allocated devices: binding conditions and their timeouts.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources``
(isClaimReadyForBinding, isClaimTimeout).
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.devices import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from moorage.api.meta import Condition
from moorage.base.clock import Clock, parse_rfc3339
from moorage.plugins.claims.pod_claims import ClaimError

TIMED_OUT = "device binding timeout"
FAILED = "device binding failed"


def waits_for_devices(claim: ResourceClaim) -> bool:
    """Whether a pod must not be bound before some device of a claim is ready."""
    return any(True for _ in _conditional(claim))


def are_ready(claim: ResourceClaim) -> bool:
    """Whether the claim is allocated and all binding conditions of its devices are true.

    Raises
    ------
    ClaimError
        A device has failed.
    """
    if claim.status.allocation is None:
        return False
    for result in _conditional(claim):
        status = _status_of(claim, result)
        if status is None:
            return False
        for name in result.binding_failure_conditions:
            failed = _find(status, name)
            if failed is not None and failed.status == "True":
                raise ClaimError(
                    f"{FAILED}: claim={claim.name}, reason={failed.reason}, "
                    f'message="{failed.message}"'
                )
        for name in result.binding_conditions:
            met = _find(status, name)
            if met is None or met.status != "True":
                return False
    return True


def is_overdue(claim: ResourceClaim, clock: Clock, *, timeout_ns: int) -> bool:
    """Whether the time for the devices of a claim to become ready is over."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    if not waits_for_devices(claim):
        return False
    return parse_rfc3339(allocation.allocation_timestamp) + timeout_ns < clock.now_ns()


def is_lost(claim: ResourceClaim, clock: Clock, *, timeout_ns: int) -> bool:
    """Whether the devices of an allocated claim have failed or timed out."""
    try:
        return not are_ready(claim) and is_overdue(claim, clock, timeout_ns=timeout_ns)
    except ClaimError:
        return True


def _conditional(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return (result for result in results if result.binding_conditions)


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    device = result.driver, result.pool, result.device
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == device:
            return status
    return None


def _find(status: AllocatedDeviceStatus, name: str) -> Condition | None:
    return next((each for each in status.conditions if each.type == name), None)

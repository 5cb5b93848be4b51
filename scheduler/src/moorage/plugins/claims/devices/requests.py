"""Compiled claims: requests with their alternatives, classes and constraints.

Claims are compiled once a cycle. This module finds the faults that do not depend on the node.

Rules mirrored: kubernetes v1.36 ``structured/internal/incubating/allocator_incubating.go``
``Allocate`` and ``validateDeviceRequest``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from moorage.api.devices import (
    CapacityRequirements,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from moorage.plugins.claims.devices.capacity import Amount, parse_amount
from moorage.plugins.claims.devices.contract import AllocationError, Features

RESULTS_MAX: Final = 32
"""Greatest number of devices of a claim (resource.k8s.io/v1 ``AllocationResultsMaxSize``)."""

FindClass = Callable[[str], DeviceClass | None]


class Alternative(NamedTuple):
    """One request, or one of its sub-requests."""

    claim: str
    """The claim's name in messages."""
    request: str
    """Name of the request."""
    sub_request: str
    """Name of the sub-request, empty for a request without alternatives."""
    device_class: DeviceClass
    expressions: tuple[str, ...]
    """Selectors: the class's, then the request's own."""
    is_all: bool
    wanted: int
    """Number of devices; ignored in a request for all devices."""
    admin_access: bool
    tolerations: Sequence[DeviceToleration]
    capacity: Mapping[str, Amount]

    def selector_name(self, index: int) -> str:
        """Return the name of a selector in messages."""
        of_class = len(self.device_class.spec.selectors)
        if index < of_class:
            return f"class {self.device_class.name}: selector #{index}"
        return f"claim {self.claim}: selector #{index - of_class}"

    @property
    def shape(self) -> tuple[object, ...]:
        """Everything that the search for devices, and a result for a device, depend on."""
        return (
            self.request,
            self.sub_request,
            self.expressions,
            self.is_all,
            self.wanted,
            self.admin_access,
            tuple(self.tolerations),
            tuple(sorted(self.capacity.items())),
        )

    @property
    def own_name(self) -> str:
        """The name in messages."""
        return self.sub_request or self.request

    @property
    def full_name(self) -> str:
        """The name in results."""
        return f"{self.request}/{self.sub_request}" if self.sub_request else self.request


class Constraint(NamedTuple):
    """An attribute that must be equal, or distinct, among devices of some or all requests."""

    attribute: str
    is_distinct: bool
    requests: frozenset[str]

    def concerns(self, alternative: Alternative) -> bool:
        """Whether the constraint applies to devices of this request."""
        names = self.requests
        return not names or alternative.request in names or alternative.full_name in names


class Demand(NamedTuple):
    """A claim to allocate."""

    claim: ResourceClaim
    requests: tuple[tuple[Alternative, ...], ...]
    """The alternatives of each request in order of preference; mostly one."""
    constraints: tuple[Constraint, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for claims with equal solutions: only names and settings may differ."""
        requests = tuple(tuple(each.shape for each in request) for request in self.requests)
        return requests, self.constraints

    @property
    def has_alternatives(self) -> bool:
        """Whether a request has sub-requests to choose from."""
        return any(request[0].sub_request for request in self.requests)


def claim_text(claim: ResourceClaim) -> str:
    """Return the name of a claim in messages."""
    return f"{claim.namespace}/{claim.name}" if claim.namespace else claim.name


def compile_claim(claim: ResourceClaim, find_class: FindClass, features: Features) -> Demand:
    """Compile a claim.

    Raises
    ------
    AllocationError
        A class is missing, a feature is off, or a field has an unknown form; upstream's text.
    """
    devices = claim.spec.devices
    return Demand(
        claim,
        tuple(_request(claim, request, find_class, features) for request in devices.requests),
        tuple(
            _constraint(claim, index, constraint)
            for index, constraint in enumerate(devices.constraints)
        ),
    )


def _request(
    claim: ResourceClaim, request: DeviceRequest, find_class: FindClass, features: Features
) -> tuple[Alternative, ...]:
    where = f"claim {claim_text(claim)}, request {request.name}"
    if request.first_available and not features.prioritized_list:
        raise AllocationError(
            f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled"
        )
    if request.first_available:
        return tuple(
            _alternative(claim, (request.name, sub.name), sub, find_class, features)
            for sub in request.first_available
        )
    exactly = request.exactly or ExactDeviceRequest()
    return (_alternative(claim, (request.name, ""), exactly, find_class, features),)


def _alternative(
    claim: ResourceClaim,
    names: tuple[str, str],
    request: ExactDeviceRequest | DeviceSubRequest,
    find_class: FindClass,
    features: Features,
) -> Alternative:
    own_name = names[1] or names[0]
    where = f"claim {claim_text(claim)}, request {own_name}"
    if request.capacity is not None and not features.consumable_capacity:
        kind = "subrequest" if names[1] else "request"
        raise AllocationError(
            f"claim {claim_text(claim)}, {kind} {own_name}: has capacity requests, "
            "but the DRAConsumableCapacity feature is disabled"
        )
    _check_selectors(request.selectors, where)
    admin_access = request.admin_access if isinstance(request, ExactDeviceRequest) else None
    if admin_access is not None and not features.admin_access:
        raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
    device_class = _class(request.device_class_name, where, find_class)
    if request.allocation_mode not in {"", "ExactCount", "All"}:
        raise AllocationError(f"{where}: unsupported count mode {request.allocation_mode}")
    selectors = (*device_class.spec.selectors, *request.selectors)
    return Alternative(
        claim_text(claim),
        *names,
        device_class,
        tuple(selector.cel.expression for selector in selectors if selector.cel is not None),
        request.allocation_mode == "All",
        request.count or 1,
        bool(admin_access),
        request.tolerations,
        _capacity(request.capacity, where),
    )


def _class(name: str, where: str, find_class: FindClass) -> DeviceClass:
    if not name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = find_class(name)
    if device_class is None:
        raise AllocationError(
            f"{where}: could not retrieve device class {name}: "
            f'deviceclass.resource.k8s.io "{name}" not found'
        )
    _check_selectors(device_class.spec.selectors, f"class {name}")
    return device_class


def _check_selectors(selectors: Sequence[DeviceSelector], where: str) -> None:
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            raise AllocationError(
                f"{where}, selector #{index}: CEL expression empty (unsupported selector type?)"
            )


def _capacity(requirements: CapacityRequirements | None, where: str) -> dict[str, Amount]:
    if requirements is None:
        return {}
    try:
        return {name: parse_amount(quantity) for name, quantity in requirements.requests.items()}
    except ValueError as error:
        raise AllocationError(f"{where}: capacity: {error}") from error


def _constraint(claim: ResourceClaim, index: int, constraint: DeviceConstraint) -> Constraint:
    attribute = constraint.match_attribute or constraint.distinct_attribute
    if not attribute:
        raise AllocationError(
            f"claim {claim_text(claim)}, constraint #{index}: "
            "empty constraint (unsupported constraint type?)"
        )
    is_distinct = constraint.match_attribute is None
    return Constraint(attribute, is_distinct, frozenset(constraint.requests))

"""Dynamic resource allocation: resource.k8s.io/v1 as the scheduler and a driver read and write it.

Three parts: the devices a driver offers (ResourceSlice), the devices people ask for (DeviceClass,
ResourceClaim and its template) and the allocation (a claim's status). How a pod refers to claims is
in `moorage.api.claims`.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct, Condition, NodeSelector, ObjectMeta, Quantity

# --- what a driver offers ------------------------------------------------------------------------


class DeviceAttribute(ApiStruct, frozen=True, kw_only=True):
    """A typed value; exactly one field is set."""

    int_: int | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    """A semantic version."""


class CapacityRequestPolicyRange(ApiStruct, frozen=True, kw_only=True):
    """Amounts of a capacity that may be consumed: from min to max, in steps from min."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True, kw_only=True):
    """The amounts of a capacity that a request may consume; any up to the value by default."""

    default: Quantity | None = None
    valid_values: list[Quantity] = []
    """Ascending; exclusive with ``valid_range``."""
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True, kw_only=True):
    """An amount that a device has, and the portions in which it is shared."""

    value: Quantity = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct, frozen=True, kw_only=True):
    """The amount of a counter: the whole amount, or the part that a device consumes."""

    value: Quantity = 0


class CounterSet(ApiStruct, frozen=True, kw_only=True):
    """Counters several devices of a pool are cut from (partitionable devices)."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(ApiStruct, frozen=True, kw_only=True):
    """The share of one counter set that a device takes."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceTaint(ApiStruct, frozen=True, kw_only=True):
    """A mark that keeps requests off a device; the effect is None, NoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(ApiStruct, frozen=True, kw_only=True):
    """One device of a slice.

    Attributes and capacities are keyed by a C identifier (the domain is the driver's then) or by
    ``domain/identifier``.
    """

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[DeviceCounterConsumption] = []
    node_name: str = ""
    """The first of three fields that say where the device is, with ``perDeviceNodeSelection``."""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: list[DeviceTaint] = []
    binds_to_node: bool = False
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool = False


class ResourcePool(ApiStruct, frozen=True, kw_only=True):
    """The pool a slice belongs to; only slices of the highest generation count."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(ApiStruct, frozen=True, kw_only=True):
    """Devices or counters of a pool and the nodes that can reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    """Exactly one of the four fields from here on names the nodes; none in a slice of counters."""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceSlice: a part of a pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(ApiStruct, frozen=True, kw_only=True):
    """The devices that a rule taints; a field that is None matches every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct, frozen=True, kw_only=True):
    """A taint, and the devices that get it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io DeviceTaintRule, of v1beta2 or v1: an administrator's taint of devices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# --- what people ask for -------------------------------------------------------------------------


class CELDeviceSelector(ApiStruct, frozen=True, kw_only=True):
    """An expression over the variable ``device``."""

    expression: str = ""


class DeviceSelector(ApiStruct, frozen=True, kw_only=True):
    """A condition on devices; CEL is the only form there is."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Settings for a driver, passed on unread."""

    driver: str = ""
    parameters: dict[str, object] = {}


class DeviceClassConfiguration(ApiStruct, frozen=True, kw_only=True):
    """A setting for every device allocated through a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(ApiStruct, frozen=True, kw_only=True):
    """The choice of the class's devices, and the extended resource name of the class."""

    selectors: list[DeviceSelector] = []
    config: list[DeviceClassConfiguration] = []
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io/v1 DeviceClass: a set of devices that an administrator named."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(ApiStruct, frozen=True, kw_only=True):
    """A device taint that a request tolerates, by the rules of pod tolerations."""

    key: str = ""
    operator: str = ""
    """Exists, or Equal when empty."""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(ApiStruct, frozen=True, kw_only=True):
    """The amount requested of each capacity of a device."""

    requests: dict[str, Quantity] = {}


class ExactDeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """Devices of one class: a count of them, or all that match."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    """All, or ExactCount when empty."""
    count: int = 0
    """0 stands for the default, 1."""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ApiStruct, frozen=True, kw_only=True):
    """One of several alternatives of a request, in order of preference."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: int = 0
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class DeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """A named request: one of the two forms is set."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(ApiStruct, frozen=True, kw_only=True):
    """An attribute that devices of several requests must share, or must not; one field is set."""

    requests: list[str] = []
    """``request`` or ``request/subrequest``; empty means all."""
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(ApiStruct, frozen=True, kw_only=True):
    """A setting for the devices of some requests, or of all."""

    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiStruct, frozen=True, kw_only=True):
    """Requests, constraints over them, and settings for the drivers."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[DeviceClaimConfiguration] = []


class ResourceClaimSpec(ApiStruct, frozen=True, kw_only=True):
    """The requests and constraints of a claim."""

    devices: DeviceClaim = DeviceClaim()


# --- what was allocated --------------------------------------------------------------------------


class DeviceRequestAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """A device, or a share of one, allocated for a request."""

    request: str = ""
    """``request`` or ``request/subrequest``."""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    share_id: str | None = None
    """Set for a device that allows multiple allocations; tells its shares apart."""
    consumed_capacity: dict[str, Quantity] = {}


class DeviceAllocationConfiguration(ApiStruct, frozen=True, kw_only=True):
    """A setting that applies to allocated devices; the source is FromClass or FromClaim."""

    source: str = ""
    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """The devices of an allocation and the settings for them."""

    results: list[DeviceRequestAllocationResult] = []
    config: list[DeviceAllocationConfiguration] = []


class AllocationResult(ApiStruct, frozen=True, kw_only=True):
    """The devices that a claim got, and the nodes that reach them (None: all nodes)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class NetworkDeviceData(ApiStruct, frozen=True, kw_only=True):
    """The report of a driver about a network interface."""

    interface_name: str = ""
    ips: list[str] = []
    hardware_address: str = ""


class AllocatedDeviceStatus(ApiStruct, frozen=True, kw_only=True):
    """The report of a driver about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = None
    conditions: list[Condition] = []
    data: dict[str, object] = {}
    network_data: NetworkDeviceData | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True, kw_only=True):
    """An object that may use an allocated claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The allocation of a claim, the pods it is reserved for, and the state of its devices."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] = []
    devices: list[AllocatedDeviceStatus] = []


class ResourceClaim(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceClaim: devices asked for, and got."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    """Labels, annotations and spec of the claims made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceClaimTemplate: each pod naming it gets a claim of its own."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()

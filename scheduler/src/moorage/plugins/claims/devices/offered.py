"""A slice and its devices, parsed once; equal devices share one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from moorage.api.codec import encode
from moorage.api.devices import CounterSet, Device, DeviceAttribute, DeviceTaint, ResourceSlice
from moorage.api.meta import NodeSelector
from moorage.api.quantity import parse_quantity
from moorage.api.selectors import NodeMatcher, compile_node_selector
from moorage.api.semver import parse_version
from moorage.cel.functions import quantity_value, version_value
from moorage.cel.selector_cost import fits
from moorage.plugins.claims.devices.capacity import CapacityRule, parse_capacity
from moorage.plugins.claims.devices.cel import CelInput, SelectorFault, matches
from moorage.plugins.claims.devices.contract import AllocationError, DeviceID, NodeFacts, PoolID

_KEEPING_OFF = frozenset({"NoSchedule", "NoExecute"})
_JUDGEMENTS_MAX = 256
"""Number of answers kept for a kind; a guess, because claims may have unique selectors."""

_LISTS_MAX = 64
"""Number of lists of devices whose reading is kept; a guess: nodes of one type have equal lists."""

AttributeValue = tuple[str, str | int | bool]
"""Type and value: only values of one type can be equal."""

Counters = Mapping[str, Mapping[str, int]]
"""Nano units by counter set and counter."""


class DeviceKind:
    """Devices that differ only in name and in position.

    Parameters
    ----------
    driver
        Domain of unqualified names.
    device
        Any device of the kind.
    profile
        All other properties of devices of the kind.
    """

    def __init__(self, driver: str, device: Device, profile: tuple[object, ...]) -> None:
        self.profile = profile
        """The properties that the search reads besides selectors and attributes."""
        self._driver = driver
        self._device = device
        self._judgements: dict[str, bool | SelectorFault] = {}

    def fulfils_selector(self, expression: str) -> bool | SelectorFault:
        """Whether devices of this kind fulfil a selector; evaluated once, then kept."""
        answer = self._judgements.get(expression)
        if answer is None:
            if len(self._judgements) >= _JUDGEMENTS_MAX:
                self._judgements.clear()
            variable = self._variable
            answer = (
                variable if isinstance(variable, SelectorFault) else matches(expression, variable)
            )
            self._judgements[expression] = answer
        return answer

    @cached_property
    def _variable(self) -> CelInput | SelectorFault:
        attributes: dict[str, dict[str, Any]] = {}
        for name, attribute in self._device.attributes.items():
            domain, identifier = split_name(name, self._driver)
            try:
                attributes.setdefault(domain, {})[identifier] = _cel_value(attribute)
            except ValueError as error:
                return SelectorFault("runtime", f"attribute {name}: {error}")
        capacity: dict[str, dict[str, bytes]] = {}
        for name, amount in self._device.capacity.items():
            domain, identifier = split_name(name, self._driver)
            nano = parse_quantity(amount.value)
            capacity.setdefault(domain, {})[identifier] = quantity_value(nano)
        shareable = self._device.allow_multiple_allocations
        oversized = not (fits(attributes) and fits(capacity))
        return CelInput(self._driver, attributes, capacity, shareable, oversized)


class OfferedDevice(NamedTuple):
    """A device of a slice."""

    id: DeviceID
    device: Device
    slice_: OfferedSlice
    kind: DeviceKind
    capacity: Mapping[str, CapacityRule]
    consumes: Counters
    taints: tuple[DeviceTaint, ...]
    """Taints that exclude requests without a matching toleration."""
    shareable: bool
    """Whether the device may be allocated several times, in shares."""

    def attribute(self, name: str) -> AttributeValue | None:
        """Return the value of a fully qualified attribute; the driver's domain may be implied."""
        attributes = self.device.attributes
        found = attributes.get(name)
        if found is None:
            domain, _, identifier = name.partition("/")
            found = attributes.get(identifier) if domain == self.id.driver else None
        return None if found is None else attribute_value(found)


class OfferedSlice:
    """A slice: the nodes that reach it, and its devices.

    Parameters
    ----------
    slice_
        The slice as the driver wrote it; `offer` sets the other attributes.
    """

    def __init__(self, slice_: ResourceSlice) -> None:
        self.api = slice_
        self.pool = PoolID(slice_.spec.driver, slice_.spec.pool.name)
        self.devices: tuple[OfferedDevice, ...] = ()
        self.counter_sets: tuple[tuple[str, Mapping[str, int]], ...] = ()
        self.fault: str | None = None
        """Reason why the slice is invalid; no pool with an invalid slice is used."""

    @cached_property
    def _nodes(self) -> NodeMatcher:
        return compile_node_selector(self.api.spec.node_selector)

    @cached_property
    def _nodes_of_devices(self) -> dict[str, NodeMatcher]:
        # By name, because a device does not know its position in the slice.
        return {d.name: compile_node_selector(d.node_selector) for d in self.api.spec.devices}

    def is_reached_from(self, node: NodeFacts) -> bool:
        """Whether the slice offers devices or counters to a node; counters are for all nodes.

        Raises
        ------
        AllocationError
            A node selector is invalid.
        """
        spec = self.api.spec
        if spec.shared_counters:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            if spec.node_name:
                return spec.node_name == node.name
            return spec.all_nodes or _selected(spec.node_selector, self._nodes, node)
        if not spec.per_device_node_selection:
            return False  # an unknown way to select nodes
        return any(self._device_is_reached(device, node) for device in spec.devices)

    def device_is_reached_from(self, device: Device, node: NodeFacts) -> bool:
        """Whether a node that reaches the slice can use this device."""
        if not self.api.spec.per_device_node_selection:
            return True
        return self._device_is_reached(device, node)

    def _device_is_reached(self, device: Device, node: NodeFacts) -> bool:
        if device.node_name:
            return device.node_name == node.name
        matcher = self._nodes_of_devices[device.name]
        return device.all_nodes or _selected(device.node_selector, matcher, node)


def offer(
    slice_: ResourceSlice,
    kinds: KindTable,
    *,
    consumable_capacity: bool,
    fractional_capacity: bool = False,
) -> OfferedSlice:
    """Read a slice; a slice with an invalid quantity has a fault and no devices."""
    offered = OfferedSlice(slice_)
    gates = consumable_capacity, fractional_capacity
    try:
        offered.counter_sets = tuple(_counter_set(found) for found in slice_.spec.shared_counters)
        traits = kinds.traits_of(slice_.spec.driver, slice_.spec.devices, gates)
    except ValueError as error:
        offered.fault = f"resource slice {slice_.name}: {error}"
        return offered
    offered.devices = tuple(
        OfferedDevice(DeviceID(*offered.pool, device.name), device, offered, *each)
        for device, each in zip(slice_.spec.devices, traits, strict=True)
    )
    return offered


class _Traits(NamedTuple):
    """The last fields of `OfferedDevice`, which do not depend on the slice."""

    kind: DeviceKind
    capacity: Mapping[str, CapacityRule]
    consumes: Counters
    taints: tuple[DeviceTaint, ...]
    shareable: bool


def _traits(driver: str, device: Device, kinds: KindTable, gates: _Gates) -> _Traits:
    consumable_capacity, fractional_capacity = gates
    capacity = {
        name: parse_capacity(amounts, fractions=fractional_capacity)
        for name, amounts in device.capacity.items()
    }
    consumes = _consumed_counters(device)
    taints = tuple(taint for taint in device.taints if taint.effect in _KEEPING_OFF)
    shareable = consumable_capacity and device.allow_multiple_allocations
    profile = (
        tuple(sorted(capacity.items())),
        tuple(sorted((name, tuple(sorted(amounts.items()))) for name, amounts in consumes.items())),
        tuple((taint.key, taint.value, taint.effect) for taint in taints),
        shareable,
        bool(device.binding_conditions),
    )
    kind = kinds.kind(driver, device, profile)
    return _Traits(kind, capacity, consumes, taints, shareable)


_Gates: TypeAlias = tuple[bool, bool]
"""Consumable capacity, and fractions of it."""


class KindTable:
    """Kinds of devices, each kept while a device of the kind is offered."""

    def __init__(self) -> None:
        self._kinds: WeakValueDictionary[tuple[object, ...], DeviceKind] = WeakValueDictionary()
        self._traits: dict[tuple[str, bytes, _Gates], tuple[_Traits, ...]] = {}

    def traits_of(
        self, driver: str, devices: Sequence[Device], gates: _Gates
    ) -> tuple[_Traits, ...]:
        """Read the devices of a slice; equal lists of devices are read once.

        Raises
        ------
        ValueError
            A quantity is invalid.
        """
        key = driver, encode(devices), gates
        traits = self._traits.get(key)
        if traits is None:
            if len(self._traits) >= _LISTS_MAX:
                self._traits.clear()
            traits = tuple(_traits(driver, device, self, gates) for device in devices)
            self._traits[key] = traits
        return traits

    def kind(self, driver: str, device: Device, profile: tuple[object, ...]) -> DeviceKind:
        """Return the kind of a device; create the kind for its first device."""
        attributes = sorted((name, attribute_value(a)) for name, a in device.attributes.items())
        key = (driver, tuple(attributes), device.allow_multiple_allocations, profile)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = DeviceKind(driver, device, profile)
        return found


def attribute_value(attribute: DeviceAttribute) -> AttributeValue:
    """Return an attribute's type and value, for comparison."""
    if attribute.string is not None:
        return ("string", attribute.string)
    if attribute.int_ is not None:
        return ("int", attribute.int_)
    if attribute.bool_ is not None:
        return ("bool", attribute.bool_)
    if attribute.version is not None:
        return ("version", attribute.version)
    return ("unknown", "")


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Return domain and identifier of a name; the default domain is the driver's."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _cel_value(attribute: DeviceAttribute) -> str | int | bool | bytes:
    kind, value = attribute_value(attribute)
    if kind == "unknown":
        raise ValueError("unsupported attribute value")
    if kind != "version":
        return value
    try:
        return version_value(parse_version(str(value)))
    except ValueError as error:
        raise ValueError(f"parse semantic version: {error}") from error


def _selected(selector: NodeSelector | None, matcher: NodeMatcher, node: NodeFacts) -> bool:
    if selector is None:
        return False
    if matcher.error is not None:
        raise AllocationError(f"gather pool information: node selector: {matcher.error}")
    return matcher.matches_node(node.labels, node.name)


def _counter_set(counter_set: CounterSet) -> tuple[str, Mapping[str, int]]:
    return counter_set.name, {
        name: parse_quantity(c.value) for name, c in counter_set.counters.items()
    }


def _consumed_counters(device: Device) -> Counters:
    consumed: dict[str, dict[str, int]] = {}
    for entry in device.consumes_counters:
        into = consumed.setdefault(entry.counter_set, {})
        for name, counter in entry.counters.items():
            into[name] = into.get(name, 0) + parse_quantity(counter.value)
    return consumed

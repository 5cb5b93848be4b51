"""The rules of the spec of a service.

Place in the flow: `service` has the kind, its defaults and what the server gives it. Mirrors
kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidateService and what it calls).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from moorage.api.names import dns_label_faults, dns_subdomain_faults, qualified_name_faults
from moorage.kinds.fields import (
    PROTOCOLS,
    duplicates,
    if_present,
    name_rule,
    one_of,
    port,
    port_of_service,
    rules,
    within,
)
from moorage.kinds.kind import (
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.kinds.metadata import check_labels
from moorage.kinds.tree import Json, child, items, number, objects, strings, text
from moorage.kinds.values.addresses import Address, address_of, check_address, check_network

HEADLESS: Final = "None"
"""The address of a service without one."""
ON_NODES: Final = ("LoadBalancer", "NodePort")
"""Types whose ports are open on every node."""
TYPES: Final = ("ClusterIP", "ExternalName", *ON_NODES)
_STICKY_SECONDS_MAX: Final = 86_400
_FAMILIES: Final = ("IPv4", "IPv6")
_LINK_MULTICAST: Final = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))

_port = rules(
    ("port", port_of_service),
    ("protocol", one_of(*PROTOCOLS)),
    ("targetPort", port),
    ("appProtocol", if_present(name_rule(qualified_name_faults, empty="refused"))),
)


def _ports(spec: Json, where: str) -> list[FieldError]:
    ports, field = objects(spec, "ports"), f"{where}.ports"
    errors: list[FieldError] = []
    kind = text(spec, "type")
    if not ports and text(spec, "clusterIP") != HEADLESS and kind != "ExternalName":
        errors.append(required(field))
    names: set[str] = set()
    for index, each in enumerate(ports):
        place, name = f"{field}[{index}]", text(each, "name")
        errors += [invalid(f"{place}.name", name, at) for at in dns_label_faults(name) if name]
        if not name and len(ports) > 1:
            errors.append(required(f"{place}.name"))
        elif name and name in names:
            errors.append(duplicate(f"{place}.name", name))
        names.add(name)
        errors += _port(each, place)
        if kind == "ClusterIP" and number(each, "nodePort"):
            detail = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden(f"{place}.nodePort", detail))
    return errors + _distinct(ports, field)


def _distinct(ports: list[Json], field: str) -> list[FieldError]:
    """Refuse two ports of one protocol with one number, inside the cluster or on its nodes."""
    errors: list[FieldError] = []
    numbers: set[tuple[str, str, int]] = set()
    for index, each in enumerate(ports):
        protocol = text(each, "protocol")
        for name, where in (("nodePort", f"{field}[{index}].nodePort"), ("port", "")):
            key = (name, protocol, number(each, name))
            if key in numbers and key[2]:
                same = {"protocol": protocol, "port": key[2]}
                errors.append(
                    duplicate(where, key[2]) if where else duplicate(f"{field}[{index}]", same)
                )
            numbers.add(key)
    return errors


def _of_type(spec: Json, where: str) -> list[FieldError]:
    kind, headless = text(spec, "type"), text(spec, "clusterIP") == HEADLESS
    if kind in ON_NODES and headless:
        detail = f"may not be set to 'None' for {kind} services"
        return [invalid(f"{where}.clusterIPs[0]", HEADLESS, detail)]
    if kind != "ExternalName":
        return []
    fields = {
        "clusterIPs": text(spec, "clusterIP") or items(spec, "clusterIPs"),
        "ipFamilies": items(spec, "ipFamilies"),
        "ipFamilyPolicy": spec.get("ipFamilyPolicy"),
    }
    detail = "may not be set for ExternalName services"
    errors = [forbidden(f"{where}.{name}", detail) for name, value in fields.items() if value]
    name, field = text(spec, "externalName").removesuffix("."), f"{where}.externalName"
    if not name:
        return [*errors, required(field)]
    return errors + [invalid(field, name, fault) for fault in dns_subdomain_faults(name)]


_seconds = within(
    1, _STICKY_SECONDS_MAX, f"must be greater than 0 and less than {_STICKY_SECONDS_MAX}"
)


def _affinity(spec: Json, where: str) -> list[FieldError]:
    """Check how long a client sticks to an endpoint; defaulting drops the time of other clients."""
    if text(spec, "sessionAffinity") != "ClientIP":
        return []
    place = f"{where}.sessionAffinityConfig.clientIP.timeoutSeconds"
    return _seconds(child(spec, "sessionAffinityConfig", "clientIP").get("timeoutSeconds"), place)


def _families(spec: Json, where: str) -> list[FieldError]:
    """Check the families of addresses, and that the addresses are of them."""
    if text(spec, "type") == "ExternalName":
        return []
    families, field = strings(spec, "ipFamilies"), f"{where}.ipFamilies"
    errors = duplicates(families, lambda place: f"{field}[{place}]")
    errors += [
        not_supported(f"{field}[{index}]", family, _FAMILIES)
        for index, family in enumerate(families)
        if family not in _FAMILIES
    ]
    if errors:
        return errors
    pairs = zip(families, strings(spec, "clusterIPs"), strict=False)
    for index, (family, written) in enumerate(pairs):
        address = address_of(written)
        if address is not None and f"IPv{address.version}" != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{where}.clusterIPs[{index}]", written, detail))
    return errors


def _reach(address: Address) -> Iterator[str]:
    """Yield why an address is none that others can reach (ValidateEndpointIP)."""
    if address.is_unspecified:
        yield "may not be unspecified (0.0.0.0 or ::)"
    if address.is_loopback:
        yield "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    if address.is_link_local:
        yield "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    if any(address in network for network in _LINK_MULTICAST):
        yield "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"


def _outside(spec: Json, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, written in enumerate(strings(spec, "externalIPs")):
        field, address = f"{where}.externalIPs[{index}]", address_of(written)
        errors += check_address(written, field)
        if address is not None:
            errors += [invalid(field, written, fault) for fault in _reach(address)]
    return errors


def _balancer(spec: Json, where: str) -> list[FieldError]:
    """Check the fields that only load balancers have."""
    errors: list[FieldError] = []
    if text(spec, "type") != "LoadBalancer":
        detail = "may only be used when `type` is 'LoadBalancer'"
        names = ("allocateLoadBalancerNodePorts", "loadBalancerClass")
        errors += [forbidden(f"{where}.{name}", detail) for name in names if name in spec]
        if items(spec, "loadBalancerSourceRanges"):
            errors.append(forbidden(f"{where}.LoadBalancerSourceRanges", detail))
    for index, network in enumerate(strings(spec, "loadBalancerSourceRanges")):
        # The path is upstream's.
        errors += check_network(network.strip(), f"{where}.LoadBalancerSourceRanges[{index}]")
    return errors


_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"


def check_source_ranges(service: Obj, where: str) -> list[FieldError]:
    """Check the older form of ``loadBalancerSourceRanges``, an annotation."""
    value, spec = child(service, "metadata", "annotations").get(_RANGES), child(service, "spec")
    if value is None or items(spec, "loadBalancerSourceRanges"):
        return []
    field, errors = f"metadata.annotations[{_RANGES}]", list[FieldError]()
    if text(spec, "type") != "LoadBalancer":
        errors.append(forbidden(field, "may only be used when `type` is 'LoadBalancer'"))
    for network in value.split(",") if value.strip() else ():
        errors += check_network(network.strip(), field)
    return errors


def check_service_change(new: Obj, old: Obj) -> list[FieldError]:
    """Check what a load balancer keeps: its class, and the port that a health check asks."""
    spec, before = child(new, "spec"), child(old, "spec")
    if not text(spec, "type") == text(before, "type") == "LoadBalancer":
        return []
    errors, name = list[FieldError](), "loadBalancerClass"
    if spec.get(name) != before.get(name):
        errors.append(invalid(f"spec.{name}", spec.get(name), "may not change once set"))
    local = all(text(each, "externalTrafficPolicy") == "Local" for each in (spec, before))
    name = "healthCheckNodePort"
    if local and number(spec, name) != number(before, name):
        errors.append(forbidden(f"spec.{name}", "field is immutable"))
    return errors


def _traffic(spec: Json, where: str) -> list[FieldError]:
    """Check the policy of traffic from outside, and the port that tells a balancer of it."""
    kind, policy = text(spec, "type"), text(spec, "externalTrafficPolicy")
    on_nodes = kind in ON_NODES
    field, errors = f"{where}.externalTrafficPolicy", []
    if on_nodes or (kind == "ClusterIP" and items(spec, "externalIPs")):
        errors += one_of("Cluster", "Local", empty="required" if on_nodes else "accepted")(
            policy, field
        )
    elif policy:
        errors.append(invalid(field, policy, "may only be set for externally-accessible services"))
    health_port = number(spec, "healthCheckNodePort")
    if health_port and (kind, policy) != ("LoadBalancer", "Local"):
        detail = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        errors.append(invalid(f"{where}.healthCheckNodePort", health_port, detail))
    return errors


check_service_spec = rules(
    _of_type,
    ("type", one_of(*TYPES)),
    _ports,
    ("selector", check_labels),
    ("sessionAffinity", one_of("ClientIP", "None")),
    _affinity,
    (
        "ipFamilyPolicy",
        one_of("PreferDualStack", "RequireDualStack", "SingleStack", empty="absent"),
    ),
    _families,
    _outside,
    _balancer,
    ("loadBalancerClass", if_present(name_rule(qualified_name_faults, empty="refused"))),
    _traffic,
    ("internalTrafficPolicy", one_of("Cluster", "Local", empty="absent")),
    (
        "trafficDistribution",
        one_of("PreferClose", "PreferSameNode", "PreferSameZone", empty="absent"),
    ),
)
"""Check the spec of a service, after the server has given it what it lacks."""

"""Defaults and rules of ingresses, network policies, endpoint slices and Endpoints.

Place in the flow: first step of a create or update, and validation. Mirrors kubernetes v1.36
pkg/apis/{core,discovery,networking}/v1/defaults.go and pkg/apis/{discovery,networking}/validation.
"""

from __future__ import annotations

import ipaddress

from moorage.api.names import dns_subdomain_faults
from moorage.apiserver.kind import FieldError, Obj, forbidden, invalid, not_supported, required
from moorage.apiserver.kinds.check_container import PROTOCOLS
from moorage.apiserver.kinds.check_scheduling import check_label_selector
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.name_rules import port_name, port_number, service_name
from moorage.apiserver.kinds.tree import (
    Json,
    attach,
    child,
    fill,
    fill_empty,
    number,
    objects,
    strings,
    text,
)

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_POLICY_TYPES = ("Egress", "Ingress")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
# Sequences that a path may not contain, so that it means the same to every controller.
_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_END = ("/..", "/.")


def default_ingress(obj: Json) -> None:
    """Default an ingress: only its status has a default."""
    attach(attach(obj, "status"), "loadBalancer")


def default_ingress_class(obj: Json) -> None:
    """Default an ingress class: parameters are cluster-scoped."""
    parameters = child(obj, "spec").get("parameters")
    if isinstance(parameters, dict):
        fill(parameters, {"scope": "Cluster"})


def default_network_policy(obj: Json) -> None:
    """Default a network policy: its policy types follow from its rules."""
    spec = attach(obj, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*objects(spec, "ingress"), *objects(spec, "egress")]:
        for port in objects(rule, "ports"):
            fill(port, {"protocol": "TCP"})


def default_endpoint_slice(obj: Json) -> None:
    """Default an endpoint slice's ports."""
    for port in objects(obj, "ports"):
        fill(port, {"name": "", "protocol": "TCP"})


def default_endpoints(obj: Json) -> None:
    """Default the ports of an Endpoints object."""
    for subset in objects(obj, "subsets"):
        for port in objects(subset, "ports"):
            fill_empty(port, {"protocol": "TCP"})


def check_ingress(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check an ingress."""
    del old
    spec = child(new, "spec")
    rules, backend = objects(spec, "rules"), spec.get("defaultBackend")
    errors = []
    if not rules and backend is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        errors.append(invalid("spec", [], detail))
    if backend is not None:
        errors += _check_backend(backend, "spec.defaultBackend")
    name = text(spec, "ingressClassName")
    if spec.get("ingressClassName") is not None:
        errors += [
            invalid("spec.ingressClassName", name, fault) for fault in dns_subdomain_faults(name)
        ]
    for index, rule in enumerate(rules):
        errors += _check_rule(rule, f"spec.rules[{index}]")
    return errors


def _check_rule(rule: Json, field: str) -> list[FieldError]:
    errors = []
    host = text(rule, "host")
    if host and _is_address(host):
        errors.append(invalid(f"{field}.host", host, "must be a DNS name, not an IP address"))
    elif host:
        faults = dns_subdomain_faults(host.removeprefix("*."))
        errors += [invalid(f"{field}.host", host, fault) for fault in faults]
    if rule.get("http") is None:
        return errors
    paths = objects(rule, "http", "paths")
    if not paths:
        errors.append(required(f"{field}.http.paths"))
    for index, path in enumerate(paths):
        errors += _check_path(path, f"{field}.http.paths[{index}]")
    return errors


def _check_path(path: Json, field: str) -> list[FieldError]:
    errors = []
    kind, where = text(path, "pathType"), text(path, "path")
    if not kind:
        errors.append(required(f"{field}.pathType", "pathType must be specified"))
    elif kind not in _PATH_TYPES:
        errors.append(not_supported(f"{field}.pathType", kind, _PATH_TYPES))
    elif not where.startswith("/") and (where or kind != "ImplementationSpecific"):
        errors.append(invalid(f"{field}.path", where, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        faults = [f"must not contain '{part}'" for part in _NOT_IN_PATHS if part in where]
        faults += [f"cannot end with '{part}'" for part in _NOT_AT_END if where.endswith(part)]
        errors += [invalid(f"{field}.path", where, fault) for fault in faults]
    return errors + _check_backend(child(path, "backend"), f"{field}.backend")


def _check_backend(backend: Json, field: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(field, "", "cannot set both resource and service backends")]
    if resource is not None:
        return [
            required(f"{field}.resource.{key}") for key in ("kind", "name") if not resource.get(key)
        ]
    if service is None:
        return [invalid(field, "", "resource or service backend is required")]
    name = text(service, "name")
    if not name:
        errors = [required(f"{field}.service.name")]
    else:
        errors = [invalid(f"{field}.service.name", name, fault) for fault in service_name(name)]
    port, called = number(service, "port", "number"), text(service, "port", "name")
    if port and called:
        errors.append(invalid(field, "", "cannot set both port name & port number"))
    elif called:
        where = f"{field}.service.port.name"
        errors += [invalid(where, called, fault) for fault in port_name(called)]
    elif port:
        where = f"{field}.service.port.number"
        errors += [invalid(where, port, fault) for fault in port_number(port)]
    else:
        errors.append(required(field, "port name or number is required"))
    return errors


def check_ingress_class(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check an ingress class; its controller never changes."""
    errors = []
    controller = text(new, "spec", "controller")
    if not controller:
        errors.append(required("spec.controller"))
    if old is not None and controller != text(old, "spec", "controller"):
        errors.append(immutable("spec.controller", controller))
    parameters = child(new, "spec", "parameters")
    if parameters:
        errors += [
            required(f"spec.parameters.{key}")
            for key in ("kind", "name")
            if not text(parameters, key)
        ]
        errors += _check_scope(parameters)
    return errors


def _check_scope(parameters: Json) -> list[FieldError]:
    scope, home = text(parameters, "scope"), parameters.get("namespace")
    field = "spec.parameters.namespace"
    if scope == "Namespace" and not home:
        return [required(field, "`parameters.scope` is set to 'Namespace'")]
    if scope == "Cluster" and home is not None:
        return [forbidden(field, "`parameters.scope` is set to 'Cluster'")]
    if scope not in ("Cluster", "Namespace"):
        return [not_supported("spec.parameters.scope", scope, ("Cluster", "Namespace"))]
    return []


def check_network_policy(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a network policy."""
    del old
    spec = child(new, "spec")
    errors = check_label_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(objects(spec, direction)):
            where = f"spec.{direction}[{index}]"
            for place, port in enumerate(objects(rule, "ports")):
                errors += _check_policy_port(port, f"{where}.ports[{place}]")
            for place, peer in enumerate(objects(rule, peers)):
                errors += _check_peer(peer, f"{where}.{peers}[{place}]")
    for index, kind in enumerate(strings(spec, "policyTypes")):
        if kind not in _POLICY_TYPES:
            errors.append(not_supported(f"spec.policyTypes[{index}]", kind, _POLICY_TYPES))
    return errors


def _check_policy_port(port: Json, field: str) -> list[FieldError]:
    errors = []
    protocol, which = text(port, "protocol"), port.get("port")
    if protocol not in PROTOCOLS:
        errors.append(not_supported(f"{field}.protocol", protocol, PROTOCOLS))
    if isinstance(which, int):
        errors += [invalid(f"{field}.port", which, fault) for fault in port_number(which)]
    elif isinstance(which, str):
        errors += [invalid(f"{field}.port", which, fault) for fault in port_name(which)]
    last = port.get("endPort")
    if last is not None and which is None:
        errors.append(invalid(f"{field}.endPort", last, "must be specified with `port`"))
    return errors


def _check_peer(peer: Json, field: str) -> list[FieldError]:
    errors = check_label_selector(peer.get("podSelector"), f"{field}.podSelector")
    errors += check_label_selector(peer.get("namespaceSelector"), f"{field}.namespaceSelector")
    chosen = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    block = peer.get("ipBlock")
    if block is None and not chosen:
        return [required(field, "must specify a peer")]
    if block is not None:
        if chosen:
            errors.append(forbidden(field, "may not specify both ipBlock and another peer"))
        cidr = text(block, "cidr")
        if not cidr:
            errors.append(required(f"{field}.ipBlock.cidr"))
        elif not _is_network(cidr):
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            errors.append(invalid(f"{field}.ipBlock.cidr", cidr, detail))
    return errors


def check_endpoint_slice(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check an endpoint slice; the type of its addresses never changes."""
    errors = []
    kind = text(new, "addressType")
    if not kind:
        errors.append(required("addressType"))
    elif kind not in _ADDRESS_TYPES:
        errors.append(not_supported("addressType", kind, _ADDRESS_TYPES))
    if old is not None and kind != text(old, "addressType"):
        errors.append(immutable("addressType", kind))
    for index, endpoint in enumerate(objects(new, "endpoints")):
        field = f"endpoints[{index}].addresses"
        addresses = strings(endpoint, "addresses")
        if not addresses:
            errors.append(required(field, "must contain at least 1 address"))
        if kind in ("IPv4", "IPv6"):
            errors += [
                invalid(f"{field}[{place}]", address, "must be a valid IP address, (e.g. 10.9.8.7)")
                for place, address in enumerate(addresses)
                if not _is_address(address)
            ]
    return errors


def check_endpoints(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check an Endpoints object."""
    del old
    errors = []
    for index, subset in enumerate(objects(new, "subsets")):
        field = f"subsets[{index}]"
        addresses = [*objects(subset, "addresses"), *objects(subset, "notReadyAddresses")]
        if not addresses:
            errors.append(required(field, "must specify `addresses` or `notReadyAddresses`"))
        errors += [
            invalid(f"{field}.addresses", text(each, "ip"), "must be a valid IP address")
            for each in addresses
            if not _is_address(text(each, "ip"))
        ]
        for place, port in enumerate(objects(subset, "ports")):
            which = number(port, "port")
            where = f"{field}.ports[{place}].port"
            errors += [invalid(where, which, fault) for fault in port_number(which)]
    return errors


def _is_address(text_: str) -> bool:
    try:
        ipaddress.ip_address(text_)
    except ValueError:
        return False
    return True


def _is_network(text_: str) -> bool:
    try:
        ipaddress.ip_network(text_, strict=False)
    except ValueError:
        return False
    return "/" in text_

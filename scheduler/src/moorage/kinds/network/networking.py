"""Ingress, IngressClass, NetworkPolicy, EndpointSlice and Endpoints.

Nothing is routed here.

Mirrors kubernetes v1.36 pkg/apis/{core,discovery,networking}/v1/defaults.go and
pkg/apis/{discovery,networking}/validation.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.kinds.cells import AGE, NAME, NONE, UNSET, column, first_few, format_selector
from moorage.kinds.fields import (
    PROTOCOLS,
    defaults,
    each,
    each_one_of,
    if_present,
    name_rule,
    needed,
    one_of,
    port,
    port_of_service,
    rules,
    unchanging,
)
from moorage.kinds.kind import (
    FieldError,
    Obj,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, items, number, objects, strings, text
from moorage.kinds.values.addresses import NO_NETWORK, address_of, network_of
from moorage.kinds.values.default_class import default_class
from moorage.kinds.values.name_rules import port_name, port_number, service_name
from moorage.kinds.values.selectors import check_label_selector

# Sequences that a path may not contain, so that it means the same to every controller.
_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_END = ("/..", "/.")


def _default_policy_types(obj: Json) -> None:
    """Derive the policy types from the rules."""
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _some_backend(spec: Json, where: str) -> list[FieldError]:
    if objects(spec, "rules") or spec.get("defaultBackend") is not None:
        return []
    return [invalid(where, [], "either `defaultBackend` or `rules` must be specified")]


def _host(host: str | None, where: str) -> list[FieldError]:
    if not host:
        return []
    if address_of(host) is not None:
        return [invalid(where, host, "must be a DNS name, not an IP address")]
    faults = dns_subdomain_faults(host.removeprefix("*."))
    return [invalid(where, host, fault) for fault in faults]


def _path(path: Json, field: str) -> list[FieldError]:
    kind, where = text(path, "pathType"), text(path, "path")
    errors = []
    if not kind:
        errors.append(required(f"{field}.pathType", "pathType must be specified"))
    elif kind not in ("Exact", "ImplementationSpecific", "Prefix"):
        known = ("Exact", "ImplementationSpecific", "Prefix")
        errors.append(not_supported(f"{field}.pathType", kind, known))
    elif not where.startswith("/") and (where or kind != "ImplementationSpecific"):
        errors.append(invalid(f"{field}.path", where, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        faults = [f"must not contain '{part}'" for part in _NOT_IN_PATHS if part in where]
        faults += [f"cannot end with '{part}'" for part in _NOT_AT_END if where.endswith(part)]
        errors += [invalid(f"{field}.path", where, fault) for fault in faults]
    return errors + _backend(path.get("backend"), f"{field}.backend")


def _backend(backend_or_none: Json | None, field: str) -> list[FieldError]:
    backend = backend_or_none or {}
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(field, "", "cannot set both resource and service backends")]
    if resource is not None:
        return rules(("kind name", needed()))(resource, f"{field}.resource")
    if service is None:
        return [invalid(field, "", "resource or service backend is required")]
    where = f"{field}.service"
    errors = name_rule(service_name, empty="required")(service.get("name"), f"{where}.name")
    numbered, called = number(service, "port", "number"), text(service, "port", "name")
    if numbered and called:
        return [*errors, invalid(field, "", "cannot set both port name & port number")]
    if not numbered and not called:
        return [*errors, required(field, "port name or number is required")]
    faults = name_rule(port_name)(called, f"{where}.port.name")
    return errors + faults + name_rule(port_number)(numbered, f"{where}.port.number")


_http = rules(("paths", needed()), ("paths", each(_path)))
_ingress = rules(
    _some_backend,
    ("defaultBackend", if_present(_backend)),
    ("ingressClassName", if_present(name_rule(dns_subdomain_faults, empty="refused"))),
    ("rules", each(rules(("host", _host), ("http", if_present(_http))))),
)


def _scope(parameters: Json, where: str) -> list[FieldError]:
    scope, home = text(parameters, "scope"), parameters.get("namespace")
    field = f"{where}.namespace"
    if scope == "Namespace" and not home:
        return [required(field, "`parameters.scope` is set to 'Namespace'")]
    if scope == "Cluster" and home is not None:
        return [forbidden(field, "`parameters.scope` is set to 'Cluster'")]
    return one_of("Cluster", "Namespace")(scope, f"{where}.scope")


_parameters = rules(("kind name", needed()), _scope)


def _some_parameters(parameters: Json | None, where: str) -> list[FieldError]:
    return _parameters(parameters, where) if parameters else []


def _end_port(policy_port: Json, where: str) -> list[FieldError]:
    last = policy_port.get("endPort")
    if last is None or policy_port.get("port") is not None:
        return []
    return [invalid(f"{where}.endPort", last, "must be specified with `port`")]


def _peer(peer: Json, field: str) -> list[FieldError]:
    chosen = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    block = peer.get("ipBlock")
    if block is None:
        return [] if chosen else [required(field, "must specify a peer")]
    errors = []
    if chosen:
        errors.append(forbidden(field, "may not specify both ipBlock and another peer"))
    cidr = text(block, "cidr")
    if not cidr:
        errors.append(required(f"{field}.ipBlock.cidr"))
    elif network_of(cidr) is None:
        errors.append(invalid(f"{field}.ipBlock.cidr", cidr, NO_NETWORK))
    return errors


_policy_ports = ("ports", each(rules(("protocol", one_of(*PROTOCOLS)), ("port", port), _end_port)))
_peers = each(rules(("podSelector namespaceSelector", check_label_selector), _peer))
_policy = rules(
    ("podSelector", check_label_selector),
    ("ingress", each(rules(_policy_ports, ("from", _peers)))),
    ("egress", each(rules(_policy_ports, ("to", _peers)))),
    ("policyTypes", each_one_of("Egress", "Ingress", by_index=True)),
)


def _addresses(obj: Obj, where: str) -> list[FieldError]:
    errors = []
    detail = "must be a valid IP address, (e.g. 10.9.8.7)"
    for index, endpoint in enumerate(objects(obj, "endpoints")):
        field, addresses = f"endpoints[{index}].addresses", strings(endpoint, "addresses")
        if not addresses:
            errors.append(required(field, "must contain at least 1 address"))
        if text(obj, "addressType") in ("IPv4", "IPv6"):
            errors += [
                invalid(f"{field}[{place}]", address, detail)
                for place, address in enumerate(addresses)
                if address_of(address) is None
            ]
    return errors


def _subset_addresses(subset: Json, field: str) -> list[FieldError]:
    addresses = [*objects(subset, "addresses"), *objects(subset, "notReadyAddresses")]
    if not addresses:
        return [required(field, "must specify `addresses` or `notReadyAddresses`")]
    return [
        invalid(f"{field}.addresses", text(each, "ip"), "must be a valid IP address")
        for each in addresses
        if address_of(text(each, "ip")) is None
    ]


_endpoint = rules(("hostname", if_present(name_rule(dns_label_faults, empty="refused"))))
_subset = rules(
    _subset_addresses,
    ("addresses notReadyAddresses", each(rules(("hostname", name_rule(dns_label_faults))))),
    ("ports", each(rules(("port", port_of_service)))),
)


def _hosts(obj: Obj) -> str:
    hosts = [host for rule in objects(obj, "spec", "rules") if (host := text(rule, "host"))]
    return first_few(hosts) or "*"


def _points(obj: Obj) -> str:
    points = objects(obj, "status", "loadBalancer", "ingress")
    return ",".join(text(point, "ip") or text(point, "hostname") for point in points)


def _ingress_ports(obj: Obj) -> str:
    return "80, 443" if objects(obj, "spec", "tls") else "80"


def _parameters_of(obj: Obj) -> str:
    parameters = child(obj, "spec", "parameters")
    kind, name, group = (text(parameters, key) for key in ("kind", "name", "apiGroup"))
    shown = f"{kind}.{group}/{name}" if group else f"{kind}/{name}"
    return shown if parameters else NONE


def _pods_of(obj: Obj) -> str:
    return format_selector(child(obj, "spec", "podSelector"))


def _slice_ports(obj: Obj) -> str:
    ports = [each.get("port") for each in objects(obj, "ports")]
    return ",".join("*" if each is None else str(each) for each in ports)


def _slice_endpoints(obj: Obj) -> str:
    points = objects(obj, "endpoints")
    return first_few([str(each) for point in points for each in items(point, "addresses")])


def _endpoints(obj: Obj) -> str:
    endpoints = []
    for subset in objects(obj, "subsets"):
        ports = [each.get("port") for each in objects(subset, "ports")]
        for address in objects(subset, "addresses"):
            ip = text(address, "ip")
            endpoints += [f"{ip}:{each}" for each in ports] if ports else [ip]
    return first_few(endpoints)


_CLASS_ANNOTATION = "kubernetes.io/ingress.class"


def _warn_of_ingress(obj: Obj) -> list[str]:
    if not text(obj, "metadata", "annotations", _CLASS_ANNOTATION):
        return []
    use = "please use 'spec.ingressClassName' instead"
    return [f'annotation "{_CLASS_ANNOTATION}" is deprecated, {use}']


INGRESS = ServedKind(
    resource=resources.INGRESSES,
    columns=(
        NAME,
        column(
            "Class",
            "spec.ingressClassName",
            "Class of the controller that should serve it",
            empty=NONE,
        ),
        column("Hosts", _hosts, "Hosts it has rules for"),
        column("Address", _points, "Where it can be reached"),
        column("Ports", _ingress_ports, "Ports it listens on"),
        AGE,
    ),
    defaults=defaults(unset={"status.loadBalancer": {}}),
    admit_new=default_class(
        "ingressclasses",
        marked="ingressclass.kubernetes.io/is-default-class",
        field="ingressClassName",
        older=_CLASS_ANNOTATION,
    ),
    warn_of_new=_warn_of_ingress,
    counts_generations=True,
    rules=rules(("spec", _ingress)),
)
INGRESS_CLASS = ServedKind(
    resource=resources.INGRESS_CLASSES,
    columns=(
        NAME,
        column("Controller", "spec.controller", "Who serves ingresses of this class"),
        column("Parameters", _parameters_of, "Where the controller finds its parameters"),
        AGE,
    ),
    defaults=defaults(unset={"spec?.parameters?.scope": "Cluster"}),
    counts_generations=True,
    rules=rules(("spec.controller", needed()), ("spec.parameters", _some_parameters)),
    change=unchanging("spec.controller"),
)
NETWORK_POLICY = ServedKind(
    resource=resources.NETWORK_POLICIES,
    columns=(NAME, column("Pod-Selector", _pods_of, "Pods it is about"), AGE),
    defaults=defaults(
        _default_policy_types,
        unset={
            "spec": {},
            "spec.ingress[].ports[].protocol": "TCP",
            "spec.egress[].ports[].protocol": "TCP",
        },
    ),
    counts_generations=True,
    rules=rules(("spec", _policy)),
)
ENDPOINT_SLICE = ServedKind(
    resource=resources.ENDPOINT_SLICES,
    acted_on_by="the endpoints controller",
    columns=(
        NAME,
        column("AddressType", "addressType", "Kind of its addresses"),
        column("Ports", _slice_ports, "Ports of its endpoints", empty=UNSET),
        column("Endpoints", _slice_endpoints, "Addresses of its endpoints", empty=UNSET),
        AGE,
    ),
    defaults=defaults(unset={"ports[].name": "", "ports[].protocol": "TCP"}),
    counts_generations=True,
    rules=rules(
        ("addressType", one_of("FQDN", "IPv4", "IPv6", empty="required")),
        _addresses,
        ("endpoints", each(_endpoint)),
    ),
    change=unchanging("addressType"),
)
ENDPOINTS = ServedKind(
    resource=resources.ENDPOINTS,
    acted_on_by="the endpoints controller",
    created_by_put=True,
    columns=(NAME, column("Endpoints", _endpoints, "Addresses and ports", empty=NONE), AGE),
    defaults=defaults(empty={"subsets[].ports[].protocol": "TCP"}),
    rules=rules(("subsets", each(_subset))),
)


KINDS = (
    INGRESS,
    INGRESS_CLASS,
    NETWORK_POLICY,
    ENDPOINT_SLICE,
    ENDPOINTS,
)

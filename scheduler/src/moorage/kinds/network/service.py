"""Service: its addresses and ports are given out, and nothing is routed.

Mirrors kubernetes v1.36 pkg/apis/core/v1/defaults.go, pkg/apis/core/validation (ValidateService)
and pkg/registry/core/service.
"""

from __future__ import annotations

from collections.abc import Collection

from moorage.api import resources
from moorage.api.resources import SERVICES, ResourceType
from moorage.base.rng import from_random
from moorage.kinds import status
from moorage.kinds.cells import AGE, NAME, NONE, column, format_labels, wide
from moorage.kinds.fields import defaults, rules, selectable
from moorage.kinds.kind import Context, FieldError, Obj, invalid
from moorage.kinds.network.addresses import address_faults, free_address, refused_addresses
from moorage.kinds.network.service_rules import (
    HEADLESS,
    ON_NODES,
    TYPES,
    check_service_change,
    check_service_spec,
    check_source_ranges,
)
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import (
    Json,
    attach,
    child,
    fill,
    fill_empty,
    items,
    number,
    objects,
    text,
)
from moorage.kinds.values.name_rules import port_number, service_name

# The node ports of services in a cluster made by kubeadm.
NODE_PORTS = range(30_000, 32_768)
# Seconds a client sticks to one endpoint under sessionAffinity ClientIP: three hours.
CLIENT_IP_SECONDS = 10_800

# The low ports are for services that ask for one: a 32nd of the range (calculateRangeOffset).
_ASKED_FOR = len(NODE_PORTS) // 32
_NODE_PORT_PARTS = (NODE_PORTS[_ASKED_FOR:], NODE_PORTS[:_ASKED_FOR])


def _default(obj: Json) -> None:
    spec = obj["spec"]
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    else:
        client = attach(attach(spec, "sessionAffinityConfig"), "clientIP")
        fill(client, {"timeoutSeconds": CLIENT_IP_SECONDS})
    for each in objects(spec, "ports"):
        if each.get("targetPort") in (None, "", 0):
            each["targetPort"] = each.get("port", 0)
    if spec["type"] in ON_NODES:
        fill_empty(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] in TYPES and spec["type"] != "ExternalName":
        fill(spec, {"internalTrafficPolicy": "Cluster"})
    if spec["type"] == "LoadBalancer":
        fill(spec, {"allocateLoadBalancerNodePorts": True})


def _change(new: Obj, old: Obj) -> list[FieldError]:
    if text(new, "spec", "type") == "ExternalName":
        return []
    if errors := check_service_change(new, old):
        return errors
    before, after = text(old, "spec", "clusterIP"), text(new, "spec", "clusterIP")
    if before and before != after:
        return [invalid("spec.clusterIPs[0]", [after], "may not change once set")]
    return address_faults(child(new, "spec"))


def _prepare(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Give a service its cluster address and node ports."""
    _give_missing(obj, ctx, addressed=False)


def _give_missing(obj: Json, ctx: Context, *, addressed: bool) -> None:
    """Give a service what it lacks; an address that it has already is not looked for."""
    spec = attach(obj, "spec")
    if text(spec, "type") == "ExternalName":
        return
    errors = [] if addressed else refused_addresses(spec, ctx)
    if errors:
        raise status.invalid(SERVICES, text(obj, "metadata", "name"), errors)
    if not text(spec, "clusterIP"):
        spec["clusterIP"] = free_address(ctx)
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    families = [f"IPv{6 if ':' in each else 4}" for each in spec["clusterIPs"]]
    spec["ipFamilies"] = spec.get("ipFamilies") or families
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
    if _has_node_ports(spec):
        if errors := _refused_node_ports(obj, ctx):
            raise status.invalid(SERVICES, text(obj, "metadata", "name"), errors)
        own = _node_ports(spec)
        for each in objects(spec, "ports"):
            if not number(each, "nodePort"):
                each["nodePort"] = _free_node_port(ctx, own)
                own.add(each["nodePort"])


def _refused_node_ports(obj: Json, ctx: Context) -> list[FieldError]:
    """Refuse node ports that another service has, or that services do not get.

    Notes
    -----
    kubernetes v1.36 pkg/registry/core/service, initNodePorts and portallocator: the ports of one
    service may be equal, such as those of two protocols.
    """
    errors = []
    wanted_ports = [
        (f"spec.ports[{index}].nodePort", number(each, "nodePort"))
        for index, each in enumerate(objects(obj, "spec", "ports"))
        if not port_number(number(each, "nodePort"))
    ]
    own = _key(obj)
    for field, wanted in wanted_ports:
        if wanted not in NODE_PORTS:
            first, last = NODE_PORTS[0], NODE_PORTS[-1]
            detail = "provided port is not in the valid range. The range of valid ports is "
            errors.append(invalid(field, wanted, f"{detail}{first}-{last}"))
        elif any(key != own for key in _services_on(wanted, ctx)):
            errors.append(invalid(field, wanted, "provided port is already allocated"))
    return errors


def _complete(new: Json, old: Json, ctx: Context) -> None:
    """Keep addresses and node ports that an update leaves out; add those a new type needs.

    Notes
    -----
    kubernetes v1.36 pkg/registry/core/service, patchAllocatedValues and dropTypeDependentFields.
    """
    spec, before = attach(new, "spec"), child(old, "spec")
    _drop_outgrown(spec, before)
    if text(spec, "type") == "ExternalName":
        return
    if not text(spec, "clusterIP") and text(before, "clusterIP"):
        for key in ("clusterIP", "clusterIPs"):
            spec[key] = before[key]
    for key in ("ipFamilies", "ipFamilyPolicy"):
        if not spec.get(key) and before.get(key):
            spec[key] = before[key]
    known = {
        (number(each, "port"), text(each, "protocol")): number(each, "nodePort")
        for each in objects(before, "ports")
    }
    if _has_node_ports(spec):
        for each in objects(spec, "ports"):
            found = known.get((number(each, "port"), text(each, "protocol")), 0)
            if not number(each, "nodePort") and found:
                each["nodePort"] = found
    addressed = text(before, "type") != "ExternalName" and bool(text(before, "clusterIP"))
    _give_missing(new, ctx, addressed=addressed)


def _drop_outgrown(spec: Json, before: Json) -> None:
    """Drop fields of the old type that the new type lacks, where the caller left them unchanged."""
    was, now = text(before, "type"), text(spec, "type")
    keys: list[str] = []
    if was != "ExternalName" and now == "ExternalName":
        keys += ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
    if was == "LoadBalancer" and now != "LoadBalancer":
        keys += ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort")
    if was in ON_NODES and now not in ON_NODES:
        if not spec.get("externalIPs"):
            keys.append("externalTrafficPolicy")
        if _node_ports(spec) == _node_ports(before):
            for each in objects(spec, "ports"):
                each.pop("nodePort", None)
    for key in keys:
        if key in spec and spec[key] == before.get(key):
            del spec[key]


def _has_node_ports(spec: Json) -> bool:
    """Whether every port gets a node port; a load balancer may do without."""
    kind = text(spec, "type")
    without = spec.get("allocateLoadBalancerNodePorts") is False
    return kind == "NodePort" or (kind == "LoadBalancer" and not without)


def _node_ports(spec: Json) -> set[int]:
    return {number(each, "nodePort") for each in objects(spec, "ports")} - {0}


def _stored_node_ports(service: Obj) -> set[int]:
    return _node_ports(child(service, "spec"))


def _services_on(port: int, ctx: Context) -> Collection[tuple[str, str]]:
    """Return the keys of the services that have a node port."""
    return ctx.keys_with(SERVICES.plural, _stored_node_ports, port)


def _key(obj: Json) -> tuple[str, str]:
    return text(obj, "metadata", "namespace"), text(obj, "metadata", "name")


def _free_node_port(ctx: Context, own: set[int]) -> int:
    """Return the first free port from a random one on, in the high part if possible."""
    for part in _NODE_PORT_PARTS:
        for candidate in from_random(part, ctx.rng):
            if candidate not in own and not _services_on(candidate, ctx):
                return candidate
    raise status.internal("failed to allocate a nodePort: range is full")


def _shown_ports(obj: Obj) -> str:
    shown = []
    for each in objects(obj, "spec", "ports"):
        node_port = f":{number(each, 'nodePort')}" if number(each, "nodePort") else ""
        shown.append(f"{number(each, 'port')}{node_port}/{text(each, 'protocol')}")
    return ",".join(shown)


def _external(obj: Obj) -> str:
    addresses = [str(each) for each in items(obj, "spec", "externalIPs")]
    kind = text(obj, "spec", "type")
    if kind == "ExternalName":
        return text(obj, "spec", "externalName")
    if kind == "LoadBalancer":
        ingress = objects(obj, "status", "loadBalancer", "ingress")
        found = sorted({text(each, "ip") or text(each, "hostname") for each in ingress} - {""})
        return ",".join(found + addresses) or "<pending>"
    return ",".join(addresses) or NONE


def _selector(obj: Obj) -> str:
    return format_labels(child(obj, "spec", "selector"))


def _warn(obj: Obj) -> list[str]:
    """Return the warnings about a service (kubernetes v1.36 pkg/api/service/warnings.go)."""
    spec = child(obj, "spec")
    kind = text(spec, "type") or "ClusterIP"
    headless = kind == "ClusterIP" and text(spec, "clusterIP") == HEADLESS
    external = items(spec, "externalIPs")
    warnings = []
    if "service.kubernetes.io/topology-aware-hints" in child(obj, "metadata", "annotations"):
        use = "please use service.kubernetes.io/topology-mode instead"
        warnings.append(
            f"annotation service.kubernetes.io/topology-aware-hints is deprecated, {use}"
        )
    if headless and text(spec, "loadBalancerIP"):
        warnings.append("spec.loadBalancerIP is ignored for headless services")
    if headless and external:
        warnings.append("spec.externalIPs is ignored for headless services")
    if headless and text(spec, "sessionAffinity") not in ("", "None"):
        warnings.append("spec.SessionAffinity is ignored for headless services")
    if external and not headless and kind != "ExternalName":
        warnings.append(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        )
    if external and kind == "ExternalName":
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and text(spec, "externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if text(spec, "trafficDistribution") == "PreferClose":
        warnings.append(
            'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
        )
    return warnings


KINDS = (
    ServedKind(
        resource=resources.SERVICES,
        shown_when_deleted=True,
        acted_on_by="the endpoints controller",
        created_by_put=True,
        warn=_warn,
        columns=(
            NAME,
            column("Type", "spec.type", "How the service is reached"),
            column("Cluster-IP", "spec.clusterIP", "Address inside the cluster", empty=NONE),
            column("External-IP", _external, "Addresses outside the cluster"),
            column("Port(s)", _shown_ports, "Ports and protocols", empty=NONE),
            AGE,
            wide("Selector", _selector, "Labels of the pods behind it"),
        ),
        defaults=defaults(
            _default,
            empty={
                "spec.sessionAffinity": "None",
                "spec.type": "ClusterIP",
                "spec.ports[].protocol": "TCP",
            },
            unset={"status.loadBalancer": {}},
        ),
        on_create=_prepare,
        on_update=_complete,
        fields=selectable("spec.clusterIP", "spec.type"),
        name_rule=service_name,
        rules=rules(("spec", check_service_spec), check_source_ranges),
        change=_change,
    ),
)

"""Fields that the creation of objects other than pods adds.

Place in the flow: `prepare_create`, after defaulting and before validation. Mirrors the
registries' strategies of kubernetes v1.36 pkg/registry and the admission plugins
DefaultStorageClass and Priority.
"""

from __future__ import annotations

from moorage.api.resources import SERVICES, ResourceType
from moorage.apiserver import status
from moorage.apiserver.kind import Context
from moorage.apiserver.kinds.core_defaults import claims_service_address
from moorage.apiserver.kinds.tree import Json, attach, child, fill, items, number, objects, text
from moorage.apiserver.kinds.workload_defaults import JOB_UID_LABEL, job_labels

# The address and port ranges of services in a cluster made by kubeadm.
SERVICE_NETWORK = "10.96"
NODE_PORTS = range(30_000, 32_768)

# Types whose ports are open on every node.
_ON_NODES = ("LoadBalancer", "NodePort")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_GIVES_UP_AFTER = 1000


def prepare_namespace(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Give a namespace the finalizer that waits for its contents to be deleted."""
    spec = attach(obj, "spec")
    found = spec.get("finalizers") or []
    if "kubernetes" not in found:
        spec["finalizers"] = [*found, "kubernetes"]


def take_finalizers(kept: Json, sent: Json) -> None:
    """Copy the finalizers of the spec, as the subresource ``finalize`` does."""
    attach(kept, "spec")["finalizers"] = items(sent, "spec", "finalizers")


def prepare_service(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Give a service its cluster address and node ports."""
    spec = attach(obj, "spec")
    kind = text(spec, "type")
    if kind == "ExternalName":
        return
    if claims_service_address(obj):
        spec["clusterIP"] = _free_address(ctx)
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4"]
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
    if kind in _ON_NODES:
        for port in objects(spec, "ports"):
            if not number(port, "nodePort"):
                port["nodePort"] = _free_node_port(ctx, spec)


def complete_service(new: Json, old: Json, ctx: Context) -> None:
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
        (number(port, "port"), text(port, "protocol")): number(port, "nodePort")
        for port in objects(before, "ports")
    }
    if text(spec, "type") in _ON_NODES:
        for port in objects(spec, "ports"):
            found = known.get((number(port, "port"), text(port, "protocol")), 0)
            if not number(port, "nodePort") and found:
                port["nodePort"] = found
    prepare_service(new, ctx, SERVICES)


def _drop_outgrown(spec: Json, before: Json) -> None:
    """Drop fields of the old type that the new type lacks, where the caller left them unchanged."""
    was, now = text(before, "type"), text(spec, "type")
    keys: list[str] = []
    if was != "ExternalName" and now == "ExternalName":
        keys += ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
    if was == "LoadBalancer" and now != "LoadBalancer":
        keys += ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort")
    if was in _ON_NODES and now not in _ON_NODES:
        if not spec.get("externalIPs"):
            keys.append("externalTrafficPolicy")
        if _node_ports(spec) == _node_ports(before):
            for port in objects(spec, "ports"):
                port.pop("nodePort", None)
    for key in keys:
        if key in spec and spec[key] == before.get(key):
            del spec[key]


def _node_ports(spec: Json) -> set[int]:
    return {number(port, "nodePort") for port in objects(spec, "ports")} - {0}


def _free_address(ctx: Context) -> str:
    taken = {text(each, "spec", "clusterIP") for each in ctx.objects("services")}
    for _ in range(_GIVES_UP_AFTER):
        address = f"{SERVICE_NETWORK}.{ctx.rng.randrange(256)}.{ctx.rng.randrange(1, 255)}"
        if address not in taken:
            return address
    raise status.internal("failed to allocate a serviceIP: range is full")


def _free_node_port(ctx: Context, spec: Json) -> int:
    taken = {
        number(port, "nodePort")
        for each in ctx.objects("services")
        for port in objects(each, "spec", "ports")
    }
    taken |= {number(port, "nodePort") for port in objects(spec, "ports")}
    for _ in range(_GIVES_UP_AFTER):
        port = ctx.rng.choice(NODE_PORTS)
        if port not in taken:
            return port
    raise status.internal("failed to allocate a nodePort: range is full")


def prepare_claim(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Give a claim that names no storage class the default one, if there is one."""
    spec = attach(obj, "spec")
    if spec.get("storageClassName") is not None:
        return
    if "volume.beta.kubernetes.io/storage-class" in child(obj, "metadata", "annotations"):
        return
    defaults = [
        each
        for each in ctx.objects("storageclasses")
        if child(each, "metadata", "annotations").get(_DEFAULT_CLASS) == "true"
    ]
    if defaults:
        # The newest class is used; of equally old classes, the smallest name.
        defaults.sort(key=lambda each: text(each, "metadata", "name"))
        newest = max(text(each, "metadata", "creationTimestamp") for each in defaults)
        chosen = next(
            each for each in defaults if text(each, "metadata", "creationTimestamp") == newest
        )
        spec["storageClassName"] = text(chosen, "metadata", "name")


def prepare_priority_class(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Refuse a second global default.

    Raises
    ------
    moorage.apiserver.status.StatusError
        403: another class is the default already.
    """
    if obj.get("globalDefault") is not True:
        return
    name = text(obj, "metadata", "name")
    for each in ctx.objects("priorityclasses"):
        other = text(each, "metadata", "name")
        if each.get("globalDefault") is True and other != name:
            why = f"PriorityClass {other} is already marked as default. Only one default can exist"
            raise status.forbidden(resource, name, why)


def prepare_job(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Select a job's pods by its uid, and label its template accordingly.

    Existing values stay; validation refuses values of another job.
    """
    spec = attach(obj, "spec")
    uid = text(obj, "metadata", "uid")
    if spec.get("manualSelector") is True or not uid:
        return
    name = text(obj, "metadata", "name")
    labels = attach(attach(attach(spec, "template"), "metadata"), "labels")
    fill(labels, job_labels(name, uid))
    selector = attach(spec, "selector")
    fill(attach(selector, "matchLabels"), {JOB_UID_LABEL: uid})

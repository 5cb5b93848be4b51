"""Table columns and rows of the kinds that are neither pods nor workloads.

Place in the flow: Table output of lists, gets and watches. Mirrors kubernetes v1.36
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver.kind import Column
from moorage.apiserver.kinds.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    age,
    format_labels,
    human_duration,
    name_of,
    since,
    truncated_seconds,
)
from moorage.apiserver.kinds.tree import Json, child, condition, items, number, objects, text
from moorage.base.clock import parse_rfc3339

NODE_COLUMNS = (
    NAME,
    Column("Status", description="Whether the node is ready and takes pods"),
    Column("Roles", description="Roles given by labels"),
    AGE,
    Column("Version", description="Version of the kubelet"),
    Column("Internal-IP", description="First internal address", priority=1),
    Column("External-IP", description="First external address", priority=1),
    Column("OS-Image", description="Operating system", priority=1),
    Column("Kernel-Version", description="Version of the kernel", priority=1),
    Column("Container-Runtime", description="Container runtime and its version", priority=1),
)
_ROLE_PREFIX = "node-role.kubernetes.io/"


def node_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a node's row."""
    ready = condition(obj, "Ready")
    if ready is None:
        status = "Unknown"
    else:
        status = "Ready" if ready.get("status") == "True" else "NotReady"
    if child(obj, "spec").get("unschedulable") is True:
        status += ",SchedulingDisabled"
    info = child(obj, "status", "nodeInfo")
    return [
        name_of(obj),
        status,
        ",".join(_roles(obj)) or NONE,
        age(obj, now_ns),
        text(info, "kubeletVersion"),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        text(info, "osImage") or UNKNOWN,
        text(info, "kernelVersion") or UNKNOWN,
        text(info, "containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(obj: Json) -> list[str]:
    roles = set()
    for key, value in child(obj, "metadata", "labels").items():
        if key.startswith(_ROLE_PREFIX) and key != _ROLE_PREFIX:
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == "kubernetes.io/role" and value:
            roles.add(str(value))
    return sorted(roles)


def _address(obj: Json, kind: str) -> str:
    for entry in objects(obj, "status", "addresses"):
        if entry.get("type") == kind:
            return text(entry, "address")
    return NONE


NAMESPACE_COLUMNS = (NAME, Column("Status", description="Active or Terminating"), AGE)


def namespace_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a namespace's row."""
    return [name_of(obj), text(obj, "status", "phase"), age(obj, now_ns)]


SERVICE_COLUMNS = (
    NAME,
    Column("Type", description="How the service is reached"),
    Column("Cluster-IP", description="Address inside the cluster"),
    Column("External-IP", description="Addresses outside the cluster"),
    Column("Port(s)", description="Ports and protocols"),
    AGE,
    Column("Selector", description="Labels of the pods behind it", priority=1),
)


def service_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a service's row."""
    spec = child(obj, "spec")
    ports = []
    for port in objects(spec, "ports"):
        node_port = f":{number(port, 'nodePort')}" if number(port, "nodePort") else ""
        ports.append(f"{number(port, 'port')}{node_port}/{text(port, 'protocol')}")
    return [
        name_of(obj),
        text(spec, "type"),
        text(spec, "clusterIP") or NONE,
        _external_address(obj),
        ",".join(ports) or NONE,
        age(obj, now_ns),
        format_labels(child(spec, "selector")),
    ]


def _external_address(obj: Json) -> str:
    spec = child(obj, "spec")
    given = [str(each) for each in items(spec, "externalIPs")]
    kind = text(spec, "type")
    if kind == "ExternalName":
        return text(spec, "externalName")
    if kind == "LoadBalancer":
        ingress = objects(obj, "status", "loadBalancer", "ingress")
        found = sorted({text(each, "ip") or text(each, "hostname") for each in ingress} - {""})
        return ",".join(found + given) or "<pending>"
    return ",".join(given) or NONE


CONFIG_MAP_COLUMNS = (NAME, Column("Data", description="Number of entries"), AGE)


def config_map_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a config map's row."""
    count = len(child(obj, "data")) + len(child(obj, "binaryData"))
    return [name_of(obj), str(count), age(obj, now_ns)]


SECRET_COLUMNS = (
    NAME,
    Column("Type", description="What the secret is for"),
    Column("Data", description="Number of entries"),
    AGE,
)


def secret_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a secret's row."""
    return [name_of(obj), text(obj, "type"), str(len(child(obj, "data"))), age(obj, now_ns)]


SERVICE_ACCOUNT_COLUMNS = (NAME, Column("Secrets", description="Number of secrets"), AGE)


def service_account_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a service account's row."""
    return [name_of(obj), str(len(items(obj, "secrets"))), age(obj, now_ns)]


EVENT_COLUMNS = (
    Column("Last Seen", description="Time since it happened last"),
    Column("Type", description="Normal or Warning"),
    Column("Reason", description="Why, in one word"),
    Column("Object", description="What it is about"),
    Column("Subobject", description="Part of the object", priority=1),
    Column("Source", description="Who reported it", priority=1),
    Column("Message", description="What happened"),
    Column("First Seen", description="Time since it happened first", priority=1),
    Column("Count", description="How often it happened", priority=1),
    Column("Name", format="name", description="Name of the Event", priority=1),
)


def event_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of an Event's row, in either API version's field names."""
    about = child(obj, "involvedObject") or child(obj, "regarding")
    series = child(obj, "series")
    event_time = text(obj, "eventTime")
    first = text(obj, "firstTimestamp") or text(obj, "deprecatedFirstTimestamp") or event_time
    last = text(obj, "lastTimestamp") or text(obj, "deprecatedLastTimestamp")
    if not last:
        last = text(series, "lastObservedTime") or event_time
    count = number(obj, "count") or number(obj, "deprecatedCount")
    if not count:
        count = number(series, "count") or 1
    subject = f"{text(about, 'kind').lower()}/{text(about, 'name')}"
    return [
        since(last, now_ns),
        text(obj, "type"),
        text(obj, "reason"),
        subject if text(about, "name") else text(about, "kind").lower(),
        text(about, "fieldPath"),
        _event_source(obj),
        (text(obj, "message") or text(obj, "note")).strip(),
        since(first, now_ns),
        str(count),
        name_of(obj),
    ]


def _event_source(obj: Json) -> str:
    source = child(obj, "source") or child(obj, "deprecatedSource")
    component, host = text(source, "component"), text(source, "host")
    if not component:
        component = text(obj, "reportingComponent") or text(obj, "reportingController")
        host = host or text(obj, "reportingInstance")
    return f"{component}, {host}" if host else component


LEASE_COLUMNS = (NAME, Column("Holder", description="Who holds the lease"), AGE)


def lease_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a lease's row."""
    return [name_of(obj), text(obj, "spec", "holderIdentity"), age(obj, now_ns)]


BUDGET_COLUMNS = (
    NAME,
    Column("Min Available", description="Pods that must stay available"),
    Column("Max Unavailable", description="Pods that may be unavailable"),
    Column("Allowed Disruptions", "integer", description="Pods that may be disrupted now"),
    AGE,
)


def budget_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a disruption budget's row."""
    spec = child(obj, "spec")
    limits = [
        "N/A" if spec.get(key) is None else str(spec[key])
        for key in ("minAvailable", "maxUnavailable")
    ]
    allowed = number(obj, "status", "disruptionsAllowed")
    return [name_of(obj), *limits, allowed, age(obj, now_ns)]


PRIORITY_CLASS_COLUMNS = (
    NAME,
    Column("Value", "integer", description="Priority of pods of this class"),
    Column("Global-Default", "boolean", description="Class of pods that name none"),
    AGE,
    Column("PreemptionPolicy", description="Whether pods of this class preempt others"),
)


def priority_class_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a priority class's row."""
    return [
        name_of(obj),
        number(obj, "value"),
        obj.get("globalDefault") is True,
        age(obj, now_ns),
        text(obj, "preemptionPolicy"),
    ]


def duration_between(start: str, end: str, now_ns: int) -> str:
    """Return the time from start to end, or to now; empty text before the start."""
    if not start:
        return ""
    end_ns = parse_rfc3339(end) if end else now_ns
    return human_duration(truncated_seconds(end_ns - parse_rfc3339(start)))


def shown_or_unset(value: Any) -> str:
    """Text of an optional string."""
    return UNSET if value is None else str(value)

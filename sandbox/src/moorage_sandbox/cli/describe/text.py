"""The text of ``describe``: the most wanted parts of pods and nodes, then Events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api.codec import from_dict
from moorage.api.devices import ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import NANO, milli, value
from moorage.api.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, ResourceType
from moorage.base.clock import NS_PER_SECOND, Clock, parse_rfc3339
from moorage.base.errors import ApiError, UsageError
from moorage.cli.kinds import named_kind
from moorage.cli.render import Columns, yaml_text
from moorage.cli.reported_events import ReportedEvent, events_about, reported_event
from moorage.cli.session import Session
from moorage.client.requests import Selection
from moorage.plugins.gpu_share.asking import node_requests
from moorage_sandbox.cli.apply.patch import LAST_APPLIED
from moorage_sandbox.cli.describe.devices import device_lines, uses_claims

_LABEL_WIDTH = 18
_FINISHED = frozenset({"Succeeded", "Failed"})
# Fields shown in the heading, or of no use to a person.
_HIDDEN_METADATA = frozenset({"name", "namespace", "labels", "annotations", "managedFields"})

Obj = Mapping[str, Any]


class Described(msgspec.Struct, frozen=True):
    """An object, its Events with the newest last, and both as a text for people."""

    obj: Obj
    events: list[Obj]
    text: str


async def describe_all(
    session: Session, words: Sequence[str], selector: str
) -> AsyncIterator[Described]:
    """Yield the description of each requested object.

    Raises
    ------
    NotFoundError
        A named object does not exist.
    UsageError
        Names and a selector were given.
    """
    client = session.client
    if "/" in words[0]:
        for word in words:
            kind_word, _, name = word.partition("/")
            kind = await named_kind(client, kind_word)
            yield await _describe(session, kind, await _get(session, kind, name))
        return
    kind = await named_kind(client, words[0])
    if words[1:] and selector:
        raise UsageError("name objects, or select them with -l; not both")
    if words[1:]:
        for name in words[1:]:
            yield await _describe(session, kind, await _get(session, kind, name))
        return
    listed: Any = await client.list(kind, Selection(_namespace(session, kind), selector))
    for item in listed["items"]:
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        yield await _describe(session, kind, {**head, **item})


async def _get(session: Session, kind: ResourceType, name: str) -> Obj:
    return await session.client.get(kind, name, namespace=_namespace(session, kind))


async def _describe(session: Session, kind: ResourceType, obj: Obj) -> Described:
    events = await _events(session, kind, obj)
    if kind is PODS:
        lines = pod_lines(obj)
    elif kind is NODES:
        selection = Selection(field_selector=f"spec.nodeName={obj['metadata']['name']}")
        listed: Any = await session.client.list(PODS, selection)
        lines = node_lines(obj, listed["items"])
        lines += await _devices(session, obj, listed["items"], selection)
    else:
        lines = other_lines(kind, obj)
    text = "\n".join([*lines, *event_lines(events, session.clock)])
    return Described(obj, events, text)


async def _devices(
    session: Session, node: Obj, pods: Sequence[Obj], of_node: Selection
) -> list[str]:
    """Return the table of a node's devices; who may not read claims gets a line that says so."""
    live = [from_dict(Pod, pod) for pod in pods if _is_live(pod)]
    claims: list[ResourceClaim] = []
    slices: list[ResourceSlice] = []
    lines: list[str] = []
    if uses_claims(live):
        try:
            claim_list: Any = await session.client.list(RESOURCE_CLAIMS, Selection())
            claims = [from_dict(ResourceClaim, each) for each in claim_list["items"]]
            slice_list: Any = await session.client.list(RESOURCE_SLICES, of_node)
            slices = [from_dict(ResourceSlice, each) for each in slice_list["items"]]
        except ApiError as error:
            lines = [f"Devices of claims: not shown: {error}"]
    return [*device_lines(from_dict(Node, node), live, claims, slices), *lines]


def _is_live(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") not in _FINISHED


async def _events(session: Session, kind: ResourceType, obj: Obj) -> list[Obj]:
    metadata = obj["metadata"]
    # The uid of a node's Events may be its name (kubelet); the name identifies it as well.
    return await events_about(
        session.client,
        kind.kind,
        metadata["name"],
        namespace=metadata.get("namespace", "") if kind.namespaced else "",
        uid="" if kind is NODES else str(metadata.get("uid") or ""),
    )


def pod_lines(pod: Obj) -> list[str]:
    """Return the description of a pod, without Events."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    lines = _head(pod)
    lines += [
        _line("Priority", spec.get("priority", 0)),
        _line("Class", spec.get("priorityClassName") or "<none>"),
        _line("Scheduler", spec.get("schedulerName") or "<none>"),
        _line("Node", spec.get("nodeName") or "<none>"),
        _line("Status", _pod_phase(pod)),
    ]
    for name in ("reason", "message", "podIP", "startTime", "nominatedNodeName", "qosClass"):
        if status.get(name):
            lines.append(_line(name[:1].upper() + name[1:], status[name]))
    if gates := spec.get("schedulingGates"):
        lines.append(_line("Gates", ", ".join(gate["name"] for gate in gates)))
    states = {
        each["name"]: each
        for part in ("initContainerStatuses", "containerStatuses")
        for each in status.get(part) or []
    }
    for title, part in (("Init containers:", "initContainers"), ("Containers:", "containers")):
        if spec.get(part):
            lines.append(title)
            for container in spec[part]:
                lines += _container(container, states.get(container["name"], {}))
    lines += _conditions(status)
    lines += _pairs("Node selector", spec.get("nodeSelector"), "=")
    lines += _listed("Tolerations", [_toleration(each) for each in spec.get("tolerations") or []])
    return lines


def node_lines(node: Obj, pods: Sequence[Obj]) -> list[str]:
    """Return the description of a node, without its devices and Events.

    Parameters
    ----------
    node
        The node.
    pods
        The pods bound to the node.
    """
    spec, status = node.get("spec", {}), node.get("status", {})
    lines = _head(node)
    taints = [_taint(each) for each in spec.get("taints") or []]
    lines += _listed("Taints", taints)
    lines.append(_line("Unschedulable", str(bool(spec.get("unschedulable"))).lower()))
    lines += _conditions(status)
    allocatable = status.get("allocatable") or {}
    live = [pod for pod in pods if _is_live(pod)]
    lines += ["Resources:"]
    typed = from_dict(Node, node)
    requests = [{**node_requests(from_dict(Pod, pod), typed), "pods": NANO} for pod in live]
    rows = [
        [name, str(allocatable[name]), _requested(requests, name)] for name in sorted(allocatable)
    ]
    lines += _indented(Columns(["Resource", "Allocatable", "Requested"]).lines(rows))
    lines.append(f"Pods: {len(live)} in all")
    if live:
        rows = [
            [
                pod["metadata"]["namespace"],
                pod["metadata"]["name"],
                _requested([own], "cpu"),
                _requested([own], "memory"),
            ]
            for pod, own in zip(live, requests, strict=True)
        ]
        lines += _indented(Columns(["Namespace", "Name", "CPU", "Memory"]).lines(rows))
    return lines


def other_lines(kind: ResourceType, obj: Obj) -> list[str]:
    """Return the description of any other object: its heading, then its fields as YAML."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _HIDDEN_METADATA}
    rest = {k: v for k, v in obj.items() if k not in {"apiVersion", "kind", "metadata"}}
    lines = [_line("Kind", kind.kind), *_head(obj)]
    for title, part in (("Metadata", metadata), *rest.items()):
        text = yaml_text(part)
        if isinstance(part, dict | list):
            lines += [f"{title[:1].upper()}{title[1:]}:", *_indented(text.splitlines())]
        else:
            lines.append(_line(f"{title[:1].upper()}{title[1:]}", part))
    return lines


def event_lines(events: Sequence[Obj], clock: Clock) -> list[str]:
    """Return the table of Events, oldest first."""
    if not events:
        return [_line("Events", "<none>")]
    rows = []
    for event in events:
        found = reported_event(event)
        rows.append(
            [found.type, found.reason, last_seen(found, clock), found.source, found.message]
        )
    headings = ["Type", "Reason", "Age", "From", "Message"]
    return ["Events:", *_indented(Columns(headings).lines(rows))]


def _head(obj: Obj) -> list[str]:
    metadata = obj["metadata"]
    lines = [_line("Name", metadata["name"])]
    if metadata.get("namespace"):
        lines.append(_line("Namespace", metadata["namespace"]))
    lines += _pairs("Labels", metadata.get("labels"), "=")
    notes = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != LAST_APPLIED}
    lines += _pairs("Annotations", notes, ": ")
    lines.append(_line("Created", metadata.get("creationTimestamp") or "<unknown>"))
    if metadata.get("deletionTimestamp"):
        lines.append(_line("Deleted", metadata["deletionTimestamp"]))
    return lines


def _container(container: Obj, status: Obj) -> list[str]:
    lines = [f"  {container['name']}:", f"    {_line('Image', container.get('image', ''))}"]
    resources = container.get("resources") or {}
    for title, part in (("Requests", "requests"), ("Limits", "limits")):
        if resources.get(part):
            text = ", ".join(f"{name}: {amount}" for name, amount in resources[part].items())
            lines.append(f"    {_line(title, text)}")
    ports = [
        f"{each['containerPort']}/{each.get('protocol', 'TCP')}"
        + (f" on the node's {each['hostPort']}" if each.get("hostPort") else "")
        for each in container.get("ports") or []
    ]
    if ports:
        lines.append(f"    {_line('Ports', ', '.join(ports))}")
    for state, detail in (status.get("state") or {}).items():
        reason = f" ({detail['reason']})" if detail.get("reason") else ""
        lines.append(f"    {_line('State', f'{state}{reason}')}")
    return lines


def _conditions(status: Obj) -> list[str]:
    conditions = status.get("conditions") or []
    if not conditions:
        return []
    rows = [
        [
            each.get("type", ""),
            each.get("status", ""),
            each.get("reason") or "<none>",
            each.get("message") or "",
        ]
        for each in conditions
    ]
    headings = ["Type", "Status", "Reason", "Message"]
    return ["Conditions:", *_indented(Columns(headings).lines(rows))]


def _pod_phase(pod: Obj) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(pod.get("status", {}).get("phase") or "<unknown>")


def _toleration(toleration: Obj) -> str:
    text = str(toleration.get("key") or "")
    if toleration.get("operator") == "Exists":
        text = text or "every taint"
    elif toleration.get("value"):
        text += f"={toleration['value']}"
    if toleration.get("effect"):
        text += f":{toleration['effect']}"
    seconds = toleration.get("tolerationSeconds")
    return text if seconds is None else f"{text} for {seconds}s"


def _taint(taint: Obj) -> str:
    text = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{text}:{taint['effect']}"


def _requested(pods: Iterable[Mapping[str, int]], name: str) -> str:
    """Return the sum of pods' requests of a resource."""
    return _amount(sum(each.get(name, 0) for each in pods), name)


def _amount(nano: int, name: str) -> str:
    whole = value(nano)
    if name == "cpu":
        return str(whole) if nano == whole * NANO else f"{milli(nano)}m"
    if "/" in name and nano % NANO:
        return f"{nano / NANO:g}"  # shares of devices
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return str(whole)


def last_seen(event: ReportedEvent, clock: Clock) -> str:
    """Return how long ago an Event happened last, and how often it happened if more than once."""
    age = _age(event.last, clock)
    return f"{age} (x{event.count})" if event.count > 1 else age


def _age(text: str, clock: Clock) -> str:
    """Return how long ago a moment is, as kubectl prints it; RFC 3339."""
    try:
        seconds = max(0, clock.now_ns() - parse_rfc3339(text)) // NS_PER_SECOND
    except ValueError:
        return "<unknown>"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _namespace(session: Session, kind: ResourceType) -> str:
    return session.namespace if kind.namespaced else ""


def _line(title: str, value: object) -> str:
    return f"{f'{title}:':<{_LABEL_WIDTH}}{value}"


def _pairs(title: str, pairs: Mapping[str, str] | None, between: str) -> list[str]:
    return _listed(
        title, [f"{k}{between}{str(v).strip()}" for k, v in sorted((pairs or {}).items())]
    )


def _listed(title: str, values: Sequence[str]) -> list[str]:
    if not values:
        return [_line(title, "<none>")]
    rest = [" " * _LABEL_WIDTH + value for value in values[1:]]
    return [_line(title, values[0]), *rest]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]

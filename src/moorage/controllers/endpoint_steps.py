"""The endpoints of a service, and the slices that hold them: decisions without I/O.

``endpoints`` reads the views, asks here what is wanted, and writes the difference.

Rules: kubernetes v1.36 ``staging/src/k8s.io/endpointslice`` (reconciler.go, utils.go) and
``pkg/controller/endpoint/endpoints_controller.go``. Left out: hints, addresses of IPv6, and
hostnames of pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.api.pod import Pod
from moorage.controllers.controller import Json
from moorage.controllers.pods import is_finished, is_ready
from moorage.controllers.views import Whole

Ports: TypeAlias = tuple[tuple[tuple[str, str | int], ...], ...]
"""The ports of some endpoints: the fields of each port, sorted, so that they can be compared."""

SERVICE_NAME: Final = "kubernetes.io/service-name"
SLICE_MANAGER: Final = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
LIST_MANAGER: Final = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_HEADLESS: Final = "service.kubernetes.io/headless"
_SLICE_MOST: Final = 100
_LIST_MOST: Final = 1000
_OVER: Final = "endpoints.kubernetes.io/over-capacity"


class EndpointSlice(Whole, frozen=True, kw_only=True):
    """discovery.k8s.io/v1 EndpointSlice."""

    endpoints: list[Json] | None = None
    ports: list[Json] | None = None


class Endpoints(Whole, frozen=True, kw_only=True):
    """core/v1 Endpoints."""

    subsets: list[Json] | None = None


class Place(msgspec.Struct, frozen=True):
    """A pod behind a service."""

    pod: Pod
    ports: Ports
    ready: bool
    serving: bool
    terminating: bool


class Slice(msgspec.Struct, frozen=True):
    """A wanted slice; ``known`` is the stored slice that becomes it, None for a new one."""

    known: EndpointSlice | None
    ports: Ports
    endpoints: list[Json]


# -- places ----------------------------------------------------------------------------------------


def places(service: Whole, pods: Iterable[Pod]) -> list[Place]:
    """Return the pods behind a service that have an address and have not ended."""
    published = service.spec.get("publishNotReadyAddresses") is True
    found = []
    for pod in pods:
        if is_finished(pod) or not pod.status.pod_ip:
            continue
        serving, terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
        ready = published or (serving and not terminating)
        found.append(Place(pod, _ports_of(service, pod), ready, serving, terminating))
    return found


def _ports_of(service: Whole, pod: Pod) -> Ports:
    found: list[tuple[tuple[str, str | int], ...]] = []
    for each in service.spec.get("ports") or ():
        protocol = each.get("protocol") or "TCP"
        number = _number(each.get("targetPort") or each.get("port"), protocol, pod)
        if number is not None:
            port = {"name": each.get("name") or "", "port": number, "protocol": protocol}
            if each.get("appProtocol"):
                port["appProtocol"] = each["appProtocol"]
            found.append(tuple(sorted(port.items())))
    return tuple(found)


def _number(target: int | str, protocol: str, pod: Pod) -> int | None:
    """Return the number of a port; a name is looked for among the ports of the containers."""
    if isinstance(target, int):
        return target
    sidecars = (each for each in pod.spec.init_containers if each.is_restartable_init)
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.name == target and (port.protocol or "TCP") == protocol:
                return port.container_port
    return None


# -- slices ----------------------------------------------------------------------------------------


def slices(
    known: Sequence[EndpointSlice], found: Iterable[Place], zones: Mapping[str, str]
) -> list[Slice]:
    """Return the slices wanted for the places behind a service; other known slices are to go.

    An endpoint stays in its slice, and new endpoints fill slices that have room. Without any
    endpoint one empty slice is wanted.

    Parameters
    ----------
    known
        The stored slices of the service.
    zones
        The zone of each node that has one.
    """
    groups: dict[Ports, dict[str, Json]] = {}
    for place in found:
        groups.setdefault(place.ports, {})[place.pod.uid] = _endpoint(place, zones)
    wanted: list[Slice] = []
    for ports, endpoints in (groups or {(): {}}).items():
        left = dict(endpoints)
        same = [each for each in known if _told_ports(each) == ports]
        filled = [
            Slice(each, ports, [left.pop(uid) for uid in _uids(each) if uid in left])
            for each in same
        ]
        rest = list(left.values())
        for each in filled:
            room = _SLICE_MOST - len(each.endpoints)
            each.endpoints.extend(rest[:room])
            rest = rest[room:]
        kept = [each for each in filled if each.endpoints]
        kept += [
            Slice(None, ports, rest[start : start + _SLICE_MOST])
            for start in range(0, len(rest), _SLICE_MOST)
        ]
        wanted += kept or filled[:1] or [Slice(None, ports, [])]
    return wanted


def _endpoint(place: Place, zones: Mapping[str, str]) -> Json:
    pod = place.pod
    endpoint: Json = {
        "addresses": [pod.status.pod_ip],
        "conditions": {
            "ready": place.ready,
            "serving": place.serving,
            "terminating": place.terminating,
        },
        "nodeName": pod.spec.node_name,
        "targetRef": _target(pod),
    }
    if zone := zones.get(pod.spec.node_name):
        endpoint["zone"] = zone
    return endpoint


def _told_ports(known: EndpointSlice) -> Ports:
    return tuple(tuple(sorted(each.items())) for each in known.ports or ())


def _uids(known: EndpointSlice) -> list[str]:
    return [(each.get("targetRef") or {}).get("uid", "") for each in known.endpoints or ()]


def port_list(ports: Ports) -> list[Json]:
    """Return ports as they are written."""
    return [dict(each) for each in ports]


def labels(service: Whole, own: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of what is written for a service: those of the service, and our own."""
    headless = {_HEADLESS: ""} if service.spec.get("clusterIP") == "None" else {}
    given = {name: value for name, value in service.metadata.labels.items() if name != _HEADLESS}
    return {**given, **headless, **own}


# -- the older list --------------------------------------------------------------------------------


def subsets(found: Iterable[Place], *, published: bool) -> tuple[list[Json], dict[str, str | None]]:
    """Return the subsets of the Endpoints of a service, and the annotation that goes with them.

    The annotation is None unless some pods were left out, because the list has a bound.

    Parameters
    ----------
    published
        Pods that are being deleted are listed, too (``publishNotReadyAddresses``).
    """
    listed = [each for each in found if published or not each.terminating]
    listed.sort(key=lambda each: (not each.ready, each.pod.status.pod_ip, each.pod.uid))
    groups: dict[Ports, Json] = {}
    for place in listed[:_LIST_MOST]:
        group = groups.setdefault(place.ports, {})
        address: Json = {"ip": place.pod.status.pod_ip, "targetRef": _target(place.pod)}
        address["nodeName"] = place.pod.spec.node_name
        group.setdefault("addresses" if place.ready else "notReadyAddresses", []).append(address)
    for ports, group in groups.items():
        if ports:
            group["ports"] = [
                {name: value for name, value in each if value != ""} for each in ports
            ]
    told = [groups[ports] for ports in sorted(groups, key=repr)]
    return told, {_OVER: "truncated" if len(listed) > _LIST_MOST else None}


def _target(pod: Pod) -> Json:
    return {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}

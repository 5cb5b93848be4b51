"""The endpoints of a service, and the slices that hold them: decisions without I/O.

``endpoints`` reads the views, asks here what is wanted, and writes the difference.

Rules: kubernetes v1.36 ``staging/src/k8s.io/endpointslice`` (reconciler.go, utils.go) and
``pkg/controller/endpoint/endpoints_controller.go``. Left out: addresses of IPv6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.api.pod import Pod
from moorage.workloads.objects import Json, ViewedPod, Whole
from moorage.workloads.pods import is_finished, is_ready

Ports: TypeAlias = tuple[tuple[tuple[str, str | int], ...], ...]
"""The ports of some endpoints: the fields of each port, sorted, so that they can be compared."""

Groups: TypeAlias = dict[Ports, list[Json]]
"""Endpoints by their ports."""

SERVICE_NAME: Final = "kubernetes.io/service-name"
SLICE_MARK: Final = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
MIRROR_MARK: Final = {
    "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"
}
LIST_MARK: Final = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_HEADLESS: Final = "service.kubernetes.io/headless"
_TO_THE_NODE: Final = "PreferSameNode"
# The zone stands in where no endpoint of the node is ready.
_TO_THE_ZONE: Final = ("PreferClose", "PreferSameZone", _TO_THE_NODE)
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
    """A pod behind a service; ``hostname`` is its name within the service, empty without one."""

    pod: Pod
    hostname: str
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


def places(service: Whole, pods: Iterable[ViewedPod]) -> list[Place]:
    """Return the pods behind a service that have an address and have not ended.

    Parameters
    ----------
    pods
        The pods that the service selects, all of its namespace.
    """
    published = service.spec.get("publishNotReadyAddresses") is True
    places_of_pods = []
    for pod in pods:
        if is_finished(pod) or not pod.status.pod_ip:
            continue
        serving, terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
        ready = published or (serving and not terminating)
        ports, hostname = _ports_of(service, pod), _hostname(service, pod)
        places_of_pods.append(Place(pod, hostname, ports, ready, serving, terminating))
    return places_of_pods


def _hostname(service: Whole, pod: ViewedPod) -> str:
    """Return the name that a pod asks for in this service (``ShouldSetHostname``)."""
    return pod.spec.hostname if pod.spec.subdomain == service.name else ""


def _ports_of(service: Whole, pod: Pod) -> Ports:
    ports = []
    for each in service.spec.get("ports") or ():
        protocol = each.get("protocol") or "TCP"
        number = _number(each.get("targetPort") or each.get("port"), protocol, pod)
        if number is not None:
            port = {"name": each.get("name") or "", "port": number, "protocol": protocol}
            if each.get("appProtocol"):
                port["appProtocol"] = each["appProtocol"]
            ports.append(port)
    return _sorted_ports(ports)


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


def pod_endpoints(
    places: Iterable[Place], zones: Mapping[str, str], distribution: str = ""
) -> Groups:
    """Return the endpoints of the places behind a service.

    Parameters
    ----------
    zones
        The zone of each node that has one.
    distribution
        The service's ``trafficDistribution``; empty where it has none.
    """
    groups: Groups = {}
    for place in places:
        endpoint = _endpoint(place, zones)
        if place.ready and (hints := _hints(endpoint, distribution)):
            endpoint["hints"] = hints
        groups.setdefault(place.ports, []).append(endpoint)
    return groups or {(): []}


def _hints(endpoint: Json, distribution: str) -> Json:
    """Return where the traffic to a ready endpoint should come from; nothing for everywhere.

    Notes
    -----
    kubernetes v1.36 ``staging/src/k8s.io/endpointslice/trafficdist``: each endpoint by itself.
    """
    hints: Json = {}
    if distribution in _TO_THE_ZONE and endpoint.get("zone"):
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if distribution == _TO_THE_NODE and endpoint["nodeName"]:
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return hints


def mirrored(endpoints: Endpoints) -> Groups:
    """Return the endpoints that a user wrote into an Endpoints object.

    Notes
    -----
    kubernetes v1.36 ``pkg/controller/endpointslicemirroring``.
    """
    groups: Groups = {}
    for subset in endpoints.subsets or ():
        told = subset.get("ports") or ()
        ports = _sorted_ports({"name": "", "protocol": "TCP", **each} for each in told)
        for part, ready in (("addresses", True), ("notReadyAddresses", False)):
            for each in subset.get(part) or ():
                if ":" in each["ip"]:
                    continue
                more = {name: value for name, value in each.items() if name != "ip"}
                endpoint = {"addresses": [each["ip"]], "conditions": {"ready": ready}, **more}
                groups.setdefault(ports, []).append(endpoint)
    return groups


def slices(known: Sequence[EndpointSlice], groups: Groups) -> list[Slice]:
    """Return the slices wanted for some endpoints; other known slices are to go.

    An endpoint stays in its slice, and new endpoints fill slices that have room. A group without
    endpoints has one empty slice.

    Parameters
    ----------
    known
        The stored slices of the service.
    """
    wanted: list[Slice] = []
    for ports, endpoints in groups.items():
        left = {_identity(each): each for each in endpoints}
        filled = []
        for each in known:
            if _sorted_ports(each.ports or ()) == ports:
                stay = [_identity(old) for old in each.endpoints or ()]
                filled.append(Slice(each, ports, [left.pop(key) for key in stay if key in left]))
        rest = list(left.values())
        for some in filled:
            room = _SLICE_MOST - len(some.endpoints)
            some.endpoints.extend(rest[:room])
            rest = rest[room:]
        staying = [some for some in filled if some.endpoints]
        staying += [
            Slice(None, ports, rest[start : start + _SLICE_MOST])
            for start in range(0, len(rest), _SLICE_MOST)
        ]
        wanted += staying or filled[:1] or [Slice(None, ports, [])]
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
    if place.hostname:
        endpoint["hostname"] = place.hostname
    return endpoint


def _sorted_ports(ports: Iterable[Json]) -> Ports:
    return tuple(tuple(sorted(each.items())) for each in ports)


def _identity(endpoint: Json) -> tuple[str, str]:
    """Return the address of an endpoint and the uid of its pod."""
    return endpoint["addresses"][0], (endpoint.get("targetRef") or {}).get("uid", "")


def port_list(ports: Ports) -> list[Json]:
    """Return ports as they are written."""
    return [dict(each) for each in ports]


def labels(service: Whole, own: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of what is written for a service: those of the service, and our own."""
    headless = {_HEADLESS: ""} if service.spec.get("clusterIP") == "None" else {}
    given = {name: value for name, value in service.metadata.labels.items() if name != _HEADLESS}
    return {**given, **headless, **own}


# -- the older list --------------------------------------------------------------------------------


def subsets(
    places: Iterable[Place], *, published: bool
) -> tuple[list[Json], dict[str, str | None]]:
    """Return the subsets of the Endpoints of a service, and the annotation that goes with them.

    The annotation is None unless some pods were left out, because the list has a bound.

    Parameters
    ----------
    published
        Pods that are being deleted are listed, too (``publishNotReadyAddresses``).
    """
    listed = [each for each in places if published or not each.terminating]
    listed.sort(key=lambda each: (not each.ready, each.pod.status.pod_ip, each.pod.uid))
    groups: dict[Ports, Json] = {}
    for place in listed[:_LIST_MOST]:
        group = groups.setdefault(place.ports, {})
        address: Json = {"ip": place.pod.status.pod_ip, "targetRef": _target(place.pod)}
        address["nodeName"] = place.pod.spec.node_name
        if place.hostname:
            address["hostname"] = place.hostname
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

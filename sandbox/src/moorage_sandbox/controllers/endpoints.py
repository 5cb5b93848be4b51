"""Keeps the EndpointSlices and the Endpoints of services.

Place in the flow: views of services, pods, nodes, slices and lists -> **a queue of services** ->
``endpoint_steps`` -> writes. Nothing routes to an endpoint here; the objects tell which pods a
service has. Slices of a service that is gone go with it by their owner reference.
"""

from __future__ import annotations

from typing import Final

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from moorage.base.clock import NS_PER_SECOND
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.views import View
from moorage.workloads.endpoint_steps import (
    LIST_MARK,
    MIRROR_MARK,
    SERVICE_NAME,
    SLICE_MARK,
    Endpoints,
    EndpointSlice,
    Place,
    Slice,
    labels,
    mirrored,
    places,
    pod_endpoints,
    port_list,
    slices,
    subsets,
)
from moorage.workloads.objects import Json, ViewedPod, Whole, owner_reference
from moorage.workloads.pods import is_finished, is_ready

# The least time between two rounds for one service; a guess. Pods become ready one by one, and
# each round writes the whole list. By the next round the view shows the slices made in the last.
_PAUSE_SECONDS: Final = 1.0
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_ZONE: Final = "topology.kubernetes.io/zone"


class EndpointsController(Controller):
    """Writes which pods are behind each service."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="endpoint-controller", resource=SERVICES)
        views = around.views
        self._services = views.view_of(SERVICES, Whole)
        self._pods = views.view_of(PODS, ViewedPod)
        self._nodes = views.view_of(NODES, Node)
        self._slices = views.view_of(ENDPOINT_SLICES, EndpointSlice)
        self._lists = views.view_of(ENDPOINTS, Endpoints)
        # Namespace -> its services that choose pods, with their selectors.
        self._selectors: dict[str, dict[Key, dict[str, str]]] = {}
        self._members: dict[Key, dict[Key, None]] = {}
        self._next_ns: dict[Key, int] = {}
        self.follow(self._services)
        self._services.tell(self._service_changed)
        self._pods.tell(self._pod_changed)
        self._slices.tell(self._slice_changed)
        self._lists.tell(self._list_changed)

    async def sync(self, key: Key) -> float | None:
        """Write the endpoints of a service, at most once a second."""
        service = self._services.objects.get(key)
        if service is None:
            self._next_ns.pop(key, None)
            await self._delete_list(key)
            return None
        if key not in self._members or service.metadata.deletion_timestamp is not None:
            return None
        now_ns = self.clock.monotonic_ns()
        early_ns = self._next_ns.get(key, now_ns) - now_ns
        if early_ns > 0:
            return early_ns / NS_PER_SECOND
        self._next_ns[key] = now_ns + round(_PAUSE_SECONDS * NS_PER_SECOND)
        objects = self._pods.objects
        pods = (objects[each] for each in sorted(self._members[key]) if each in objects)
        found = places(service, pods)
        await self._write_slices(service, found)
        await self._write_list(service, found)
        return None

    # --- writing ----------------------------------------------------------------------------

    async def _write_slices(self, service: Whole, places: list[Place]) -> None:
        names = {place.pod.spec.node_name for place in places}
        nodes = ((name, self._nodes.objects.get(("", name))) for name in names)
        zones = {name: node.metadata.labels.get(_ZONE, "") for name, node in nodes if node}
        known = _managed(self._slices, service, SLICE_MARK)
        told = labels(service, {SERVICE_NAME: service.name, **SLICE_MARK})
        distribution = service.spec.get("trafficDistribution") or ""
        wanted = slices(known, pod_endpoints(places, zones, distribution))
        await write_slices(self, service, known, wanted, told)

    async def _write_list(self, service: Whole, places: list[Place]) -> None:
        published = service.spec.get("publishNotReadyAddresses") is True
        wanted, annotations = subsets(places, published=published)
        list_labels = labels(service, LIST_MARK)
        known = self._lists.objects.get((service.namespace, service.name))
        metadata: Json = {"name": service.name, "labels": list_labels, "annotations": annotations}
        if known is None:
            body = {
                "apiVersion": ENDPOINTS.api_version,
                "kind": ENDPOINTS.kind,
                "metadata": metadata,
                "subsets": wanted,
            }
            await self.client.create(ENDPOINTS, body, namespace=service.namespace)
            return
        over = {each: known.metadata.annotations.get(each) for each in annotations}
        if (
            (known.subsets or []) != wanted
            or known.metadata.labels != list_labels
            or over != annotations
        ):
            metadata["labels"] = {**dict.fromkeys(known.metadata.labels), **list_labels}
            await self.patch_object(ENDPOINTS, known, {"metadata": metadata, "subsets": wanted})

    async def _delete_list(self, key: Key) -> None:
        known = self._lists.objects.get(key)
        if known is not None and LIST_MARK.items() <= known.metadata.labels.items():
            uid = known.metadata.uid
            await self.client.delete(ENDPOINTS, known.name, namespace=known.namespace, uid=uid)

    # --- told by the views ------------------------------------------------------------------

    def _service_changed(self, old: Whole | None, new: Whole | None) -> None:
        service = new or old
        assert service is not None, "a view tells of something"
        key = (service.namespace, service.name)
        chosen = {} if new is None else _selector(new)
        here = self._selectors.setdefault(service.namespace, {})
        if here.get(key, {}) == chosen:
            return
        here.pop(key, None)
        self._members.pop(key, None)
        if chosen:
            here[key] = chosen
            self._members[key] = {
                pod.key: None
                for pod in self._pods.in_namespace(service.namespace)
                if chosen.items() <= pod.metadata.labels.items()
            }
        if not here:
            del self._selectors[service.namespace]

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None, "a view tells of something"
        for key, chosen in self._selectors.get(pod.namespace, {}).items():
            members = self._members[key]
            was = pod.key in members
            now = new is not None and chosen.items() <= new.metadata.labels.items()
            if now:
                members[pod.key] = None
            elif was:
                del members[pod.key]
            if was != now or (now and (old is None or _shown(old) != _shown(pod))):
                self.queue.add(key)

    def _slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        found = new or old
        assert found is not None, "a view tells of something"
        if SLICE_MARK.items() <= found.metadata.labels.items():
            self.queue.add((found.namespace, found.metadata.labels.get(SERVICE_NAME, "")))

    def _list_changed(self, old: Endpoints | None, new: Endpoints | None) -> None:
        found = new or old
        assert found is not None, "a view tells of something"
        self.queue.add((found.namespace, found.name))


class EndpointsMirror(Controller):
    """Mirrors Endpoints that users write into slices, for services without a selector."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="endpointslicemirroring-controller", resource=ENDPOINTS)
        self._services = around.views.view_of(SERVICES, Whole)
        self._slices = around.views.view_of(ENDPOINT_SLICES, EndpointSlice)
        self._lists = around.views.view_of(ENDPOINTS, Endpoints)
        self.follow(self._lists)
        self._services.tell(self._enqueue_changed)
        self._slices.tell(self._slice_changed)

    async def sync(self, key: Key) -> float | None:
        """Write the slices of an Endpoints object; its slices go with it by their owner."""
        endpoints = self._lists.objects.get(key)
        if endpoints is None:
            return None
        wanted = mirrored(endpoints) if self._is_mirrored(endpoints) else {}
        known = _managed(self._slices, endpoints, MIRROR_MARK)
        told = {**endpoints.metadata.labels, SERVICE_NAME: endpoints.name, **MIRROR_MARK}
        await write_slices(self, endpoints, known, slices(known, wanted), told)
        return None

    def _is_mirrored(self, endpoints: Endpoints) -> bool:
        meta, service = (
            endpoints.metadata,
            self._services.objects.get((endpoints.namespace, endpoints.name)),
        )
        if service is None or service.spec.get("selector"):
            return False
        kept_out = meta.labels.get(_SKIP) == "true" or _LEADER in meta.annotations
        return not kept_out and not LIST_MARK.keys() & meta.labels.keys()

    def _slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        found = new or old
        assert found is not None, "a view tells of something"
        if MIRROR_MARK.items() <= found.metadata.labels.items():
            self.queue.add((found.namespace, found.metadata.labels.get(SERVICE_NAME, "")))


async def write_slices(
    writer: Controller,
    owner: Whole,
    known: list[EndpointSlice],
    wanted: list[Slice],
    slice_labels: dict[str, str],
) -> None:
    """Create, change and delete slices until they are those wanted.

    Parameters
    ----------
    writer
        The controller of the owner.
    slice_labels
        Labels of the slices.
    """
    for each in wanted:
        stored = each.known
        if stored is None:
            metadata: Json = {"generateName": f"{owner.name}-", "labels": slice_labels}
            metadata["ownerReferences"] = [owner_reference(owner, writer.resource)]
            body = {
                "apiVersion": ENDPOINT_SLICES.api_version,
                "kind": ENDPOINT_SLICES.kind,
                "metadata": metadata,
                "addressType": "IPv4",
                "ports": port_list(each.ports),
                "endpoints": each.endpoints,
            }
            await writer.client.create(ENDPOINT_SLICES, body, namespace=owner.namespace)
        elif (stored.endpoints or []) != each.endpoints or stored.metadata.labels != slice_labels:
            gone = dict.fromkeys(stored.metadata.labels)
            changes = {
                "metadata": {"labels": {**gone, **slice_labels}},
                "endpoints": each.endpoints,
            }
            await writer.patch_object(ENDPOINT_SLICES, stored, changes)
    kept = {each.known.name for each in wanted if each.known is not None}
    for stale in known:
        if stale.name not in kept:
            await writer.client.delete(
                ENDPOINT_SLICES, stale.name, namespace=stale.namespace, uid=stale.metadata.uid
            )


def _managed(view: View[EndpointSlice], owner: Whole, mark: dict[str, str]) -> list[EndpointSlice]:
    return [
        each
        for each in view.owned_by(owner.metadata.uid)
        if mark.items() <= each.metadata.labels.items()
    ]


def _selector(service: Whole) -> dict[str, str]:
    """Return the selector of a service that has endpoints by its selector; {} for any other."""
    if service.spec.get("type") == "ExternalName":
        return {}
    return dict(service.spec.get("selector") or {})


def _shown(pod: Pod) -> tuple[object, ...]:
    """Return the parts of a pod that its endpoint shows; only another pod has other names."""
    deleted = pod.metadata.deletion_timestamp is not None
    return is_ready(pod), is_finished(pod), deleted, pod.status.pod_ip, pod.spec.node_name, pod.uid

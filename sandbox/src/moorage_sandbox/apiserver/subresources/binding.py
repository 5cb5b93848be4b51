"""The binding subresource: the one write by which a scheduler assigns a pod to a node.

Rules and their order follow kubernetes v1.36 pkg/registry/core/pod/storage (BindingREST). A
scheduler makes this write more often than any other, so it bypasses the general update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.base.clock import rfc3339
from moorage.kinds.built_in import resource_type
from moorage.kinds.kind import Obj, not_supported, required
from moorage.kinds.pod.topology import topology_labels
from moorage.kinds.status import (
    StatusError,
    bad_request,
    conflict,
    method_not_allowed,
    unsupported_media_type,
)
from moorage.kinds.tree import child, put_condition, text
from moorage_sandbox.apiserver.catalog import Catalog, Target
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.wire.bodies import decode_json
from moorage_sandbox.apiserver.wire.negotiate import JSON, SPOKEN_BUILT_IN, content_type
from moorage_sandbox.apiserver.wire.requests import Request
from moorage_sandbox.apiserver.world import World

BINDINGS = resource_type("v1", "bindings")
"""The collection that accepts bindings, instead of the pod's subresource."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Target(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Meta = _Meta()
    target: _Target = _Target()
    kind: str = "Binding"


def pod_target(request: Request, catalog: Catalog) -> Target | None:
    """Return the pod of a Binding that was sent to the collection ``bindings``.

    Returns
    -------
    Target or None
        The subresource ``binding`` of that pod; None when the path is another.

    Raises
    ------
    StatusError
        400: not a Binding. 405: another method than POST.
    """
    if not request.path.endswith("/bindings"):
        return None
    match request.path.strip("/").split("/"):
        case ["api", "v1", "namespaces", namespace, "bindings"]:
            if request.method != "POST":
                raise method_not_allowed()
            name = _read(request).metadata.name
            served = catalog.find("v1", "pods")
            return Target(served=served, namespace=namespace, name=name, subresource="binding")
    return None


def bind(world: World, target: Target, request: Request, *, dry_run: bool) -> None:
    """Assign a pod to a node.

    Raises
    ------
    StatusError
        400: not a Binding, or for another pod. 404: no such pod. 409: the pod has another uid, is
        being deleted, is bound already or is gated. 422: no node is named.
    """
    binding = _read(request)
    if binding.metadata.name != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    if binding.metadata.namespace not in {"", target.namespace}:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    _check_target(binding, target.name)
    served = target.served
    record = get_record(world.store, target)
    _check_preconditions(binding.metadata, target, (record.uid, str(record.version)))
    pod = record.decode()
    why_not = _why_not(pod, target.name)
    if why_not:
        raise conflict(served.kind.resource, target.name, why_not, subresource="binding")
    _assign(pod, binding, rfc3339(world.clock.now_ns()))
    if binding.target.kind == "Node":
        labels = _labels_of_node(world, binding.target.name, binding.metadata.labels or {})
        if labels:
            pod["metadata"].setdefault("labels", {}).update(labels)
    if not dry_run:
        world.store_form(served, pod)


def admit_binding(world: World, body: Obj) -> None:
    """Give a Binding the labels of its node, in place, before webhooks look at it."""
    if text(body, "target", "kind") != "Node":
        return
    own = child(body, "metadata", "labels")
    if labels := _labels_of_node(world, text(body, "target", "name"), own):
        body["metadata"]["labels"] = own | labels


def _read(request: Request) -> _Binding:
    if content_type(request.headers.get("content-type", "")) not in {"", JSON}:
        raise unsupported_media_type(SPOKEN_BUILT_IN)
    raw: Any = decode_json(request)
    try:
        binding = msgspec.convert(raw, _Binding)
    except msgspec.ValidationError as error:
        text = f'Binding in version "v1" cannot be handled as a Binding: {error}'
        raise bad_request(text) from error
    if binding.kind != "Binding":
        raise bad_request(
            f'{binding.kind} in version "v1" cannot be handled as a Binding: '
            'expected kind "Binding" of version "v1"'
        )
    return binding


def _check_target(binding: _Binding, name: str) -> None:
    """Check the target; upstream answers both errors with a plain 500, this server with a 422."""
    errors = []
    if binding.target.kind not in {"", "Node"}:
        errors.append(not_supported("target.kind", binding.target.kind, ["<empty>", "Node"]))
    if not binding.target.name:
        errors.append(required("target.name"))
    if errors:
        text = ", ".join(error.message for error in errors)
        causes = [
            {"reason": each.type, "message": each.body, "field": each.field} for each in errors
        ]
        details: Obj = {"name": name, "kind": "Binding", "causes": causes}
        raise StatusError(422, "Invalid", f'Binding "{name}" is invalid: {text}', details=details)


def _check_preconditions(meta: _Meta, target: Target, preconditions: tuple[str, str]) -> None:
    uid, version = preconditions
    resource = target.served.kind.resource
    if meta.uid and meta.uid != uid:
        why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: {uid}"
        raise conflict(resource, target.name, why)
    if meta.resource_version and meta.resource_version != version:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {meta.resource_version}, "
            f"ResourceVersion in object meta: {version}"
        )
        raise conflict(resource, target.name, why)


def _why_not(pod: Obj, name: str) -> str:
    """Return the reason why a pod cannot be bound, or an empty string."""
    spec = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _assign(pod: Obj, binding: _Binding, now: str) -> None:
    """Write the assignment into the pod, in place."""
    pod["spec"]["nodeName"] = binding.target.name
    for field in ("annotations", "labels"):
        sent = getattr(binding.metadata, field)
        if sent:
            pod["metadata"].setdefault(field, {}).update(sent)
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    put_condition(status, {"type": "PodScheduled", "status": "True"}, now)


def _labels_of_node(world: World, node: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the zone and region of a node, as far as a Binding has no labels of its own."""
    record = world.shelf("nodes").get(("", node))
    return {} if record is None else topology_labels(record.labels, own)

"""Pure builders: they turn a verb into a method, a path, a query and a body.

Nothing here sends. ``writes`` and ``reflector`` hand the `Call` to a transport.

Notes
-----
Paths, queries and bodies are those of kubernetes v1.36 kube-scheduler and client-go, in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from moorage.api.codec import encode
from moorage.api.meta import ObjectReference
from moorage.api.resources import ResourceType, resource_path
from moorage.client.transport import JSON, Call

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

PAGE_SIZE = 500  # client-go tools/pager

# A server sends a bookmark about once a minute; silence for longer means that the connection is
# dead without having been closed. A watch of a silent server is opened again and loses nothing.
_WATCH_IDLE_SECONDS = 100.0

# A guess: a page of 500 objects of half a MiB. A list beyond it is read page by page (`reflector`).
LIST_BYTES_MAX = 256 << 20

_LIST_SECONDS_MAX = 120.0  # guess: a full page of the largest objects over a slow line


class Selection(msgspec.Struct, frozen=True):
    """A choice of objects of a type: a namespace ("" for all), label and field selectors."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def query(self) -> tuple[tuple[str, str], ...]:
        """Return the query parameters of the selectors."""
        pairs = (("fieldSelector", self.field_selector), ("labelSelector", self.label_selector))
        return tuple(pair for pair in pairs if pair[1])


class ListPage(msgspec.Struct, frozen=True):
    """The start of a list: a resourceVersion, a page size (0: no limit), a continue token."""

    resource_version: str = ""
    limit: int = 0
    continue_token: str = ""


def get(resource: ResourceType, name: str, *, namespace: str = "", accept: str = JSON) -> Call:
    """Read one object."""
    return Call("GET", _path(resource, namespace, name), accept=accept)


def list_objects(
    resource: ResourceType,
    selection: Selection,
    *,
    page: ListPage | None = None,
    accept: str = JSON,
) -> Call:
    """Read one page of a list."""
    page = page or ListPage()
    query = selection.query()
    if page.limit:
        query += (("limit", str(page.limit)),)
    if page.continue_token:
        # A continue token carries its resourceVersion; sending one next to it is refused.
        query += (("continue", page.continue_token),)
    elif page.resource_version:
        query += (("resourceVersion", page.resource_version),)
    return Call(
        "GET",
        _path(resource, selection.namespace),
        query,
        accept=accept,
        timeout_seconds=_LIST_SECONDS_MAX,
        answer_bytes_max=LIST_BYTES_MAX,
    )


def watch(
    resource: ResourceType,
    selection: Selection,
    *,
    resource_version: str,
    timeout_seconds: int,
    initial_events: bool = False,
) -> Call:
    """Open a watch, or with `initial_events` a list in the form of a watch.

    Parameters
    ----------
    resource_version
        Version to continue from; with `initial_events` the oldest acceptable version.
    timeout_seconds
        How long the server should keep the stream open.
    """
    query: tuple[tuple[str, str], ...] = (
        *selection.query(),
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
    )
    if initial_events:
        query += (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
    if resource_version or initial_events:
        query += (("resourceVersion", resource_version),)
    query += (("timeoutSeconds", str(timeout_seconds)),)
    return Call(
        "GET",
        _path(resource, selection.namespace),
        query,
        timeout_seconds=30.0,
        idle_seconds=_WATCH_IDLE_SECONDS,
    )


def create(
    resource: ResourceType,
    body: bytes,
    *,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
    pipelined: bool = False,
) -> Call:
    """Create the object in the body, or a subresource of a named object."""
    path = _path(resource, namespace, name, subresource)
    return Call("POST", path, body=body, pipelined=pipelined)


def replace(
    resource: ResourceType, name: str, body: bytes, *, namespace: str = "", subresource: str = ""
) -> Call:
    """Replace an object, or a subresource, by the object in the body."""
    return Call("PUT", _path(resource, namespace, name, subresource), body=body)


def patch(
    resource: ResourceType,
    name: str,
    body: bytes,
    *,
    namespace: str = "",
    subresource: str = "",
    content_type: str = STRATEGIC_MERGE_PATCH,
) -> Call:
    """Change an object, or a subresource, by a patch."""
    path = _path(resource, namespace, name, subresource)
    return Call("PATCH", path, body=body, content_type=content_type)


def delete(
    resource: ResourceType,
    name: str,
    *,
    namespace: str = "",
    grace_seconds: int | None = None,
    uid: str = "",
    version: str = "",
    propagation: str = "",
) -> Call:
    """Delete an object.

    Parameters
    ----------
    grace_seconds
        Grace period; None leaves it to the object, 0 removes it at once.
    uid
        Delete only if the object still has this uid.
    version
        Delete only if the object still has this resourceVersion.
    propagation
        ``Orphan``, ``Background`` or ``Foreground``; "" leaves it to the server.
    """
    options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    preconditions = {"uid": uid, "resourceVersion": version}
    if wanted := {name: value for name, value in preconditions.items() if value}:
        options["preconditions"] = wanted
    if propagation:
        options["propagationPolicy"] = propagation
    return Call("DELETE", _path(resource, namespace, name), body=encode(options))


def bind(pods: ResourceType, target: ObjectReference, *, node_name: str) -> Call:
    """Bind a pod to a node.

    Parameters
    ----------
    target
        The pod: namespace, name and uid; the uid is a precondition.
    """
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": target.name, "namespace": target.namespace, "uid": target.uid},
        "target": {"kind": "Node", "name": node_name},
    }
    path = _path(pods, target.namespace, target.name, "binding")
    return Call("POST", path, body=encode(body), pipelined=True)


def patch_body(changes: Mapping[str, object]) -> bytes:
    """Encode a patch with its keys in order, so that equal patches are equal bytes."""
    return msgspec.json.encode(changes, order="deterministic")


def field_selector(requirements: Sequence[str]) -> str:
    """Join requirements such as ``status.phase!=Failed`` into one selector."""
    return ",".join(requirements)


def _path(
    resource: ResourceType, namespace: str = "", name: str = "", subresource: str = ""
) -> str:
    return resource_path(resource, namespace or None, name or None, subresource or None)

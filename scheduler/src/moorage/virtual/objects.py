"""Reads the objects of a cluster from a snapshot, a List of kubectl, or manifests.

Objects of the kinds that a scheduler watches become typed objects. Every object but nodes and pods
is kept as JSON, too: a Deployment is not watched, yet its replicas can be asked about. An object
that cannot be read is reported by name; the other objects are taken in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from moorage.api.codec import decode, decode_untyped, encode
from moorage.api.manifest_text import object_texts
from moorage.api.meta import ApiObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.resources import by_kind
from moorage.base.errors import DecodeError, UsageError
from moorage.config.defaults import DEFAULT_SCHEDULER_NAME
from moorage.service.intake.kinds import (
    COMPOSITE_POD_GROUP,
    CUSTOM,
    DEVICE_TAINT_RULE,
    JOB,
    POD_GROUP,
    WATCHED,
    WatchedKind,
)
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

Key = tuple[str, str]
"""Namespace and name; the namespace of cluster-scoped objects is ""."""

KINDS: Final[dict[tuple[str, str], WatchedKind]] = {
    (kind.resource.group, kind.resource.kind): kind
    for kind in (*WATCHED, POD_GROUP, COMPOSITE_POD_GROUP, DEVICE_TAINT_RULE, JOB, *CUSTOM)
}
"""(group, kind) of every watched kind besides nodes and pods."""

# Requests that were found to make sense: replicas share them, and looking is quicker than parsing.
_SENSIBLE: Final[set[bytes]] = set()
_SENSIBLE_MOST: Final = 10_000
# An int64 has fewer digits.
_DIGITS_MAX: Final = 20
_DEFAULT_NAMESPACE: Final = "default"
_SUCCEEDED: Final = "Succeeded"
_FINISHED: Final = (_SUCCEEDED, "Failed")


class _Meta(msgspec.Struct, rename="camel"):
    name: str | None = None
    namespace: str | None = None


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_head = msgspec.json.Decoder(_Head).decode


class Unreadable(msgspec.Struct, frozen=True):
    """An object that was left out, and why."""

    kind: str
    namespace: str
    name: str
    problem: str

    @property
    def text(self) -> str:
        """The object and its fault, as one line."""
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.kind} {place or 'without a name'}: {self.problem}"


class ClusterObjects:
    """The objects of one cluster, by kind and name.

    Attributes
    ----------
    nodes
        By name.
    watched
        Typed objects of the other watched kinds, by the name of their lister.
    manifests
        JSON of every object but nodes and pods, by (group, kind).
    unreadable
        The objects that were left out.
    with_local_data
        The pods with a volume of kind emptyDir, whose content ends with the pod.
    succeeded
        By uid, the pods that have succeeded: they count in pod groups. A pod here need not be among
        the pods, because a scheduler keeps only its group.
    """

    def __init__(self) -> None:
        self.with_local_data: set[Key] = set()
        self.succeeded: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self._pods: dict[Key, Pod] = {}
        # The keys of pods by the name of their node, "" for no node.
        self._by_node: dict[str, dict[Key, None]] = {}
        self.watched: dict[str, dict[Key, ApiObject]] = {}
        self.manifests: dict[tuple[str, str], dict[Key, bytes]] = {}
        self.unreadable: list[Unreadable] = []

    def copy(self) -> ClusterObjects:
        """Return a copy that can be changed; the objects themselves are never changed."""
        other = ClusterObjects()
        other.nodes, other._pods = dict(self.nodes), dict(self._pods)
        other._by_node = {name: dict(keys) for name, keys in self._by_node.items()}
        other.watched = {name: dict(found) for name, found in self.watched.items()}
        other.manifests = {name: dict(found) for name, found in self.manifests.items()}
        other.unreadable = list(self.unreadable)
        other.with_local_data = set(self.with_local_data)
        other.succeeded = dict(self.succeeded)
        return other

    @property
    def pods(self) -> Mapping[Key, Pod]:
        """Every pod, finished ones included; `put_pod` and `drop_pod` change it."""
        return self._pods

    def put_pod(self, pod: Pod) -> None:
        """Add a pod, or a new version of it."""
        old = self._pods.get(pod.key)
        if old is not None and old.spec.node_name != pod.spec.node_name:
            self._leave(old)
        self._pods[pod.key] = pod
        if pod.status.phase == _SUCCEEDED:
            self.succeeded[pod.uid] = pod
        self._by_node.setdefault(pod.spec.node_name, {})[pod.key] = None

    def drop_pod(self, key: Key) -> Pod | None:
        """Remove a pod and return it; None if it is not there."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._leave(pod)
            if pod.status.phase == _SUCCEEDED:
                del self.succeeded[pod.uid]
        return pod

    def _leave(self, pod: Pod) -> None:
        there = self._by_node[pod.spec.node_name]
        del there[pod.key]
        if not there:
            del self._by_node[pod.spec.node_name]

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the unfinished pods of a node; those without a node for an empty name."""
        found = (self._pods[key] for key in self._by_node.get(node_name, ()))
        return [pod for pod in found if not is_finished(pod)]

    def manifest(self, group: str, kind: str, key: Key) -> dict[str, Any] | None:
        """Return an object that is neither a node nor a pod, as plain JSON values."""
        found = self.manifests.get((group, kind), {}).get(key)
        return None if found is None else decode_untyped(found)

    def lister(self, name: str) -> dict[Key, ApiObject]:
        """Return the typed objects of a lister, to look at or to change."""
        return self.watched.setdefault(name, {})

    @property
    def scheduled_pods(self) -> list[Pod]:
        """Pods that have a node and have not finished."""
        return [pod for pod in self.pods.values() if pod.spec.node_name and not is_finished(pod)]

    @property
    def pending_pods(self) -> list[Pod]:
        """Pods without a node, the oldest first."""
        return sorted(self.pods_on(""), key=_age)

    def add_json(self, item: bytes | msgspec.Raw) -> None:
        """Take in one object; an object that cannot be read is reported instead."""
        head = _Head()
        try:
            head = _head(item)
            self._take_item(head, bytes(item))
        except (DecodeError, ValueError, msgspec.DecodeError) as problem:
            meta = head.metadata
            where = (head.kind or "object", meta.namespace or "", meta.name or "")
            self.unreadable.append(Unreadable(*where, str(problem)))

    def _take_item(self, head: _Head, item: bytes) -> None:
        if not head.kind or not head.api_version:
            raise ValueError("it has no kind or apiVersion")
        if not head.metadata.name:
            raise ValueError("it has no metadata.name")
        group, _, version = head.api_version.rpartition("/")
        known = KINDS.get((group, head.kind))
        namespace = head.metadata.namespace or ""
        if not namespace and _is_namespaced(head, known):
            namespace, item = _DEFAULT_NAMESPACE, _in_default_namespace(item)
        key = (namespace, head.metadata.name)
        if (group, head.kind) == ("", "Node"):
            self.nodes[key[1]] = checked_node(decode(Node, item))
            return
        if (group, head.kind) == ("", "Pod"):
            self.put_pod(checked_pod(decode(Pod, item)))
            if has_local_data(item):
                self.with_local_data.add(key)
            return
        # A scheduler imports this module and reads no list: it can do without the rules of kinds.
        from moorage.virtual.kinds import checked_manifest

        item = checked_manifest(group, head.kind, item)
        if known is not None:
            if version != known.resource.version:
                raise ValueError(
                    f"apiVersion {head.api_version} is not read, only {known.resource.api_version}"
                )
            self.lister(known.lister)[key] = decode(known.type_, item)
        self.manifests.setdefault((group, head.kind), {})[key] = item


def _is_namespaced(head: _Head, known: WatchedKind | None) -> bool:
    resource = known.resource if known is not None else by_kind(head.kind, head.api_version)
    return resource is not None and resource.namespaced


def _in_default_namespace(item: bytes) -> bytes:
    """Return an object as an API server keeps it: a file may lack the namespace."""
    obj = decode_untyped(item)
    return encode({**obj, "metadata": {**obj["metadata"], "namespace": _DEFAULT_NAMESPACE}})


def has_local_data(item: bytes) -> bool:
    """Whether the JSON of a pod has a volume of kind emptyDir, which `Pod` leaves out."""
    return b'"emptyDir"' in item and any_empty_dir(decode_untyped(item))


def any_empty_dir(manifest: Mapping[str, Any]) -> bool:
    """Whether the manifest of a pod has a volume of kind emptyDir."""
    volumes = (manifest.get("spec") or {}).get("volumes") or ()
    return any(each.get("emptyDir") is not None for each in volumes)


def is_finished(pod: Pod) -> bool:
    """Whether a pod has ended; a scheduler does not watch such pods."""
    return pod.status.phase in _FINISHED


def checked_pod(pod: Pod) -> Pod:
    """Return a pod whose values make sense to a scheduler, with what an API server fills in.

    Raises
    ------
    ValueError
        A value makes no sense; the message names the field.
    """
    # A file may lack what an API server fills in: the uid, and the default schedulerName.
    if not pod.uid:
        # No uid of a server has a slash, and no other pod of the file has this name.
        metadata = msgspec.structs.replace(pod.metadata, uid=pod.full_name)
        pod = msgspec.structs.replace(pod, metadata=metadata)
    spec = pod.spec
    if not spec.scheduler_name:
        spec = msgspec.structs.replace(spec, scheduler_name=DEFAULT_SCHEDULER_NAME)
        pod = msgspec.structs.replace(pod, spec=spec)
    parts = [each.resources for each in (*spec.containers, *spec.init_containers)]
    asked = encode([parts, spec.overhead, spec.resources])
    if asked not in _SENSIBLE:
        PodInfo(pod).part(RESOURCES)
        if len(_SENSIBLE) < _SENSIBLE_MOST:
            _SENSIBLE.add(asked)
    return pod


def checked_node(node: Node) -> Node:
    """Return a node whose values make sense to a scheduler.

    Raises
    ------
    ValueError
        A quantity makes no sense, or is negative.
    """
    for name, amount in node.status.allocatable.items():
        try:
            negative = parse_quantity(amount) < 0
        except ValueError as problem:
            raise ValueError(f"status.allocatable[{name}]: {problem}") from None
        if negative:
            raise ValueError(f"status.allocatable[{name}]: {amount} is negative")
    return node


def read_objects(text: bytes, source: str) -> ClusterObjects:
    """Read the objects of a text: JSON or YAML, a List, an array, or objects.

    Parameters
    ----------
    text
        As `moorage snapshot save` or `kubectl get -A -o json` (or yaml) writes it.
    source
        Name of the text, for messages.

    Raises
    ------
    UsageError
        The text is neither JSON nor YAML of Kubernetes objects.
    """
    objects = ClusterObjects()
    for item in items_of(text, source):
        objects.add_json(item)
    if not (objects.nodes or objects.pods or objects.manifests or objects.unreadable):
        raise UsageError(f"there are no objects in {source}")
    return objects


def items_of(text: bytes, source: str) -> Iterator[bytes | msgspec.Raw]:
    """Yield the JSON of every object of a text, Lists taken apart.

    Raises
    ------
    UsageError
        The text is neither JSON nor YAML of Kubernetes objects.
    """
    try:
        for _, item in object_texts(text):
            yield item
    except DecodeError as error:
        raise UsageError(
            f"{source}: neither JSON nor YAML of Kubernetes objects: {error}"
        ) from error


def _age(pod: Pod) -> tuple[str, int, Key]:
    """Return the rank of a pending pod: by time of creation, then of the last write about it."""
    version = pod.metadata.resource_version
    # Versions are numbers by convention only, and Python refuses to read very long ones.
    is_number = version.isascii() and version.isdigit() and len(version) <= _DIGITS_MAX
    written = int(version) if is_number else 0
    return pod.metadata.creation_timestamp or "", written, pod.key

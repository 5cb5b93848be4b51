"""A pod in the scheduler's form: the object, its identity, and its compiled parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.pod import Pod
from moorage.snapshot.shape import (
    NODE_NAME,
    RESOURCES,
    SPEC_BESIDE_VOLUMES,
    KnownParts,
    Part,
    PartKind,
    amount_of,
    forget_memos,
    same_spec,
    spec_of,
)

T = TypeVar("T")

# Pods used lately. A guess, below a megabyte.
_LATELY_MOST: Final = 256
# Sets of replicas whose last pod is remembered. A guess: some megabytes, where they are gone.
_REPLICAS_MOST: Final = 1024


class PodInfo:
    """A pod with its parts, each compiled on first use and shared between replicas.

    Attributes
    ----------
    pod
        The API object; never changed.
    priority
        ``spec.priority``, 0 where absent.
    spec_memo
        Values compiled of parts within the spec, by their makers; shared by pods of one spec.
    """

    __slots__ = ("_own", "_spec", "name", "namespace", "pod", "priority", "spec_memo", "uid")

    def __init__(self, pod: Pod, *, spec: Part[KnownParts] | None = None) -> None:
        metadata = pod.metadata
        self.pod = pod
        self.uid = metadata.uid
        self.namespace = metadata.namespace
        self.name = metadata.name
        self.priority = pod.spec.priority or 0
        self._spec = spec_of(pod) if spec is None else spec
        self.spec_memo = self._spec.memo
        self._own: dict[PartKind[Any], Part[Any]] | None = None

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.pod.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's annotations."""
        return self.pod.metadata.annotations

    def requests(self, resource: str) -> float:
        """Return what the pod requests: cores for cpu, bytes or counts for any other resource.

        Init containers, overhead and requests of the pod as a whole count as in NodeResourcesFit.
        """
        return amount_of(resource, self.part(RESOURCES).value.filter.get(resource, 0))

    @property
    def beside_volumes_memo(self) -> dict[object, Any]:
        """Values compiled of parts next to volumes, by their makers, as in `spec_memo`."""
        return self._spec.value.get(SPEC_BESIDE_VOLUMES, self._spec).memo

    @property
    def spec_id(self) -> int:
        """The same for pods that agree in namespace, labels, spec (except the node name), resize.

        An id is never used again.
        """
        return self._spec.id

    def counts_like(self, other: PodInfo) -> bool:
        """Whether a node's columns are the same with this version of a pod as with the other."""
        deleting = bool(self.pod.metadata.deletion_timestamp)
        return self._spec is other._spec and deleting == bool(other.pod.metadata.deletion_timestamp)

    def version(self, pod: Pod) -> PodInfo:
        """Return another version of the pod, which has the same parts where the specs agree."""
        if same_spec(pod, self.pod):
            return PodInfo(pod, spec=self._spec)
        beside = self._spec.value.get(SPEC_BESIDE_VOLUMES)
        if beside is not None and not same_spec(pod, self.pod, beside_volumes=True):
            beside = None
        return PodInfo(pod, spec=spec_of(pod, beside))

    def placed(self, node_name: str) -> PodInfo:
        """Return the pod with its future node; `info_of` then finds the new pod."""
        spec = msgspec.structs.replace(self.pod.spec, node_name=node_name)
        pod = msgspec.structs.replace(self.pod, spec=spec)
        return _keep_lately(PodInfo(pod, spec=self._spec))

    def part(self, kind: PartKind[T]) -> Part[T]:
        """Return the shared, compiled part of this kind.

        Notes
        -----
        A part of fields within the spec is compiled once for all pods of that spec, and, as it
        rests on no volume, once for all pods that differ in their volumes only. A part of other
        fields, such as an annotation, is compiled once for each pod.
        """
        parts = self._spec.value
        part = parts.get(kind)
        if part is not None:
            return part
        if kind.beside_volumes:
            part = parts[kind] = self._part_beside_volumes(kind)
            return part
        return self._own_part(kind)

    def _part_beside_volumes(self, kind: PartKind[T]) -> Part[T]:
        """Return a part that no pod of the same spec has asked for yet."""
        if not self.pod.spec.volumes:  # only specs with volumes are also kept without them
            return kind.part_of(self.pod)
        beside: dict[PartKind[Any], Part[Any]] = self._spec.value[SPEC_BESIDE_VOLUMES].value
        part: Part[T] | None = beside.get(kind)
        if part is None:
            part = beside[kind] = kind.part_of(self.pod)
        return part

    def _own_part(self, kind: PartKind[T]) -> Part[T]:
        """Return a part that replicas need not share: a node name, an annotation."""
        if kind is NODE_NAME:  # compiled at no cost, so not worth keeping for every pod
            return kind.part_of(self.pod)
        if self._own is None:
            self._own = {}
        part = self._own.get(kind)
        if part is None:
            part = self._own[kind] = kind.part_of(self.pod)
        return part


# How a pod gets its `PodInfo`, the quickest way first. Each way finds what has been compiled.
# 1. A pod object that was used lately still has its own: several modules handle one event.
# 2. A later version of a known pod takes the parts of the version before, if the specs agree.
# 3. An unknown pod takes those of the last pod with its namespace and generateName, if the specs
#    agree: it mostly is a replica. Pods without a generateName are compared with each other, as
#    they often come in rows. A comparison takes a third of the time of way 4.
# 4. Any other pod finds the parts of its spec by the encoded spec (`spec_of`).
_lately: dict[int, PodInfo] = {}
"""Way 1: the pods used lately, by the identity of the object."""
_replicas: dict[tuple[str, str], PodInfo] = {}
"""Way 3: the last pod by namespace and generateName."""


def info_of(pod: Pod, *, like: PodInfo | None = None) -> PodInfo:
    """Return the `PodInfo` of a pod; the same object for a pod used lately.

    Parameters
    ----------
    pod
        The pod.
    like
        An earlier version of the pod, if known: most versions share all parts with the one before.
    """
    info = _lately.get(id(pod))
    if info is None or info.pod is not pod:
        info = _keep_lately(_like_a_replica(pod) if like is None else like.version(pod))
    return info


def keep_lately(info: PodInfo) -> None:
    """Note that a pod is about to be used, so that `info_of` finds it."""
    if _lately.get(id(info.pod)) is not info:
        _keep_lately(info)


def forget_lately() -> None:
    """Forget the pods used lately, and so what plugins that have gone compiled from them."""
    _lately.clear()
    _replicas.clear()


def forget_shared_parts() -> None:
    """Free the clusters that have gone, which shared parts of pods keep alive.

    For a process that makes one cluster after another: pods of all of them share these parts, and
    the parts remember what plugins compiled from them.
    """
    forget_lately()
    forget_memos()


def _keep_lately(info: PodInfo) -> PodInfo:
    if len(_lately) >= _LATELY_MOST:
        for oldest in list(_lately)[: _LATELY_MOST // 4]:
            del _lately[oldest]
    _lately[id(info.pod)] = info
    return info


def _like_a_replica(pod: Pod) -> PodInfo:
    """Return an unknown pod, with the parts of the replica before it where they agree."""
    metadata = pod.metadata
    made_as = metadata.namespace, metadata.generate_name
    replica = _replicas.get(made_as)
    if len(_replicas) >= _REPLICAS_MOST:
        _replicas.clear()
    info = _replicas[made_as] = PodInfo(pod) if replica is None else replica.version(pod)
    return info

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
    same_spec,
    spec_of,
)

T = TypeVar("T")

# Recently used pods: several modules handle one event. A guess, below a megabyte.
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
        """Values compiled of parts beside volumes, by their makers, as in `spec_memo`."""
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
        return _met(PodInfo(pod, spec=self._spec))

    def part(self, kind: PartKind[T]) -> Part[T]:
        """Return the shared, compiled part of this kind."""
        parts = self._spec.value
        found = parts.get(kind)
        if found is not None:
            return found
        if kind.beside_volumes:
            found = parts[kind] = self._part_of_others(kind)
            return found
        return self._part_of_its_own(kind)

    def _part_of_others(self, kind: PartKind[T]) -> Part[T]:
        """Return a part that no pod with the same spec has asked for yet."""
        if not self.pod.spec.volumes:
            return kind.part_of(self.pod)
        beside: dict[PartKind[Any], Part[Any]] = self._spec.value[SPEC_BESIDE_VOLUMES].value
        found: Part[T] | None = beside.get(kind)
        if found is None:
            found = beside[kind] = kind.part_of(self.pod)
        return found

    def _part_of_its_own(self, kind: PartKind[T]) -> Part[T]:
        """Return a part that replicas need not share: a node name, an annotation."""
        if kind is NODE_NAME:  # compiled at no cost, so not worth keeping for every pod
            return kind.part_of(self.pod)
        if self._own is None:
            self._own = {}
        found = self._own.get(kind)
        if found is None:
            found = self._own[kind] = kind.part_of(self.pod)
        return found


_lately: dict[int, PodInfo] = {}
# The last replica, by namespace and generateName: most replicas share all parts. Pods without the
# name have one, too: they often come in rows, and a comparison takes a third of the time that
# finding a spec takes.
_replicas: dict[tuple[str, str], PodInfo] = {}


def info_of(pod: Pod, *, like: PodInfo | None = None) -> PodInfo:
    """Return the `PodInfo` of a pod; the same object for a recently used pod.

    Parameters
    ----------
    pod
        The pod.
    like
        An earlier version of the pod, if known: most versions share all parts with the one before.
    """
    found = _lately.get(id(pod))
    if found is None or found.pod is not pod:
        found = _met(_like_a_replica(pod) if like is None else like.version(pod))
    return found


def _like_a_replica(pod: Pod) -> PodInfo:
    """Return a pod that nobody has seen, with the parts of the replica before it."""
    metadata = pod.metadata
    made_as = metadata.namespace, metadata.generate_name
    replica = _replicas.get(made_as)
    if len(_replicas) >= _REPLICAS_MOST:
        _replicas.clear()
    info = _replicas[made_as] = PodInfo(pod) if replica is None else replica.version(pod)
    return info


def meet(info: PodInfo) -> None:
    """Note that a pod is about to be used, so that `info_of` finds it."""
    if _lately.get(id(info.pod)) is not info:
        _met(info)


def forget_lately() -> None:
    """Forget the recently used pods, and so what plugins that have gone compiled from them."""
    _lately.clear()
    _replicas.clear()


def _met(info: PodInfo) -> PodInfo:
    if len(_lately) >= _LATELY_MOST:
        for oldest in list(_lately)[: _LATELY_MOST // 4]:
            del _lately[oldest]
    _lately[id(info.pod)] = info
    return info

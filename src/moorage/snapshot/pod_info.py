"""A pod as the scheduler looks at it: the object, its identity, and its compiled parts."""

from __future__ import annotations

from typing import TypeVar

from moorage.api.pod import Pod
from moorage.snapshot.shape import NODE_NAME, SPEC, Part, PartKind

T = TypeVar("T")


class PodInfo:
    """A pod with its parts, each compiled on first use and shared between replicas.

    Attributes
    ----------
    pod
        The API object; never changed.
    key
        ``namespace/name``.
    priority
        ``spec.priority``, 0 where absent.
    """

    __slots__ = ("_parts", "_spec", "key", "name", "namespace", "pod", "priority", "uid")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.uid = pod.metadata.uid
        self.namespace = pod.metadata.namespace
        self.name = pod.metadata.name
        self.key = f"{self.namespace}/{self.name}"
        self.priority = pod.spec.priority or 0
        self._spec = SPEC.of(pod)
        self._parts = self._spec.value

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"

    def part(self, kind: PartKind[T]) -> Part[T]:
        """Return the shared, compiled part of this kind."""
        if kind is NODE_NAME:  # the one part that replicas on different nodes do not share
            return kind.of(self.pod)
        found = self._parts.get(kind)
        if found is None:
            found = self._parts[kind] = kind.of(self.pod)
        return found

"""Assumed changes of volumes and claims, before the API shows them.

`Assumed` is an overlay on the lister of one kind. A decision changes an object here at once, so
the next pod sees the change. The binding task writes the change to the API server later.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/util/assumecache``.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from moorage.plugins.volumes.claims import VolumeError
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.listers import HasMetadata, Lister

K = TypeVar("K", bound=HasMetadata)


class Assumed(Generic[K]):
    """Objects of one kind with assumed changes.

    An assumption ends when the lister holds another version of the object, or no longer holds it.

    Parameters
    ----------
    lister
        The objects as the API showed them.

    Attributes
    ----------
    log
        (namespace, name) of each object whose assumption began or was taken back.
    """

    def __init__(self, lister: Lister[K]) -> None:
        self._lister = lister
        self._overlay: dict[tuple[str, str], tuple[str, K]] = {}
        self._settled_at = lister.log.position
        self.log: KeyLog[tuple[str, str]] = KeyLog()

    def get(self, name: str, namespace: str = "") -> K | None:
        """Return the assumed object, else the object of the API; None when neither exists."""
        shown = self._lister.get(name, namespace)
        key = (namespace, name)
        if key not in self._overlay:
            return shown
        version, assumed = self._overlay[key]
        if shown is None or shown.metadata.resource_version != version:
            del self._overlay[key]
            return shown
        return assumed

    def shown(self, name: str, namespace: str = "") -> K | None:
        """Return the object as the API showed it; None when the API has no such object."""
        return self._lister.get(name, namespace)

    @property
    def shown_log(self) -> KeyLog[tuple[str, str]]:
        """(namespace, name) of each object that changed or was deleted in the API."""
        return self._lister.log

    def names(self) -> list[str]:
        """Return the names of all objects of a cluster-scoped kind, in order of arrival."""
        return [obj.metadata.name for obj in self._lister.all()]

    def assume(self, obj: K) -> None:
        """Use an object instead of the version that the API showed.

        Raises
        ------
        VolumeError
            The object does not exist, or has changed since the decision.
        """
        self._settle()
        metadata = obj.metadata
        key = (metadata.namespace, metadata.name)
        shown = self._lister.get(metadata.name, metadata.namespace)
        if shown is None:
            raise VolumeError(f'"{"/".join(filter(None, key))}" is gone')
        if shown.metadata.resource_version != metadata.resource_version:
            raise VolumeError(f'"{"/".join(filter(None, key))}" has changed since the decision')
        self._overlay[key] = (metadata.resource_version, obj)
        self.log.append(key)

    def restore(self, obj: K) -> None:
        """Take back the assumption of this object; do nothing when this object is not assumed."""
        key = (obj.metadata.namespace, obj.metadata.name)
        found = self._overlay.get(key)
        if found is not None and found[1] is obj:
            del self._overlay[key]
            self.log.append(key)

    def _settle(self) -> None:
        """Drop assumptions that a newer version in the API has overtaken.

        Without this, an object that no caller asks for again would stay in memory.
        """
        log = self._lister.log
        changed = log.since(self._settled_at)
        self._settled_at = log.position
        for namespace, name in list(self._overlay) if changed is None else changed:
            self.get(name, namespace)

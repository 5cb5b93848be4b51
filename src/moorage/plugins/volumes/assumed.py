"""What VolumeBinding believes about volumes and claims before the API shows it.

An overlay on the lister of one kind: a decision changes an object here at once, so that the next
pod sees it, while the API server hears of it in the binding task.

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

    An assumed object stands until the lister holds another version of it, or none.

    Parameters
    ----------
    lister
        What the API showed.

    Attributes
    ----------
    log
        (namespace, name) of objects whose assumption began or was taken back.
    """

    def __init__(self, lister: Lister[K]) -> None:
        self._lister = lister
        self._overlay: dict[tuple[str, str], tuple[str, K]] = {}
        self._settled_at = lister.log.position
        self.log: KeyLog[tuple[str, str]] = KeyLog()

    def get(self, name: str, namespace: str = "") -> K | None:
        """Return the object as assumed, else as the API showed it; None when it is not there."""
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
        """Return the object as the API showed it; None when it is not there."""
        return self._lister.get(name, namespace)

    @property
    def shown_log(self) -> KeyLog[tuple[str, str]]:
        """(namespace, name) of objects the API showed changed or gone."""
        return self._lister.log

    def names(self) -> list[str]:
        """Return the names of all objects, in order of arrival; for cluster-scoped kinds."""
        return [obj.metadata.name for obj in self._lister.all()]

    def assume(self, obj: K) -> None:
        """Let an object stand in for the version the API showed.

        Raises
        ------
        VolumeError
            The object is not there, or has changed since the decision.
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
        """Take an assumption back; nothing happens when another one or none stands."""
        key = (obj.metadata.namespace, obj.metadata.name)
        found = self._overlay.get(key)
        if found is not None and found[1] is obj:
            del self._overlay[key]
            self.log.append(key)

    def _settle(self) -> None:
        """Drop what the API has overtaken: nobody may ever ask for such an object again."""
        log = self._lister.log
        changed = log.since(self._settled_at)
        self._settled_at = log.position
        for namespace, name in list(self._overlay) if changed is None else changed:
            self.get(name, namespace)

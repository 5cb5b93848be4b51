"""Keeps objects that are in use while they are being deleted: a finalizer protects each of them.

Mirrors kubernetes v1.36 pkg/controller/volume/pvcprotection and pvprotection, and the finalizer of
allocated claims (pkg/controller/resourceclaim). A pod without a node does not count: the scheduler
refuses a pod whose claim is being deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from moorage.api.devices import ResourceClaim
from moorage.api.meta import ApiObject
from moorage.api.pod import Pod, volume_claims
from moorage.api.volume import PersistentVolume, PersistentVolumeClaim
from moorage.base.clock import rfc3339
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import KINDS, Key

Place: TypeAlias = tuple[str, str, Key]
"""API group, kind and key of an object."""

_CLAIMS: Final = "persistent_volume_claims"
_PROTECTED: Final = (
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("resource.k8s.io", "ResourceClaim"),
)


class Protection:
    """Marks objects in use as being deleted, and removes them when nothing uses them any more.

    Parameters
    ----------
    model
        Has the objects.
    remove
        Removes an object for good.
    """

    def __init__(self, model: ClusterModel, remove: Callable[[str, str, Key], None]) -> None:
        self._model = model
        self._remove = remove
        # An object that is being deleted at the start goes with its last user, too.
        self._going: dict[Place, None] = {
            (*kind, key): None
            for kind in _PROTECTED
            for key, obj in model.objects.lister(KINDS[kind].lister).items()
            if obj.metadata.deletion_timestamp and self._in_use(obj)
        }
        model.changes.append(self._pod_changed)

    def delete_object(self, group: str, kind: str, key: Key) -> bool:
        """Delete an object, or only mark it if it is in use; return whether it is gone."""
        known = KINDS.get((group, kind))
        obj = None if known is None else self._model.objects.lister(known.lister).get(key)
        if known is None or obj is None or not self._in_use(obj):
            self._remove(group, kind, key)
            self._release()
            return True
        if obj.metadata.deletion_timestamp is None:
            metadata = msgspec.structs.replace(
                obj.metadata,
                deletion_timestamp=rfc3339(self._model.virtual_now_ns),
                resource_version=self._model.next_version(),
            )
            self._model.put_object(
                known.lister, key, msgspec.structs.replace(obj, metadata=metadata)
            )
            self._going[group, kind, key] = None
        return False

    def _in_use(self, obj: ApiObject) -> bool:
        """Whether the finalizer of an object keeps it."""
        if isinstance(obj, PersistentVolumeClaim):
            key = (obj.namespace, obj.name)
            pods = self._model.objects.pods.values()
            return any(pod.spec.node_name and key in volume_claims(pod) for pod in pods)
        if isinstance(obj, PersistentVolume):
            reference = obj.spec.claim_ref
            key = ("", "") if reference is None else (reference.namespace, reference.name)
            claim: Any = self._model.objects.lister(_CLAIMS).get(key)
            return claim is not None and claim.spec.volume_name == obj.name
        return isinstance(obj, ResourceClaim) and bool(obj.status.reserved_for)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            self._release()

    def _release(self) -> None:
        """Remove the marked objects that nothing uses any more; a volume goes after its claim."""
        for group, kind, key in sorted(self._going):
            obj = self._model.objects.lister(KINDS[group, kind].lister).get(key)
            if obj is None or not self._in_use(obj):
                del self._going[group, kind, key]
                self._remove(group, kind, key)

"""Volume claims in a model: made for ephemeral volumes, and bound before their pods.

Claims of a class that waits for the first pod are bound with that pod, as the scheduler decides.
All others are bound by the volume controller before a pod is tried: to the smallest free volume
that suits, or to one that a driver makes. Mirrors kubernetes v1.36 pkg/controller/volume.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict, to_dict
from moorage.api.meta import ApiObject
from moorage.api.pod import Pod
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from moorage.api.volume import BIND_COMPLETED, PersistentVolume, PersistentVolumeClaim
from moorage.base.errors import UsageError
from moorage.plugins.volumes.writes import with_claim
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key
from moorage.what_if.rules.bounds import Bounds
from moorage.workloads.volume_steps import (
    Create,
    Patch,
    VolumeWorld,
    claim_step,
    index_volumes,
    pod_steps,
)

_CLAIMS: Final = "persistent_volume_claims"
_VOLUMES: Final = "persistent_volumes"
_CLASSES: Final = "storage_classes"
_FREE: Final = ("", "Pending", "Available")


class ClaimVolumes:
    """Keeps the volume claims of pods, and binds claims that wait for no pod.

    Parameters
    ----------
    model
        Has the pods, claims, volumes and classes.
    bounds
        Makes claims as their namespaces allow.

    Attributes
    ----------
    refused
        Uid of a pod -> why its namespace refuses a claim of its ephemeral volumes.
    without_topology
        Claims whose volumes a driver makes, and nobody here knows on which nodes.
    """

    def __init__(self, model: ClusterModel, bounds: Bounds) -> None:
        self._model = model
        self._bounds = bounds
        self.refused: dict[str, str] = {}
        self.without_topology: dict[Key, None] = {}
        for pod in model.objects.pending_pods:
            self._pod_changed(None, pod)
        model.changes.append(self._pod_changed)
        model.puts.append(self._put)

    # --- ephemeral volumes ------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or all(each.ephemeral is None for each in pod.spec.volumes):
            return
        if new is None:
            self._drop_claims(pod)
        elif old is None:
            self._model.soon(lambda: self._make_claims(pod))

    def _make_claims(self, pod: Pod) -> None:
        current = self._model.current(pod)
        if current is None:
            return
        for step in pod_steps(current, self._view()):
            assert isinstance(step, Create), "only claims are made for a pod"
            try:
                claim = from_dict(PersistentVolumeClaim, self._bounds.stored_claim(step.body))
            except UsageError as refusal:
                self.refused[pod.uid] = str(refusal)
                return  # the pod waits for its claim, as in a cluster
            self._model.put_object(_CLAIMS, (claim.namespace, claim.name), claim)

    def _drop_claims(self, pod: Pod) -> None:
        """Remove the claims of a pod that is gone; their volumes go with them."""
        for key, claim in list(self._claims.items()):
            owner = claim.metadata.controller
            if owner is not None and owner.uid == pod.uid:
                self._model.remove(_CLAIMS, key)
                self._bounds.count(PERSISTENT_VOLUME_CLAIMS.qualified, to_dict(claim), -1)
                if claim.spec.volume_name:
                    self._model.remove(_VOLUMES, ("", claim.spec.volume_name))

    # --- binding ----------------------------------------------------------------------------

    def _put(self, lister: str, key: Key, obj: ApiObject, *, is_new: bool) -> None:
        if lister == _CLAIMS and is_new:
            self._model.soon(lambda: self._bind(key, provision=True))
        elif isinstance(obj, PersistentVolume) and is_new and obj.spec.claim_ref is None:
            self._model.soon(self._bind_waiting)

    def _bind_waiting(self) -> None:
        """Bind claims to a volume that came."""
        for key in sorted(self._claims):
            self._bind(key, provision=False)

    def _bind(self, key: Key, *, provision: bool) -> None:
        """Bind a claim that waits for no pod, if a volume is there or a driver makes one."""
        claim = self._claims.get(key)
        if claim is None or claim.spec.volume_name or claim.metadata.deletion_timestamp:
            return
        view = self._view()
        try:
            step = claim_step(claim, view, index_volumes(_available(view.volumes.values())))
        except ValueError:
            return  # a selector or an amount that cannot be read: the claim is left alone
        if isinstance(step, Create) and provision:
            made = from_dict(PersistentVolume, msgspec.to_builtins(step.body))
            self._tie(key, claim, made)
            if made.spec.node_affinity is None:
                self.without_topology[key] = None
        elif isinstance(step, Patch):
            change: Any = step.change
            name = step.key[1]
            if step.resource is not PERSISTENT_VOLUMES:
                name = change["spec"]["volumeName"]
            self._tie(key, claim, view.volumes["", name])

    def _tie(self, key: Key, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """Write the two into each other; the claim last, since pods wait for it."""
        bound = with_claim(volume, claim)
        bound = msgspec.structs.replace(
            bound, status=msgspec.structs.replace(bound.status, phase="Bound")
        )
        self._model.put_object(_VOLUMES, ("", volume.name), bound)
        annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        version = self._model.next_version()
        metadata = msgspec.structs.replace(
            claim.metadata, annotations=annotations, resource_version=version
        )
        complete = msgspec.structs.replace(
            claim,
            metadata=metadata,
            spec=msgspec.structs.replace(claim.spec, volume_name=volume.name),
            status=msgspec.structs.replace(claim.status, phase="Bound"),
        )
        self._model.put_object(_CLAIMS, key, complete)

    @property
    def _claims(self) -> dict[Key, Any]:
        return self._model.objects.lister(_CLAIMS)

    def _view(self) -> VolumeWorld:
        lister: Any = self._model.objects.lister
        pods = self._model.objects.pods
        return VolumeWorld(lister(_CLAIMS), lister(_VOLUMES), lister(_CLASSES), pods, {})


def _available(volumes: Iterable[PersistentVolume]) -> list[PersistentVolume]:
    """Return volumes; new ones are available, as the controller would write."""
    return [
        msgspec.structs.replace(
            each, status=msgspec.structs.replace(each.status, phase="Available")
        )
        if each.spec.claim_ref is None and each.status.phase in _FREE
        else each
        for each in volumes
    ]

"""The API writes that bind a pod's volumes.

Reserve assumes the changes at once. PreBind writes them and waits until the API shows them.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/volumebinding/binder.go``
(``AssumePodVolumes``, ``BindPodVolumes``, ``checkBindings``) and
``component-helpers/storage/volume/pv_helpers.go``.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from moorage.api.meta import ObjectReference
from moorage.api.volume import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import ConflictError
from moorage.framework.handle import BindingClient
from moorage.plugins.volumes.assumed import Assumed
from moorage.plugins.volumes.claims import (
    VolumeError,
    claim_not_found,
    is_fully_bound,
    volume_not_found,
)
from moorage.plugins.volumes.nodes import reach_of
from moorage.plugins.volumes.translation import migrated_plugins
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

K = TypeVar("K", PersistentVolume, PersistentVolumeClaim)

_POLL_SECONDS = 1.0
# The watch shows a change so much later at most; a guess.
_LOOKS = 10
_LOOK_SECONDS = 0.1


class Plan(msgspec.Struct):
    """The changes to write for one pod.

    Parameters
    ----------
    volumes
        PersistentVolumes with their new claimRef, each with the claim it will bind.
    claims
        Claims to provision, with the chosen node.
    """

    volumes: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
    claims: list[PersistentVolumeClaim] = []


def with_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return a volume bound to a claim, marked as bound by a controller unless pre-bound."""
    reference = volume.spec.claim_ref
    pre_bound = reference is not None
    wanted = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        resource_version=claim.metadata.resource_version,
    )
    annotations = dict(volume.metadata.annotations)
    if not pre_bound:
        annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
    replace = msgspec.structs.replace
    if reference is not None and reference.uid == claim.metadata.uid:
        return replace(volume)  # a copy: taking it back must not touch another pod's
    return replace(
        volume,
        metadata=replace(volume.metadata, annotations=annotations),
        spec=replace(volume.spec, claim_ref=wanted),
    )


def with_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return a claim marked to be provisioned for a node."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


class VolumeWriter:
    """Writes a plan and waits until the API shows its volumes and claims bound.

    Parameters
    ----------
    snapshot
        The cluster as the API shows it.
    volumes, claims
        Objects with their assumed changes.
    client
        Client verbs of the binding task.
    clock
        Clock for the timeout.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        volumes: Assumed[PersistentVolume],
        claims: Assumed[PersistentVolumeClaim],
        *,
        client: BindingClient,
        clock: Clock,
    ) -> None:
        self._snapshot = snapshot
        self._volumes = volumes
        self._claims = claims
        self._client = client
        self._clock = clock

    async def write_plan(self, plan: Plan) -> Plan:
        """Write a plan; return the plan with the versions from the server.

        Pods that share a claim write the same change at the same moment: the members of a group,
        once all of them have nodes. The first write counts for all. Upstream fails the others, and
        their room goes to other pods.

        Raises
        ------
        ApiError
            The server rejected a write; earlier writes remain.
        TransportError
            The server did not answer.
        """
        written = Plan([], [])
        for volume, claim in plan.volumes:
            written.volumes.append((_at_version(volume, await self._bind(volume)), claim))
        for claim in plan.claims:
            written.claims.append(_at_version(claim, await self._select_node(claim)))
        return written

    async def _bind(self, volume: PersistentVolume) -> str:
        """Write the claim of a volume; return the version that has it."""
        reference, metadata = volume.spec.claim_ref, volume.metadata
        assert reference is not None, f"persistentvolume {volume.name} has no claim to bind"
        try:
            return await self._client.bind_volume(
                metadata, reference, annotations=metadata.annotations
            )
        except ConflictError:
            newer = await self._newer(self._volumes, volume)
            now = None if newer is None else newer.spec.claim_ref
            if newer is None or now is None or now.uid != reference.uid:
                raise
            return newer.metadata.resource_version

    async def _select_node(self, claim: PersistentVolumeClaim) -> str:
        """Write the node of a claim to provision; return the version that has it."""
        selected = {SELECTED_NODE: claim.metadata.annotations[SELECTED_NODE]}
        try:
            return await self._client.annotate_claim(claim.metadata, selected)
        except ConflictError:
            newer = await self._newer(self._claims, claim)
            if newer is None or not selected.items() <= newer.metadata.annotations.items():
                raise
            return newer.metadata.resource_version

    async def _newer(self, objects: Assumed[K], obj: K) -> K | None:
        """Return the version that the API shows of an object that was changed meanwhile.

        None if the object is gone, or if the watch does not show the change in time.
        """
        for _ in range(_LOOKS):
            shown = objects.shown(obj.metadata.name, obj.metadata.namespace)
            if shown is None or shown.metadata.resource_version != obj.metadata.resource_version:
                return shown
            await self._client.sleep(_LOOK_SECONDS)
        return None

    async def wait_bound(
        self, plan: Plan, pod: PodInfo, node_name: str, *, timeout_seconds: int
    ) -> None:
        """Wait until every claim of a written plan is fully bound.

        Raises
        ------
        VolumeError
            The claims can no longer be bound, or were not bound in time.
        """
        deadline_ns = self._clock.monotonic_ns() + timeout_seconds * NS_PER_SECOND
        while True:
            left_seconds = (deadline_ns - self._clock.monotonic_ns()) / NS_PER_SECOND
            if left_seconds <= 0:
                raise VolumeError("context deadline exceeded")
            await self._client.sleep(min(_POLL_SECONDS, left_seconds))
            if left_seconds >= _POLL_SECONDS and self._is_done(plan, pod, node_name):
                return

    def _is_done(self, plan: Plan, pod: PodInfo, node_name: str) -> bool:
        if not self._client.has_pod(pod.namespace, pod.name):
            raise VolumeError(f'pod does not exist any more: pod "{pod.name}" not found')
        if self._snapshot.row_of(node_name) is None:
            raise VolumeError(f'failed to get node "{node_name}": node "{node_name}" not found')
        # Every volume and claim is checked each time, so a fault is found at once.
        bound = [self._is_bound(volume, claim, node_name) for volume, claim in plan.volumes]
        provisioned = [self._is_provisioned(claim, node_name) for claim in plan.claims]
        return all(bound) and all(provisioned)

    def _is_bound(
        self, written: PersistentVolume, claim: PersistentVolumeClaim, node_name: str
    ) -> bool:
        volume = self._volumes.shown(written.name)
        if volume is None:
            raise VolumeError(f"failed to check binding: {volume_not_found(written.name)}")
        now = self._claims.shown(claim.name, claim.namespace)
        if now is None:
            raise VolumeError(f"failed to check binding: {claim_not_found(claim.name)}")
        if _is_older(volume.metadata.resource_version, written.metadata.resource_version):
            return False
        self._check_node(volume, node_name)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeError(f'ClaimRef got reset for pv "{volume.name}"')
        return is_fully_bound(now)

    def _is_provisioned(self, written: PersistentVolumeClaim, node_name: str) -> bool:
        claim = self._claims.shown(written.name, written.namespace)
        if claim is None:
            raise VolumeError(f"failed to check provisioning pvc: {claim_not_found(written.name)}")
        if _is_older(claim.metadata.resource_version, written.metadata.resource_version):
            return False
        if not claim.metadata.annotations:
            raise VolumeError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE, "") != node_name:
            raise VolumeError(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.shown(claim.spec.volume_name)
            if volume is None:
                return False
            self._check_node(volume, node_name)
        return is_fully_bound(claim)

    def _check_node(self, volume: PersistentVolume, node_name: str) -> None:
        row = self._snapshot.row_of(node_name)
        assert row is not None, f"node {node_name} was there a moment ago"
        plugins = migrated_plugins(self._snapshot.listers.csi_nodes.get(node_name))
        if not reach_of(volume).reaches_node(self._snapshot.node(row).metadata.labels, plugins):
            raise VolumeError(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node_name}": '
                "no matching NodeSelectorTerms"
            )


def _at_version(obj: K, version: str) -> K:
    replace = msgspec.structs.replace
    return replace(obj, metadata=replace(obj.metadata, resource_version=version))


def _is_older(shown: str, written: str) -> bool:
    """Whether the version that the API shows is older than the version written."""
    try:
        return int(shown) < int(written)
    except ValueError:
        return False

"""VolumeRestrictions: disks that conflict on a node, and claims that only one pod may use.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/volumerestrictions``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod, Volume
from moorage.framework.capabilities import Capabilities
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PreFilterResult
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    Status,
    answer_where,
    unresolvable,
)
from moorage.framework.subjects import Subject
from moorage.framework.what_if import RowCounts
from moorage.plugins.volumes.claims import claim_not_found, claims_of, named_claim_hint
from moorage.plugins.volumes.counts.uses_by_row import KindsByVolume, UsesByRow
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView
from moorage.snapshot.volume_pods import DiskKey, disk_key, read_volumes, volumes_of

REASON_DISK: Final = "node(s) had no available disk"
REASON_CLAIM: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
_ONE_POD: Final = "ReadWriteOncePod"


class _Restrictions(msgspec.Struct, frozen=True):
    """The result of PreFilter.

    Parameters
    ----------
    disks
        The pod's inline volumes that may conflict with volumes of other pods.
    claims
        Names of the pod's claims that only one pod may use.
    conflicts
        Number of `claims` in use by other pods. It may fall below 0 in a trial; only > 0 matters.
    promised
        Whether a pod nominated first wants one of `claims`, on whatever node.
    """

    disks: tuple[Volume, ...]
    claims: frozenset[str]
    conflicts: int
    promised: bool


_STATE: StateKey[_Restrictions] = StateKey("PreFilterVolumeRestrictions")


class VolumeRestrictions:
    """PreFilter (with extensions) and Filter plugin; takes no arguments."""

    name = "VolumeRestrictions"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._disk_reason = handle.reasons.intern(REASON_DISK)
        self._claim_reason = handle.reasons.intern(REASON_CLAIM)
        self._kinds = KindsByVolume()

    def capabilities(self) -> Capabilities:
        """Declare which pods PreFilter skips and Filter sees, and what rejections are about."""
        return Capabilities(
            skips_spec=self.skips_spec,
            filter_sees_pod=self.sees_pod,
            filter_counts=self.filter_counts,
            rejects_about=Subject.VOLUME_USE,
        )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Count the pod's one-pod claims in use; skip a pod whose volumes cannot conflict.

        Notes
        -----
        Upstream counts pods on nodes only. A pod that waits for its victims would so lose the claim
        to any pod that is tried while the victims stop.
        """
        volumes = volumes_of(pod)
        if not volumes.disks and not volumes.claims:
            return None, SKIP
        names: set[str] = set()
        for volume in volumes.claims:
            if volume.ephemeral:
                continue
            claim = snapshot.listers.persistent_volume_claims.get(volume.claim_name, pod.namespace)
            if claim is None:
                return None, unresolvable(claim_not_found(volume.claim_name))
            if _ONE_POD in claim.spec.access_modes:
                names.add(volume.claim_name)
        if not volumes.disks and not names:
            return None, SKIP
        pods = snapshot.volume_pods
        conflicts = sum(pods.is_claimed((pod.namespace, name)) for name in names)
        promised = bool(names) and any(
            _claims_wanted(other, names)
            for _, other in snapshot.nominated_before(pod)
            if other.namespace == pod.namespace
        )
        if not volumes.disks and not conflicts and not promised:
            return None, SKIP
        state.write(_STATE, _Restrictions(volumes.disks, frozenset(names), conflicts, promised))
        return None, SUCCESS

    def skips_spec(self, pod: PodInfo) -> bool:
        """Whether the pod has no volume that could conflict."""
        volumes = volumes_of(pod)
        return not volumes.disks and not volumes.claims

    def sees_pod(self, other: PodInfo) -> bool:
        """Whether a pod has a volume that others could conflict with."""
        return not self.skips_spec(other)

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, *, row: int) -> None:
        """Count the claims of a pod that is added to a row."""
        del pod, row
        _count(state, added, +1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, *, row: int) -> None:
        """Stop counting the claims of a pod that is removed from a row."""
        del pod, row
        _count(state, removed, -1)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows with a conflicting disk, and every row while a one-pod claim is in use.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        found = state.read(_STATE)
        clashes = self._clashes(found, view)
        if found.conflicts <= 0 and not found.promised:
            if clashes is None:
                return None
            return answer_where(clashes, Code.UNSCHEDULABLE, self._disk_reason)
        return self._answer(np.ones(len(view), np.bool_), clashes)

    def filter_counts(
        self, state: CycleState, pod: PodInfo, view: NodeView, ranked: RankedPods
    ) -> RowCounts:
        """Return the uses of the pod's one-pod claims and disks by the pods of each row.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod, view
        restrictions, kinds = state.read(_STATE), self._kinds
        kinds.follow(ranked.of_kind)

        def judge(gone: NDArray[np.int64], clashes: NDArray[np.bool_]) -> FilterAnswer | None:
            in_use = (restrictions.conflicts > gone) | restrictions.promised
            return self._answer(in_use, clashes)

        return UsesByRow(
            ranked,
            by_claim=[
                kind for name in restrictions.claims for kind in kinds.by_claim.get(name, ())
            ],
            by_disk=[
                kind
                for wanted in restrictions.disks
                for kind in kinds.by_disk.get(_key_of(wanted), ())
                if _clashes_with(wanted, ranked.of_kind[kind])
            ],
            judge=judge,
        )

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register deleted pods with the disk or claim, new nodes and the pod's claims.

        Beyond kube-scheduler: pods with the disk in another namespace, and deleted nodes, for pods
        on them no longer count.
        """
        return (
            EventRegistration(
                ClusterEvent(Resource.POD, Action.DELETE), _pod_deleted_hint, replicas_agree=True
            ),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),
            EventRegistration(
                ClusterEvent(Resource.NODE, Action.DELETE), _node_deleted_hint, replicas_agree=True
            ),
            EventRegistration(
                ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD),
                named_claim_hint,
                replicas_agree=True,
            ),
        )

    def _answer(
        self, in_use: NDArray[np.bool_], clashes: NDArray[np.bool_] | None
    ) -> FilterAnswer | None:
        """Reject rows where a one-pod claim is in use, and rows with a conflicting disk."""
        failing = in_use if clashes is None else in_use | clashes
        if not failing.any():
            return None
        reason_n = np.where(in_use, np.int32(self._claim_reason), np.int32(0))
        if clashes is not None:
            reason_n[clashes] = self._disk_reason
        return FilterAnswer(failing * np.uint8(Code.UNSCHEDULABLE), reason_n)

    def _clashes(self, restrictions: _Restrictions, view: NodeView) -> NDArray[np.bool_] | None:
        rows: set[int] = set()
        for wanted in restrictions.disks:
            for node_name, other in self._snapshot.volume_pods.with_disk(_key_of(wanted)):
                if _clashes_with(wanted, other):
                    row = self._snapshot.row_of(node_name)
                    assert row is not None, f"pods of node {node_name} are indexed without it"
                    rows.add(row)
        if not rows:
            return None
        clash_n = np.zeros(view.size_of_all, np.bool_)
        clash_n[sorted(rows)] = True
        return view.take_rows(clash_n)


def _key_of(disk: Volume) -> DiskKey:
    key = disk_key(disk)
    assert key is not None, "an inline volume that cannot clash is not among the disks"
    return key


def _clashes_with(wanted: Volume, other: PodInfo) -> bool:
    return any(volumes_clash(wanted, used) for used in volumes_of(other).disks)


def _count(state: CycleState, moved: PodInfo, sign: int) -> None:
    restrictions = state.read(_STATE)
    # Upstream does not compare the namespace either.
    touched = _claims_wanted(moved, restrictions.claims)
    if touched:
        conflicts = restrictions.conflicts + sign * touched
        state.write(_STATE, msgspec.structs.replace(restrictions, conflicts=conflicts))


def _claims_wanted(pod: PodInfo, names: Collection[str]) -> int:
    """Return how many of these claims a pod names."""
    return sum(not each.ephemeral and each.claim_name in names for each in claims_of(pod))


def volumes_clash(wanted: Volume, used: Volume) -> bool:
    """Whether two inline volumes cannot be mounted on the same node."""
    one, other = wanted.gce_persistent_disk, used.gce_persistent_disk
    if one is not None and other is not None:
        return one.pd_name == other.pd_name and not (one.read_only and other.read_only)
    ebs, used_ebs = wanted.aws_elastic_block_store, used.aws_elastic_block_store
    if ebs is not None and used_ebs is not None:
        return ebs.volume_id == used_ebs.volume_id
    iscsi, used_iscsi = wanted.iscsi, used.iscsi
    if iscsi is not None and used_iscsi is not None:
        return iscsi.iqn == used_iscsi.iqn and not (iscsi.read_only and used_iscsi.read_only)
    rbd, used_rbd = wanted.rbd, used.rbd
    if rbd is not None and used_rbd is not None:
        same = rbd.pool == used_rbd.pool and rbd.image == used_rbd.image
        shared = not set(rbd.monitors).isdisjoint(used_rbd.monitors)
        return same and shared and not (rbd.read_only and used_rbd.read_only)
    return False


def _node_deleted_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod with claims: pods on the node may have used them."""
    del old, new
    return bool(read_volumes(waiting).claims)


def _pod_deleted_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del new
    assert isinstance(old, Pod)
    mine, theirs = read_volumes(waiting), read_volumes(old)
    if any(volumes_clash(wanted, used) for wanted in mine.disks for used in theirs.disks):
        return True
    if old.metadata.namespace != waiting.metadata.namespace:
        return False
    names = {volume.claim_name for volume in theirs.claims if not volume.ephemeral}
    return any(not volume.ephemeral and volume.claim_name in names for volume in mine.claims)

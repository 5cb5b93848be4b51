"""NodeVolumeLimits: a node can attach a limited number of volumes of a CSI driver.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodevolumelimits/csi.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod, Volume
from moorage.api.volume import CSINode, VolumeAttachment
from moorage.config.gate_table import VOLUME_LIMIT_SCALING
from moorage.framework.capabilities import Capabilities
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PreFilterResult
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    ReasonTable,
    Status,
    error,
    unresolvable,
)
from moorage.framework.subjects import Subject
from moorage.framework.what_if import RowCounts
from moorage.plugins.pod_hints import holds_place
from moorage.plugins.volumes.attached import AttachedVolumes, limits_of
from moorage.plugins.volumes.claims import VolumeError, used_claim_hint
from moorage.plugins.volumes.counts.attached_by_row import AttachedByRow
from moorage.plugins.volumes.counts.freed import FreedVolumes
from moorage.plugins.volumes.installed import InstalledDrivers, driver_hint, installed_hint
from moorage.plugins.volumes.resolver import ClaimMissingError, VolumeId, VolumeResolver
from moorage.plugins.volumes.translation import DRIVER_OF, MIGRATED_PLUGINS, source_of
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView
from moorage.snapshot.volume_pods import read_volumes, volumes_of

REASON: Final = "node(s) exceed max volume count"

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
_New = tuple[VolumeId, ...] | Status
"""The pod's volumes, or the status that rejects the pod."""


class NodeVolumeLimits:
    """PreFilter and Filter plugin; takes no arguments."""

    name = "NodeVolumeLimits"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._reasons = handle.reasons
        self._reason = handle.reasons.intern(REASON)
        # The handle of a volume that does not exist yet must only differ from all real handles.
        prefix = f"{handle.streams.stream(self.name).getrandbits(64):016x}"
        self._resolver = VolumeResolver(handle.snapshot.listers, prefix)
        self._attached = AttachedVolumes(handle.snapshot, self._resolver)
        self._freed = FreedVolumes(handle.snapshot, self._attached)
        self._installed: InstalledDrivers | None = None
        if handle.gates(VOLUME_LIMIT_SCALING):
            self._installed = InstalledDrivers(handle.snapshot)

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
        """Skip a pod that has no attachable volume."""
        del state, snapshot
        return None, SUCCESS if volumes_of(pod).attachable else SKIP

    def skips_spec(self, pod: PodInfo) -> bool:
        """Whether the pod has no attachable volume."""
        return not volumes_of(pod).attachable

    def sees_pod(self, other: PodInfo) -> bool:
        """Whether a pod has an attachable volume."""
        return bool(volumes_of(other).attachable)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows where the pod's volumes would exceed the limit for a driver."""
        del state
        self._attached.follow()
        on_csi = self._new(pod, has_csi_node=True)
        everywhere = self._attached.each_has_csi_node
        if (
            everywhere
            and not isinstance(on_csi, Status)
            and not self._required(on_csi)
            and self._attached.surely_fit(on_csi)
        ):
            return None
        elsewhere = on_csi if everywhere else self._new(pod, has_csi_node=False)
        return self._answer(on_csi, elsewhere, view, {})

    def filter_counts(
        self, state: CycleState, pod: PodInfo, view: NodeView, ranked: RankedPods
    ) -> RowCounts:
        """Return the volumes that the pods of each row free when they leave it."""
        del state
        self._attached.follow()
        on_csi, elsewhere = (self._new(pod, has_csi_node=each) for each in (True, False))
        each = [new for new in (on_csi, elsewhere) if not isinstance(new, Status)]

        def judge(freed: Mapping[str, IntArray]) -> FilterAnswer | None:
            return self._answer(on_csi, elsewhere, view, freed)

        volumes = dict.fromkeys(volume for new in each for volume in new)
        return AttachedByRow(
            self._attached, self._freed, view, ranked, volumes=volumes, judge=judge
        )

    def _answer(
        self, on_csi: _New, elsewhere: _New, view: NodeView, freed: Mapping[str, IntArray]
    ) -> FilterAnswer | None:
        """Judge rows by the new volumes with a CSINode, and by those without."""
        failures = _Failures(self._reasons, self._reason, self._snapshot.num_nodes)
        if self._attached.each_has_csi_node or on_csi == elsewhere:
            self._judge(on_csi, None, failures, freed)
        else:
            with_csi = self._attached.has_csi_node()
            self._judge(on_csi, with_csi, failures, freed)
            self._judge(elsewhere, ~with_csi, failures, freed)
        return failures.filter_answer(view)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register higher limits, new nodes, and whatever makes fewer volumes count.

        kube-scheduler does not hear of nodes here, which may have no CSINode and no limit.
        """
        csi_node = ClusterEvent(Resource.CSI_NODE, Action.ADD)
        update = ClusterEvent(Resource.CSI_NODE, Action.UPDATE | Action.DELETE)
        claim = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE)
        storage_class = ClusterEvent(Resource.STORAGE_CLASS, Action.DELETE)
        volume = ClusterEvent(Resource.PERSISTENT_VOLUME, Action.DELETE)
        scaling = (
            EventRegistration(
                ClusterEvent(Resource.CSI_NODE, Action.UPDATE), installed_hint, replicas_agree=True
            ),
            EventRegistration(
                ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE | Action.DELETE),
                driver_hint,
                replicas_agree=True,
            ),
        )
        return (
            *(() if self._installed is None else scaling),
            EventRegistration(csi_node),
            EventRegistration(update, _csi_node_hint, replicas_agree=True),
            EventRegistration(
                ClusterEvent(Resource.POD, Action.DELETE), _pod_deleted_hint, replicas_agree=True
            ),
            EventRegistration(claim, used_claim_hint),
            EventRegistration(
                ClusterEvent(Resource.NODE, Action.ADD), _attaches_hint, replicas_agree=True
            ),
            EventRegistration(storage_class, _attaches_hint, replicas_agree=True),
            EventRegistration(volume, _attaches_hint, replicas_agree=True),
            EventRegistration(
                ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE),
                _attachment_hint,
                replicas_agree=True,
            ),
        )

    def _new(self, pod: PodInfo, *, has_csi_node: bool) -> _New:
        try:
            volumes = self._resolver.resolve(pod, has_csi_node=has_csi_node, skip_missing=False)
        except ClaimMissingError as missing:
            return unresolvable(str(missing))
        except VolumeError as fault:
            return error(str(fault))
        return tuple(volumes)

    def _judge(
        self,
        new: _New,
        where_n: BoolArray | None,
        failures: _Failures,
        freed: Mapping[str, IntArray],
    ) -> None:
        """Check the rows of a mask, or all rows, against the limits for the new volumes.

        By driver, `freed` has the number of volumes that no longer count; int64, (n,).
        """
        if isinstance(new, Status):
            failures.fail(where_n, new.code, new.message)
            return
        by_driver: dict[str, list[VolumeId]] = {}
        for volume in new:
            by_driver.setdefault(volume[0], []).append(volume)
        for driver, volumes in by_driver.items():
            failures.exceed(where_n, self._too_many(driver, volumes, freed))
        faults = self._attached.faults() if by_driver else {}
        if faults:
            limited = self._attached.any_limit()
            for row, text in faults.items():
                if (where_n is None or where_n[row]) and limited[row]:
                    failures.fail(np.arange(len(limited)) == row, Code.ERROR, text)
        for driver in reversed(self._required(new)):  # the first missing driver is the reason
            assert self._installed is not None, "without the gate no driver is required"
            missing_n = self._installed.missing(driver)
            text = f"{driver} CSI driver is not installed on the node"
            where = missing_n if where_n is None else where_n & missing_n
            failures.fail(where, Code.UNSCHEDULABLE, text)

    def _required(self, new: Sequence[VolumeId]) -> list[str]:
        """Return the drivers of volumes that have to be on the pod's node, in volume order."""
        if self._installed is None:
            return []
        drivers = dict.fromkeys(driver for driver, _ in new)
        return [driver for driver in drivers if self._installed.is_required(driver)]

    def _too_many(
        self, driver: str, volumes: Sequence[VolumeId], freed: Mapping[str, IntArray]
    ) -> BoolArray:
        """Return bool, (n,): nodes that cannot attach the given volumes.

        Volumes that a node has attached already do not count again.
        """
        room_n = self._attached.room(driver)
        if driver in freed:
            room_n = room_n + freed[driver]
        too_many = room_n < len(volumes)
        there: dict[int, int] = {}
        for volume in volumes:
            for row in self._attached.rows_with(volume):
                there[row] = there.get(row, 0) + 1
        for row, known in there.items():
            count = len(volumes) - known
            too_many[row] = count > 0 and room_n[row] < count
        return too_many


class _Failures:
    """Codes and reasons by row; a failure replaces an exceeded limit."""

    def __init__(self, reasons: ReasonTable, exceeded: int, n: int) -> None:
        self._reasons = reasons
        self._exceeded = exceeded
        self._n = n
        self._answer: FilterAnswer | None = None

    def exceed(self, where_n: BoolArray | None, too_many_n: BoolArray) -> None:
        failed_n = too_many_n if where_n is None else where_n & too_many_n
        if np.count_nonzero(failed_n):
            self._put_failures(failed_n, Code.UNSCHEDULABLE, self._exceeded)

    def fail(self, where_n: BoolArray | None, code: Code, text: str) -> None:
        where_n = np.ones(self._n, np.bool_) if where_n is None else where_n
        self._put_failures(where_n, code, self._reasons.intern(text))

    def filter_answer(self, view: NodeView) -> FilterAnswer | None:
        found = self._answer
        if found is None:
            return None
        return FilterAnswer(view.take_rows(found.code_n), view.take_rows(found.reason_n))

    def _put_failures(self, failed_n: BoolArray, code: Code, reason: int) -> None:
        if self._answer is None:
            self._answer = FilterAnswer(np.zeros(self._n, np.uint8), np.zeros(self._n, np.int32))
        np.putmask(self._answer.code_n, failed_n, code)
        np.putmask(self._answer.reason_n, failed_n, reason)


def _csi_node_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue for a limit that rose or is gone, and for volumes that are translated otherwise."""
    del waiting
    before, after = (limits_of(one if isinstance(one, CSINode) else None) for one in (old, new))
    migrated, migrates = (
        one.metadata.annotations.get(MIGRATED_PLUGINS, "") if isinstance(one, CSINode) else ""
        for one in (old, new)
    )
    return (
        migrated != migrates
        or any(driver not in after for driver in before)
        or any(count > before.get(driver, 0) for driver, count in after.items())
    )


def _attaches_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod with attachable volumes."""
    del old, new
    return bool(read_volumes(waiting).attachable)


def _pod_deleted_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del waiting, new
    assert isinstance(old, Pod)
    if not holds_place(old):
        return False
    return bool(read_volumes(old).attachable)


def _attachment_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del new
    assert isinstance(old, VolumeAttachment)
    attacher = old.spec.attacher
    for volume in waiting.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        if _driver_of(volume) == attacher:
            return True
    return False


def _driver_of(volume: Volume) -> str | None:
    found = source_of(volume)
    return None if found is None else DRIVER_OF[found[0]]

"""VolumeZone: a volume with zone or region labels is usable only on nodes with those labels.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/volumezone``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.api.volume import PersistentVolume, StorageClass
from moorage.framework.capabilities import Capabilities, sees_no_pod
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
from moorage.plugins.answers import NodeAnswers
from moorage.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    VolumeError,
    claim_class,
    claim_not_found,
    claims_of,
    class_not_found,
    named_claim_hint,
    volume_not_found,
    waits_for_consumer,
)
from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

REASON: Final = "node(s) had no available volume zone"

_GA_OF: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_KEYS: Final = (*_GA_OF, *_GA_OF.values())
_DELIMITER: Final = "__"

# Number of kept masks, one for each set of zones. A guess: 1 MB of masks at 5000 nodes.
_KEPT_MAX: Final = 256

BoolArray = NDArray[np.bool_]
ZoneEntry = tuple[str, frozenset[str]]
"""Label key and the allowed values."""

_STATE: StateKey[tuple[ZoneEntry, ...]] = StateKey("PreFilterVolumeZone")


class VolumeZone:
    """PreFilter and Filter plugin; takes no arguments."""

    name = "VolumeZone"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._reason = handle.reasons.intern(REASON)
        self._failed: NodeAnswers[tuple[ZoneEntry, ...], BoolArray] = NodeAnswers(
            handle.snapshot, _KEPT_MAX
        )

    def capabilities(self) -> Capabilities:
        """Declare which pods PreFilter skips."""
        return Capabilities(
            skips_spec=self.skips_spec,
            filter_sees_pod=sees_no_pod,
            rejects_about=Subject.VOLUMES,
        )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Collect the zone and region labels of the pod's volumes; skip a pod without any."""
        if not claims_of(pod):
            return None, SKIP
        try:
            entries = _entries(pod, snapshot.listers)
        except VolumeError as fault:
            return None, unresolvable(str(fault))
        if not entries:
            return None, SKIP
        state.write(_STATE, entries)
        return None, SUCCESS

    def skips_spec(self, pod: PodInfo) -> bool:
        """Whether the pod has no claims, and so no volume with zone labels."""
        return not claims_of(pod)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows with zone or region labels that do not match every volume.

        When PreFilter is not enabled, this method collects the labels of the volumes.

        Raises
        ------
        VolumeError
            PreFilter is not enabled and would have rejected the pod.
        """
        entries = state.find(_STATE)
        if entries is None:
            entries = _entries(pod, self._snapshot.listers)
        if not entries:
            return None
        failed_n = self._failed.find(entries)
        if failed_n is None:
            failed_n = self._failed.keep(entries, self._failing(entries))
        return answer_where(
            view.take_rows(failed_n), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, self._reason
        )

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new classes, nodes, the pod's claims and volumes."""
        node = Action.ADD | Action.UPDATE_NODE_LABEL
        changed = Action.ADD | Action.UPDATE
        return (
            EventRegistration(
                ClusterEvent(Resource.STORAGE_CLASS, Action.ADD), _class_hint, replicas_agree=True
            ),
            EventRegistration(ClusterEvent(Resource.NODE, node)),
            EventRegistration(
                ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, changed),
                named_claim_hint,
                replicas_agree=True,
            ),
            EventRegistration(
                ClusterEvent(Resource.PERSISTENT_VOLUME, changed), _volume_hint, replicas_agree=True
            ),
        )

    def _failing(self, entries: tuple[ZoneEntry, ...]) -> BoolArray:
        """Return bool, (n,): nodes with zone or region labels that do not match all entries."""
        ids = {key: self._snapshot.label_column(key).ids for key in _KEYS}
        outside = np.zeros(self._snapshot.num_nodes, np.bool_)
        for key, wanted in entries:
            outside |= ~self._inside(key, wanted, ids)
        labelled = np.zeros(len(outside), np.bool_)
        for ids_n in ids.values():
            labelled |= ids_n >= 0
        return outside & labelled

    def _inside(
        self, key: str, wanted: frozenset[str], ids: dict[str, NDArray[np.int64]]
    ) -> BoolArray:
        own = _table(self._snapshot.label_column(key), wanted)[ids[key]]
        newer = _GA_OF.get(key)
        if newer is None:
            return own
        instead = _table(self._snapshot.label_column(newer), wanted)[ids[newer]]
        return np.where(ids[key] >= 0, own, instead)


def _table(column: LabelColumn, wanted: frozenset[str]) -> BoolArray:
    """Return bool by value id: whether a value is wanted; the last entry, no label, is False."""
    table = np.zeros(column.size + 1, np.bool_)
    known = (column.lookup(value) for value in sorted(wanted))
    table[[value_id for value_id in known if value_id >= 0]] = True
    return table


def _entries(pod: PodInfo, listers: Listers) -> tuple[ZoneEntry, ...]:
    """Return the zone and region labels of the volumes of a pod's claims.

    Raises
    ------
    VolumeError
        The pod cannot be placed on any node.
    """
    entries: list[ZoneEntry] = []
    for claim_volume in claims_of(pod):
        if claim_volume.ephemeral:
            continue
        if not claim_volume.claim_name:
            raise VolumeError("PersistentVolumeClaim had no name")
        name = _volume_name(pod.namespace, claim_volume.claim_name, listers)
        if name is None:
            continue
        volume = listers.persistent_volumes.get(name)
        if volume is None:
            raise VolumeError(volume_not_found(name))
        entries += zone_entries(volume)
    return tuple(entries)


def _volume_name(namespace: str, claim_name: str, listers: Listers) -> str | None:
    """Return the name of a claim's volume; None while the claim waits for a pod."""
    claim = listers.persistent_volume_claims.get(claim_name, namespace)
    if claim is None:
        raise VolumeError(claim_not_found(claim_name))
    if claim.spec.volume_name:
        return claim.spec.volume_name
    class_name = claim_class(claim)
    if not class_name:
        raise VolumeError("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = listers.storage_classes.get(class_name)
    if storage_class is None:
        raise VolumeError(class_not_found(class_name))
    if waits_for_consumer(storage_class):
        return None
    raise VolumeError("PersistentVolume had no name")


def zone_entries(volume: PersistentVolume) -> list[ZoneEntry]:
    """Return the zone and region labels of a volume, each with its allowed values."""
    labels = volume.metadata.labels
    if not labels:
        return []
    entries: list[ZoneEntry] = []
    for key in _KEYS:
        text = labels.get(key)
        if text is None:
            continue
        values = [part.strip() for part in text.split(_DELIMITER)]
        if all(values):
            entries.append((key, frozenset(values)))
    return entries


def _class_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del waiting, old
    assert isinstance(new, StorageClass)
    return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _volume_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del waiting
    assert isinstance(new, PersistentVolume)
    if not isinstance(old, PersistentVolume):
        return True
    return set(zone_entries(old)) != set(zone_entries(new))

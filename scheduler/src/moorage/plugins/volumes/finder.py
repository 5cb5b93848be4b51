"""Finds volumes for a pod's claims on every node at once.

For a bound claim, the node must reach the claim's volume. For a claim that waits for a pod, the
node needs a free volume, or else a place where the class can provision a volume.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/volumebinding/binder.go``
``FindPodVolumes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.meta import Quantity
from moorage.api.quantity import parse_quantity, value
from moorage.api.volume import (
    NO_PROVISIONER,
    SELECTED_NODE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from moorage.plugins.volumes.assumed import Assumed
from moorage.plugins.volumes.claims import (
    VolumeError,
    claim_class,
    requested_nano,
)
from moorage.plugins.volumes.free import (
    NONE,
    RankArray,
    VolumeIndex,
    fits_request,
    is_reserved_for,
)
from moorage.plugins.volumes.nodes import NodeMasks, Terms, capacity_terms, topology_terms
from moorage.snapshot.snapshot import Snapshot

BoolArray = NDArray[np.bool_]
Claims = Sequence[PersistentVolumeClaim]

AFFINITY: Final = 1
NOT_FOUND: Final = 2
NO_STORAGE: Final = 4
NOT_EXISTING: Final = 8
"""Bits for the reasons why a node fails."""


class Match(msgspec.Struct, frozen=True):
    """The volumes chosen for one claim, by row.

    The choice is int64, (n,): an index into `volumes`, or -1 for no volume; None: -1 on every row.
    """

    claim: PersistentVolumeClaim
    chosen_n: RankArray | None
    volumes: Sequence[PersistentVolume]


class VolumesByRow(msgspec.Struct, frozen=True):
    """The volumes found for a pod's claims on every row.

    Parameters
    ----------
    failed_n
        uint8, (n,): bits for the reasons why each row fails; None when no row fails.
    matches
        Claims that were matched with free volumes, smallest request first.
    selected
        Claims whose node is chosen already, to be provisioned on that node.
    """

    failed_n: NDArray[np.uint8] | None
    matches: tuple[Match, ...] = ()
    selected: tuple[PersistentVolumeClaim, ...] = ()

    def on_row(
        self, row: int
    ) -> tuple[list[tuple[PersistentVolumeClaim, PersistentVolume]], list[PersistentVolumeClaim]]:
        """Return the static bindings and the claims to provision on one row."""
        bindings, provisions = [], list(self.selected)
        for match in self.matches:
            index = NONE if match.chosen_n is None else int(match.chosen_n[row])
            if index == NONE:
                provisions.append(match.claim)
            else:
                bindings.append((match.claim, match.volumes[index]))
        return bindings, provisions


class NodeCapacity(msgspec.Struct, frozen=True):
    """The storage of one class by row.

    Parameters
    ----------
    known_n
        bool, (n,): rows with a CSIStorageCapacity that holds the claim.
    bytes_n
        int64, (n,): the capacity of that object, bytes.
    """

    known_n: BoolArray
    bytes_n: NDArray[np.int64]


_EVERY_ROW: Final = VolumesByRow(None)


class VolumeFinder:
    """Finds volumes for claims on all rows.

    Parameters
    ----------
    snapshot
        The cluster.
    volumes
        PersistentVolumes with their assumed changes.
    """

    def __init__(self, snapshot: Snapshot, volumes: Assumed[PersistentVolume]) -> None:
        self._snapshot = snapshot
        self._listers = snapshot.listers
        self._volumes = volumes
        self.masks = NodeMasks(snapshot)
        self._index = VolumeIndex(volumes, self.masks)
        self._topologies: dict[str, tuple[StorageClass, Terms | None]] = {}
        self._capacities: dict[str, list[tuple[CSIStorageCapacity, Terms]]] = {}
        self._capacity_generation = -1

    def find(self, bound: Claims, delayed: Claims) -> VolumesByRow:
        """Find volumes on every row.

        Parameters
        ----------
        bound
            Claims that have a volume, in volume order.
        delayed
            Claims that wait for a pod, in volume order.

        Raises
        ------
        VolumeError
            A claim, class or volume is invalid.
        """
        failed_n = self._check_bound(bound)
        if not delayed and failed_n is None:
            return _EVERY_ROW
        if failed_n is None:
            failed_n = np.zeros(self._snapshot.num_nodes, np.uint8)
        found = self._find_delayed(delayed, failed_n) if delayed else _EVERY_ROW
        if np.count_nonzero(failed_n):
            found = msgspec.structs.replace(found, failed_n=failed_n)
        return found

    def within_reach(
        self, by_row: VolumesByRow, claim: PersistentVolumeClaim, row: int
    ) -> VolumesByRow:
        """Keep the rows that reach the volume which a claim gets on one row.

        Parameters
        ----------
        by_row
            The volumes of a pod.
        claim, row
            The claim, and the row of another pod with it.
        """
        bindings, _ = self.find((), (claim,)).on_row(row)
        there = np.zeros(self._snapshot.num_nodes, np.bool_)
        there[row] = True
        reached: BoolArray | None = there  # a volume that is still to be made is made there
        for _, volume in bindings:
            reached = self.masks.reached(self.masks.reach(volume))
        if reached is None:
            return by_row
        failed_n = (~reached).view(np.uint8) * np.uint8(NOT_FOUND)
        if by_row.failed_n is not None:
            failed_n |= by_row.failed_n
        return msgspec.structs.replace(by_row, failed_n=failed_n)

    # -- bound claims --------------------------------------------------------------------------

    def _check_bound(self, claims: Claims) -> NDArray[np.uint8] | None:
        """Return for each row why it cannot use the first such volume; None where all rows can."""
        failed_n: NDArray[np.uint8] | None = None
        for claim in claims:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                if failed_n is None:
                    failed_n = np.zeros(self._snapshot.num_nodes, np.uint8)
                np.putmask(failed_n, failed_n == 0, NOT_EXISTING)
                return failed_n
            reached = self.masks.reached(self.masks.reach(volume))
            if reached is not None:
                missed_n = (~reached).view(np.uint8) * np.uint8(AFFINITY)
                failed_n = missed_n if failed_n is None else failed_n | missed_n
        return failed_n

    # -- claims that wait ----------------------------------------------------------------------

    def _find_delayed(self, claims: Claims, failed_n: NDArray[np.uint8]) -> VolumesByRow:
        selected = [claim for claim in claims if SELECTED_NODE in claim.metadata.annotations]
        judged: BoolArray | None = None
        for claim in selected:
            elsewhere = ~self._only(claim.metadata.annotations[SELECTED_NODE])
            judged = elsewhere if judged is None else judged | elsewhere
        waiting = [claim for claim in claims if SELECTED_NODE not in claim.metadata.annotations]
        waiting.sort(key=lambda claim: requested_nano(claim) or 0)
        matches = self._match(waiting) if waiting else ()
        if judged is not None:
            failed_n |= judged * np.uint8(NOT_FOUND)
        for claim in selected:
            judged = self._judge_provision(claim, None, judged, failed_n)
        for match in matches:
            asked = None if match.chosen_n is None else match.chosen_n == NONE
            judged = self._judge_provision(match.claim, asked, judged, failed_n)
        return VolumesByRow(None, matches, tuple(selected))

    def _only(self, node_name: str) -> BoolArray:
        only = np.zeros(self._snapshot.num_nodes, np.bool_)
        row = self._snapshot.row_of(node_name)
        if row is not None:
            only[row] = True
        return only

    def _match(self, claims: Claims) -> tuple[Match, ...]:
        self._index.follow()
        matches: list[Match] = []
        by_class: dict[str, list[Match]] = {}
        for claim in claims:
            class_name = claim_class(claim)
            earlier = by_class.setdefault(class_name, [])
            match = self._match_one(claim, class_name, earlier)
            earlier.append(match)
            matches.append(match)
        return tuple(matches)

    def _match_one(
        self, claim: PersistentVolumeClaim, class_name: str, earlier: Sequence[Match]
    ) -> Match:
        """Choose a volume for one claim on every row, without volumes chosen for earlier claims."""
        free = self._index.free(class_name)
        reserved = [
            volume
            for volume in self._index.reserved(class_name, claim).values()
            if is_reserved_for(volume, claim) and fits_request(volume, claim)
        ]
        n = self._snapshot.num_nodes
        taken = [match.chosen_n for match in earlier if match.chosen_n is not None]
        if not reserved:
            return Match(claim, free.best(free.suitable(claim), taken, n), free.volumes)
        open_n = np.ones(n, np.bool_)
        chosen_n = np.full(n, NONE, np.int64)
        for offset, volume in enumerate(reserved):
            index = len(free.volumes) + offset
            here = open_n & ~_taken(earlier, volume, n)
            open_n &= ~here  # the search ends at a reserved volume, reachable or not
            reached = self.masks.reached(self.masks.reach(volume))
            chosen_n[here if reached is None else here & reached] = index
        if open_n.any():
            best_n = free.best(free.suitable(claim), taken, n)
            if best_n is not None:
                np.putmask(chosen_n, open_n, best_n)
        return Match(claim, chosen_n, [*free.volumes, *reserved])

    # -- provisioning --------------------------------------------------------------------------

    def _judge_provision(
        self,
        claim: PersistentVolumeClaim,
        asked_n: BoolArray | None,
        judged_n: BoolArray | None,
        failed_n: NDArray[np.uint8],
    ) -> BoolArray | None:
        """Record the rows where a claim cannot be provisioned; later claims skip these rows.

        Parameters
        ----------
        claim
            The claim to provision.
        asked_n
            bool, (n,): rows where the claim would need a new volume; None for all.
        judged_n
            bool, (n,): rows that have failed already and are skipped; None for none.
        failed_n
            uint8, (n,): bits of failures, changed in place.

        Returns
        -------
        BoolArray or None
            bool, (n,): `judged_n` and the rows that fail for this claim.
        """
        if judged_n is not None:
            asked_n = ~judged_n if asked_n is None else asked_n & ~judged_n
        if not len(failed_n) or (asked_n is not None and not np.count_nonzero(asked_n)):
            return judged_n
        allowed, stored = self._provision(claim)
        for good, bit in ((allowed, NOT_FOUND), (stored, NO_STORAGE)):
            if good is not None:
                bad = ~good if asked_n is None else asked_n & ~good
                failed_n |= bad.view(np.uint8) * np.uint8(bit)
                judged_n = bad if judged_n is None else judged_n | bad
                asked_n = good if asked_n is None else asked_n & good
        return judged_n

    def _provision(self, claim: PersistentVolumeClaim) -> tuple[BoolArray | None, BoolArray | None]:
        """Return the rows that the class allows, and the rows with capacity; None: every row."""
        class_name = claim_class(claim)
        if not class_name:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            raise VolumeError(f'no class for claim "{key}"')
        storage_class = self._listers.storage_classes.get(class_name)
        if storage_class is None:
            raise VolumeError(f'failed to find storage class "{class_name}"')
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return np.zeros(self._snapshot.num_nodes, np.bool_), None
        allowed = self.masks.mask(self._topology(storage_class))
        return allowed, self._room(claim, storage_class)

    def _topology(self, storage_class: StorageClass) -> Terms | None:
        kept = self._topologies.get(storage_class.name)
        if kept is None or kept[0] is not storage_class:
            kept = (storage_class, topology_terms(storage_class.allowed_topologies))
            self._topologies[storage_class.name] = kept
        return kept[1]

    def _room(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> BoolArray | None:
        driver = self._listers.csi_drivers.get(storage_class.provisioner)
        request = requested_nano(claim)
        if driver is None or not driver.spec.storage_capacity or request is None:
            return None
        wanted_bytes = value(request)
        room = np.zeros(self._snapshot.num_nodes, np.bool_)
        for capacity, terms in self._capacities_of(storage_class.name):
            limit = capacity_limit_bytes(capacity)
            if limit is None or limit < wanted_bytes:
                continue
            mask = self.masks.mask(terms)
            if mask is None:
                return None
            room |= mask
        return room

    def node_capacity(self, claim: PersistentVolumeClaim) -> NodeCapacity | None:
        """Return the capacity that a claim would be provisioned from; None: it is not tracked.

        Where several objects suit a row, the first by namespace and name counts. (kube-scheduler
        takes any of them.)
        """
        storage_class = self._listers.storage_classes.get(claim_class(claim))
        request = requested_nano(claim)
        if storage_class is None or request is None:
            return None
        driver = self._listers.csi_drivers.get(storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        n, wanted_bytes = self._snapshot.num_nodes, value(request)
        room = NodeCapacity(np.zeros(n, np.bool_), np.zeros(n, np.int64))
        entries = self._capacities_of(storage_class.name)
        for capacity, terms in sorted(entries, key=lambda entry: _key(entry[0]), reverse=True):
            limit = capacity_limit_bytes(capacity)
            if limit is not None and limit >= wanted_bytes:
                mask = self.masks.mask(terms)
                here = slice(None) if mask is None else mask
                room.known_n[here] = True
                room.bytes_n[here] = _quantity_bytes(capacity.capacity) or 0
        return room

    def _capacities_of(self, class_name: str) -> Sequence[tuple[CSIStorageCapacity, Terms]]:
        capacities = self._listers.csi_storage_capacities
        if capacities.generation != self._capacity_generation:
            self._capacity_generation = capacities.generation
            self._capacities.clear()
            for capacity in capacities.all():
                entry = (capacity, capacity_terms(capacity.node_topology))
                self._capacities.setdefault(capacity.storage_class_name, []).append(entry)
        return self._capacities.get(class_name, ())


def capacity_limit_bytes(capacity: CSIStorageCapacity) -> int | None:
    """Return the size of the largest possible volume, bytes rounded up; None if unknown."""
    limit = capacity.maximum_volume_size
    return _quantity_bytes(capacity.capacity if limit is None else limit)


def _quantity_bytes(amount: Quantity | None) -> int | None:
    try:
        return None if amount is None else value(parse_quantity(amount))
    except ValueError:
        return None


def _key(capacity: CSIStorageCapacity) -> tuple[str, str]:
    return capacity.metadata.namespace, capacity.metadata.name


def _taken(earlier: Sequence[Match], volume: PersistentVolume, n: int) -> BoolArray:
    """Return bool, (n,): the rows where a volume was chosen for an earlier claim."""
    taken = np.zeros(n, np.bool_)
    for match in earlier:
        for index in range(len(match.volumes) - 1, -1, -1):  # reserved volumes are last
            other = match.volumes[index]
            if other.spec.claim_ref is None:
                break
            if other.name == volume.name and match.chosen_n is not None:
                taken |= match.chosen_n == index
    return taken

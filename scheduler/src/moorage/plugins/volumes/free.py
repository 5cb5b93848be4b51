"""Free volumes by class, and the best free volume for a claim on every node.

Free volumes of a class are ranked by size. The smallest suitable volume has the lowest rank.
Volumes that the same nodes can reach form a group. A row needs the lowest rank of its groups only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.selectors import Selector, compile_label_selector
from moorage.api.volume import PersistentVolume, PersistentVolumeClaim
from moorage.plugins.volumes.assumed import Assumed
from moorage.plugins.volumes.claims import (
    VolumeError,
    capacity_nano,
    requested_nano,
    volume_class,
)
from moorage.plugins.volumes.nodes import NodeMasks, Reach

RankArray = NDArray[np.int64]

NONE: Final = -1
_AVAILABLE: Final = "Available"
_FILESYSTEM: Final = "Filesystem"

_Traits = tuple[str, str, frozenset[str], tuple[tuple[str, str], ...], str, bool]


def fits_request(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume's size, mode and attributes class suit a claim.

    A volume that is being deleted suits no claim.
    """
    return (
        volume.metadata.deletion_timestamp is None
        and capacity_nano(volume) >= (requested_nano(claim) or 0)
        and (volume.spec.volume_mode or _FILESYSTEM) == (claim.spec.volume_mode or _FILESYSTEM)
        and (volume.spec.volume_attributes_class_name or "")
        == (claim.spec.volume_attributes_class_name or "")
    )


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume's claimRef names a claim: name, namespace, and uid if the ref has one."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and reference.name == claim.metadata.name
        and reference.namespace == claim.metadata.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


def claim_selector(claim: PersistentVolumeClaim) -> Selector | None:
    """Compile a claim's selector of volumes; None selects all volumes.

    Raises
    ------
    VolumeError
        The selector is invalid.
    """
    if claim.spec.selector is None:
        return None
    try:
        return compile_label_selector(claim.spec.selector)
    except ValueError as problem:
        raise VolumeError(str(problem)) from None


class FreeVolumes:
    """The free volumes of one class, ranked by size, then by arrival.

    Parameters
    ----------
    volumes
        PersistentVolumes without a claimRef.
    masks
        Answers which nodes can reach each volume.
    """

    def __init__(self, volumes: Sequence[PersistentVolume], masks: NodeMasks) -> None:
        self._masks = masks
        self.volumes = sorted(volumes, key=capacity_nano)
        self._sizes = [capacity_nano(volume) for volume in self.volumes]
        self._rank = {volume.name: rank for rank, volume in enumerate(self.volumes)}
        self._alive = np.ones(len(self.volumes), np.bool_)
        traits: dict[_Traits, int] = {}
        self._trait_n = np.fromiter(
            (traits.setdefault(_traits(volume), len(traits)) for volume in self.volumes),
            np.int64,
            len(self.volumes),
        )
        self._traits = list(traits)
        groups: dict[Reach, int] = {}
        self._group_n = np.fromiter(
            (groups.setdefault(masks.reach(v), len(groups)) for v in self.volumes),
            np.int64,
            len(self.volumes),
        )
        self._groups = list(groups)
        self._epoch = -1
        self._pair_group = np.zeros(0, np.int64)
        self._pair_row = np.zeros(0, np.int64)
        self._starts = np.zeros(0, np.int64)

    def take_volume(self, name: str) -> None:
        """Record that a volume is no longer free."""
        self._alive[self._rank[name]] = False

    def give_back(self, volume: PersistentVolume) -> bool:
        """Record that a volume is free again; return False unless the same object was taken."""
        rank = self._rank.get(volume.name)
        if rank is None or self.volumes[rank] != volume:
            return False
        self._alive[rank] = True
        return True

    def suitable(self, claim: PersistentVolumeClaim) -> NDArray[np.bool_]:
        """Return bool by rank: whether each volume suits a claim, whatever nodes can reach it.

        Raises
        ------
        VolumeError
            The claim's selector is invalid.
        """
        selector = claim_selector(claim)
        table = np.fromiter(
            (_traits_suit(traits, claim, selector) for traits in self._traits),
            np.bool_,
            len(self._traits),
        )
        found = table[self._trait_n] & self._alive
        found[: self._first_of_size(requested_nano(claim) or 0)] = False
        return found

    def best(
        self, suitable: NDArray[np.bool_], chosen: Sequence[RankArray], n_rows: int
    ) -> RankArray | None:
        """Return int64, (n,): the lowest suitable rank for each row; -1 for none.

        The result is None when no row has a suitable volume.

        Parameters
        ----------
        suitable
            The array that `suitable` returned; the call changes the array.
        chosen
            int64, (n,) each: ranks that earlier claims took on each row.
        n_rows
            Number of nodes.
        """
        nothing = len(self.volumes)
        if not np.count_nonzero(suitable):
            return None
        self._pair()
        if not len(self._pair_row):
            return None
        best_n = np.full(n_rows, nothing, np.int64)
        least = np.full(len(self._pair_row), nothing, np.int64)
        # Of each group, as many volumes as earlier claims could have taken, and one more.
        for _ in range(len(chosen) + 1):
            first = self._first_of_group(suitable)
            if (first == nothing).all():
                break
            suitable[first[first < nothing]] = False
            rank_p = first[self._pair_group]
            for taken in chosen:
                rank_p = np.where(taken[self._pair_row] == rank_p, nothing, rank_p)
            np.minimum(least, rank_p, out=least)
        rows = self._pair_row[self._starts]
        best_n[rows] = np.minimum.reduceat(least, self._starts)
        best_n[best_n == nothing] = NONE
        return best_n

    def _first_of_size(self, size_nano: int) -> int:
        return bisect_left(self._sizes, size_nano)

    def _first_of_group(self, suitable: NDArray[np.bool_]) -> RankArray:
        first = np.full(len(self._groups), len(self.volumes), np.int64)
        ranks = np.flatnonzero(suitable)[::-1]
        first[self._group_n[ranks]] = ranks  # the last write has the lowest rank and remains
        return first

    def _pair(self) -> None:
        """Pair groups and rows, ordered by row; keep the pairs while nothing changes."""
        self._masks.refresh()
        if self._epoch == self._masks.epoch:
            return
        self._epoch = self._masks.epoch
        rows = [self._masks.reached_rows(reach) for reach in self._groups]
        group = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        row = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        order = np.argsort(row, kind="stable")
        self._pair_group, self._pair_row = group[order], row[order]
        self._starts = np.flatnonzero(np.diff(self._pair_row, prepend=-1))


def _traits(volume: PersistentVolume) -> _Traits:
    spec = volume.spec
    return (
        spec.volume_mode or _FILESYSTEM,
        spec.volume_attributes_class_name or "",
        frozenset(spec.access_modes),
        tuple(sorted(volume.metadata.labels.items())),
        volume.status.phase,
        volume.metadata.deletion_timestamp is not None,
    )


def _traits_suit(traits: _Traits, claim: PersistentVolumeClaim, selector: Selector | None) -> bool:
    mode, attributes, access_modes, labels, phase, deleting = traits
    return (
        not deleting
        and phase == _AVAILABLE
        and mode == (claim.spec.volume_mode or _FILESYSTEM)
        and attributes == (claim.spec.volume_attributes_class_name or "")
        and access_modes.issuperset(claim.spec.access_modes)
        and (selector is None or selector.matches(dict(labels)))
    )


class VolumeIndex:
    """Free and reserved volumes by class, with assumed changes, updated from the logs.

    Parameters
    ----------
    volumes
        PersistentVolumes with their assumed changes.
    masks
        Answers which nodes can reach each volume.
    """

    def __init__(self, volumes: Assumed[PersistentVolume], masks: NodeMasks) -> None:
        self._volumes = volumes
        self._masks = masks
        self._free: dict[str, dict[str, PersistentVolume]] = {}
        self._reserved: dict[tuple[str, str, str], dict[str, PersistentVolume]] = {}
        self._place: dict[str, tuple[str, tuple[str, str, str] | None]] = {}
        self._tables: dict[str, FreeVolumes] = {}
        self._positions = (-1, -1)

    def free(self, class_name: str) -> FreeVolumes:
        """Return the free volumes of a class; call `follow` first."""
        found = self._tables.get(class_name)
        if found is None:
            volumes = list(self._free.get(class_name, {}).values())
            found = self._tables[class_name] = FreeVolumes(volumes, self._masks)
        return found

    def reserved(
        self, class_name: str, claim: PersistentVolumeClaim
    ) -> Mapping[str, PersistentVolume]:
        """Return the volumes of a class whose claimRef names a claim, by name."""
        key = (class_name, claim.metadata.namespace, claim.metadata.name)
        return self._reserved.get(key, {})

    def follow(self) -> None:
        """Apply the changes since the last call."""
        shown, assumed = self._volumes.shown_log, self._volumes.log
        now = (shown.position, assumed.position)
        if now == self._positions:
            return
        changed = None
        if self._positions[0] >= 0:
            changed = shown.since(self._positions[0])
            also = assumed.since(self._positions[1])
            changed = None if changed is None or also is None else [*changed, *also]
        self._positions = now
        if changed is None:
            self._start_afresh()
            return
        for _, name in changed:
            self._put_volume(name)

    def _start_afresh(self) -> None:
        for index in (self._free, self._reserved, self._place, self._tables):
            index.clear()
        for name in self._volumes.names():
            self._put_volume(name)

    def _put_volume(self, name: str) -> None:
        volume = self._volumes.get(name)
        self._take_out(name, volume)
        if volume is None:
            return
        class_name, reference = volume_class(volume), volume.spec.claim_ref
        if reference is not None:
            key = (class_name, reference.namespace, reference.name)
            self._place[name] = (class_name, key)
            self._reserved.setdefault(key, {})[name] = volume
            return
        self._place[name] = (class_name, None)
        self._free.setdefault(class_name, {})[name] = volume
        table = self._tables.get(class_name)
        if table is not None and not table.give_back(volume):
            del self._tables[class_name]

    def _take_out(self, name: str, instead: PersistentVolume | None) -> None:
        class_name, key = self._place.pop(name, ("", None))
        if key is not None:
            del self._reserved[key][name]
            if not self._reserved[key]:
                del self._reserved[key]
            return
        if self._free.get(class_name, {}).pop(name, None) is None:
            return
        table = self._tables.get(class_name)
        if table is not None:
            table.take_volume(name)

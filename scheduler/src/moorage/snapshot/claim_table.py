"""Resource claims as the scheduler believes them: shown by the API, written since, and decided.

All profiles share one table, because a device allocated by one profile is taken for the others. Two
layers lie over the lister. The first has newer versions, known from the answer to a write before
the watch shows them. The second has allocations under way: decided, and not written yet.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go``
and ``pkg/scheduler/util/assumecache``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import GroupKey

Key = tuple[str, str]
"""Namespace and name."""


class UnderWay(msgspec.Struct):
    """A claim, its future allocation, and the number of pods that need the allocation.

    Parameters
    ----------
    claim
        The claim with its future allocation.
    on_trial
        Whether a pod group is only tried: the allocation is taken back at the end of the attempt,
        so that only other members of the group can count on it.
    group
        The group of the pod that was decided about first; None for a pod on its own.
    pods
        Number of pods that still need the allocation.
    """

    claim: ResourceClaim
    on_trial: bool
    group: GroupKey | None = None
    pods: int = 1


class ClaimTable:
    """The claims of the cluster, including changes not yet in the lister.

    Parameters
    ----------
    lister
        The claims as the API showed them.

    Attributes
    ----------
    log
        Keys of claims of which a newer version came.
    under_way_log
        Uids of claims whose allocation under way began, ended or changed.
    followers
        Objects that follow the claims, by a key of their makers: plugins of one cluster share one.
    """

    def __init__(self, lister: Lister[ResourceClaim]) -> None:
        self._lister = lister
        self._controlled = _Controlled(lister)
        self._newer: dict[Key, ResourceClaim] = {}
        self._under_way: dict[str, UnderWay] = {}
        self.log: KeyLog[Key] = KeyLog()
        self.under_way_log: KeyLog[str] = KeyLog()
        self.followers: dict[object, object] = {}

    @property
    def shown_log(self) -> KeyLog[Key]:
        """Keys of claims that the API showed as changed or deleted."""
        return self._lister.log

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest version known of a claim; None for an unknown claim."""
        shown = self._lister.get(name, namespace)
        if not self._newer:
            return shown
        newer = self._newer.get((namespace, name))
        if newer is None:
            return shown
        if shown is None or not _is_older(shown, newer):
            del self._newer[namespace, name]
            return shown
        return newer

    def all_claims(self) -> list[ResourceClaim]:
        """Return the newest version of every claim, by namespace and order of arrival."""
        keys = [(claim.namespace, claim.name) for claim in self._lister.all()]
        found = (self.get(*key) for key in keys)
        return [claim for claim in found if claim is not None]

    def controlled_by(self, namespace: str, uid: str) -> list[ResourceClaim]:
        """Return the newest version of the claims that an object controls, in order of arrival.

        Parameters
        ----------
        namespace, uid
            The controller, such as the pod of a claim from a template.
        """
        keys = (key for key in self._controlled.keys_of(uid) if key[0] == namespace)
        claims = (self.get(*key) for key in keys)
        return [each for each in claims if each is not None]

    def assume(self, claim: ResourceClaim) -> bool:
        """Use the version that a write returned; False if the API has shown no version yet.

        The version is used until the API shows a version that is not older, or no claim of that
        name.
        """
        key = claim.namespace, claim.name
        known = self.get(*key)
        if known is None:
            return False
        # Answers to two writes may come in another order than the writes were made in.
        if _is_older(known, claim):
            self._newer[key] = claim
            self.log.append(key)
        return True

    # -- allocations under way -----------------------------------------------------------------

    def under_way(self) -> Iterable[ResourceClaim]:
        """Return the claims whose allocation is not written yet, in the order of decisions."""
        return [each.claim for each in self._under_way.values()]

    def under_way_uids(self) -> Iterable[str]:
        """Return the uids under which allocations are not written yet."""
        return self._under_way.keys()

    def find_under_way(self, uid: str) -> UnderWay | None:
        """Return the allocation under way of a claim, or None."""
        return self._under_way.get(uid)

    def begin_allocation(
        self,
        uid: str,
        claim: ResourceClaim,
        *,
        on_trial: bool = False,
        group: GroupKey | None = None,
    ) -> None:
        """Note that a decision allocates a claim; called for each pod that shares the claim."""
        known = self._under_way.get(uid)
        if known is None:
            self._under_way[uid] = UnderWay(claim, on_trial, group)
        else:
            known.pods += 1
            known.on_trial = known.on_trial and on_trial
        self.under_way_log.append(uid)

    def is_called(self, uid: str, claim: ResourceClaim) -> None:
        """Note the claim that was created for an allocation under way, which the claim keeps."""
        known = self._under_way.get(uid)
        if known is not None:
            known.claim = msgspec.structs.replace(claim, status=known.claim.status)
            self.under_way_log.append(uid)

    def end_allocation(self, uid: str) -> None:
        """Note that the allocation has been written."""
        if self._under_way.pop(uid, None) is not None:
            self.under_way_log.append(uid)

    def give_up(self, uid: str) -> bool:
        """Note that a pod no longer needs the allocation; True if it was the last pod."""
        known = self._under_way.get(uid)
        if known is None:
            return False
        known.pods -= 1
        if known.pods > 0:
            return False
        del self._under_way[uid]
        self.under_way_log.append(uid)
        return True


class _Controlled:
    """Keys of the claims that the API showed, by the uid of their controller.

    A search through all claims was most of a decision about extended resources where there were
    2000 claims.
    """

    def __init__(self, lister: Lister[ResourceClaim]) -> None:
        self._lister = lister
        self._position = -1
        self._keys: dict[str, dict[Key, None]] = {}
        self._uids: dict[Key, str] = {}

    def keys_of(self, uid: str) -> Iterable[Key]:
        """Return the keys of the claims that an object controls, in order of arrival."""
        self._follow()
        return self._keys.get(uid, ())

    def _follow(self) -> None:
        log, position = self._lister.log, self._position
        if position == log.position:
            return
        self._position = log.position
        changed = None if position < 0 else log.since(position)
        if changed is None:
            self._keys, self._uids = {}, {}
            changed = [(each.namespace, each.name) for each in self._lister.all()]
        for key in changed:
            self._take(key)

    def _take(self, key: Key) -> None:
        claim = self._lister.get(key[1], key[0])
        controller = None if claim is None else claim.metadata.controller
        before, uid = self._uids.pop(key, ""), "" if controller is None else controller.uid
        if before and before != uid:
            keys = self._keys[before]
            del keys[key]
            if not keys:
                del self._keys[before]
        if uid:
            self._uids[key] = uid
            self._keys.setdefault(uid, {})[key] = None


def allocation_of(claim: ResourceClaim) -> AllocationResult:
    """Return a claim's allocation, including an allocation under way."""
    allocation = claim.status.allocation
    assert allocation is not None, f"claim {claim.namespace}/{claim.name} is not allocated"
    return allocation


def _is_older(shown: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether the version shown by the API is older than another version of the same claim."""
    before, after = shown.metadata.resource_version, other.metadata.resource_version
    if shown.metadata.uid != other.metadata.uid:
        return False
    try:
        return int(before) < int(after)
    except ValueError:
        return before != after

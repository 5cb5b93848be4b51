"""Gangs on a node that preemption tries: which members go singly, and which only all together.

Part of preemption, in profiles whose gangs are evicted whole. What is left of a gang below its
minimum is useless and holds its nodes. So members beyond the minimum go singly, the least important
first. The others go together, wherever they run, and only if every one of them may be evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from moorage.framework.status import Status, unresolvable
from moorage.plugins.preemption.victims import Unit, VictimRules, by_importance, ranked_units
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

GANGS_STAY: Final = "No preemption victims found: gangs on the node cannot be evicted as a whole"


class VictimGangs:
    """The gangs, as one preemptor may evict them.

    Parameters
    ----------
    snapshot
        The cluster.
    pod
        The preemptor. What its own gang needs is never evicted for it.
    rules
        Which pods may be evicted.
    now_ns
        Wall-clock time, nanoseconds.
    leaves
        Whether a pod is about to leave its node anyway.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        pod: PodInfo,
        rules: VictimRules,
        *,
        now_ns: int,
        leaves: Callable[[PodInfo], bool],
    ) -> None:
        self._snapshot = snapshot
        self._own = snapshot.groups.key_of(pod.pod)
        self._rules = rules
        self._now_ns = now_ns
        self._leaves = leaves

    def on_row(self, row: int) -> bool:
        """Whether a row has members of groups."""
        return self._snapshot.groups.has_any(self._snapshot.table.pods_by_row[row].keys())

    def units_of(self, pods: Sequence[PodInfo]) -> list[Unit] | Status:
        """Return the units of allowed pods of one row, in the order of the pods.

        The result is a status where the rules cannot tell about a member on another row, and
        where no pod but members of gangs that stay is allowed.
        """
        by_gang: dict[GroupKey, list[PodInfo]] = {}
        for pod in pods:
            key = self._gang_of(pod)
            if key is not None:
                by_gang.setdefault(key, []).append(pod)
        unit_of: dict[str, Unit] = {}
        staying: set[str] = set()
        for key, members in by_gang.items():
            units = self._units_of_gang(key, members)
            if isinstance(units, Status):
                return units
            unit_of.update({pod.uid: unit for unit in units for pod in unit.pods})
            staying.update({pod.uid for pod in members} - unit_of.keys())
        by_pod = [unit_of.get(pod.uid) or Unit((pod,)) for pod in pods if pod.uid not in staying]
        if staying and not by_pod:
            return unresolvable(GANGS_STAY)
        return list({id(unit): unit for unit in by_pod}.values())

    def ranked(self, units: Sequence[Unit], now_ns: int) -> list[Unit]:
        """Sort the most important unit first."""
        return ranked_units(units, now_ns)

    def _gang_of(self, pod: PodInfo) -> GroupKey | None:
        """Return the gang of a pod that stays as long as it is not evicted."""
        groups = self._snapshot.groups
        key = groups.key_of(pod.pod)
        terms = None if key is None else groups.source.terms_of(key)
        return key if terms is not None and terms.gang and self._stays(pod) else None

    def _stays(self, pod: PodInfo) -> bool:
        return not pod.pod.metadata.deletion_timestamp and not self._leaves(pod)

    def _units_of_gang(self, key: GroupKey, members: list[PodInfo]) -> list[Unit] | Status:
        """Return the units of a gang with these members on a row."""
        groups, table = self._snapshot.groups, self._snapshot.table
        terms = groups.source.terms_of(key)
        assert terms is not None, "a gang has terms"
        placed = [table.pod_info(uid) for uid in groups.members(key).placed_uids()]
        staying = [pod for pod in placed if pod is not None and self._stays(pod)]
        # Which members could go singly depends on their sub-groups, so none does.
        extra = 0 if terms.parts else min(len(members), max(0, len(staying) - terms.minimum))
        ranked = by_importance(members, self._now_ns)
        first = len(ranked) - extra
        singly = [Unit((pod,), key) for pod in ranked[first:]]
        if not first or key == self._own:
            return singly
        alone = {pod.uid for pod in ranked[first:]}
        together = [pod for pod in staying if pod.uid not in alone]
        for pod in together:
            allowed = self._rules.allows(pod)
            if isinstance(allowed, Status):
                return allowed
            if not allowed:
                return singly
        return [Unit(tuple(together), key, whole=True), *singly]

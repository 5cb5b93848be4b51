"""Groups on a node that a single pod preempts in 1.37: which of their pods go together.

Part of DefaultPreemption, used where the gate GenericWorkload is on in 1.37. A group that is
disrupted only as a whole loses all its pods, wherever they run. Its priority counts, also for
members that are evicted one by one.

Rules mirrored: kubernetes v1.37 ``pkg/scheduler/framework/plugins/defaultpreemption``
(``SelectVictimsOnNode``) and ``pkg/scheduler/framework/preemption`` (``types.go``, ``util.go``).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import Status
from moorage.plugins.preemption.group import UnitRules
from moorage.plugins.preemption.victims import LowerPriority, Unit, VictimRules
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


class LowerGroupPriority(LowerPriority):
    """`VictimRules` of 1.37: every pod of lower priority, where that of its group counts.

    Parameters
    ----------
    pod
        The preemptor.
    snapshot
        The cluster.
    """

    def __init__(self, pod: PodInfo, snapshot: Snapshot) -> None:
        super().__init__(pod)
        self._snapshot = snapshot
        self._units = UnitRules(snapshot.groups, of_1_37=True)

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for rows without members of groups."""
        alone = [not has_groups(self._snapshot, row) for row in rows.tolist()]
        return np.array(alone, np.bool_)

    def allows(self, pod: PodInfo) -> bool | Status:
        """Whether a pod, or its group, has a lower priority."""
        return self._units.priority_of(pod) < self._priority


class VictimGroups:
    """The groups, as one preemptor may evict them.

    Parameters
    ----------
    snapshot
        The cluster.
    rules
        Which pods may be evicted.
    """

    def __init__(self, snapshot: Snapshot, rules: VictimRules) -> None:
        self._snapshot = snapshot
        self._rules = rules
        self._units = UnitRules(snapshot.groups, of_1_37=True)

    def on_row(self, row: int) -> bool:
        """Whether a row has members of groups."""
        return has_groups(self._snapshot, row)

    def units_of(self, pods: Sequence[PodInfo]) -> list[Unit] | Status:
        """Return the units of allowed pods of one row, in the order of the pods.

        The result is a status where the rules cannot tell about a member on another row.
        """
        units: list[Unit] = []
        for unit in self._units.units_of(pods):
            if unit.whole and unit.gang is not None:
                together = self._placed(unit.gang)
                allowed = [self._rules.allows(pod) for pod in together]
                for each in allowed:
                    if isinstance(each, Status):
                        return each
                if all(allowed):
                    units.append(msgspec.structs.replace(unit, pods=together))
            else:
                units.append(unit)
        return units

    def ranked(self, units: Sequence[Unit], now_ns: int) -> list[Unit]:
        """Sort the most important unit first."""
        return self._units.ranked(units, now_ns)

    def _placed(self, key: GroupKey) -> tuple[PodInfo, ...]:
        """Return the members of a group that have a node."""
        groups, table = self._snapshot.groups, self._snapshot.table
        placed = [table.pod_info(uid) for uid in groups.members(key).placed_uids()]
        return tuple(pod for pod in placed if pod is not None)


def has_groups(snapshot: Snapshot, row: int) -> bool:
    """Whether a row has members of groups."""
    return snapshot.groups.has_any(snapshot.table.pods_by_row[row].keys())

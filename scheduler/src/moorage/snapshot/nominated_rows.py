"""Sums of nominated pods by row, updated by changes: thousands may wait for room at once.

Many preemptors nominate as many nodes. Adding all of them up in each attempt would cost the square
of their number. Each requested priority has its own sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_affinity import POD_AFFINITY
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.shifted import RowSums
from moorage.snapshot.table import NodeTable

IntArray = NDArray[np.int64]

# Priorities that sums are kept for; a guess, more than a cluster has classes.
_LEVELS_MOST = 16


class NominatedSums:
    """The amounts that nominated pods would add to the sums of some rows.

    Attributes
    ----------
    rows
        int64, in the order asked for.
    amounts
        By resource, int64, (rows,).
    pods
        int64, (rows,): their number.
    """

    __slots__ = ("amounts", "pods", "rows")

    def __init__(self, rows: IntArray, amounts: dict[str, IntArray], pods: IntArray) -> None:
        self.rows = rows
        self.amounts = amounts
        self.pods = pods


class NominatedLevel:
    """Sums of the nominated pods of one priority or more, over all rows; not to be changed.

    Attributes
    ----------
    count_n
        int64, (n,): number of nominated pods.
    amounts
        By resource, int64, (n,); a resource never requested by a nominated pod is missing.
    log
        Rows whose sums changed. A level that is built again is a new object.
    """

    __slots__ = ("amounts", "count_n", "log")

    def __init__(self, n: int) -> None:
        self.count_n = np.zeros(n, np.int64)
        self.amounts: dict[str, IntArray] = {}
        self.log: KeyLog[int] = KeyLog()

    def row_sums(self, row: int) -> RowSums | None:
        """Return the sums of one row; None where no nominated pod counts."""
        count = self.count_n.item(row)
        if not count:
            return None
        return RowSums({name: array.item(row) for name, array in self.amounts.items()}, count)

    def put_pods(self, row: int, pods: Sequence[PodInfo]) -> None:
        """Replace the pods of a row."""
        if not pods and not self.count_n.item(row):
            return
        self.log.append(row)
        self.count_n[row] = len(pods)
        sums = dict.fromkeys(self.amounts, 0)
        for pod in pods:
            for name, amount in pod.part(RESOURCES).value.balanced.items():
                sums[name] = sums.get(name, 0) + amount
        for name, amount in sums.items():
            if name not in self.amounts:
                self.amounts[name] = np.zeros_like(self.count_n)
            self.amounts[name][row] = amount


class NominatedRows:
    """The nominated pods of a table's rows.

    Parameters
    ----------
    table
        Tells which pods are on a node already: these pods are no longer nominated.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._source: Mapping[str, Sequence[PodInfo]] | None = None
        self._structure = -1
        self._positions = (0, 0)
        self._pods: dict[str, tuple[PodInfo, ...]] = {}
        self._where: dict[str, str] = {}
        self._placed: dict[str, None] = {}
        self._repelling: set[str] = set()
        """The uids of the nominated pods with required anti-affinity."""
        self._spreading: set[str] = set()
        """The uids of the nominated pods with a hard spread of their own."""
        self._levels: dict[int, NominatedLevel] = {}

    def follow(
        self, nominations: Mapping[str, Sequence[PodInfo]], changed: KeyLog[str] | None
    ) -> None:
        """Catch up with changes; to be called before each method below.

        Parameters
        ----------
        nominations
            Pods by the name of the node they are nominated to.
        changed
            Names of nodes whose pods changed; None where that is not known.
        """
        table = self._table
        known = nominations is self._source and self._structure == table.columns.structure
        before = self._positions
        self._positions = (0 if changed is None else changed.position, table.pod_log.position)
        if known and changed is not None and before == self._positions:
            return
        rows = table.pod_log.since(before[1])
        names = None if changed is None else changed.since(before[0])
        self._source, self._structure = nominations, table.columns.structure
        if not known or rows is None or names is None:
            self._reset(nominations)
            return
        due = dict.fromkeys(names)
        for uid in (*self._placed, *self._arrived(rows)):
            due[self._where[uid]] = None
        for name in due:
            pods = nominations.get(name, ())
            if pods or name in self._pods:  # else a pod came and went in between
                self._refresh(name, tuple(pods))

    def among(self, pod: PodInfo, rows: IntArray) -> tuple[IntArray, NominatedSums]:
        """Return the positions of rows where nominated pods need room, and the pods' sums.

        The nominated pods that count have an equal or higher priority and no node yet. The pod
        itself does not count.

        Parameters
        ----------
        pod
            The pod that leaves the room.
        rows
            int64, each row at most once, in any order.
        """
        level = self.level(pod.priority)
        counts = level.count_n[rows]
        own = self.own(pod)
        mine = np.empty(0, np.int64)
        if own is not None and own[1].priority >= pod.priority and own[1].uid not in self._placed:
            mine = np.flatnonzero(rows == own[0])
            counts[mine] -= 1
        positions = np.flatnonzero(counts)
        at = rows[positions]
        amounts: dict[str, IntArray] = {}
        for name, amount in pod.part(RESOURCES).value.filter.items():
            if amount:
                column = level.amounts.get(name)
                amounts[name] = np.zeros(len(at), np.int64) if column is None else column[at]
        if own is not None and len(mine):
            requests = own[1].part(RESOURCES).value.balanced
            for name, array in amounts.items():
                array[at == own[0]] -= requests.get(name, 0)
        return positions, NominatedSums(at, amounts, counts[positions])

    def before(self, pod: PodInfo) -> Iterator[tuple[int, PodInfo]]:
        """Yield the nominated pods for which a pod must leave room, each with its row."""
        row_of, placed, priority, uid = self._table.row_of, self._placed, pod.priority, pod.uid
        for name, pods in self._pods.items():
            row = row_of(name)
            if row is None:
                continue
            for each in pods:
                if each.priority >= priority and each.uid != uid and each.uid not in placed:
                    yield row, each

    @property
    def any_repels(self) -> bool:
        """Whether any nominated pod has required anti-affinity."""
        return bool(self._repelling)

    @property
    def any_spreads(self) -> bool:
        """Whether any nominated pod has a hard spread of its own."""
        return bool(self._spreading)

    def level(self, priority: int) -> NominatedLevel:
        """Return, by row, the sums of the nominated pods of a priority or more."""
        level = self._levels.get(priority)
        if level is None:
            if len(self._levels) >= _LEVELS_MOST:
                self._levels.clear()
            level = self._levels[priority] = NominatedLevel(self._table.columns.n)
            for name, pods in self._pods.items():
                row = self._table.row_of(name)
                if row is not None and (first := self._first(pods, priority)):
                    level.put_pods(row, first)
        return level

    def own(self, pod: PodInfo) -> tuple[int, PodInfo] | None:
        """Return the row a pod is nominated to, and the pod as it was nominated."""
        name = self._where.get(pod.uid)
        row = None if name is None else self._table.row_of(name)
        if name is None or row is None:
            return None
        return row, next(each for each in self._pods[name] if each.uid == pod.uid)

    # -- keeping up ----------------------------------------------------------------------------

    def _arrived(self, rows: Sequence[int]) -> list[str]:
        by_row, where = self._table.pods_by_row, self._where
        return [uid for row in rows for uid in by_row[row] if uid in where]

    def _reset(self, nominations: Mapping[str, Sequence[PodInfo]]) -> None:
        self._pods, self._where, self._placed, self._levels = {}, {}, {}, {}
        self._repelling, self._spreading = set(), set()
        for name, pods in nominations.items():
            self._refresh(name, tuple(pods))

    def _refresh(self, name: str, pods: tuple[PodInfo, ...]) -> None:
        if self._count_alike(name, pods):
            self._pods[name] = pods
            return
        for old in self._pods.pop(name, ()):
            if self._where.get(old.uid) == name:
                del self._where[old.uid]
                self._placed.pop(old.uid, None)
                self._repelling.discard(old.uid)
                self._spreading.discard(old.uid)
        if pods:
            self._pods[name] = pods
        for pod in pods:
            self._where[pod.uid] = name
            if pod.part(POD_AFFINITY).value.required_anti:
                self._repelling.add(pod.uid)
            if pod.pod.spec.must_spread:
                self._spreading.add(pod.uid)
            if self._table.node_of_pod(pod.uid) is not None:
                self._placed[pod.uid] = None
            else:
                # Its last node is looked at later, where this one changed before that one did.
                self._placed.pop(pod.uid, None)
        row = self._table.row_of(name)
        if row is not None:
            for priority, level in self._levels.items():
                level.put_pods(row, self._first(pods, priority))

    def _count_alike(self, name: str, pods: tuple[PodInfo, ...]) -> bool:
        """Whether pods are other versions of those known for a node, which changes no sum."""
        known = self._pods.get(name, ())
        if not known or len(pods) != len(known):
            return False
        where, node_of = self._where, self._table.node_of_pod
        for new, old in zip(pods, known, strict=True):
            uid = new.uid
            if uid != old.uid or where.get(uid) != name or not new.counts_like(old):
                return False
            if (node_of(uid) is not None) != (uid in self._placed):
                return False
        return True

    def _first(self, pods: Sequence[PodInfo], priority: int) -> list[PodInfo]:
        return [each for each in pods if each.priority >= priority and each.uid not in self._placed]

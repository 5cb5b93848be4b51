"""The pods of each row by importance, as arrays: the first victims of preemption are last.

Row by row and rank by rank: priority, start and requests. A row is compiled when it is first
asked for, and again when a pod came, went or changed.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/util`` ``MoreImportantPod``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.base.clock import parse_rfc3339
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.table import NodeTable
from moorage.snapshot.view import as_index

NOT_STARTED = np.iinfo(np.int64).max
"""Start of a pod that has not started: it counts as started now, after every other pod."""

_NO_POD = np.iinfo(np.int64).max  # priority where a row has no pod of this rank: never lower
_NO_NAMESPACE = -1
_NO_KIND = -1
# Kinds of pods that have gone before kinds are numbered anew; a guess.
_GONE_KINDS = 4096
_FIRST_RANKS = 8

RankArray = NDArray[np.int64]
Rows = NDArray[np.int64]


@lru_cache(maxsize=65536)
def _parsed_ns(text: str) -> int:
    try:
        return parse_rfc3339(text)
    except ValueError:
        return int(NOT_STARTED)


def start_ns(pod: PodInfo) -> int:
    """Return when a pod was started, nanoseconds, or `NOT_STARTED`.

    A time that cannot be read counts as not started, so that other pods are still ranked.
    """
    text = pod.pod.status.start_time
    return int(NOT_STARTED) if text is None else _parsed_ns(text)


class RankedPods(msgspec.Struct, frozen=True):
    """Some rows' pods, most important first; arrays are int64, (rows, ranks).

    Parameters
    ----------
    priority
        The greatest int64 where a row has no pod of this rank.
    start_ns
        Nanoseconds, or `NOT_STARTED`.
    requests
        By resource, in the units of the columns; a resource no pod requests is missing.
    namespace
        Number of each pod's namespace, -1 where a row has no pod of this rank; None unless asked
        for.
    kind
        Number of each pod's kind, -1 where a row has no pod of this rank; None unless asked for.
        Pods of one kind agree in namespace, labels, spec, and whether they are terminating.
    of_kind
        One pod of each kind, by number; empty unless asked for.
    pods_by_row
        The pods of each row of the table by rank, as last taken; empty unless kinds are asked for.
    """

    priority: RankArray
    start_ns: RankArray
    requests: Mapping[str, RankArray]
    namespace: RankArray | None = None
    kind: RankArray | None = None
    of_kind: Sequence[PodInfo] = ()
    pods_by_row: Sequence[tuple[PodInfo, ...]] = ()


class Importance:
    """The pods of a table by rank, kept row by row.

    Parameters
    ----------
    table
        The pods by row. Not to be used while a trial is open.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._positions = (0, 0)
        self._names_structure = -1
        self._name_ranks = np.empty(0, np.int64)
        self._namespaces: dict[str, int] = {}
        self._of_namespaces = False
        """Whether the namespaces of pods are kept: from the first time that they are asked for."""
        self._kinds: dict[tuple[int, bool], int] = {}
        self._of_kind: list[PodInfo] = []
        self._of_kinds = False
        """Whether the kinds of pods are kept, as for namespaces."""
        self._reset(0)

    def number_of(self, namespace: str) -> int | None:
        """Return the number of a namespace in `RankedPods.namespace`; None where it has no pod."""
        return self._namespaces.get(namespace)

    def rank_in_namespaces(
        self, rows: Rows, *, kinds: bool = False
    ) -> tuple[RankedPods, NDArray[np.bool_]]:
        """Return `rank_rows`, or `rank_kinds`, with namespaces, and rows where a pod is resized.

        The spec of such a pod requests other amounts than `RankedPods.requests` has.
        """
        if not self._of_namespaces:
            self._of_namespaces = True
            self._stale[:] = True
        ranked = self.rank_kinds(rows) if kinds else self.rank_rows(rows)
        index, ranks = as_index(rows), ranked.priority.shape[1]
        namespace = self._namespace[index, :ranks]
        return msgspec.structs.replace(ranked, namespace=namespace), self._resized[index]

    def rank_kinds(self, rows: Rows) -> RankedPods:
        """Return `rank_rows` with the kinds of pods."""
        if not self._of_kinds or len(self._kinds) > self._kinds_most():
            self._of_kinds = True
            self._kinds, self._of_kind = {}, []
            self._stale[:] = True
        ranked = self.rank_rows(rows)
        kind = self._kind[as_index(rows), : ranked.priority.shape[1]]
        return msgspec.structs.replace(
            ranked, kind=kind, of_kind=self._of_kind, pods_by_row=self._pods
        )

    def _kinds_most(self) -> int:
        """Return the number of kinds above which most of them have no pod any more."""
        return 2 * int(self._count.sum()) + _GONE_KINDS

    def rank_rows(self, rows: Rows) -> RankedPods:
        """Return the ranks of these rows, in this order; good until a row is taken again."""
        self._follow()
        stale = rows[self._stale[rows]]
        if len(stale):
            self._fill(stale)
        index = as_index(rows)
        ranks = int(self._count[index].max(initial=0))
        return RankedPods(
            self._priority[index, :ranks],
            self._start[index, :ranks],
            {name: array[index, :ranks] for name, array in self._requests.items()},
        )

    def name_ranks(self) -> Rows:
        """Return int64, (n,): the place of each row's node in the order of names."""
        if self._names_structure != self._table.columns.structure:
            self._names_structure = self._table.columns.structure
            # By code point, which is the order of bytes as well.
            names = list(self._table.names)
            self._name_ranks = np.empty(len(names), np.int64)
            self._name_ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(
                len(names)
            )
        return self._name_ranks

    def pods_by_rank(self, row: int) -> tuple[PodInfo, ...]:
        """Return a row's pods by rank, as last taken."""
        return self._pods[row]

    def take_row(self, row: int) -> tuple[PodInfo, ...]:
        """Return a row's pods by rank."""
        self._follow()
        return self._ranked(row)

    def _follow(self) -> None:
        table = self._table
        logs = (table.pod_log, table.version_log)
        if self._structure != table.columns.structure:
            self._structure = table.columns.structure
            self._reset(table.columns.n)
        else:
            for log, position in zip(logs, self._positions, strict=True):
                self._mark(log, position)
        self._positions = (logs[0].position, logs[1].position)

    def _mark(self, log: KeyLog[int], position: int) -> None:
        changed = log.since(position)
        if changed is None:
            self._stale[:] = True
            self._unranked[:] = True
        elif changed:
            self._stale[changed] = True
            self._unranked[changed] = True

    def _reset(self, rows: int) -> None:
        self._ranks = _FIRST_RANKS
        # Rows whose pods must be ranked again, and rows whose arrays are older than their ranks.
        self._unranked = np.ones(rows, np.bool_)
        self._stale = np.ones(rows, np.bool_)
        self._count = np.zeros(rows, np.int64)
        self._priority = np.full((rows, self._ranks), _NO_POD, np.int64)
        self._start = np.full((rows, self._ranks), NOT_STARTED, np.int64)
        self._requests: dict[str, RankArray] = {}
        self._namespace = np.full((rows, self._ranks), _NO_NAMESPACE, np.int64)
        self._resized = np.zeros(rows, np.bool_)
        self._kind = np.full((rows, self._ranks), _NO_KIND, np.int64)
        self._pods: list[tuple[PodInfo, ...]] = [()] * rows

    def _ranked(self, row: int) -> tuple[PodInfo, ...]:
        if self._unranked[row]:
            # Equals stay in the row's order. Pods not started count as started at the moment of
            # comparison, so equals among them are in reverse order.
            pods = [
                (-pod.priority, start := start_ns(pod), -at if start == NOT_STARTED else at, pod)
                for at, pod in enumerate(self._table.pods_by_row[row].values())
            ]
            pods.sort()  # no two pods have equal positions, so pods are never compared
            self._pods[row] = tuple([pod for _, _, _, pod in pods])
            self._unranked[row] = False
        return self._pods[row]

    def _fill(self, rows: Rows) -> None:
        """Rank the pods of some rows and put them into the arrays, all rows at once."""
        pods = [self._ranked(row) for row in rows.tolist()]
        counts = [len(each) for each in pods]
        if max(counts) > self._ranks:
            self._widen(max(counts))
        self._count[rows] = counts
        self._stale[rows] = False
        self._priority[rows] = _NO_POD
        for array in self._requests.values():
            array[rows] = 0
        every = [pod for each in pods for pod in each]
        # Of each pod, its row and rank.
        at = (
            np.repeat(rows, counts),
            np.array([rank for n in counts for rank in range(n)], np.int64),
        )
        self._priority[at] = [pod.priority for pod in every]
        self._start[at] = [start_ns(pod) for pod in every]
        amounts = [pod.part(RESOURCES).value.balanced for pod in every]
        for name in dict.fromkeys([name for each in amounts for name, n in each.items() if n]):
            if name not in self._requests:
                self._requests[name] = np.zeros_like(self._priority)
            self._requests[name][at] = [each.get(name, 0) for each in amounts]
        if self._of_namespaces:
            self._fill_namespaces(rows, pods, at)
        if self._of_kinds:
            self._kind[rows] = _NO_KIND
            self._kind[at] = [self._kind_of(pod) for pod in every]

    def _kind_of(self, pod: PodInfo) -> int:
        key = (pod.spec_id, pod.pod.metadata.deletion_timestamp is not None)
        number = self._kinds.get(key)
        if number is None:
            number = self._kinds[key] = len(self._of_kind)
            self._of_kind.append(pod)
        return number

    def _fill_namespaces(
        self, rows: Rows, pods: Sequence[tuple[PodInfo, ...]], at: tuple[Rows, RankArray]
    ) -> None:
        numbers = self._namespaces
        self._namespace[rows] = _NO_NAMESPACE
        self._namespace[at] = [
            numbers.setdefault(pod.namespace, len(numbers)) for each in pods for pod in each
        ]
        self._resized[rows] = [any(map(_is_resized, each)) for each in pods]

    def _widen(self, ranks: int) -> None:
        more = max(ranks, 2 * self._ranks) - self._ranks
        self._ranks += more

        def wider(array: RankArray, fill: int) -> RankArray:
            return np.pad(array, ((0, 0), (0, more)), constant_values=fill)

        self._priority = wider(self._priority, int(_NO_POD))
        self._start = wider(self._start, int(NOT_STARTED))
        self._requests = {name: wider(array, 0) for name, array in self._requests.items()}
        self._namespace = wider(self._namespace, _NO_NAMESPACE)
        self._kind = wider(self._kind, _NO_KIND)


def _is_resized(pod: PodInfo) -> bool:
    requests = pod.part(RESOURCES).value
    return requests.filter != requests.balanced

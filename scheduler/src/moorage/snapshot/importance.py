"""The pods of each row by importance, as arrays: the first victims of preemption are last.

Row by row and rank by rank: priority, start and requests. A row is compiled when it is first
asked for, and again when a pod came, went or changed.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/util`` ``MoreImportantPod``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain

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
        Number of each pod's namespace, -1 where a row has no pod of this rank.
    kind
        Number of each pod's kind, -1 where a row has no pod of this rank. Pods of one kind agree
        in namespace, labels, spec, resize, and whether they are terminating.
    of_kind
        One pod of each kind, by number.
    pods_by_row
        The pods of each row of the table by rank, as last taken.
    resized
        bool, (rows,): whether a pod of the row is resized, so that its spec requests other amounts
        than ``requests`` has.
    """

    priority: RankArray
    start_ns: RankArray
    requests: Mapping[str, RankArray]
    namespace: RankArray
    kind: RankArray
    of_kind: Sequence[PodInfo]
    pods_by_row: Sequence[tuple[PodInfo, ...]]
    resized: NDArray[np.bool_]

    def some_rows(self, at: NDArray[np.bool_]) -> RankedPods:
        """Return the pods of some of these rows."""
        return RankedPods(
            self.priority[at],
            self.start_ns[at],
            {name: array[at] for name, array in self.requests.items()},
            self.namespace[at],
            self.kind[at],
            self.of_kind,
            self.pods_by_row,
            self.resized[at],
        )


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
        self._kinds: dict[tuple[int, bool], int] = {}
        self._of_kind: list[PodInfo] = []
        self._reset(0)

    def number_of(self, namespace: str) -> int | None:
        """Return the number of a namespace in `RankedPods.namespace`; None where it has no pod."""
        return self._namespaces.get(namespace)

    def rank_rows(self, rows: Rows) -> RankedPods:
        """Return the ranks of these rows, in this order; good until a row is taken again."""
        self._follow()
        if len(self._kinds) > 2 * int(self._count.sum()) + _GONE_KINDS:  # most have no pod any more
            self._kinds, self._of_kind = {}, []
            self._stale[:] = True
        stale = rows[self._stale[rows]]
        if len(stale):
            self._fill(stale)
        index = as_index(rows)
        ranks = int(self._count[index].max(initial=0))
        return RankedPods(
            self._priority[index, :ranks],
            self._start[index, :ranks],
            {name: array[index, :ranks] for name, array in self._requests.items()},
            self._namespace[index, :ranks],
            self._kind[index, :ranks],
            self._of_kind,
            self._pods,
            self._resized[index],
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
        """Rank the pods of some rows and put them into the arrays, all rows at once.

        Whatever is the same for all pods of a kind is read of one of them.
        """
        pods = [self._ranked(row) for row in rows.tolist()]
        counts = np.array([len(each) for each in pods], np.int64)
        if (most := int(counts.max())) > self._ranks:
            self._widen(most)
        self._count[rows] = counts
        self._stale[rows] = False
        self._priority[rows] = _NO_POD
        self._namespace[rows] = _NO_NAMESPACE
        self._kind[rows] = _NO_KIND
        self._resized[rows] = False
        for array in self._requests.values():
            array[rows] = 0
        every = list(chain.from_iterable(pods))
        # Of each pod, its row and rank.
        row_j = np.repeat(rows, counts)
        at = row_j, np.arange(len(every)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._start[at] = [start_ns(pod) for pod in every]
        kinds = [self._kind_of(pod) for pod in every]
        self._kind[at] = kinds
        places: dict[int, int] = {}
        place_j = np.array([places.setdefault(kind, len(places)) for kind in kinds], np.int64)
        one_of = [self._of_kind[kind] for kind in places]
        self._priority[at] = np.array([pod.priority for pod in one_of], np.int64)[place_j]
        numbers = self._namespaces
        spaces = [numbers.setdefault(pod.namespace, len(numbers)) for pod in one_of]
        self._namespace[at] = np.array(spaces, np.int64)[place_j]
        self._resized[row_j[np.array([_is_resized(pod) for pod in one_of], np.bool_)[place_j]]] = (
            True
        )
        amounts = [pod.part(RESOURCES).value.balanced for pod in one_of]
        for name in dict.fromkeys([name for each in amounts for name, n in each.items() if n]):
            if name not in self._requests:
                self._requests[name] = np.zeros_like(self._priority)
            amount_k = np.array([each.get(name, 0) for each in amounts], np.int64)
            self._requests[name][at] = amount_k[place_j]

    def _kind_of(self, pod: PodInfo) -> int:
        key = (pod.spec_id, pod.pod.metadata.deletion_timestamp is not None)
        number = self._kinds.get(key)
        if number is None:
            number = self._kinds[key] = len(self._of_kind)
            self._of_kind.append(pod)
        return number

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

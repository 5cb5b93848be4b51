"""Where the domains of topology constraints lie: which rows count, and in which domain each is.

Between the snapshot's label columns and the answers of PodTopologySpread. A `Layout` depends on
the nodes, the topology keys and who is left out, not on pods or selectors; so replicas, and most
deployments, share one until a node changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.api.taints import SCHEDULING_EFFECTS, find_untolerated
from moorage.plugins.answers import SetAnswers, memo_of
from moorage.plugins.nodes.terms import BoolArray, RequiredNodes
from moorage.plugins.running_sums import Places, RunningSums, Sums
from moorage.plugins.spread.constraints import Constraint
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_AFFINITY, TOLERATIONS
from moorage.snapshot.snapshot import Snapshot

Domains = NDArray[np.int64]
Tally = Sums

_KEPT: Final = 64  # layouts; a guess: 0.2 MB each at 5000 nodes and two constraints

_SLACK: Final = 64  # values out of use that are not worth numbering afresh for; a guess


class Axis:
    """One constraint's topology key over all rows.

    Attributes
    ----------
    domain_n
        int64, (n,): domain of each row, -1 where it lacks the key. Used as an index into an
        array of `size` + 1 entries, -1 picks the last one.
    place_n
        The same for counting: rows without the key are in the domain of the empty value.
    lacks_some
        Whether any row lacks the key.
    size
        Domain numbers are below it.
    """

    __slots__ = (
        "__weakref__",
        "_places",
        "_sums",
        "domain_n",
        "lacks_some",
        "place_n",
        "size",
    )

    def __init__(self, column: LabelColumn, counted_n: BoolArray | None, sums: RunningSums) -> None:
        self.domain_n, self.size, empty = _numbered(column)
        missing_n = self.domain_n < 0
        self.lacks_some = bool(missing_n.any())
        self.place_n = self.domain_n
        if self.lacks_some:
            self.place_n = np.where(missing_n, self.size if empty < 0 else empty, self.domain_n)
        self._places = Places(self.place_n, self.size, counted_n)
        self._sums = sums

    def tally(self, constraint: Constraint) -> Tally:
        """Return int64, (size + 1,): pods by domain over the counted rows.

        Not to be changed: it is shared.
        """
        if constraint.counts_none:
            return np.zeros(self.size + 1, np.int64)
        return self._sums.of(self._places, constraint.count)

    def existing(self) -> Domains:
        """Return the domains with any counted row, ascending."""
        return np.flatnonzero(self._marks(self._places.counted))

    def distinct(self, places: Domains) -> int:
        """Return how many domains some rows, given by their `place_n`, are in."""
        return int(np.count_nonzero(self._marks(places)))

    def counts_row(self, row: int) -> bool:
        """Whether the pods of a row are counted."""
        counted_n = self._places.counted_n
        return counted_n is None or bool(counted_n[row])

    def _marks(self, places: Domains) -> BoolArray:
        marks = np.zeros(self.size + 1, np.bool_)
        marks[places] = True
        return marks


AxisKey = tuple[str, int, int, tuple[str, ...]]
"""Topology key, and what leaves rows out: ids of affinity and tolerations, keys wanted."""


class Layout:
    """The axes of some constraints.

    Parameters
    ----------
    snapshot
        The cluster.
    constraints
        Their keys and policies are read.
    pod
        Its node affinity and tolerations decide who is left out, where a policy says so.
    require_all
        Whether rows that lack any of the keys are left out of every axis.
    axis_of
        Returns the axis of a column and the rows that count, which the last argument names.
    """

    __slots__ = ("_existing", "_whole", "axes", "complete_n")

    def __init__(
        self,
        snapshot: Snapshot,
        constraints: Sequence[Constraint],
        *,
        pod: PodInfo,
        require_all: bool,
        axis_of: Callable[[LabelColumn, BoolArray | None, AxisKey], Axis],
    ) -> None:
        columns = [snapshot.label_column(each.key) for each in constraints]
        self.complete_n: BoolArray | None = None
        """bool, (n,): rows that have every key; None when all have, or none need to."""
        if require_all:
            for column in columns:
                self.complete_n = _both(self.complete_n, column.ids >= 0)
            if self.complete_n is not None and self.complete_n.all():
                self.complete_n = None
        affine_n = _affine(snapshot, pod) if any(c.honor_affinity for c in constraints) else None
        open_n = _open(snapshot, pod) if any(c.honor_taints for c in constraints) else None
        complete = () if self.complete_n is None else tuple([each.key for each in constraints])
        axes = []
        for constraint, column in zip(constraints, columns, strict=True):
            counted_n, affinity, taints = self.complete_n, -1, -1
            if constraint.honor_affinity and affine_n is not None:
                counted_n, affinity = _both(counted_n, affine_n), pod.part(NODE_AFFINITY).id
            if constraint.honor_taints and open_n is not None:
                counted_n, taints = _both(counted_n, open_n), pod.part(TOLERATIONS).id
            key = (constraint.key, affinity, taints, complete)
            axes.append(axis_of(column, counted_n, key))
        self.axes: tuple[Axis, ...] = tuple(axes)
        self._existing: list[Domains | None] = [None] * len(axes)
        self._whole: list[int | None] = [None] * len(axes)

    def existing(self, index: int) -> Domains:
        """Return the existing domains of an axis; found once."""
        found = self._existing[index]
        if found is None:
            found = self._existing[index] = self.axes[index].existing()
        return found

    def distinct_everywhere(self, index: int) -> int:
        """Return how many domains all rows together are in; found once."""
        found = self._whole[index]
        if found is None:
            axis = self.axes[index]
            found = self._whole[index] = axis.distinct(axis.place_n)
        return found


class Layouts:
    """Keeps layouts until a node changes.

    Parameters
    ----------
    snapshot
        The cluster.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._log: KeyLog[int] = snapshot.table.node_log
        self._sums = RunningSums(snapshot)
        self._of_nodes = (-1, -1)
        self._kept: OrderedDict[tuple[object, ...], Layout] = OrderedDict()
        self._axes: WeakValueDictionary[AxisKey, Axis] = WeakValueDictionary()

    def of(self, pod: PodInfo, constraints: Sequence[Constraint], *, require_all: bool) -> Layout:
        """Return the layout of constraints for a pod; the parameters are those of `Layout`."""
        of_nodes = (self._log.position, self._snapshot.table.columns.structure)
        if of_nodes != self._of_nodes:
            self._of_nodes = of_nodes
            self._kept.clear()
            self._axes.clear()
        affinity = any(each.honor_affinity for each in constraints)
        taints = any(each.honor_taints for each in constraints)
        key = (
            tuple([(each.key, each.honor_affinity, each.honor_taints) for each in constraints]),
            pod.part(NODE_AFFINITY).id if affinity else -1,
            pod.part(TOLERATIONS).id if taints else -1,
            require_all,
        )
        found = self._kept.get(key)
        if found is None:
            found = Layout(
                self._snapshot, constraints, pod=pod, require_all=require_all, axis_of=self._axis
            )
            self._kept[key] = found
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found

    def _axis(self, column: LabelColumn, counted_n: BoolArray | None, key: AxisKey) -> Axis:
        """Return an axis, one for all layouts it is in: so its sums are kept once."""
        found = self._axes.get(key)
        if found is None:
            found = self._axes[key] = Axis(column, counted_n, self._sums)
        return found


class _OpenNodes(SetAnswers):
    """Which taint sets leave a node open to some tolerations; ``unschedulable`` is no taint."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        def is_open(taints: tuple[Taint, ...]) -> int:
            return int(find_untolerated(taints, tolerations, SCHEDULING_EFFECTS) is None)

        super().__init__(is_open)


def _numbered(column: LabelColumn) -> tuple[Domains, int, int]:
    """Return the domain of each row, how many numbers there are, and that of the empty value.

    Value ids do: they are dense until nodes have come and gone for long, each with a host name of
    its own. Then the values still in use are numbered afresh.
    """
    ids, size, empty = column.ids, column.size, column.lookup("")
    if size <= 2 * len(ids) + _SLACK:
        return ids.astype(np.int64), size, empty
    used = np.unique(ids[ids >= 0])
    number = np.full(size + 1, -1, np.int64)
    number[used] = np.arange(len(used))
    return number[ids], len(used), int(number[empty])


def _both(first: BoolArray | None, second: BoolArray) -> BoolArray:
    return second if first is None else first & second


def _affine(snapshot: Snapshot, pod: PodInfo) -> BoolArray | None:
    """Rows the pod's own node affinity allows; the profile's added one is not asked."""
    demands = memo_of(pod.part(NODE_AFFINITY), RequiredNodes, RequiredNodes)
    return demands.hold(snapshot, snapshot.all())


def _open(snapshot: Snapshot, pod: PodInfo) -> BoolArray:
    question = memo_of(pod.part(TOLERATIONS), _OpenNodes, _OpenNodes)
    open_n: BoolArray = question.gather(snapshot.taint_sets, snapshot.all()) != 0
    return open_n

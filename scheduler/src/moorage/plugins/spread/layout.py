"""Domains of topology constraints: which rows count, and the domain of each row.

A `Layout` is computed from the snapshot's label columns for PodTopologySpread. A layout depends
on the nodes, the topology keys and the excluded rows, not on pods or selectors. So replicas, and
most deployments, share one layout until a node changes.
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
from moorage.framework.status import FilterAnswer
from moorage.plugins.answers import SetAnswers, memo_of
from moorage.plugins.nodes.terms import BoolArray, RequiredNodes
from moorage.plugins.running_sums import Places, RunningSums, Sums
from moorage.plugins.spread.constraints import Constraint
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_AFFINITY, TOLERATIONS
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

Domains = NDArray[np.int64]
Tally = Sums

_LAYOUTS_MAX: Final = 64  # layouts; a guess: 0.2 MB each at 5000 nodes and two constraints

_SLACK: Final = 64  # unused values that do not justify a new numbering; a guess


class Axis:
    """One constraint's topology key over all rows.

    Attributes
    ----------
    domain_n
        int64, (n,): domain of each row, -1 without the key. As an index into an array of
        `size` + 1 entries, -1 picks the last entry.
    place_n
        int64, (n,): as `domain_n`, but rows without the key are in the domain of the empty value.
    lacks_some
        Whether any row lacks the key.
    size
        Upper bound of the domain numbers, exclusive.
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

        The caller must not change the array: layouts share it.
        """
        if constraint.counts_none:
            return np.zeros(self.size + 1, np.int64)
        return self._sums.sums_of(self._places, constraint.count)

    def existing(self) -> Domains:
        """Return the domains that have a counted row, ascending."""
        return np.flatnonzero(self._marks(self._places.counted_places))

    def distinct(self, places: Domains) -> int:
        """Return the number of distinct domains of some rows, given by their `place_n`."""
        return int(np.count_nonzero(self._marks(places)))

    def counts_row(self, row: int) -> bool:
        """Whether the pods of a row are counted."""
        counted_n = self._places.counted_n
        return counted_n is None or bool(counted_n[row])

    def counts_rows(self, view: NodeView) -> BoolArray:
        """Return bool, (rows of the view,): whether the pods of a row are counted."""
        counted_n = self._places.counted_n
        return np.ones(len(view), np.bool_) if counted_n is None else view.take_rows(counted_n)

    def _marks(self, places: Domains) -> BoolArray:
        marks = np.zeros(self.size + 1, np.bool_)
        marks[places] = True
        return marks


AxisKey = tuple[str, int, int, tuple[str, ...]]
"""Topology key, and what excludes rows: ids of affinity and tolerations, required keys."""


class Layout:
    """The axes of a pod's constraints.

    Parameters
    ----------
    snapshot
        The cluster.
    constraints
        The constraints, of which only keys and policies matter.
    pod
        The pod. If a policy says so, its node affinity and tolerations exclude rows.
    require_all
        Whether rows that lack any of the keys are excluded from every axis.
    axis_of
        Returns the axis of a column and of the counted rows; the last argument is their key.

    Attributes
    ----------
    answers
        The answers of Filter about every row, by the domains that fail for each constraint. None
        where no row is in such a domain. `skew` makes them.
    """

    __slots__ = ("_existing", "_whole", "answers", "axes", "complete_n")

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
        """bool, (n,): rows that have every key; None when all rows have, or no row must."""
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
        self.answers: dict[tuple[bytes, ...], FilterAnswer | None] = {}

    def existing(self, index: int) -> Domains:
        """Return the existing domains of an axis; computed once."""
        found = self._existing[index]
        if found is None:
            found = self._existing[index] = self.axes[index].existing()
        return found

    def distinct_everywhere(self, index: int) -> int:
        """Return the number of distinct domains of all rows; computed once."""
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
        self._layouts: OrderedDict[tuple[object, ...], Layout] = OrderedDict()
        self._axes: WeakValueDictionary[AxisKey, Axis] = WeakValueDictionary()

    def layout_of(
        self, pod: PodInfo, constraints: Sequence[Constraint], *, require_all: bool
    ) -> Layout:
        """Return the layout of constraints for a pod; the parameters are those of `Layout`."""
        of_nodes = (self._log.position, self._snapshot.table.columns.structure)
        if of_nodes != self._of_nodes:
            self._of_nodes = of_nodes
            self._layouts.clear()
            self._axes.clear()
        affinity = any(each.honor_affinity for each in constraints)
        taints = any(each.honor_taints for each in constraints)
        key = (
            tuple([(each.key, each.honor_affinity, each.honor_taints) for each in constraints]),
            pod.part(NODE_AFFINITY).id if affinity else -1,
            pod.part(TOLERATIONS).id if taints else -1,
            require_all,
        )
        layout = self._layouts.get(key)
        if layout is None:
            layout = Layout(
                self._snapshot, constraints, pod=pod, require_all=require_all, axis_of=self._axis
            )
            self._layouts[key] = layout
            if len(self._layouts) > _LAYOUTS_MAX:
                self._layouts.popitem(last=False)
        else:
            self._layouts.move_to_end(key)
        return layout

    def _axis(self, column: LabelColumn, counted_n: BoolArray | None, key: AxisKey) -> Axis:
        """Return an axis that all its layouts share, so its sums are kept once."""
        found = self._axes.get(key)
        if found is None:
            found = self._axes[key] = Axis(column, counted_n, self._sums)
        return found


class _OpenNodes(SetAnswers):
    """The taint sets that some tolerations accept; ``spec.unschedulable`` counts as no taint."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        def is_open(taints: tuple[Taint, ...]) -> int:
            return int(find_untolerated(taints, tolerations, SCHEDULING_EFFECTS) is None)

        super().__init__(is_open)


def _numbered(column: LabelColumn) -> tuple[Domains, int, int]:
    """Return the domain of each row, the number of domains, and the domain of the empty value.

    Domains are the value ids while the ids are dense. After many nodes with unique host names were
    added and deleted, the values in use get new numbers.
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
    """Return the rows that the pod's node affinity allows; added affinity is ignored."""
    demands = memo_of(pod.part(NODE_AFFINITY), RequiredNodes, RequiredNodes)
    return demands.hold(snapshot, snapshot.all())


def _open(snapshot: Snapshot, pod: PodInfo) -> BoolArray:
    question = memo_of(pod.part(TOLERATIONS), _OpenNodes, _OpenNodes)
    open_n: BoolArray = question.gather(snapshot.taint_sets, snapshot.all()) != 0
    return open_n

"""The requests of the members of a group, and the free amounts of each row, as numbers.

Members that any order may swap are one class. Who is admitted to a row is asked of the Filter
plugins, as the cluster is. Free amounts are those that the plugins judge, so a resource that they
ignore, or that devices provide, is as free here as in an attempt.

This is moorage's own; kube-scheduler v1.36 has no such bounds (docs, deviations).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt, CycleError, Scope
from moorage.engine.cycle import Cycle
from moorage.engine.groups.orders import kind_of
from moorage.engine.groups.room import judges_of_room
from moorage.engine.packing.problem import MemberClass, NodeClass, Pair, Problem
from moorage.framework.capabilities import Reads
from moorage.framework.status import SUCCESS_CODE
from moorage.framework.subjects import Subject
from moorage.snapshot.labels import ABSENT
from moorage.snapshot.pod_affinity import POD_AFFINITY, AffinityTerm
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.view import NodeView

PODS: Final = "pods"

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


class GroupNumbers:
    """The numbers of one group; they hold until the cluster changes.

    Parameters
    ----------
    cycle
        The cycle of the members' profile.
    pods
        The members without a place.

    Attributes
    ----------
    classes
        The members, by class.
    class_of
        Index of the class of each member, by uid.
    """

    def __init__(self, cycle: Cycle, pods: Sequence[PodInfo]) -> None:
        self._cycle = cycle
        self._snapshot = cycle.snapshot
        apart = _MembersApart(cycle, pods)
        classes: dict[tuple[tuple[int, ...], tuple[int, ...]], list[PodInfo]] = {}
        for pod in pods:
            classes.setdefault((kind_of(pod), apart.selecting(pod)), []).append(pod)
        self.classes = [*classes.values()]
        self.class_of = {pod.uid: at for at, each in enumerate(self.classes) for pod in each}
        self._apart = apart.pairs(
            [(each[0], selecting) for (_, selecting), each in classes.items()]
        )
        self._requests = [each[0].part(RESOURCES).value.filter for each in self.classes]
        self._trusted = _trusted(cycle)
        n, count = self._snapshot.num_nodes, len(self.classes)
        self._admits_nc = np.zeros((n, count), np.bool_)
        self._curable_nc = np.zeros((n, count), np.bool_)
        self._free: dict[str, Numbers] = {}
        for at, members in enumerate(self.classes):
            self._ask(at, members[0])
        self._names = sorted(self._free, key=lambda name: (name != PODS, name))
        demands = [
            [1 if name == PODS else each.get(name, 0) for name in self._names]
            for each in self._requests
        ]
        self._demands_cd = np.array(demands, np.int64)

    # -- what the plugins say --------------------------------------------------------------------

    def _ask(self, at: int, pod: PodInfo) -> None:
        """Ask the plugins about a member of a class on every row."""
        attempt = self._cycle.begin(pod, Scope(post_filter=False))
        try:
            search = self._cycle.search(attempt, shortcut=False)
            if search.pre_filter.status.code is not SUCCESS_CODE:
                self._curable_nc[:, at] = True
                return
            view = attempt.candidates(search.pre_filter.node_names)
            filtered = search.answers.filter_view(view)
        except CycleError:
            self._curable_nc[:, at] = True
            return
        rows, passed_n = view.row_numbers(), filtered.passed
        self._admits_nc[rows, at] = passed_n
        # Other members may cure what PreFilter or any other plugin rejects.
        cures_n = ~passed_n & ~np.isin(filtered.plugin_n, self._trusted)
        if search.pre_filter.node_names is not None:
            self._curable_nc[:, at] = True
        self._curable_nc[rows, at] = cures_n
        self._read_room(attempt, self._requests[at])

    def _read_room(self, attempt: Attempt, request: Mapping[str, int]) -> None:
        """Take in what is free on each row of the amounts that are judged for a member."""
        profile, every = self._cycle.profile, self._snapshot.all()
        judges = judges_of_room(profile)
        for forms in profile.filter_forms:
            if forms.room is None or forms.name not in judges:
                continue
            if forms.name not in attempt.state.skip_filter:
                room = forms.room(attempt.state, attempt.pod, every)
                amounts, pods_n = room.left()
                for name, left_n in amounts.items():
                    self._free.setdefault(name, left_n + request.get(name, 0))
                self._free.setdefault(PODS, pods_n + 1)

    # -- bounds ----------------------------------------------------------------------------------

    def bounds(self, views: ViewSums) -> list[int]:
        """Return for each view a number of members that is never exceeded by those that fit there.

        Parameters
        ----------
        views
            The views.
        """
        counts = np.array([len(each) for each in self.classes], np.int64)
        may_nc = self._admits_nc | self._curable_nc
        any_n: Bools = np.any(may_nc, axis=1)
        free_nd = np.where(any_n[:, np.newaxis], self._usable(), 0)
        slots_nc = np.where(may_nc, counts, 0)
        least_n = np.where(any_n, counts.sum(), 0)
        by_sum = np.full(len(views), counts.sum())
        for at in range(len(self._names)):
            demands = self._demands_cd[:, at]
            for number in np.flatnonzero(demands).tolist():
                most_n = free_nd[:, at] // demands[number]
                slots_nc[:, number] = np.minimum(slots_nc[:, number], most_n)
            if demands.min() > 0:
                least_n = np.minimum(least_n, free_nd[:, at] // demands.min())
            sums = views.of(free_nd[:, at])
            smallest_first = np.cumsum(np.sort(np.repeat(demands, counts)))
            by_sum = np.minimum(by_sum, np.searchsorted(smallest_first, sums, side="right"))
        by_class = np.minimum(views.of(slots_nc), counts).sum(axis=1)
        by_row = views.of(least_n)
        bounds: list[int] = np.minimum(np.minimum(by_sum, by_class), by_row).tolist()
        return bounds

    def _usable(self) -> Numbers:
        """Return int64, (n, dimensions): what is free, at most what all members ask for."""
        totals = np.array([len(each) for each in self.classes], np.int64) @ self._demands_cd
        free = [
            self._free[name].clip(0, total) for name, total in zip(self._names, totals, strict=True)
        ]
        return np.stack(free, axis=1) if free else np.zeros((self._snapshot.num_nodes, 0), np.int64)

    # -- the problem -----------------------------------------------------------------------------

    def problem(self, least: int, within: NodeView | None) -> tuple[Problem, bool]:
        """Return the problem within some rows, and whether its proof would be one of the group.

        Parameters
        ----------
        least
            Number of members that must have a place.
        within
            The rows; None for all.
        """
        rows = (self._snapshot.all() if within is None else within).row_numbers()
        free_nd, nominated = self._without_nominated()
        free_nd, admits_nc = free_nd[rows], self._admits_nc[rows]
        proves = not nominated and not bool(self._curable_nc[rows].any())
        # Equal rows are equal bytes; with few rows any other way costs more.
        table = np.ascontiguousarray(np.hstack([free_nd, admits_nc.astype(np.int64)]))
        nodes: dict[bytes, list[int]] = {}
        for at in np.flatnonzero(admits_nc.any(axis=1)).tolist():
            nodes.setdefault(table[at].tobytes(), []).append(at)
        return (
            Problem(
                dimensions=tuple(self._names),
                members=tuple(
                    MemberClass(tuple(demand.tolist()), len(pods))
                    for demand, pods in zip(self._demands_cd, self.classes, strict=True)
                ),
                nodes=tuple(
                    NodeClass(
                        tuple(free_nd[same[0]].tolist()),
                        frozenset(np.flatnonzero(admits_nc[same[0]]).tolist()),
                        tuple(rows[same].tolist()),
                    )
                    for same in nodes.values()
                ),
                least=least,
                apart=self._apart_within(rows),
            ),
            proves,
        )

    def _apart_within(self, rows: NDArray[np.intp]) -> frozenset[Pair]:
        """Return the classes that no node of some rows takes together.

        A term says nothing about a node without its label.
        """
        label_column = self._snapshot.label_column
        pairs = (
            some
            for key, some in self._apart.items()
            if (label_column(key).ids[rows] != ABSENT).all()
        )
        return frozenset[Pair]().union(*pairs)

    def _without_nominated(self) -> tuple[Numbers, bool]:
        """Return int64, (n, dimensions): what is free next to nominated pods.

        The second value says whether a member is nominated itself.
        """
        snapshot, names = self._snapshot, self._names
        # A nominated pod holds room against members of its priority and below.
        highest = max((each[0] for each in self.classes), key=lambda pod: pod.priority)
        level, _ = snapshot.nominated_level(highest)
        if names:
            free_nd = np.stack(
                [
                    self._free[name]
                    - (level.count_n if name == PODS else level.amounts.get(name, 0))
                    for name in names
                ],
                axis=1,
            )
        else:
            free_nd = np.zeros((snapshot.num_nodes, 0), np.int64)
        nominated = False
        for at, members in enumerate(self.classes):
            for pod in members:
                _, row = snapshot.nominated_level(pod)
                if row is not None and pod.priority >= highest.priority:
                    # Its own nomination holds no room against the group; Filter counts it all the
                    # same.
                    nominated = True
                    free_nd[row] += self._demands_cd[at]
        return free_nd, nominated


class ViewSums:
    """Sums over the rows of some views.

    Parameters
    ----------
    views
        The views, none of them empty.
    """

    def __init__(self, views: Sequence[NodeView]) -> None:
        empty = np.zeros(0, np.int64)
        self._rows = np.concatenate([empty, *(each.row_numbers() for each in views)])
        self._starts = np.cumsum([0, *(len(each) for each in views)])[:-1]

    def __len__(self) -> int:
        return len(self._starts)

    def of(self, column_n: Numbers) -> Numbers:
        """Return the sum of a column over the rows of each view."""
        sums: Numbers = np.add.reduceat(column_n[self._rows], self._starts)
        return sums


# Terms times members that are compared. A guess: about 20 ms.
_COMPARISONS_MOST: Final = 20_000


class _MembersApart:
    """The members that may not share a domain, as a Filter plugin of the profile says.

    Members beyond a number of comparisons are not compared; the search then learns what the plugins
    reject.
    """

    def __init__(self, cycle: Cycle, pods: Sequence[PodInfo]) -> None:
        profile, self._snapshot = cycle.profile, cycle.snapshot
        subjects = {profile.capabilities[each.name].rejects_about for each in profile.filter_forms}
        self._terms: list[AffinityTerm] = []
        if Subject.POD_AFFINITY in subjects:
            specs = (pod.part(POD_AFFINITY).value.required_anti for pod in pods)
            self._terms = [*dict.fromkeys(term for terms in specs for term in terms)]
        if len(self._terms) * len(pods) > _COMPARISONS_MOST:
            self._terms = []

    def selecting(self, pod: PodInfo) -> tuple[int, ...]:
        """Return the terms of any members that select a pod, by index."""
        if not self._terms:
            return ()
        namespace = self._snapshot.listers.namespaces.get(pod.namespace)
        by_namespace = {} if namespace is None else namespace.metadata.labels
        name, labels = pod.namespace, pod.pod.metadata.labels
        return tuple(
            at
            for at, term in enumerate(self._terms)
            if term.selects_pod(name, labels, by_namespace)
        )

    def pairs(self, pods: Sequence[tuple[PodInfo, tuple[int, ...]]]) -> dict[str, set[Pair]]:
        """Return for each topology key which of some pods exclude each other, by index.

        Each pod comes with what `selecting` says of it.
        """
        numbers = {term: number for number, term in enumerate(self._terms)}
        pairs: dict[str, set[Pair]] = {}
        for one, (pod, _) in enumerate(pods) if numbers else ():
            for term in pod.part(POD_AFFINITY).value.required_anti:
                for other, (_, selecting) in enumerate(pods):
                    if numbers[term] in selecting:
                        pair = (min(one, other), max(one, other))
                        pairs.setdefault(term.topology_key, set()).add(pair)
        return pairs


def _trusted(cycle: Cycle) -> list[int]:
    """Return the indices of Filter plugins whose rejection no further pod can cure."""
    room, profile = judges_of_room(cycle.profile), cycle.profile
    return [
        at
        for at, each in enumerate(profile.filter_forms)
        if each.name in room or profile.capabilities[each.name].filter_reads == Reads.NODE
    ]

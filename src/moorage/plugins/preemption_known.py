"""What trying nodes out came to, kept by row for replicas of a preemptor.

Part of the search for room. A wave of preemptors is one question over and over: from one to the
next only the nodes change that were chosen, or whose pods came and went. What is kept may never
change a decision: a row is tried again as soon as anything moved that its outcome depends on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.what_if import WhatIf
from moorage.plugins.preemption_budgets import Budgets
from moorage.plugins.preemption_sums import CRITERIA, Victims
from moorage.snapshot.importance import NOT_STARTED, RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Kinds of preemptors whose outcomes are kept at a time, about a megabyte each at 5000 nodes; a
# guess.
_KINDS_MOST: Final = 8
# Dry runs whose findings are looked up at a time; with more, all rows are tried again. A guess.
_RUNS_MOST: Final = 4096
_NEVER: Final = np.iinfo(np.int64).min


class KnownRows:
    """Outcomes by row for one kind of preemptor.

    Parameters
    ----------
    snapshot, budgets
        What the outcomes depend on.

    Attributes
    ----------
    candidate_n
        bool, (n,): whether evicting makes room; meaningless on rows that are not known.
    clean_n
        bool, (n,): whether it does without breaking a budget.
    """

    def __init__(self, snapshot: Snapshot, budgets: Budgets) -> None:
        self._snapshot = snapshot
        self._budgets = budgets
        self._basis: object = None
        self._positions: Sequence[int] = (0, 0, 0, 0)
        self._own: int | None = None
        self._latest = int(_NEVER)
        self._runs: list[Victims] = []
        self._forget_all()

    def follow(self, pod: PodInfo) -> None:
        """Forget what may be otherwise by now.

        Parameters
        ----------
        pod
            The preemptor. The row it is nominated to is its own affair: replicas have to leave
            it room there, so nothing is kept of that row.
        """
        table = self._snapshot.table
        level, own = self._snapshot.nominated_level(pod)
        # By identity: the level is another object after it had to start afresh.
        basis = (level, table.columns.structure, self._budgets.generation)
        logs = (table.node_log, table.pod_log, table.version_log, level.log)
        if basis != self._basis or len(self._runs) >= _RUNS_MOST:
            self._basis = basis
            self._forget_all()
        else:
            for log, position in zip(logs, self._positions, strict=True):
                changed = log.since(position)
                if changed is None:
                    self._known_n[:] = False
                elif changed:
                    self._known_n[changed] = False
        self._positions = [log.position for log in logs]
        for row in (self._own, own):
            if row is not None:
                self._known_n[row] = False
        self._own = own

    def due(self, rows: IntArray, now_ns: int) -> IntArray:
        """Return those of some rows that have to be tried.

        Rows with a pod that is started now or later, as clocks may say, are never known.
        """
        known = self._known_n[rows]
        if self._latest >= now_ns:
            known &= self._latest_n[rows] < now_ns
        return rows[~known]

    def put(self, rows: IntArray, ranked: RankedPods, victims: Victims, costs: IntArray) -> None:
        """Keep the outcome of some rows, but of those where a Filter broke: it may not again.

        Parameters
        ----------
        rows
            Which.
        ranked, victims
            Their pods and what the dry run found, in this order.
        costs
            As `preemption_sums.costs_of`, with pods not started at `NOT_STARTED`.
        """
        started = np.where(ranked.start_ns == NOT_STARTED, _NEVER, ranked.start_ns)
        latest = started.max(axis=1, initial=_NEVER)
        self._latest_n[rows] = latest
        self._latest = max(self._latest, int(latest.max(initial=_NEVER)))
        self._costs_nc[rows] = costs
        candidate = victims.victim.any(axis=1)
        self.candidate_n[rows] = candidate
        self.clean_n[rows] = candidate & (costs[:, 0] == 0)
        self._known_n[rows] = ~victims.verdict.broken
        self._run_n[rows] = len(self._runs)
        self._position_n[rows] = np.arange(len(rows))
        self._runs.append(victims)

    def note(self, row: int, costs: Sequence[int] | None) -> None:
        """Take down for this search what a row tried by itself loses; None: it is no candidate."""
        self._known_n[row] = False
        self.candidate_n[row] = costs is not None
        self.clean_n[row] = costs is not None and not costs[0]
        if costs is not None:
            self._costs_nc[row] = costs

    def found(self, row: int) -> tuple[Victims, int]:
        """Return the dry run that a row was last part of, and the row's position in it."""
        return self._runs[self._run_n[row]], int(self._position_n[row])

    def costs(self, rows: IntArray, now_ns: int) -> IntArray:
        """Return int64, (rows, 5): what rows lose, by criterion."""
        costs = self._costs_nc[rows]
        starts = costs[:, -1]
        starts[starts == -NOT_STARTED] = -now_ns
        return costs

    def _forget_all(self) -> None:
        n = self._snapshot.num_nodes
        self._known_n = np.zeros(n, np.bool_)
        self.candidate_n = np.zeros(n, np.bool_)
        self.clean_n = np.zeros(n, np.bool_)
        self._costs_nc = np.zeros((n, CRITERIA), np.int64)
        self._latest_n = np.zeros(n, np.int64)
        self._latest = int(_NEVER)
        self._runs = []
        self._run_n = np.zeros(n, np.int64)
        self._position_n = np.zeros(n, np.int64)


class Replicas:
    """`KnownRows` by kind of preemptor, the least recently asked for forgotten first.

    Parameters
    ----------
    snapshot, budgets
        The cluster, and the disruption budgets.
    """

    def __init__(self, snapshot: Snapshot, budgets: Budgets) -> None:
        self._snapshot = snapshot
        self._budgets = budgets
        self._kinds: OrderedDict[tuple[object, int], KnownRows] = OrderedDict()

    def rows(self, what_if: WhatIf, pod: PodInfo) -> KnownRows | None:
        """Return what is known for a preemptor, up to date; None where nothing can be kept."""
        alike = what_if.alike
        if alike is None or not what_if.independent:
            return None
        key = (alike, pod.priority)
        found = self._kinds.get(key)
        if found is None:
            while len(self._kinds) >= _KINDS_MOST:
                self._kinds.popitem(last=False)
            found = self._kinds[key] = KnownRows(self._snapshot, self._budgets)
        self._kinds.move_to_end(key)
        found.follow(pod)
        return found

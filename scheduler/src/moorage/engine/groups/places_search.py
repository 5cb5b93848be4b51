"""The complete search of one attempt: within each placement in turn, with one limit for all.

A search that failed is not repeated while its problem is the same.

This is moorage's own; kube-scheduler v1.36 places members one after another (docs, deviations).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from moorage.engine.cycle import Cycle
from moorage.engine.groups.complete import CompleteSearch, Impossible, Limit
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, SearchEnd, SearchReport
from moorage.engine.groups.numbers import GroupNumbers
from moorage.engine.groups.orders import kind_of
from moorage.engine.groups.placements import Placements, shared_rows
from moorage.engine.groups.trying import Steps
from moorage.engine.packing.problem import Problem
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_PAUSE_TIMES: Final = 9
"""The pause after a search, as a multiple of its time: a tenth of all time is for searches."""

SETS_MOST: Final = 60_000
"""Sets of members that the search of one attempt looks at: about 200 ms. A count, so that a replay
ends alike."""


class SearchPauses:
    """Bounds all searches together, while other pods wait, to a tenth of the time.

    After a search as long as it took, times nine, no other begins. A group whose search is
    postponed comes back by backoff, as its members with a place do.

    Parameters
    ----------
    now_ns
        Monotonic time, nanoseconds.
    others_wait
        Whether pods of other groups, or of none, are to be tried now.
    """

    def __init__(self, now_ns: Callable[[], int], others_wait: Callable[[], bool]) -> None:
        self._now_ns = now_ns
        self._others_wait = others_wait
        self._paused_until_ns = now_ns()

    def allows(self) -> bool:
        """Whether a search may begin now."""
        return self._now_ns() >= self._paused_until_ns or not self._others_wait()

    def timed(self, steps: Steps) -> Steps:
        """Take the steps of a search, and begin the pause after it; others' turns do not count."""
        took_ns = 0
        while True:
            began_ns = self._now_ns()
            try:
                stopped = next(steps)
            except StopIteration as end:
                decision: GroupDecision = end.value
                break
            finally:
                now_ns = self._now_ns()
                took_ns += now_ns - began_ns
                self._paused_until_ns = now_ns + _PAUSE_TIMES * took_ns
            yield stopped
        return decision


class PlacesSearch:
    """Searches the places of groups that no order could place.

    Parameters
    ----------
    cycle
        The cycle of the profile that all members name.
    placements
        The placements of groups.
    """

    def __init__(self, cycle: Cycle, placements: Placements) -> None:
        self._cycle = cycle
        self._placements = placements
        self._groups = cycle.snapshot.groups
        self._failed = FailedSearches()

    def searched(
        self,
        key: GroupKey,
        pods: Sequence[PodInfo],
        first: GroupDecision,
        *,
        within: NodeView | None,
    ) -> Steps:
        """Return the decision for the places that the search finds, else the first, with a report.

        Groups of like pods are not searched, because one order is as good as any.
        """
        choice = self._placements.choice(key, pods)
        if len({kind_of(pod) for pod in pods}) < 2 or isinstance(choice, GroupDecision):
            return first
        limit, numbers = Limit(SETS_MOST), GroupNumbers(self._cycle, pods)
        yield None
        if choice is None:
            return (
                yield from self.search_rows(key, pods, first, numbers, within=within, limit=limit)
            )
        ends: list[SearchReport] = []
        while (placement := choice.next()) is not None:
            shared = shared_rows(self._cycle.snapshot, within, placement.within)
            decision = yield from self.search_rows(
                key, pods, first, numbers, within=shared, limit=limit
            )
            if decision.search is not None:
                ends.append(decision.search)
            choice.tried(decision)
        best = choice.best()
        if best.outcome is not GroupOutcome.PLACED:
            proved = all(each.end is SearchEnd.IMPOSSIBLE for each in ends)
            end = SearchEnd.IMPOSSIBLE if proved else SearchEnd.GAVE_UP
            best = msgspec.structs.replace(first, search=SearchReport(end=end))
        report = msgspec.structs.replace(
            best.search or SearchReport(end=SearchEnd.PLACES),
            sets=limit.sets,
            rejections=sum(each.rejections for each in ends),
        )
        return msgspec.structs.replace(best, search=report)

    def search_rows(
        self,
        key: GroupKey,
        pods: Sequence[PodInfo],
        first: GroupDecision,
        numbers: GroupNumbers,
        *,
        within: NodeView | None,
        limit: Limit,
    ) -> Steps:
        """Search as `searched` does, within some rows.

        Parameters
        ----------
        key, pods, first, within
            As for `searched`.
        numbers
            The members as numbers; the searches of one attempt share them.
        limit
            Where all searches of one attempt together give up.
        """
        least = min(len(pods), self._groups.missing(key))
        search = CompleteSearch(self._cycle, numbers, least=least, within=within)
        known, newest, shortage = self._failed.result(key, search.problem), first, None
        while known is None:
            places = yield from search.find(limit)
            if places is None or isinstance(places, Impossible):
                known = isinstance(places, Impossible)
                shortage = None if places is None else places.shortage
                if not search.rejections:
                    self._failed.keep(key, search.problem, proved=known)
                break
            decision = yield from search.try_places(pods, places)
            if decision.outcome is GroupOutcome.PLACED:
                newest = decision
                break
            yield None
            if not (yield from search.refuse(pods, places, decision)):
                break
        # The same numbers prove nothing once a plugin rejects a row that another pod could cure.
        end = SearchEnd.IMPOSSIBLE if known and search.proves else SearchEnd.GAVE_UP
        if newest is not first:
            end = SearchEnd.PLACES
        report = SearchReport(
            end=end, sets=limit.sets, rejections=search.rejections, shortage=shortage
        )
        return msgspec.structs.replace(newest, search=report)


class FailedSearches:
    """The problems of groups that were searched in vain: the same problem is not searched again.

    A search of which the plugins rejected places is not kept: its problem does not say all.
    """

    def __init__(self) -> None:
        self._results: dict[tuple[GroupKey, Problem], bool] = {}

    def result(self, key: GroupKey, problem: Problem) -> bool | None:
        """Return whether a search proved that there are no places; None for a new problem."""
        return self._results.get((key, problem))

    def keep(self, key: GroupKey, problem: Problem, *, proved: bool) -> None:
        """Keep the end of a search, and forget the oldest where there are too many."""
        self._results[key, problem] = proved
        if len(self._results) > _FAILURES_MOST:
            del self._results[next(iter(self._results))]


_FAILURES_MOST: Final = 256

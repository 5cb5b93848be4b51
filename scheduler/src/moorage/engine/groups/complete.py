"""The complete search for a group that no order could place, and what the cycle refuses.

The search itself sees numbers (`moorage.engine.packing`), which `numbers` takes from the cluster.
What comes out is tried with all plugins, in a trial; where they refuse, the search goes on without
the set of members that they refused on one node.

This is moorage's own; kube-scheduler v1.36 places members one after another (docs, deviations).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.groups.decision import GroupDecision
from moorage.engine.groups.numbers import GroupNumbers
from moorage.engine.groups.trying import MembersOnTrial, Steps, take_all_steps
from moorage.engine.packing.apart import with_shares
from moorage.engine.packing.bounds import Shortage, shortage_of
from moorage.engine.packing.problem import Counts, NodeClass, Problem, reduced
from moorage.engine.packing.search import Fillings, ForbiddenSets, searching
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_REJECTIONS_MOST: Final = 32
"""How often the plugins may reject the places of a search, before it gives up."""

Places = Mapping[str, int]
"""The row of each member with a place, by uid."""


class Limit:
    """The number of sets of members that the searches of one attempt may look at.

    Parameters
    ----------
    most
        The number.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.sets = 0
        """Sets looked at."""

    def count(self, sets: int) -> bool:
        """Count further sets; False once there are too many."""
        self.sets += sets
        return self.sets <= self._most


class Impossible(msgspec.Struct, frozen=True):
    """The proof that too few members can have a place.

    Parameters
    ----------
    shortage
        What is short; None where the search went through every way.
    """

    shortage: Shortage | None = None


class CompleteSearch:
    """The search for the places of one group in one part of the cluster.

    Parameters
    ----------
    cycle
        The cycle of the members' profile.
    numbers
        The members without a place, and the rows.
    least
        Number of members that must have a place.
    within
        The rows to choose from; None for all.
    """

    def __init__(
        self, cycle: Cycle, numbers: GroupNumbers, *, least: int, within: NodeView | None
    ) -> None:
        self._cycle = cycle
        self._snapshot = cycle.snapshot
        self._numbers = numbers
        self._anywhere = Scope(within=within, post_filter=False)
        self.problem, self.proves = numbers.problem(least, within)
        """The members and the nodes as numbers, and whether the end of the search proves that there
        are no places."""
        self._forbidden = ForbiddenSets(self._is_refused)
        self.rejections = 0
        """Number of times that the plugins rejected the places of the search."""

    # -- the search ----------------------------------------------------------------------------

    @cached_property
    def _reduced(self) -> Problem:
        return with_shares(reduced(self.problem))

    def find(self, limit: Limit) -> Generator[None, None, Places | Impossible | None]:
        """Return places for the members, the proof that there are none, or None for given up.

        It stops each millisecond or so. The snapshot may not change before the places are tried.

        Parameters
        ----------
        limit
            Where to give up.
        """
        if not self.rejections:  # a rejection changes no bound
            yield
            shortage = shortage_of(self.problem)
            yield
            if shortage is None:
                reduced_problem = self._reduced
                yield
                shortage = shortage_of(reduced_problem)
                yield
            if shortage is not None:
                return Impossible(shortage) if self.proves else None
        steps, before = searching(self._reduced, self._forbidden), 0
        while True:
            try:
                sets = next(steps)
            except StopIteration as end:
                if end.value is None:
                    return Impossible() if self.proves else None
                return self._places(end.value)
            if not limit.count(sets - before):
                return None
            before = sets
            yield

    def _places(self, fillings: Fillings) -> Places:
        left = [[*each] for each in self._numbers.classes]
        used: dict[tuple[int, ...], int] = {}
        places = {}
        for each in fillings:
            at = used.get(each.node.nodes, 0)
            used[each.node.nodes] = at + 1
            for members, count in zip(left, each.counts, strict=True):
                for _ in range(count):
                    places[members.pop(0).uid] = each.node.nodes[at]
        return places

    # -- what the plugins say --------------------------------------------------------------------

    def try_places(self, pods: Sequence[PodInfo], places: Places) -> Steps:
        """Try places with all plugins; where they refuse a member, the search goes on without that.

        A member that needs another one next to it is tried again after the others. It stops after
        each member.
        """
        waiting = [pod for pod in pods if pod.uid in places]
        with MembersOnTrial(self._cycle.profile, self._snapshot) as tried:
            while waiting:
                refused: list[tuple[PodInfo, Decision]] = []
                for pod in waiting:
                    decision = self._at(pod, places[pod.uid])
                    if decision.outcome is not Outcome.BIND:
                        refused.append((pod, decision))
                    elif not tried.add(decision):
                        return tried.group_decision()
                    yield tried
                if len(refused) == len(waiting):
                    break
                waiting = [pod for pod, _ in refused]
            for _, decision in refused:
                if not tried.add(decision):
                    return tried.group_decision()
            for pod in pods:
                if pod.uid not in places and not tried.add(self._cycle.decide(pod, self._anywhere)):
                    break
                yield tried
            return tried.group_decision()

    def _at(self, pod: PodInfo, row: int) -> Decision:
        within = self._snapshot.rows([row])
        return self._cycle.decide(pod, Scope(within=within, post_filter=False))

    def refuse(
        self, pods: Sequence[PodInfo], places: Places, decision: GroupDecision
    ) -> Generator[None, None, bool]:
        """Leave out places that the plugins rejected; False where the search cannot say it.

        It stops after each set of members that it tries on a row.

        Parameters
        ----------
        pods, places
            The members, and the places that were tried.
        decision
            The decision about them.
        """
        self.rejections += 1
        lost = next((each.decision.pod for each in decision.members if not each.node_name), None)
        if lost is None or lost.uid not in places or self.rejections > _REJECTIONS_MOST:
            return False
        row = places[lost.uid]
        others = [pod for pod in pods if pod is not lost and places.get(pod.uid) == row]
        # The smallest set says the most: alone, next to one other, next to all others there.
        for together in ([lost], *([each, lost] for each in others), [*others, lost]):
            if self._refuses(together, row):
                self._leave_out(together)
                return True
            yield
        return False  # members on other nodes have a part in it

    def _leave_out(self, together: Sequence[PodInfo]) -> None:
        """Refuse a set of members on every class of nodes whose first node refuses it."""
        counts = [0] * len(self._numbers.classes)
        for pod in together:
            counts[self._numbers.class_of[pod.uid]] += 1
        self._forbidden.add(tuple(counts))

    def _is_refused(self, node: NodeClass, counts: Counts) -> bool:
        """Whether the plugins refuse a set of members on the first node of a class."""
        together = [
            pod
            for count, members in zip(counts, self._numbers.classes, strict=True)
            for pod in members[:count]
        ]
        refusing = [self._refuses(together, row) for row in node.nodes[:_ROWS_ASKED]]
        if refusing[0]:
            self.proves = self.proves and all(refusing) and len(node.nodes) <= _ROWS_ASKED
        return refusing[0]

    def _refuses(self, pods: Sequence[PodInfo], row: int) -> bool:
        """Whether some members have no place on one row together, in any order of two passes."""
        places = {pod.uid: row for pod in pods}
        decision = take_all_steps(self.try_places(pods, places))
        return any(not each.node_name for each in decision.members)


_ROWS_ASKED: Final = 4

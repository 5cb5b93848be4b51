"""Room held back for one pod group that waits: backfill that never delays the group (EASY).

The *head* is a group that does not fit now, but would fit once running pods with a known end have
ended. `ReservedRoom.reserve` finds the earliest such moment and the nodes that the members would
get. Until the head starts, another pod may take a reserved node only if the pod ends by that
moment, or if it fits next to the head at that moment. All other nodes stay open, so work goes on
around the head.

Room means resources and the number of pods. The head is placed by its ordinary attempt when the
moment comes; the reservation keeps room, not node names. Rules: EASY backfill as of Lifka, "The
ANL/IBM SP scheduling system" (1995): only the first in the queue has a reservation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

EndOf: TypeAlias = Callable[[PodInfo, int], int | None]
"""(pod, now in wall-clock ns) -> when it ends, wall-clock ns; a pod without a node starts now."""

DecideWithout: TypeAlias = Callable[[GroupKey, Sequence[PodInfo], Collection[str]], GroupDecision]
"""(group, its pods, uids) -> the decision as if the pods with these uids were gone."""

Rank: TypeAlias = tuple[int, int]
"""(-priority, when first queued in wall-clock ns): the smaller rank comes first."""


class Head(msgspec.Struct, frozen=True):
    """The group that room is held for.

    Parameters
    ----------
    key
        The group.
    pods
        Its members without a node, in the order of its attempt.
    rank
        Pods of a greater rank are held back.
    """

    key: GroupKey
    pods: tuple[PodInfo, ...]
    rank: Rank


class Reservation(msgspec.Struct, frozen=True):
    """The room held for a head.

    Parameters
    ----------
    head
        The group.
    start_ns
        When the head can start at the latest, if pods end as they say; wall-clock nanoseconds.
    places
        The node of each member that gets one.
    """

    head: Head
    start_ns: int
    places: tuple[tuple[PodInfo, str], ...]


class ReservedRoom:
    """Holds room for at most one group at a time.

    Parameters
    ----------
    snapshot
        The cluster.
    end_of
        Tells when pods end.

    Attributes
    ----------
    reservation
        The room that is held; None when nothing is held.
    """

    def __init__(self, snapshot: Snapshot, end_of: EndOf) -> None:
        self._snapshot = snapshot
        self._end_of = end_of
        self.reservation: Reservation | None = None

    def reserve(self, decide: DecideWithout, head: Head, *, now_ns: int) -> bool:
        """Hold room for a group from now on; returns whether there is a moment at which it fits.

        The cost is an attempt of the group for each halving of the known ends. Whatever was held
        before stays held if there is no such moment, and is released otherwise.
        """
        ends = sorted(
            (end_ns, info.uid)
            for row in range(self._snapshot.num_nodes)
            for info in self._snapshot.pods(row)
            if (end_ns := self._end_of(info, now_ns)) is not None
        )
        uids = [uid for _, uid in ends]
        # After how many ends does the group fit? All pods that end together count together.
        counts = [
            n for n in range(1, len(ends) + 1) if n == len(ends) or ends[n - 1][0] < ends[n][0]
        ]
        best: tuple[int, GroupDecision] | None = None
        low, high = 0, len(counts)
        while low < high:
            # The last one first: most groups that cannot be helped are found at once.
            middle = high - 1 if best is None else (low + high) // 2
            decision = decide(head.key, head.pods, uids[: counts[middle]])
            if decision.outcome is GroupOutcome.PLACED:
                best, high = (counts[middle], decision), middle
            elif best is None:
                return False
            else:
                low = middle + 1
        if best is None:
            return False
        number, decision = best
        places = tuple((each.decision.pod, each.node_name) for each in decision.members)
        self.reservation = Reservation(
            head, max(now_ns, ends[number - 1][0]), tuple(place for place in places if place[1])
        )
        return True

    def release(self) -> None:
        """Hold nothing any more."""
        self.reservation = None

    def stands(self, *, now_ns: int) -> bool:
        """Whether the reserved nodes are there and open, with room for the head at its start.

        It is not when a node is gone, closed or smaller, or when pods took the room that come
        before the head and do not end in time.
        """
        reservation = self.reservation
        if reservation is None:
            return False
        by_row = self._members_by_row(reservation)
        if sum(map(len, by_row.values())) < len(reservation.places):
            return False
        return all(
            not self._snapshot.node(row).spec.unschedulable
            and self._have_room(members, row, self._staying(row, reservation, now_ns))
            for row, members in by_row.items()
        )

    def open_to(self, pods: Sequence[PodInfo], rank: Rank, *, now_ns: int) -> NodeView | None:
        """Return the nodes that other pods may take; None for all nodes.

        Parameters
        ----------
        pods
            A single pod, or the members of another group. Several members may not share a reserved
            node with the head, unless all of them end in time.
        rank
            Their rank; pods that come before the head are not held back.
        now_ns
            Wall-clock time, nanoseconds.
        """
        reservation = self.reservation
        if reservation is None or rank <= reservation.head.rank:
            return None
        ends = [self._end_of(pod, now_ns) for pod in pods]
        if all(end_ns is not None and end_ns <= reservation.start_ns for end_ns in ends):
            return None
        alone = pods[0] if len(pods) == 1 else None
        by_row = self._members_by_row(reservation)
        closed = [
            row
            for row, members in by_row.items()
            if alone is None or not self._fits_beside(alone, row, members, reservation, now_ns)
        ]
        if not closed:
            return None
        open_n = np.ones(self._snapshot.num_nodes, np.bool_)
        open_n[closed] = False
        return self._snapshot.rows(np.flatnonzero(open_n))

    def _members_by_row(self, reservation: Reservation) -> dict[int, list[PodInfo]]:
        by_row: dict[int, list[PodInfo]] = {}
        for pod, node_name in reservation.places:
            row = self._snapshot.row_of(node_name)
            if row is not None:
                by_row.setdefault(row, []).append(pod)
        return by_row

    def _fits_beside(
        self,
        pod: PodInfo,
        row: int,
        members: Sequence[PodInfo],
        reservation: Reservation,
        now_ns: int,
    ) -> bool:
        """Whether a pod fits a node at the head's start, with the head's members on it."""
        return self._have_room([pod], row, [*self._staying(row, reservation, now_ns), *members])

    def _staying(self, row: int, reservation: Reservation, now_ns: int) -> list[PodInfo]:
        """Return the pods of a node that do not end before the head's start."""
        return [
            info
            for info in self._snapshot.pods(row)
            if (end_ns := self._end_of(info, now_ns)) is None or end_ns > reservation.start_ns
        ]

    def _have_room(self, pods: Sequence[PodInfo], row: int, there: Sequence[PodInfo]) -> bool:
        """Whether pods fit a node together with other pods, as far as amounts tell."""
        if len(pods) + len(there) > int(self._snapshot.allowed_pods[row]):
            return False
        amounts = [_amounts(info) for info in (*pods, *there)]
        wanted = dict.fromkeys(
            name for info in pods for name, amount in _amounts(info).items() if amount > 0
        )
        return all(
            sum(each.get(name, 0) for each in amounts) <= int(self._snapshot.allocatable(name)[row])
            for name in wanted
        )


def _amounts(info: PodInfo) -> Mapping[str, int]:
    return info.part(RESOURCES).value.balanced

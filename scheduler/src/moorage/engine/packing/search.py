"""The search for places: one node after another is filled, until every member has a place.

The largest member that is left must be on some node. So the search takes it, tries each class of
nodes for it, the tightest first, and fills that node with further members in each way that
matters:

- A set of members matters if no member that is left would fit as well: it could only be moved here
  from another node, which makes room there.
- A set matters if the room that stays unused on all nodes is not more than all members leave free.
  This ends most ways early where the group needs nearly all the room.
- What was found impossible for some members and some nodes is not tried again.

Classes that exclude each other are never on one node. Where a set of members on a node was refused
by the caller, every larger set there is refused too.

References: S. Martello and P. Toth, "Knapsack Problems" (1990), chapter 8; R. Korf, "An improved
algorithm for optimal bin packing" (IJCAI 2003), whose bin completion this is for unequal nodes and
several dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from operator import add, mul, sub
from typing import Final, TypeAlias

import msgspec

from moorage.engine.packing.apart import excluded_by
from moorage.engine.packing.problem import Amounts, Counts, NodeClass, Problem, fits


class Filling(msgspec.Struct, frozen=True):
    """The members on one node.

    Parameters
    ----------
    node
        The class of the node.
    counts
        Number of members of each class on it.
    """

    node: NodeClass
    counts: Counts


Fillings: TypeAlias = tuple[Filling, ...]
Steps: TypeAlias = Generator[None, None, Fillings | None]
"""A search that stops after some steps, and returns the places; None where there are none."""

# So many sets are looked at between two stops: about a millisecond.
_SETS_AT_ONCE = 500

# The node of members that go without a place.
_NOWHERE: Final = (-1,)

# Sets of one node that are ranked before the first is tried. A guess.
_RANKED_MOST = 200


class ForbiddenSets:
    """Sets of members that may not share one node of a class, though there is room.

    Parameters
    ----------
    judge
        Says whether a class of nodes refuses a set. It is asked about the sets that were added,
        once for each class, and only when the search comes to such a node.
    """

    def __init__(self, judge: Callable[[NodeClass, Counts], bool]) -> None:
        self._judge = judge
        self._sets: list[Counts] = []
        self._verdicts: dict[tuple[tuple[int, ...], Counts], bool] = {}

    def add(self, counts: Counts) -> None:
        """Refuse a set, and so every larger set, on the nodes of which the judge says so."""
        self._sets.append(counts)

    def forbids(self, node: NodeClass, counts: Sequence[int]) -> bool:
        """Whether a set or a part of it is refused."""
        return any(_is_part(part, counts) and self._is_refused(node, part) for part in self._sets)

    def _is_refused(self, node: NodeClass, part: Counts) -> bool:
        key = (node.nodes, part)
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = self._judge(node, part)
        return verdict


def _refuses_nothing(node: NodeClass, counts: Counts) -> bool:
    del node, counts
    return False


def _is_part(part: Counts, counts: Sequence[int]) -> bool:
    return all(some <= most for some, most in zip(part, counts, strict=True))


class Search:
    """One search.

    Parameters
    ----------
    problem
        The problem, as `with_shares` returns it.
    forbidden
        What the caller refuses beyond amounts. It may grow between two calls of `run`.
    by_node
        Whether the node with the least room is filled first, instead of the largest member placed.
    """

    def __init__(
        self, problem: Problem, forbidden: ForbiddenSets | None = None, *, by_node: bool = False
    ) -> None:
        self._forbidden = forbidden or ForbiddenSets(_refuses_nothing)
        self._by_node = by_node
        self._scale = _scale(problem, range(len(problem.nodes)))
        # One more dimension counts members, for the node of those that go without a place.
        self._demands: list[Amounts] = [(*each.demand, 1) for each in problem.members]
        self._left: Counts = tuple(each.count for each in problem.members)
        self._rooms = _by_room(problem)
        self._nodes = _counting(problem, self._rooms)
        self._order = _by_pressure(problem)
        # As bits. A class that excludes itself is bounded by its share of a node.
        self._excluded = [
            sum(1 << other for other in excluded_by(problem, at) if other != at)
            for at in range(len(problem.members))
        ]
        self._slots = [
            [
                self._most(count, demand, node.free) if at in node.admits else 0
                for node in self._nodes
            ]
            for at, (count, demand) in enumerate(zip(self._left, self._demands, strict=True))
        ]
        self._failed: set[tuple[Counts, Counts]] = set()
        self.sets = 0
        """Number of sets that were looked at."""

    def run(self) -> Steps:
        """Search from the beginning; stop after each millisecond or so.

        Returns
        -------
        tuple of Filling, or None
            The places of all members, of nodes that have any; None where there are none.
        """
        if not any(self._left):
            return ()
        frames = [self._frame(self._left, tuple(len(each.nodes) for each in self._nodes))]
        taken: list[tuple[int, Counts]] = []
        while frames:
            frame = frames[-1]
            choice = next(frame.ways, _END)
            if choice is _END:
                self._failed.add((frame.left, frame.nodes))
                frames.pop()
                if taken:
                    taken.pop()
            elif choice is None:
                yield
            else:
                at, counts = choice
                left = tuple(map(sub, frame.left, counts))
                taken.append((at, counts))
                if not any(left):
                    return self._fillings(taken)
                nodes = (*frame.nodes[:at], frame.nodes[at] - 1, *frame.nodes[at + 1 :])
                if (left, nodes) in self._failed:
                    taken.pop()
                else:
                    frames.append(self._frame(left, nodes))
        return None

    def _fillings(self, taken: Sequence[tuple[int, Counts]]) -> Fillings:
        """Return the sets of members on nodes; those without a place are left out."""
        return tuple(
            Filling(self._rooms[at], counts) for at, counts in taken if at < len(self._rooms)
        )

    def _frame(self, left: Counts, nodes: Counts) -> _Frame:
        return _Frame(left, nodes, self._ways(left, nodes))

    def _ways(self, left: Counts, nodes: Counts) -> Iterator[tuple[int, Counts] | None]:
        """Yield a class of nodes with each set of members there that matters."""
        unused = self._unused(left, nodes)
        if min(unused) < 0 or not self._enough_slots(left, nodes):
            return
        classes = [at for at in self._order if left[at]]
        if self._by_node:
            yield from self._of_one_node(left, nodes, classes, unused)
            return
        first = classes[0]
        for at, node in enumerate(self._nodes):
            if nodes[at] and self._slots[first][at]:
                for counts in self._sets(node, left, classes, unused, least=1):
                    yield None if counts is None else (at, counts)

    def _of_one_node(
        self, left: Counts, nodes: Counts, classes: Sequence[int], unused: Sequence[int]
    ) -> Iterator[tuple[int, Counts] | None]:
        """Yield the sets of the first node that takes anybody, the fullest first."""
        at = next(
            at
            for at, count in enumerate(nodes)
            if count and any(self._slots[member][at] for member in classes)
        )
        node, ranked = self._nodes[at], list[tuple[float, Counts]]()
        for counts in self._sets(node, left, classes, unused, least=0):
            if counts is None:
                yield None
            elif len(ranked) < _RANKED_MOST:
                ranked.append((self._filled(counts), counts))
            else:
                yield at, counts
        ranked.sort(reverse=True)
        for _, counts in ranked:
            yield at, counts

    def _filled(self, counts: Counts) -> float:
        """Return how much of all dimensions a set of members takes, each as a share."""
        total = 0.0
        for count, demand in zip(counts, self._demands, strict=True):
            if count:
                total += count * sum(map(mul, demand, self._scale))
        return total

    def _enough_slots(self, left: Counts, nodes: Counts) -> bool:
        """Whether the nodes have room for the members of each class that are left, by itself."""
        return all(
            not count or sum(map(mul, nodes, slots)) >= count
            for count, slots in zip(left, self._slots, strict=True)
        )

    def _unused(self, left: Counts, nodes: Counts) -> list[int]:
        """Return how much of each dimension may stay free on the nodes that are left."""
        unused = [0] * len(self._demands[0])
        for node, count in zip(self._nodes, nodes, strict=True):
            if count:
                for at, amount in enumerate(node.free):
                    unused[at] += amount * count
        for demand, count in zip(self._demands, left, strict=True):
            if count:
                for at, amount in enumerate(demand):
                    unused[at] -= amount * count
        return unused

    def _sets(
        self,
        node: NodeClass,
        left: Counts,
        classes: Sequence[int],
        unused: Sequence[int],
        *,
        least: int,
    ) -> Iterator[Counts | None]:
        """Yield the sets of members for a node, with at least so many of the first class."""
        classes = [at for at in classes if at in node.admits]
        demands = [self._demands[at] for at in classes]
        excluding = self._excluded if node.nodes != _NOWHERE else [0] * len(left)
        wasted = _MostUnused(unused, classes, [left[at] for at in classes], demands)
        counts = [0] * len(classes)
        rooms = [node.free] * (len(classes) + 1)
        excluded = [0] * (len(classes) + 1)
        level = 0
        counts[0] = self._most(left[classes[0]], demands[0], node.free)
        while level >= 0:
            self.sets += 1
            if self.sets % _SETS_AT_ONCE == 0:
                yield None
            count = counts[level]
            if count < (0 if level else least):
                level -= 1
                if level >= 0:
                    counts[level] -= 1
                continue
            room = tuple(
                [
                    free - amount * count
                    for free, amount in zip(rooms[level], demands[level], strict=True)
                ]
            )
            rooms[level + 1] = room
            excludes = excluding[classes[level]] if count else 0
            excluded[level + 1] = excluded[level] | excludes
            if not fits(room, wasted.before(level + 1, excluded[level + 1])):
                # Fewer members of this class leave more room still; none excludes no other class.
                counts[level] = 0 if excludes else -1
                continue
            if level + 1 < len(classes):
                level += 1
                at = classes[level]
                is_excluded = excluded[level] >> at & 1
                counts[level] = 0 if is_excluded else self._most(left[at], demands[level], room)
                continue
            by_class = [0] * len(left)
            for at, number in zip(classes, counts, strict=True):
                by_class[at] = number
            others = [at for at in classes if not excluded[-1] >> at & 1]
            if not self._forbidden.forbids(node, by_class) and not self._could_take_more(
                node, left, by_class, room, others
            ):
                yield tuple(by_class)
            counts[level] -= 1

    @staticmethod
    def _most(left: int, demand: Amounts, room: Amounts) -> int:
        return min(
            [left, *[free // amount for free, amount in zip(room, demand, strict=True) if amount]]
        )

    def _could_take_more(
        self,
        node: NodeClass,
        left: Counts,
        counts: list[int],
        room: Amounts,
        classes: Sequence[int],
    ) -> bool:
        """Whether one more member fits next to a set of members, and is not refused there."""
        for at in classes:
            if counts[at] < left[at] and fits(self._demands[at], room):
                counts[at] += 1
                refused = self._forbidden.forbids(node, counts)
                counts[at] -= 1
                if not refused:
                    return True
        return False


def searching(problem: Problem, forbidden: ForbiddenSets) -> Generator[int, None, Fillings | None]:
    """Search in both ways by turns; yield the number of sets that were looked at so far.

    Returns
    -------
    tuple of Filling, or None
        As `Search.run` returns it, from the way that ends first.
    """
    ways: list[Search] = []
    running: list[Steps] = []
    while True:
        for number, by_node in enumerate((False, True)):
            if number == len(ways):  # the second way is prepared once the first took a turn
                ways.append(Search(problem, forbidden, by_node=by_node))
                running.append(ways[-1].run())
            try:
                next(running[number])
            except StopIteration as end:
                fillings: Fillings | None = end.value
                return fillings
            yield sum(way.sets for way in ways)


class _MostUnused:
    """The room that may be left on a node, when members of some classes are on it.

    Parameters
    ----------
    unused
        What may stay unused in the end.
    classes, left, demands
        The classes in order, the number of members of each, and what one takes.
    """

    def __init__(
        self,
        unused: Sequence[int],
        classes: Sequence[int],
        left: Sequence[int],
        demands: Sequence[Amounts],
    ) -> None:
        self._classes = classes
        self._fillable = [
            tuple(amount * count for amount in demand)
            for count, demand in zip(left, demands, strict=True)
        ]
        self._before: list[Sequence[int]] = [unused]
        for amounts in reversed(self._fillable):
            self._before.append(tuple(map(add, self._before[-1], amounts)))
        self._before.reverse()
        self._without: dict[tuple[int, int], Sequence[int]] = {}

    def before(self, level: int, excluded: int) -> Sequence[int]:
        """Return the most room that later classes can still fill, apart from excluded ones.

        Parameters
        ----------
        level
            Number of classes of which the members are chosen.
        excluded
            The classes that the chosen members exclude, as bits.
        """
        if not excluded:
            return self._before[level]
        room = self._without.get((level, excluded))
        if room is None:
            room = self._before[level]
            for at in range(level, len(self._classes)):
                if excluded >> self._classes[at] & 1:
                    room = tuple(map(sub, room, self._fillable[at]))
            self._without[level, excluded] = room
        return room


class _Frame(msgspec.Struct):
    left: Counts
    nodes: Counts
    ways: Iterator[tuple[int, Counts] | None]


_END: Final = (-1, ())


def _by_room(problem: Problem) -> list[NodeClass]:
    """Return the classes of nodes, the least room first."""
    scale = _scale(problem, range(len(problem.nodes)))
    return sorted(problem.nodes, key=lambda each: (sum(map(mul, each.free, scale)), each.nodes))


def _counting(problem: Problem, nodes: Sequence[NodeClass]) -> list[NodeClass]:
    """Return classes of nodes with the number of members as a dimension.

    One more class comes last: a node for the members that may go without a place.
    """
    counting = [
        NodeClass(
            (*(max(0, amount) for amount in each.free), problem.total), each.admits, each.nodes
        )
        for each in nodes
    ]
    if problem.spare:
        demands = [each.demand for each in problem.members for _ in range(each.count)]
        free = tuple(
            sum(sorted(amounts, reverse=True)[: problem.spare])
            for amounts in zip(*demands, strict=True)
        )
        everyone = frozenset(range(len(problem.members)))
        counting.append(NodeClass((*free, problem.spare), everyone, _NOWHERE))
    return counting


def _by_pressure(problem: Problem) -> list[int]:
    """Return the classes of members, first those that take most of what admits them."""

    def pressure(at: int) -> float:
        admitting = [k for k, node in enumerate(problem.nodes) if at in node.admits]
        return max(map(mul, problem.members[at].demand, _scale(problem, admitting)), default=0.0)

    return sorted(range(len(problem.members)), key=lambda at: (-pressure(at), at))


def _scale(problem: Problem, nodes: Iterable[int]) -> list[float]:
    """Return for each dimension 1 / what is free on some classes of nodes."""
    total = [0] * len(problem.dimensions)
    for at in nodes:
        node = problem.nodes[at]
        for dimension, amount in enumerate(node.free):
            total[dimension] += amount * len(node.nodes)
    return [1 / max(1, each) for each in total]

"""Decisions about members of a group that are made before the extenders are asked.

Before a question all members are taken off their nodes, and put back after it. So some members are
decided at once, with the replies that are expected, and then asked about one after another, in the
order and with the nodes with which they would be asked about anyway. A decision counts once its
own replies and those before it came as expected.

`groups.asking` is the only user.
"""

from __future__ import annotations

from itertools import repeat

import msgspec
import numpy as np

from moorage.engine.answers import Rows
from moorage.engine.attempt import CycleError, Scope
from moorage.engine.decision import Decision
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.extenders.replies import ExtenderReplies
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES


class _Known:
    """The last replies about pods of the same requests, and what is expected of the next."""

    def __init__(self, replies: ExtenderReplies) -> None:
        self.sent = frozenset(replies.nodes_sent)
        self.passed = frozenset(replies.passed)
        self.scores = replies.scores
        self.rows: Rows = np.zeros(0, np.int64)
        self.structure = -1
        self.expected: ExtenderReplies | None = None


class DecisionAhead(msgspec.Struct, frozen=True):
    """A decision that rests on expected replies.

    Parameters
    ----------
    decision
        The decision, without a note of replies.
    expected
        The replies that it rests on, and the nodes to ask about.
    start
        Position in the order of nodes at which its search began.
    """

    decision: Decision
    expected: ExtenderReplies
    start: int


class DecisionsAhead:
    """Makes decisions ahead: an extender is expected to say of a node what it said last.

    The replies about pods of equal requests count. What is expected decides only what is computed
    before the question; the decision is the extender's.

    Parameters
    ----------
    cycle
        The cycle of the profile.
    """

    def __init__(self, cycle: ExtendedCycle) -> None:
        self._cycle = cycle
        self._known: dict[int, _Known] = {}

    def learn(self, pod: PodInfo, replies: ExtenderReplies) -> None:
        """Take in the replies about a member."""
        self._known[pod.part(RESOURCES).id] = _Known(replies)

    def decide(self, pod: PodInfo, scope: Scope) -> DecisionAhead | None:
        """Choose a node; None where no reply is expected, or where no node would be chosen."""
        rotation, ahead = self._cycle.rotation, None
        start = rotation.start
        if self._cycle.asks(pod.pod) and self._cycle.snapshot.num_nodes:
            try:
                ahead = self._decide(pod, scope, start)
            except CycleError:
                ahead = None  # the attempt that asks first meets the fault again
        if ahead is None:
            rotation.start = start
        return ahead

    def _decide(self, pod: PodInfo, scope: Scope, start: int) -> DecisionAhead | None:
        cycle = self._cycle
        search = cycle.search(cycle.begin(pod, scope))
        if search.nominated_row is not None:
            return None
        rows = search.answers.feasible(search.view, search.filtered)
        expected = self._expected(pod, cycle.in_order(search, rows))
        if expected is None:
            return None
        decision = cycle.choose(search, cycle.accepted(rows, expected), expected)
        return DecisionAhead(decision, expected, start)

    def _expected(self, pod: PodInfo, rows: Rows) -> ExtenderReplies | None:
        """Return the replies that are expected about rows; None where no node would pass."""
        known, table = self._known.get(pod.part(RESOURCES).id), self._cycle.snapshot.table
        if known is None:
            return None
        structure = table.columns.structure
        if known.structure != structure or not np.array_equal(known.rows, rows):
            names = tuple(map(table.names.__getitem__, rows.tolist()))
            known.rows, known.structure = rows, structure
            known.expected = _expected_about(known, names)
        return known.expected

    async def ask(self, ahead: DecisionAhead) -> ExtenderReplies:
        """Ask the extenders about the nodes of a member."""
        replies = ahead.expected.question()
        await self._cycle.ask_about_nodes(ahead.decision.pod.pod, replies)
        return replies

    def confirmed(self, ahead: DecisionAhead, replies: ExtenderReplies) -> Decision | None:
        """Return the decision with its note; None where the replies are not as expected."""
        expected = ahead.expected
        if replies.failure or replies.passed != expected.passed:
            return None
        if replies.scores is not expected.scores and replies.scores != expected.scores:
            for_all = expected.passed, repeat(0)
            if [*map(replies.scores.get, *for_all)] != [*map(expected.scores.get, *for_all)]:
                return None
        return self._cycle.noted(ahead.decision, replies)

    def take_back(self, ahead: DecisionAhead) -> None:
        """Let the next search start where that of a dropped decision started."""
        self._cycle.rotation.start = ahead.start


def _expected_about(known: _Known, names: tuple[str, ...]) -> ExtenderReplies | None:
    if not known.sent.issuperset(names):
        return None
    all_pass = len(known.passed) == len(known.sent)
    passed = names if all_pass else tuple(name for name in names if name in known.passed)
    if not passed:
        return None
    expected = ExtenderReplies()
    expected.nodes_sent, expected.passed = names, passed
    if len(passed) > 1:  # a single node is not scored
        expected.scores = known.scores
    return expected

"""Says whether the real scheduler may have decided about a pod on another state than the one seen.

A scheduler decides, then binds; both take a moment, and deletions and changes of pods lie in
between. A scheduler sees these in the order in which the watch shows them. So only the states
between two of them are possible, and each is tried. Bindings have another order: a scheduler
knows its own at once (`moorage.shadow.replay`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND
from moorage.shadow.queue_order import Turn
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.trial import Trial

MOMENT_SECONDS: Final = 2.0
"""Longest time between a decision and its binding: a guess, twenty times what a loaded
API server takes for a binding."""
MOMENT_NS: Final = round(MOMENT_SECONDS * NS_PER_SECOND)
# As long as a binding waits for those before it, and the moment before that.
_KEPT_NS: Final = 5 * MOMENT_NS
# Each state is one more decision about the pod.
_STATES_MOST: Final = 64


class Agreement(Enum):
    """Whether the configuration takes the real node in one of the possible states."""

    NOW = "in the state that is known"
    MAYBE = "in a state of a moment before"
    NEVER = "in none"
    UNKNOWN = "there were too many states"


class Binding(msgspec.Struct, frozen=True):
    """The binding of a pod, as a watch showed it.

    Parameters
    ----------
    pod
        The pod as it was without a node.
    node
        The node that it was bound to.
    turn
        When it was popped.
    rank, at_ns
        The watch event, and its time.
    """

    pod: PodInfo
    node: str
    turn: Turn
    rank: int
    at_ns: int


class _Change(msgspec.Struct, frozen=True):
    """A change of a pod on a node; None for a pod that was not there, or is gone."""

    rank: int
    at_ns: int
    uid: str
    node: str
    before: PodInfo | None
    after: PodInfo | None


class Moments:
    """The changes of the last moments.

    Parameters
    ----------
    snapshot
        The cluster as it is now.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._changes: deque[_Change] = deque()
        self._bindings: deque[Binding] = deque()

    def pod_changed(
        self, before: PodInfo | None, after: PodInfo | None, *, rank: int, at_ns: int
    ) -> None:
        """Note that a pod came to a node otherwise than by a binding, changed there, or left it."""
        pod = before or after
        assert pod is not None, "a change is about a pod"
        change = _Change(rank, at_ns, pod.uid, pod.pod.spec.node_name, before, after)
        self._changes.append(change)
        while at_ns - self._changes[0].at_ns > _KEPT_NS:
            self._changes.popleft()

    def bound(self, binding: Binding, now_ns: int) -> None:
        """Note a binding that is taken in."""
        self._bindings.append(binding)
        # The binding itself may have waited for longer.
        while self._bindings and now_ns - self._bindings[0].at_ns > _KEPT_NS:
            self._bindings.popleft()

    def other_order(self, binding: Binding, members: Collection[str] = ()) -> bool:
        """Whether a binding that was taken in may have been decided about later than another.

        Parameters
        ----------
        members
            Pods of the same group, by uid, which are left out.
        """
        first_ns = binding.at_ns - MOMENT_NS
        return any(
            each.at_ns >= first_ns
            and each.rank > binding.turn.rank
            and not each.turn.surely_before(binding.turn)
            and not self._came_and_went(each, binding)
            and each.pod.uid not in members
            for each in self._bindings
        )

    def bindings_of(self, members: Collection[str], about: Binding) -> list[Binding]:
        """Return the bindings of a group's members at about the time of one of them."""
        return [
            each
            for each in self._bindings
            if each.pod.uid in members and abs(each.at_ns - about.at_ns) <= MOMENT_NS
        ]

    def is_alone(self, members: Sequence[Binding]) -> bool:
        """Whether nothing else was seen at about the time of some bindings, nor after them."""
        uids, first_ns = {each.pod.uid for each in members}, min(each.at_ns for each in members)
        return not any(change.at_ns >= first_ns - MOMENT_NS for change in self._changes) and all(
            each.at_ns < first_ns - MOMENT_NS
            or each.pod.uid in uids
            or all(
                each.rank < member.rank and each.turn.surely_before(member.turn)
                for member in members
            )
            for each in self._bindings
        )

    def _came_and_went(self, later: Binding, binding: Binding) -> bool:
        """Whether a pod was surely decided about later than another, and is gone already."""
        gone = self._snapshot.table.node_of_pod(later.pod.uid) is None
        return gone and binding.turn.surely_before(later.turn)

    def agreement(self, agrees: Callable[[], bool], binding: Binding) -> Agreement:
        """Return whether both agree in a state that the real scheduler may have decided on.

        Parameters
        ----------
        agrees
            Whether the configuration takes the real node in the state of the snapshot.
        binding
            The binding. All that was seen later is taken back.
        """
        first_ns, states = binding.at_ns - MOMENT_NS, 0
        later = {each.pod.uid for each in self._bindings if self._came_and_went(each, binding)}
        known = False  # whether the state at the binding was tried
        with self._snapshot.trial() as trial:
            for change in reversed(self._changes):
                if change.rank < binding.turn.rank or change.at_ns < first_ns:
                    break
                if change.uid in later:
                    continue
                if change.rank < binding.rank:
                    if agrees():
                        return Agreement.MAYBE if known else Agreement.NOW
                    known, states = True, states + 1
                if states == _STATES_MOST or not self._take_back(change, trial):
                    return Agreement.UNKNOWN
            if agrees():
                return Agreement.MAYBE if known else Agreement.NOW
        return Agreement.NEVER

    def _take_back(self, change: _Change, trial: Trial) -> bool:
        """Take a change back; False where the pod or its node is not as the change left it."""
        row = self._snapshot.row_of(change.node)
        there = self._snapshot.table.node_of_pod(change.uid)
        if row is None or (there is None) != (change.after is None):
            return False
        if change.after is not None:
            if there != change.node:
                return False
            trial.remove_pod(change.uid)
        if change.before is not None:
            trial.add_pod(change.before, row)
        return True

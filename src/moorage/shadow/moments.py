"""Says whether the real scheduler may have decided about a pod on another state than the one seen.

A scheduler decides, then binds; both take a moment, and other bindings, deletions and changes of
nodes lie in between. Whether one of the states nearby explains a difference is tried: pods that
were bound a moment before are taken away again, pods that were bound a moment after are added.

A scheduler sees its own decisions at once. So two of its bindings matter only where the order of
its queue allows that the later one was decided about first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

MOMENT_SECONDS: Final = 1.0
"""Longest time between a decision and its binding: a guess, ten times what a loaded
API server takes for a binding."""
_MOMENT_NS: Final = round(MOMENT_SECONDS * NS_PER_SECOND)
# The states that are tried, by the number of changes taken back: every one of the last few, then
# fewer and fewer. A guess: bindings rarely overtake more than a few others.
_LOOKS: Final = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64})
_CHANGES_MOST: Final = 64


class Turn(msgspec.Struct, frozen=True):
    """When a pod was popped, as far as it is known from outside.

    Parameters
    ----------
    order
        The rank of its appearance among all pods.
    priority, scheduler
        Its priority and schedulerName.
    tried
        Whether it had been rejected before: then it was queued anew at an unknown time.
    """

    order: int
    priority: int
    scheduler: str
    tried: bool

    def surely_before(self, other: Turn) -> bool:
        """Whether this pod was surely decided about before another, by the same scheduler.

        Both appeared before either was bound. A queue gives pods by priority and then by age, as
        PrioritySort does.
        """
        return (
            self.scheduler == other.scheduler
            and not self.tried
            and self.priority >= other.priority
            and self.order < other.order
        )


class PodChange(msgspec.Struct, frozen=True):
    """A pod that came to a node, or left it; `turn` is that of a pod that came."""

    at_ns: int
    pod: PodInfo
    node: str
    turn: Turn | None


class Moments:
    """The changes of the last moment.

    Parameters
    ----------
    snapshot
        The cluster as it is now.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._pods: deque[PodChange] = deque(maxlen=_CHANGES_MOST)
        self._nodes: dict[str, int] = {}

    def pod_came(self, pod: PodInfo, node: str, turn: Turn, now_ns: int) -> None:
        """Note that a pod was bound."""
        self._pods.append(PodChange(now_ns, pod, node, turn))

    def pod_left(self, pod: PodInfo, node: str, now_ns: int) -> None:
        """Note that a bound pod is gone."""
        self._pods.append(PodChange(now_ns, pod, node, None))

    def node_changed(self, name: str, now_ns: int) -> None:
        """Note that a node was added, or changed in what decisions depend on."""
        self._nodes[name] = now_ns
        if len(self._nodes) > _CHANGES_MOST:
            self._nodes = {
                each: at_ns for each, at_ns in self._nodes.items() if now_ns - at_ns <= _MOMENT_NS
            }

    def changed_node(self, names: set[str], now_ns: int) -> bool:
        """Whether one of the nodes changed a moment ago."""
        return any(now_ns - self._nodes.get(name, 0) <= _MOMENT_NS for name in names)

    def earlier(
        self, agrees: Callable[[], bool], turn: Turn, *, since_ns: int, now_ns: int
    ) -> bool:
        """Whether the two agreed in one of the states of this moment.

        Parameters
        ----------
        agrees
            Whether the configuration takes the real node in the state of the snapshot.
        turn
            The turn of the pod.
        since_ns
            When the pod appeared; no earlier state counts.
        now_ns
            Now.
        """
        first_ns, number = max(since_ns, now_ns - _MOMENT_NS), 0
        with self._snapshot.trial() as trial:
            for change in reversed(self._pods):
                row = self._snapshot.row_of(change.node)
                if change.at_ns < first_ns or row is None:
                    break
                there = self._snapshot.table.node_of_pod(change.pod.uid)
                if change.turn is None and there is None:
                    trial.add_pod(change.pod, row)
                elif change.turn is not None and there == change.node:
                    if change.turn.surely_before(turn):
                        continue
                    trial.remove_pod(change.pod.uid)
                else:
                    continue
                number += 1
                if number in _LOOKS and agrees():
                    return True
        return False

    def with_pod(
        self, agrees: Callable[[], bool], *, without: str, pod: PodInfo, node: str
    ) -> bool:
        """Whether the two agree in the state of now, without one pod and with another.

        Parameters
        ----------
        agrees
            Whether the configuration takes the real node in the state of the snapshot.
        without
            Uid of the pod that was decided about, which is bound by now.
        pod, node
            The pod that may have been decided about first, and its node.
        """
        row = self._snapshot.row_of(node)
        if row is None:
            return False
        with self._snapshot.trial() as trial:
            own = self._snapshot.table.node_of_pod(without)
            if own is None or self._snapshot.row_of(own) is None:
                return False
            trial.remove_pod(without)
            if self._snapshot.table.node_of_pod(pod.uid) is None:
                trial.add_pod(pod, row)
            return agrees()

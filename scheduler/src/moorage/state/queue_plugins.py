"""The plugins that a queue asks, and their replacement by those of another configuration."""

from __future__ import annotations

from typing import Protocol

from moorage.api.changes import RELOAD, WILDCARD, ClusterEvent
from moorage.state.contracts import HintMap, PreEnqueueMap
from moorage.state.hints import HintIndex
from moorage.state.pre_enqueue import PreEnqueueGates
from moorage.state.sub_queues import SubQueues


class _MoveAll(Protocol):
    def __call__(self, event: ClusterEvent, old: object | None, new: object | None) -> None: ...


class QueuePlugins:
    """The PreEnqueue plugins and the hints of a queue.

    Parameters
    ----------
    gates, hints
        What the queue asks.
    sub_queues
        Where the pods wait.
    move_all
        Moves the waiting pods that an event may help.
    """

    def __init__(
        self, gates: PreEnqueueGates, hints: HintIndex, sub_queues: SubQueues, move_all: _MoveAll
    ) -> None:
        self._gates = gates
        self._hints = hints
        self._sub_queues = sub_queues
        self._move_all = move_all

    def replace(self, pre_enqueue: PreEnqueueMap, hints: HintMap) -> None:
        """Ask the plugins of another configuration from now on, and try every waiting pod again.

        No pod is lost: pods in backoff stay there, waiting and gated pods go through PreEnqueue
        anew, and pods in flight come back to be retried if their attempt fails.
        """
        self._gates.replace(pre_enqueue)
        self._hints.replace(hints)
        for queued in self._sub_queues.unschedulable.queued_pods():
            if queued.gated:
                queued.gating_events = (WILDCARD,)
        self._move_all(RELOAD, None, None)

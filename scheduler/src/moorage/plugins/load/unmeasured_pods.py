"""Pods that came to their node too late to be in its metrics: their use is predicted.

Rules mirrored: scheduler-plugins v0.35 ``pkg/trimaran/handler.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.base.clock import Clock
from moorage.plugins.pod_changes import PodChange, PodChanges
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.table import NodeTable

_REPORTED_AFTER_SECONDS: Final = 60
_CLEANED_EVERY_SECONDS: Final = 300
_NS: Final = 10**9


class UnmeasuredPods:
    """The pods of the last minutes on each node, with the second in which each was seen first.

    Parameters
    ----------
    table
        The pods on nodes.
    clock
        The time.
    predict
        Returns the millicores that a pod is taken to use.
    """

    def __init__(self, table: NodeTable, clock: Clock, predict: Callable[[PodInfo], int]) -> None:
        self._table = table
        self._clock = clock
        self._predict = predict
        self._changes = PodChanges(table)
        self._cleaned = clock.now_ns() // _NS
        self._recent: dict[str, dict[str, tuple[int, int]]] = {}

    def cpu_of_rows(self, end_seconds: int) -> NDArray[np.float64]:
        """Return float64, (nodes,): millicores of pods that are not in metrics up to a time."""
        self._follow()
        total_n = np.zeros(len(self._table.names))
        for node, pods in self._recent.items():
            row = self._table.row_of(node)
            if row is not None:
                total_n[row] = sum(
                    cpu
                    for seconds, cpu in pods.values()
                    if end_seconds - seconds < _REPORTED_AFTER_SECONDS
                )
        return total_n

    def _follow(self) -> None:
        now = self._clock.now_ns() // _NS
        for change in self._changes.read():
            self._take_in(change, now)
        if now - self._cleaned >= _CLEANED_EVERY_SECONDS:
            self._cleaned = now
            self._clean(now)

    def _take_in(self, change: PodChange, now: int) -> None:
        recent = self._recent.setdefault(change.node, {})
        for pod in change.departures:
            recent.pop(pod.uid, None)
        for pod in change.arrivals:
            recent[pod.uid] = (now, self._predict(pod))
        if not recent:
            del self._recent[change.node]

    def _clean(self, now: int) -> None:
        for node, pods in list(self._recent.items()):
            young = {
                uid: each for uid, each in pods.items() if each[0] + _REPORTED_AFTER_SECONDS > now
            }
            if young:
                self._recent[node] = young
            else:
                del self._recent[node]

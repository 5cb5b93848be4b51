"""Adapts the scalar forms of Filter and Score, for plugins that ask about one node at a time."""

from __future__ import annotations

import numpy as np

from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import (
    FilterPlugin,
    NodeFilterPlugin,
    NodeScorePlugin,
    ScoreArray,
    ScorePlugin,
)
from moorage.framework.status import FilterAnswer, ReasonTable, Status, answer_from
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView


class NodeFilterAdapter:
    """A scalar Filter, asked about one row after another."""

    def __init__(self, plugin: NodeFilterPlugin, snapshot: Snapshot, reasons: ReasonTable) -> None:
        self.name = plugin.name
        self._plugin = plugin
        self._snapshot = snapshot
        self._reasons = reasons

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Ask the plugin about every row of the view."""
        info = self._snapshot.node_info
        statuses = [self._ask(state, pod, info(int(row))) for row in view.row_numbers()]
        return answer_from(statuses, self._reasons)

    def _ask(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        # Contained row by row: breaking over a node that another plugin rejects does no harm.
        try:
            return self._plugin.filter_node(state, pod, node)
        except Exception as problem:
            return contained(self.name, "Filter", problem)


class NodeScoreAdapter:
    """A scalar Score, asked about one row after another."""

    def __init__(self, plugin: NodeScorePlugin, snapshot: Snapshot) -> None:
        self.name = plugin.name
        self._plugin = plugin
        self._snapshot = snapshot

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Ask the plugin about every row of the view."""
        info = self._snapshot.node_info
        rows = view.row_numbers()
        scores = (self._plugin.score_node(state, pod, info(int(row))) for row in rows)
        return np.fromiter(scores, np.int64, len(rows))


def as_filter(plugin: object, snapshot: Snapshot, reasons: ReasonTable) -> FilterPlugin:
    """Return the plugin if it has the vector form of Filter, else its adapter."""
    if isinstance(plugin, FilterPlugin):
        return plugin
    assert isinstance(plugin, NodeFilterPlugin), f"{plugin!r} does not extend FilterPlugin"
    return NodeFilterAdapter(plugin, snapshot, reasons)


def as_score(plugin: object, snapshot: Snapshot) -> ScorePlugin:
    """Return the plugin if it has the vector form of Score, else its adapter."""
    if isinstance(plugin, ScorePlugin):
        return plugin
    assert isinstance(plugin, NodeScorePlugin), f"{plugin!r} does not extend ScorePlugin"
    return NodeScoreAdapter(plugin, snapshot)

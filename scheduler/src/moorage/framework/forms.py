"""The Filter and Score plugins of a profile, each with the forms in which it can be asked.

The vector form answers for many rows, the scalar forms for one row; `capabilities` says which a
plugin has. The profile makes these records once, so that nothing is looked up in an attempt.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.framework.adapt import as_filter, as_score
from moorage.framework.capabilities import (
    Capabilities,
    Reads,
    RowJudge,
    RowScorer,
    is_reused,
    reads_sums,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import FilterPlugin, NormalizePlugin, ScorePlugin
from moorage.framework.roles import Role
from moorage.framework.what_if import Room, RowCounts
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView


class FilterForms(msgspec.Struct, frozen=True, kw_only=True):
    """One Filter plugin of a profile.

    Parameters
    ----------
    index
        Position among the Filter plugins of the profile.
    name
        The plugin's name.
    plugin
        The vector form.
    reads
        The part of the cluster that an answer about a row depends on.
    reused
        Whether answers may be reused for replicas.
    row_by_row
        Whether the plugin is asked only about rows that no earlier plugin failed, as each costs a
        call.
    sees_pod, room, judge_row, counts
        The capabilities `filter_sees_pod`, `filter_room`, `filter_row` and `filter_counts`; None
        where not declared.
    """

    index: int
    name: str
    plugin: FilterPlugin
    reads: Reads
    reused: bool
    row_by_row: bool
    sees_pod: Callable[[PodInfo], bool] | None
    room: Callable[[CycleState, PodInfo, NodeView], Room] | None
    judge_row: RowJudge | None
    counts: Callable[[CycleState, PodInfo, NodeView, RankedPods], RowCounts] | None

    @property
    def by_node(self) -> bool:
        """Whether reusable answers depend on the row's node alone, whatever pods are there."""
        return self.reused and self.reads == Reads.NODE

    @property
    def by_sums(self) -> bool:
        """Whether the plugin sees the pods of a row only as their number and sums."""
        return reads_sums(self.reads)


class ScoreForms(msgspec.Struct, frozen=True, kw_only=True):
    """One Score plugin of a profile.

    Parameters
    ----------
    name, weight
        The plugin's name and its weight in the total.
    plugin
        The vector form.
    normalizer
        The plugin again where it normalises; None where raw scores are final.
    reads
        The part of the cluster that a raw score of a row depends on.
    reused
        Whether raw scores may be reused for replicas.
    row_scorer
        The capability of this name; None where not declared.
    row_by_row
        Whether each row costs a call.
    """

    name: str
    weight: int
    plugin: ScorePlugin
    normalizer: NormalizePlugin | None
    reads: Reads
    reused: bool
    row_scorer: Callable[[CycleState, PodInfo], RowScorer | None] | None
    row_by_row: bool = False

    @property
    def by_sums(self) -> bool:
        """Whether the plugin sees the pods of a row only as their number and sums."""
        return reads_sums(self.reads)


def filter_forms(
    index: int, plugin: object, capabilities: Capabilities, roles: Role, handle: Handle
) -> FilterForms:
    """Return the forms of one Filter plugin.

    Parameters
    ----------
    index
        Its position among the Filter plugins.
    plugin, capabilities, roles
        The plugin, its capabilities and its roles.
    handle
        Columns and reasons to adapt the scalar form.
    """
    adapted = as_filter(plugin, handle.snapshot, handle.reasons)
    return FilterForms(
        index=index,
        name=adapted.name,
        plugin=adapted,
        reads=capabilities.filter_reads or Reads.CLUSTER,
        reused=is_reused(plugin, capabilities),
        row_by_row=Role.FILTERS_CANDIDATES in roles or adapted is not plugin,
        sees_pod=capabilities.filter_sees_pod,
        room=capabilities.filter_room,
        judge_row=capabilities.filter_row,
        counts=capabilities.filter_counts,
    )


def score_forms(
    plugin: object, capabilities: Capabilities, snapshot: Snapshot, *, weight: int
) -> ScoreForms:
    """Return the forms of one Score plugin.

    Parameters
    ----------
    plugin, capabilities
        The plugin and its capabilities.
    snapshot
        Columns and reasons to adapt the scalar form.
    weight
        The plugin's weight in the total.
    """
    adapted = as_score(plugin, snapshot)
    return ScoreForms(
        name=adapted.name,
        weight=weight,
        plugin=adapted,
        normalizer=plugin if isinstance(plugin, NormalizePlugin) else None,
        reads=capabilities.score_reads or Reads.CLUSTER,
        reused=is_reused(plugin, capabilities),
        row_scorer=capabilities.row_scorer,
        row_by_row=adapted is not plugin,
    )

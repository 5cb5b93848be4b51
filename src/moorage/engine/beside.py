"""The verdict of a shape on every row with nominated pods counted in, kept for its replicas.

While a wave of preemptors waits for room, thousands of nodes have nominated pods; from one replica
to the next a few of them change. As a `ShapeCache`, it may never change a decision.

Rules: scheduling spec, cycle section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.engine.filter_pass import PASSES, FilterPass
from moorage.engine.filtering import filter_beside_sums, filter_nominated
from moorage.engine.nominated import judge_row
from moorage.engine.one_row import ROWS_MOST
from moorage.engine.shape_cache import ShapeCache
from moorage.engine.shape_entry import Beside, Entry
from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

# From this share of the rows on, one pass over all costs less than following changes; a guess.
_CHANGED_SHARE = 4


def judge_beside(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    shapes: ShapeCache,
    entry: Entry,
    verdict: FilterPass,
) -> FilterPass:
    """Return the verdict on every row with nominated pods counted in; not to be changed.

    Parameters
    ----------
    profile, state, pod, snapshot
        The attempt, after PreFilter.
    shapes, entry
        Where the verdict is kept, with what is known about the pod's shape, up to date.
    verdict
        The verdict without nominated pods; the entry's own, or one with more plugins asked.

    Raises
    ------
    CycleError
        A plugin broke.
    """
    reusable = verdict is entry.verdict
    by_sums = profile.filters_by_sums(state.skip_filter) if reusable else None
    level, own = snapshot.nominated_level(pod)
    if by_sums is None or own is not None:
        both = verdict.copy()
        filter_nominated(profile, state, pod, snapshot, view=snapshot.all(), verdict=both)
        return both
    table = snapshot.table
    positions = (table.node_log.position, table.pod_log.position, level.log.position)
    kept = entry.beside.get(pod.priority)
    rows = None
    if kept is not None and kept.base is verdict and kept.level is level:
        rows = _changed(kept, snapshot, positions) if kept.by_sums == by_sums else None
    if kept is not None and rows is not None and len(rows) * _CHANGED_SHARE <= snapshot.num_nodes:
        if rows and not _follow(kept, profile, state, pod, rows=rows):
            at = np.array(rows, np.int64)
            part = verdict.at(at)
            view = snapshot.rows(at)
            filter_beside_sums(profile, state, pod, snapshot, by_sums, view=view, verdict=part)
            kept.verdict.put(at, part)
        kept.positions = positions
        return kept.verdict
    both = verdict.copy()
    filter_beside_sums(profile, state, pod, snapshot, by_sums, view=snapshot.all(), verdict=both)
    shapes.keep_beside(entry, pod.priority, Beside(verdict, level, by_sums, both, positions))
    return both


def _follow(
    kept: Beside, profile: Profile, state: CycleState, pod: PodInfo, *, rows: Sequence[int]
) -> bool:
    """Judge a few rows again in scalars; False when that takes arrays, and nothing is lost then."""
    if len(rows) > ROWS_MOST:
        return False
    for row in rows:
        found, more = kept.base.verdict_at(row), kept.level.at(row)
        if more is not None:
            beside = judge_row(profile, kept.by_sums, state, pod, row, more=more)
            if beside is None:
                return False
            if beside is not PASSES and beside[0] <= found[0]:
                found = beside
        kept.verdict.put_row(row, found)
    return True


def _changed(kept: Beside, snapshot: Snapshot, positions: tuple[int, int, int]) -> list[int] | None:
    """Return the rows that may be judged otherwise now; None when that is not known any more."""
    logs = (snapshot.table.node_log, snapshot.table.pod_log, kept.level.log)
    rows: set[int] = set()
    for log, before, now in zip(logs, kept.positions, positions, strict=True):
        if before != now:
            changed = log.since(before)
            if changed is None:
                return None
            rows.update(changed)
    return sorted(rows)

"""Filters rows again, with the pods that are nominated to them counted.

A row with nominated pods of equal or higher priority must pass twice: with those pods added, and
without them. Where the Filters of an attempt see these pods only as sums, one pass over numbers
covers all such rows. Each other row is a trial of its own, unless an earlier Filter fails it.

Rules: scheduling spec, cycle section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import ask_filters, raise_first_error, run_filters
from moorage.engine.filters.filter_results import PASSES, FilterResults
from moorage.engine.filters.moving import nominate_on_row
from moorage.engine.filters.tally import RowResult
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import RowSums, ShiftedSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView


def filter_nominated(attempt: Attempt, view: NodeView, filtered: FilterResults) -> None:
    """Judge the rows of a view again where nominated pods come first.

    Parameters
    ----------
    attempt
        The attempt, after PreFilter.
    view
        The rows.
    filtered
        The filter result on them without nominated pods; changed in place.

    Raises
    ------
    CycleError
        A plugin broke.
    """
    profile, judged = attempt.profile, attempt.state.skip_filter
    # Filters that count nominated pods have judged with these pods already. A new set would cost
    # its hash in each attempt, and most pods skip these Filters anyway.
    if not profile.count_nominated <= judged:
        judged |= profile.count_nominated
    pods_seen = profile.pods_seen(judged)
    if pods_seen is not None:
        positions = filter_beside_sums(attempt, pods_seen.by_sums, view, filtered)
        if pods_seen.only_sums or (filtered.plugin_n[positions] < pods_seen.first).all():
            return
    snapshot = attempt.snapshot
    for name, nominated in snapshot.nominations.items():
        row = snapshot.row_of(name) if nominated else None
        position = None if row is None else _position(view, row)
        if row is None or position is None:
            continue
        added = nominated_first(snapshot, attempt.pod, nominated)
        if pods_seen is not None and (
            filtered.plugin_n.item(position) < pods_seen.first or not pods_seen.sees(added)
        ):
            continue
        first = filter_beside(attempt, row, added)
        if first is not None:
            filtered.put_failures(np.array([position]), first)


def filter_beside_sums(
    attempt: Attempt, by_sums: Sequence[int], view: NodeView, filtered: FilterResults
) -> NDArray[np.int64]:
    """Judge rows of a view again where nominated pods come first, as sums; return their positions.

    Parameters
    ----------
    attempt
        The attempt, after PreFilter.
    by_sums
        Indexes of the Filters that see sums.
    view, filtered
        The rows, and their filter result without nominated pods, which is changed in place.

    Raises
    ------
    CycleError
        A plugin broke.
    """
    snapshot = attempt.snapshot
    positions, added = snapshot.nominated_among(attempt.pod, view.row_numbers())
    if not len(positions):
        return positions
    rows = snapshot.rows(added.rows)
    with ShiftedSums(snapshot.table, rows, frozenset(added.amounts)) as sums:
        sums.shift(added.amounts, added.pods)
        found = ask_filters(attempt, rows, only=by_sums)
    filtered.put_sooner(positions, found)
    if found.is_broken:
        raise_first_error(attempt.profile, filtered.at_rows(positions))
    return positions


def filter_beside(attempt: Attempt, row: int, added: Sequence[PodInfo]) -> FilterResults | None:
    """Judge one row next to the nominated pods that come first; None when there are none.

    Raises
    ------
    CycleError
        A plugin broke.
    """
    if not added:
        return None
    with attempt.snapshot.trial() as trial:
        tried = attempt.branch()
        for other in added:
            nominate_on_row(tried, trial, other, row)
        return run_filters(tried, attempt.snapshot.rows([row]))


def nominated_first(
    snapshot: Snapshot, pod: PodInfo, nominated: Sequence[PodInfo]
) -> list[PodInfo]:
    """Return the nominated pods for which a pod must leave room.

    Such a pod has equal or higher priority, is another pod, and is not on a node already.
    """
    return [
        other
        for other in nominated
        if other.priority >= pod.priority
        and other.uid != pod.uid
        and snapshot.table.node_of_pod(other.uid) is None
    ]


def comes_first(snapshot: Snapshot, pod: PodInfo, row: int) -> bool:
    """Whether no pod nominated to a row takes precedence there over this pod."""
    alone = snapshot.only_nominated
    if (alone is not None and alone(pod.uid, snapshot.names[row])) or not snapshot.nominations:
        return True
    positions, _ = snapshot.nominated_among(pod, np.array([row]))
    return not len(positions)


def judge_row(
    attempt: Attempt, by_sums: Sequence[int], row: int, more: RowSums
) -> RowResult | None:
    """Ask the Filters that see sums about one row holding more; None where arrays are needed.

    Parameters
    ----------
    attempt
        The attempt, after PreFilter.
    by_sums
        Indexes of the Filters.
    row, more
        The row, and the amounts that it holds in addition.
    """
    forms, state, pod = attempt.profile.filter_forms, attempt.state, attempt.pod
    for index in by_sums:
        judge = forms[index].judge_row
        if judge is None:
            return None
        try:
            said = judge(state, pod, row, more)
        except Exception:  # asked again with arrays, where failures are contained
            return None
        if said is None:
            return None
        if said[0]:
            return index, *said
    return PASSES


def _position(view: NodeView, row: int) -> int | None:
    if view.rows is None:
        return row
    found = np.flatnonzero(view.rows == row)
    return int(found[0]) if len(found) else None

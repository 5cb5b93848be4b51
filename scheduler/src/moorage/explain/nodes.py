"""The table of nodes: every plugin's answer about each, the best node first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.engine.inquiry import Inquiry, Rows
from moorage.engine.scoring import ScoreTable
from moorage.explain.answer import NodeAnswer
from moorage.snapshot.snapshot import Snapshot


@contextmanager
def without(snapshot: Snapshot, pod: Pod) -> Iterator[Pod]:
    """Take a bound pod off its node on trial; yields the pod as it was before it was bound."""
    spec = msgspec.structs.replace(pod.spec, node_name="")
    with snapshot.trial() as trial:
        name = snapshot.table.node_of_pod(pod.uid)
        if name is not None and snapshot.row_of(name) is not None:
            trial.remove_pod(pod.uid)
        yield msgspec.structs.replace(pod, spec=spec)


def best_nodes(
    inquiry: Inquiry, *, most: int | None, node_names: Sequence[str] = ()
) -> tuple[NodeAnswer, ...]:
    """Return the answers about the best nodes: by score, then by the number of rejections.

    Parameters
    ----------
    inquiry
        The answers.
    most
        How many nodes; None for all.
    node_names
        Nodes that are told in any case, after the best ones if they are none of them.

    Raises
    ------
    CycleError
        A Score plugin failed.
    """
    feasible = inquiry.feasible
    scores = inquiry.scores(feasible)
    rows = [*_by_score(inquiry, feasible, scores), *_by_rejections(inquiry)]
    shown = rows if most is None else rows[:most]
    for row in map(inquiry.snapshot.row_of, filter(None, node_names)):
        if row is not None and row not in shown:
            shown = [*shown, row]
    place = {row: index for index, row in enumerate(feasible.tolist())}
    return tuple(_answer(inquiry, row, scores, place.get(row)) for row in shown)


def _by_score(inquiry: Inquiry, feasible: Rows, scores: ScoreTable | None) -> list[int]:
    if scores is None:
        return []
    names = inquiry.snapshot.names
    totals = zip(feasible.tolist(), scores.total_n.tolist(), strict=True)
    return [row for row, _ in sorted(totals, key=lambda each: (-each[1], names[each[0]]))]


def _by_rejections(inquiry: Inquiry) -> list[int]:
    names, number_n = inquiry.snapshot.names, np.zeros(inquiry.snapshot.num_nodes, np.int64)
    for rejected_n in inquiry.rejects.values():
        number_n += rejected_n
    rows = np.flatnonzero(~inquiry.fits_n).tolist()
    return sorted(rows, key=lambda row: (number_n.item(row), names[row]))


def _answer(inquiry: Inquiry, row: int, scores: ScoreTable | None, place: int | None) -> NodeAnswer:
    name = inquiry.snapshot.names[row]
    if scores is None or place is None:
        status = inquiry.pre_filter.status
        told = {status.plugin or "PreFilter": status.reasons} if status.rejected else {}
        return NodeAnswer(node=name, rejections=told or inquiry.reasons_at(row))
    weighted = {
        plugin: each.weight * each.normalized_n.item(place)
        for plugin, each in scores.plugins.items()
    }
    return NodeAnswer(node=name, score=scores.total_n.item(place), scores=weighted)

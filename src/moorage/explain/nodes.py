"""The table of nodes: every plugin's answer about each, the best node first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.engine.scoring import ScoreTable, run_scores
from moorage.explain.answer import NodeAnswer
from moorage.explain.asking import Asked
from moorage.snapshot.snapshot import Snapshot

Rows = NDArray[np.int64]

_PARTS_NAMED: Final = 3


@contextmanager
def without(snapshot: Snapshot, pod: Pod) -> Iterator[Pod]:
    """Take a bound pod off its node on trial; yields the pod as it was before it was bound."""
    spec = msgspec.structs.replace(pod.spec, node_name="")
    with snapshot.trial() as trial:
        name = snapshot.table.node_of_pod(pod.uid)
        if name is not None and snapshot.row_of(name) is not None:
            trial.remove_pod(pod.uid)
        yield msgspec.structs.replace(pod, spec=spec)


def best_nodes(asked: Asked, *, most: int | None, named: str = "") -> tuple[NodeAnswer, ...]:
    """Return the answers about the best nodes: by score, then by the number of rejections.

    Parameters
    ----------
    asked
        The answers.
    most
        How many nodes; None for all.
    named
        A node that is told in any case, after the best ones if it is none of them.

    Raises
    ------
    CycleError
        A Score plugin failed.
    """
    feasible = np.flatnonzero(asked.fits_n)
    scores = _scores(asked, feasible)
    rows = [*_by_score(asked, feasible, scores), *_by_rejections(asked)]
    shown = rows if most is None else rows[:most]
    own = asked.snapshot.row_of(named) if named else None
    if own is not None and own not in shown:
        shown = [*shown, own]
    place = {row: index for index, row in enumerate(feasible.tolist())}
    return tuple(_answer(asked, row, scores, place.get(row)) for row in shown)


def _scores(asked: Asked, feasible: Rows) -> ScoreTable | None:
    if not len(feasible):
        return None
    return run_scores(asked.attempt, asked.snapshot.rows(feasible))


def _by_score(asked: Asked, feasible: Rows, scores: ScoreTable | None) -> list[int]:
    if scores is None:
        return []
    names = asked.snapshot.names
    totals = zip(feasible.tolist(), scores.total_n.tolist(), strict=True)
    return [row for row, _ in sorted(totals, key=lambda each: (-each[1], names[each[0]]))]


def _by_rejections(asked: Asked) -> list[int]:
    names, number_n = asked.snapshot.names, np.zeros(asked.snapshot.num_nodes, np.int64)
    for rejected_n in asked.rejects.values():
        number_n += rejected_n
    rows = np.flatnonzero(~asked.fits_n).tolist()
    return sorted(rows, key=lambda row: (number_n.item(row), names[row]))


def _answer(asked: Asked, row: int, scores: ScoreTable | None, place: int | None) -> NodeAnswer:
    name = asked.snapshot.names[row]
    if scores is None or place is None:
        status = asked.pre_filter.status
        told = {status.plugin or "PreFilter": status.reasons} if status.rejected else {}
        return NodeAnswer(node=name, rejections=told or asked.reasons_at(row))
    weighted = {
        plugin: each.weight * each.normalized_n.item(place)
        for plugin, each in scores.plugins.items()
    }
    return NodeAnswer(node=name, score=scores.total_n.item(place), scores=weighted)


def score_sentence(node_name: str, nodes: tuple[NodeAnswer, ...]) -> str:
    """Return why a pod is on its node, as the scores are now without it."""
    own = next((each for each in nodes if each.node == node_name), None)
    if own is None or own.score is None:
        text = f"bound to {node_name}, which would not take it now"
        reasons = "; ".join(", ".join(each) for each in own.rejections.values()) if own else ""
        return f"{text}: {reasons}" if reasons else text
    best = max(each.score for each in nodes if each.score is not None)
    parts = sorted(own.scores.items(), key=lambda each: (-each[1], each[0]))[:_PARTS_NAMED]
    told = ", ".join(f"{plugin} {score}" for plugin, score in parts if score)
    of = f" ({told})" if told else ""
    if own.score == best:
        return f"bound to {node_name} because of its score {own.score}, the highest now{of}"
    now = f"now it has {own.score}{of}, and {best} is the highest"
    return f"bound to {node_name} because of its score then; {now}"

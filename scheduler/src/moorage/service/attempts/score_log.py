"""Tells every plugin's score for every feasible node, at level 10 of verbosity.

The scores are computed anew, next to the decision: its own may come from caches that have sums
only. So the level costs time, and can never change a decision.
"""

from __future__ import annotations

import logging

from moorage.base.verbosity import V10, ObjectName, tell
from moorage.engine.answers import Rows
from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.scoring import run_scores

_log = logging.getLogger(__name__)


def scores_are_logged() -> bool:
    """Whether the level is on."""
    return _log.isEnabledFor(V10)


def tell_scores(attempt: Attempt, rows: Rows) -> None:
    """Log the score of each plugin for each row, and the sum for each row.

    Parameters
    ----------
    attempt
        The attempt; its cycle state is left as it is.
    rows
        The feasible rows.

    Notes
    -----
    kubernetes v1.36 pkg/scheduler/schedule_one.go, ``prioritizeNodes``: a plugin's score is
    normalised and weighted.
    """
    snapshot, beside = attempt.snapshot, attempt.branch(metered=False)
    try:
        table = run_scores(beside, snapshot.rows(rows))
    except CycleError as broken:
        tell(
            _log, V10, "Scores cannot be told", pod=_object_name(attempt), err=broken.status.message
        )
        return
    pod, names = _object_name(attempt), [snapshot.names[row] for row in rows.tolist()]
    for plugin, scores in table.plugins.items():
        for name, score in zip(names, scores.normalized_n.tolist(), strict=True):
            weighted = score * scores.weight
            tell(
                _log,
                V10,
                "Plugin scored node for pod",
                pod=pod,
                plugin=plugin,
                node=name,
                score=weighted,
            )
    for name, total in zip(names, table.total_n.tolist(), strict=True):
        tell(_log, V10, "Calculated node's final score for pod", pod=pod, node=name, score=total)


def _object_name(attempt: Attempt) -> ObjectName:
    return ObjectName(attempt.pod.name, attempt.pod.namespace)

"""Asks Score plugins about the feasible rows, normalises, weighs and sums.

Rules: scheduling spec, cycle section 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from moorage.engine.attempt import Attempt, CycleError
from moorage.framework.containment import contained
from moorage.framework.forms import ScoreForms
from moorage.framework.meter import NORMALIZE, PRE_SCORE, SCORE
from moorage.framework.points import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    PreScorePlugin,
    ScoreArray,
    ScorePlugin,
)
from moorage.framework.runner import run_pre_score
from moorage.framework.status import Code, Status, error
from moorage.snapshot.view import NodeView


class PluginScores(msgspec.Struct, frozen=True):
    """One plugin's scores: weight, raw and normalised, both int64 (feasible rows,)."""

    weight: int
    raw_n: ScoreArray
    normalized_n: ScoreArray


class ScoreTable(msgspec.Struct, frozen=True):
    """All scores of the feasible rows; `total_n` is int64, the weighted sum."""

    plugins: Mapping[str, PluginScores]
    total_n: ScoreArray


def run_scores(attempt: Attempt, feasible: NodeView) -> ScoreTable:
    """Run PreScore, Score and NormalizeScore over the feasible rows.

    Raises
    ------
    CycleError
        A plugin failed, or a score is out of range after normalising.
    """
    state = attempt.state
    status = run_pre_score(attempt.profile, state, attempt.pod, feasible)
    if not status.ok:
        raise CycleError(status, PRE_SCORE)
    if state.meter is not None:
        state.meter.lap(PRE_SCORE, Code.SUCCESS)
    plugins: dict[str, PluginScores] = {}
    total_n = np.zeros(len(feasible), np.int64)
    for forms in attempt.profile.score_forms:
        if forms.name in state.skip_score:
            continue
        raw_n = ask_score(attempt, forms, feasible)
        normalized_n = normalized(attempt, forms, raw_n)
        plugins[forms.name] = PluginScores(forms.weight, raw_n, normalized_n)
        total_n += normalized_n if forms.weight == 1 else forms.weight * normalized_n
    return ScoreTable(plugins, total_n)


def pre_scored(attempt: Attempt, plugins: Sequence[PreScorePlugin]) -> frozenset[str]:
    """Run PreScore of some plugins over all rows, and return the names of those that skip.

    Raises
    ------
    CycleError
        A plugin failed.
    """
    state, view = attempt.state, attempt.snapshot.all()
    status = run_pre_score(attempt.profile, state, attempt.pod, view, only=plugins)
    if not status.ok:
        raise CycleError(status)
    return state.skip_score


def ask_score(attempt: Attempt, forms: ScoreForms, view: NodeView) -> ScoreArray:
    """Ask one plugin for the raw scores of a view.

    Raises
    ------
    CycleError
        The plugin raised, or answered for another number of rows.
    """
    state = attempt.state
    began_ns = state.begins()
    try:
        raw_n = forms.plugin.score(state, attempt.pod, view)
    except Exception as problem:
        state.ended(forms.name, SCORE, Code.ERROR, since_ns=began_ns)
        text = contained(forms.name, SCORE, problem).message
        raise CycleError(_failed(forms.name, text)) from problem
    state.ended(forms.name, SCORE, Code.SUCCESS, since_ns=began_ns)
    if len(raw_n) != len(view):
        text = f"plugin answered for {len(raw_n)} rows instead of {len(view)}"
        raise CycleError(_failed(forms.name, text))
    return raw_n


def normalized(attempt: Attempt, forms: ScoreForms, raw_n: ScoreArray) -> ScoreArray:
    """Return the raw scores of the feasible rows brought into 0 to 100.

    Raises
    ------
    CycleError
        The plugin raised, or left a value out of range.
    """
    scores_n = raw_n
    if forms.normalizer is not None:
        state = attempt.state
        began_ns = state.begins()
        try:
            scores_n = forms.normalizer.normalize(state, attempt.pod, raw_n)
        except Exception as problem:
            state.ended(forms.name, NORMALIZE, Code.ERROR, since_ns=began_ns)
            text = contained(forms.name, "NormalizeScore", problem).message
            message = (
                f'running Normalize on Score plugins: plugin "{forms.name}" failed with: {text}'
            )
            raise CycleError(error(message).by(forms.name)) from problem
        state.ended(forms.name, NORMALIZE, Code.SUCCESS, since_ns=began_ns)
    check_range(forms.plugin, scores_n)
    return scores_n


def check_range(plugin: ScorePlugin, scores_n: ScoreArray) -> None:
    """Raise `CycleError` when a final score is not within 0 to 100."""
    if len(scores_n) == 0:
        return
    # Read as unsigned, a score below 0 is very great, so one pass finds scores below and above the
    # range. By position, because NumPy's reductions take three times as long.
    farthest = scores_n.item(scores_n.view(np.uint64).argmax())
    if not MIN_NODE_SCORE <= farthest <= MAX_NODE_SCORE:
        outside = (scores_n < MIN_NODE_SCORE) | (scores_n > MAX_NODE_SCORE)
        value = int(scores_n[outside][0])
        text = (
            f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an '
            f"invalid score {value}, it should in the range of [{MIN_NODE_SCORE}, "
            f"{MAX_NODE_SCORE}] after normalizing"
        )
        raise CycleError(error(text).by(plugin.name))


def _failed(name: str, text: str) -> Status:
    return error(f'running Score plugins: plugin "{name}" failed with: {text}').by(name)

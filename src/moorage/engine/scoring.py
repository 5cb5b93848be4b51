"""Runs Score plugins over the feasible rows, normalises, weighs and sums.

Rules: scheduling spec, cycle section 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from moorage.engine.filtering import CycleError
from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.meter import NORMALIZE, PRE_SCORE, SCORE
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE, ScoreArray, ScorePlugin
from moorage.framework.profile import Profile
from moorage.framework.runner import run_pre_score
from moorage.framework.status import Code, Status, error
from moorage.snapshot.pod_info import PodInfo
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


def run_scores(profile: Profile, state: CycleState, pod: PodInfo, feasible: NodeView) -> ScoreTable:
    """Run PreScore, Score and NormalizeScore over the feasible rows.

    Raises
    ------
    CycleError
        A plugin failed, or a score is out of range after normalising.
    """
    status = run_pre_score(profile, state, pod, feasible)
    if not status.ok:
        raise CycleError(status, PRE_SCORE)
    if state.meter is not None:
        state.meter.lap(PRE_SCORE, Code.SUCCESS)
    plugins: dict[str, PluginScores] = {}
    total_n = np.zeros(len(feasible), np.int64)
    for plugin in profile.scores:
        if plugin.name in state.skip_score:
            continue
        raw_n = ask_score(plugin, state, pod, feasible)
        normalized_n = normalized(profile, plugin, state, pod, raw_n=raw_n)
        weight = profile.weights[plugin.name]
        plugins[plugin.name] = PluginScores(weight, raw_n, normalized_n)
        total_n += normalized_n if weight == 1 else weight * normalized_n
    return ScoreTable(plugins, total_n)


def ask_score(plugin: ScorePlugin, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
    """Ask one plugin for its raw scores.

    Raises
    ------
    CycleError
        It raised, or answered for another number of rows.
    """
    began_ns = state.begins()
    try:
        raw_n = plugin.score(state, pod, view)
    except Exception as problem:
        state.ended(plugin.name, SCORE, Code.ERROR, since_ns=began_ns)
        text = contained(plugin.name, SCORE, problem).message
        raise CycleError(_failed(plugin, text)) from problem
    state.ended(plugin.name, SCORE, Code.SUCCESS, since_ns=began_ns)
    if len(raw_n) != len(view):
        text = f"plugin answered for {len(raw_n)} rows instead of {len(view)}"
        raise CycleError(_failed(plugin, text))
    return raw_n


def normalized(
    profile: Profile, plugin: ScorePlugin, state: CycleState, pod: PodInfo, *, raw_n: ScoreArray
) -> ScoreArray:
    """Return the raw scores of the feasible rows brought into 0 to 100.

    Raises
    ------
    CycleError
        The plugin raised, or left a value out of range.
    """
    normalizer = profile.normalizer(plugin)
    scores_n = raw_n
    if normalizer is not None:
        began_ns = state.begins()
        try:
            scores_n = normalizer.normalize(state, pod, raw_n)
        except Exception as problem:
            state.ended(plugin.name, NORMALIZE, Code.ERROR, since_ns=began_ns)
            text = contained(plugin.name, "NormalizeScore", problem).message
            message = (
                f'running Normalize on Score plugins: plugin "{plugin.name}" failed with: {text}'
            )
            raise CycleError(error(message)) from problem
        state.ended(plugin.name, NORMALIZE, Code.SUCCESS, since_ns=began_ns)
    check_range(plugin, scores_n)
    return scores_n


def check_range(plugin: ScorePlugin, scores_n: ScoreArray) -> None:
    """Raise `CycleError` when a final score is not within 0 to 100."""
    if len(scores_n) == 0:
        return
    # Read as unsigned, what is below 0 is very great: one pass finds both. By position, because
    # NumPy's reductions take three times as long.
    farthest = scores_n.item(scores_n.view(np.uint64).argmax())
    if not MIN_NODE_SCORE <= farthest <= MAX_NODE_SCORE:
        outside = (scores_n < MIN_NODE_SCORE) | (scores_n > MAX_NODE_SCORE)
        value = int(scores_n[outside][0])
        text = (
            f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an '
            f"invalid score {value}, it should in the range of [{MIN_NODE_SCORE}, "
            f"{MAX_NODE_SCORE}] after normalizing"
        )
        raise CycleError(error(text))


def _failed(plugin: ScorePlugin, text: str) -> Status:
    return error(f'running Score plugins: plugin "{plugin.name}" failed with: {text}')

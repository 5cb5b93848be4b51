"""Runs a vector of upstream's tests of the cycle of a group, with made-up plugins.

The mode "groupCycle" of the conformance runner. Filter, PlacementFeasible, PlacementGenerate and
PlacementScore answer as the vector says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from moorage.config.merge import ProfileSpec
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, Member
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import FilledPlacement, GroupProgress, Placement
from moorage.framework.handle import Handle
from moorage.framework.points import ScoreArray
from moorage.framework.registry import PluginEntry, Registry
from moorage.framework.status import SUCCESS, Code, Status
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_groups import GroupKey, GroupTerms
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.recordings import (
    GroupCycleScript,
    Json,
    PlacementScorer,
    Scenario,
)
from moorage_lab.conformance.world import World

_PLUGIN: Final = "FakePlacementPlugin"
_PROFILE: Final = "test-scheduler"
_CODES: Final = {code.text: code for code in Code}
_GROUP_CODES: Final = {
    GroupOutcome.PLACED: Code.SUCCESS,
    GroupOutcome.REJECTED: Code.UNSCHEDULABLE,
    GroupOutcome.BROKEN: Code.ERROR,
}


def run_group_cycle(scenario: Scenario) -> Json:
    """Return what the vector of a scenario looks at after one attempt of the group."""
    script, vector = scenario.group_cycle, scenario.vector
    assert script is not None, "a vector of mode groupCycle has plugins"
    assert vector is not None, "a script is that of a vector"
    entries = [PluginEntry(_PLUGIN, _MadeUp), *map(_scorer_entry, range(len(script.scorers)))]
    names = [entry.name for entry in entries]
    points = {"filter": (_PLUGIN,), "placementScore": tuple(names[1:])}
    if script.placements is not None or script.generated:
        points["placementGenerate"] = (_PLUGIN,)
    weights = dict(zip(names[1:], (each.weight for each in script.scorers), strict=True))
    args = dict(zip(names, (script, *script.scorers), strict=True))
    spec = ProfileSpec(_PROFILE, points, {}, args, placement_weights=weights)
    world = World(scenario, {_PROFILE: spec}, Registry(entries))
    key = world.snapshot.groups.key_of(world.pending[0].pod)
    assert key is not None, "the pods of the vector have no group"
    # Within some nodes no pod is evicted, as in the function that the tests call.
    everywhere = world.snapshot.all()
    cycle = GroupCycle(world.cycles[_PROFILE])
    decision = cycle.decide_group(key, world.pending, within=everywhere)
    answers = {"status": _status, "code": _code, "members": _members, "nodes": _nodes}
    return {point: answers[point](decision) for point in vector.points}


def _status(decision: GroupDecision) -> list[str]:
    return [_code(decision), *decision.status.reasons]


def _code(decision: GroupDecision) -> str:
    return _GROUP_CODES[decision.outcome].text


def _members(decision: GroupDecision) -> Json:
    """Return the code of every pod that was tried."""
    return {each.decision.pod.pod.name: _member_code(each) for each in decision.members}


def _member_code(member: Member) -> str:
    return Code.SUCCESS.text if member.node_name else member.decision.status.code.text


def _nodes(decision: GroupDecision) -> Json:
    return {
        each.decision.pod.pod.name: each.node_name for each in decision.members if each.node_name
    }


def _read(status: Sequence[str]) -> Status:
    return Status(_CODES[status[0]], tuple(status[1:]))


class _MadeUp:
    """Filter, PlacementFeasible and PlacementGenerate."""

    name = _PLUGIN

    def __init__(self, script: GroupCycleScript, handle: Handle) -> None:
        self._script = script
        self._snapshot = handle.snapshot
        self._placement = -1
        self._calls = 0

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Answer by the name of the pod or of the node."""
        del state
        answers = self._script.filter
        status = answers.get(pod.pod.name) or answers.get(node.name)
        return _read(status) if status else SUCCESS

    def placement_feasible(self, key: GroupKey, progress: GroupProgress) -> Status:
        """Answer with the next code of the placement; the last code counts for all later calls."""
        if not self._script.feasible:
            return SUCCESS
        if progress.remaining == len(self._snapshot.groups.members(key).pods):
            self._placement, self._calls = self._placement + 1, 0
        codes = self._script.feasible[self._placement]
        code = codes[min(self._calls, len(codes) - 1)]
        self._calls += 1
        return SUCCESS if code == "Success" else _read([code, "injected placementFeasible status"])

    def generate_placements(
        self, key: GroupKey, terms: GroupTerms | None
    ) -> tuple[Sequence[Placement], Status]:
        """Return the placements of the vector."""
        if self._script.generated:
            return (), _read(self._script.generated)
        rows_of = self._snapshot.table.rows_of
        placements = [
            Placement(name, self._snapshot.rows(rows_of(nodes)))
            for name, nodes in (self._script.placements or {}).items()
        ]
        return placements, SUCCESS


class _Scorer:
    """PlacementScore."""

    def __init__(self, scorer: PlacementScorer, handle: Handle) -> None:
        self._scorer = scorer

    def score_placements(
        self, key: GroupKey, filled: Sequence[FilledPlacement]
    ) -> tuple[ScoreArray, Status]:
        """Return the scores of the vector."""
        scores = [self._scorer.scores.get(each.placement.name, 0) for each in filled]
        status = _read(self._scorer.status) if self._scorer.status else SUCCESS
        return np.array(scores, np.int64), status


def _scorer_entry(index: int) -> PluginEntry:
    name = f"FakeScorePlugin[{index}]"
    return PluginEntry(name, type("Scorer", (_Scorer,), {"name": name}))

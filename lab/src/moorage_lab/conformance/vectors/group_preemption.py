"""Runs a vector of upstream's tests of preemption by a group, with a made-up attempt of the group.

The mode "groupPreemption" of the conformance runner. DefaultPreemption chooses the victims, next to
NodeResourcesFit. The members are placed where the vector says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from moorage.base.clock import ManualClock
from moorage.config.args import default_args
from moorage.config.merge import POINTS, ProfileSpec
from moorage.engine.attempt import Scope
from moorage.engine.decision import Decision
from moorage.engine.groups.decision import (
    GROUP_UNSCHEDULABLE,
    GroupDecision,
    GroupOutcome,
    Member,
)
from moorage.engine.groups.group_preemption import GroupPreemption
from moorage.framework.preemption import is_preempted
from moorage.framework.registry import Registry
from moorage.framework.status import SUCCESS, Code, Status, unschedulable
from moorage.plugins.preemption.group import UnitBudgets, UnitRules, find_victims
from moorage.plugins.preemption.victims import Unit
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.recordings import Json, Scenario
from moorage_lab.conformance.world import World

_PROFILE: Final = "default-scheduler"
_PLUGINS: Final = ("NodeResourcesFit", "DefaultPreemption")
_CODES: Final = {GroupOutcome.PREEMPTING: Code.SUCCESS, GroupOutcome.REJECTED: Code.UNSCHEDULABLE}
_REJECTED: Final = GroupDecision(GroupOutcome.REJECTED, unschedulable(GROUP_UNSCHEDULABLE))
_BEFORE: Final = f"{GROUP_UNSCHEDULABLE}; pod group preemption: "


def run_group_preemption(scenario: Scenario, registry: Registry) -> Json:
    """Return what the vector of a scenario looks at after the preemption by a group."""
    vector = scenario.vector
    assert vector is not None, "the reader refuses the mode without it"
    points = {
        point: names
        for point in POINTS
        if (names := tuple(each for each in _PLUGINS if registry.extends(each, point)))
    }
    args: dict[str, Any] = {name: default_args(name) for name in _PLUGINS}
    spec = ProfileSpec(_PROFILE, points, dict.fromkeys(_PLUGINS, 1), args)
    world = World(scenario, {_PROFILE: spec}, registry)
    if _UNITS.keys() & {*vector.points}:
        return {point: _UNITS[point](world) for point in vector.points}
    key = world.snapshot.groups.key_of(world.pending[0].pod)
    assert key is not None, "the pods of the vector have no group"
    attempts = _MadeUp(world, scenario.places)
    preemption = GroupPreemption(world.cycles[_PROFILE], attempts)
    decision = preemption.preempted(key, world.pending, _REJECTED)
    return {point: _ANSWERS[point](decision, world.pending) for point in vector.points}


def _code(decision: GroupDecision, _pods: Sequence[PodInfo]) -> str:
    return _CODES[decision.outcome].text


def _status(decision: GroupDecision, _pods: Sequence[PodInfo]) -> list[str]:
    return [_CODES[decision.outcome].text, decision.status.message.removeprefix(_BEFORE)]


def _victims(decision: GroupDecision, _pods: Sequence[PodInfo]) -> list[str]:
    return sorted(pod.metadata.name for pod in decision.victims)


def _nominated(decision: GroupDecision, pods: Sequence[PodInfo]) -> Json:
    """Return the node of each nominated member; a nomination that stands is its node of before."""
    nodes = {}
    for each in decision.outcomes(pods):
        status = each.pod.pod.status
        node = status.nominated_node_name
        if each.nomination is not None:
            node = each.nomination.node_name
        if node:
            nodes[each.pod.name] = node
    return nodes


class _MadeUp:
    """The attempts for the group: every member goes where the vector says."""

    def __init__(self, world: World, places: Mapping[str, str]) -> None:
        self._world = world
        self._places = places

    def decide_without(
        self, key: GroupKey, pods: Sequence[PodInfo], uids: Collection[str] = ()
    ) -> GroupDecision:
        """Return the members with their places; a rejection where the vector has none."""
        members = tuple(
            Member(self._decision(pod, node_name), node_name)
            for pod in pods
            if (node_name := self._places.get(pod.name, ""))
        )
        return GroupDecision(GroupOutcome.PLACED, SUCCESS, members) if members else _REJECTED

    def decide_at(self, pods: Sequence[PodInfo], places: Mapping[str, str]) -> GroupDecision:
        """Return a rejection: the tests make one attempt only."""
        return _REJECTED

    def try_without(self, pods: Sequence[PodInfo], uids: Collection[str]) -> Status:
        """Return the status of `decide_without`."""
        return self.decide_without(GroupKey("", ""), pods, uids).status

    def _decision(self, pod: PodInfo, node_name: str) -> Decision:
        within = self._world.snapshot.rows(self._world.snapshot.table.rows_of([node_name]))
        return self._world.cycles[_PROFILE].decide(pod, Scope(within=within, post_filter=False))


# -- the units of victims ----------------------------------------------------------------------


class _PutBack:
    """`GroupWhatIf` that fits without the pods, and with none of them; it notes their order."""

    def __init__(self) -> None:
        self.order: list[Sequence[PodInfo]] = []

    def without(self, uids: Collection[str]) -> Status:
        """Return Success."""
        return SUCCESS

    def put_back(self, pods: Sequence[PodInfo]) -> bool:
        """Note the pods of a unit."""
        self.order.append(pods)
        return False


def _order(world: World) -> list[list[str]]:
    """Return the units that may be evicted for the pending group, the least important first."""
    source = world.snapshot.groups.source
    key = source.key_of(world.pending[0].pod)
    terms = None if key is None else source.terms_of(key)
    assert terms is not None, "the preemptor has no group"
    what_if = _PutBack()
    find_victims(
        world.snapshot,
        _budgets(world),
        what_if,
        priority=terms.priority,
        now_ns=ManualClock().now_ns(),
        leaves=lambda pod: False,
    )
    return [_names(pods) for pods in reversed(what_if.order)]


def _ranked(world: World) -> list[list[str]]:
    """Return all units, the most important first."""
    return [_names(unit.pods) for unit in _ranked_units(world)]


def _violating(world: World) -> list[list[str]]:
    """Return the units whose eviction breaks a budget, the most important first."""
    violating, _ = _budgets(world).split_units(_ranked_units(world))
    return [_names(unit.pods) for unit in violating]


def _priorities(world: World) -> Json:
    """Return the priority of each unit by the names of its pods."""
    return {"+".join(_names(unit.pods)): unit.priority for unit in _all_units(world)}


def _preempted(world: World) -> list[str]:
    """Return the pods that a scheduler evicted and that still terminate."""
    units = _all_units(world)
    return _names([pod for unit in units for pod in unit.pods if is_preempted(pod.pod)])


def _ranked_units(world: World) -> list[Unit]:
    rules = UnitRules(world.snapshot.groups, of_1_37=True)
    return rules.ranked(_all_units(world), ManualClock().now_ns())


def _all_units(world: World) -> list[Unit]:
    snapshot = world.snapshot
    pods = [pod for row in snapshot.search_order().tolist() for pod in snapshot.pods(row)]
    return UnitRules(snapshot.groups, of_1_37=True).units_of(pods)


def _budgets(world: World) -> UnitBudgets:
    return UnitBudgets(world.snapshot.listers.pod_disruption_budgets, of_1_37=True)


def _names(pods: Sequence[PodInfo]) -> list[str]:
    return sorted(pod.name for pod in pods)


_ANSWERS: Final[Mapping[str, Callable[[GroupDecision, Sequence[PodInfo]], Any]]] = {
    "code": _code,
    "status": _status,
    "victims": _victims,
    "nominated": _nominated,
}
_UNITS: Final[Mapping[str, Callable[[World], Any]]] = {
    "order": _order,
    "ranked": _ranked,
    "violating": _violating,
    "priorities": _priorities,
    "preempted": _preempted,
}

"""The placements of a group: which are tried, and which of those tried is taken.

A placement is a part of the cluster. Plugins generate the placements of a group, most often one for
each topology domain. The group is tried in each by itself. Of the placements in which it fits the
best scored is taken. Preferred placements come first. If one of them takes every pod, no other
placement is tried; otherwise a preferred placement is taken only if no other takes more pods.

Rules: scheduling spec, gang section A5 (kubernetes v1.36
``pkg/scheduler/schedule_one_podgroup.go``). Preferred placements are moorage's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast

import msgspec
import numpy as np

from moorage.config.gate_table import TOPOLOGY_AWARE, V1_36
from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.groups.decision import NO_PODS, GroupDecision, GroupOutcome
from moorage.engine.groups.numbers import GroupNumbers, ViewSums
from moorage.engine.groups.room import judges_of_room, places
from moorage.engine.sampling import placements_to_find
from moorage.framework.containment import contained
from moorage.framework.group import (
    FilledPlacement,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    merged_placements,
)
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.snapshot.labels import ABSENT
from moorage.snapshot.pod_groups import GroupKey, PodGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

NO_PLACEMENTS: Final = "no feasible placements found"
_NO_PENDING_POD: Final = "nominated placement is feasible but no pending pod was scheduled"
_ANYWHERE: Final = (Placement(),)
_MEMBERS_MAX: Final = 512
"""Members tried in all placements of an attempt once every pod has a place in one of them. A guess:
about a tenth of a second."""
_DOMAINS_NAMED: Final = 5  # in a message; a guess

Generated = tuple[Sequence[Placement], Status, str]
"""Placements, the status of the plugin that generated them, and its name; "" for no plugin."""


class _Tried(NamedTuple):
    """A placement, and the decision within it; None where too few pods could have a place."""

    placement: Placement
    decision: GroupDecision | None
    pods: int
    """Members with a place; without a decision, a number that is not exceeded."""

    @property
    def fits(self) -> bool:
        return self.decision is not None and self.decision.outcome is not GroupOutcome.REJECTED


class _Bound(NamedTuple):
    """Numbers of pods that are not exceeded by those that fit a placement."""

    pods: int
    """The tighter one: at most all members."""
    room: int
    """The number of the smallest members that would fit."""


class Placements:
    """Generates and scores placements with the plugins of a profile.

    Parameters
    ----------
    cycle
        The cycle of the plugins, on the cluster.
    """

    def __init__(self, cycle: Cycle) -> None:
        profile = cycle.profile
        self.cycle = cycle
        self.snapshot = cycle.snapshot
        self._profile = profile
        self._gate = profile.handle.gates(TOPOLOGY_AWARE)
        points = profile.points
        self._generators = cast("Sequence[PlacementGeneratePlugin]", points["placementGenerate"])
        self._scorers = cast("Sequence[PlacementScorePlugin]", points["placementScore"])
        self._room_is_judged = bool(judges_of_room(profile))

    def choice(self, key: GroupKey, pods: Sequence[PodInfo]) -> Choice | GroupDecision | None:
        """Return the placements to try, or the decision where there is no placement.

        None means that the group may go anywhere.

        Parameters
        ----------
        key
            The group.
        pods
            Its pods without a place.
        """
        placements, status, plugin = self.generated(key)
        if placements is _ANYWHERE and not self.as_upstream(key):
            return None
        if not status.ok:
            return GroupDecision(GroupOutcome.BROKEN, status)
        if placements:
            return Choice(self, key, pods, placements=placements, plugin=plugin)
        return GroupDecision(
            GroupOutcome.REJECTED,
            unschedulable(NO_PLACEMENTS),
            detail=self._unlabelled(key),
            generator=plugin,
        )

    def generated(self, key: GroupKey) -> Generated:
        """Return the placements of a group.

        They are those of the first plugin that restricts the nodes. In 1.37 they are the common
        nodes of the placements of all plugins that do.
        """
        if not key.source and not self._gate:
            return _ANYWHERE, SUCCESS, ""
        several = self.as_upstream(key) and self._profile.handle.gates.version != V1_36
        by_plugin = list[tuple[str, Sequence[Placement]]]()
        terms = self.snapshot.groups.source.terms_of(key)
        for plugin in self._generators:
            try:
                placements, status = plugin.generate_placements(key, terms)
            except Exception as problem:
                return (), contained(plugin.name, "PlacementGenerate", problem), plugin.name
            if not status.ok or not placements:
                return placements, status, plugin.name
            if any(each.within is not None for each in placements):
                if not several:
                    return placements, status, plugin.name
                by_plugin.append((plugin.name, placements))
        if not by_plugin:
            return _ANYWHERE, SUCCESS, ""
        common, status = merged_placements(self.snapshot, by_plugin)
        return common, status, by_plugin[-1][0]

    def as_upstream(self, key: GroupKey) -> bool:
        """Whether every placement is tried and a rejection is in kube-scheduler's words."""
        return self._gate and not key.source

    def bounds(self, key: GroupKey) -> bool:
        """Whether a placement with too little room for its pods is left out."""
        return self._room_is_judged and not self.as_upstream(key)

    def to_find(self, key: GroupKey, placements: Sequence[Placement]) -> int:
        """Return in how many placements a group has to fit before no other is tried."""
        if not self.as_upstream(key):
            return len(placements)
        sizes = [0 if each.within is None else len(each.within) for each in placements]
        return placements_to_find(self._profile.spec.percentage_of_placements_to_score, sizes)

    def nominated(
        self, key: GroupKey, pods: Sequence[PodInfo], placements: Sequence[Placement]
    ) -> Placement | None:
        """Return the one placement that has nodes to which pods are nominated, in 1.37.

        It is tried first, and taken if the group fits. None if no placement or several have any.
        """
        if not self.as_upstream(key) or self._profile.handle.gates.version == V1_36:
            return None
        rows = {self.snapshot.nominated_level(pod)[1] for pod in pods} - {None}
        matching = [
            each
            for each in placements
            if each.within is not None and rows.intersection(each.within.row_numbers().tolist())
        ]
        return matching[0] if len(matching) == 1 else None

    def best(self, key: GroupKey, filled: Sequence[FilledPlacement]) -> tuple[int, Status]:
        """Return the placement with the best score, the first among equals."""
        total = np.zeros(len(filled), np.int64)
        for plugin in self._scorers:
            try:
                scores, status = plugin.score_placements(key, filled)
            except Exception as problem:
                return 0, contained(plugin.name, "PlacementScore", problem)
            if not status.ok:
                return 0, status.by(plugin.name)
            wrong = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)]
            if len(wrong):
                return 0, error(
                    f'plugin "{plugin.name}" returns an invalid score {wrong[0]}, it should in the '
                    "range of [0, 100] after normalizing"
                )
            total += self._profile.spec.placement_weights.get(plugin.name, 1) * scores
        return int(np.argmax(total)), SUCCESS

    def _unlabelled(self, key: GroupKey) -> str:
        """Return that no node has the label that the group requires; "" if a node has it."""
        terms = self.snapshot.groups.source.terms_of(key)
        if terms is None or not terms.topology_key:
            return ""
        if (self.snapshot.label_column(terms.topology_key).ids != ABSENT).any():
            return ""
        return f"no node has the label {terms.topology_key}"


class Choice:
    """The placements of one attempt: tried one after another, until the best is known.

    Parameters
    ----------
    owner
        The plugins, and the cluster.
    key, pods
        The group, and its pods without a place.
    placements, plugin
        The placements, and the plugin that generated them.
    """

    def __init__(
        self,
        owner: Placements,
        key: GroupKey,
        pods: Sequence[PodInfo],
        *,
        placements: Sequence[Placement],
        plugin: str,
    ) -> None:
        self._owner = owner
        self._key = key
        self._pods = pods
        self._plugin = plugin
        self._bounds = self._bounds_of(placements)
        self._nominated = owner.nominated(key, pods, placements)
        self._left = sorted(placements, key=self._rank)[::-1]
        self._current = placements[0]
        self._tried: list[_Tried] = []
        self._members_left = _MEMBERS_MAX
        self._packed = False  # whether a preferred placement takes every pod
        self._to_find = owner.to_find(key, placements)
        self._missing = self._groups.missing(key)

    @property
    def _groups(self) -> PodGroups:
        return self._owner.snapshot.groups

    # -- trying --------------------------------------------------------------------------------

    def next(self) -> Placement | None:
        """Return the next placement to try; None when the best is among those tried."""
        while self._left:
            self._current = self._left.pop()
            if self._packed and not self._current.preferred:
                return None
            if self._nominated is not None and self._tried and self._tried[0].fits:
                return None
            if sum(each.fits for each in self._tried) >= self._to_find:
                return None
            if self._enough():
                continue
            bound = self._bounds.get((self._current.preferred, self._current.name))
            if bound is None or bound.pods >= self._missing:
                return self._current
            self._tried.append(_Tried(self._current, None, bound.pods))
        # A group that fits nowhere is tried once for its reasons, where most pods could fit.
        others = [each for each in self._tried if not each.placement.preferred]
        if not others or any(each.decision is not None for each in self._tried):
            return None
        most = max(others, key=lambda each: each.pods)
        self._tried.remove(most)
        self._current = most.placement
        return self._current

    def scope(self, scope: Scope, within: NodeView | None) -> Scope:
        """Return the bounds of the attempts within the placement that `next` returned.

        No pod is evicted for a placement that is only preferred.
        """
        post_filter = scope.post_filter and not self._current.preferred
        return msgspec.structs.replace(scope, within=within, post_filter=post_filter)

    def tried(self, decision: GroupDecision) -> None:
        """Take in the decision within the placement that `next` returned."""
        current = self._current
        generator = self._plugin if current.within is not None and not current.preferred else ""
        decision = msgspec.structs.replace(
            decision, placement=current.name, preferred=current.preferred, generator=generator
        )
        if current is self._nominated and decision.status.reasons == (NO_PODS,):
            decision = msgspec.structs.replace(decision, status=unschedulable(_NO_PENDING_POD))
        placed = sum(bool(each.node_name) for each in decision.members)
        self._tried.append(_Tried(current, decision, placed))
        self._members_left -= len(self._pods)
        fits_all = decision.outcome is GroupOutcome.PLACED and placed == len(self._pods)
        self._packed = self._packed or (current.preferred and fits_all)

    def _enough(self) -> bool:
        """Whether every pod has a place in a placement of this kind, and enough were compared."""
        if self._members_left > 0 or self._owner.as_upstream(self._key):
            return False
        preferred = self._current.preferred
        return any(
            each.fits and each.pods == len(self._pods) and each.placement.preferred is preferred
            for each in self._tried
        )

    def _bounds_of(self, placements: Sequence[Placement]) -> dict[tuple[bool, str], _Bound]:
        """Return numbers of pods that are not exceeded by those that fit each placement."""
        if not self._owner.bounds(self._key):
            return {}
        names, views = list[tuple[bool, str]](), list[NodeView]()
        for each in placements:
            if each.within is not None and len(each.within):
                names.append((each.preferred, each.name))
                views.append(each.within)
        if not views:
            return {}
        sums = ViewSums(views)
        bounds = GroupNumbers(self._owner.cycle, self._pods).bounds(sums)
        rooms = sums.of(places(self._owner.snapshot, self._pods)).tolist()
        return dict(zip(names, map(_Bound, bounds, rooms), strict=True))

    def _rank(self, placement: Placement) -> tuple[bool, bool, bool, int, bytes]:
        """Return the order of trying: preferred ones, then the fullest with room for every pod.

        In 1.37 the placement to which pods are nominated comes before all others.

        The fullest are scored best, so the best are among the first. Placements without a bound
        keep the order in which they were generated, because sorting is stable.
        """
        bound = self._bounds.get((placement.preferred, placement.name))
        nominated = placement is self._nominated
        if bound is None:
            return not nominated, not placement.preferred, False, 0, b""
        roomy = bound.pods >= len(self._pods)
        return (
            not nominated,
            not placement.preferred,
            not roomy,
            bound.room if roomy else -bound.pods,
            placement.name.encode(),
        )

    # -- choosing ------------------------------------------------------------------------------

    def best(self, current: Callable[[Placement], Placement] | None = None) -> GroupDecision:
        """Return the decision for the best placement; a rejection if the group fits in none.

        Parameters
        ----------
        current
            Returns a placement with the rows that it has now; None where no row has moved.
        """
        fitting = self._best_fitting()
        if not fitting:
            return self._none_fits()
        best = 0
        if len(fitting) > 1:
            now = current or (lambda each: each)
            filled = [self._filled(now(each.placement), each) for each in fitting]
            best, status = self._owner.best(self._key, filled)
            if not status.ok:
                return GroupDecision(GroupOutcome.BROKEN, status)
        found = fitting[best].decision
        assert found is not None, "a placement without a decision fits"
        return found

    def _best_fitting(self) -> list[_Tried]:
        """Return the preferred placements that take most pods, unless another one takes more."""
        fitting = [each for each in self._tried if each.fits]
        others = [each for each in fitting if not each.placement.preferred]
        preferred = [each for each in fitting if each.placement.preferred]
        if not preferred:
            return others
        most = max(each.pods for each in preferred)
        for other in others:
            placed = other.decision is not None and other.decision.outcome is GroupOutcome.PLACED
            if placed and other.pods > most:
                return others
        return [each for each in preferred if each.pods == most]

    def _filled(self, placement: Placement, tried: _Tried) -> FilledPlacement:
        assert tried.decision is not None, "a placement without a decision fits"
        row_of = self._owner.snapshot.row_of
        rows = [(each, row_of(each.node_name)) for each in tried.decision.members]
        return FilledPlacement(
            placement, tuple((each.decision.pod, row) for each, row in rows if row is not None)
        )

    # -- a rejection ---------------------------------------------------------------------------

    def _none_fits(self) -> GroupDecision:
        """Return the rejection: for people, the placement that takes the most pods."""
        domains = [each for each in self._tried if not each.placement.preferred]
        decided = [each for each in domains if each.decision is not None]
        best = max(decided, key=lambda each: each.pods)
        shown = decided[0] if self._owner.as_upstream(self._key) else best
        assert shown.decision is not None, "a placement without a decision was decided"
        assert best.decision is not None, "a placement without a decision was decided"
        decision = msgspec.structs.replace(
            shown.decision,
            detail=self._detail(domains, best.decision) or shown.decision.detail,
        )
        if not self._owner.as_upstream(self._key):
            return decision
        text = (
            f"0/{len(domains)} placements are available, first placement status: "
            f"{decision.status.message}"
        )
        return msgspec.structs.replace(decision, status=unschedulable(text))

    def _detail(self, domains: Sequence[_Tried], best: GroupDecision) -> str:
        """Return how many pods each domain takes, and why the best one takes no more."""
        terms = self._groups.source.terms_of(self._key)
        without = [each for each in best.members if not each.node_name]
        placed = len(best.members) - len(without)
        if not best.generator or terms is None or not without or placed >= self._missing:
            return ""
        wanted = pods_wanted(self._missing)
        ranked = sorted(domains, key=lambda each: (-each.pods, each.placement.name))
        taken = [
            (each.placement.name, f"{'at most ' if each.decision is None else ''}{each.pods}")
            for each in ranked
        ]
        begin = f"no domain of {terms.topology_key} takes {wanted} ({domains_listed(taken)})"
        if self._groups.members(self._key).placed:
            begin = (
                f"pods of the group run in {best.placement} of {terms.topology_key}, which takes "
                f"{placed} of {wanted}"
            )
        others = f" and {len(without) - 1} more have" if len(without) > 1 else " has"
        name = without[0].decision.pod.key
        return f"{begin}; in {best.placement} {name}{others} no node: {without[0].message}"


def pods_wanted(number: int) -> str:
    """Return a number of pods, for messages."""
    return "a pod" if number == 1 else f"{number} pods"


def domains_listed(taken: Sequence[tuple[str, str]]) -> str:
    """Return how many pods domains take, for messages: the first domains, and how many are left.

    Parameters
    ----------
    taken
        The name of each domain and the number of pods, those that take most first.
    """
    listed = [f"{name} takes {count}" for name, count in taken[:_DOMAINS_NAMED]]
    if len(taken) > _DOMAINS_NAMED:
        listed.append(f"{len(taken) - _DOMAINS_NAMED} more take no more than that")
    return ", ".join(listed)


def shared_rows(
    snapshot: Snapshot, one: NodeView | None, other: NodeView | None
) -> NodeView | None:
    """Return the rows of both views; None stands for every row."""
    if one is None or other is None:
        return one if other is None else other
    return snapshot.rows(np.intersect1d(one.row_numbers(), other.row_numbers()))

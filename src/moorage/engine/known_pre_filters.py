"""PreFilter for replicas: what reusable plugins answered is kept with the shape's entry.

Part of a `ShapeCache`. The plugins asked afresh mostly skip, as they did for the last replica;
then nothing has to be put together anew. Those that say beforehand which pods they skip
(`skips_spec`) are not even asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from moorage.engine.shape_entry import Entry
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import PreFilterPlugin
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    PreFilterAnswer,
    PreFilterOutcome,
    pre_filter_one,
    run_pre_filter,
)
from moorage.framework.status import SKIP, Code
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


class _Idle(NamedTuple):
    """Who of the plugins asked afresh has nothing to say about pods of one spec."""

    always: frozenset[str]
    """Names of those that skip whatever the cluster is like."""
    conditions: tuple[Callable[[Snapshot], bool], ...] = ()
    """Of the others that skip, as long as what."""
    everybody: bool = False
    """Whether all of them skip, as long as every condition holds."""

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether every condition holds now."""
        for condition in self.conditions:  # noqa: SIM110 - a generator costs more than the answers
            if not condition(snapshot):
                return False
        return True


class _Skipper(NamedTuple):
    """What a plugin offers that may know pods it skips."""

    name: str
    skips: Callable[[PodInfo], bool] | None
    """Whether it skips every pod of this spec; None where it does not know."""
    condition: Callable[[Snapshot], bool] | None
    """As long as this holds; None where nothing can change it."""


_NOBODY: Final = _Idle(frozenset())


class KnownPreFilters:
    """Runs PreFilter for one profile, plugins answering from entries where they can.

    Parameters
    ----------
    profile, snapshot
        Whose plugins are asked, about what.
    fresh
        Names of the plugins whose answers are never reused.
    """

    def __init__(self, profile: Profile, snapshot: Snapshot, fresh: frozenset[str]) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._fresh = fresh
        self._asked = [plugin for plugin in profile.pre_filters if plugin.name in fresh]
        self._kept = len(profile.pre_filters) - len(self._asked)
        self._all_skip = (True,) * len(self._asked)
        # Looked up once: pods with claims of their own have a spec of their own, too.
        found = [(plugin.name, profile.capabilities[plugin.name]) for plugin in self._asked]
        self._skippers = [_Skipper(name, each.skips_spec, each.skips_while) for name, each in found]

    def run(self, entry: Entry, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        """Run PreFilter: plugins answer from the entry where they can.

        Where nobody has an objection the outcome is the one of the last such attempt in which
        the same plugins skipped; else the answers are put together as `run_pre_filter` does.
        """
        state.absorb(entry.state)
        if not entry.lets_every_node:
            return self._run(entry, state, pod, {})
        # An attempt whose plugins are timed one by one asks them all: they want to be told of.
        idle = _NOBODY if state.timed else self._idle(pod)
        if idle.everybody and idle.holds(self._snapshot):
            known = entry.outcomes.get(self._all_skip)
            if known is not None:
                outcome, state.skip_filter = known
                return outcome
        return self._run_plainly(entry, state, pod, idle)

    def _idle(self, pod: PodInfo) -> _Idle:
        """Return who of the plugins asked afresh skips pods of this spec, found once for each."""
        found: _Idle | None = pod.spec_memo.get(self)
        if found is None:
            found = pod.spec_memo[self] = _idle_about(pod, self._skippers)
        return found

    def _run_plainly(
        self, entry: Entry, state: CycleState, pod: PodInfo, idle: _Idle
    ) -> PreFilterOutcome:
        """Ask the others; put the answers together unless that was done for the same ones."""
        answers: dict[str, PreFilterAnswer] = {}
        for plugin in self._asked:
            if plugin.name in idle.always:
                answers[plugin.name] = None, SKIP.by(plugin.name)
                continue
            answer = answers[plugin.name] = pre_filter_one(plugin, state, pod, self._snapshot)
            if not _is_plain(answer):
                return self._run(entry, state, pod, answers)
        skipping = tuple([status.code is Code.SKIP for _, status in answers.values()])
        known = entry.outcomes.get(skipping)
        if known is None:
            outcome = self._run(entry, state, pod, answers)
            known = entry.outcomes[skipping] = outcome, state.skip_filter
        outcome, state.skip_filter = known
        return outcome

    def _run(
        self,
        entry: Entry,
        state: CycleState,
        pod: PodInfo,
        answers: Mapping[str, PreFilterAnswer],
    ) -> PreFilterOutcome:
        """Put the answers together, those of plugins asked already and of the others."""

        def ask(plugin: PreFilterPlugin) -> PreFilterAnswer:
            found = answers.get(plugin.name)
            return self._ask(entry, plugin, state, pod) if found is None else found

        outcome = run_pre_filter(self._profile, state, pod, self._snapshot, ask=ask)
        if len(entry.pre_filters) == self._kept:
            entry.lets_every_node = all(map(_is_plain, entry.pre_filters.values()))
        return outcome

    def _ask(
        self, entry: Entry, plugin: PreFilterPlugin, state: CycleState, pod: PodInfo
    ) -> PreFilterAnswer:
        """Answer for a PreFilter plugin: from the entry, or by asking it."""
        if plugin.name in self._fresh:
            return pre_filter_one(plugin, state, pod, self._snapshot)
        known = entry.pre_filters.get(plugin.name)
        if known is None:
            entry.state.metered_like(state)
            known = pre_filter_one(plugin, entry.state, pod, self._snapshot)
            state.absorb(entry.state)
            if known[1].code is not Code.ERROR:
                entry.keep_pre_filter(plugin.name, known)
        return known


def _is_plain(answer: PreFilterAnswer) -> bool:
    """Whether a plugin skips, or lets the attempt go on with every node."""
    result, status = answer
    if status.code is Code.SKIP:
        return True
    return status.code is Code.SUCCESS and (result is None or result.node_names is None)


def _idle_about(pod: PodInfo, asked: Sequence[_Skipper]) -> _Idle:
    always: set[str] = set()
    conditions: list[Callable[[Snapshot], bool]] = []
    for skipper in asked:
        try:
            if skipper.skips is None or not skipper.skips(pod):
                continue
        except Exception:  # it is asked the long way, and contained there
            continue
        if skipper.condition is None:
            always.add(skipper.name)
        else:
            conditions.append(skipper.condition)
    everybody = len(always) + len(conditions) == len(asked)
    return _Idle(frozenset(always), tuple(conditions), everybody)

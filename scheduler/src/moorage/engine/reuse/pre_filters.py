"""The pre-filter cache: the outcome of PreFilter for one shape.

The answers of reusable plugins are kept. The plugins asked afresh mostly skip, as for the previous
replica. Then the outcome of the previous attempt holds again. Plugins that know which pods they
skip (capability `skips_spec`) are not even asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from moorage.engine.attempt import Attempt
from moorage.framework.caches import Changes
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.points import PreFilterPlugin
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    PreFilterAnswer,
    PreFilterOutcome,
    pre_filter_one,
    run_pre_filter,
)
from moorage.framework.status import SKIP, SKIP_CODE, SUCCESS_CODE, Code
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


class _Skips(NamedTuple):
    """The plugins asked afresh that skip every pod of one spec.

    Parameters
    ----------
    always
        Names of the plugins that skip for every cluster.
    conditions
        For each other plugin that skips, the condition that must hold.
    is_all
        Whether all plugins asked afresh skip as long as every condition holds.
    """

    always: frozenset[str]
    conditions: tuple[Callable[[Snapshot], bool], ...] = ()
    is_all: bool = False

    def holds_now(self, snapshot: Snapshot) -> bool:
        """Whether every condition holds now."""
        for condition in self.conditions:  # noqa: SIM110 - a generator costs more than the answers
            if not condition(snapshot):
                return False
        return True


# Size of an answer with its share of the outcomes: names of plugins, a status; a guess.
_ANSWER_BYTES: Final = 512

_NONE: Final = _Skips(frozenset())


class PreFilterPlugins:
    """The PreFilter plugins of a profile, split into plugins with and without kept answers.

    Parameters
    ----------
    profile
        The profile.
    """

    def __init__(self, profile: Profile) -> None:
        names = profile.asked_afresh
        self.afresh = [plugin for plugin in profile.pre_filters if plugin.name in names]
        self.afresh_names = frozenset(plugin.name for plugin in self.afresh)
        self.cached_count = len(profile.pre_filters) - len(self.afresh)
        self.all_skip = (True,) * len(self.afresh)
        self.skip_of = {each.name: (None, SKIP.by(each.name)) for each in self.afresh}
        """The answer of each plugin asked afresh that is known to skip."""
        declared = [(each.name, profile.capabilities[each.name].skips_spec) for each in self.afresh]
        self._declared = [(name, skips) for name, skips in declared if skips is not None]

    def skips(self, pod: PodInfo) -> _Skips:
        """Return which plugins asked afresh skip pods of this spec, found once for each spec."""
        found: _Skips | None = pod.spec_memo.get(self)
        if found is None:
            found = pod.spec_memo[self] = self._find_skips(pod)
        return found

    def _find_skips(self, pod: PodInfo) -> _Skips:
        always: list[str] = []
        conditions: list[Callable[[Snapshot], bool]] = []
        for name, skips_spec in self._declared:
            try:
                skips = skips_spec(pod)
            except Exception:  # asked by its PreFilter, where failures are contained
                continue
            if callable(skips):
                conditions.append(skips)
            elif skips:
                always.append(name)
        is_all = len(always) + len(conditions) == len(self.afresh)
        return _Skips(frozenset(always), tuple(conditions), is_all)


class PreFilterCache:
    """PreFilter for one shape.

    Parameters
    ----------
    plugins
        The PreFilter plugins of the profile.
    state
        The state that the shape's reusable plugins write.
    """

    __slots__ = ("_answers", "_lets_every_node", "_outcomes", "_plugins", "_state", "_written")

    def __init__(self, plugins: PreFilterPlugins, state: CycleState) -> None:
        self._plugins = plugins
        self._state = state
        self._answers: dict[str, PreFilterAnswer] = {}
        self._outcomes: dict[tuple[bool, ...], tuple[PreFilterOutcome, frozenset[str]]] = {}
        """The outcome, and the plugins that skip, for attempts in which every plugin skips or lets
        every node be searched. The key says of each plugin asked afresh whether it skips."""
        self._lets_every_node = False
        """Whether every reusable plugin has answered, and lets every node be searched or skips."""
        self._written: dict[str, frozenset[StateKey[Any]]] = {}
        """The keys that each reusable plugin has written."""

    def follow(self, changes: Changes) -> None:
        """Keep every answer: the answer of a reusable plugin's PreFilter depends on no row."""

    def forget(self) -> None:
        """Forget every answer; the values that plugins wrote stay until they write them again."""
        self._answers.clear()
        self._outcomes.clear()
        self._lets_every_node = False

    @property
    def nbytes(self) -> int:
        """Memory of the answers, bytes."""
        return len(self._answers) * _ANSWER_BYTES

    def run(self, attempt: Attempt) -> PreFilterOutcome:
        """Run PreFilter; the plugins answer from the cache where they can.

        The outcome of an earlier attempt in which the same plugins skipped holds again where no
        plugin objects. Otherwise the answers are put together as `run_pre_filter` does.
        """
        state = attempt.state
        state.absorb(self._state)
        if not self._lets_every_node:
            return self._put_together(attempt, {})
        # An attempt whose plugins are timed one by one asks them all, because each is timed.
        skips = _NONE if state.timed else self._plugins.skips(attempt.pod)
        if skips.is_all and skips.holds_now(attempt.snapshot):
            known = self._outcomes.get(self._plugins.all_skip)
            if known is not None:
                outcome, state.skip_filter = known
                return outcome
        return self._ask_afresh(attempt, skips)

    def _ask_afresh(self, attempt: Attempt, skips: _Skips) -> PreFilterOutcome:
        """Ask the plugins asked afresh, and look up the outcome of their answers."""
        state = attempt.state
        answers: dict[str, PreFilterAnswer] = {}
        skipping: list[bool] = []
        always, pod, snapshot = skips.always, attempt.pod, attempt.snapshot
        for plugin in self._plugins.afresh:
            name = plugin.name
            if name in always:
                answers[name] = self._plugins.skip_of[name]
                skipping.append(True)
                continue
            answer = answers[name] = pre_filter_one(plugin, state, pod, snapshot)
            skipping.append(answer[1].code is SKIP_CODE)
            if not _is_plain(answer):
                return self._put_together(attempt, answers)
        key = tuple(skipping)
        known = self._outcomes.get(key)
        if known is None:
            outcome = self._put_together(attempt, answers)
            known = self._outcomes[key] = outcome, state.skip_filter
        outcome, state.skip_filter = known
        return outcome

    def _put_together(
        self, attempt: Attempt, answers: Mapping[str, PreFilterAnswer]
    ) -> PreFilterOutcome:
        """Combine the given answers with the answers of all other plugins."""
        names: set[str] = set()

        def ask(plugin: PreFilterPlugin) -> PreFilterAnswer:
            names.add(plugin.name)
            found = answers.get(plugin.name)
            return self._run_plugin(attempt, plugin) if found is None else found

        state, pod = attempt.state, attempt.pod
        outcome = run_pre_filter(attempt.profile, state, pod, attempt.snapshot, ask=ask)
        # A rejection may end PreFilter early: the state of an earlier replica goes further.
        for name in self._written.keys() - names:
            for key in self._written[name]:
                state.delete(key)
        if len(self._answers) == self._plugins.cached_count:
            self._lets_every_node = all(map(_is_plain, self._answers.values()))
        return outcome

    def _run_plugin(self, attempt: Attempt, plugin: PreFilterPlugin) -> PreFilterAnswer:
        """Answer for a plugin: from the cache, or by asking it."""
        state, pod, snapshot = attempt.state, attempt.pod, attempt.snapshot
        if plugin.name in self._plugins.afresh_names:
            return pre_filter_one(plugin, state, pod, snapshot)
        known = self._answers.get(plugin.name)
        if known is None:
            self._state.metered_like(state)
            before = self._state.keys()
            known = pre_filter_one(plugin, self._state, pod, snapshot)
            written = self._written.get(plugin.name, frozenset())
            self._written[plugin.name] = written | (self._state.keys() - before)
            state.absorb(self._state)
            if known[1].code is not Code.ERROR:
                self._keep_answer(plugin.name, known)
        return known

    def _keep_answer(self, name: str, answer: PreFilterAnswer) -> None:
        self._answers[name] = answer
        if answer[1].code is Code.SKIP:
            self._state.skip_filter |= {name}


def _is_plain(answer: PreFilterAnswer) -> bool:
    """Whether a plugin skips, or lets the attempt go on with every node."""
    result, status = answer
    code = status.code
    if code is SKIP_CODE:
        return True
    return code is SUCCESS_CODE and (result is None or result.node_names is None)

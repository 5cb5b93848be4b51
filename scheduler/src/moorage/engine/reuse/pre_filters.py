"""The pre-filter cache: the outcome of PreFilter for one shape.

The answers of reusable plugins are kept. The plugins asked afresh mostly skip, as for the previous
replica. Then the outcome of the previous attempt holds again. Plugins that know which pods they
skip (capability `skips_spec`) are not even asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from moorage.engine.attempt import Attempt
from moorage.framework.caches import Changes
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.points import PreFilterOutcome, PreFilterPlugin
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    PreFilterAnswer,
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
_NO_KEYS: Final[frozenset[StateKey[Any]]] = frozenset()

_Outcomes: TypeAlias = dict[tuple[bool, ...], tuple[PreFilterOutcome, frozenset[str]]]
"""The outcome, and the plugins that skip, by which of the plugins asked afresh skip."""


class PreFilterPlugins:
    """The PreFilter plugins of a profile, split into plugins with and without kept answers.

    Parameters
    ----------
    profile
        The profile.
    shared
        Names of the reusable plugins whose answers several shapes share.
    """

    def __init__(self, profile: Profile, shared: frozenset[str]) -> None:
        names = profile.asked_afresh
        self.afresh = [plugin for plugin in profile.pre_filters if plugin.name in names]
        self.afresh_names = frozenset(plugin.name for plugin in self.afresh)
        self.shared = [each for each in profile.pre_filters if each.name in shared]
        self.own = [each for each in profile.pre_filters if each.name not in names | shared]
        """The reusable plugins, with answers for several shapes and with answers for one."""
        self.shared_names = shared
        self.outcomes: dict[frozenset[str], _Outcomes] = {}
        """By the reusable plugins that skip, the outcomes where no plugin objects."""
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


class PreFilterAnswers:
    """The kept answers of some reusable plugins, and the values that they wrote.

    Parameters
    ----------
    plugins
        The plugins, in order.
    state
        The state that they write.

    Attributes
    ----------
    by_name
        The answers so far.
    written
        The keys that each plugin has written.
    """

    __slots__ = ("_plugins", "_skipping", "by_name", "state", "written")

    def __init__(self, plugins: Sequence[PreFilterPlugin], state: CycleState) -> None:
        self._plugins = plugins
        self._skipping: frozenset[str] | None = None
        self.state = state
        self.by_name: dict[str, PreFilterAnswer] = {}
        self.written: dict[str, frozenset[StateKey[Any]]] = {}

    def forget(self) -> None:
        """Forget every answer; the values that plugins wrote stay until they write them again."""
        self.by_name.clear()
        self._skipping = None

    def ask(self, attempt: Attempt, plugin: PreFilterPlugin) -> PreFilterAnswer:
        """Return the answer of a plugin, which is asked the first time."""
        answer = self.by_name.get(plugin.name)
        if answer is None:
            state = self.state
            state.metered_like(attempt.state)
            before = state.keys()
            answer = pre_filter_one(plugin, state, attempt.pod, attempt.snapshot)
            written = self.written.get(plugin.name, _NO_KEYS)
            self.written[plugin.name] = written | (state.keys() - before)
            if answer[1].code is not Code.ERROR:
                self.by_name[plugin.name] = answer
                if answer[1].code is Code.SKIP:
                    state.skip_filter |= {plugin.name}
        return answer

    def skipping(self, attempt: Attempt, *, asks: bool) -> frozenset[str] | None:
        """Return the plugins that skip; None where one objects or, unless `asks`, is not known."""
        if self._skipping is None:
            by_name = self.by_name
            for plugin in self._plugins:
                answer = by_name.get(plugin.name)
                if answer is None and asks:
                    answer = self.ask(attempt, plugin)
                if answer is None or not _is_plain(answer):
                    return None
            found = by_name.items()
            self._skipping = frozenset([name for name, each in found if each[1].code is SKIP_CODE])
        return self._skipping


class PreFilterCache:
    """PreFilter for one shape.

    Parameters
    ----------
    plugins
        The PreFilter plugins of the profile.
    shared
        The answers that the shape shares with others.
    state
        The state that the shape's reusable plugins write, and into which shared values are taken.
    """

    __slots__ = ("_outcomes", "_own", "_plugins", "_shared", "_state")

    def __init__(
        self, plugins: PreFilterPlugins, shared: PreFilterAnswers, state: CycleState
    ) -> None:
        self._plugins = plugins
        self._shared = shared
        self._own = PreFilterAnswers(plugins.own, state)
        self._state = state
        self._outcomes: _Outcomes | None = None
        """The outcomes where no plugin objects; None until every reusable plugin has answered, and
        where one of them objects."""

    def follow(self, changes: Changes) -> None:
        """Keep every answer: the answer of a reusable plugin's PreFilter depends on no row."""

    def forget(self) -> None:
        """Forget every answer; the values that plugins wrote stay until they write them again."""
        self._own.forget()
        self._outcomes = None

    @property
    def nbytes(self) -> int:
        """Memory of the answers, bytes."""
        return len(self._own.by_name) * _ANSWER_BYTES

    def run(self, attempt: Attempt) -> PreFilterOutcome:
        """Run PreFilter; the plugins answer from the cache where they can.

        The outcome of an earlier attempt in which the same plugins skipped holds again where no
        plugin objects. Otherwise the answers are put together as `run_pre_filter` does.
        """
        state = attempt.state
        outcomes = self._outcomes
        if outcomes is None:
            outcomes = self._find_outcomes(attempt)
        state.absorb(self._state)
        if outcomes is None:
            return self._put_together(attempt, {})
        # An attempt whose plugins are timed one by one asks them all, because each is timed.
        skips = _NONE if state.timed else self._plugins.skips(attempt.pod)
        if skips.is_all and skips.holds_now(attempt.snapshot):
            known = outcomes.get(self._plugins.all_skip)
            if known is not None:
                outcome, state.skip_filter = known
                return outcome
        return self._ask_afresh(attempt, skips, outcomes)

    def _find_outcomes(self, attempt: Attempt) -> _Outcomes | None:
        """Return the outcomes where no plugin objects; None where a reusable plugin objects.

        None also where a shared answer is missing: then all are put together, in order.
        """
        shared = self._shared.skipping(attempt, asks=False)
        own = None if shared is None else self._own.skipping(attempt, asks=True)
        if shared is None or own is None:
            return None
        self._take_over_shared()
        self._outcomes = self._plugins.outcomes.setdefault(shared | own, {})
        return self._outcomes

    def _ask_afresh(self, attempt: Attempt, skips: _Skips, outcomes: _Outcomes) -> PreFilterOutcome:
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
        known = outcomes.get(key)
        if known is None:
            outcome = self._put_together(attempt, answers)
            known = outcomes[key] = outcome, state.skip_filter
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
        for written in (self._shared.written, self._own.written):
            for name in written.keys() - names:
                for key in written[name]:
                    state.delete(key)
        return outcome

    def _run_plugin(self, attempt: Attempt, plugin: PreFilterPlugin) -> PreFilterAnswer:
        """Answer for a plugin: from the cache, or by asking it."""
        state, plugins = attempt.state, self._plugins
        if plugin.name in plugins.afresh_names:
            return pre_filter_one(plugin, state, attempt.pod, attempt.snapshot)
        answers = self._shared if plugin.name in plugins.shared_names else self._own
        answer = answers.ask(attempt, plugin)
        self._take_over_shared()
        state.absorb(self._state)
        return answer

    def _take_over_shared(self) -> None:
        """Take over the values that were written for all shapes with these parts."""
        self._state.absorb(self._shared.state)
        self._state.skip_filter |= self._shared.state.skip_filter


def _is_plain(answer: PreFilterAnswer) -> bool:
    """Whether a plugin skips without a word, or lets the attempt go on with every node."""
    result, status = answer
    code = status.code
    if code is SKIP_CODE:
        return not status.reasons
    return code is SUCCESS_CODE and (result is None or result.node_names is None)

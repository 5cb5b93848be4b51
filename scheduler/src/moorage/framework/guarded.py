"""Wraps a plugin from outside for the engine: vector form, time budget, checked answers.

In-tree plugins are never wrapped, so wrapping costs them nothing.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.base.errors import ConfigError
from moorage.framework import checking
from moorage.framework.capabilities import TRAITS, Capabilities, RowScorer, capabilities_of
from moorage.framework.containment import (
    RAISED,
    WRONG_ANSWER,
    Containment,
    PluginFailedError,
    WrongAnswerError,
    contained,
    harmless,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.extender import EVERY_EVENT
from moorage.framework.group import FilledPlacement
from moorage.framework.handle import Handle
from moorage.framework.points import (
    EventRegistration,
    HintFunction,
    QueuedPodInfo,
    ScoreArray,
)
from moorage.framework.raised import text_of
from moorage.framework.registry import METHODS
from moorage.framework.roles import ROLES, Role, roles_of
from moorage.framework.status import Code, FilterAnswer, Status, answer_from
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.shifted import RowSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_log = logging.getLogger(__name__)

_Check = Callable[[Any, str], Any]

_CHECKED: Final[dict[str, _Check]] = {
    "pre_enqueue": checking.as_status,
    "pre_filter": checking.as_pre_filter,
    "post_filter": checking.as_post_filter,
    "pre_score": checking.as_status,
    "reserve": checking.as_status,
    "permit": checking.as_permit,
    "pre_bind_pre_flight": checking.as_status,
    "generate_placements": checking.as_placements,
}
_AWAITED: Final = ("pre_bind", "bind")
_ANSWERLESS: Final = ("add_pod", "remove_pod", "unreserve")
_PASS: Final = (0, 0)


class Guarded:
    """A plugin from outside, with the methods of the points it extends, and no other methods.

    Parameters
    ----------
    name
        The name by which the plugin is configured.
    plugin
        The plugin, made already.
    handle
        The handle that the plugin was given.
    containment
        Calls the plugin.
    """

    def __init__(self, name: str, plugin: Any, handle: Handle, containment: Containment) -> None:
        self.name = name
        self._plugin = plugin
        self._handle = handle
        self._containment = containment
        self._declared = capabilities_of(name, plugin)
        self._broken_epochs = 0
        for method in (*_CHECKED, *_ANSWERLESS):
            if hasattr(plugin, method):
                setattr(self, method, self._checked_call(method, _CHECKED.get(method)))
        for method in _AWAITED:
            if hasattr(plugin, method):
                setattr(self, method, self._awaited(method, checking.as_status))
        if hasattr(plugin, "less"):
            self.sort_key = self._compared()
        special: dict[str, Callable[..., Any]] = {
            "post_bind": self._awaited("post_bind", None),
            "sort_key": self._sort_keys(),
            "filter_node": self._filter_nodes,
            "filter": self._filter,
            "score_node": self._score_nodes,
            "score": self._score,
            "normalize": self._normalize,
            "score_placements": self._score_placements,
        }
        for method, guarded in special.items():
            if hasattr(plugin, method):
                # The scalar forms come out as the vector ones; a plugin's own vector form wins.
                setattr(self, method.removesuffix("_node"), guarded)
        self.capabilities = self._guarded_capabilities()
        self.roles = self._checked_roles()

    def _guarded_capabilities(self) -> Capabilities:
        """Return the plugin's capabilities, with functions guarded like its methods.

        Raises
        ------
        ConfigError
            The plugin declares a capability that only in-tree plugins may declare.
        """
        capabilities = self._declared
        faults = [
            f'plugin "{self.name}": capability {name} is for in-tree plugins only'
            for name in capabilities.declared()
            if not TRAITS[name].from_outside
        ]
        if faults:
            raise ConfigError(faults)
        return msgspec.structs.replace(
            capabilities,
            epoch=self._epoch if capabilities.epoch else None,
            never_reused=self._never_reused if capabilities.never_reused else None,
            filter_row=self._filter_row if capabilities.filter_row else None,
            row_scorer=self._row_scorer if capabilities.row_scorer else None,
        )

    def _checked_roles(self) -> Role:
        """Return the plugin's roles, and the role of a scalar Filter.

        Raises
        ------
        ConfigError
            The plugin declares a role that only in-tree plugins may declare.
        """
        plugin = self._plugin
        declared = roles_of(self.name, plugin)
        faults = [
            f'plugin "{self.name}": role {role.name} is for in-tree plugins only'
            for role, rules in ROLES.items()
            if role in declared and not rules.from_outside
        ]
        if faults:
            raise ConfigError(faults)
        scalar = hasattr(plugin, "filter_node") and not hasattr(plugin, "filter")
        return declared | Role.FILTERS_CANDIDATES if scalar else declared

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the plugin's events; every event for a plugin without any (framework section 4).

        Raises
        ------
        ConfigError
            The plugin broke; no attempt has started yet.
        """
        if not hasattr(self._plugin, "events_to_register"):
            return EVERY_EVENT
        try:
            registrations: tuple[Any, ...] = self._call_plugin("events_to_register", read=tuple)
        except Exception as problem:
            text = text_of(problem)
            raise ConfigError([f'plugin "{self.name}" at events_to_register: {text}']) from problem
        for each in registrations:
            if not isinstance(each, EventRegistration):
                text = f'plugin "{self.name}" at events_to_register: {each!r} is no registration'
                raise ConfigError([text])
        return tuple(
            each if each.hint is None else EventRegistration(each.event, self._hint(each.hint))
            for each in registrations
        )

    # -- calls ---------------------------------------------------------------------------------

    def _call_plugin(
        self, method: str, *args: Any, read: Callable[[Any], Any] | None = None, **kwargs: Any
    ) -> Any:
        """Ask the plugin, and read the answer, which may run code of the plugin, too."""
        call = getattr(self._plugin, method)
        if read is not None:
            call = _then(call, read)
        return self._containment.ask(self.name, METHODS[method][0], call, *args, **kwargs)

    def _checked_call(self, method: str, check: _Check | None) -> Callable[..., Any]:
        read = _nothing if check is None else self._checked(check)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call_plugin(method, *args, read=read, **kwargs)

        return call

    def _awaited(self, method: str, check: _Check | None) -> Callable[..., Awaitable[Any]]:
        point, _ = METHODS[method]
        read = _nothing if check is None else self._checked(check)

        async def call(*args: Any) -> Any:
            answer = self._call_plugin(method, *args)
            if inspect.isawaitable(answer):
                answer = await self._containment.stepwise(self.name, point, answer)
            return self._containment.ask(self.name, point, read, answer)

        return call

    def _checked(self, check: _Check) -> Callable[[Any], Any]:
        name = self.name
        return lambda answer: check(answer, name)

    def _hint(self, hint: HintFunction) -> HintFunction:
        answers = _then(hint, bool)

        def guarded(pod: Pod, old: object | None, new: object | None) -> bool:
            found: bool = self._containment.ask(self.name, "events", answers, pod, old, new)
            return found

        return guarded

    def _sort_keys(self) -> Callable[..., tuple[Any, ...]]:
        check = checking.SortKeys()

        def sort_key(priority: int, timestamp_ns: int, pod: Pod) -> tuple[Any, ...]:
            """Return the plugin's key; pods without a key come last, as PrioritySort has them."""
            try:
                return (0, self._call_plugin("sort_key", priority, timestamp_ns, pod, read=check))
            except Exception:
                _log.exception("plugin %s failed at QueueSort for pod %s", self.name, pod.full_name)
                return (1, (-priority, timestamp_ns))

        return sort_key

    def _compared(self) -> Callable[..., tuple[Any, ...]]:
        """Return keys that ask the plugin's comparator; where it fails, PrioritySort's order."""

        def before(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
            return bool(self._call_plugin("less", first, second, read=checking.as_yes_or_no))

        def compare(first: QueuedPodInfo, second: QueuedPodInfo) -> int:
            try:
                return -1 if before(first, second) else int(before(second, first))
            except Exception as problem:
                contained(self.name, "QueueSort", problem)
                ranks = [(-each.priority, each.timestamp_ns) for each in (first, second)]
                return -1 if ranks[0] < ranks[1] else int(ranks[0] > ranks[1])

        key = functools.cmp_to_key(compare)

        def sort_key(priority: int, timestamp_ns: int, pod: Pod) -> tuple[Any, ...]:
            return (key(QueuedPodInfo(info_of(pod), priority, timestamp_ns)),)

        return sort_key

    # -- vector points -------------------------------------------------------------------------

    def _filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        name, rows, reasons = self.name, len(view), self._handle.reasons
        filter_answer: FilterAnswer | None = self._call_plugin(
            "filter",
            state,
            pod,
            view,
            read=lambda answer: checking.as_filter_answer(answer, name, rows, reasons),
        )
        return filter_answer

    def _score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        found: ScoreArray = self._call_plugin("score", state, pod, view, read=_numbers(len(view)))
        return found

    def _normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        # A copy: the raw scores may be kept for the next replica.
        found: ScoreArray = self._call_plugin(
            "normalize", state, pod, raw_n.copy(), read=_numbers(len(raw_n))
        )
        return found

    def _score_placements(
        self, key: GroupKey, filled: Sequence[FilledPlacement]
    ) -> tuple[ScoreArray, Status]:
        name = self.name
        scores_and_status: tuple[ScoreArray, Status] = self._call_plugin(
            "score_placements",
            key,
            filled,
            read=lambda answer: checking.as_placement_scores(answer, name, len(filled)),
        )
        return scores_and_status

    # -- single rows: what breaks here is asked again in vector form, and judged there -----------

    # -- capabilities --------------------------------------------------------------------------

    def _never_reused(self, pod: PodInfo) -> bool:
        """Ask the plugin; without a clear answer no answer is reused, which is always safe."""
        ask, declared = self._containment.ask, self._declared.never_reused
        assert declared is not None, "guarded because it is declared"
        try:
            return ask(self.name, "PreFilter", declared, pod) is not False
        except Exception as problem:
            contained(self.name, "PreFilter", problem)
            return True

    def _epoch(self, snapshot: Snapshot) -> int:
        """Ask the plugin; without a number every answer counts as changed, which is always safe."""
        ask, declared = self._containment.ask, self._declared.epoch
        assert declared is not None, "guarded because it is declared"
        try:
            epoch: int = ask(self.name, "PreFilter", _then(declared, checking.as_score), snapshot)
        except Exception as problem:
            contained(self.name, "PreFilter", problem)
            self._broken_epochs += 1
            epoch = -self._broken_epochs
        return epoch

    def _filter_row(
        self, state: CycleState, pod: PodInfo, row: int, more: RowSums
    ) -> tuple[int, int] | None:
        """Ask the plugin; only that the row passes is taken from it without the vector form."""
        ask, declared = self._containment.ask, self._declared.filter_row
        assert declared is not None, "guarded because it is declared"
        passes = ask(self.name, "Filter", _then(declared, _is_pass), state, pod, row, more)
        return _PASS if passes else None

    def _row_scorer(self, state: CycleState, pod: PodInfo) -> RowScorer | None:
        ask, name, declared = self._containment.ask, self.name, self._declared.row_scorer
        assert declared is not None, "guarded because it is declared"
        scorer = ask(name, "Score", declared, state, pod)
        if scorer is None:
            return None
        score = _then(scorer, _score_or_none)
        return lambda row: ask(name, "Score", score, row)

    # -- scalar points: the budget is for all nodes together -----------------------------------

    def _filter_nodes(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        failures: list[Exception] = []
        statuses = self._containment.ask(
            self.name, "Filter", self._filter_pass, state, pod, view, failures
        )
        if failures:
            wrong = isinstance(failures[0], WrongAnswerError)
            self._containment.count_failure(self.name, "Filter", WRONG_ANSWER if wrong else RAISED)
            _log.error(
                "plugin %s failed at Filter for %d nodes, this is the first",
                self.name,
                len(failures),
                exc_info=failures[0],
            )
        return answer_from(statuses, self._handle.reasons)

    def _filter_pass(
        self, state: CycleState, pod: PodInfo, view: NodeView, failures: list[Exception]
    ) -> list[Status]:
        """Ask about every row; a failure on a node that another plugin rejects is harmless."""
        ask, name = self._plugin.filter_node, self.name
        statuses: list[Status] = []
        for node in self._nodes(view):
            try:
                status = checking.as_status(ask(state, pod, node), name)
            except Exception as problem:
                text = text_of(problem)
                failures.append(harmless(problem, text))
                status = Status(Code.ERROR, (f"node {node.name}: {text}",))
            statuses.append(status)
        return statuses

    def _score_nodes(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        found: ScoreArray = self._containment.ask(
            self.name, "Score", self._score_pass, state, pod, view
        )
        return found

    def _score_pass(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        ask = self._plugin.score_node
        scores = np.zeros(len(view), np.int64)
        for position, node in enumerate(self._nodes(view)):
            try:
                scores[position] = checking.as_score(ask(state, pod, node))
            except Exception as problem:
                text = text_of(problem)
                wrong = isinstance(problem, WrongAnswerError)
                kind = WrongAnswerError if wrong else PluginFailedError
                raise kind(f"node {node.name}: {text}") from problem
        return scores

    def _nodes(self, view: NodeView) -> Sequence[NodeInfo]:
        info = self._handle.snapshot.node_info
        return [info(row) for row in view.row_numbers().tolist()]


def _then(call: Callable[..., Any], read: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function that reads the answer of another."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        return read(call(*args, **kwargs))

    return answer


def _nothing(answer: object) -> None:
    """Read an answer that means nothing."""
    del answer


def _numbers(rows: int) -> Callable[[Any], ScoreArray]:
    return lambda answer: checking.as_scores(answer, rows)


def _is_pass(answer: object) -> bool:
    return isinstance(answer, tuple) and answer == _PASS


def _score_or_none(answer: object) -> int | None:
    return None if answer is None else checking.as_score(answer)

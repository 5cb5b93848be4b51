"""Runs the plugins of a point, one loop for every point, and contains plugins that raise.

An exception in a plugin becomes the status Error, with the plugin's name: the attempt fails and
is retried, the scheduler goes on. Texts follow kubernetes v1.36
``pkg/scheduler/framework/runtime/framework.go``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api.pod import Pod
from moorage.base.no_names import NO_NAMES
from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import GroupProgress
from moorage.framework.meter import NOT_TIMED, POST_FILTER, PRE_FILTER, PRE_SCORE
from moorage.framework.points import (
    PostFilterPlugin,
    PostFilterResult,
    PreFilterOutcome,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
)
from moorage.framework.profile import Profile
from moorage.framework.status import (
    SKIP_CODE,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_log = logging.getLogger(__name__)

# Permit never holds a pod longer than this (kubernetes v1.36, maxTimeout).
PERMIT_WAIT_SECONDS_MAX = 15 * 60.0
_WAITING = "one or more plugins asked to wait and no plugin rejected pod"


def _call(state: CycleState, plugin: Any, point: str, call: Callable[[], Status]) -> Status:
    began_ns = state.begins()
    try:
        status = call().by(plugin.name)
    except Exception as problem:
        status = contained(plugin.name, point, problem)
    state.ended(plugin.name, point, status.code, since_ns=began_ns)
    return status


def run_pre_enqueue(profile: Profile, pod: Pod) -> Status:
    """Run PreEnqueue until one plugin does not let the pod in."""
    calls = ((plugin.name, plugin.pre_enqueue) for plugin in profile.pre_enqueue)
    return _first_refusal(calls, "PreEnqueue", pod)


def run_placement_feasible(profile: Profile, key: GroupKey, progress: GroupProgress) -> Status:
    """Ask whether a group may be placed: the first rejection or error, else Wait, else Success."""
    answer = SUCCESS
    for plugin in profile.group_feasibility:
        try:
            status = plugin.placement_feasible(key, progress).by(plugin.name)
        except Exception as problem:
            status = contained(plugin.name, "PlacementFeasible", problem)
        if status.code is Code.WAIT:
            answer = status
        elif not status.ok:
            return status
    return answer


def run_group_gates(profile: Profile, pod: Pod) -> Status:
    """Ask the plugins for groups until one does not let the pod into the attempt of its group."""
    calls = ((plugin.name, plugin.group_ready) for plugin in profile.group_gates)
    return _first_refusal(calls, "PreFilter", pod)


def _first_refusal(
    calls: Iterable[tuple[str, Callable[[Pod], Status]]], point: str, pod: Pod
) -> Status:
    for name, call in calls:
        try:
            status = call(pod).by(name)
        except Exception as problem:
            status = contained(name, point, problem)
        if not status.ok:
            return status
    return SUCCESS


PreFilterAnswer = tuple[PreFilterResult | None, Status]
AskPreFilter = Callable[[PreFilterPlugin], PreFilterAnswer]


def run_pre_filter(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    ask: AskPreFilter | None = None,
) -> PreFilterOutcome:
    """Run PreFilter in order (scheduling spec, cycle section 3.2).

    Unschedulable is remembered and the rest still run, so that preemption has their state;
    UnschedulableAndUnresolvable, an empty set of nodes and errors stop at once.

    Parameters
    ----------
    profile, state, pod, snapshot
        The attempt.
    ask
        How a plugin is asked; the default calls it. (A cache answers for replicas.)
    """
    if ask is None:

        def ask(plugin: PreFilterPlugin) -> PreFilterAnswer:
            return pre_filter_one(plugin, state, pod, snapshot)

    skipped: set[str] = set()
    outcome = _pre_filtered(profile, ask, skipped)
    if skipped:
        state.skip_filter = frozenset(skipped)
    return outcome


def _pre_filtered(profile: Profile, ask: AskPreFilter, skipped: set[str]) -> PreFilterOutcome:
    """Ask the plugins in order, and note the plugins that skip."""
    results: dict[str, Status] = {}
    restricted: dict[str, frozenset[str]] = {}
    names: frozenset[str] | None = None
    remembered: Status | None = None
    for plugin in profile.pre_filters:
        result, status = ask(plugin)
        if not status.ok:
            results[plugin.name] = status
        if status.code is SKIP_CODE:
            skipped.add(plugin.name)
        elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PreFilterOutcome(status, None, frozenset({plugin.name}), results, restricted)
        elif status.code is Code.UNSCHEDULABLE:
            remembered = status
        elif not status.ok:
            text = f'running PreFilter plugin "{plugin.name}": {status.message}'
            return PreFilterOutcome(
                error(text).by(plugin.name), None, NO_NAMES, results, restricted
            )
        elif result is not None and result.node_names is not None:
            restricted[plugin.name] = result.node_names
            names = result.node_names if names is None else names & result.node_names
            if not names:
                return _nothing_left(restricted, results)
    plugins = frozenset(restricted)
    if remembered is not None:
        plugins |= {remembered.plugin}
        return PreFilterOutcome(remembered, None, plugins, results, restricted)
    return PreFilterOutcome(SUCCESS, names, plugins, results, restricted)


def pre_filter_one(
    plugin: PreFilterPlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot
) -> PreFilterAnswer:
    """Ask one plugin, containing its exceptions."""
    began_ns = state.begins()
    try:
        result, status = plugin.pre_filter(state, pod, snapshot)
    except Exception as problem:
        result, status = None, contained(plugin.name, PRE_FILTER, problem)
    state.ended(plugin.name, PRE_FILTER, status.code, since_ns=began_ns)
    return result, status if status is SUCCESS else status.by(plugin.name)


def _nothing_left(
    restricted: Mapping[str, frozenset[str]], results: Mapping[str, Status]
) -> PreFilterOutcome:
    names = sorted(restricted)
    text = (
        f"node(s) didn't satisfy plugin {names[0]}"
        if len(names) == 1
        else f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
    )
    return PreFilterOutcome(unresolvable(text), NO_NAMES, frozenset(names), results, restricted)


PostFilterAnswer = tuple[PostFilterResult | None, Status]
AskPostFilter = Callable[[PostFilterPlugin, Mapping[str, Status]], PostFilterAnswer]


def post_filter_one(
    plugin: PostFilterPlugin,
    state: CycleState,
    pod: PodInfo,
    node_to_status: Mapping[str, Status],
) -> PostFilterAnswer:
    """Ask one plugin, containing its exceptions."""
    began_ns = state.begins()
    try:
        result, status = plugin.post_filter(state, pod, node_to_status)
    except Exception as problem:
        result, status = None, contained(plugin.name, POST_FILTER, problem)
    state.ended(plugin.name, POST_FILTER, status.code, since_ns=began_ns)
    return result, status.by(plugin.name)


class PostFilterOutcome(msgspec.Struct, frozen=True):
    """The outcome of the PostFilter plugins: a status, its text, and a proposal or None."""

    status: Status
    message: str
    result: PostFilterResult | None = None


def run_post_filter(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    node_to_status: Mapping[str, Status],
    *,
    ask: AskPostFilter | None = None,
) -> PostFilterOutcome:
    """Run PostFilter in order (scheduling spec, plugin index section 2).

    Parameters
    ----------
    profile, state, pod, node_to_status
        The attempt, and the status of every node.
    ask
        How a plugin is asked; directly when None.
    """
    reasons: list[str] = []
    first_result: PostFilterResult | None = None
    for plugin in profile.post_filters:
        if ask is None:
            result, status = post_filter_one(plugin, state, pod, node_to_status)
        else:
            result, status = ask(plugin, node_to_status)
        if status.code is Code.UNSCHEDULABLE:
            reasons += status.reasons
            if result is not None and result.nominated_node is not None:
                first_result = result
        elif status.ok:
            return PostFilterOutcome(status, "", result)
        elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterOutcome(status, status.message, result)
        else:  # after a failure the nomination stays as it is
            return PostFilterOutcome(error(status.message).by(plugin.name), status.message)
    return PostFilterOutcome(unschedulable(*reasons), ", ".join(reasons), first_result)


def run_pre_score(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    feasible: NodeView,
    *,
    only: Sequence[PreScorePlugin] | None = None,
) -> Status:
    """Run PreScore; Skip takes the plugin out of scoring, a failure ends the cycle.

    Parameters
    ----------
    profile, state, pod, feasible
        The attempt and its feasible rows.
    only
        The plugins to run; all when None.
    """
    skipped: list[str] = []
    for plugin in profile.pre_scores if only is None else only:
        began_ns = state.begins() if state.timed else NOT_TIMED
        try:
            status = plugin.pre_score(state, pod, feasible)
        except Exception as problem:
            status = contained(plugin.name, PRE_SCORE, problem)
        if status.code is SKIP_CODE:
            skipped.append(plugin.name)
            if not state.timed:
                continue  # a call that answers Skip is not counted
        state.ended(plugin.name, PRE_SCORE, status.code, since_ns=began_ns)
        if not (status.ok or status.code is SKIP_CODE):
            text = f'running PreScore plugin "{plugin.name}": {status.message}'
            return error(text).by(plugin.name)
    state.skip_score = frozenset(skipped)
    return SUCCESS


def run_reserve(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> Status:
    """Run Reserve in order; stop at the first that does not succeed."""
    for plugin in profile.reserves:
        status = _call(
            state,
            plugin,
            "Reserve",
            lambda plugin=plugin: plugin.reserve(state, pod, node_name),  # type: ignore[misc]
        )
        if status.rejected:
            return status
        if not status.ok:
            text = f'running Reserve plugin "{plugin.name}": {status.message}'
            return error(text).by(plugin.name)
    return SUCCESS


def run_unreserve(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> None:
    """Run Unreserve of every Reserve plugin, last first, whether or not it was reached."""
    for plugin in reversed(profile.reserves):
        began_ns = state.begins()
        try:
            plugin.unreserve(state, pod, node_name)
        except Exception as problem:
            contained(plugin.name, "Unreserve", problem)
        state.ended(plugin.name, "Unreserve", Code.SUCCESS, since_ns=began_ns)


class PermitOutcome(msgspec.Struct, frozen=True):
    """Success, a rejection, or Wait with the longest wait in seconds by plugin.

    A Wait carries the reasons of the last plugin that asked, and one reason that names the wait.
    """

    status: Status
    waits: Mapping[str, float] = {}


def run_permit(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> PermitOutcome:
    """Run Permit; plugins may ask to wait, the first rejection or error ends the point."""
    waits: dict[str, float] = {}
    reasons: tuple[str, ...] = ()
    for plugin in profile.permits:
        began_ns = state.begins()
        try:
            status, seconds = plugin.permit(state, pod, node_name)
        except Exception as problem:
            status, seconds = contained(plugin.name, "Permit", problem), 0.0
        state.ended(plugin.name, "Permit", status.code, since_ns=began_ns)
        status = status.by(plugin.name)
        if status.rejected:
            return PermitOutcome(status)
        if status.code is Code.WAIT:
            # NaN and negative numbers are not durations.
            waits[plugin.name] = max(0.0, min(seconds, PERMIT_WAIT_SECONDS_MAX))
            reasons = status.reasons
        elif not status.ok:
            text = f'running Permit plugin "{plugin.name}": {status.message}'
            return PermitOutcome(error(text).by(plugin.name))
    if not waits:
        return PermitOutcome(SUCCESS)
    return PermitOutcome(Status(Code.WAIT, (*reasons, _WAITING)), waits)

"""Runs the plugins of the binding task: PreBind, Bind and PostBind, plain or awaitable.

A plugin's exception becomes the status Error, with the plugin's name. Texts and order follow
kubernetes v1.36 ``pkg/scheduler/framework/runtime/framework.go``.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any

from moorage.base.errors import ExtenderError, ExtenderSilentError
from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.extender import Extender
from moorage.framework.points import PreBindPlugin
from moorage.framework.profile import Profile
from moorage.framework.status import ERROR_CODE, SKIP, SKIP_CODE, SUCCESS, Code, Status, error
from moorage.snapshot.pod_info import PodInfo

_log = logging.getLogger(__name__)


Work = Coroutine[Any, Any, Status]
Together = Callable[[Sequence[Work]], Awaitable[Status]]
"""Runs several pieces of work at once. When one of them fails, the others are cancelled. Returns
Success, or the first failure in the order of the pieces of work.
"""


def run_pre_bind_pre_flight(
    profile: Profile, state: CycleState, pod: PodInfo, node_name: str
) -> Status:
    """Ask which PreBind plugins have work: Success when at least one plugin has, else Skip."""
    skipped: set[str] = set()
    for plugin in profile.pre_flights:
        began_ns = state.begins()
        try:
            status = plugin.pre_bind_pre_flight(state, pod, node_name)
        except Exception as problem:
            status = contained(plugin.name, "PreBindPreFlight", problem)
        state.ended(plugin.name, "PreBindPreFlight", status.code, since_ns=began_ns)
        if status.code is SKIP_CODE:
            skipped.add(plugin.name)
        elif status.code is ERROR_CODE:
            text = f'running PreBindPreFlight "{plugin.name}": {status.message}'
            return error(text).by(plugin.name)
        elif not status.ok:
            text = (
                f'PreBindPreFlight {plugin.name} returned "{status.code.text}", which is '
                "unsupported. It is supposed to return Success, Skip, or Error status"
            )
            return error(text).by(plugin.name)
    state.skip_pre_bind = frozenset(skipped)
    return SUCCESS if len(skipped) < len(profile.pre_binds) else SKIP


async def run_pre_bind(
    profile: Profile, state: CycleState, pod: PodInfo, node_name: str, *, together: Together
) -> Status:
    """Run PreBind of the plugins that have work, group after group, until one does not succeed.

    Parameters
    ----------
    profile, state, pod, node_name
        The attempt; the state says which plugins are skipped.
    together
        How the plugins of a group are run at once.
    """
    for group in _groups(profile):
        works = [
            _pre_bind(plugin, state, pod, node_name)
            for plugin in group
            if plugin.name not in state.skip_pre_bind
        ]
        if not works:
            continue
        status = await (works[0] if len(works) == 1 else together(works))
        if not status.ok:
            return status
    return SUCCESS


def _groups(profile: Profile) -> Iterator[Sequence[PreBindPlugin]]:
    """Part the PreBind plugins into neighbours that may run at once, and single plugins.

    A plugin that must run alone parts its neighbours even when it is skipped.
    """
    group: list[PreBindPlugin] = []
    for plugin in profile.pre_binds:
        if profile.capabilities[plugin.name].pre_bind_parallel:
            group.append(plugin)
            continue
        yield group
        yield [plugin]
        group = []
    yield group


async def _pre_bind(
    plugin: PreBindPlugin, state: CycleState, pod: PodInfo, node_name: str
) -> Status:
    status = await _awaited(plugin, "PreBind", plugin.pre_bind, (state, pod, node_name))
    if status.ok or status.rejected:
        return status
    return error(f'running PreBind plugin "{plugin.name}": {status.message}').by(plugin.name)


async def run_bind(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> Status:
    """Run Bind until a plugin does not skip; if all skip, binding fails.

    An extender that binds, and is interested in the pod, comes before every plugin.
    """
    for extender in profile.extenders:
        if not (extender.binds and extender.interested(pod.pod)):
            continue
        try:
            await _bind_by(extender, profile, pod, node_name)
        except ExtenderError as problem:
            if not extender.ignorable:
                return error(str(problem))
            _log.info("extender %s is left out of binding: %s", extender.name, problem)
            continue
        return SUCCESS
    for plugin in profile.binds:
        status = await _awaited(plugin, "Bind", plugin.bind, (state, pod, node_name))
        if status.code is SKIP_CODE:
            continue
        if status.ok or status.rejected:
            return status
        return error(f'running Bind plugin "{plugin.name}": {status.message}').by(plugin.name)
    return SKIP


async def _bind_by(extender: Extender, profile: Profile, pod: PodInfo, node_name: str) -> None:
    """Have an extender bind; if its answer is lost, check whether the pod is bound."""
    try:
        await extender.bind(pod.pod, node_name)
    except ExtenderSilentError as lost:
        client = profile.handle.client
        if client is None or not await client.is_bound(pod.namespace, pod.name, pod.uid, node_name):
            raise
        _log.info("binding of %s by %s had happened: %s", pod.key, extender.name, lost)


async def run_post_bind(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> None:
    """Tell every PostBind plugin."""
    for plugin in profile.post_binds:
        began_ns = state.begins()
        try:
            outcome = plugin.post_bind(state, pod, node_name)
            if inspect.isawaitable(outcome):
                await outcome
        except Exception as problem:
            contained(plugin.name, "PostBind", problem)
        state.ended(plugin.name, "PostBind", Code.SUCCESS, since_ns=began_ns)


async def _awaited(
    plugin: Any,
    point: str,
    method: Callable[[CycleState, PodInfo, str], Any],
    args: tuple[CycleState, PodInfo, str],
) -> Status:
    state, began_ns = args[0], args[0].begins()
    try:
        outcome = method(*args)
        status: Status = await outcome if inspect.isawaitable(outcome) else outcome
    except Exception as problem:
        status = contained(plugin.name, point, problem)
    state.ended(plugin.name, point, status.code, since_ns=began_ns)
    return status.by(plugin.name)

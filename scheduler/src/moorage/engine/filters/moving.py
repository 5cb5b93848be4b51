"""Adds pods to rows of a trial and removes them; PreFilter results are updated.

Rules: scheduling spec, cycle section 3.4 (AddPod and RemovePod of PreFilter).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moorage.base.no_names import NO_NAMES
from moorage.engine.attempt import Attempt, CycleError
from moorage.framework.containment import contained
from moorage.framework.status import error
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.trial import Trial


def put_on_row(
    attempt: Attempt,
    trial: Trial,
    other: PodInfo,
    row: int,
    *,
    already: frozenset[str] = NO_NAMES,
) -> None:
    """Add a pod to a row in a trial; the attempt's cycle state is updated.

    Parameters
    ----------
    attempt, trial
        The attempt, and the trial.
    other, row
        The pod, and its row.
    already
        Names of the plugins that count the pod already.

    Raises
    ------
    CycleError
        A plugin failed.
    """
    trial.add_pod(other, row)
    state, pod = attempt.state, attempt.pod
    for plugin in attempt.profile.extensions:
        if plugin.name not in state.skip_filter and plugin.name not in already:
            _follow(plugin.name, "AddPod", partial(plugin.add_pod, state, pod, other, row=row))


def nominate_on_row(attempt: Attempt, trial: Trial, other: PodInfo, row: int) -> None:
    """Add a nominated pod to a row in a trial; plugins that counted the pod do not learn of it.

    Raises
    ------
    CycleError
        A plugin failed.
    """
    put_on_row(attempt, trial, other, row, already=attempt.profile.count_nominated)


def take_off_row(attempt: Attempt, trial: Trial, other: PodInfo, row: int) -> None:
    """Remove a pod from a row in a trial; the attempt's cycle state is updated.

    Raises
    ------
    CycleError
        A plugin failed.
    """
    trial.remove_pod(other.uid)
    state, pod = attempt.state, attempt.pod
    for plugin in attempt.profile.extensions:
        if plugin.name not in state.skip_filter:
            follow = partial(plugin.remove_pod, state, pod, other, row=row)
            _follow(plugin.name, "RemovePod", follow)


def _follow(name: str, point: str, call: Callable[[], None]) -> None:
    try:
        call()
    except Exception as problem:
        text = contained(name, point, problem).message
        message = f'running {point} on PreFilter plugin "{name}": {text}'
        raise CycleError(error(message).by(name)) from problem

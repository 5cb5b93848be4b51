"""Computes the status of a disruption budget from watched objects; no I/O.

``disruption`` watches, finds the scale of the pods' owners, and writes the computed status.

Rules: kubernetes v1.36 ``pkg/controller/disruption/disruption.go`` (trySync, getExpectedPodCount,
buildDisruptedPodMap, countHealthyPods, updatePdbStatus, failSafe).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.api.meta import Condition, OwnerReference
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339, rfc3339
from moorage.base.errors import MoorageError

Json: TypeAlias = dict[str, object]

DISRUPTION_TARGET: Final = "DisruptionTarget"
_ALLOWED: Final = "DisruptionAllowed"
# How long an evicted pod may take to show that it is being deleted (DeletionTimeout upstream).
_DELETION_NS: Final = 120 * NS_PER_SECOND
# How long an undeleted pod may keep the condition DisruptionTarget.
_STALE_NS: Final = 120 * NS_PER_SECOND
_PERCENT: Final = re.compile(r"[0-9]+%")


class Scale(msgspec.Struct, frozen=True):
    """A workload, by uid, and its wanted number of pods."""

    uid: str
    replicas: int


class BudgetError(MoorageError):
    """A budget cannot be computed; the message goes into its status."""


ScaleOf: TypeAlias = Callable[[OwnerReference], Scale | None]
"""The scale of a pod's owner; None when there is no such owner.

Raises `BudgetError` for an owner that has no scale."""


class Due(msgspec.Struct, frozen=True):
    """The decision about a budget.

    Parameters
    ----------
    status
        Merge patch of the status; None when the status is right already.
    again_ns
        Wall-clock time of the next check; None when only a change can matter.
    """

    status: Json | None
    again_ns: int | None = None


def budget_due(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scale_of: ScaleOf, now_ns: int
) -> Due:
    """Return the new status of a budget.

    Parameters
    ----------
    pods
        The pods that the budget selects.
    now_ns
        Wall-clock time.

    Notes
    -----
    When the expected number of pods is unknown, no disruption is allowed; the condition says why.
    """
    try:
        expected, desired = _expected(budget, pods, scale_of)
    except BudgetError as problem:
        return Due(_failed(budget, str(problem), now_ns))
    disrupted, again_ns = _still_disrupted(budget, pods, now_ns)
    healthy = sum(_is_healthy(pod) and pod.name not in disrupted for pod in pods)
    # Without pods no disruption is allowed, so that new pods are safe until they are counted.
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status: Json = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget.metadata.generation,
    }
    wanted = (
        Condition(type=_ALLOWED, status="True", reason="SufficientPods")
        if allowed
        else Condition(type=_ALLOWED, status="False", reason="InsufficientPods")
    )
    if _says(budget, status, disrupted, wanted):
        return Due(None, again_ns)
    gone: Json = {name: None for name in budget.status.disrupted_pods if name not in disrupted}
    status["disruptedPods"] = gone | disrupted
    status["conditions"] = _conditions(budget, wanted, budget.metadata.generation, now_ns)
    return Due(status, again_ns)


def stale_target_ns(pod: Pod) -> int | None:
    """Return when the condition DisruptionTarget of an undeleted pod expires.

    None for all other pods, and for a condition set by kubelet, which does not expire.
    """
    if pod.metadata.deletion_timestamp or pod.status.phase in {"Succeeded", "Failed"}:
        return None
    for each in pod.status.conditions:
        if each.type == DISRUPTION_TARGET and each.status == "True":
            if each.reason == "TerminationByKubelet":
                return None
            return _time_ns(each.last_transition_time) + _STALE_NS
    return None


def no_target_condition(now_ns: int) -> Json:
    """Return the condition DisruptionTarget with status False, for a strategic merge patch."""
    return {
        "type": DISRUPTION_TARGET,
        "status": "False",
        "reason": None,
        "message": None,
        "lastTransitionTime": rfc3339(now_ns),
    }


# -- counting --------------------------------------------------------------------------------------


def _expected(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scale_of: ScaleOf
) -> tuple[int, int]:
    """Return the expected number of pods, and the number of pods that must be healthy."""
    least, most_gone = budget.spec.min_available, budget.spec.max_unavailable
    if most_gone is not None:
        expected = _scale(pods, scale_of)
        return expected, max(expected - _scaled(most_gone, expected), 0)
    if isinstance(least, str):
        expected = _scale(pods, scale_of)
        return expected, _scaled(least, expected)
    return (0, 0) if least is None else (len(pods), least)


def _scaled(value: int | str, total: int) -> int:
    """Return a count, or a percentage of a total rounded up."""
    if isinstance(value, int):
        return value
    if not _PERCENT.fullmatch(value):
        raise BudgetError(f'invalid value for IntOrString: "{value}" is not a percentage')
    return -(-int(value[:-1]) * total // 100)


def _scale(pods: Iterable[Pod], scale_of: ScaleOf) -> int:
    """Sum the scales of the pods' owners; pods without an owner add nothing."""
    replicas: dict[str, int] = {}
    known: set[str] = set()
    for pod in pods:
        owner = pod.metadata.controller
        if owner is None or owner.uid in known:
            continue
        found = scale_of(owner)
        if found is None:
            raise BudgetError(f'found no controllers for pod "{pod.name}"')
        known.add(owner.uid)
        replicas[found.uid] = found.replicas
    return sum(replicas.values())


def _still_disrupted(
    budget: PodDisruptionBudget, pods: Iterable[Pod], now_ns: int
) -> tuple[Json, int | None]:
    """Return the evicted pods whose deletion the watch has not shown, and the next check time."""
    noted = budget.status.disrupted_pods
    if not noted:
        return {}, None
    result: Json = {}
    again: list[int] = []
    for pod in pods:
        if pod.name not in noted or pod.metadata.deletion_timestamp:
            continue
        until_ns = _time_ns(noted[pod.name]) + _DELETION_NS
        if until_ns > now_ns:
            result[pod.name] = noted[pod.name]
            again.append(until_ns)
    return result, min(again, default=None)


def _is_healthy(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp and any(
        each.type == "Ready" and each.status == "True" for each in pod.status.conditions
    )


# -- the status ------------------------------------------------------------------------------------


def _says(budget: PodDisruptionBudget, counts: Json, disrupted: Json, wanted: Condition) -> bool:
    """Whether the status has the computed values already."""
    status = budget.status
    says = {
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "disruptionsAllowed": status.disruptions_allowed,
        "observedGeneration": status.observed_generation,
    }
    found = next((each for each in status.conditions if each.type == _ALLOWED), Condition())
    return (
        says == counts
        and status.disrupted_pods == disrupted
        and (found.status, found.reason) == (wanted.status, wanted.reason)
    )


def _failed(budget: PodDisruptionBudget, why: str, now_ns: int) -> Json | None:
    """Return the status that allows nothing because it could not be computed."""
    wanted = Condition(type=_ALLOWED, status="False", reason="SyncFailed", message=why)
    found = next((each for each in budget.status.conditions if each.type == _ALLOWED), Condition())
    if budget.status.disruptions_allowed == 0 and (found.reason, found.message) == (
        wanted.reason,
        why,
    ):
        return None
    generation = budget.status.observed_generation
    conditions = _conditions(budget, wanted, generation, now_ns)
    return {"disruptionsAllowed": 0, "conditions": conditions}


def _conditions(
    budget: PodDisruptionBudget, wanted: Condition, generation: int, now_ns: int
) -> list[Json]:
    """Return all conditions; the one about disruptions keeps its time while its value stays."""
    since: str | None = rfc3339(now_ns)
    listed: list[Condition] = []
    for each in budget.status.conditions:
        if each.type != _ALLOWED:
            listed.append(each)
        elif each.status == wanted.status:
            since = each.last_transition_time or since
    wanted = msgspec.structs.replace(
        wanted, last_transition_time=since, observed_generation=generation
    )
    return [
        {
            "type": each.type,
            "status": each.status,
            "observedGeneration": each.observed_generation,
            "lastTransitionTime": each.last_transition_time,
            "reason": each.reason,
            "message": each.message,
        }
        for each in (*listed, wanted)
    ]


def _time_ns(text: str | None) -> int:
    """Return a time; an absent or unreadable time counts as long ago."""
    try:
        return parse_rfc3339(text or "")
    except ValueError:
        return 0

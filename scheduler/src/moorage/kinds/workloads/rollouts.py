"""Rules of how a Deployment, a DaemonSet or a StatefulSet replaces its pods.

Mirrors kubernetes v1.36 pkg/apis/apps/validation.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.kinds.fields import Rule, amount, count_or_percent, rules, within
from moorage.kinds.kind import FieldError, forbidden, invalid, required
from moorage.kinds.tree import Json, child, number, text

_ROLLING: Final = ("maxUnavailable", "maxSurge")


def check_recreate(strategy: Json, where: str) -> list[FieldError]:
    """Refuse values of a rolling update where all pods are replaced at once."""
    if text(strategy, "type") != "Recreate" or strategy.get("rollingUpdate") is None:
        return []
    detail = "may not be specified when strategy `type` is 'Recreate'"
    return [forbidden(f"{where}.rollingUpdate", detail)]


def _is_zero(value: Any) -> bool:
    """Whether a number of pods or a percentage is none; a text that is no percentage is none."""
    return not value or (isinstance(value, str) and not value.removesuffix("%").strip("0"))


def _not_stuck(rolling: Json, where: str) -> list[FieldError]:
    if not rolling or not all(_is_zero(rolling.get(name)) for name in _ROLLING):
        return []
    detail = "may not be 0 when `maxSurge` is 0"
    return [invalid(f"{where}.maxUnavailable", rolling.get("maxUnavailable"), detail)]


def check_deadline(spec: Json, where: str) -> list[FieldError]:
    """Refuse a deployment that fails before its first pod can be available."""
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is None or deadline > number(spec, "minReadySeconds"):
        return []
    detail = "must be greater than minReadySeconds"
    return [invalid(f"{where}.progressDeadlineSeconds", deadline, detail)]


def check_daemon_set_rollout(strategy: Json, where: str) -> list[FieldError]:
    """Refuse a rolling update of a daemon set that may neither surge nor be short, or both."""
    if text(strategy, "type") != "RollingUpdate":
        return []
    where = f"{where}.rollingUpdate"
    rolling = child(strategy, "rollingUpdate")
    short, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors = amount(short, f"{where}.maxUnavailable") + amount(surge, f"{where}.maxSurge")
    none = _is_zero(short), _is_zero(surge)
    if not any(none):
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{where}.maxSurge", surge, detail))
    elif all(none):
        errors.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def check_stateful_set_rollout(strategy: Json, where: str) -> list[FieldError]:
    """Check the rolling update of a stateful set."""
    rolling, where = strategy.get("rollingUpdate"), f"{where}.rollingUpdate"
    if rolling is None:
        return []
    if text(strategy, "type") == "OnDelete":
        return [invalid(where, rolling, "only allowed for updateStrategy 'RollingUpdate'")]
    unavailable = rolling.get("maxUnavailable")
    errors = within(0)(rolling.get("partition"), f"{where}.partition")
    errors += amount(unavailable, f"{where}.maxUnavailable")
    if unavailable is not None and _is_zero(unavailable):
        errors.append(invalid(f"{where}.maxUnavailable", unavailable, "cannot be 0"))
    return errors


check_rolling_deployment: Rule = rules(
    ("maxUnavailable", amount), ("maxSurge", count_or_percent), _not_stuck
)
"""The rule of the values of a deployment's rolling update; more than all pods may surge."""

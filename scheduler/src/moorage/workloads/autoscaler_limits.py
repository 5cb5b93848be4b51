"""Limits on how fast an autoscaler changes the number of replicas.

Notes
-----
kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go: stabilization windows over earlier
recommendations, then policies over earlier changes. The defaults within ``spec.behavior`` are those
of pkg/apis/autoscaling/v2/defaults.go; without the field, replicas may grow to twice their number,
or to four.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.base.clock import NS_PER_SECOND

_UP: Final[Mapping[str, Any]] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Final[Mapping[str, Any]] = {
    "stabilizationWindowSeconds": 300,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_LEAST_TOP: Final = 4
_KEPT_NS: Final = 3600 * NS_PER_SECOND  # the longest window that may be asked for


class Bounded(msgspec.Struct, frozen=True):
    """A number of replicas within all limits.

    Parameters
    ----------
    replicas
        The number.
    able
        Reason and message of the condition AbleToScale.
    limited
        Status, reason and message of the condition ScalingLimited.
    """

    replicas: int
    able: tuple[str, str]
    limited: tuple[str, str, str]


class ScalingMemory:
    """The recommendations and changes of one autoscaler in the last hour."""

    def __init__(self) -> None:
        # (moment, recommended replicas) and (moment, change), oldest first.
        self._recommended: list[tuple[int, int]] = []
        self._changed: list[tuple[int, int]] = []

    def changed(self, change: int, now_ns: int) -> None:
        """Note that replicas were added, or taken away (negative)."""
        self._changed.append((now_ns, change))

    def bound(self, spec: Mapping[str, Any], current: int, wanted: int, *, now_ns: int) -> Bounded:
        """Return the number of replicas within all limits.

        Parameters
        ----------
        spec
            ``spec`` of the autoscaler.
        current
            The present number of replicas.
        wanted
            The number of replicas that the metrics call for.
        """
        self._forget(now_ns)
        behavior = spec.get("behavior") or {}
        up = {**_UP, **(behavior.get("scaleUp") or {})}
        down = {**_DOWN, **(behavior.get("scaleDown") or {})}
        stable = self._stable(current, wanted, up, down, now_ns)
        able = ("ReadyForNewScale", "recommended size matches current size")
        if stable < wanted:
            able = (
                "ScaleUpStabilized",
                "recent recommendations were lower than current one, applying the lowest recent "
                "recommendation",
            )
        elif stable > wanted:
            able = (
                "ScaleDownStabilized",
                "recent recommendations were higher than current one, applying the highest recent "
                "recommendation",
            )
        least, most = int(spec.get("minReplicas") or 1), int(spec["maxReplicas"])
        replicas, limited = stable, _WITHIN
        if stable > current:
            top = self._top(current, up, now_ns) if behavior else max(2 * current, _LEAST_TOP)
            replicas, limited = _at_most(stable, top, most)
        elif stable < current:
            replicas, limited = _at_least(stable, self._bottom(current, down, now_ns), least)
        elif stable > most:
            replicas, limited = most, _TOO_MANY
        elif stable < least:
            replicas, limited = least, _TOO_FEW
        return Bounded(replicas, able, limited)

    def _forget(self, now_ns: int) -> None:
        self._recommended = [each for each in self._recommended if each[0] > now_ns - _KEPT_NS]
        self._changed = [each for each in self._changed if each[0] > now_ns - _KEPT_NS]

    def _stable(
        self,
        current: int,
        wanted: int,
        up: Mapping[str, Any],
        down: Mapping[str, Any],
        now_ns: int,
    ) -> int:
        """Return the number that all recommendations of a window allow, and record this one."""
        lowest = min([wanted, *self._since(up, now_ns)])
        highest = max([wanted, *self._since(down, now_ns)])
        self._recommended.append((now_ns, wanted))
        return min(max(current, lowest), highest)

    def _since(self, rules: Mapping[str, Any], now_ns: int) -> list[int]:
        begin_ns = now_ns - int(rules.get("stabilizationWindowSeconds") or 0) * NS_PER_SECOND
        return [replicas for moment, replicas in self._recommended if moment > begin_ns]

    def _top(self, current: int, rules: Mapping[str, Any], now_ns: int) -> int:
        """Return the largest number of replicas that the scale-up policies allow."""
        if rules["selectPolicy"] == "Disabled":
            return current
        proposals = []
        for policy in _policies(rules, _UP):
            start = self._replicas_at_start(current, policy, now_ns)
            value = int(policy["value"])
            grown = start + value
            if policy["type"] == "Percent":
                grown = math.ceil(start * (1 + value / 100))
            proposals.append(grown)
        chosen = min(proposals) if rules["selectPolicy"] == "Min" else max(proposals)
        return max(chosen, current)

    def _bottom(self, current: int, rules: Mapping[str, Any], now_ns: int) -> int:
        """Return the smallest number of replicas that the scale-down policies allow."""
        if rules["selectPolicy"] == "Disabled":
            return current
        proposals = []
        for policy in _policies(rules, _DOWN):
            start = self._replicas_at_start(current, policy, now_ns)
            value = int(policy["value"])
            shrunk = start - value
            if policy["type"] == "Percent":
                shrunk = int(start * (1 - value / 100))
            proposals.append(shrunk)
        chosen = max(proposals) if rules["selectPolicy"] == "Min" else min(proposals)
        return min(chosen, current)

    def _replicas_at_start(self, current: int, policy: Mapping[str, Any], now_ns: int) -> int:
        """Return the number of replicas at the start of a policy's period."""
        begin_ns = now_ns - int(policy["periodSeconds"]) * NS_PER_SECOND
        return current - sum(change for moment, change in self._changed if moment > begin_ns)


_WITHIN: Final = ("False", "DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY: Final = (
    "True",
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
)
_TOO_FEW: Final = (
    "True",
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
)
_UP_LIMIT: Final = (
    "True",
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_DOWN_LIMIT: Final = (
    "True",
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)


def _policies(rules: Mapping[str, Any], default: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = rules.get("policies") or default["policies"]
    return found


def _at_most(wanted: int, rate: int, most: int) -> tuple[int, tuple[str, str, str]]:
    if wanted > min(rate, most):
        return (most, _TOO_MANY) if most <= rate else (rate, _UP_LIMIT)
    return wanted, _WITHIN


def _at_least(wanted: int, rate: int, least: int) -> tuple[int, tuple[str, str, str]]:
    if wanted < max(rate, least):
        return (least, _TOO_FEW) if least >= rate else (rate, _DOWN_LIMIT)
    return wanted, _WITHIN

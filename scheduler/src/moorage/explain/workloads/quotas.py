"""Whether quotas refuse further pods, and how far they would have to be raised.

The rules are those of `moorage.kinds.quotas`; the use is that of the quota's status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.kinds.quotas.limit_range import spelled
from moorage.kinds.quotas.quota_rules import quota_fault
from moorage.kinds.quotas.usage import matches_scopes, usage

_PODS: Final = "pods"
_UNNAMED: Final = "failed quota: "


class QuotaBound(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of a quota that bounds how many more pods are created.

    Parameters
    ----------
    quota, namespace
        The quota.
    resource
        The resource.
    each, used, hard
        What one pod takes, the use so far, and the bound, nano units.
    written
        The bound as the quota has it.
    """

    quota: str
    namespace: str
    resource: str
    each: int
    used: int
    hard: int
    written: str

    @property
    def room(self) -> int:
        """How many more pods the bound allows."""
        return max(0, (self.hard - self.used) // self.each)

    def raised_to(self, pods: int) -> str:
        """Return the bound that allows so many more pods."""
        return spelled(max(self.used, 0) + pods * self.each, self.written)

    @property
    def text(self) -> str:
        """The bound, its use and what one pod takes."""
        used, each = spelled(self.used, self.written), spelled(self.each, self.written)
        return f"{used} of {self.written} {self.resource} are used, and each pod takes {each}"


def quota_bounds(quotas: Sequence[Mapping[str, Any]], pod: dict[str, Any]) -> list[QuotaBound]:
    """Return what quotas bound of a pod, the tightest first.

    Parameters
    ----------
    quotas
        The quotas of the pod's namespace.
    pod
        The pod, as its owner would create it.
    """
    takes, bounds = usage(_PODS, pod), list[QuotaBound]()
    for each in quotas:
        spec, status = each.get("spec") or {}, each.get("status") or {}
        hard, used = spec.get("hard") or {}, status.get("used") or {}
        if not matches_scopes(spec, _PODS, pod):
            continue
        bounds += [
            QuotaBound(
                quota=each["metadata"]["name"],
                namespace=each["metadata"].get("namespace") or "",
                resource=name,
                each=takes[name],
                used=parse_quantity(used.get(name, "0")),
                hard=parse_quantity(hard[name]),
                written=str(hard[name]),
            )
            for name in sorted(hard)
            if takes.get(name, 0) > 0
        ]
    return sorted(bounds, key=lambda bound: (bound.room, bound.quota, bound.resource))


def unnamed_amounts(quotas: Sequence[dict[str, Any]], pod: dict[str, Any]) -> str:
    """Return that a quota demands requests or limits which a pod does not state; "" if none."""
    for each in quotas:
        fault = quota_fault(each, {}, _PODS, new=pod, old=None)
        if fault.startswith(_UNNAMED):
            return fault.removeprefix(_UNNAMED)
    return ""

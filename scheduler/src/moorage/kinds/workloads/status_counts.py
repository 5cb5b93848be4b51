"""Rules of the counts in the status of a workload.

Mirrors kubernetes v1.36 pkg/apis/apps/validation and pkg/apis/core/validation
(ValidateDeploymentStatus and its siblings).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.kinds.fields import within
from moorage.kinds.kind import FieldError, Obj, invalid
from moorage.kinds.tree import child, number

_AVAILABLE: Final = "availableReplicas"
_COMMON: Final = "replicas observedGeneration collisionCount"


def status_counts(
    of_replicas: str = "", others: str = ""
) -> Callable[[Obj, Obj | None], list[FieldError]]:
    """Return the rule of a status.

    Parameters
    ----------
    of_replicas
        The counts that ``replicas`` limits.
    others
        Further counts.
    """
    names = f"{_COMMON} {of_replicas} {others}".split()
    limited = of_replicas.split()

    def check(new: Obj, old: Obj | None) -> list[FieldError]:
        status = child(new, "status")
        errors: list[FieldError] = []
        for name in names:
            errors += within(0)(status.get(name), f"status.{name}")
        total, ready = number(status, "replicas"), number(status, "readyReplicas")
        for name in limited:
            if (value := number(status, name)) > total:
                detail = "cannot be greater than status.replicas"
                errors.append(invalid(f"status.{name}", value, detail))
        if _AVAILABLE in limited and number(status, _AVAILABLE) > ready:
            detail = "cannot be greater than readyReplicas"
            errors.append(invalid(f"status.{_AVAILABLE}", status[_AVAILABLE], detail))
        collisions = number(status, "collisionCount")
        if collisions < number(old or {}, "status", "collisionCount"):
            detail = "cannot be decremented"
            errors.append(invalid("status.collisionCount", collisions, detail))
        return errors

    return check

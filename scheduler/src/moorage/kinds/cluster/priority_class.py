"""PriorityClass.

Mirrors kubernetes v1.36 pkg/apis/scheduling/validation and the admission plugin Priority.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.kinds import status
from moorage.kinds.cells import AGE, NAME, column, count, flag
from moorage.kinds.fields import defaults, one_of, rules, unchanging
from moorage.kinds.kind import Context, FieldError, forbidden
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, number, text

# The highest priority of a user's class, and the classes that the system makes.
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def _check_default(obj: Json, ctx: Context) -> None:
    """Refuse a second global default.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: another class is the default already.
    """
    if obj.get("globalDefault") is not True:
        return
    name = text(obj, "metadata", "name")
    for each in ctx.stored_objects("priorityclasses"):
        other = text(each, "metadata", "name")
        if each.get("globalDefault") is True and other != name:
            why = f"PriorityClass {other} is already marked as default. Only one default can exist"
            raise status.forbidden(resources.PRIORITY_CLASSES, name, why)


def _value(obj: Any, where: str) -> list[FieldError]:
    """Check the range of the value, and the reserved names."""
    name, value = text(obj, "metadata", "name"), number(obj, "value")
    if name.startswith("system-"):
        reason = _system_fault(name, value, is_default=obj.get("globalDefault") is True)
        detail = (
            "priority class names with 'system-' prefix are reserved for system use only. "
            f"error: {reason}"
        )
        return [forbidden("metadata.name", detail)] if reason else []
    if value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        return [forbidden("value", detail)]
    return []


def _system_fault(name: str, value: int, *, is_default: bool) -> str:
    expected = SYSTEM_CLASSES.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    if value != expected:
        return f"value of {name} PriorityClass must be {expected}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _fixed_value(field: str, value: Any) -> FieldError:
    return forbidden(field, "may not be changed in an update.")


_value_change, _policy_change = unchanging("value", _fixed_value), unchanging("preemptionPolicy")


KINDS = (
    ServedKind(
        resource=resources.PRIORITY_CLASSES,
        acted_on_by="admission of pods",
        columns=(
            NAME,
            count("Value", "value", "Priority of pods of this class"),
            flag("Global-Default", "globalDefault", "Class of pods that name none"),
            AGE,
            column(
                "PreemptionPolicy",
                "preemptionPolicy",
                "Whether pods of this class preempt others",
            ),
        ),
        defaults=defaults(unset={"preemptionPolicy": "PreemptLowerPriority", "value": 0}),
        on_create=lambda obj, ctx, resource: _check_default(obj, ctx),
        on_update=lambda new, old, ctx: _check_default(new, ctx),
        counts_generations=True,
        rules=rules(
            _value,
            ("preemptionPolicy", one_of("Never", "PreemptLowerPriority", empty="required")),
        ),
        change=lambda new, old: _value_change(new, old) + _policy_change(new, old),
    ),
)

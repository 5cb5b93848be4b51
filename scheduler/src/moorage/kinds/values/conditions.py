"""The rules of the conditions in a status.

Place in the flow: kinds whose conditions kube-apiserver checks use them. Mirrors kubernetes v1.36
apimachinery pkg/apis/meta/v1/validation/validation.go (ValidateConditions).
"""

from __future__ import annotations

import re
from typing import Any

from moorage.kinds.fields import Rule, bytes_within, duplicates, needed, one_of, rules, within
from moorage.kinds.kind import FieldError, invalid, required, too_many
from moorage.kinds.tree import Json, text
from moorage.kinds.values.selectors import label_name

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_LENGTH_MAX = 1024
_MESSAGE_LENGTH_MAX = 32 * 1024
_NO_REASON = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON}')"
)


def _reason(value: Any, where: str) -> list[FieldError]:
    if not value:
        return [required(where, "must be set")]
    errors = [] if re.fullmatch(_REASON, value) else [invalid(where, value, _NO_REASON)]
    return errors + bytes_within(_REASON_LENGTH_MAX)(value, where)


_condition = rules(
    ("type", label_name),
    ("status", one_of("True", "False", "Unknown")),
    ("observedGeneration", within(0, detail="must be greater than or equal to zero")),
    ("lastTransitionTime", needed("must be set")),
    ("reason", _reason),
    ("message", bytes_within(_MESSAGE_LENGTH_MAX)),
)


def conditions(most: int = 0) -> Rule:
    """Return the rule of conditions, each of its own type.

    Parameters
    ----------
    most
        Greatest number of conditions, 0 for any number.
    """

    def check(listed: list[Json] | None, where: str) -> list[FieldError]:
        entries = listed or []
        errors = [too_many(where, len(entries), most)] if most and len(entries) > most else []
        types = [text(each, "type") for each in entries]
        errors += duplicates(types, lambda place: f"{where}[{place}].type")
        for place, each in enumerate(entries):
            errors += _condition(each, f"{where}[{place}]")
        return errors

    return check

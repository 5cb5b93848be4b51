"""The options of a write, as parameters of the call: ``dryRun``, ``fieldManager`` and the like.

Place in the flow: `resource_calls` checks the options of a POST, `writing` and `scale` those of a
PUT or PATCH, before anything else. Messages follow kubernetes v1.36 apimachinery
pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.kinds.status import invalid_options
from moorage_sandbox.apiserver.wire.requests import Query

MANAGER_LENGTH_MAX = 128
FIELD_VALIDATIONS = frozenset({"", "Ignore", "Strict", "Warn"})
"""Values of ``fieldValidation``; empty means ``Warn``."""
ALL = "All"
"""The only value of ``dryRun``."""

Options = Literal["CreateOptions", "PatchOptions", "UpdateOptions"]


def check_options(query: Query, options: Options, *, apply: bool = False) -> None:
    """Refuse parameters that are invalid, or do not go with a patch of this type.

    Raises
    ------
    StatusError
        422.
    """
    errors = []
    if apply and not query.text("fieldManager"):
        errors.append(required("fieldManager", "is required for apply patch"))
    if options == "PatchOptions" and not apply and query.flag("force"):
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors += _faults(query)
    if errors:
        raise invalid_options(options, errors)


def dry_run_faults(values: Iterable[str]) -> list[FieldError]:
    """Return the error of ``dryRun``, if it has another value than ``All``."""
    found = list(values)
    return [not_supported("dryRun", found, [ALL])] if set(found) - {ALL} else []


def _faults(query: Query) -> list[FieldError]:
    """Return the errors of the parameters that every write has."""
    errors = []
    name, mode = query.text("fieldManager"), query.text("fieldValidation")
    if len(name.encode()) > MANAGER_LENGTH_MAX:
        detail = f"may not be more than {MANAGER_LENGTH_MAX} bytes"
        errors.append(FieldError("FieldValueTooLong", "fieldManager", name, detail))
    if not name.isprintable():
        errors += _unprintable(name)
    if "dryRun" in query:
        errors += dry_run_faults([query.text("dryRun")])
    if mode not in FIELD_VALIDATIONS:
        errors.append(not_supported("fieldValidation", mode, FIELD_VALIDATIONS))
    return errors


def _unprintable(name: str) -> list[FieldError]:
    """Return an error for each character of a manager's name that cannot be printed."""
    errors, place = [], 0
    for each in name:
        if not each.isprintable():
            detail = f"invalid character U+{ord(each):04X} (at position {place})"
            errors.append(invalid("fieldManager", name, detail))
        place += len(each.encode())
    return errors

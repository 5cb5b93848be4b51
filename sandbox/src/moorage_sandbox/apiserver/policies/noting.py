"""The warnings and audit annotations of policies and webhooks about a call.

Place in the flow: `denying` and the webhooks note it, and `chain` adds it to the reply. Mirrors
kubernetes v1.36 apiserver pkg/admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from moorage.policies.bound import BoundPolicy
from moorage.policies.expressions import Failed
from moorage_sandbox.apiserver.wire.render import warning_headers
from moorage_sandbox.apiserver.wire.requests import Reply

FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
"""The annotation of an audit event with the validations that failed."""


class _OfCall:
    """The notes about one call."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.failures: list[dict[str, Any]] = []
        self.annotations: dict[str, dict[str, None]] = {}


class Notes:
    """The notes about the current call; a thread may answer another call at the same time.

    Attributes
    ----------
    sources
        The shelves of what may note something: nothing is noted while they are empty.
    """

    def __init__(self) -> None:
        self._current: ContextVar[_OfCall] = ContextVar("notes")
        self.sources: list[Sized] = []

    def clear(self) -> None:
        """Forget the notes of the call before."""
        self._current.set(_OfCall())

    @property
    def _of_call(self) -> _OfCall:
        found = self._current.get(None)
        if found is None:
            found = _OfCall()
            self._current.set(found)
        return found

    def add_failure(self, bound: BoundPolicy, failed: Failed) -> None:
        """Note a validation that failed, as the actions of the binding say."""
        if "Warn" in bound.actions:
            self._of_call.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{bound.name}' with binding "
                f"'{bound.binding_name}': {failed.message}"
            )
        if "Audit" in bound.actions:
            self._of_call.failures.append(
                {
                    "message": failed.message,
                    "policy": bound.name,
                    "binding": bound.binding_name,
                    "expressionIndex": failed.place,
                    "validationActions": bound.actions,
                }
            )

    def add_warning(self, warning: str) -> None:
        """Note a warning for the client."""
        self._of_call.warnings.append(warning)

    def annotate(self, key: str, value: str) -> None:
        """Note an annotation of the audit event."""
        self._of_call.annotations[key] = {value: None}

    def add_annotations(self, policy: str, annotations: Iterable[tuple[str, str]]) -> None:
        """Note audit annotations of a policy; equal texts of several bindings are noted once."""
        for key, value in annotations:
            self._of_call.annotations.setdefault(f"{policy}/{key}", {})[value] = None

    def added_to(self, reply: Reply) -> Reply:
        """Return a reply with the warnings, and with the annotations for the audit log."""
        notes = self._of_call
        if not (notes.warnings or notes.failures or notes.annotations):
            return reply
        annotations = {key: ", ".join(values) for key, values in notes.annotations.items()}
        if notes.failures:
            annotations[FAILURES] = msgspec.json.encode(notes.failures).decode()
        headers = reply.headers + warning_headers(notes.warnings)
        return msgspec.structs.replace(reply, headers=headers, annotations=annotations)

"""What policies say about a call besides a refusal: warnings, and annotations of the audit event.

Place in the flow: `denying` notes it, and `server` adds it to the reply. Mirrors kubernetes v1.36
apiserver pkg/admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from moorage.apiserver.policies.asking import Asked
from moorage.apiserver.policies.expressions import Failed
from moorage.apiserver.replies import warning_headers
from moorage.apiserver.requests import Reply

FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
"""The annotation of an audit event with the validations that failed."""


class Notes:
    """The notes about one call; writes are answered one after the other."""

    def __init__(self) -> None:
        self._warnings: list[str] = []
        self._failures: list[dict[str, Any]] = []
        self._annotations: dict[str, dict[str, None]] = {}

    def clear(self) -> None:
        """Forget the notes of the call before."""
        self._warnings, self._failures, self._annotations = [], [], {}

    def add_failure(self, asked: Asked, failed: Failed) -> None:
        """Note a validation that failed, as the actions of the binding say."""
        if "Warn" in asked.actions:
            self._warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{asked.name}' with binding "
                f"'{asked.binding_name}': {failed.message}"
            )
        if "Audit" in asked.actions:
            self._failures.append(
                {
                    "message": failed.message,
                    "policy": asked.name,
                    "binding": asked.binding_name,
                    "expressionIndex": failed.place,
                    "validationActions": asked.actions,
                }
            )

    def add_annotations(self, policy: str, found: Iterable[tuple[str, str]]) -> None:
        """Note audit annotations of a policy; equal texts of several bindings are noted once."""
        for key, value in found:
            self._annotations.setdefault(f"{policy}/{key}", {})[value] = None

    def added_to(self, reply: Reply) -> Reply:
        """Return a reply with the warnings, and with the annotations for the audit log."""
        if not (self._warnings or self._failures or self._annotations):
            return reply
        told = {key: ", ".join(values) for key, values in self._annotations.items()}
        if self._failures:
            told[FAILURES] = msgspec.json.encode(self._failures).decode()
        headers = reply.headers + warning_headers(self._warnings)
        return msgspec.structs.replace(reply, headers=headers, annotations=told)

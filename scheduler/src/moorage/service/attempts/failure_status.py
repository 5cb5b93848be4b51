"""The Status of Kubernetes in whose words the secure port refuses a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.codec import encode


def failure_status(
    code: int, reason: str, message: str, *, details: Mapping[str, Any] | None = None
) -> bytes:
    """Return the JSON of a Status that says why a call failed.

    Parameters
    ----------
    code, reason, message
        The HTTP status, its reason in one word, and the text.
    details
        The object that the call was about; None leaves the field out.
    """
    return encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            **({} if details is None else {"details": details}),
            "code": code,
        }
    )

"""Answers other than success: ``Status`` objects with the API server's own reasons and words.

Verbs and kinds raise `StatusError`; the request handler turns it into the reply. Texts follow
kubernetes v1.36 apimachinery pkg/api/errors, because clients (and people) match on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.resources import ResourceType
from moorage.base.errors import MoorageError
from moorage.kinds.kind import FieldError

# Longest description of the errors of one object, characters (a guess; an object of 100,000 wrong
# labels had an answer of 32 MB).
_FAULTS_LENGTH_MAX = 256 * 1024


class StatusError(MoorageError):
    """A call is refused with this ``Status``.

    Parameters
    ----------
    code
        HTTP status code.
    reason
        Machine-readable reason, such as ``NotFound``; empty for the few without one.
    message
        Text for people.
    details
        ``details`` of the Status, or None.
    metadata
        ``metadata`` of the Status: a continue token, at most.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}

    @property
    def body(self) -> dict[str, Any]:
        """The ``Status`` object as sent."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def _details(resource: ResourceType, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details


def success(code: int = 200, *, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a ``Status`` object that reports success."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    body["status"] = "Success"
    if details is not None:
        body["details"] = details
    if code != 200:
        body["code"] = code
    return body


def not_found(resource: ResourceType, name: str) -> StatusError:
    """404: no object of this name."""
    return StatusError(
        404,
        "NotFound",
        f'{resource.qualified} "{name}" not found',
        details=_details(resource, name),
    )


def already_exists(resource: ResourceType, name: str) -> StatusError:
    """409: the name is taken."""
    return StatusError(
        409,
        "AlreadyExists",
        f'{resource.qualified} "{name}" already exists',
        details=_details(resource, name),
    )


def conflict(resource: ResourceType, name: str, why: str, *, subresource: str = "") -> StatusError:
    """409: the object is not in the state that the call requires."""
    details = _details(resource, name)
    where = resource.qualified
    if subresource:
        # Upstream names "pods/binding" here (core/v1 has no group to append).
        details["kind"] = where = f"{resource.plural}/{subresource}"
    message = f'Operation cannot be fulfilled on {where} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=details)


def modified(resource: ResourceType, name: str) -> StatusError:
    """409: the resourceVersion sent is not the stored one."""
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def forbidden(resource: ResourceType, name: str, why: str, **extra: Any) -> StatusError:
    """403: admission refuses; ``extra`` goes into the details (``causes``)."""
    return StatusError(
        403,
        "Forbidden",
        f'{resource.qualified} "{name}" is forbidden: {why}',
        details=_details(resource, name) | extra,
    )


def invalid(resource: ResourceType, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422: the object breaks rules of its kind; every error is a cause."""
    details = _details(resource, name)
    details["kind"] = resource.kind
    text, details["causes"] = _text_and_causes(errors)
    who = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return StatusError(422, "Invalid", f'{who} "{name}" is invalid: {text}', details=details)


def invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    """422: the parameters of a call contradict each other, or the API; every error is a cause."""
    details: dict[str, Any] = {"group": "meta.k8s.io", "kind": kind}
    text, details["causes"] = _text_and_causes(errors)
    return StatusError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {text}', details=details)


def _text_and_causes(errors: Sequence[FieldError]) -> tuple[str, list[dict[str, str]]]:
    """Return errors as one text and as causes: all of them, unless the text gets too long."""
    texts: list[str] = []
    causes: list[dict[str, str]] = []
    length = 0
    for error in errors:
        body = error.body
        length += len(body) + len(error.field)
        if causes and length > _FAULTS_LENGTH_MAX:
            texts.append(f"and {len(errors) - len(causes)} more")
            break
        texts.append(f"{error.field}: {body}")
        causes.append({"reason": error.type, "message": body, "field": error.field})
    texts = list(dict.fromkeys(texts))
    return (texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"), causes


def bad_request(message: str) -> StatusError:
    """400: the call is malformed."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """401: credentials are missing or invalid."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def unknown_path() -> StatusError:
    """404: no such resource type or path."""
    return StatusError(
        404, "NotFound", "the server could not find the requested resource", details={}
    )


def method_not_allowed() -> StatusError:
    """405: the path exists, the method does not."""
    return StatusError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        details={},
    )


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """406: no form that the client accepts is served."""
    return StatusError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: " + ", ".join(offered),
    )


def unsupported_media_type(offered: Sequence[str]) -> StatusError:
    """415: the form of the body is not supported here."""
    return StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(offered),
    )


def unsupported_encoding(encoding: str) -> StatusError:
    """415: the body is compressed, which no client of Kubernetes does unless told to."""
    return StatusError(
        415,
        "UnsupportedMediaType",
        f"the body of the request is encoded as {encoding[:60]!r}; send it as it is",
    )


def timed_out() -> StatusError:
    """504: the call exceeded its time limit; its write may have taken effect."""
    return StatusError(
        504, "Timeout", "Timeout: request did not complete within the allotted timeout"
    )


def too_large(limit_bytes: int) -> StatusError:
    """413: the body is larger than the server reads."""
    return StatusError(
        413,
        "RequestEntityTooLarge",
        f"Request entity too large: limit is {limit_bytes}",
    )


def too_many_requests(
    message: str, *, retry_after_seconds: int, causes: Sequence[dict[str, Any]]
) -> StatusError:
    """429: not now; 0 seconds means that the delay is unknown."""
    details: dict[str, Any] = {"causes": list(causes)}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    return StatusError(429, "TooManyRequests", message, details=details)


def expired(message: str = "") -> StatusError:
    """410: the resourceVersion or continue token is older than the log."""
    return StatusError(
        410, "Expired", message or "The resourceVersion for the provided list is too old."
    )


def version_too_large(wanted: int, current: int) -> StatusError:
    """504: the resourceVersion asked for lies in the future."""
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        details={
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ],
            "retryAfterSeconds": 1,
        },
    )


def internal(message: str) -> StatusError:
    """500: a bug of this server."""
    return StatusError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        details={"causes": [{"message": message}]},
    )

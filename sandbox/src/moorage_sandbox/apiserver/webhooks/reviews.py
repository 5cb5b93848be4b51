"""AdmissionReviews: what webhooks are sent, and what they answer.

Place in the flow: `admission` writes a review here for each webhook that is about a write, and
reads the answer. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/webhook/request/admissionreview.go.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.resources import ResourceType
from moorage.base.errors import DecodeError
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, bad_request
from moorage.kinds.tree import text
from moorage.kinds.users import User
from moorage.policies.hook_rules import REVIEW_VERSIONS
from moorage.policies.matching import Write
from moorage_sandbox.apiserver.webhooks.answers import Answer, HookError
from moorage_sandbox.apiserver.wire.bodies import bounded_json

GROUP: Final = "admission.k8s.io"
JSON_PATCH: Final = "JSONPatch"
"""The only type of patch."""
_ERROR_MIN, _ERROR_MAX = 400, 599


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A write that webhooks are asked about.

    Parameters
    ----------
    write
        The write, with its objects as the client sees them.
    kind
        The type of its objects: ``Scale`` for a subresource ``scale``.
    name
        Name of the object, as the call has it; empty where the server makes the name.
    options
        The options of the call, such as ``CreateOptions``.
    user
        The caller.
    dry_run
        Nothing will be stored.
    """

    write: Write
    kind: ResourceType
    name: str
    options: Obj
    user: User
    dry_run: bool

    @property
    def has_body(self) -> bool:
        """Whether the object is the body of a subresource, the same in each version."""
        return self.kind.kind != self.write.resource.kind

    @property
    def namespace(self) -> str:
        """The namespace of the call; a namespace is in itself."""
        resource = self.write.resource
        if (resource.group, resource.plural) == ("", "namespaces"):
            return self.name
        own: str = (self.write.obj.get("metadata") or {}).get("namespace") or ""
        return own or text(self.write.namespace or {}, "metadata", "name")


class Response(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of a webhook."""

    uid: str | None = None
    allowed: bool | None = False
    status: dict[str, Any] | None = None
    patch: bytes | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: list[str] | None = None


class ReviewType(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that a review of any kind has besides its response."""

    api_version: str | None = ""
    kind: str | None = ""


class _Review(ReviewType, frozen=True):
    response: Response | None = None


def review_version(versions: list[str]) -> str:
    """Return the version of the review for a webhook that accepts these versions.

    Raises
    ------
    HookError
        None of them is known.
    """
    for version in versions:
        if version in REVIEW_VERSIONS:
            return version
    raise HookError("webhook does not accept known AdmissionReview versions (v1, v1beta1)")


def review_of(subject: Subject, called: ResourceType, version: str) -> Obj:
    """Return the review of a write without the uid of its request.

    Parameters
    ----------
    subject
        The write, with its objects in the version in which the webhook is called.
    called
        The resource in that version.
    version
        Version of the review.
    """
    write, kind = subject.write, subject.kind
    request = {
        "kind": _kind(kind if subject.has_body else called),
        "resource": _resource(called),
        "subResource": write.subresource,
        "requestKind": _kind(kind),
        "requestResource": _resource(write.resource),
        "requestSubResource": write.subresource,
        "name": subject.name,
        "namespace": subject.namespace,
        "operation": write.operation,
        "userInfo": subject.user.info,
        "object": write.new,
        "oldObject": write.old,
        "dryRun": subject.dry_run,
        "options": subject.options or None,
    }
    empty = ("subResource", "requestSubResource", "name", "namespace")
    request = {key: value for key, value in request.items() if value or key not in empty}
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}


def _kind(resource: ResourceType) -> Obj:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: ResourceType) -> Obj:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def read_response(answer: Answer, version: str, *, mutating: bool) -> Response:
    """Return what a webhook answers.

    Raises
    ------
    HookError
        There is no answer, or it is no answer to the review.
    """
    if answer.failure:
        raise HookError(f"failed to call webhook: {answer.failure}")
    try:
        review = msgspec.convert(bounded_json(answer.body), _Review)
    except (DecodeError, StatusError, msgspec.ValidationError) as error:
        raise HookError(
            f"failed to call webhook: the answer is no AdmissionReview: {error}"
        ) from error
    response = review.response
    if response is None:
        raise HookError("received invalid webhook response: webhook response was absent")
    if version == "v1":
        if why := _fault(review, response, answer.uid, mutating=mutating):
            raise HookError(f"received invalid webhook response: {why}")
        return response
    # Neither the uid nor the version was verified of the older form.
    patch = response.patch if mutating else None
    return msgspec.structs.replace(response, patch=patch, patch_type=JSON_PATCH if patch else None)


def _fault(review: _Review, response: Response, uid: str, *, mutating: bool) -> str:
    """Return what is wrong with an answer of version v1; empty where nothing is."""
    why = uid_fault(response.uid, uid) or type_fault(review, f"{GROUP}/v1", "AdmissionReview")
    if why:
        return why
    if not mutating and response.patch:
        return "validating webhook may not return response.patch"
    if not mutating and response.patch_type is not None:
        return "validating webhook may not return response.patchType"
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    return ""


def uid_fault(uid: str | None, expected: str) -> str:
    """Return why an answer is none to a review, by its uid; empty where it is one."""
    return "" if uid == expected else f'expected response.uid="{expected}", got "{uid or ""}"'


def type_fault(review: ReviewType, api_version: str, kind: str) -> str:
    """Return why a review that came back is of another type; empty where it is of this type."""
    if (review.api_version, review.kind) == (api_version, kind):
        return ""
    return (
        f"expected webhook response of {api_version}, Kind={kind}, got "
        f"{review.api_version or '/'}, Kind={review.kind or ''}"
    )


def rejection(name: str, status: Obj | None) -> StatusError:
    """Return the refusal of a write by a webhook, with the status that the webhook gives.

    Notes
    -----
    Source: kubernetes v1.36 apiserver pkg/admission/plugin/webhook/errors/statuserror.go.
    """
    status = status or {}
    said, reason = (_text(status.get(key)) for key in ("message", "reason"))
    message = f'admission webhook "{name}" denied the request'
    message += f": {said or reason}" if said or reason else " without explanation"
    code, details = status.get("code"), status.get("details")
    is_error = isinstance(code, int) and _ERROR_MIN <= code <= _ERROR_MAX
    return StatusError(
        code if is_error and isinstance(code, int) else _ERROR_MIN,
        reason,
        message,
        details=details if isinstance(details, dict) else None,
    )


def no_dry_run(name: str) -> StatusError:
    """400: the webhook has side effects, so that it cannot be asked about a dry run."""
    return bad_request(f'admission webhook "{name}" does not support dry run')


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

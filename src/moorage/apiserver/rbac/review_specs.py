"""The question of a review: its ``spec``, read with its types and checked by the rules of its kind.

Place in the flow: `reviews` reads each body here before it answers. Mirrors kubernetes v1.36
pkg/apis/authorization/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.resources import ResourceType
from moorage.apiserver.kind import FieldError, invalid, required
from moorage.apiserver.rbac.rules import Attributes
from moorage.apiserver.status import bad_request

SELF_REVIEW = "SelfSubjectAccessReview"
LOCAL_REVIEW = "LocalSubjectAccessReview"
SUBJECT_REVIEWS = frozenset({SELF_REVIEW, LOCAL_REVIEW, "SubjectAccessReview"})
"""The kinds that ask whether a user may make a call."""


class _Resource(msgspec.Struct, frozen=True):
    verb: str | None = None
    group: str | None = None
    resource: str | None = None
    subresource: str | None = None
    namespace: str | None = None
    name: str | None = None


class _Path(msgspec.Struct, frozen=True):
    path: str | None = None
    verb: str | None = None


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """The ``spec`` of any review; each kind has some of the fields.

    Parameters
    ----------
    resource_attributes, non_resource_attributes
        The attributes of the call; one of the two is set in a review of access.
    user, groups
        The user of the call; the caller where the review is about the caller itself.
    namespace
        The namespace whose rules are listed.
    token, audiences
        The token of a ``TokenReview``, and its possible audiences.
    """

    resource_attributes: _Resource | None = None
    non_resource_attributes: _Path | None = None
    user: str | None = None
    groups: list[str] | None = None
    namespace: str | None = None
    token: str | None = None
    audiences: list[str] | None = None

    @property
    def wanted(self) -> Attributes:
        """The attributes that a spec without faults asks about."""
        asked = self.resource_attributes
        if asked is not None:
            return Attributes(**{key: value or "" for key, value in _given(asked).items()})
        path = self.non_resource_attributes
        assert path is not None, "a spec without faults has one of both"
        return Attributes(verb=path.verb or "", path=path.path or "")


def read_spec(raw: Any) -> Spec:
    """Read a ``spec``; without one every field is empty.

    Raises
    ------
    StatusError
        400: a field has another type.
    """
    try:
        found = msgspec.convert({"spec": raw}, _Review)
    except msgspec.ValidationError as error:
        raise bad_request(f"the review cannot be read: {error}") from error
    return found.spec or Spec()


def spec_faults(spec: Spec, resource: ResourceType, namespace: str) -> list[FieldError]:
    """Return the faults of a review of access.

    Parameters
    ----------
    spec
        The question of the review.
    resource
        The kind of the review.
    namespace
        The namespace of the review; empty for a kind without namespaces.
    """
    asked, path = spec.resource_attributes, spec.non_resource_attributes
    where = "spec.nonResourceAttributes"
    errors = []
    if asked is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid(where, _given(path), why))
    if asked is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(required("spec.resourceAttributes", why))
    if resource.kind != SELF_REVIEW and not spec.user and not spec.groups:
        why = "at least one of user or group must be specified"
        errors.append(invalid("spec.user", "", why))
    if resource.kind == LOCAL_REVIEW:
        if asked is not None and (asked.namespace or "") != namespace:
            found, why = asked.namespace or "", "must match metadata.namespace"
            errors.append(invalid("spec.resourceAttributes.namespace", found, why))
        if path is not None:
            errors.append(invalid(where, _given(path), "disallowed on this kind of request"))
    return errors


class _Review(msgspec.Struct, frozen=True):
    spec: Spec | None = None


def _given(attributes: _Resource | _Path) -> dict[str, str]:
    found = msgspec.structs.asdict(attributes)
    return {key: value for key, value in found.items() if value is not None}

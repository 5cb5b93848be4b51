"""The question of a review of access: its ``spec``, and the rules of its kind.

Place in the flow: `reviews` asks here before it answers. Mirrors kubernetes v1.36
pkg/apis/authorization/validation/validation.go.
"""

from __future__ import annotations

from moorage.api.resources import ResourceType
from moorage.kinds.kind import FieldError, Obj, invalid, required
from moorage.kinds.tree import child, text
from moorage_sandbox.apiserver.rbac.rules import Attributes

SELF_REVIEW = "SelfSubjectAccessReview"
LOCAL_REVIEW = "LocalSubjectAccessReview"
SUBJECT_REVIEWS = frozenset({SELF_REVIEW, LOCAL_REVIEW, "SubjectAccessReview"})
"""The kinds that ask whether a user may make a call."""
_OF_RESOURCES = ("verb", "group", "resource", "subresource", "namespace", "name")


def wanted(spec: Obj) -> Attributes:
    """Return the call that a spec without faults asks about."""
    asked = spec.get("resourceAttributes")
    if asked is not None:
        return Attributes(**{name: text(asked, name) for name in _OF_RESOURCES})
    path = child(spec, "nonResourceAttributes")
    return Attributes(verb=text(path, "verb"), path=text(path, "path"))


def spec_faults(spec: Obj, resource: ResourceType, namespace: str) -> list[FieldError]:
    """Return the faults of a review of access.

    Parameters
    ----------
    spec
        The question of the review, with the right types.
    resource
        The kind of the review.
    namespace
        The namespace of the review; empty for a kind without namespaces.
    """
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    where = "spec.nonResourceAttributes"
    errors = []
    if attributes is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid(where, path, why))
    if attributes is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(required("spec.resourceAttributes", why))
    if resource.kind != SELF_REVIEW and not spec.get("user") and not spec.get("groups"):
        why = "at least one of user or group must be specified"
        errors.append(invalid("spec.user", "", why))
    if resource.kind == LOCAL_REVIEW:
        if attributes is not None and text(attributes, "namespace") != namespace:
            found, why = text(attributes, "namespace"), "must match metadata.namespace"
            errors.append(invalid("spec.resourceAttributes.namespace", found, why))
        if path is not None:
            errors.append(invalid(where, path, "disallowed on this kind of request"))
    return errors

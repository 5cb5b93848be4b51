"""Questions about callers and access: objects that are answered and never stored.

``kubectl auth can-i`` and ``auth whoami`` send them, and so do components that check their own
callers. Discovery lists them. Mirrors kubernetes v1.36 pkg/registry/{authorization,authentication}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moorage.api.resources import ResourceType, group_version_path
from moorage.kinds.built_in import resource_type
from moorage.kinds.kind import Obj
from moorage.kinds.status import bad_request, method_not_allowed
from moorage.kinds.status import invalid as invalid_object
from moorage.kinds.tree import strings, text
from moorage_sandbox.apiserver.rbac.attributes import attributes_of
from moorage_sandbox.apiserver.rbac.authorizer import MASTERS, Authorizer
from moorage_sandbox.apiserver.rbac.review_specs import SUBJECT_REVIEWS, spec_faults, wanted
from moorage_sandbox.apiserver.wire.bodies import decode_typed
from moorage_sandbox.apiserver.wire.render import encode
from moorage_sandbox.apiserver.wire.requests import Reply, Request, User

TokenReview = Callable[[str, Sequence[str]], Obj]
"""Returns the status of a ``TokenReview``, for a token and its possible audiences."""


REVIEWS = (
    resource_type("authentication.k8s.io/v1", "selfsubjectreviews"),
    resource_type("authentication.k8s.io/v1", "tokenreviews"),
    resource_type("authorization.k8s.io/v1", "localsubjectaccessreviews"),
    resource_type("authorization.k8s.io/v1", "selfsubjectaccessreviews"),
    resource_type("authorization.k8s.io/v1", "selfsubjectrulesreviews"),
    resource_type("authorization.k8s.io/v1", "subjectaccessreviews"),
)
"""The kinds that are answered here."""
_BY_PATH = {f"{group_version_path(r.group, r.version)}/{r.plural}": r for r in REVIEWS}


class Reviews:
    """Answers reviews.

    Parameters
    ----------
    authorizer
        Decides about calls.
    token_review
        Finds the user of a token.
    enforced
        Whether the decisions hold; otherwise every known user may do everything.
    """

    def __init__(
        self, authorizer: Authorizer, token_review: TokenReview, *, enforced: bool
    ) -> None:
        self._authorizer = authorizer
        self._token_review = token_review
        self._enforced = enforced

    def answer_review(self, request: Request, user: User) -> Reply | None:
        """Answer a review; None when the request is no review.

        Raises
        ------
        StatusError
            400: not a review. 405: another method than POST. 422: a review without attributes or
            without a user, or of another namespace.
        """
        resource = reviewed_resource(request.path)
        if resource is None:
            return None
        if request.method != "POST":
            raise method_not_allowed()
        review = decode_typed(request, resource)
        namespace = _namespace(review, request) if resource.namespaced else ""
        spec = review.setdefault("spec", {})
        if resource.kind in SUBJECT_REVIEWS:
            errors = spec_faults(spec, resource, namespace)
            if errors:
                raise invalid_object(resource, "", errors)
        review["status"] = self._status(resource.kind, spec, user)
        return Reply(status=201, body=encode(review) + b"\n")

    def _status(self, kind: str, spec: Obj, user: User) -> Obj:
        if kind == "SelfSubjectReview":
            return {"userInfo": user.info}
        if kind == "TokenReview":
            if not spec.get("token"):
                raise bad_request("token is required for TokenReview in authentication")
            return self._token_review(spec["token"], strings(spec, "audiences"))
        if kind == "SelfSubjectRulesReview":
            return self._rules(text(spec, "namespace"), user)
        if kind != "SelfSubjectAccessReview":
            # Groups are taken as they are: the user of a review need not be a known user.
            user = User(text(spec, "user"), tuple(strings(spec, "groups")))
        why = "" if not self._enforced else self._authorizer.why(user, wanted(spec))
        if why is None:
            return {"allowed": False}
        return {"allowed": True} | ({"reason": why} if why else {})

    def _rules(self, namespace: str, user: User) -> Obj:
        asked = user if self._enforced else User(user.name, (*user.groups, MASTERS))
        rules = self._authorizer.rules(asked, namespace)
        return {
            "resourceRules": [dict(each) for each in rules if not each.get("nonResourceURLs")],
            "nonResourceRules": [dict(each) for each in rules if each.get("nonResourceURLs")],
            "incomplete": False,
        }


def _namespace(review: Obj, request: Request) -> str:
    """Return the namespace of a call, which is then that of the review."""
    namespace = attributes_of(request).namespace
    if review["metadata"].setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return namespace


def reviewed_resource(path: str) -> ResourceType | None:
    """Return the kind of review that a path addresses; a local review has a namespace."""
    head, inside, rest = path.rstrip("/").partition("/namespaces/")
    namespace, _, word = rest.partition("/")
    found = _BY_PATH.get(f"{head}/{word}" if inside else head)
    return found if found is not None and found.namespaced == bool(namespace) else None

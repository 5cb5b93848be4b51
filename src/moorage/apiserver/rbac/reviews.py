"""Questions about callers and access: objects that are answered and never stored.

``kubectl auth can-i`` and ``auth whoami`` ask them; components that check their own callers do.
Discovery lists them. Mirrors kubernetes v1.36 pkg/registry/{authorization,authentication}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moorage.api.resources import ResourceType, group_version_path
from moorage.apiserver.bodies import decode_json
from moorage.apiserver.kind import Obj
from moorage.apiserver.negotiate import content_type
from moorage.apiserver.protobuf import PROTOBUF
from moorage.apiserver.rbac.authorizer import AUTHENTICATED, MASTERS, Authorizer
from moorage.apiserver.rbac.review_messages import read_review
from moorage.apiserver.rbac.rules import Attributes
from moorage.apiserver.render import encode
from moorage.apiserver.requests import Reply, Request, User
from moorage.apiserver.status import bad_request, method_not_allowed

TokenReview = Callable[[str, Sequence[str]], Obj]
"""Returns the status of a ``TokenReview``, of a token and the audiences it may be for."""


def _type(api_version: str, kind: str, *, namespaced: bool = False) -> ResourceType:
    group, _, version = api_version.partition("/")
    word = kind.lower()
    return ResourceType(group, version, kind, f"{word}s", word, namespaced)


REVIEWS = (
    _type("authentication.k8s.io/v1", "SelfSubjectReview"),
    _type("authentication.k8s.io/v1", "TokenReview"),
    _type("authorization.k8s.io/v1", "LocalSubjectAccessReview", namespaced=True),
    _type("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    _type("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
    _type("authorization.k8s.io/v1", "SubjectAccessReview"),
)
"""The kinds that are answered here."""
_BY_PATH = {f"{group_version_path(r.group, r.version)}/{r.plural}": r for r in REVIEWS}


class Reviews:
    """Answers reviews.

    Parameters
    ----------
    authorizer
        Who decides.
    token_review
        Says whose a token is.
    enforced
        Whether its decisions hold; otherwise everybody known may do everything.
    """

    def __init__(
        self, authorizer: Authorizer, token_review: TokenReview, *, enforced: bool
    ) -> None:
        self._authorizer = authorizer
        self._token_review = token_review
        self._enforced = enforced

    def answer(self, request: Request, user: User) -> Reply | None:
        """Answer a review; None when the request is none.

        Raises
        ------
        StatusError
            400: not a review. 405: another method than POST.
        """
        resource = _addressed(request.path)
        if resource is None:
            return None
        if request.method != "POST":
            raise method_not_allowed()
        kind = resource.kind
        review: Any
        if content_type(request.headers.get("content-type", "")) == PROTOBUF:
            review = read_review(request.body, kind)
        else:
            review = decode_json(request)
        if not isinstance(review, dict) or review.get("kind", kind) != kind:
            raise bad_request(f"expected a {kind}")
        review = {"kind": kind, "apiVersion": resource.api_version, **review}
        review.setdefault("metadata", {})
        review["status"] = self._status(kind, review.get("spec") or {}, user)
        return Reply(status=201, body=encode(review) + b"\n")

    def _status(self, kind: str, spec: Obj, user: User) -> Obj:
        if kind == "SelfSubjectReview":
            groups = list(dict.fromkeys([*user.groups, AUTHENTICATED]))
            return {"userInfo": {"username": user.name, "groups": groups}}
        if kind == "TokenReview":
            return self._token_review(*_token(spec))
        if kind == "SelfSubjectRulesReview":
            return self._rules(str(spec.get("namespace") or ""), user)
        if kind != "SelfSubjectAccessReview":
            user = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
        why = "" if not self._enforced else self._authorizer.why(user, _wanted(spec))
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


def _addressed(path: str) -> ResourceType | None:
    """Return the review a path is of; only that of a namespace is asked in one."""
    head, inside, rest = path.rstrip("/").partition("/namespaces/")
    namespace, _, word = rest.partition("/")
    found = _BY_PATH.get(f"{head}/{word}" if inside else head)
    return found if found is not None and found.namespaced == bool(namespace) else None


def _token(spec: Obj) -> tuple[str, list[str]]:
    token, audiences = spec.get("token"), spec.get("audiences") or []
    if not isinstance(token, str) or not token:
        raise bad_request("token is required for TokenReview in authentication")
    if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
        raise bad_request("TokenReview: audiences are texts")
    return token, audiences


def _wanted(spec: Obj) -> Attributes:
    asked: dict[str, Any] | None = spec.get("resourceAttributes")
    if asked is None:
        path = spec.get("nonResourceAttributes")
        if not isinstance(path, dict):
            raise bad_request(
                "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            )
        return Attributes(verb=str(path.get("verb", "")), path=str(path.get("path", "")))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{field: str(asked.get(field) or "") for field in fields})

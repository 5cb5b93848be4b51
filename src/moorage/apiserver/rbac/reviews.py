"""Questions about access: objects that are answered and never stored.

``kubectl auth can-i`` and ``auth whoami`` ask them; components that check their own callers do.
Mirrors kubernetes v1.36 pkg/registry/authorization and pkg/registry/authentication.
"""

from __future__ import annotations

from typing import Any

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

_AUTHORIZATION = "/apis/authorization.k8s.io/v1/"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Reviews:
    """Answers reviews.

    Parameters
    ----------
    authorizer
        Who decides.
    enforced
        Whether its decisions hold; otherwise everybody known may do everything.
    """

    def __init__(self, authorizer: Authorizer, *, enforced: bool) -> None:
        self._authorizer = authorizer
        self._enforced = enforced

    def answer(self, request: Request, user: User) -> Reply | None:
        """Answer a review; None when the request is none.

        Raises
        ------
        StatusError
            400: not a review. 405: another method than POST.
        """
        path, namespace = request.path.rstrip("/"), ""
        if path != _WHO and not path.startswith(_AUTHORIZATION):
            return None
        words = path.rpartition("/v1/")[2].split("/")
        if words[0] == "namespaces" and len(words) == 3:
            namespace, words = words[1], words[2:]
        word = words[0] if len(words) == 1 else ""
        if word not in _KINDS or bool(namespace) != (word == "localsubjectaccessreviews"):
            return None
        if request.method != "POST":
            raise method_not_allowed()
        review: Any
        if content_type(request.headers.get("content-type", "")) == PROTOBUF:
            review = read_review(request.body, _KINDS[word])
        else:
            review = decode_json(request)
        if not isinstance(review, dict) or review.get("kind", _KINDS[word]) != _KINDS[word]:
            raise bad_request(f"expected a {_KINDS[word]}")
        review = {"kind": _KINDS[word], "apiVersion": _version(path), **review}
        review.setdefault("metadata", {})
        review["status"] = self._status(word, review.get("spec") or {}, user)
        return Reply(status=201, body=encode(review) + b"\n")

    def _status(self, word: str, spec: Obj, user: User) -> Obj:
        if word == "selfsubjectreviews":
            groups = list(dict.fromkeys([*user.groups, AUTHENTICATED]))
            return {"userInfo": {"username": user.name, "groups": groups}}
        if word == "selfsubjectrulesreviews":
            return self._rules(str(spec.get("namespace") or ""), user)
        if word != "selfsubjectaccessreviews":
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


_KINDS = {
    "selfsubjectreviews": "SelfSubjectReview",
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "subjectaccessreviews": "SubjectAccessReview",
    "localsubjectaccessreviews": "LocalSubjectAccessReview",
}


def _version(path: str) -> str:
    return "authentication.k8s.io/v1" if path == _WHO else "authorization.k8s.io/v1"


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

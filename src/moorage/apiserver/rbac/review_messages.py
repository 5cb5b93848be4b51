"""Reviews in protobuf, as ``kubectl auth can-i`` sends them, to their JSON form.

Field numbers of kubernetes v1.36 staging/src/k8s.io/api/{authentication,authorization}/v1
generated.proto; numbers never change there. Answers are always JSON.
"""

from __future__ import annotations

from moorage.apiserver.kind import Obj
from moorage.apiserver.protobuf import fields_of, malformed, open_envelope, text_of

_SPEC = 2
_RESOURCE = {
    1: "namespace",
    2: "verb",
    3: "group",
    4: "version",
    5: "resource",
    6: "subresource",
    7: "name",
}
_PATH = {1: "path", 2: "verb"}


def read_review(body: bytes, kind: str) -> Obj:
    """Return the JSON form of a review.

    Raises
    ------
    StatusError
        400: not protobuf in the envelope of Kubernetes, or another kind.
    """
    version, raw = open_envelope(body, kind)
    spec: Obj = {}
    for number, value in fields_of(raw):
        if number == _SPEC:
            spec = _spec(_message(value), kind)
    return {"apiVersion": version, "kind": kind, "spec": spec}


def _spec(raw: bytes, kind: str) -> Obj:
    spec: Obj = {}
    for number, value in fields_of(raw):
        if kind == "SelfSubjectRulesReview":
            if number == 1:
                spec["namespace"] = text_of(value)
        elif kind == "TokenReview":
            if number == 1:
                spec["token"] = text_of(value)
            elif number == 2:
                spec.setdefault("audiences", []).append(text_of(value))
        elif number == 1:
            spec["resourceAttributes"] = _texts(_message(value), _RESOURCE)
        elif number == 2:
            spec["nonResourceAttributes"] = _texts(_message(value), _PATH)
        elif number == 3:
            spec["user"] = text_of(value)
        elif number == 4:
            spec.setdefault("groups", []).append(text_of(value))
    return spec


def _texts(raw: bytes, names: dict[int, str]) -> dict[str, str]:
    return {names[number]: text_of(value) for number, value in fields_of(raw) if number in names}


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise malformed("a number where a message is expected")
    return value

"""Has objects of a definition converted between its versions by a webhook.

Place in the flow: `catalog` asks here wherever an object is needed in another version than it is
stored in. Where an answer is missing, `AnswersNeeded` is raised and nothing has been changed; the
call is answered once more with the answer. Mirrors kubernetes v1.36 apiextensions-apiserver
pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.base.errors import DecodeError
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, internal
from moorage.kinds.tree import child, strings, text
from moorage_sandbox.apiserver.webhooks.addresses import HookAddresses
from moorage_sandbox.apiserver.webhooks.answers import (
    Answer,
    Answers,
    AnswersNeeded,
    HookError,
    Question,
    current_answers,
)
from moorage_sandbox.apiserver.webhooks.reviews import (
    ReviewType,
    review_version,
    type_fault,
    uid_fault,
)
from moorage_sandbox.apiserver.wire.bodies import bounded_json

_GROUP: Final = "apiextensions.k8s.io"
_KIND: Final = "ConversionReview"
_TIMEOUT_SECONDS: Final = 30
# Objects of one review: a guess, so that an answer stays below the bound of answers.
_BYTES_MAX: Final = 1_000_000
# The metadata that a webhook may change, and the metadata that identify an object. All else comes
# from the object, so that a new version of the same content needs no new answer.
_CHANGEABLE: Final = ("labels", "annotations")
_IDENTITY: Final = ("name", "namespace", "uid")

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class _Response(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    converted_objects: list[dict[str, Any]] | None = None
    result: dict[str, Any] | None = None


class _Review(ReviewType, frozen=True):
    response: _Response | None = None


class WebhookConverter:
    """Converts the objects of one definition.

    Parameters
    ----------
    definition
        The definition, whose conversion has the strategy ``Webhook``.
    addresses
        The places where webhooks listen.
    """

    def __init__(self, definition: Obj, addresses: HookAddresses) -> None:
        webhook = child(definition, "spec", "conversion", "webhook")
        self._name = text(definition, "metadata", "name")
        self._client = child(webhook, "clientConfig")
        self._versions = strings(webhook, "conversionReviewVersions")
        self._addresses = addresses

    def convert(self, objs: Sequence[Obj], wanted: str) -> list[Obj]:
        """Return objects in another API version.

        Raises
        ------
        AnswersNeeded
            The webhook has to answer first.
        StatusError
            500: the webhook gives no answer that can be used.
        """
        answers = current_answers()
        if answers is None:
            # Every call has answers while a definition has a webhook (`Lanes.may_ask`).
            raise internal(f"the server itself needs an object of {self._name} as {wanted}")
        keys = [_key(each, wanted) for each in objs]
        missing = {
            key: obj for key, obj in zip(keys, objs, strict=True) if key not in answers.conversions
        }
        if missing:
            self._take_answers(missing, wanted, answers)
        return [
            _with_metadata(obj, answers.conversions[key])
            for obj, key in zip(objs, keys, strict=True)
        ]

    def _take_answers(self, missing: Mapping[bytes, Obj], wanted: str, answers: Answers) -> None:
        """Read the answers about objects, or ask for those that are not there."""
        unasked = []
        for keys in _parts(missing):
            objs = [missing[key] for key in keys]
            question = self._question(objs, wanted)
            answer = answers.answer_to(question)
            if answer is None:
                unasked.append(question)
                continue
            try:
                converted = _read(answer, self._review_version, objs, wanted)
            except HookError as error:
                raise _failed(objs[0], error) from error
            answers.conversions.update(zip(keys, converted, strict=True))
        if unasked:
            raise AnswersNeeded(unasked)

    @property
    def _review_version(self) -> str:
        return review_version(self._versions)

    def _question(self, objs: Sequence[Obj], wanted: str) -> Question:
        request = {"desiredAPIVersion": wanted, "objects": list(objs)}
        version = f"{_GROUP}/{self._review_version}"
        review = {"kind": _KIND, "apiVersion": version, "request": request}
        try:
            endpoint = self._addresses.endpoint(self._client)
        except HookError as error:
            raise _failed(objs[0], error) from error
        return Question(
            about=f"{_KIND} {wanted} {_encode(request).decode()}",
            endpoint=endpoint,
            timeout_seconds=_TIMEOUT_SECONDS,
            review=review,
        )


def _parts(missing: Mapping[bytes, Obj]) -> Iterator[list[bytes]]:
    """Yield the keys of the objects of each review."""
    keys: list[bytes] = []
    size = 0
    for key in missing:
        if keys and size + len(key) > _BYTES_MAX:
            yield keys
            keys, size = [], 0
        keys.append(key)
        size += len(key)
    yield keys


def _key(obj: Obj, wanted: str) -> bytes:
    meta = {
        name: obj["metadata"][name]
        for name in (*_IDENTITY, *_CHANGEABLE)
        if name in obj["metadata"]
    }
    return _encode([wanted, obj | {"metadata": meta}])


def _with_metadata(obj: Obj, converted: Obj) -> Obj:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _CHANGEABLE}
    changed = converted["metadata"]
    meta |= {key: changed[key] for key in _CHANGEABLE if changed.get(key) is not None}
    return converted | {"metadata": meta}


def _failed(obj: Obj, error: HookError) -> StatusError:
    api_version, kind = text(obj, "apiVersion"), text(obj, "kind")
    return StatusError(
        500, "", f"conversion webhook for {api_version}, Kind={kind} failed: {error}"
    )


def _read(answer: Answer, version: str, objs: Sequence[Obj], wanted: str) -> list[Obj]:
    """Return the converted objects of an answer.

    Raises
    ------
    HookError
        There is no answer, or it is no conversion of these objects.
    """
    if answer.failure:
        raise HookError(answer.failure)
    try:
        review = msgspec.convert(bounded_json(answer.body), _Review)
    except (DecodeError, StatusError, msgspec.ValidationError) as error:
        raise HookError(f"the answer is no {_KIND}: {error}") from error
    response = review.response or _Response()
    why = type_fault(review, f"{_GROUP}/{version}", _KIND) or uid_fault(response.uid, answer.uid)
    if why:
        raise HookError(why)
    result = response.result or {}
    status = text(result, "status")
    if status != "Success":
        raise HookError(
            text(result, "message") or f"response.result.status was '{status}', not 'Success'"
        )
    converted = response.converted_objects or []
    if len(converted) != len(objs):
        raise HookError(f"expected {len(objs)} converted objects, got {len(converted)}")
    for index, (before, after) in enumerate(zip(objs, converted, strict=True)):
        if why := _fault(before, after, wanted):
            raise HookError(f"invalid converted object at index {index}: {why}")
    return converted


def _fault(before: Obj, after: Obj, wanted: str) -> str:
    """Return what is wrong with a converted object; empty where nothing is."""
    meta = after.get("metadata")
    if not isinstance(meta, dict):
        return f"invalid metadata of type {type(meta).__name__}"
    pairs = [
        ("kind", before.get("kind"), after.get("kind")),
        ("apiVersion", wanted, after.get("apiVersion")),
        *((f"metadata.{each}", before["metadata"].get(each), meta.get(each)) for each in _IDENTITY),
    ]
    for field, expected, found in pairs:
        if (expected or "") != (found or ""):
            return f"must have the same {field}: {expected or ''} != {found or ''}"
    for name in _CHANGEABLE:
        values = meta.get(name)
        if values is not None and not (
            isinstance(values, dict) and all(isinstance(each, str) for each in values.values())
        ):
            return f"metadata.{name} is no map of strings"
    return ""

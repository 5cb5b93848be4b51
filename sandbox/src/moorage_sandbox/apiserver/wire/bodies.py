"""From the bytes of a body to an object of the kind in the path.

Checked here: JSON, apiVersion and kind, unknown fields (``fieldValidation``), wrong types. The
kind checks the values later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api.bounds import BODY_LIMIT_BYTES, OF_BODY, check_bounds
from moorage.api.resources import ResourceType
from moorage.base.errors import DecodeError
from moorage.kinds.kind import Obj
from moorage.kinds.schema.shape import builtin_shape
from moorage.kinds.served import ServedKind
from moorage.kinds.status import (
    StatusError,
    bad_request,
    too_large,
    unsupported_media_type,
)
from moorage_sandbox.apiserver.protobuf.facts import message_of
from moorage_sandbox.apiserver.wire.negotiate import JSON, SPOKEN, SPOKEN_BUILT_IN, content_type
from moorage_sandbox.apiserver.wire.requests import Query, Request

# A string of JSON, perhaps without its end; the match never backtracks (``*+``).
_TEXT = re.compile(rb'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)
_PIECE = re.compile(rb'(?:[^"]+|"(?:[^"\\]+|\\.)*+"?){1,5000}+', re.DOTALL)

_decoder = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class Sent(msgspec.Struct, frozen=True):
    """A body as sent, and its decoded value.

    Parameters
    ----------
    body
        JSON; empty where the body had another form.
    decoded
        The value of the body.
    repeated
        A sentence for each key that a YAML body gives twice.
    """

    body: bytes
    decoded: Any
    repeated: tuple[str, ...] = ()


def check_length(body: bytes) -> None:
    """Refuse a body that is too long.

    Raises
    ------
    StatusError
        413.
    """
    if len(body) > BODY_LIMIT_BYTES:
        raise too_large(BODY_LIMIT_BYTES)


def decode_json(request: Request) -> Any:
    """Decode a JSON body of any shape.

    Raises
    ------
    StatusError
        413: too large. 400: not JSON, too deep or too many values.
    """
    check_length(request.body)
    try:
        return bounded_json(request.body)
    except DecodeError as error:
        raise bad_request(
            f"couldn't get version/kind; json parse error: {error} ({_summary(request.body)})"
        ) from error


def bounded_json(text: bytes) -> Any:
    """Decode JSON within the bounds of a body, also where it is only a part of one.

    Raises
    ------
    DecodeError
        Not JSON, too deep or too many values.
    """
    brackets = text.count(b"{") + text.count(b"[")
    try:
        if brackets + text.count(b",") > OF_BODY.values_max:
            _check_count(text)
        value = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(str(error)) from error
    if brackets > OF_BODY.depth_max:
        check_bounds(value, OF_BODY)
    return value


def are_small(*documents: bytes) -> bool:
    """Whether a merge of JSON documents is surely within `OF_BODY`.

    A merge has at most the values of all documents. It is nested as deeply as one of them, so its
    depth is at most the number of all brackets.
    """
    brackets = sum(each.count(b"{") + each.count(b"[") for each in documents)
    commas = sum(each.count(b",") for each in documents)
    return brackets <= OF_BODY.depth_max and brackets + commas <= OF_BODY.values_max


def _check_count(body: bytes) -> None:
    """Refuse too many values before decoding, because decoding cannot be interrupted."""
    count = place = 0
    # Piece by piece, so that other threads get their turns.
    while piece := _PIECE.match(body, place):
        bare = _TEXT.sub(b"", piece[0])
        # Every value but the first follows one of these characters.
        count += bare.count(b"{") + bare.count(b"[") + bare.count(b",")
        if count > OF_BODY.values_max:
            raise DecodeError(f"more than {OF_BODY.values_max} values")
        place = piece.end()


def decode_object(request: Request, resource: ResourceType) -> tuple[Obj, Sent]:
    """Decode a body that must be one object of a kind; return the object and the body.

    Raises
    ------
    StatusError
        415: the body is not JSON; YAML and protobuf have been converted before. 413: too large.
        400: the body cannot be read, or has another kind.
    """
    form = content_type(request.headers.get("content-type", ""))
    if form not in {"", JSON}:
        known = message_of(resource.api_version, resource.kind) is not None
        raise unsupported_media_type(SPOKEN_BUILT_IN if known else SPOKEN)
    try:
        obj = decode_json(request)
    except StatusError as error:
        if error.code != 400:
            raise
        raise bad_request(_unrecognized(resource, error.message)) from error
    return check_kind(obj, resource), Sent(request.body, obj)


def check_kind(obj: Any, resource: ResourceType) -> Obj:
    """Return the object if it is of this kind; a missing kind or version is filled in.

    Raises
    ------
    StatusError
        400: not an object, or of another kind.
    """
    if not isinstance(obj, dict):
        text = f"couldn't get version/kind; expected a JSON object, not {type(obj).__name__}"
        raise bad_request(_unrecognized(resource, text))
    kind = obj.get("kind") or resource.kind
    version = obj.get("apiVersion") or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f'expected kind "{resource.kind}" of version "{resource.api_version}"'
        )
    # People see the order of keys in `-o yaml` of other tools; kind and version come first.
    typed = {"apiVersion": version, "kind": kind, **obj}
    typed["apiVersion"], typed["kind"] = version, kind
    meta = typed["metadata"] = {} if typed.get("metadata") is None else typed["metadata"]
    if not isinstance(meta, dict):
        raise _cannot_be_handled(resource, "json: cannot unmarshal metadata: not an object")
    return typed


def decode_typed(request: Request, resource: ResourceType) -> Obj:
    """Decode a body that is answered and not stored.

    Raises
    ------
    StatusError
        As for `decode_object` and `typed`.
    """
    return _fitting(decode_object(request, resource)[0], resource)


def typed(obj: Any, resource: ResourceType) -> Obj:
    """Return an object of a built-in kind without nulls and unknown fields.

    Raises
    ------
    StatusError
        400: not an object, of another kind, or with a value of a wrong type.
    """
    return _fitting(check_kind(obj, resource), resource)


def _fitting(obj: Obj, resource: ResourceType) -> Obj:
    shape = builtin_shape(resource)
    wrong = shape.type_errors(obj)
    if wrong:
        raise _cannot_be_handled(resource, wrong[0])
    shape.prune(obj)
    return obj


def check_fields(
    obj: Obj, kind: ServedKind, query: Query, sent: Sent, *, applied: bool = False
) -> list[str]:
    """Check an object against the schema; drop unknown fields, and return warnings.

    Nulls are dropped too; every remaining value has the right type.

    Parameters
    ----------
    obj
        The object that would be stored.
    kind
        The kind in the object's ``apiVersion`` and ``kind``.
    query
        Parameters of the call; only ``fieldValidation`` is read.
    sent
        The body, in which a field may occur twice.
    applied
        The object is a configuration to apply, and all its fields have to be in the schema.

    Returns
    -------
    list of str
        Warnings for unknown fields and for fields given twice.

    Raises
    ------
    StatusError
        400: a value of a wrong type; under ``fieldValidation=Strict`` an unknown field or a field
        given twice. 500: a field of an applied configuration is not in the schema.
    """
    mode = query.text("fieldValidation") or "Warn"
    warnings: list[str] = []
    if mode != "Ignore" and not sent.body:
        warnings = list(sent.repeated)
    elif mode != "Ignore":
        twice = duplicate_fields(sent.body, sent.decoded)
        warnings = [f'duplicate field "{path}"' for path in twice]
    shape = kind.shape
    if shape.fits(obj):
        return _strict(warnings, kind) if mode == "Strict" else warnings
    wrong = shape.type_errors(obj)
    if wrong:
        raise _cannot_be_handled(kind.resource, wrong[0])
    if applied:
        if mode == "Strict":
            _strict(warnings, kind)
        _check_declared(obj, kind)
    if mode != "Ignore":
        warnings[:0] = [f'unknown field "{path}"' for path in shape.unknown_fields(obj)]
    if mode == "Strict":
        _strict(warnings, kind)
    shape.prune(obj)
    return warnings


def _check_declared(obj: Obj, kind: ServedKind) -> None:
    """Refuse a configuration with fields that the schema does not have.

    Notes
    -----
    structured-merge-diff v6 typed, and apimachinery v1.36 pkg/util/managedfields/internal
    (structuredmerge.go), whose error has no reason, hence 500.
    """
    unknown = [f".{path}: field not declared in schema" for path in kind.shape.unknown_fields(obj)]
    if not unknown:
        return
    meta, resource = obj["metadata"], kind.resource
    name = "/".join(str(meta[key]) for key in ("namespace", "name") if meta.get(key))
    listed = unknown[0] if len(unknown) == 1 else "\n  ".join(["errors:", *unknown])
    text = (
        f"failed to create typed patch object ({name}; {resource.api_version}, "
        f"Kind={resource.kind}): {listed}"
    )
    raise StatusError(500, "", text)


def _strict(faults: list[str], kind: ServedKind) -> list[str]:
    """Raise a 400 for errors in a body's fields; return the empty list without errors."""
    if faults:
        text = f"strict decoding error: {', '.join(faults)}"
        raise _cannot_be_handled(kind.resource, text)
    return faults


def _cannot_be_handled(resource: ResourceType, why: str) -> StatusError:
    return bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a '
        f"{resource.kind}: {why}"
    )


def _unrecognized(resource: ResourceType, why: str) -> str:
    return f"the object provided is unrecognized (must be of type {resource.kind}): {why}"


def _summary(body: bytes) -> str:
    """Return the beginning of a body in kube-apiserver's form, as hexadecimal bytes."""
    if not body:
        return "<empty>"
    shown = body[:30].hex()
    return f"{shown} ..." if len(body) > 30 else shown


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object in the order of the body, duplicates included."""


def duplicate_fields(body: bytes, decoded: Any) -> list[str]:
    """Return the paths of the fields that a body gives more than once, each once.

    Parameters
    ----------
    body
        JSON, UTF-8.
    decoded
        The decoded body, in which the last value of a field has replaced the others.

    Notes
    -----
    apimachinery v1.36 pkg/runtime/serializer/json, strict decoding.
    """
    # Each dropped field had two quotation marks; nearly every body returns here.
    if body.count(b'"') == _encode(decoded).count(b'"'):
        return []
    tree = json.loads(body, object_pairs_hook=_Pairs)
    return list(dict.fromkeys(_repeated_keys(tree, "")))


def _repeated_keys(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        keys = set()
        for key, member in value:
            where = f"{path}.{key}" if path else key
            if key in keys:
                yield where
            keys.add(key)
            yield from _repeated_keys(member, where)
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _repeated_keys(element, f"{path}[{index}]")

"""The one reader of files with objects: manifests, snapshots, what kubectl prints.

People have such files in many forms, and every command reads them all: YAML with several documents,
JSON, JSON objects one after another, JSON lines, Lists, typed lists whose items name no kind,
arrays, and each of them in UTF-8 or, as a redirection in PowerShell writes it, in UTF-16.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from moorage.api.bounds import OF_FILE, check_bounds
from moorage.api.codec import NOT_JSON, decode_untyped, encode
from moorage.base.errors import DecodeError, UsageError

# The mark of UTF-32 begins with that of UTF-16, so it comes first.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SPACE: Final = " \t\r\n"

ObjectText = bytes | msgspec.Raw
"""The JSON of one object."""


class _List(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    # A program in Go writes null for an empty list.
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


class _Kind(msgspec.Struct):
    kind: str = ""


_list = msgspec.json.Decoder(_List).decode
_kind = msgspec.json.Decoder(_Kind).decode
_raw = msgspec.json.Decoder(msgspec.Raw).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


def utf8(text: bytes) -> bytes:
    """Return a text in UTF-8 without a byte-order mark, whatever mark it begins with.

    Raises
    ------
    DecodeError
        The text is not in the encoding that its mark names.
    """
    for mark, encoding in _MARKS:
        if text.startswith(mark):
            if encoding == "utf-8":
                return text[len(mark) :]
            try:
                return text[len(mark) :].decode(encoding).encode()
            except UnicodeError as error:
                raise DecodeError(f"it begins as {encoding.upper()} and is not: {error}") from error
    return text


def object_texts(text: bytes) -> Iterator[tuple[str, ObjectText]]:
    """Yield every object of a text with its place in words, Lists and arrays taken apart.

    An item of a typed list gets the kind and apiVersion that it lacks.

    Raises
    ------
    DecodeError
        The text is neither JSON nor YAML, or has a value that is no object.
    """
    for number, document in enumerate(_documents(utf8(text)), start=1):
        where = f"document {number}"
        try:
            yield from _flat(document, where)
        except NOT_JSON as error:
            raise DecodeError(f"{where}: {error}") from error


def _documents(text: bytes) -> Iterator[ObjectText]:
    """Yield the JSON of every document that is not empty."""
    fault: DecodeError | None = None
    if text.lstrip()[:1] in (b"{", b"["):
        try:
            yield from _json_documents(text)
        except DecodeError as error:
            fault = error  # YAML in flow style begins alike
        else:
            return
    # Most texts of programs are JSON, and this takes time to import.
    from moorage.api.yaml_text import read_yaml

    try:
        documents = read_yaml(text)
    except DecodeError as error:
        before = "" if fault is None else f"{fault}; "
        raise DecodeError(f"{before}not YAML: {error}") from error
    yield from (encode(each) for each in documents if each is not None)


def _json_documents(text: bytes) -> list[ObjectText]:
    """Return the JSON values that stand one after another in a text, null left out.

    Raises
    ------
    DecodeError
        There is something else between them.
    """
    try:
        return [_raw(text)]
    except NOT_JSON:
        pass  # several values, or no JSON
    documents: list[ObjectText] = []
    decoder = json.JSONDecoder()
    try:
        decoded, at = text.decode(), 0
        while at < len(decoded):
            if decoded[at] in _SPACE:
                at += 1
                continue
            value, end = decoder.raw_decode(decoded, at)
            if value is not None:  # kubectl passes over it, as over an empty document
                documents.append(decoded[at:end].encode())
            at = end
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"not JSON: {error}") from error
    return documents


def _flat(text: ObjectText, where: str) -> Iterator[tuple[str, ObjectText]]:
    if bytes(memoryview(text)[:64]).lstrip()[:1] == b"[":
        for number, each in enumerate(_array(text), start=1):
            yield from _flat(each, f"{where}, item {number}")
        return
    if bytes(memoryview(text)[:64]).lstrip()[:1] != b"{":
        raise DecodeError(f"{where}: not a Kubernetes object but {_what(text)}")
    try:
        listed = _list(text)
    except msgspec.ValidationError as error:
        if _kind_of(text) == "List":
            raise DecodeError(f"{where}: items of a List are an array: {error}") from error
        yield where, text  # no list, and perhaps no object either
        return
    if listed.items is msgspec.UNSET or not listed.kind.endswith("List"):
        yield where, text
        return
    named = with_kind(listed.items or [], listed.kind.removesuffix("List"), listed.api_version)
    for number, item in enumerate(named, start=1):
        yield from _flat(item, f"{where}, item {number}")


def with_kind(items: list[msgspec.Raw], kind: str, api_version: str) -> Iterator[ObjectText]:
    """Yield the items of a typed list (PodList) with their kind, which they do not name.

    Parameters
    ----------
    kind, api_version
        Of the items; "" for a List of any objects.
    """
    head = encode({"apiVersion": api_version, "kind": kind})[:-1]
    for item in items:
        body: bytes = bytes(item).lstrip()
        if not kind or body[:1] != b"{" or _names_kind(body):
            yield item
            continue
        rest = body[1:].lstrip()
        yield head + rest if rest.startswith(b"}") else head + b"," + rest


def _what(text: ObjectText) -> str:
    value = msgspec.json.decode(text)
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _names_kind(text: bytes) -> bool:
    kind = _kind_of(text)
    return kind is None or bool(kind)  # a kind that is no text is not replaced


def _kind_of(text: ObjectText) -> str | None:
    """Return the kind that the JSON of an object names, None for one that is no text."""
    try:
        return _kind(text).kind
    except msgspec.ValidationError:
        return None


def parse_manifests(text: bytes, source: str) -> list[dict[str, Any]]:
    """Read every object of a text; the items of a List count one by one.

    Raises
    ------
    UsageError
        The text is neither YAML nor JSON, or holds values that are not Kubernetes objects.
    """
    try:
        return [
            _manifest_of(decode_untyped(each), f"{source}: {where}")
            for where, each in object_texts(text)
        ]
    except DecodeError as error:
        raise UsageError(f"{source}: {error}") from error


def _manifest_of(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Return an object that names what it is."""
    kind, version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise UsageError(f"{where}: no kind; every object needs apiVersion, kind and metadata")
    if not isinstance(version, str) or not version:
        raise UsageError(f"{where}: {kind} without apiVersion; a Pod has apiVersion: v1")
    if not isinstance(document.get("metadata"), dict):
        raise UsageError(f"{where}: {kind} without metadata; it needs at least a name")
    check_bounds(document, OF_FILE)
    return document

"""YAML as Kubernetes reads and writes it: the only module that knows the YAML library.

Place in the flow: bodies of calls, manifests, kubeconfigs, configuration files and files of nodes
are read here; whatever is shown as YAML is written here. Text becomes the values that JSON has.

Reading goes from one parser event to the next with a stack of its own, so no text can exhaust the
stack of the process. Each bound is checked before a value is built.

Rules mirrored: sigs.k8s.io/yaml v1.6 on go-yaml v2 (resolve.go, decode.go). Two differences: a key
given twice is refused (go-yaml does so in strict mode only), and the bounds are ours.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from moorage.api.bounds import OF_FILE, Bounds
from moorage.api.manifest_text import utf8
from moorage.base.errors import DecodeError

# The parser compares each %TAG line with all before it.
_DIRECTIVES_MAX = 100
_DIRECTIVE = re.compile(rb"^%", re.MULTILINE)

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Emitter: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_TAG = "tag:yaml.org,2002:"
_STR, _NULL, _BOOL, _INT, _FLOAT, _BINARY, _TIMESTAMP = (
    _TAG + name for name in ("str", "null", "bool", "int", "float", "binary", "timestamp")
)
_RESOLVED = frozenset({_STR, _NULL, _BOOL, _INT, _FLOAT, _TIMESTAMP})

_WORDS: Final[dict[str, Any]] = {
    word: value
    for value, words in (
        (None, ("", "~", "null", "Null", "NULL")),
        (True, ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")),
        (False, ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")),
        (math.nan, (".nan", ".NaN", ".NAN")),
        (math.inf, (".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF")),
        (-math.inf, ("-.inf", "-.Inf", "-.INF")),
    )
    for word in words
}
# go-yaml's yamlStyleFloat. Base 60 is not a number in go-yaml, nor here.
_FLOAT_TEXT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WHOLE_TEXT = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))"
)
_BASES = (16, 2, 8, 10)
# A number has 64 bits. A longer text, leading zeros apart, is not read as a number.
_DIGITS_MAX = 64
_NUMBER_LENGTH_MAX = 400
_DATE_TEXT = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
# A number to readers of YAML 1.1, but text to Kubernetes.
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
# From here on, JSON shows a float with an exponent; a smaller whole one is a whole number.
_EXPONENT_FROM = 1e21


def resolve(text: str) -> Any:
    """Return the value of a plain scalar: text unless it has the form of another type.

    Returns
    -------
    Any
        None, a bool, an int of 64 bits, a float, or the text itself.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > _NUMBER_LENGTH_MAX:
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    whole = _WHOLE_TEXT.fullmatch(plain)
    if whole is not None:
        number = _whole(whole)
        if number is not None:
            return number
    if _FLOAT_TEXT.fullmatch(plain):
        value = float(plain)
        if math.isfinite(value):
            return value
    return text


def _whole(match: re.Match[str]) -> int | None:
    """Return a whole number that fits into 64 bits; one with a sign fits into 63 and the sign."""
    sign = match[1]
    for base, digits in zip(_BASES, match.groups()[1:], strict=True):
        if digits is None:
            continue
        if len(digits.lstrip("0")) > _DIGITS_MAX:
            return None
        number = int(digits, base) * (-1 if sign == "-" else 1)
        return number if -(2**63) <= number < (2**63 if sign else 2**64) else None
    raise AssertionError("one of the bases has matched")


def read_yaml(
    text: bytes | str, bounds: Bounds = OF_FILE, *, repeated: list[str] | None = None
) -> list[Any]:
    """Return the value of every document of a text, None for an empty one.

    Parameters
    ----------
    text
        YAML, of which JSON is a part; in UTF-8, or in the encoding of its byte-order mark.
    bounds
        Limits of the text and its values.
    repeated
        Gets a sentence for each key that is given twice in one mapping, with its line; the last
        value counts. Without, such a key is an error.

    Raises
    ------
    DecodeError
        The text is no YAML, is beyond a bound, or has values that JSON cannot express.
    """
    data = _encoded(text)
    if len(data) > bounds.bytes_max:
        raise DecodeError(f"longer than {bounds.bytes_max} bytes")
    if sum(1 for _ in _DIRECTIVE.finditer(data)) > _DIRECTIVES_MAX:
        raise DecodeError(f"more than {_DIRECTIVES_MAX} lines that begin with %")
    builder = _Builder(bounds)
    try:
        for event in yaml.parse(data, Loader=_Parser):
            builder.add_event(event)
    except yaml.YAMLError as error:
        raise DecodeError(" ".join(str(error).split())) from error
    if repeated is not None:
        repeated += builder.repeated
    elif builder.repeated:
        raise DecodeError("; ".join(builder.repeated))
    return builder.documents


def read_one(text: bytes | str, bounds: Bounds = OF_FILE) -> Any:
    """Return the value of a text of one document, None for an empty one.

    Empty documents before and after it do not count: many programs end each document with ``---``.

    Raises
    ------
    DecodeError
        As `read_yaml`, and for more than one document.
    """
    documents = [each for each in read_yaml(text, bounds) if each is not None]
    if len(documents) > 1:
        raise DecodeError(f"expected a single document, found {len(documents)}")
    return documents[0] if documents else None


def _encoded(text: bytes | str) -> bytes:
    try:
        # The parser also reads UTF-16, where the searches here would find nothing.
        decoded = text if isinstance(text, str) else utf8(text).decode("utf-8")
        return decoded.removeprefix("\ufeff").encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise DecodeError(f"not UTF-8: {error.reason}") from error


class _Open:
    """A list or mapping whose end has not come yet."""

    __slots__ = ("anchor", "key", "merged", "merging", "value")

    def __init__(self, value: list[Any] | dict[str, Any], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        # The key whose value comes next; None where a key comes next.
        self.key: str | None = None
        # Whether the value that comes next is merged into the mapping.
        self.merging = False
        # Keys that came with a merge, and may be given once more.
        self.merged: set[str] = set()


class _Builder:
    """Makes values from the events of a parser."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open: list[_Open] = []
        self._count = 0
        # Anchor -> its value; `_UNFINISHED` while inside it.
        self._anchors: dict[str, Any] = {}
        self.documents: list[Any] = []
        self.repeated: list[str] = []

    def add_event(self, event: Any) -> None:
        """Take one parser event."""
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self._open.pop()
            if ended.anchor:
                self._anchors[ended.anchor] = ended.value
            self._place(ended.value, event)
        elif isinstance(event, yaml.AliasEvent):
            anchor = self._anchors.get(event.anchor or "", _UNKNOWN)
            if anchor is _UNKNOWN:
                raise _fault(event, f"found undefined alias {event.anchor!r}")
            if anchor is _UNFINISHED:
                raise _fault(event, f"anchor {event.anchor!r} value contains itself")
            self._add(self._again(anchor, event, len(self._open)), event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors.clear()

    def _check_bounds(self, event: Any, depth: int) -> None:
        self._count += 1
        if self._count > self._bounds.values_max:
            raise _fault(event, f"more than {self._bounds.values_max} values")
        if depth > self._bounds.depth_max:
            raise _fault(event, f"nested deeper than {self._bounds.depth_max} levels")

    def _begin(self, event: Any) -> None:
        self._check_bounds(event, len(self._open) + 1)
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None and not top.merging:
            raise _fault(event, "invalid map key: a key is neither text nor a number")
        value: list[Any] | dict[str, Any] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
        if event.anchor:
            self._anchors[event.anchor] = _UNFINISHED
        self._open.append(_Open(value, event.anchor))

    def _add(self, value: Any, event: Any) -> None:
        """Put a finished value into its place: a key, a member or an item."""
        if not isinstance(event, yaml.AliasEvent):
            self._check_bounds(event, len(self._open))
            if event.anchor:
                self._anchors[event.anchor] = value
        self._place(value, event)

    def _place(self, value: Any, event: Any) -> None:
        if not self._open:
            self.documents.append(_json_value(value, event))
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            top.value.append(_json_value(value, event))
        elif top.merging:
            self._merge(top, value, event)
        elif top.key is None:
            self._begin_member(top, value, event)
        else:
            top.value[top.key] = _json_value(value, event)
            top.key = None

    def _begin_member(self, top: _Open, value: Any, event: Any) -> None:
        if _is_merge(event):
            top.merging = True
            return
        key = _key(value, event)
        if key in top.value and key not in top.merged:
            line = event.start_mark.line + 1
            self.repeated.append(f'line {line}: key "{key}" already set in map')
        top.merged.discard(key)
        top.key = key

    def _merge(self, top: _Open, value: Any, event: Any) -> None:
        """Take over the members of mappings; of several mappings, the first takes precedence."""
        assert isinstance(top.value, dict)
        for each in reversed(value) if isinstance(value, list) else [value]:
            if not isinstance(each, dict):
                raise _fault(event, "map merge requires map or sequence of maps as the value")
            top.merged.update(key for key in each if key not in top.value)
            top.value.update(each)
        top.merging = False

    def _again(self, value: Any, event: Any, depth: int) -> Any:
        """Return a copy of the value of an anchor."""
        if isinstance(value, list):
            self._check_bounds(event, depth + 1)
            return [self._again(each, event, depth + 1) for each in value]
        if isinstance(value, dict):
            self._check_bounds(event, depth + 1)
            return {key: self._again(each, event, depth + 1) for key, each in value.items()}
        self._check_bounds(event, depth)
        return value

    def _scalar(self, event: Any) -> Any:
        text, tag = event.value, event.tag
        if tag is None or tag == "!":
            return resolve(text) if event.implicit[0] else text
        if tag == _BINARY:
            return _from_base64(event)
        if tag not in _RESOLVED or tag == _STR:
            return text
        value = resolve(text)
        if tag == _TIMESTAMP and _DATE_TEXT.fullmatch(text):
            return text
        own_tag = _tag_of(value)
        if own_tag == tag:
            return value
        if (own_tag, tag) == (_INT, _FLOAT):
            return float(value)
        shown = f"cannot decode {_short(own_tag)} `{text[:60]}` as a {_short(tag)}"
        raise _fault(event, shown)


_UNKNOWN: Final = object()
_UNFINISHED: Final = object()


def _fault(event: Any, what: str) -> DecodeError:
    mark = event.start_mark
    return DecodeError(f"line {mark.line + 1}, column {mark.column + 1}: {what}")


def _is_merge(event: Any) -> bool:
    if not isinstance(event, yaml.ScalarEvent) or event.value != "<<":
        return False
    return bool(event.implicit[0]) or event.tag == f"{_TAG}merge"


def _key(value: Any, event: Any) -> str:
    """Return a key as text, as JSON has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(str(value), f"{value:.9g}")
    what = "null" if value is None else "a list or mapping"
    raise _fault(event, f"invalid map key: {what}; a key is neither text nor a number")


def _json_value(value: Any, event: Any) -> Any:
    """Return a value as it is in JSON: a whole float is a whole number there."""
    if type(value) is not float:
        return value
    if not math.isfinite(value):
        raise _fault(event, f"{value} is no number in JSON")
    whole = value.is_integer() and abs(value) < _EXPONENT_FROM
    return int(value) if whole else value


def _from_base64(event: Any) -> str:
    try:
        data = base64.b64decode("".join(event.value.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _fault(event, "!!binary value contains invalid base64 data") from error
    return data.decode(errors="replace")


def _tag_of(value: Any) -> str:
    if value is None:
        return _NULL
    for kind, tag in ((bool, _BOOL), (int, _INT), (float, _FLOAT)):
        if isinstance(value, kind):
            return tag
    return _STR


def _short(tag: str) -> str:
    return tag.replace(_TAG, "!!")


def write_yaml(value: Any, *, sort_keys: bool = False) -> str:
    """Return a JSON value as one YAML document; text that looks like something else is quoted.

    Parameters
    ----------
    value
        None, booleans, numbers, text, lists, and mappings with keys of text.
    sort_keys
        Order the keys of each mapping; as they come otherwise.
    """
    text: str = yaml.emit(_events(value, sort_keys), Dumper=_Emitter, allow_unicode=True)
    # The mark that ends a document of one plain scalar is no part of it.
    return text.removesuffix("...\n")


def _events(value: Any, sort_keys: bool) -> Iterator[Any]:
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, yaml.Event):
            yield each
        elif isinstance(each, dict):
            yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=False)
            waiting.append(yaml.MappingEndEvent())
            keys = sorted(each) if sort_keys else list(each)
            for key in reversed(keys):
                waiting += [each[key], str(key)]
        elif isinstance(each, list | tuple):
            yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False)
            waiting.append(yaml.SequenceEndEvent())
            waiting += reversed(each)
        else:
            yield _scalar_event(each)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _scalar_event(value: Any) -> Any:
    if isinstance(value, str):
        # Dates and YAML 1.1 signs are text to Kubernetes, but other values to other readers.
        plain = value == resolve(value) and not _DATE_TEXT.fullmatch(value) and value not in "=<<"
        plain = plain and not _BASE_60.fullmatch(value)
        style = "|" if "\n" in value else None if plain else "'"
        return yaml.ScalarEvent(None, _STR, (plain, True), value, style=style)
    text = "null" if value is None else msgspec.json.encode(value).decode()
    return yaml.ScalarEvent(None, None, (True, False), text)

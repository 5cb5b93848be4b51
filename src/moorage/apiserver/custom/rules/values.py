"""Values as rules see them: decoded JSON converted for the CEL runtime.

Place in the flow: `evaluation` converts ``self`` and ``oldSelf`` here. Mirrors kubernetes v1.36
apiserver pkg/cel/common/values.go. A null field of an object counts as absent. A field that no rule
can name counts only when objects are compared.

Timestamps and durations stay text, in one spelling each, because the runtime takes no others from
outside. `checking` adds the call that parses the text where a rule uses one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from moorage.apiserver.custom.rules.forms import Form, cel_type
from moorage.base.clock import parse_rfc3339, rfc3339_micro

_INT64: Final = 2**63
_UNSEEN: Final = "\x01"
"""Prefix of the keys of fields that no rule can name: no identifier of CEL begins with it."""
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([a-zµ]+)")
# Each unit by its spellings, the last of which is a prefix: "day", "days" (strfmt, go-openapi).
_UNITS: Final[tuple[tuple[tuple[str, ...], int], ...]] = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 10**3),
    (("ms", "milli"), 10**6),
    (("s", "sec"), 10**9),
    (("m", "min"), 60 * 10**9),
    (("h", "hr", "hour"), 3600 * 10**9),
    (("d", "day"), 24 * 3600 * 10**9),
    (("w", "wk", "week"), 7 * 24 * 3600 * 10**9),
)
_encode = msgspec.json.Encoder(order="sorted").encode


class Size(msgspec.Struct):
    """Size of values; grows as they are converted.

    Parameters
    ----------
    nodes
        Number of values, including values inside others.
    characters
        Characters of all texts.
    """

    nodes: int = 0
    characters: int = 0


def cel_value(form: Form, value: Any, size: Size) -> Any:
    """Return a value converted for the CEL runtime.

    Parameters
    ----------
    form
        Form of the value; the value has passed its schema.
    value
        Decoded JSON.
    size
        Counter that every value in it is added to.

    Raises
    ------
    ValueError
        The value does not have the type in the schema.
    """
    size.nodes += 1
    if value is None:
        return None
    if form.kind in {"object", "map"}:
        _expect(isinstance(value, dict), "a map for the provided schema with type=object")
        return _object(form, value, size)
    if form.element is not None:
        _expect(isinstance(value, list), "an array for the provided schema with type=array")
        return [cel_value(form.element, each, size) for each in value]
    if isinstance(value, str):
        size.characters += len(value)
        return _text(form, value)
    _expect(isinstance(value, int | float), cel_type(form))
    if form.kind == "double":
        return float(value)
    if isinstance(value, float) and form.kind == "int":
        value = int(value)
    _expect(-_INT64 <= value < _INT64, "int, got float64")
    return value


def _expect(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"invalid data, expected {what}")


def _object(form: Form, value: Mapping[str, Any], size: Size) -> dict[str, Any]:
    if form.element is not None:
        element = form.element
        return {_whole(key): cel_value(element, each, size) for key, each in value.items()}
    seen: dict[str, Any] = {}
    for key, each in value.items():
        field = form.fields.get(key)
        if field is None:
            seen[_UNSEEN + key] = _encode(each)
        elif each is not None:
            seen[field[0]] = cel_value(field[1], each, size)
    return seen


def _whole(text: str) -> str:
    """Return a text that the runtime does not cut."""
    if "\x00" in text:
        raise ValueError("a text with a null character, which rules cannot read here")
    return text


def _text(form: Form, value: str) -> str | bytes:
    if form.kind == "bytes":
        return base64.b64decode(value, validate=True)
    if form.kind == "date":
        return f"{value}T00:00:00Z"
    if form.kind == "date-time":
        return rfc3339_micro(parse_rfc3339(value))
    if form.kind == "duration":
        return f"{_duration_ns(value)}ns"
    return _whole(value)


def _duration_ns(text: str) -> int:
    """Return nanoseconds of a text in the format ``duration``, ``1h30m`` or ``2 days``."""
    sign = -1 if text.startswith("-") else 1
    rest = text.lstrip("+-")
    if rest == "0":
        return 0
    found = _PART.findall(rest.lower())
    if not found:
        raise ValueError(f"unable to parse {text} as duration")
    return sign * int(sum(Decimal(amount) * _unit_ns(unit, text) for amount, unit in found))


def _unit_ns(unit: str, text: str) -> int:
    for spellings, ns in _UNITS:
        if unit in spellings or unit.startswith(spellings[-1]):
            return ns
    raise ValueError(f"unable to parse {text} as duration")


def in_order_of(form: Form, old: Any, new: Any) -> Any:
    """Return an old value with the items of sets and keyed lists in the order of a new one.

    For rules sets and keyed lists are equal in any order; the runtime has only lists.
    """
    element = form.element
    if isinstance(old, dict) and isinstance(new, dict):
        inner = {key: element or form.fields.get(key, (key, None))[1] for key in old if key in new}
        forms = {key: each for key, each in inner.items() if each is not None}
        return old | {key: in_order_of(each, old[key], new[key]) for key, each in forms.items()}
    if isinstance(old, list) and isinstance(new, list) and element and form.kind != "list":
        return _items_in_order(form, element, old, new)
    return old


def _items_in_order(form: Form, element: Form, old: list[Any], new: list[Any]) -> list[Any]:
    places = {item_key(form, each): (index, each) for index, each in enumerate(new)}
    last = (len(new), None)
    found = [(*places.get(item_key(form, each), last), each) for each in old]
    found.sort(key=lambda each: each[0])
    return [each if like is None else in_order_of(element, each, like) for _, like, each in found]


def item_key(form: Form, item: Any) -> bytes:
    """Return the identity of an item of a set or a keyed list."""
    if form.kind == "keyed" and isinstance(item, dict):
        return _encode([item.get(name, default) for name, default in form.keys])
    return _encode(item)

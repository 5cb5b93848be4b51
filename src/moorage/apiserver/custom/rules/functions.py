"""The functions that Kubernetes adds to CEL for rules, as far as they are available here.

Place in the flow: `runtime` adds these functions to its environments, together with the functions
of `moorage.api.cel_functions`. Mirrors kubernetes v1.36 apiserver pkg/cel/library ``regex.go``,
``lists.go`` and ``urls.go``, and cel-go ext/sets.go. CEL holds a URL as bytes: ``u`` and its parts
in JSON. Equal URLs are therefore equal in CEL, too.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote

import msgspec

from moorage.api.cel_functions import CelFunction, cel_functions
from moorage.apiserver.custom.patterns import compile_pattern
from moorage.apiserver.custom.rules.addresses import address_functions

# A scheme followed by authority and path, a path, or an opaque part; or a path alone. Mirrors Go's
# parser for request URIs, which knows no fragment.
_URL: Final = re.compile(
    r"(?:(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):"
    r"(?://(?:[^/?@]*@)?(?P<host>\[[0-9a-fA-F:.%]+\]|[^/?:\[\] <>\"]*)(?P<port>:[0-9]*)?(?=[/?]|$)"
    r"|(?=/(?!/))|(?P<opaque>(?!/)[^?\x00-\x1f\x7f]*))"
    r"|(?=/))"
    r"(?P<path>[^?\x00-\x1f\x7f]*)(?:\?(?P<query>[^\x00-\x1f\x7f]*))?"
)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
# Characters that stay unescaped in a path (Go net/url ``validEncoded``).
_IN_PATHS: Final = "!$&'()*+,;=:@[]/%-._~"


LIST_FUNCTIONS: Final = frozenset(
    {"isSorted", "sum", "min", "max", "sets.contains", "sets.intersects", "sets.equivalent"}
)
"""Functions that go over a whole list at once."""

CARRIED: Final = frozenset({"ip", "cidr", "masked", "url", "quantity", "semver"})
"""Functions whose results are bytes to the runtime, and another type to the author of a rule."""

_encode = msgspec.json.Encoder(order="sorted").encode


class _Url(msgspec.Struct, frozen=True):
    """The parts of a URL."""

    scheme: str
    host: str
    port: str
    path: str
    query: str


def rule_functions() -> Iterator[CelFunction]:
    """Yield every function."""
    yield from cel_functions()
    yield from address_functions()
    yield CelFunction("find", ("STRING", "STRING"), "STRING", True, _find)
    yield CelFunction("findAll", ("STRING", "STRING"), "TEXTS", True, _find_all)
    yield CelFunction("findAll", ("STRING", "STRING", "INT"), "TEXTS", True, _find_all)
    yield CelFunction("isSorted", ("LIST",), "BOOL", True, _is_sorted)
    yield CelFunction("sum", ("LIST",), "DYN", True, _sum)
    yield CelFunction("min", ("LIST",), "DYN", True, _extreme("min", operator.lt))
    yield CelFunction("max", ("LIST",), "DYN", True, _extreme("max", operator.gt))
    yield CelFunction("sets.contains", ("LIST", "LIST"), "BOOL", False, _contains)
    yield CelFunction("sets.intersects", ("LIST", "LIST"), "BOOL", False, _intersects)
    yield CelFunction(
        "sets.equivalent",
        ("LIST", "LIST"),
        "BOOL",
        False,
        lambda left, right: _contains(left, right) and _contains(right, left),
    )
    yield CelFunction("url", ("STRING",), "BYTES", False, _url)
    yield CelFunction("isURL", ("STRING",), "BOOL", False, _is_url)
    yield CelFunction("getScheme", ("BYTES",), "STRING", True, lambda url: _parts(url).scheme)
    yield CelFunction("getHost", ("BYTES",), "STRING", True, _host_and_port)
    yield CelFunction(
        "getHostname", ("BYTES",), "STRING", True, lambda url: _parts(url).host.strip("[]")
    )
    yield CelFunction("getPort", ("BYTES",), "STRING", True, lambda url: _parts(url).port)
    yield CelFunction("getEscapedPath", ("BYTES",), "STRING", True, _escaped_path)
    yield CelFunction("getQuery", ("BYTES",), "MAP", True, _query)


def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [each[0] for each in _pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _pattern(text: str) -> Any:
    try:
        return compile_pattern(text)
    except ValueError as error:
        raise ValueError(f"Illegal regex: {error}") from None


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(not _compare(operator.gt, *pair) for pair in pairwise(items))


def _sum(items: Sequence[Any]) -> Any:
    if not all(_is_number(each) for each in items):
        raise TypeError("no such overload")
    return sum(items)


def _extreme(name: str, better: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any]], Any]:
    def find(items: Sequence[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        found = items[0]
        for each in items[1:]:
            if _compare(better, each, found):
                found = each
        return found

    return find


def _compare(how: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    same = type(left) is type(right) or (_is_number(left) and _is_number(right))
    if not same or isinstance(left, dict | list):
        raise TypeError("no such overload")
    return bool(how(left, right))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _contains(items: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return {_key(each) for each in items}.issuperset(_key(each) for each in wanted)


def _intersects(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return not {_key(each) for each in left}.isdisjoint(_key(each) for each in right)


def _key(value: Any) -> Any:
    """Return a key that is equal for values equal in CEL; in Python true equals 1."""
    return _encode(value) if isinstance(value, bool | dict | list) else value


def _url(text: str) -> bytes:
    match = _URL.fullmatch(text)
    if (
        match is None
        or (match["opaque"] and not match["scheme"])
        or _BAD_ESCAPE.search(text.partition("?")[0])
    ):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}"')
    parts = _Url(
        scheme=(match["scheme"] or "").lower(),
        host=match["host"] or "",
        port=(match["port"] or "")[1:],
        path=match["path"],
        query=match["query"] or "",
    )
    return b"u" + msgspec.json.encode(parts)


def _is_url(text: str) -> bool:
    try:
        _url(text)
    except ValueError:
        return False
    return True


def _parts(url: bytes) -> _Url:
    if url[:1] != b"u":
        raise TypeError("no such overload")
    return msgspec.json.decode(url[1:], type=_Url)


def _host_and_port(url: bytes) -> str:
    parts = _parts(url)
    return f"{parts.host}:{parts.port}" if parts.port else parts.host


def _escaped_path(url: bytes) -> str:
    path = _parts(url).path
    return path if quote(path, safe=_IN_PATHS) == path else quote(unquote(path), safe="/:@&=+$,;")


def _query(url: bytes) -> dict[str, list[str]]:
    return parse_qs(_parts(url).query, keep_blank_values=True)

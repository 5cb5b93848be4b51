"""The functions that Kubernetes adds to CEL for rules, as far as a few lines of Python do.

Place in the flow: `runtime` hands these functions to the CEL runtime, together with those of
`moorage.cel.functions`. Mirrors kubernetes v1.36 apiserver pkg/cel/library ``regex.go``,
``ip.go``, ``cidr.go`` and ``jsonpatch.go``, and cel-go ext/sets.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Final

import jsonpointer
import msgspec

from moorage.cel.functions import CelFunction, cel_functions
from moorage.cel.patterns import compile_pattern

_PREFIX: Final = re.compile(r"0|[1-9][0-9]{0,2}")
_encode = msgspec.json.Encoder(order="sorted").encode


def rule_functions() -> Iterator[CelFunction]:
    """Yield every function."""
    yield from cel_functions()
    text, lists = ("STRING",), ("LIST", "LIST")
    yield CelFunction("find", text * 2, "STRING", True, lambda t, p: next(_matches_of(t, p), ""))
    yield CelFunction("findAll", text * 2, "TEXTS", True, lambda t, p: list(_matches_of(t, p)))
    yield CelFunction("sets.contains", lists, "BOOL", False, lambda a, b: _keys(a) >= _keys(b))
    yield CelFunction("sets.equivalent", lists, "BOOL", False, lambda a, b: _keys(a) == _keys(b))
    yield CelFunction(
        "sets.intersects", lists, "BOOL", False, lambda a, b: not _keys(a).isdisjoint(_keys(b))
    )
    yield CelFunction("jsonpatch.escapeKey", text, "STRING", False, jsonpointer.escape)
    yield CelFunction("isIP", text, "BOOL", False, _is_ip)
    yield CelFunction("isCIDR", text, "BOOL", False, _is_cidr)


def _matches_of(text: str, pattern: str) -> Iterator[str]:
    try:
        expression = compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f"Illegal regex: {error}") from None
    return (each[0] for each in expression.finditer(text))


def _keys(items: Sequence[Any]) -> set[Any]:
    """Return keys that are equal for items equal in CEL; in Python true equals 1."""
    return {_encode(each) if isinstance(each, bool | dict | list) else each for each in items}


def _is_ip(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    # Neither addresses with a zone nor IPv4 addresses inside IPv6.
    return "%" not in text and getattr(address, "ipv4_mapped", None) is None


def _is_cidr(text: str) -> bool:
    address, _, prefix = text.partition("/")
    if not _is_ip(address) or not _PREFIX.fullmatch(prefix):
        return False
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True

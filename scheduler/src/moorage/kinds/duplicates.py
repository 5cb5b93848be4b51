"""Fields that a JSON body gives twice.

Place in the flow: `bodies` asks after a body was decoded, when the last value of a field has
replaced the others. The server warns of such fields, or refuses them under strict field validation,
as upstream does (apimachinery v1.36 pkg/runtime/serializer/json, strict decoding).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object in the order of the body, duplicates included."""


def duplicate_fields(body: bytes, decoded: Any) -> list[str]:
    """Return the paths of the fields that a body gives more than once, each once.

    Parameters
    ----------
    body
        JSON, UTF-8.
    decoded
        The decoded body.
    """
    # Each dropped field had two quotation marks; nearly every body returns here.
    if body.count(b'"') == _encode(decoded).count(b'"'):
        return []
    tree = json.loads(body, object_pairs_hook=_Pairs)
    return list(dict.fromkeys(_found(tree, "")))


def _found(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, member in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                yield where
            seen.add(key)
            yield from _found(member, where)
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _found(element, f"{path}[{index}]")

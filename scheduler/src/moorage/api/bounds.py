"""Bounds of the size and depth of JSON and YAML from outside.

Place in the flow: `yaml_text` counts while it reads. Values read by another library, or made by a
patch, are counted here afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from moorage.base.errors import DecodeError


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the length of a text, and of the values in it.

    Parameters
    ----------
    bytes_max
        Length of the text, bytes.
    depth_max
        How many lists and mappings may be inside one another.
    values_max
        How many values all documents may hold together; an alias counts as all values of its
        anchor.
    """

    bytes_max: int
    depth_max: int
    values_max: int


DEPTH_MAX: Final = 200
"""Deeper objects are refused everywhere. The deepest definition of a custom resource in wide use
has about 80 levels; Python code follows 300 before it reaches the interpreter's own limit."""

OF_FILE: Final = Bounds(bytes_max=64 * 1024 * 1024, depth_max=DEPTH_MAX, values_max=5_000_000)
"""Bounds of a file given by a person. 15,000 nodes in one file are 40 MB and 2 million values."""


BODY_LIMIT_BYTES: Final = 3 * 1024 * 1024
"""Length of the longest body of a call: kube-apiserver's default (MaxRequestBodyBytes)."""

OF_BODY: Final = Bounds(bytes_max=BODY_LIMIT_BYTES, depth_max=DEPTH_MAX, values_max=100_000)
"""Bounds of a body. The largest definitions of custom resources have 20,000 values."""

OF_CONFIGURATION: Final = Bounds(
    bytes_max=4 * 1024 * 1024,
    depth_max=DEPTH_MAX,
    values_max=100_000,
)
"""Bounds of a configuration, which is read again while pods are scheduled."""


def check_bounds(value: Any, bounds: Bounds) -> None:
    """Refuse decoded JSON that is nested too deeply, or holds too many values.

    Raises
    ------
    DecodeError
        The text names the bound that was exceeded.
    """
    count = depth = 0
    level: list[Any] = [value]
    while level:
        count += len(level)
        if count > bounds.values_max:
            raise DecodeError(f"more than {bounds.values_max} values")
        opened = [each for each in level if isinstance(each, dict | list)]
        depth += 1
        if opened and depth > bounds.depth_max:
            raise DecodeError(f"nested deeper than {bounds.depth_max} levels")
        level = [inner for each in opened for inner in _members(each)]


def _members(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value

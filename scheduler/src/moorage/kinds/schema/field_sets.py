"""Sets of fields, and their format in ``managedFields`` (FieldsV1).

Place in the flow: `values` returns these sets and `managers` compares them. Mirrors
structured-merge-diff v6 fieldpath. Elements of a path: ``f:name`` for a field,
``k:{"key":"value"}`` for an item of a list with keys, ``v:"value"`` for an item of a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Path = tuple[str, ...]
FieldSet = frozenset[Path]

_MEMBER = "."
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def field(name: str) -> str:
    """Return the element of a field."""
    return f"f:{name}"


def item_key(keys: Mapping[str, Any]) -> str:
    """Return the element of an item of a list with keys."""
    return f"k:{_encode(keys).decode()}"


def item_value(value: Any) -> str:
    """Return the element of an item of a set."""
    return f"v:{_encode(value).decode()}"


def shown(path: Path) -> str:
    """Return a path as messages show it, ``.spec.containers[name="a"].image``."""
    parts = []
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            parts.append(f".{rest}")
        elif kind == "v":
            parts.append(f"[={rest}]")
        else:
            keys: Mapping[str, Any] = _decode(rest)
            inner = ",".join(f"{name}={_encode(value).decode()}" for name, value in keys.items())
            parts.append(f"[{inner}]")
    return "".join(parts)


def to_fields_v1(paths: Iterable[Path]) -> dict[str, Any]:
    """Return a set in the format of ``fieldsV1``."""
    root: dict[str, Any] = {}
    ends = [_node(root, path) for path in paths]
    for found in ends:
        if found:
            found[_MEMBER] = {}
    return _ordered(root)


def _ordered(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a tree with its elements in order; the tree's own mark, a dot, comes first."""
    # Sorting level by level: sorting all paths at once takes ten times as long and blocks all
    # threads.
    return {name: _ordered(tree[name]) for name in sorted(tree)}


def _node(root: dict[str, Any], path: Path) -> dict[str, Any]:
    for element in path:
        root = root.setdefault(element, {})
    return root


def from_fields_v1(tree: Any) -> FieldSet:
    """Read a set from ``fieldsV1``.

    Raises
    ------
    ValueError
        The value is not a set of fields.
    """
    found: set[Path] = set()
    _collect(tree, (), found)
    return frozenset(found)


def _collect(tree: Any, prefix: Path, paths: set[Path]) -> None:
    if not isinstance(tree, dict):
        kind = type(tree).__name__
        raise ValueError(f"a set of fields must be an object, not {kind}")  # noqa: TRY004
    for element, rest in tree.items():
        if element == _MEMBER:
            continue
        path = (*prefix, _canonical(element))
        _collect(rest, path, paths)  # first, because it refuses what is no object
        if not rest or _MEMBER in rest:
            paths.add(path)


def _canonical(element: str) -> str:
    kind, colon, rest = element.partition(":")
    if not colon or kind not in ("f", "k", "v"):
        raise ValueError(f"unknown element of a path: {element!r}")
    if kind == "f":
        return element
    try:
        return f"{kind}:{_encode(_decode(rest)).decode()}"
    except msgspec.DecodeError as error:
        raise ValueError(f"unknown element of a path: {element!r}: {error}") from error


def prefixes(paths: Iterable[Path]) -> set[Path]:
    """Return these paths and every path that leads to one of them."""
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}

"""Sets of fields as trees, in the format of ``fieldsV1``.

Place in the flow: nearly every write records its manager, so `managers` reads and writes these
trees where all managers of an object write one version. Sets of paths (`field_sets`) take ten times
as long; they serve applies and several versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.kinds.kind import Layout
from moorage.kinds.schema.field_sets import Path
from moorage.kinds.schema.merging import element_of

Tree = dict[str, Any]

_MEMBER = "."


def tree_of(value: Any, layout: Layout) -> Tree:
    """Return every field that has a value, and every object and list that is not empty.

    Members that are never absent (`Layout.implied`) are left out: nobody adds them.
    """
    if layout.form == "object" and isinstance(value, dict):
        return _object_tree(value, layout)
    tree: Tree = {}
    if layout.form in ("keyed", "set") and isinstance(value, list) and value:
        item_layout = layout.item()
        tree[_MEMBER] = {}
        for element, item in sorted(((element_of(each, layout), each) for each in value), key=_key):
            tree[element] = tree_of(item, item_layout) if element[0] == "k" else {}
    return tree


def _object_tree(value: dict[str, Any], layout: Layout) -> Tree:
    tree: Tree = {_MEMBER: {}} if value else {}
    member, implied = layout.member, layout.implied
    for name in sorted(value):
        inner = value[name]
        if not isinstance(inner, dict | list):
            tree[f"f:{name}"] = {}
            continue
        fields = tree_of(inner, member(name))
        if name in implied:
            fields.pop(_MEMBER, None)
            if not fields:
                continue
        tree[f"f:{name}"] = fields
    return tree


def _key(pair: tuple[str, Any]) -> str:
    return pair[0]


def without_paths(tree: Tree, paths: Iterable[Path]) -> Tree:
    """Return a tree without some fields; the tree itself where it has none of them."""
    for path in paths:
        tree = _without(tree, path, 0)
    return tree


def _without(tree: Tree, path: Path, depth: int) -> Tree:
    element = path[depth]
    inner = tree.get(element)
    if inner is None:
        return tree
    if depth + 1 < len(path):
        left = _without(inner, path, depth + 1)
    elif not inner:
        left = None
    else:
        left = {name: each for name, each in inner.items() if name != _MEMBER}
        left = inner if len(left) == len(inner) else left or None
    if left is inner:
        return tree
    if left is not None and len(left) == 1 and _MEMBER in left:
        left = {}  # a field that has lost all its parts, and is itself in the set
    elif not left:
        return {name: each for name, each in tree.items() if name != element}
    return {name: left if name == element else each for name, each in tree.items()}


def with_paths(tree: Tree, paths: Iterable[Path]) -> Tree:
    """Return a tree with more fields, in order; the tree itself where it has all of them."""
    result = tree
    for path in paths:
        result = _with(result, path, 0, is_new=False)
    return result


def _with(tree: Tree, path: Path, depth: int, *, is_new: bool) -> Tree:
    if depth == len(path):
        # A field without parts is an empty tree, a field with parts has the mark.
        return {_MEMBER: {}, **tree} if tree and _MEMBER not in tree else tree
    element = path[depth]
    inner = tree.get(element)
    if inner is None:
        new = _with({}, path, depth + 1, is_new=True)
        # A former leaf of the set stays a field of its own.
        marked: Tree = {_MEMBER: {}} if not tree and depth and not is_new else {}
        joined = {**marked, **tree, element: new}
        return {name: joined[name] for name in sorted(joined)}
    # An empty tree is a field without parts.
    left = _with(inner, path, depth + 1, is_new=False)
    return (
        tree
        if left is inner
        else {name: left if name == element else each for name, each in tree.items()}
    )

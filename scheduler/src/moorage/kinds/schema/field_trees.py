"""Sets of fields as trees, in the format of ``fieldsV1``.

Place in the flow: nearly every write records its manager, so `updates` reads and writes these
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


class _Branch:
    """The paths of a set that go through one element.

    Attributes
    ----------
    ends
        Whether a path ends with the element.
    branches
        The branches below the element.
    """

    __slots__ = ("branches", "ends")

    def __init__(self) -> None:
        self.ends = False
        self.branches: dict[str, _Branch] = {}


def _branches(paths: Iterable[Path]) -> dict[str, _Branch]:
    """Return paths by their first elements: each level of a tree is then walked through once."""
    root = _Branch()
    for path in paths:
        at = root
        for element in path:
            at = at.branches.get(element) or at.branches.setdefault(element, _Branch())
        at.ends = True
    return root.branches


def without_paths(tree: Tree, paths: Iterable[Path]) -> Tree:
    """Return a tree without some fields; the tree itself where it has none of them."""
    return _without(tree, _branches(paths))


def _without(tree: Tree, branches: dict[str, _Branch]) -> Tree:
    changed: dict[str, Tree | None] = {}
    for element, branch in branches.items():
        node = tree.get(element)
        if node is None:
            continue
        is_member, inner = _opened(node)
        left = _without(inner, branch.branches)
        stays = is_member and not branch.ends
        if left is not inner or stays != is_member:
            changed[element] = _closed(left, is_member=stays) if left or stays else None
    if not changed:
        return tree
    joined = {name: changed.get(name, node) for name, node in tree.items()}
    return {name: node for name, node in joined.items() if node is not None}


def with_paths(tree: Tree, paths: Iterable[Path]) -> Tree:
    """Return a tree with more fields, in order; the tree itself where it has all of them."""
    return _with(tree, _branches(paths))


def _with(tree: Tree, branches: dict[str, _Branch]) -> Tree:
    changed: Tree = {}
    for element, branch in branches.items():
        node = tree.get(element)
        was_member, inner = (False, {}) if node is None else _opened(node)
        more = _with(inner, branch.branches)
        is_member = was_member or branch.ends
        if node is None or more is not inner or is_member != was_member:
            changed[element] = _closed(more, is_member=is_member)
    if not changed:
        return tree
    if changed.keys() <= tree.keys():
        return {name: changed.get(name, node) for name, node in tree.items()}
    joined = {**tree, **changed}
    return {name: joined[name] for name in sorted(joined)}


def _opened(node: Tree) -> tuple[bool, Tree]:
    """Return whether a field is in the set itself, and its parts.

    A field without parts is an empty tree, a field with parts has the mark.
    """
    if _MEMBER not in node:
        return not node, node
    return True, {name: each for name, each in node.items() if name != _MEMBER}


def _closed(inner: Tree, *, is_member: bool) -> Tree:
    return {_MEMBER: {}, **inner} if inner and is_member else inner

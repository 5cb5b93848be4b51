"""Taking objects apart into fields, merging, comparing and removing, by the layout of a kind.

Place in the flow: `managers` computes with these functions. Mirrors structured-merge-diff v6
typed: a value owned as a whole is one field, and lists with keys are compared item by item.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from moorage.kinds.kind import Layout
from moorage.kinds.schema.field_sets import Path, field, item_key, item_value

_ABSENT: Any = object()


def fields_of(value: Any, layout: Layout) -> set[Path]:
    """Return every field that has a value."""
    found: set[Path] = set()
    _collect(value, layout, (), found)
    return found


def _collect(value: Any, layout: Layout, prefix: Path, paths: set[Path]) -> None:
    parts = list(_parts(value, layout))
    if not parts:
        if prefix:
            paths.add(prefix)
        return
    for element, inner, inner_layout in parts:
        path = (*prefix, element)
        if element[0] == "f":
            _collect(inner, inner_layout, path, paths)
            continue
        paths.add(path)
        if element[0] == "k":
            _collect(inner, inner_layout, path, paths)


def _parts(value: Any, layout: Layout) -> Iterator[tuple[str, Any, Layout]]:
    """Yield the parts of a value; nothing where the value is one field."""
    if layout.form == "object" and isinstance(value, dict):
        for name, inner in value.items():
            yield field(name), inner, layout.member(name)
    elif isinstance(value, list) and layout.form in ("keyed", "set"):
        for item in value:
            yield element_of(item, layout), item, layout.item()


def _is_open(value: Any, layout: Layout) -> bool:
    """Whether a value has parts of its own, or would have if it were not empty."""
    return isinstance(value, dict if layout.form == "object" else list) and layout.form != "atomic"


def _has_parts(value: Any, layout: Layout) -> bool:
    return bool(value) and _is_open(value, layout)


def element_of(item: Any, layout: Layout) -> str:
    """Return the element of a path that names an item of a list."""
    if layout.form == "set" or not isinstance(item, dict):
        return item_value(item)
    keys = {}
    for name, default in layout.keys:
        value = item.get(name, default)
        if value is not None:
            keys[name] = value
    return item_key(keys)


def merged(live: Any, config: Any, layout: Layout) -> Any:
    """Return a live value with a configuration laid over it; unchanged parts are shared."""
    if layout.form == "object" and isinstance(config, dict) and isinstance(live, dict):
        result = dict(live)
        for name, value in config.items():
            result[name] = merged(live.get(name, _ABSENT), value, layout.member(name))
        return result
    if layout.form in ("keyed", "set") and isinstance(config, list) and isinstance(live, list):
        return _merged_list(live, config, layout)
    return config


def _merged_list(live: list[Any], config: list[Any], layout: Layout) -> list[Any]:
    """Merge item by item: items of the configuration keep its order, the others their position."""
    before = {element_of(item, layout): item for item in live}
    wanted = {element_of(item, layout): item for item in config}
    result: list[Any] = []
    placed: set[str] = set()
    waiting = deque(wanted)
    for element, item in before.items():
        if element not in wanted:
            result.append(item)
            continue
        while element not in placed:
            following = waiting.popleft()
            placed.add(following)
            result.append(_merged_item(before.get(following, _ABSENT), wanted[following], layout))
    result += [
        _merged_item(before.get(element, _ABSENT), wanted[element], layout) for element in waiting
    ]
    return result


def _merged_item(live: Any, config: Any, layout: Layout) -> Any:
    return config if layout.form == "set" else merged(live, config, layout.item())


def atomics_of(value: Any, layout: Layout, path: str = "") -> list[str]:
    """Return the paths of the objects and lists in a value that are owned as a whole."""
    if not isinstance(value, dict | list):
        return []
    paths = [path] if layout.form == "atomic" else []
    if isinstance(value, dict):
        for name, each in value.items():
            paths += atomics_of(each, layout.member(name), f"{path}.{name}")
    else:
        for index, each in enumerate(value):
            paths += atomics_of(each, layout.item(), f"{path}[{index}]")
    return paths


def compare(old: Any, new: Any, layout: Layout) -> tuple[set[Path], set[Path]]:
    """Return the fields that were added or changed, and the fields that were removed."""
    changed: set[Path] = set()
    gone: set[Path] = set()
    _compare(old, new, layout, (), (changed, gone))
    return changed, gone


def _compare(
    old: Any, new: Any, layout: Layout, prefix: Path, sets: tuple[set[Path], set[Path]]
) -> None:
    if old is not _ABSENT and new is not _ABSENT and old == new and type(old) is type(new):
        return
    if layout.form == "object" and old and new and isinstance(old, dict) and isinstance(new, dict):
        _compare_members(old, new, layout, prefix, sets)
        return
    before = {} if old is _ABSENT else {p[0]: p for p in _parts(old, layout)}
    after = {} if new is _ABSENT else {p[0]: p for p in _parts(new, layout)}
    changed, gone = sets
    # The value is one field on one side and taken apart on the other. An object that became empty,
    # or was empty, has only lost or gained its content.
    emptied = _is_open(old, layout) and _is_open(new, layout)
    if prefix and new is not _ABSENT and not after and not emptied:
        changed.add(prefix)
    elif prefix and old is not _ABSENT and not emptied and (new is _ABSENT or not before):
        # A removed object is named as well as its fields: a manager that applied the object empty
        # manages the object itself.
        gone.add(prefix)
    for element in [*before, *(each for each in after if each not in before)]:
        path = (*prefix, element)
        _, left, inner = before.get(element) or after[element]
        left = left if element in before else _ABSENT
        right = after[element][1] if element in after else _ABSENT
        if element[0] != "f":
            if left is _ABSENT:
                changed.add(path)
            elif right is _ABSENT:
                gone.add(path)
            if element[0] == "v":
                continue
        elif left is _ABSENT and element[2:] not in layout.implied and _has_parts(right, inner):
            # As for a removed object, the object itself counts, too.
            changed.add(path)
        _compare(left, right, inner, path, sets)


def _compare_members(
    old: dict[str, Any],
    new: dict[str, Any],
    layout: Layout,
    prefix: Path,
    sets: tuple[set[Path], set[Path]],
) -> None:
    """Compare two objects that are not empty: members that are equal cost one comparison."""
    for name in [*old, *(each for each in new if each not in old)]:
        left, right = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if left is right or (left == right and type(left) is type(right)):
            continue
        path, inner = (*prefix, field(name)), layout.member(name)
        if left is _ABSENT and name not in layout.implied and _has_parts(right, inner):
            sets[0].add(path)  # as in `_compare`, the object itself counts, too
        _compare(left, right, inner, path, sets)


def without(value: Any, layout: Layout, paths: set[Path], staying: set[Path]) -> Any:
    """Return a value without some fields; objects and lists that become empty go too.

    Parameters
    ----------
    value
        An object.
    layout
        Layout of the object.
    paths
        Paths to remove.
    staying
        Fields, and paths that lead to fields, that stay even if they become empty.
    """
    return _without(value, layout, (), paths, staying)


def _without(value: Any, layout: Layout, prefix: Path, paths: set[Path], staying: set[Path]) -> Any:
    # Grouped once: a search of all paths for each element would be quadratic.
    touched: dict[str, set[Path]] = {}
    for path in paths:
        if len(path) > len(prefix):
            touched.setdefault(path[len(prefix)], set()).add(path)
    result: list[tuple[Any, Any]] = []
    for element, inner, inner_layout in _parts(value, layout):
        path = (*prefix, element)
        if element in touched:
            if path in paths:
                continue
            left = _without(inner, inner_layout, path, touched[element], staying)
            if left in ({}, []) and path not in staying:
                continue
            result.append((element[2:], left))
            continue
        result.append((element[2:], inner))
    if isinstance(value, dict):
        return dict(result)
    return [inner for _, inner in result] if isinstance(value, list) else value

"""Strategic merge patches: merging by key instead of replacing lists.

Place in the flow: PATCH with ``application/strategic-merge-patch+json`` is applied here. The result
is defaulted and validated like an update. Mirrors kubernetes v1.36 apimachinery
pkg/util/strategicpatch/patch.go. The definitions in `schema` determine how each list merges.

Directives in the patch: ``$patch`` (``replace``, ``delete``, ``merge``) in an object or as an
element of a list, ``$retainKeys``, ``$setElementOrder/<list>`` and
``$deleteFromPrimitiveList/<list>`` next to a list.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.facts import Definition, Field, kind_definition
from moorage.kinds.facts import definition as definition_named
from moorage.kinds.kind import Obj

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_DIRECTIVES = (_RETAIN, _ORDER, _DELETE)

_OPEN = Definition({})

# Most values that one merge copies. A patch may name one element of a list again and again, and
# each time the whole element is copied. The largest body has 100,000 values; ten times as many are
# a guess, and take about a second.
_COPIED_MAX = 1_000_000


class PatchError(ValueError):
    """The patch does not fit the object: an unknown directive, a missing merge key."""


class _Work:
    """The work of one merge so far."""

    __slots__ = ("copied",)

    def __init__(self) -> None:
        self.copied = 0

    def add(self, count: int) -> None:
        """Count values that are copied.

        Raises
        ------
        PatchError
            The merge takes too much work.
        """
        self.copied += count
        if self.copied > _COPIED_MAX:
            raise PatchError(f"merging would copy more than {_COPIED_MAX} values")


def strategic_merge(original: Obj, patch: Obj, resource: ResourceType) -> Obj:
    """Apply a strategic merge patch and return the new object; the original stays as it is.

    The two objects share the values that the patch does not change.

    Parameters
    ----------
    original
        The stored object.
    patch
        Decoded patch.
    resource
        Kind of the object; determines which lists merge, and by which key.

    Raises
    ------
    PatchError
        A directive is unknown or misplaced, a value has another shape than the object's, or an
        element of a merging list lacks the merge key. The server answers 400.
    """
    if not isinstance(patch, dict):
        raise PatchError("the patch is not an object")
    return _merge_object(original, patch, kind_definition(resource), _Work())


def _merge_object(old: Obj, patch: Obj, definition: Definition, work: _Work) -> Obj:
    """Merge into a copy of an object; every value that the patch reaches is copied."""
    work.add(len(old))
    target = dict(old)
    directive = patch.get(_DIRECTIVE)
    if directive is not None:
        return _directed_object(target, patch, definition, work)
    _retain_keys(target, patch)
    directed = False
    for key, value in patch.items():
        if key.startswith(_DIRECTIVES):
            directed = True
            continue
        field = definition.fields.get(key)
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            target[key] = _merge_member(target.get(key), value, field, work)
        elif isinstance(value, list):
            place = _Place(key, patch.get(_ORDER + key), work)
            target[key] = _merge_list(target.get(key), value, field, place)
        else:
            target[key] = value
    if directed:
        _apply_list_directives(target, patch, definition)
    return target


class _Place(msgspec.Struct, frozen=True):
    """The place of a list in the patch.

    Parameters
    ----------
    name
        Name of the field.
    order
        ``$setElementOrder`` for the list; None where the patch has none.
    work
        The work of the merge.
    """

    name: str
    order: Any
    work: _Work


def _directed_object(target: Obj, patch: Obj, definition: Definition, work: _Work) -> Obj:
    directive = patch[_DIRECTIVE]
    rest = {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "replace":
        return _without_directives(rest)  # type: ignore[no-any-return]
    if directive == "delete":
        return {}
    if directive == "merge":
        return _merge_object(target, rest, definition, work)
    raise PatchError(f"Unknown patch type found: {directive}")


def _retain_keys(target: Obj, patch: Obj) -> None:
    """Drop the target's keys that ``$retainKeys`` does not list."""
    retained = patch.get(_RETAIN)
    if retained is None:
        return
    if not isinstance(retained, list):
        raise PatchError(f"{_RETAIN} must be a list of keys")
    names = {each for each in retained if isinstance(each, str)}
    for key, value in patch.items():
        if not key.startswith("$") and value is not None and key not in names:
            raise PatchError(f"{_RETAIN} doesn't list {key}, which the patch sets")
    for key in [key for key in target if key not in names]:
        del target[key]


def _merge_member(old: Any, patch: Obj, field: Field | None, work: _Work) -> Any:
    """Merge an object that is a member of another, or the value of a map."""
    definition = _inner_definition(field)
    if field is not None and field.patches("replace"):
        return _without_directives(patch)
    if not isinstance(old, dict):
        if patch.get(_DIRECTIVE) == "delete":
            return {}
        old = {}
    return _merge_object(old, patch, definition, work)


def _inner_definition(field: Field | None) -> Definition:
    if field is None:
        return _OPEN
    inner = field.innermost
    return definition_named(inner.name) if inner.shape == "object" else _OPEN


def _merge_list(old: Any, patch: list[Any], field: Field | None, place: _Place) -> list[Any]:
    if field is None or not field.patches("merge"):
        return _replaced_list(patch)
    if not isinstance(old, list):
        old = []
    place.work.add(len(old))
    if not field.patch_merge_key:
        known = set(old)
        merged = old + [value for value in patch if value not in known]
        return _ordered(merged, _Order(old, patch, place.order, ""))
    return _merge_by_key(old, patch, field, place)


def _replaced_list(patch: list[Any]) -> list[Any]:
    return [
        _without_directives(value)
        for value in patch
        if not (isinstance(value, dict) and set(value) == {_DIRECTIVE})
    ]


def _merge_by_key(old: list[Any], patch: list[Any], field: Field, place: _Place) -> list[Any]:
    key, work = field.patch_merge_key, place.work
    definition = _inner_definition(field)
    merged: list[Any] = list(old)
    # Key -> positions of its elements; a search for each would take minutes in a large patch.
    places: dict[Any, list[int]] = {}
    for index, each in enumerate(merged):
        places.setdefault(_key_of(each, key), []).append(index)
    for entry in patch:
        if not isinstance(entry, dict):
            raise PatchError(f"{place.name}: every element of the patch must be an object")
        directive = entry.get(_DIRECTIVE)
        if directive == "replace":
            rest = {each: value for each, value in entry.items() if each != _DIRECTIVE}
            others = [each for each in patch if each is not entry]
            return _replaced_list(others + ([rest] if rest else []))
        if key not in entry:
            raise PatchError(f"map: {entry} does not contain declared merge key: {key}")
        position = places.get(entry[key])
        if directive == "delete":
            for index in places.pop(entry[key], ()):
                merged[index] = _GONE
        elif position is None:
            places[entry[key]] = [len(merged)]
            merged.append(_merge_object({}, entry, definition, work))
        else:
            merged[position[0]] = _merge_object(merged[position[0]], entry, definition, work)
    kept = [each for each in patch if each.get(_DIRECTIVE) != "delete"]
    merged = [each for each in merged if each is not _GONE]
    return _ordered(merged, _Order(old, kept, place.order, key))


# Placeholder for a removed element of a list.
_GONE = object()


def _key_of(entry: Any, key: str) -> Any:
    return entry.get(key) if isinstance(entry, dict) and key else entry


class _Order(msgspec.Struct, frozen=True):
    """The order of the elements of a merged list.

    Parameters
    ----------
    server
        The old list.
    patch
        Elements of the patch, without the deleted elements.
    element_order
        ``$setElementOrder`` for the list; None where the patch has none.
    key
        Merge key; empty for a list of scalars.
    """

    server: list[Any]
    patch: list[Any]
    element_order: Any
    key: str


def _ordered(merged: list[Any], order: _Order) -> list[Any]:
    """Put the elements of the patch into its order, the others into the server's.

    Notes
    -----
    An element of the patch comes first, unless the server had the other element before it
    (normalizeElementOrder and mergeSortedSlice of apimachinery v1.36 pkg/util/strategicpatch).
    """
    asked = order.element_order if isinstance(order.element_order, list) else order.patch
    wanted = _places(asked, order.key)
    missing = [name for name in _places(order.patch, order.key) if name not in wanted]
    if missing:
        raise PatchError(
            f"The order in patch list:\n{missing}\n doesn't match {_ORDER} list:\n{list(wanted)}\n"
        )
    keyed = [(_key_of(each, order.key), each) for each in merged]
    named = sorted((each for each in keyed if each[0] in wanted), key=lambda each: wanted[each[0]])
    before = _places(order.server, order.key)
    result: list[Any] = []
    waiting = deque(each for each in keyed if each[0] not in wanted)
    for name, element in named:
        while waiting and name in before and before.get(waiting[0][0], _LAST) < before[name]:
            result.append(waiting.popleft()[1])
        result.append(element)
    return result + [element for _, element in waiting]


# Position of an element that the server did not have.
_LAST = sys.maxsize


def _places(elements: list[Any], key: str) -> dict[Any, int]:
    """Return the first index of each element, by its key."""
    found: dict[Any, int] = {}
    for index, entry in enumerate(elements):
        found.setdefault(_key_of(entry, key), index)
    return found


def _apply_list_directives(target: Obj, patch: Obj, definition: Definition) -> None:
    """Apply directives for lists that the patch does not otherwise contain."""
    for name, value in patch.items():
        if name.startswith(_DELETE):
            key = name.removeprefix(_DELETE)
            if not isinstance(value, list):
                raise PatchError(f"{name} must be a list")
            if isinstance(target.get(key), list):
                deleted = {_identity(each) for each in value}
                target[key] = [each for each in target[key] if _identity(each) not in deleted]
        elif name.startswith(_ORDER):
            key = name.removeprefix(_ORDER)
            field = definition.fields.get(key)
            if key not in patch and field is not None and isinstance(target.get(key), list):
                order = _Order(target[key], [], value, field.patch_merge_key)
                target[key] = _ordered(target[key], order)


def _identity(value: Any) -> Any:
    """Return a key of an element of a list, equal for equal elements.

    Searching a list for each element would take minutes in a large patch.
    """
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="sorted")
    return value


def _without_directives(value: Any) -> Any:
    """Copy a value that replaces another, without directives and nulls."""
    if isinstance(value, dict):
        return {
            key: _without_directives(member)
            for key, member in value.items()
            if not key.startswith("$") and member is not None
        }
    if isinstance(value, list):
        return _replaced_list(value)
    return value

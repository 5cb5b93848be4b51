"""One change of an object, seen in every API version its managers know it in.

Place in the flow: `managers` compares through here. A manager's fields are named in the version it
wrote, so whether they changed, or who else still wants them, is found out in that version. Mirrors
structured-merge-diff v6 merge/update.go (update, prune, addBackOwnedItems).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from moorage.apiserver.applying.field_sets import FieldSet, Path, prefixes
from moorage.apiserver.applying.values import compare, fields_of, without
from moorage.apiserver.kind import Layout, Obj

Fields = tuple[set[Path], set[Path]]
"""The fields that came or changed, and those that went."""


class Version(msgspec.Struct, frozen=True):
    """How objects of a kind look in one API version.

    Parameters
    ----------
    name
        ``apps/v1`` and the like, as objects carry it.
    layout
        How they are taken apart.
    to_stored, from_stored
        Make the one form of all versions of this one, and back.
    """

    name: str
    layout: Layout
    to_stored: Callable[[Obj], Obj]
    from_stored: Callable[[Obj], Obj]

    def of(self, obj: Obj, version: Version) -> Obj:
        """Return an object of another version in this one."""
        return obj if version.name == self.name else self.from_stored(version.to_stored(obj))


Find = Callable[[str], Version | None]
"""Returns a version by its name; None where it is not served."""


class Comparison:
    """What a change comes to, asked for version by version.

    Parameters
    ----------
    old, new
        The object before and after.
    version
        The version these two are in.
    find
        The other versions.
    """

    def __init__(self, old: Obj, new: Obj, version: Version, find: Find) -> None:
        self._old = old
        self._new = new
        self._version = version
        self._find = find
        self._found: dict[str, Fields | None] = {}

    def in_version(self, name: str) -> Fields | None:
        """Return the fields that changed and those that went; None for a version not served."""
        if name not in self._found:
            self._found[name] = self._compare(name)
        return self._found[name]

    def _compare(self, name: str) -> Fields | None:
        there = self._version if name == self._version.name else self._find(name)
        if there is None:
            return None
        old, new = there.of(self._old, self._version), there.of(self._new, self._version)
        return compare(old, new, there.layout)


def pruned(
    new: Obj,
    version: Version,
    dropped: tuple[FieldSet, Version],
    kept: Mapping[str, FieldSet],
    find: Find,
) -> Obj:
    """Return an object without what a manager has dropped and nobody else wants.

    Parameters
    ----------
    new
        The object.
    version
        Its version.
    dropped
        What the manager had until now, and the version this is named in.
    kept
        What all managers have from now on, by version.
    find
        The other versions.
    """
    fields, there = dropped
    whole = there.of(new, version)
    staying = prefixes(kept.get(there.name, ()))
    left: Obj = without(whole, there.layout, set(fields) - staying, staying)
    # What is missed in another version comes back there; the caller's own version is the last.
    for name in [*sorted(set(kept) - {there.name, version.name}), version.name]:
        after = version if name == version.name else find(name)
        if after is None or after.name == there.name:
            continue
        whole, left = after.of(whole, there), after.of(left, there)
        staying = prefixes(kept.get(name, ()))
        lost = fields_of(whole, after.layout) - fields_of(left, after.layout)
        left = without(whole, after.layout, lost - staying, staying)
        there = after
    return left

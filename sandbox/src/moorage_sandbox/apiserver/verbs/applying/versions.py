"""One change of an object, seen in every API version of its managers.

Place in the flow: `managers` compares objects with this module. A manager's fields are named in
the version of its write. Whether they changed, or another manager owns them, is decided in that
version. Mirrors structured-merge-diff v6 merge/update.go (update, prune, addBackOwnedItems).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from moorage.kinds.kind import Layout, Obj
from moorage.kinds.schema.field_sets import FieldSet, Path, prefixes
from moorage.kinds.schema.merging import compare, fields_of, without

Fields = tuple[set[Path], set[Path]]
"""The fields that were added or changed, and the fields that were removed."""


class Version(msgspec.Struct, frozen=True):
    """The form of a kind's objects in one API version.

    Parameters
    ----------
    name
        ``apps/v1`` and the like, as in the ``apiVersion`` of objects.
    layout
        Layout of the objects.
    to_stored, from_stored
        Convert from this version to the stored version, and back.
    """

    name: str
    layout: Layout
    to_stored: Callable[[Obj], Obj]
    from_stored: Callable[[Obj], Obj]

    def convert_object(self, obj: Obj, version: Version) -> Obj:
        """Return an object of another version in this one."""
        return obj if version.name == self.name else self.from_stored(version.to_stored(obj))


Find = Callable[[str], Version | None]
"""Returns a version by its name; None where the version is not served."""


class Comparison:
    """A change of an object, computed for each version on demand.

    Parameters
    ----------
    old, new
        The object before and after.
    version
        Version of ``old`` and ``new``.
    find
        Returns the other versions.
    """

    def __init__(self, old: Obj, new: Obj, version: Version, find: Find) -> None:
        self._old = old
        self._new = new
        self._version = version
        self._find = find
        self._fields: dict[str, Fields | None] = {}

    def in_version(self, name: str) -> Fields | None:
        """Return the changed and the removed fields; None for a version not served."""
        if name not in self._fields:
            self._fields[name] = self._compare(name)
        return self._fields[name]

    def _compare(self, name: str) -> Fields | None:
        there = self._version if name == self._version.name else self._find(name)
        if there is None:
            return None
        old, new = (
            there.convert_object(self._old, self._version),
            there.convert_object(self._new, self._version),
        )
        return compare(old, new, there.layout)


def pruned(
    new: Obj,
    version: Version,
    dropped: tuple[FieldSet, Version],
    paths_by_version: Mapping[str, AbstractSet[Path]],
    find: Find,
) -> Obj:
    """Return an object without the fields that a manager dropped and no other manager owns.

    Parameters
    ----------
    new
        The object.
    version
        Version of the object.
    dropped
        Fields that the manager owned until now, and the version in which they are named.
    paths_by_version
        Fields that all managers own from now on, by version.
    find
        Returns the other versions.
    """
    fields, there = dropped
    whole = there.convert_object(new, version)
    staying = prefixes(paths_by_version.get(there.name, ()))
    left: Obj = without(whole, there.layout, set(fields) - staying, staying)
    # A field owned in another version comes back there; the caller's own version is the last.
    for name in [*sorted(set(paths_by_version) - {there.name, version.name}), version.name]:
        after = version if name == version.name else find(name)
        if after is None or after.name == there.name:
            continue
        whole, left = after.convert_object(whole, there), after.convert_object(left, there)
        staying = prefixes(paths_by_version.get(name, ()))
        lost = fields_of(whole, after.layout) - fields_of(left, after.layout)
        left = without(whole, after.layout, lost - staying, staying)
        there = after
    return left

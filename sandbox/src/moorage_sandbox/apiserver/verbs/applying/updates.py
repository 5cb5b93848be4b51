"""The managers of fields after a create, an update or a patch.

Place in the flow: `writing` calls this module for every write but an apply. Mirrors kubernetes
v1.36 apimachinery pkg/util/managedfields/internal (managedfieldsupdater.go, stripmeta.go). Every
write of every object goes through here, so the usual case works on the stored trees of fields: all
managers write one version, and they are few. The other cases are read into sets of paths
(`managers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.kinds.kind import Obj
from moorage.kinds.schema.field_trees import Tree, with_paths, without_paths
from moorage_sandbox.apiserver.verbs.applying.managers import (
    UPDATE,
    UPDATERS_MAX,
    Manager,
    Writing,
    outdone,
    read_managers,
    write_managers,
)
from moorage_sandbox.apiserver.verbs.applying.notes import (
    STATUS,
    are_notes,
    note,
    owned_tree,
    whole_entries,
)
from moorage_sandbox.apiserver.verbs.applying.versions import Comparison


def created(obj: Obj, writing: Writing) -> list[Obj]:
    """Return ``managedFields`` of a new object: all that the client sent, and the defaults.

    Parameters
    ----------
    obj
        The object, before admission and before the kind prepares it.
    writing
        Manager and version of the write.
    """
    tree = owned_tree(
        obj, writing.layout, status=writing.writes_status if writing.has_status else None
    )
    return [_entry(writing, tree)] if tree else []


def _entry(writing: Writing, fields: Tree) -> Obj:
    entry = note(writing.manager, writing.api_version, writing.now, writing.subresource)
    return entry | {"fieldsType": "FieldsV1", "fieldsV1": fields}


def updated(old: Obj, new: Obj, sent: Any, writing: Writing) -> list[Obj] | None:
    """Return ``managedFields`` after an update or a patch; None where no manager is recorded.

    Parameters
    ----------
    old, new
        The object before and after.
    sent
        ``managedFields`` as the client sent them. A client may rewrite them, as kubectl does when
        it moves from client-side to server-side apply. An empty entry clears them. They count in a
        write of the object itself only.
    writing
        Manager and version of the write.
    """
    stored = old["metadata"].get("managedFields") or []
    if writing.subresource or sent == stored:
        sent = None
    if are_notes(stored):
        if writing.noted and writing.writes_status:
            return _with_note(stored, writing, changes=old.get("status") != new.get("status"))
        stored = whole_entries(old, stored, writing.layout)
        sent = None if sent == stored else sent
    if sent == [{}]:
        return None
    if new.get("status") and not sent and _is_first_status(old, stored, writing):
        return _with_status(new, stored, writing)
    change = Comparison(old, new, writing.version, writing.find)
    if not sent and _is_usual(stored, writing):
        return _updated_trees(stored, change, writing)
    return _updated_sets(stored, sent, change, writing)


def _with_note(stored: list[Obj], writing: Writing, *, changes: bool) -> list[Obj]:
    """Return notes after a write of the status; its manager has one from its first change on."""
    if not changes or any(_is_mine(each, writing) for each in stored):
        return stored
    return sorted(
        [*stored, note(writing.manager, writing.api_version, writing.now, STATUS)], key=_order
    )


def _is_first_status(old: Obj, stored: Sequence[Obj], writing: Writing) -> bool:
    """Whether an object has no status yet, and nobody owns a field of one."""
    if not writing.writes_status or old.get("status"):
        return False
    if "status" in old and "status" not in writing.layout.implied:
        return False
    return _is_usual(stored, writing) and not any(
        "f:status" in each["fieldsV1"] or _is_mine(each, writing) for each in stored
    )


def _with_status(new: Obj, stored: list[Obj], writing: Writing) -> list[Obj] | None:
    """Return managers after the first write of a status, which owns all of it.

    A comparison comes to the same tree, but visits each field of the new status on its own.
    """
    if not stored:
        return None
    tree = owned_tree(new, writing.layout, status=True)
    return sorted([*stored, _entry(writing, tree)], key=_order)


def _is_usual(stored: Sequence[Obj], writing: Writing) -> bool:
    """Whether all managers write the version of this write, and they are few."""
    return len(stored) < UPDATERS_MAX and all(
        each["apiVersion"] == writing.api_version for each in stored
    )


def _updated_trees(stored: list[Obj], change: Comparison, writing: Writing) -> list[Obj] | None:
    changed, removed = change.in_version(writing.api_version) or (set(), set())
    managed, gone = writing.managed(changed), writing.managed(removed)
    if not stored or not (managed or gone):
        return stored or None
    taken = managed | gone
    mine: Tree = {}
    time = writing.now
    entries = []
    for each in stored:
        if _is_mine(each, writing):
            mine = without_paths(each["fieldsV1"], gone)
            time = writing.now if managed else each.get("time", "")
            continue
        left = without_paths(each["fieldsV1"], taken)
        if left:
            entries.append(each if left is each["fieldsV1"] else each | {"fieldsV1": left})
    mine = with_paths(mine, managed)
    if mine:
        entries.append(_entry(writing, mine) | {"time": time})
    entries.sort(key=_order)
    return entries


def _is_mine(entry: Obj, writing: Writing) -> bool:
    return bool(
        entry["manager"] == writing.manager
        and entry["operation"] == UPDATE
        and entry.get("subresource", "") == writing.subresource
    )


def _order(entry: Obj) -> tuple[str, ...]:
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(name) or "" for name in names)


def _updated_sets(stored: Any, sent: Any, change: Comparison, writing: Writing) -> list[Obj] | None:
    try:
        managers = read_managers(sent or stored)
    except (ValueError, AttributeError):
        managers = read_managers(stored)
    if not managers:
        return None
    changed, removed = change.in_version(writing.api_version) or (set(), set())
    managed, gone = writing.managed(changed), writing.managed(removed)
    me = Manager(writing.manager, UPDATE, writing.api_version, writing.now, writing.subresource)
    mine = next((each for each in managers if each.key == me.key), None)
    others = [each for each in managers if each.key != me.key]
    before = mine.fields if mine is not None else frozenset()
    time = mine.time if mine is not None and not managed else writing.now
    me = msgspec.structs.replace(me, fields=(before | managed) - gone, time=time)
    return write_managers([*outdone(others, change, writing), me])

"""The managers of fields, and how an apply or another write changes them.

Place in the flow: `writing` calls `applied` for a PATCH of type apply, and `updates` for any other
write. Mirrors structured-merge-diff v6 merge/update.go and kubernetes v1.36 apimachinery
pkg/util/managedfields. An object has no managers where a client cleared them, or the server made
the object itself. At the first apply all its fields belong to ``before-first-apply``, as upstream.
Fields that kubectl's annotation names are the exception: they belong to its client-side apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from moorage.kinds.kind import Layout, Obj
from moorage.kinds.schema.field_sets import (
    FieldSet,
    Path,
    from_fields_v1,
    shown,
    to_fields_v1,
)
from moorage.kinds.schema.merging import fields_of, merged
from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.verbs.applying.notes import NOBODYS, are_notes, whole_entries
from moorage_sandbox.apiserver.verbs.applying.versions import Comparison, Find, Version, pruned

APPLY = "Apply"
UPDATE = "Update"
FIRST = "before-first-apply"
OLD = "ancient-changes"
CLIENT_SIDE = "kubectl-client-side-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LAST_APPLIED_PATH: Path = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
# Upstream merges the oldest managers of updates into one above this number.
UPDATERS_MAX = 10


class Manager(msgspec.Struct, frozen=True):
    """One entry of ``managedFields``.

    Parameters
    ----------
    name
        ``manager``.
    operation
        ``Apply`` or ``Update``.
    api_version
        Version of the object in which the fields are named.
    time
        Time of the last change of the entry, RFC 3339.
    subresource
        Subresource of the write, empty for the object itself.
    fields
        Fields that the entry manages.
    """

    name: str
    operation: str
    api_version: str
    time: str = ""
    subresource: str = ""
    fields: FieldSet = frozenset()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identity of the entry; an applier has one entry, in the version of its last apply."""
        version = self.api_version if self.operation == UPDATE else ""
        return (self.name, self.operation, self.subresource, version)

    @property
    def described(self) -> str:
        """Name of the entry in the message of a conflict."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        if self.operation == UPDATE:
            text += f" using {self.api_version}"
            text += f" at {self.time}" if self.time else ""
        return text


class Writing(msgspec.Struct, frozen=True, kw_only=True):
    """One write, as far as managers are concerned.

    Parameters
    ----------
    manager
        Name of the manager that writes.
    version
        Version of the object in this write.
    find
        Returns the other versions in which the object is served.
    subresource
        Empty for the object itself.
    has_status
        The kind has a subresource ``status``. Writes of either do not change the fields of the
        other.
    now
        RFC 3339.
    noted
        Entries of the kind's managers are stored without their fields; see `notes`.
    """

    manager: str
    version: Version
    find: Find
    subresource: str
    has_status: bool
    now: str
    noted: bool = False

    @property
    def api_version(self) -> str:
        """Name of the version the object is written in."""
        return self.version.name

    @property
    def layout(self) -> Layout:
        """Layout of the objects of that version."""
        return self.version.layout

    @property
    def writes_status(self) -> bool:
        """Whether the write is one of the subresource ``status``."""
        return self.has_status and self.subresource == "status"

    def managed(self, paths: Iterable[Path]) -> FieldSet:
        """Return the paths that this write can give to a manager, or take from one."""
        found = frozenset(path for path in paths if path not in NOBODYS)
        if not self.has_status:
            return found
        status = self.writes_status
        return frozenset(path for path in found if (path[0] == "f:status") == status)


def read_managers(entries: Any) -> list[Manager]:
    """Read ``metadata.managedFields``.

    Raises
    ------
    ValueError
        An entry is malformed.
    """
    managers = []
    for entry in entries or ():
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise ValueError(f"unknown operation {operation!r}")
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            raise ValueError(f"unknown fieldsType {entry['fieldsType']!r}")
        managers.append(
            Manager(
                name=entry.get("manager") or "",
                operation=operation,
                api_version=entry.get("apiVersion") or "",
                time=entry.get("time") or "",
                subresource=entry.get("subresource") or "",
                fields=from_fields_v1(entry.get("fieldsV1") or {}),
            )
        )
    return managers


def write_managers(managers: Iterable[Manager]) -> list[Obj]:
    """Return ``metadata.managedFields``; managers without fields are left out."""
    entries = []
    listed = [each for each in _capped(list(managers)) if each.fields]
    for each in sorted(listed, key=_order):
        entry: Obj = {"manager": each.name, "operation": each.operation}
        entry["apiVersion"] = each.api_version
        if each.time:
            entry["time"] = each.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": to_fields_v1(each.fields)}
        if each.subresource:
            entry["subresource"] = each.subresource
        entries.append(entry)
    return entries


def _order(manager: Manager) -> tuple[str, ...]:
    return (
        manager.operation,
        manager.time,
        manager.name,
        manager.api_version,
        manager.subresource,
    )


def _capped(managers: list[Manager]) -> list[Manager]:
    """Merge the oldest updaters of a version into one where there are too many."""
    updaters = [each for each in managers if each.operation == UPDATE and not each.subresource]
    left = len(updaters)
    by_version: dict[str, list[Manager]] = {}
    for each in sorted(updaters, key=lambda each: (each.time, each.name)):
        if left > UPDATERS_MAX:
            oldest = by_version.setdefault(each.api_version, [])
            oldest.append(each)
            left -= len(oldest) > 1
    for version, oldest in by_version.items():
        if len(oldest) > 1:
            fields = frozenset().union(*(each.fields for each in oldest))
            merged_keys = {id(each) for each in oldest}
            managers = [each for each in managers if id(each) not in merged_keys]
            managers.append(Manager(OLD, UPDATE, version, oldest[-1].time, "", fields))
    return managers


def applied(
    live: Obj | None, config: Obj, writing: Writing, *, force: bool
) -> tuple[Obj, list[Obj]]:
    """Return the object that an apply makes, and its ``managedFields``.

    Parameters
    ----------
    live
        The stored object; None to make a new one.
    config
        Configuration of the manager, which then owns all fields in it.
    writing
        Manager and version of the apply.
    force
        Take over fields that other managers own.

    Raises
    ------
    StatusError
        409: the configuration changes fields of other managers, and is not forced.
    """
    wanted = writing.managed(fields_of(config, writing.layout))
    me = Manager(writing.manager, APPLY, writing.api_version, writing.now, writing.subresource)
    if live is None:
        return config, write_managers([msgspec.structs.replace(me, fields=wanted)])
    managers = _managers_of(live, writing)
    mine = next((each for each in managers if each.key == me.key), None)
    others = [each for each in managers if each.key != me.key]
    new = _without_dropped(merged(live, config, writing.layout), mine, wanted, (others, writing))
    change = Comparison(live, new, writing.version, writing.find)
    if not force:
        _refuse_conflicts(others, change, writing, _forgiven(live, writing))
    others = outdone(others, change, writing)
    return new, write_managers([*others, msgspec.structs.replace(me, fields=wanted)])


def without_new_times(managed: list[Obj], old: Obj, new: Obj) -> list[Obj]:
    """Return ``managedFields`` after an apply; those of the old object where only times differ.

    Notes
    -----
    Source: kubernetes v1.36 apiserver pkg/endpoints/handlers/fieldmanager/equality.go.
    """
    stored = old["metadata"].get("managedFields") or []
    # A new time puts an entry into another place.
    same = _untimed(managed) == _untimed(stored)
    if same and _without_managers(old) == _without_managers(new):
        managed = stored
    return managed


def _untimed(entries: Iterable[Obj]) -> dict[tuple[str, ...], Obj]:
    """Return entries without their times, by what tells managers apart."""
    names = ("manager", "operation", "apiVersion", "subresource")
    return {tuple(each.get(name) or "" for name in names): each | {"time": ""} for each in entries}


def _without_managers(obj: Obj) -> Obj:
    meta = {name: each for name, each in obj["metadata"].items() if name != "managedFields"}
    return obj | {"metadata": meta}


def _managers_of(live: Obj, writing: Writing) -> list[Manager]:
    entries = live["metadata"].get("managedFields")
    if are_notes(entries):
        entries = whole_entries(live, entries, writing.layout)
    if entries:
        return read_managers(entries)
    everything = frozenset(fields_of(live, writing.layout)) - NOBODYS
    manager = Manager(FIRST, UPDATE, writing.api_version, writing.now, "", everything)
    by_kubectl = everything & _last_applied(live, writing)
    if not by_kubectl:
        return [manager]
    # kubectl takes over all fields of the manager in its annotation, so only its own entry counts.
    return [
        msgspec.structs.replace(
            manager, name=CLIENT_SIDE, fields=by_kubectl | {_LAST_APPLIED_PATH}
        ),
        msgspec.structs.replace(manager, fields=everything - by_kubectl - {_LAST_APPLIED_PATH}),
    ]


def _without_dropped(
    new: Obj, mine: Manager | None, wanted: FieldSet, around: tuple[Sequence[Manager], Writing]
) -> Obj:
    """Remove fields that the manager no longer applies, unless another manager owns them."""
    others, writing = around
    same = mine is not None and mine.api_version == writing.api_version
    if mine is None or (same and mine.fields <= wanted):
        return new
    version = writing.version if same else writing.find(mine.api_version)
    if version is None:
        return new
    kept: dict[str, set[Path]] = {writing.api_version: set(wanted)}
    for each in others:
        kept.setdefault(each.api_version, set()).update(each.fields)
    return pruned(new, writing.version, (mine.fields, version), kept, writing.find)


def outdone(others: Iterable[Manager], change: Comparison, writing: Writing) -> list[Manager]:
    """Return the other managers without the fields that a write changes or removes.

    Managers of a version that is no longer served go, because their fields cannot be resolved.
    """
    left = []
    # API version -> the fields taken; once for all managers of a version.
    taken: dict[str, FieldSet] = {}
    for each in others:
        found = change.in_version(each.api_version)
        if found is None:
            continue
        if each.api_version not in taken:
            taken[each.api_version] = writing.managed(found[0] | found[1])
        left.append(_less(each, taken[each.api_version]))
    return left


def _less(manager: Manager, taken: AbstractSet[Path]) -> Manager:
    left = manager.fields - taken
    return manager if left == manager.fields else msgspec.structs.replace(manager, fields=left)


def _forgiven(live: Obj, writing: Writing) -> set[Path]:
    """Return the fields that kubectl owned through client-side apply.

    Notes
    -----
    Source: kubernetes v1.36 apimachinery pkg/util/managedfields/internal/lastappliedmanager.go.
    The annotation of client-side apply names the fields that kubectl already owned.
    """
    return _last_applied(live, writing) if writing.manager == "kubectl" else set()


def _last_applied(live: Obj, writing: Writing) -> set[Path]:
    """Return the fields of the configuration in kubectl's client-side annotation."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        found = msgspec.json.decode(text or "null")
    except msgspec.DecodeError:
        return set()
    return fields_of(found, writing.layout) if isinstance(found, dict) else set()


def _refuse_conflicts(
    others: list[Manager], change: Comparison, writing: Writing, forgiven: set[Path]
) -> None:
    """Raise the 409 that names every field of another manager.

    An apply of the object does not write its status, so that a status in its file conflicts with
    nobody.
    """
    conflicts = []
    taken: dict[str, FieldSet] = {}
    for each in others:
        if each.api_version not in taken:
            changed, _ = change.in_version(each.api_version) or (set(), set())
            taken[each.api_version] = writing.managed(changed) - forgiven
        conflicts += [(each, path) for path in sorted(each.fields & taken[each.api_version])]
    if not conflicts:
        return
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {manager.described}",
            "field": shown(path),
        }
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        text = f"1 conflict: conflict with {manager.described}: {shown(path)}"
    else:
        groups: dict[str, list[str]] = {}
        for manager, path in conflicts:
            groups.setdefault(manager.described, []).append(f"- {shown(path)}")
        listed = [f"conflicts with {who}:\n" + "\n".join(groups[who]) for who in sorted(groups)]
        text = f"{len(conflicts)} conflicts: " + "\n".join(listed)
    message = f"Apply failed with {text}"
    raise StatusError(409, "Conflict", message, details={"causes": causes})

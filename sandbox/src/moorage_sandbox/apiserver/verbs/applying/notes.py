"""Entries of ``managedFields`` without their fields, for objects that are written very often.

Place in the flow: `updates` stores a note where a pod or an Event is made, and where a pod's status
changes: manager, version and time of the entry. Whole entries would double the size of a pod and
the time that a write of its status takes. They are computed where they matter: before any other
write, and where one object is read.

The note of an object stands for all its fields but the status, and those that admission and binding
wrote. The last note of a status stands for the whole status. That is what upstream's entries come
to where admission adds nothing but what it adds to every pod. Else the entries are stored whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from moorage.kinds.kind import Layout, Obj
from moorage.kinds.pod.admission import DEFAULT, TOLERATED
from moorage.kinds.pod.topology import TOPOLOGY_LABELS
from moorage.kinds.schema.field_sets import Path
from moorage.kinds.schema.field_trees import Tree, tree_of, without_paths
from moorage_sandbox.storage.record import Record

# Fields without a manager: names of the object, and fields that only the server writes.
NOBODYS = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "uid",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    }
)

NOTED = frozenset({"pods", "events"})
"""Shelves of the objects whose managers are noted."""

STATUS = "status"
"""The subresource of status."""

# Fields of a pod that admission and binding write. Upstream nobody owns them, and an apply that
# takes over the creator's fields would else remove them.
_BY_THE_SERVER = ("nodeName", "priority", "preemptionPolicy")
_UNLESS_SENT = {"serviceAccountName": DEFAULT, "serviceAccount": DEFAULT}
_METADATA_OF_NOBODY = frozenset(path[1] for path in NOBODYS if len(path) == 2)
# Objects of one maker mostly have one spec, so its tree is computed once; larger ones are rare.
_SPECS_MAX = 256
_SPEC_BYTES_MAX = 8192

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def note(manager: str, api_version: str, now: str, subresource: str = "") -> Obj:
    """Return an entry of ``managedFields`` without its fields."""
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": now,
    }
    return entry | {"subresource": subresource} if subresource else entry


def are_notes(entries: Any) -> bool:
    """Whether an object's ``managedFields`` are notes, or some of them are."""
    return bool(entries) and any("fieldsV1" not in each for each in entries)


def whole_entries(obj: Obj, entries: Sequence[Obj], layout: Layout) -> list[Obj]:
    """Return ``managedFields`` with the fields that notes stand for.

    Parameters
    ----------
    obj
        The object, in the version of ``layout``.
    entries
        Its ``managedFields``.
    layout
        Layout of the object.
    """
    last = [each for each in entries if each.get("subresource") == STATUS][-1:]
    whole: list[Obj] = []
    for each in entries:
        if "fieldsV1" in each:
            whole.append(each)
        elif not each.get("subresource"):
            fields = owned_tree(obj, layout, status=False)
            whole.append(each | _fields(obj, without_paths(fields, _of_admission(obj))))
        elif each in last:
            whole.append(each | _fields(obj, owned_tree(obj, layout, status=True)))
    return whole


def _of_admission(obj: Obj) -> list[Path]:
    """Return the fields of a pod that admission or binding wrote."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return []
    names = [
        *_BY_THE_SERVER,
        *(name for name, sent in _UNLESS_SENT.items() if spec.get(name) == sent),
    ]
    if {each.get("key") for each in spec.get("tolerations") or ()} <= set(TOLERATED):
        names.append("tolerations")
    fields: list[Path] = [("f:spec", f"f:{name}") for name in names]
    return fields + _labels_of_binding(obj) if spec.get("nodeName") else fields


def _labels_of_binding(pod: Obj) -> list[Path]:
    """Return the labels of a pod that binding wrote, and all labels where there are no others."""
    labels: Path = ("f:metadata", "f:labels")
    written = [(*labels, f"f:{name}") for name in TOPOLOGY_LABELS]
    others = (pod["metadata"].get("labels") or {}).keys() - set(TOPOLOGY_LABELS)
    return written if others else [*written, labels]


def _fields(obj: Obj, fields: Tree) -> Obj:
    return {"apiVersion": obj["apiVersion"], "fieldsType": "FieldsV1", "fieldsV1": fields}


def whole_record(record: Record, layout: Layout) -> Record:
    """Return a record, for one reader, with the fields that notes stand for."""
    if b'"managedFields":[' not in record.data:
        return record
    obj = record.decode()
    meta = obj["metadata"]
    if not are_notes(meta.get("managedFields")):
        return record
    meta["managedFields"] = whole_entries(obj, meta["managedFields"], layout)
    return msgspec.structs.replace(record, data=_encode(obj))


def owned_tree(obj: Obj, layout: Layout, *, status: bool | None) -> Tree:
    """Return the fields of an object that may have a manager.

    Parameters
    ----------
    obj, layout
        The object, and its layout.
    status
        True for the fields of the status alone, False for all others, None for all.
    """
    tree: Tree = {}
    for name in sorted(obj):
        if name in ("apiVersion", "kind") or status not in (None, name == "status"):
            continue
        if name == "spec":
            fields = _spec_tree(obj[name], layout)
        else:
            fields = tree_of({name: obj[name]}, layout).get(f"f:{name}")
        if name == "metadata":
            fields = _owned_metadata(fields or {}) or None
        if fields is not None:
            tree[f"f:{name}"] = fields
    return tree


def _owned_metadata(fields: Tree) -> Tree:
    nobodys = _METADATA_OF_NOBODY
    return {name: each for name, each in fields.items() if name != "." and name not in nobodys}


def _spec_tree(spec: Any, layout: Layout) -> Tree | None:
    data = _encode(spec)
    if len(data) > _SPEC_BYTES_MAX:
        tree: Tree | None = tree_of({"spec": spec}, layout).get("f:spec")
        return tree
    return _remembered_tree(data, layout)


@lru_cache(_SPECS_MAX)
def _remembered_tree(spec: bytes, layout: Layout) -> Tree | None:
    """Return the tree of a spec; nobody changes it, for it is shared."""
    tree: Tree | None = tree_of({"spec": _decode(spec)}, layout).get("f:spec")
    return tree

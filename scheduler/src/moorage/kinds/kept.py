"""Kinds without behaviour, and further versions of kinds: both follow from the facts.

Place in the flow: `moorage.kinds.registry` adds these to the kinds that have a module of
their own. A kept kind is checked against its schema, stored, listed and watched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.cells import AGE, NAME, UNSET, column, first_few
from moorage.kinds.facts import kind_definition
from moorage.kinds.kind import Column, Obj, Translation
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, condition, objects, text
from moorage.kinds.values.name_rules import path_segment_name
from moorage.kinds.versions import CONVERSIONS

_PROPERTIES: Final[Mapping[str, Mapping[str, Any]]] = {
    # Names are any segment of a path, and often have colons.
    "clustertrustbundles": {
        "name_rule": path_segment_name,
        "needs_version": True,
        "grants_rights": True,
    },
    "leasecandidates": {"created_by_put": True, "needs_version": True},
    "podcertificaterequests": {"open_status": (), "needs_version": True},
    "resourcepoolstatusrequests": {"open_status": (), "needs_version": True},
    "storageversionmigrations": {"open_status": (), "needs_version": True},
    "storageversions": {"open_status": (), "needs_version": True},
}
"""What the facts do not say about kept kinds: fields of `ServedKind`, by plural.

The strategies of kubernetes v1.36 pkg/registry have them. A status strategy that keeps the metadata
(ResetObjectMetaForStatus) is an empty ``open_status``.
"""


def _healthy(obj: Obj) -> Json:
    """Return the condition of a component, which has no status; empty where it has none."""
    return condition({"status": obj}, "Healthy") or {}


def _health(obj: Obj) -> str:
    shown = {"": "Unknown", "True": "Healthy"}
    return shown.get(text(_healthy(obj), "status"), "Unhealthy")


def _stored_versions(obj: Obj) -> str:
    servers = objects(obj, "status", "storageVersions")
    return first_few([f"{text(e, 'apiServerID')}={text(e, 'encodingVersion')}" for e in servers])


def _migrated(obj: Obj) -> str:
    # The core group is an empty text, and upstream writes the point all the same.
    return ".".join(text(obj, "spec", "resource", key) for key in ("resource", "group"))


def _request_state(obj: Obj) -> str:
    types = [text(each, "type") for each in objects(obj, "status", "conditions")]
    ended = [each for each in types if each in ("Issued", "Denied", "Failed")]
    return ended[-1] if ended else "Pending"


_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "clustertrustbundles": (NAME, column("SignerName", "spec.signerName", "The signer")),
    "componentstatuses": (
        NAME,
        column("Status", _health, "Healthy, Unhealthy or Unknown"),
        column("Message", lambda obj: text(_healthy(obj), "message"), "What the component says"),
        column(
            "Error", lambda obj: text(_healthy(obj), "error"), "What is wrong with the component"
        ),
    ),
    "leasecandidates": (
        NAME,
        column("LeaseName", "spec.leaseName", "The lease"),
        column("BinaryVersion", "spec.binaryVersion", "Version of the program"),
        column("EmulationVersion", "spec.emulationVersion", "Version that the program plays"),
        AGE,
    ),
    "podcertificaterequests": (
        NAME,
        *(
            column(f"{kind[0].upper()}{kind[1:]}Name", f"spec.{kind}Name", "Name of that object")
            for kind in ("pod", "serviceAccount", "node", "signer")
        ),
        column("State", _request_state, "Pending, Issued, Denied or Failed"),
    ),
    "storageversionmigrations": (
        msgspec.structs.replace(NAME, format=""),
        column("Resource", _migrated, "The resource to migrate"),
    ),
    "storageversions": (
        NAME,
        column("CommonEncodingVersion", "status.commonEncodingVersion", "Of all", empty=UNSET),
        column("StorageVersions", _stored_versions, "Of each API server", empty=UNSET),
        AGE,
    ),
}
"""The columns of kept kinds that have others than their name and age, by plural."""


def kept_kind(resource: ResourceType) -> ServedKind:
    """Return the rules of a kind that only the facts describe."""
    return ServedKind(
        resource=resource,
        columns=_COLUMNS.get(resource.plural, (NAME, AGE)),
        counts_generations="spec" in kind_definition(resource).fields,
        **_PROPERTIES.get(resource.plural, {}),
    )


def other_version(
    resource: ResourceType, stored: ServedKind, *, needs_version: bool | None = None
) -> ServedKind:
    """Return the rules of a kind in a version that is not the stored one.

    Parameters
    ----------
    resource, stored
        The version, and the rules of the stored version.
    needs_version
        Whether an update has to carry a resourceVersion; None for as in the stored version.

    Notes
    -----
    Objects are validated in the stored version. The two forms differ in the version's name, and in
    the fields of `CONVERSIONS`.
    """
    to_stored, from_stored = CONVERSIONS.get(
        (resource.plural, resource.version), (_nothing, _nothing)
    )

    def cells(obj: Obj, now_ns: int) -> list[Any]:
        return stored.row(to_stored(obj), now_ns)

    return ServedKind(
        resource=resource,
        columns=stored.columns,
        cells=cells,
        has_status=stored.has_status,
        parts=stored.parts,
        created_by_put=stored.created_by_put,
        needs_version=stored.needs_version if needs_version is None else needs_version,
        shown_when_deleted=stored.shown_when_deleted,
        grants_rights=stored.grants_rights,
        acted_on_by=stored.acted_on_by,
        warn=stored.warn,
        warn_of_new=stored.warn_of_new,
        translation=Translation(
            stored=stored.resource,
            to_stored=_renaming(stored.resource.api_version, to_stored),
            from_stored=_renaming(resource.api_version, from_stored),
            stored_rules=True,
        ),
    )


def _nothing(obj: Obj) -> Obj:
    return obj


def _renaming(api_version: str, convert: Callable[[Obj], Obj]) -> Callable[[Obj], Obj]:
    def renamed(obj: Obj) -> Obj:
        return convert(obj) | {"apiVersion": api_version}

    return renamed


def with_other_versions(
    kinds: Mapping[ResourceType, ServedKind], resources: tuple[ResourceType, ...]
) -> list[ServedKind]:
    """Return one kind for each resource type, in order; the best version of each is stored.

    Parameters
    ----------
    kinds
        Kinds that have a module of their own.
    resources
        Every resource type, the best version of each group and plural first.
    """
    stored: dict[tuple[str, str], ServedKind] = {}
    served = []
    for resource in resources:
        path = (resource.group, resource.plural)
        kind = kinds.get(resource)
        if kind is None:
            kind = other_version(resource, stored[path]) if path in stored else kept_kind(resource)
        stored.setdefault(path, kind)
        served.append(kind)
    return served

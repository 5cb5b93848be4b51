"""Every definition of the served API under its full name, with references resolved.

Place in the flow: built once from the tables at import; read by `check`, `openapi` and
`patch_strategic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from moorage.api.resources import ResourceType
from moorage.apiserver.schema import (
    core_table,
    device_table,
    extending_table,
    extension_table,
    group_table,
    network_table,
    pod_table,
    quota_table,
    rbac_table,
)
from moorage.apiserver.schema.language import Definition, Field, TypeRef, parse_table

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
CORE = "io.k8s.api.core.v1"

# Where the definitions of an API version live, by API version as objects carry it.
PACKAGES: Mapping[str, str] = {
    "v1": CORE,
    "admissionregistration.k8s.io/v1": "io.k8s.api.admissionregistration.v1",
    "apiextensions.k8s.io/v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    "apiregistration.k8s.io/v1": "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
    "apps/v1": "io.k8s.api.apps.v1",
    "autoscaling/v1": "io.k8s.api.autoscaling.v1",
    "autoscaling/v2": "io.k8s.api.autoscaling.v2",
    "batch/v1": "io.k8s.api.batch.v1",
    "coordination.k8s.io/v1": "io.k8s.api.coordination.v1",
    "discovery.k8s.io/v1": "io.k8s.api.discovery.v1",
    "events.k8s.io/v1": "io.k8s.api.events.v1",
    "networking.k8s.io/v1": "io.k8s.api.networking.v1",
    "policy/v1": "io.k8s.api.policy.v1",
    "rbac.authorization.k8s.io/v1": "io.k8s.api.rbac.v1",
    "resource.k8s.io/v1": "io.k8s.api.resource.v1",
    "scheduling.k8s.io/v1": "io.k8s.api.scheduling.v1",
    "scheduling.k8s.io/v1alpha2": "io.k8s.api.scheduling.v1alpha2",
    "storage.k8s.io/v1": "io.k8s.api.storage.v1",
}

# One row or more for each package; a new API version takes a row here and one in PACKAGES.
_TABLES = (
    (META, core_table.META),
    (CORE, pod_table.POD),
    (CORE, core_table.CORE),
    (CORE, quota_table.QUOTA),
    (CORE, network_table.ENDPOINTS),
    (PACKAGES["admissionregistration.k8s.io/v1"], extending_table.ADMISSION),
    (PACKAGES["apiextensions.k8s.io/v1"], extension_table.EXTENSIONS),
    (PACKAGES["apiregistration.k8s.io/v1"], extending_table.REGISTRATION),
    (PACKAGES["apps/v1"], group_table.APPS),
    (PACKAGES["autoscaling/v1"], extending_table.AUTOSCALING_V1),
    (PACKAGES["autoscaling/v2"], extending_table.AUTOSCALING),
    (PACKAGES["batch/v1"], group_table.BATCH),
    (PACKAGES["coordination.k8s.io/v1"], group_table.COORDINATION),
    (PACKAGES["discovery.k8s.io/v1"], network_table.DISCOVERY),
    (PACKAGES["events.k8s.io/v1"], group_table.EVENTS),
    (PACKAGES["networking.k8s.io/v1"], network_table.NETWORKING),
    (PACKAGES["policy/v1"], group_table.POLICY),
    (PACKAGES["rbac.authorization.k8s.io/v1"], rbac_table.RBAC),
    (PACKAGES["resource.k8s.io/v1"], device_table.DEVICES),
    (PACKAGES["scheduling.k8s.io/v1"], group_table.SCHEDULING),
    (PACKAGES["scheduling.k8s.io/v1alpha2"], group_table.GROUPS),
    (PACKAGES["storage.k8s.io/v1"], group_table.STORAGE),
)


def definition_name(resource: ResourceType) -> str:
    """Full name of a kind's definition, ``io.k8s.api.core.v1.Pod``.

    That of a custom resource is made of its group backwards, as upstream does:
    ``com.example.v1.Car``.
    """
    package = PACKAGES.get(resource.api_version)
    if package is None:
        package = ".".join([*reversed(resource.group.split(".")), resource.version])
    return f"{package}.{resource.kind}"


def definition(name: str) -> Definition:
    """Return the definition of this full name."""
    return DEFINITIONS[name]


def kind_definition(resource: ResourceType) -> Definition:
    """Return the definition of a served kind.

    Raises
    ------
    KeyError
        The API version or the kind is not in the tables.
    """
    return DEFINITIONS[definition_name(resource)]


def short_name(name: str) -> str:
    """Last part of a full name: ``PodSpec``."""
    return name.rpartition(".")[2]


def go_name(name: str) -> str:
    """Name as Go prints it in messages: ``v1.PodSpec``."""
    return ".".join(name.rsplit(".", 2)[-2:])


def references(name: str) -> list[str]:
    """Full names of the definitions one definition refers to, sorted."""
    found = set()
    for field in DEFINITIONS[name].fields.values():
        type_ref = field.type
        while type_ref.of is not None:
            type_ref = type_ref.of
        if type_ref.shape == "object":
            found.add(type_ref.name)
    return sorted(found)


def closure(names: list[str]) -> list[str]:
    """Full names of these definitions and of all they lead to, sorted."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += references(name)
    return sorted(found)


@cache
def merge_keys(resource: ResourceType) -> Mapping[str, str]:
    """Path of every list that merges by a key -> that key, for one kind.

    Paths are dotted without indexes, ``spec.template.spec.containers``; a type that contains
    itself is not entered again.
    """
    found: dict[str, str] = {}
    _collect_merge_keys(kind_definition(resource), "", (), found)
    return found


def _collect_merge_keys(
    found: Definition, prefix: str, inside: tuple[str, ...], keys: dict[str, str]
) -> None:
    if found.name in inside:
        return
    for field in found.fields.values():
        path = f"{prefix}{field.name}"
        if field.merge_key:
            keys[path] = field.merge_key
        type_ref = field.type
        while type_ref.of is not None:
            type_ref = type_ref.of
        if type_ref.shape == "object":
            inner = DEFINITIONS[type_ref.name]
            _collect_merge_keys(inner, f"{path}.", (*inside, found.name), keys)


def _build() -> dict[str, Definition]:
    parsed: dict[str, dict[str, Definition]] = {}
    for package, text in _TABLES:
        parsed.setdefault(package, {}).update(parse_table(text))
    return {
        f"{package}.{short}": _resolve(found, package, parsed)
        for package, definitions in parsed.items()
        for short, found in definitions.items()
    }


def _resolve(
    found: Definition, package: str, parsed: dict[str, dict[str, Definition]]
) -> Definition:
    fields = {
        field.name: msgspec.structs.replace(field, type=_resolve_type(field.type, package, parsed))
        for field in found.fields.values()
    }
    return Definition(f"{package}.{found.name}", fields, found.is_kind)


def _resolve_type(
    type_ref: TypeRef, package: str, parsed: dict[str, dict[str, Definition]]
) -> TypeRef:
    if type_ref.of is not None:
        return TypeRef(type_ref.shape, of=_resolve_type(type_ref.of, package, parsed))
    if type_ref.shape != "object":
        return type_ref
    for candidate in (package, META, CORE):
        if type_ref.name in parsed[candidate]:
            return TypeRef("object", f"{candidate}.{type_ref.name}")
    raise ValueError(f"{package}: no definition of {type_ref.name}")


DEFINITIONS: Mapping[str, Definition] = _build()

__all__ = [
    "CORE",
    "DEFINITIONS",
    "META",
    "PACKAGES",
    "Definition",
    "Field",
    "TypeRef",
    "closure",
    "definition",
    "definition_name",
    "go_name",
    "kind_definition",
    "merge_keys",
    "references",
    "short_name",
]

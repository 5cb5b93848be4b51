"""Every definition of the served API, by its full name.

Place in the flow: the definitions are facts of the API (`moorage.kinds.facts`). `check`,
`shape`, `layout`, `openapi` and `patch_strategic` walk over objects with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds import facts
from moorage.kinds.facts import Definition

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{META}.ObjectMeta"
SCHEMA_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
"""The only definition that contains itself."""


@cache
def definition(name: str) -> Definition:
    """Return the definition of this full name.

    Raises
    ------
    KeyError
        There is no such definition.
    """
    return msgspec.structs.replace(facts.definitions()[name], name=name)


@cache
def _names_by_kind() -> Mapping[tuple[str, str, str], str]:
    """Return the full name of the definition of every (group, version, kind)."""
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, fact in facts.definitions().items()
        # Types such as DeleteOptions and Status are shared by all groups.
        if not name.startswith(META)
        for gvk in fact.group_version_kind
    }


@cache
def definition_name(resource: ResourceType) -> str:
    """Full name of a kind's definition, ``io.k8s.api.core.v1.Pod``.

    The name for a custom resource starts with the reversed group, as upstream:
    ``com.example.v1.Car``.
    """
    found = _names_by_kind().get((resource.group, resource.version, resource.kind))
    if found is not None:
        return found
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def is_built_in(resource: ResourceType) -> bool:
    """Whether the facts describe a kind; no custom resource has its group and kind."""
    return has_definition(resource.group, resource.version, resource.kind)


def has_definition(group: str, version: str, kind: str) -> bool:
    """Whether the facts describe this kind."""
    return (group, version, kind) in _names_by_kind()


def kind_definition(resource: ResourceType) -> Definition:
    """Return the definition of a built-in kind.

    Raises
    ------
    KeyError
        The API version or the kind is not among the facts.
    """
    return definition(definition_name(resource))


def short_name(name: str) -> str:
    """Last part of a full name: ``PodSpec``."""
    return name.rpartition(".")[2]


def go_name(name: str) -> str:
    """Name as Go prints it in messages: ``v1.PodSpec``."""
    return ".".join(name.rsplit(".", 2)[-2:])


def references(name: str) -> list[str]:
    """Full names of the definitions that one definition refers to, sorted."""
    inner = [field.innermost for field in definition(name).fields.values()]
    return sorted({each.name for each in inner if each.shape == "object"})


def closure(names: list[str]) -> list[str]:
    """Full names of these definitions and of all definitions they refer to, sorted."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += references(name)
    return sorted(found)

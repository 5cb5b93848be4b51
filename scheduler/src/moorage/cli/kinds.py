"""Finds resource types by the words of a command line or of a manifest.

Built-in kinds need no call; other kinds are looked up in the discovery of the server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from moorage.api.resources import (
    POD_GROUPS,
    WORKLOADS,
    ResourceType,
    by_kind,
    by_name,
    group_version_path,
)
from moorage.base.errors import NotFoundError, UsageError
from moorage.cli.manifests import Manifest
from moorage.client.writes import Client

_OF_SEVERAL_VERSIONS: Final = (POD_GROUPS, WORKLOADS)  # 1.37 does not serve that of 1.36
_PLAIN_ADVICE: Final = "correct apiVersion and kind"
# The kinds of scheduler-plugins, by their group. A cluster has them where its scheduler needs them.
_ADVICE: Final = {
    "scheduling.x-k8s.io": "`moorage up --groups`, or --config with Coscheduling or "
    "CapacityScheduling, makes it; elsewhere install its CustomResourceDefinition first"
}


async def named_kind(client: Client, word: str) -> ResourceType:
    """Find the type with a name such as ``pods``, ``po``, ``Pod`` or ``deployments.apps``.

    Raises
    ------
    UsageError
        The server has no such type.
    """
    built_in = by_name(word)
    if built_in is not None and built_in not in _OF_SEVERAL_VERSIONS:
        return built_in
    wanted = word.lower()
    async for each in _discovered(client, "" if built_in is None else built_in.group):
        if wanted in {each.plural, each.singular, each.qualified, *each.short_names}:
            return each
    if built_in is not None:
        return built_in
    raise UsageError(f'the server does not have a resource type "{word}"')


async def named_kinds(client: Client, word: str) -> list[ResourceType]:
    """Find the types of a word: a name as for `named_kind`, or a category such as ``all``.

    Raises
    ------
    UsageError
        The server has no such type or category.
    """
    try:
        return [await named_kind(client, word)]
    except UsageError:
        found = [each async for each in _discovered(client) if word.lower() in each.categories]
        if not found:
            raise
        return found


async def manifest_kind(client: Client, obj: Manifest) -> ResourceType:
    """Find the type of an object by its apiVersion and kind.

    Raises
    ------
    UsageError
        The server has no such type.
    """
    version, kind = obj["apiVersion"], obj["kind"]
    found = by_kind(kind, version)
    if found is not None:
        return found
    group, _, number = version.rpartition("/")
    try:
        listed = await client.read_path(group_version_path(group, number))
    except NotFoundError:
        listed = {}
    for each in _types(group, number, listed):
        if each.kind == kind:
            return each
    name = obj["metadata"].get("name", "")
    raise UsageError(
        f'{kind} {name}: the server has no kind "{kind}" in version "{version}"; '
        f"{_ADVICE.get(group, _PLAIN_ADVICE)}"
    )


async def _discovered(client: Client, only: str = "") -> AsyncIterator[ResourceType]:
    """Yield every type that the server serves, core first, each once; or those of one API group.

    A type has the first version of its group that serves it, the preferred one if that does.
    """
    if not only:
        for each in _types("", "v1", await client.read_path("/api/v1")):
            yield each
    groups = (await client.read_path("/apis")).get("groups")
    for group in groups if isinstance(groups, list) else []:
        name, known = group["name"], set[str]()
        if only and name != only:
            continue
        versions = [group["preferredVersion"], *(group.get("versions") or ())]
        for version in dict.fromkeys(each["version"] for each in versions):
            listed = await client.read_path(group_version_path(name, version))
            for each in _types(name, version, listed):
                if each.plural not in known:
                    known.add(each.plural)
                    yield each


def _types(group: str, version: str, listed: Mapping[str, Any]) -> list[ResourceType]:
    return [
        ResourceType(
            group=group,
            version=version,
            kind=entry["kind"],
            plural=entry["name"],
            singular=entry.get("singularName") or entry["kind"].lower(),
            namespaced=bool(entry.get("namespaced")),
            short_names=tuple(entry.get("shortNames") or ()),
            categories=tuple(entry.get("categories") or ()),
        )
        for entry in listed.get("resources") or []
        if "/" not in entry["name"]
    ]

"""Discovers the kinds of a server whose objects can be watched and deleted."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from moorage.api.resources import ResourceType, group_version_path
from moorage.base.errors import NotFoundError
from moorage.client.writes import Client

_NEEDED: Final = frozenset({"delete", "list", "watch"})


async def deletable_kinds(client: Client) -> list[ResourceType]:
    """Ask a server for its kinds, each in its preferred version.

    Raises
    ------
    MoorageError
        The server refused a call or gave no valid answer.
    """
    groups: Any = await client.read_path("/apis")
    versions = [("", "v1")]
    for group in groups.get("groups") or []:
        preferred = group.get("preferredVersion") or {}
        versions.append((group["name"], preferred.get("version") or "v1"))
    # A server of v1.36 has some 25 groups; asking for them in sequence would delay the start.
    found = await asyncio.gather(*(_kinds_of(client, *each) for each in versions))
    return [each for kinds in found for each in kinds]


async def _kinds_of(client: Client, group: str, version: str) -> list[ResourceType]:
    try:
        listed: Any = await client.read_path(group_version_path(group, version))
    except NotFoundError:
        return []  # The version was removed after the groups were listed.
    return [
        ResourceType(
            group=group,
            version=version,
            kind=each["kind"],
            plural=each["name"],
            singular=each.get("singularName") or each["kind"].lower(),
            namespaced=bool(each.get("namespaced")),
        )
        for each in listed.get("resources") or []
        if "/" not in each["name"] and set(each.get("verbs") or []) >= _NEEDED
    ]

"""Discovers the kinds of a server whose objects can be watched and deleted."""

from __future__ import annotations

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
        The server did not answer as it should.
    """
    groups: Any = await client.read("/apis")
    versions = [("", "v1")]
    for group in groups.get("groups") or []:
        preferred = group.get("preferredVersion") or {}
        versions.append((group["name"], preferred.get("version") or "v1"))
    found: list[ResourceType] = []
    for group_name, version in versions:
        try:
            listed: Any = await client.read(group_version_path(group_name, version))
        except NotFoundError:
            continue  # it went while we asked
        found += [
            ResourceType(
                group=group_name,
                version=version,
                kind=each["kind"],
                plural=each["name"],
                singular=each.get("singularName") or each["kind"].lower(),
                namespaced=bool(each.get("namespaced")),
            )
            for each in listed.get("resources") or []
            if "/" not in each["name"] and set(each.get("verbs") or []) >= _NEEDED
        ]
    return found

"""Finds the wanted number of pods of an owner: from watched owners, else from the server.

Rules: kubernetes v1.36 ``pkg/controller/disruption/disruption.go`` (the pod controller finders).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.meta import ApiStruct, OwnerReference
from moorage.api.resources import (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    ResourceType,
    group_version_path,
    resource_path,
)
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.objects import Key
from moorage.client.writes import Client
from moorage.controllers.views import Views
from moorage.workloads.disruption_steps import BudgetError, Scale
from moorage.workloads.objects import Whole
from moorage_sandbox.controllers.changed_objects import ChangedObjects


class ScaleError(MoorageError):
    """An object cannot be scaled; the message says why."""


class _ScaleSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted copies; None means 1."""

    replicas: int | None = None


# Kinds of watched owners; for other owners the server is asked for the scale.
_WATCHED: Final[tuple[ResourceType, ...]] = (
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    DEPLOYMENTS,
    STATEFUL_SETS,
)

_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    REPLICATION_CONTROLLERS.kind: frozenset({""}),
    REPLICA_SETS.kind: frozenset({"apps", "extensions"}),
    DEPLOYMENTS.kind: frozenset({"apps", "extensions"}),
    STATEFUL_SETS.kind: frozenset({"apps"}),
}


class _ScaleMeta(ApiStruct, frozen=True):
    uid: str = ""


class _ScaleAnswer(ApiStruct, frozen=True):
    metadata: _ScaleMeta = _ScaleMeta()
    spec: _ScaleSpec = _ScaleSpec()


class Scales:
    """Finds the scales of owners.

    Parameters
    ----------
    client
        Client for the scales of owners that are not watched.
    views
        Show the owners of the usual kinds.
    changed
        Called with every change of such an owner, as `Seen` does.
    """

    def __init__(self, client: Client, views: Views, changed: Callable[[Whole], None]) -> None:
        self._client = client
        self._owners = {
            each.kind: ChangedObjects(views.view_of(each, Whole), changed) for each in _WATCHED
        }

    async def of_all(
        self, owners: Iterable[OwnerReference], namespace: str
    ) -> dict[str, Scale | BudgetError | None]:
        """Return the scale of each owner by its uid; None where there is no such owner.

        Raises
        ------
        ApiError, TransportError
            The server refused a call or gave no valid answer.
        """
        scales: dict[str, Scale | BudgetError | None] = {}
        for owner in owners:
            if owner.uid in scales:
                continue
            try:
                scales[owner.uid] = self._scale_in_view(owner, namespace) or await self._read_scale(
                    owner, namespace
                )
            except ScaleError as problem:
                scales[owner.uid] = BudgetError(str(problem))
        return scales

    def _scale_in_view(self, owner: OwnerReference, namespace: str) -> Scale | None:
        workload = self._find(owner, namespace)
        if workload is None or owner.kind == DEPLOYMENTS.kind:
            return None
        above = workload.metadata.controller if owner.kind == REPLICA_SETS.kind else None
        if above is not None and above.kind == DEPLOYMENTS.kind:
            workload = self._find(above, namespace)
        if workload is None:
            return None
        replicas = workload.spec.get("replicas")
        return Scale(workload.metadata.uid, 1 if replicas is None else replicas)

    def _find(self, owner: OwnerReference, namespace: str) -> Whole | None:
        group = owner.api_version.rpartition("/")[0]
        if group not in _GROUPS.get(owner.kind, frozenset()):
            return None
        key: Key = (namespace, owner.name)
        found = self._owners[owner.kind].objects.get(key)
        return found if found is not None and found.metadata.uid == owner.uid else None

    async def _read_scale(self, owner: OwnerReference, namespace: str) -> Scale | None:
        """Read the scale subresource of an owner of any kind."""
        resource = await scaled_resource(self._client, owner.api_version, owner.kind)
        path = resource_path(resource, namespace, owner.name, "scale")
        try:
            answer = msgspec.convert(await self._client.read_path(path), _ScaleAnswer)
        except NotFoundError:
            return None
        except msgspec.ValidationError as problem:
            raise ScaleError(f"the scale of {owner.kind} {owner.name}: {problem}") from problem
        if answer.metadata.uid != owner.uid:
            return None
        return Scale(owner.uid, answer.spec.replicas or 0)


async def scaled_resource(client: Client, api_version: str, kind: str) -> ResourceType:
    """Return the resource of a kind that has the subresource ``scale``.

    Raises
    ------
    ScaleError
        The server has no such kind, or the kind has no scale.
    """
    group, _, version = api_version.rpartition("/")
    try:
        listed: Any = await client.read_path(group_version_path(group, version))
    except NotFoundError:
        listed = {}
    entries = {each["name"]: each for each in listed.get("resources") or []}
    plural = next(
        (n for n, each in entries.items() if each.get("kind") == kind and "/" not in n), ""
    )
    if not plural:
        raise ScaleError(f'no matches for kind "{kind}" in version "{api_version}"')
    namespaced = bool(entries[plural].get("namespaced"))
    found = ResourceType(group, version, kind, plural, "", namespaced)
    if entries.get(f"{plural}/scale", {}).get("kind") != "Scale":
        raise ScaleError(f"{found.qualified} does not implement the scale subresource")
    return found

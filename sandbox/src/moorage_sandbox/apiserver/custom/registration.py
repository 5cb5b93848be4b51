"""The APIServices of custom resources: one for each version of a group that a definition serves.

Place in the flow: `definitions` reports every definition that is written. Mirrors kubernetes v1.36
pkg/controlplane/controller/crdregistration and kube-aggregator pkg/controllers/autoregister, which
act at once here.
"""

from __future__ import annotations

from moorage.api.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from moorage.kinds.kind import Obj
from moorage.kinds.tree import child, objects, text
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.verbs.metadata import stamp_new
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record

AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
"""The label of an APIService that the server keeps: "true", or "onstart" of built-in groups."""
# Custom resources come behind built-in groups; their versions are sorted by name.
_GROUP_PRIORITY, _VERSION_PRIORITY = 1000, 100


def api_service(group: str, version: str, managed: str, priorities: tuple[int, int]) -> Obj:
    """Return the APIService of a group that this server serves.

    Parameters
    ----------
    group, version
        The API version that it is about.
    managed
        Value of its label `AUTOMANAGED`.
    priorities
        Of the group, and of the version within it.
    """
    of_group, of_version = priorities
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": f"{version}.{group}", "labels": {AUTOMANAGED: managed}},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": of_group,
            "versionPriority": of_version,
        },
    }


class Registration:
    """Keeps the APIServices of the groups of definitions.

    Parameters
    ----------
    world
        Holds the definitions and the APIServices.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._served = world.catalog.by_plural(API_SERVICES.plural)
        world.on_write(API_SERVICES.qualified, self._written)

    def follow(self, before: Obj | None, after: Obj | None) -> None:
        """Make or remove the APIServices of the versions of a definition that was written."""
        served = _versions(after)
        for group, version in sorted(served | _versions(before)):
            self._settle(group, version, served=(group, version) in served)

    def _settle(self, group: str, version: str, *, served: bool = False) -> None:
        """Make or remove an APIService; without ``served``, all definitions are read."""
        record = self._world.shelf(API_SERVICES.plural).get(("", f"{version}.{group}"))
        wanted = served or self._is_served(group, version)
        if record is None and wanted:
            self._make(group, version)
        elif record is not None and not wanted and _is_kept(record):
            self._world.remove(self._served, record.key)

    def _is_served(self, group: str, version: str) -> bool:
        definitions = self._world.stored_objects(CUSTOM_RESOURCE_DEFINITIONS.plural)
        return any((group, version) in _versions(each) for each in definitions)

    def _make(self, group: str, version: str) -> None:
        obj = api_service(group, version, "true", (_GROUP_PRIORITY, _VERSION_PRIORITY))
        stamp_new(obj, self._world.clock, self._world.rng)
        self._served.rules.prepare_create(obj, self._world)
        self._world.store_form(self._served, obj)

    def _written(self, served: Served, before: Record | None, after: Record | None) -> None:
        """Make an APIService again that a client has deleted."""
        if after is None and before is not None and _is_kept(before):
            spec = child(before.decode(), "spec")
            self._settle(text(spec, "group"), text(spec, "version"))


def _versions(definition: Obj | None) -> set[tuple[str, str]]:
    """Return the (group, version) of each version that a definition serves."""
    return {
        (text(definition, "spec", "group"), text(each, "name"))
        for each in objects(definition or {}, "spec", "versions")
        if definition is not None and each.get("served") is True
    }


def _is_kept(record: Record) -> bool:
    return child(record.decode(), "metadata", "labels").get(AUTOMANAGED) == "true"

"""The parts of the tests of kinds: a world to ask, kinds by name, small manifests."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable
from typing import Any

from moorage.api.resources import ResourceType
from moorage.base.clock import Clock, ManualClock
from moorage.base.rng import Random, Streams
from moorage.kinds.kind import Numbers, Obj
from moorage.kinds.users import User
from moorage_sandbox.apiserver.served_kinds import served_kinds

KINDS = {kind.resource.plural: kind for kind in reversed(served_kinds())}
EVENTS_V1 = next(kind for kind in served_kinds() if kind.resource.group == "events.k8s.io")


class World:
    """A `Context` over a handful of objects."""

    def __init__(self, *objects: tuple[str, Obj]) -> None:
        self._objects = objects
        self._clock = ManualClock()
        self._rng = Streams(7).stream("test")
        self._numbers: dict[tuple[str, Numbers], list[tuple[Obj, set[int]]]] = {}

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def rng(self) -> Random:
        return self._rng

    @property
    def caller(self) -> User:
        return User("jane", ("developers",))

    def lookup(self, plural: str, namespace: str | None, name: str) -> Obj | None:
        for obj in self.stored_objects(plural, namespace):
            if obj["metadata"]["name"] == name:
                return obj
        return None

    def stored_objects(self, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        return [obj for each, obj in self._objects if each == plural]

    def keys_with(self, plural: str, numbers: Numbers, number: int) -> Collection[tuple[str, str]]:
        known = self._numbers.get((plural, numbers))
        if known is None:
            known = [(each, set(numbers(each))) for each in self.stored_objects(plural)]
            self._numbers[plural, numbers] = known
        found = (each for each, its_numbers in known if number in its_numbers)
        return {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found}


def created(plural: str, obj: Obj, world: World | None = None) -> Obj:
    """The object as a create would store it, validation left out."""
    kind = KINDS[plural]
    stored = copy.deepcopy(obj)
    kind.default(stored)
    kind.admit(stored, None, world or World())
    kind.prepare_create(stored, world or World())
    return stored


def create_errors(plural: str, obj: Obj, world: World | None = None) -> list[str]:
    """Messages of everything wrong with a new object."""
    stored = created(plural, obj, world)
    return [error.message for error in KINDS[plural].validate(stored, None, subresource=None)]


def update_errors(plural: str, new: Obj, old: Obj, *, subresource: str | None = None) -> list[str]:
    """Messages of everything wrong with a change to a stored object."""
    kind = KINDS[plural]
    changed = copy.deepcopy(new)
    kind.default(changed)
    if subresource is None:
        kind.admit(changed, old, World())
    kind.prepare_update(changed, old, subresource=subresource, ctx=World())
    return [error.message for error in kind.validate(changed, old, subresource=subresource)]


def container(**fields: Any) -> Obj:
    return {"name": "main", "image": "app:1", **fields}


def pod(*, labels: dict[str, str] | None = None, name: str = "web", **spec: Any) -> Obj:
    metadata: Obj = {"name": name, "namespace": "default"}
    if labels is not None:
        metadata["labels"] = labels
    spec.setdefault("containers", [container()])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def named(plural: str, name: str = "x", **fields: Any) -> Obj:
    """An object of any kind with nothing but a name and these fields."""
    return of_resource(KINDS[plural].resource, name, fields)


def of_resource(resource: ResourceType, name: str, fields: Obj) -> Obj:
    """An object of a resource, in the namespace ``default`` where it has one."""
    metadata: Obj = {"name": name}
    if resource.namespaced:
        metadata["namespace"] = "default"
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **fields,
    }


def workload(plural: str, **spec: Any) -> Obj:
    """A workload whose selector and template fit each other."""
    spec.setdefault("selector", {"matchLabels": {"app": "web"}})
    spec.setdefault("template", template())
    return named(plural, spec=spec)


def template(*, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    spec.setdefault("containers", [container()])
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": spec}


def claim(**spec: Any) -> Obj:
    base: Obj = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return named("persistentvolumeclaims", spec=base | spec)

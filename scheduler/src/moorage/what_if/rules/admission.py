"""Turns a manifest into the object that an API server would store: defaults, checks, admission.

The rules are those of the embedded API server (`moorage.kinds`), read from the objects
of a model instead of a store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from moorage.api.codec import decode_untyped
from moorage.api.resources import LIMIT_RANGES, by_plural
from moorage.base.clock import Clock, rfc3339
from moorage.base.errors import UsageError
from moorage.base.ids import name_suffix, new_uid
from moorage.base.rng import Random
from moorage.kinds.kind import Numbers, Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.status import StatusError
from moorage.kinds.users import User
from moorage.virtual.kinds import kind_of, readable
from moorage.virtual.objects import ClusterObjects
from moorage.what_if.rules.policies import Policies

_CALLER = User("kubernetes-admin", ("system:masters",))


class NotStoredError(UsageError):
    """An API server would refuse an object; `why` does not name the object."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} would be refused: {why}")
        self.why = why


class Admission:
    """Stores manifests as a server with these objects would.

    Parameters
    ----------
    stored_objects
        The objects that manifests may refer to: priority classes, limit ranges and so on.
    clock, rng
        The time, and the stream of uids and names.
    with_policies
        Whether the admission policies among the objects are asked, too.
    """

    def __init__(
        self, objects: ClusterObjects, *, clock: Clock, rng: Random, with_policies: bool = False
    ) -> None:
        self._objects = objects
        self._policies = Policies(objects, self) if with_policies else None
        self.clock = clock
        self.rng = rng

    @property
    def caller(self) -> User:
        """The administrator: what may be tried is not limited by rights."""
        return _CALLER

    def lookup(self, plural: str, namespace: str | None, name: str) -> Obj | None:
        """Return an object, None when there is none."""
        resource = by_plural(plural.partition(".")[0], plural.partition(".")[2] or None)
        if resource is None:
            return None
        return self._objects.manifest(resource.group, resource.kind, (namespace or "", name))

    def stored_objects(self, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        """Return all objects of a resource, by namespace and name."""
        resource = by_plural(plural.partition(".")[0], plural.partition(".")[2] or None)
        if resource is None:
            return []
        found = self._objects.manifests.get((resource.group, resource.kind), {})
        keys = (key for key in sorted(found) if namespace is None or key[0] == namespace)
        objects = [decode_untyped(found[key]) for key in keys]
        if resource == LIMIT_RANGES:
            # A file may have them as they were written; a server derives requests from limits.
            for each in objects:
                kind_of(each).default(each)
        return objects

    def keys_with(self, plural: str, numbers: Numbers, number: int) -> Collection[tuple[str, str]]:
        """Return the keys of the objects of a resource that have a number."""
        found = (each for each in self.stored_objects(plural) if number in numbers(each))
        return {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found}

    def stored(self, manifest: Mapping[str, Any], *, namespace: str = "default") -> Obj:
        """Return a new object as it would be stored.

        Parameters
        ----------
        manifest
            As a client sends it.
        namespace
            The namespace of a manifest that names none.

        Raises
        ------
        NotStoredError
            The object would be refused.
        UsageError
            Its kind is not known, or a value has a wrong type.
        """
        kind = kind_of(manifest)
        obj = readable(manifest, kind)
        meta = obj["metadata"]
        if kind.resource.namespaced:
            meta.setdefault("namespace", namespace)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName'][:58]}{name_suffix(self.rng)}"
        name = f"{kind.resource.kind} {meta.get('name') or 'without a name'}"
        status = obj.get("status")
        kind.default(obj)
        meta.update(uid=new_uid(self.rng), creationTimestamp=rfc3339(self.clock.now_ns()))
        try:
            obj = self._mutated(kind, obj)
            kind.prepare_create(obj, self)
        except StatusError as error:
            raise NotStoredError(name, str(error)) from error
        faults = kind.validate(obj, None, subresource=None)
        if faults:
            raise NotStoredError(name, "; ".join(fault.message for fault in faults))
        if why := self.policy_fault(obj, kind):
            raise NotStoredError(name, why)
        if kind.resource.kind in _KEEP_STATUS and status:
            obj["status"] = status
        return obj

    @property
    def asks_policies(self) -> bool:
        """Whether there are policies that new objects have to meet."""
        return self._policies is not None and self._policies.exist

    def policy_fault(self, obj: Obj, kind: ServedKind | None = None) -> str:
        """Return why a policy denies a new object, "" if none does."""
        try:
            if self._policies is not None:
                self._policies.check(kind or kind_of(obj), obj)
        except StatusError as error:
            return str(error)
        return ""

    def _mutated(self, kind: ServedKind, obj: Obj) -> Obj:
        """Return a new object as admission changes it."""

        def admit(new: Obj) -> None:
            kind.admit(new, None, self)

        if self._policies is None:
            admit(obj)
            return obj
        return self._policies.mutated(kind, obj, admit)


# A budget or a volume without a status means nothing before its controller has seen it.
_KEEP_STATUS = ("PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget")

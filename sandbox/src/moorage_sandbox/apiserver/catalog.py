"""The served resources: how a path finds one, where its objects are stored, and in which form.

A `Served` pairs a kind with the shelf of its objects, and with the translation between the served
and the stored form. Most kinds are stored as they are served. A kind that is another version of a
stored kind declares its translation (`moorage.kinds.kind.Translation`). Custom resources are
stored in the version of their definition. Their versions differ only in the name, unless a
`Converter` converts them.

A `Target` is what a path addresses: a resource, perhaps an object, perhaps a subresource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.built_in import version_rank
from moorage.kinds.kind import Obj, Translation
from moorage.kinds.served import ServedKind
from moorage.kinds.status import StatusError, unknown_path
from moorage_sandbox.apiserver.rbac.attributes import OF_NAMESPACES
from moorage_sandbox.storage.record import Record

_encode = msgspec.json.Encoder().encode

EVENTS = "events"


class Converter(Protocol):
    """Converts custom resources between the versions of their definition."""

    def convert(self, objs: Sequence[Obj], wanted: str) -> list[Obj]:
        """Return objects in another API version.

        Raises
        ------
        AnswersNeeded
            A webhook has to answer first.
        StatusError
            500: they cannot be converted.
        """
        ...


class Served(msgspec.Struct, frozen=True, dict=True):
    """One resource at its API path.

    Parameters
    ----------
    kind
        Rules of the kind.
    stored_kind
        Rules of the stored form; another kind for a version that is not the stored one.
    custom
        The kind comes from a definition: stored objects may have any version.
    renewed
        Version of the last write that changed the definition's schema. Objects with a version up
        to it may lack defaults, and get them when they are read.
    converter
        Converts custom resources between versions; None where versions differ in the name only.
    """

    kind: ServedKind
    stored_kind: ServedKind
    custom: bool = False
    renewed: int = 0
    converter: Converter | None = None

    @cached_property
    def shelf(self) -> str:
        """Name of the shelf with its objects."""
        return self.stored_kind.resource.qualified

    @cached_property
    def translated(self) -> bool:
        """Whether the stored form differs from the served form."""
        return self.kind is not self.stored_kind

    @cached_property
    def as_stored(self) -> bool:
        """Whether the bytes of objects are served as they are stored, but perhaps for a few."""
        return not self.translated and not self.renewed

    @cached_property
    def rules(self) -> ServedKind:
        """The kind whose rules apply to objects; the form that these rules know is called ruled."""
        return self.stored_kind if self._stored_rules else self.kind

    @cached_property
    def _stored_rules(self) -> bool:
        translation = self._translation
        return translation is not None and translation.stored_rules

    @cached_property
    def _translation(self) -> Translation | None:
        return self.kind.translation if self.translated else None

    def to_stored(self, obj: Obj) -> Obj:
        """Return the stored form of a served object."""
        if self.custom:
            return self._in_version(obj, self.stored_kind.resource.api_version)
        return self._translation.to_stored(obj) if self._translation else obj

    def from_stored(self, obj: Obj) -> Obj:
        """Return the served form of a stored object."""
        if self.custom:
            return self._in_version(obj, self.kind.resource.api_version)
        return self._translation.from_stored(obj) if self._translation else obj

    def _in_version(self, obj: Obj, wanted: str) -> Obj:
        if self.converter is None or obj["apiVersion"] == wanted:
            return obj | {"apiVersion": wanted}
        return self.converter.convert([obj], wanted)[0]

    def prepare_reads(self, records: Iterable[Record]) -> None:
        """Have many stored objects converted together, which will be read one by one.

        Raises
        ------
        AnswersNeeded
            A webhook has to answer first.
        StatusError
            500: they cannot be converted.
        """
        if self.converter is None:
            return
        wanted = self.kind.resource.api_version
        objs = map(self._stored_form, records)
        others = [obj for obj in objs if obj["apiVersion"] != wanted]
        self.converter.convert(others, wanted)

    def prepare_write(self, obj: Obj) -> None:
        """Have an object in the ruled form converted to the stored form, and back for the answer.

        Raises
        ------
        AnswersNeeded
            A webhook has to answer first: once the object is stored it would be too late.
        StatusError
            500: it cannot be converted.
        """
        if self.converter is not None:
            self.from_stored(self.stored_from_ruled(obj))

    def to_ruled(self, obj: Obj, *, status: bool = False) -> Obj:
        """Return a served object, which is changed, with defaults in the ruled form.

        Parameters
        ----------
        obj
            The client's object, checked against the schema: unknown fields and nulls are gone.
        status
            Only its status will be used.
        """
        if self._stored_rules:
            self.kind.defaults(obj)
            obj = self.to_stored(obj)
        if status:
            # All other fields will be taken from the old object, which has its defaults.
            self.rules.default_status(obj)
        else:
            self.rules.defaults(obj)
        return obj

    def ruled(self, record: Record) -> Obj:
        """Return a stored object in the ruled form."""
        return record.decode() if self._stored_rules else self.served_form(record)

    def stored_from_ruled(self, obj: Obj) -> Obj:
        """Return the stored form of an object in the ruled form."""
        if self._stored_rules:
            return obj
        stored = self.to_stored(obj)
        if self.custom and self.translated:
            self.stored_kind.defaults(stored)
        return stored

    def served_from_ruled(self, obj: Obj) -> Obj:
        """Return the served form of an object in the ruled form."""
        return self.from_stored(obj) if self._stored_rules else obj

    def served_form(self, record: Record) -> Obj:
        """Return a stored object in the served form.

        Notes
        -----
        Upstream drops and defaults fields by the stored version whenever it reads an object.
        """
        return self.from_stored(self._stored_form(record))

    def _stored_form(self, record: Record) -> Obj:
        obj = record.decode()
        # The schema says nothing about an object that waits in another version for its webhook.
        other = self.converter and obj["apiVersion"] != self.stored_kind.resource.api_version
        if record.version <= self.renewed and not other:
            self.stored_kind.default(obj)
        return obj

    def data(self, record: Record) -> bytes:
        """Return a record's bytes in the served form."""
        if self.custom:
            # The version comes first in the stored bytes, and is nearly always the right one.
            head = b'{"apiVersion":"%s",' % self.kind.resource.api_version.encode()
            if record.version > self.renewed and record.data.startswith(head):
                return record.data
        elif not self.translated:
            return record.data
        return _encode(self.served_form(record))

    def fields(self, stored: Obj) -> Mapping[str, str]:
        """Return the values for field selectors, of all versions."""
        return self.stored_kind.selectable_fields(stored)

    def selects_by(self, path: str) -> bool:
        """Whether a field selector may name a path, which is in the stored form."""
        known = self.kind.field_labels
        return path in (self.fields({"metadata": {}}) if known is None else known)

    def stored_field(self, label: str) -> str:
        """Translate a field selector's label to the stored form's."""
        translation = self._translation
        if translation is None:
            return label
        head, dot, rest = label.partition(".")
        return translation.renamed.get(head, head) + dot + rest


class Catalog:
    """Every served resource, found by group, version and plural.

    Custom resources come and go with their definitions; ``generation`` counts these changes.
    ``converts`` says whether a webhook converts some of them.

    Parameters
    ----------
    kinds
        One kind for each built-in resource and version.
    """

    def __init__(self, kinds: Sequence[ServedKind]) -> None:
        self.kinds = tuple(kind for kind in kinds if not kind.stored_only)
        self.generation = 0
        self.converts = False
        self._builtin = self.kinds
        # Name of a definition -> its served versions, and one of them for its shelf.
        self._custom: dict[str, tuple[tuple[Served, ...], Served]] = {}
        by_path = {(k.resource.api_version, k.resource.plural): k for k in kinds}
        every: dict[tuple[str, str], Served] = {}
        for path, kind in by_path.items():
            stored = kind.translation.stored if kind.translation else kind.resource
            # A server without the stored version stores the other version.
            found = by_path.get((stored.api_version, stored.plural), kind)
            every[path] = Served(kind, found)
        self._shelves = [every[path] for path in sorted(every) if not every[path].translated]
        self._by_plural: dict[str, Served] = {}
        for shelf in self._shelves:
            self._by_plural.setdefault(shelf.kind.resource.plural, shelf)
        self._served = {path: each for path, each in every.items() if not each.kind.stored_only}
        self._builtin_served = dict(self._served)
        self._equivalents = self._by_shelf()

    def put_custom(self, name: str, versions: Sequence[Served], shelf: Served) -> None:
        """Serve the kinds of a definition, in place of its former kinds.

        Parameters
        ----------
        name
            Name of the definition.
        versions
            The served versions; may be empty.
        shelf
            The stored kind, served or not.
        """
        self._custom[name] = (tuple(versions), shelf)
        self._collect()

    def drop_custom(self, name: str) -> None:
        """Stop serving the kinds of a definition."""
        if self._custom.pop(name, None) is not None:
            self._collect()

    def custom_shelf(self, name: str) -> Served | None:
        """Return the kind that a definition stores, None for an unknown definition."""
        found = self._custom.get(name)
        return found[1] if found else None

    def _collect(self) -> None:
        self._served = dict(self._builtin_served)
        for name in sorted(self._custom):
            for served in self._custom[name][0]:
                resource = served.kind.resource
                self._served.setdefault((resource.api_version, resource.plural), served)
        self.converts = any(
            served.converter is not None
            for versions, _ in self._custom.values()
            for served in versions
        )
        self._equivalents = self._by_shelf()
        added = [s.kind for path, s in self._served.items() if path not in self._builtin_served]
        self.kinds = (*self._builtin, *added)
        self.generation += 1

    def find(self, api_version: str, plural: str) -> Served:
        """Return a served resource.

        Raises
        ------
        StatusError
            404: no such resource.
        """
        found = self.get(api_version, plural)
        if found is None:
            raise unknown_path()
        return found

    def get(self, api_version: str, plural: str) -> Served | None:
        """Return a served resource; None when there is no such resource."""
        return self._served.get((api_version, plural))

    def equivalents(self, served: Served) -> Sequence[ResourceType]:
        """Return the types of all served resources with the same stored objects."""
        return self._equivalents.get(served.shelf, ())

    def _by_shelf(self) -> dict[str, tuple[ResourceType, ...]]:
        """Return the types of served resources by where their objects are stored."""
        types: dict[str, tuple[ResourceType, ...]] = {}
        for each in self._served.values():
            types[each.shelf] = (*types.get(each.shelf, ()), each.kind.resource)
        return types

    def by_kind(self, api_version: Any, kind: Any) -> Served | None:
        """Return the resource of an object by its apiVersion and kind; None for an unknown one."""
        for each in self.kinds:
            resource = each.resource
            if (resource.api_version, resource.kind) == (api_version, kind):
                return self.find(resource.api_version, resource.plural)
        return None

    def by_plural(self, plural: str) -> Served:
        """Return a built-in resource by plural alone; the first by API version where two share it.

        Raises
        ------
        KeyError
            No resource has this plural.
        """
        return self._by_plural[plural]

    def shelves(self) -> list[Served]:
        """Return one served resource for each shelf, in order of (API version, plural)."""
        return self._shelves + [self._custom[name][1] for name in sorted(self._custom)]

    def api_versions(self) -> list[str]:
        """Return every served API version, ``v1`` first, then by group, the best version first."""
        versions = {api_version for api_version, _ in self._served}
        return sorted(versions, key=version_rank)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a resource path.

    Parameters
    ----------
    served
        The resource.
    namespace
        Empty for kinds without namespaces, and for all namespaces of a namespaced kind.
    name
        Empty for the collection.
    subresource
        Empty for the object itself.
    """

    served: Served
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Routes:
    """Resolves the paths of calls; a call asks for its path several times.

    Parameters
    ----------
    catalog
        Served kinds.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        # (path, generation of the catalog, target) of the last question, replaced as a whole:
        # the worker thread asks, too.
        self._last: tuple[str, int, Target] | None = None

    @property
    def converts(self) -> bool:
        """Whether a webhook converts objects of some resource."""
        return self._catalog.converts

    def find(self, path: str) -> Target | None:
        """Return the target of a path; None where the path addresses no served resource."""
        last, generation = self._last, self._catalog.generation
        if last is not None and last[0] == path and last[1] == generation:
            return last[2]
        try:
            target = resource_target(path, self._catalog)
        except StatusError:
            return None
        self._last = (path, generation, target)
        return target


def resource_target(path: str, catalog: Catalog) -> Target:
    """Resolve a path under ``/api/v1/`` or ``/apis/GROUP/VERSION/``.

    Raises
    ------
    StatusError
        404: the path does not address a served resource.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        api_version, rest = parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        api_version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        raise unknown_path()
    if "" in rest:
        raise unknown_path()
    # /namespaces/NS/RESOURCE...; a namespace's own subresources are not resources.
    if rest[0] == "namespaces" and len(rest) >= 3 and not _is_own(rest):
        served = catalog.find(api_version, rest[2])
        if not served.kind.resource.namespaced:
            raise unknown_path()
        return _target(served, rest[1], rest[3:])
    served = catalog.find(api_version, rest[0])
    if served.kind.resource.namespaced and len(rest) > 1:
        raise unknown_path()
    return _target(served, "", rest[1:])


def _is_own(rest: list[str]) -> bool:
    # In every group: a resource of this name within a namespace would get the rights of another
    # one.
    return len(rest) == 3 and rest[2] in OF_NAMESPACES


def _target(served: Served, namespace: str, rest: list[str]) -> Target:
    if len(rest) > 2:
        raise unknown_path()
    name = rest[0] if rest else ""
    subresource = rest[1] if len(rest) > 1 else ""
    if subresource and subresource not in served.kind.subresources:
        raise unknown_path()
    return Target(served=served, namespace=namespace, name=name, subresource=subresource)

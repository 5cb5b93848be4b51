"""The facts of the Kubernetes API that the server serves, as data.

Place in the flow: `moorage.kinds.schema` walks over objects with `definition`,
`moorage.kinds` takes the served resources from `resources`. Each file is decoded when it
is first asked for. Protobuf's numbers are in `moorage_sandbox.apiserver.protobuf.facts`.

Belongs here: names, types, keys and verbs of Kubernetes v1.36. Does not belong here: what
the server does with an object, and prose.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from moorage.api.resources import ResourceType

OPEN: frozenset[str] = frozenset(
    {
        "FieldsV1",
        "JSON",
        "JSONSchemaPropsOrArray",
        "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrStringArray",
        "RawExtension",
    }
)
"""Scalars that hold any JSON value."""
NAMED_SCALARS: frozenset[str] = OPEN | {"IntOrString", "MicroTime", "Quantity", "Time"}
"""Definitions that clients see as a single value, by the last part of their name."""
# OpenAPI type and format -> name of the scalar.
_SCALARS: Mapping[tuple[str, str], str] = {
    ("string", ""): "string",
    ("string", "byte"): "bytes",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "double",
    ("boolean", ""): "boolean",
}

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{META}.ObjectMeta"
SCHEMA_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
"""The only definition that contains itself."""

T = TypeVar("T")
Shape = Literal["scalar", "object", "list", "map"]


class Field(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The type of a field or of the elements of a list or map, and how the field merges.

    Exactly one of ``type``, ``ref``, ``list`` and ``map`` is given.

    Parameters
    ----------
    type, format
        An OpenAPI type (``string``, ``integer``, ...) and its format (``int32``, ``byte``, ...).
    ref
        Full name of a definition.
    list, map
        Type of the elements of a list, or of the values of a map with string keys.
    patch_merge_key, patch_strategy
        How a strategic merge patch treats the field: the key of the objects of a list; and
        ``merge``, ``replace`` and ``retainKeys`` with commas between them.
    list_type, list_map_keys, map_type
        How server-side apply treats the field: ``map``, ``set`` or ``atomic``, the keys of the
        items of a list of type ``map``; ``atomic`` for an object or map owned as a whole, and
        ``granular`` for one owned field by field although its definition is atomic.
    """

    type: str = ""
    format: str = ""
    ref: str = ""
    list: Field | None = None
    map: Field | None = None
    patch_merge_key: str = ""
    patch_strategy: str = ""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""

    @property
    def shape(self) -> Shape:
        """Form of the JSON value."""
        if self.list is not None:
            return "list"
        return "map" if self.map is not None else _type_name(self.type, self.format, self.ref)[0]

    @property
    def name(self) -> str:
        """Name of a scalar (``int32``, ``Quantity``, ...), or full name of a definition."""
        return _type_name(self.type, self.format, self.ref)[1]

    @property
    def element(self) -> Field:
        """Type of the elements; only lists and maps have elements."""
        found = self.list or self.map
        assert found is not None, f"{self.name} has no elements"
        return found

    @property
    def innermost(self) -> Field:
        """Type of the innermost elements, without the lists and maps around them."""
        inner = self.list or self.map
        return self if inner is None else inner.innermost

    def patches(self, strategy: str) -> bool:
        """Whether a strategic merge patch treats the field by a strategy."""
        # No name of a strategy is a part of another.
        return strategy in self.patch_strategy


@cache
def _type_name(type_: str, format_: str, ref: str) -> tuple[Shape, str]:
    """Return the shape and the name of a type; a list or map has no name."""
    if not ref:
        return "scalar", _SCALARS.get((type_, format_), "")
    short = ref.rpartition(".")[2]
    return ("scalar", short) if short in NAMED_SCALARS else ("object", ref)


class Definition(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """An object type: a definition of the OpenAPI document.

    Parameters
    ----------
    fields
        Fields by JSON name.
    name
        Full name, ``io.k8s.api.core.v1.Pod``.
    required
        Names of the fields that a client has to send.
    is_
        The type itself, for a definition without fields.
    group_version_kind
        The kinds that have this form; empty for a definition that is only a part.
    map_type
        ``atomic`` where server-side apply owns the value as a whole.
    """

    fields: dict[str, Field]
    name: str = ""
    required: tuple[str, ...] = ()
    is_: Field | None = msgspec.field(default=None, name="is")
    group_version_kind: tuple[dict[str, str], ...] = ()
    map_type: str = ""


class ResourceFact(msgspec.Struct, frozen=True):
    """One resource or subresource, and its verbs.

    Parameters
    ----------
    group, version
        API group ("" for core) and version of the path.
    plural
        Name in the path.
    subresource
        Name of the subresource; empty for the resource itself.
    body_group, body_version, kind
        Group, version and kind of the body; a subresource may take a kind of another group.
    namespaced
        The path has a namespace.
    verbs
        HTTP actions: get, list, post, put, patch, delete, deletecollection, connect.
    """

    group: str
    version: str
    plural: str
    subresource: str
    body_group: str
    body_version: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]


class _KindEntry(msgspec.Struct, frozen=True):
    """One entry of ``kinds.json``, as it is written there."""

    gvk: dict[str, str]
    namespaced: bool
    verbs: tuple[str, ...]


@cache
def definitions() -> Mapping[str, Definition]:
    """Return every definition by its full name, ``io.k8s.api.core.v1.Pod``; they have no names."""
    by_name: dict[str, Definition] = _decode("schema", dict[str, Definition])
    changed = Path(__file__).with_name("groups_of_1_37.json").read_bytes()
    for version in _GROUP_VERSIONS:
        same = _renamed(by_name, _GROUPS, ("v1alpha2", version), dict[str, Definition])
        own = changed.replace(b"VERSION", version.encode())
        by_name |= same | msgspec.json.decode(own, type=dict[str, Definition])
    composite = Path(__file__).with_name("composite_groups.json").read_bytes()
    by_name |= msgspec.json.decode(composite, type=dict[str, Definition])
    return by_name | _renamed(by_name, _RULES, ("v1beta2", "v1"), dict[str, Definition])


@cache
def resources() -> tuple[ResourceFact, ...]:
    """Return every resource and subresource, ordered by group, version and name."""
    return tuple(_resource(path, entry) for path, entry in sorted(_entries().items()))


@cache
def resources_of_1_37() -> tuple[ResourceFact, ...]:
    """Return the resources and subresources that 1.37 serves besides those of `resources`."""
    entries = _renamed(_entries(), _RULE_PATHS, ("v1beta2", "v1"), dict[str, _KindEntry])
    for version in _GROUP_VERSIONS:
        entries |= _renamed(_entries(), _GROUP_PATHS, ("v1alpha2", version), dict[str, _KindEntry])
    for subresource in ("", "/status"):
        entry = entries[f"scheduling.k8s.io/v1alpha3/podgroups{subresource}"]
        kind = entry.gvk | {"kind": "CompositePodGroup"}
        path = f"scheduling.k8s.io/v1alpha3/compositepodgroups{subresource}"
        entries[path] = msgspec.structs.replace(entry, gvk=kind)
    return tuple(_resource(path, entry) for path, entry in sorted(entries.items()))


@cache
def _entries() -> Mapping[str, _KindEntry]:
    found: dict[str, _KindEntry] = _decode("kinds", dict[str, _KindEntry])
    return found


# DeviceTaintRule has the same form in v1beta2, which 1.36 has, and in v1, which 1.37 has as well.
_RULE_PATHS = "resource.k8s.io/v1beta2/devicetaintrules"
_RULES = "io.k8s.api.resource.v1beta2.DeviceTaint"
# Groups of pods have two forms in 1.37, which are the same, in the place of v1alpha2. A file has
# the definitions that differ from those of v1alpha2, and another one those of CompositePodGroup,
# which has a single version.
_GROUP_VERSIONS = ("v1beta1", "v1alpha3")
_GROUP_PATHS = "scheduling.k8s.io/v1alpha2/"
_GROUPS = "io.k8s.api.scheduling.v1alpha2."


def _renamed(
    facts_by_name: Mapping[str, T], prefix: str, versions: tuple[str, str], form: type[dict[str, T]]
) -> dict[str, T]:
    """Return the facts whose names begin so, with the second version in place of the first."""
    older = {name: fact for name, fact in facts_by_name.items() if name.startswith(prefix)}
    before, now = (version.encode() for version in versions)
    return msgspec.json.decode(msgspec.json.encode(older).replace(before, now), type=form)


def _resource(path: str, entry: _KindEntry) -> ResourceFact:
    group, version, name = path.split("/", 2)
    plural, _, subresource = name.partition("/")
    return ResourceFact(
        group=group,
        version=version,
        plural=plural,
        subresource=subresource,
        body_group=entry.gvk["group"],
        body_version=entry.gvk["version"],
        kind=entry.gvk["kind"],
        namespaced=entry.namespaced,
        verbs=entry.verbs,
    )


def _decode(name: str, form: Any) -> Any:
    """Decode one packed file into a msgspec type."""
    packed = Path(__file__).with_name(f"{name}.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=form)


@cache
def definition(name: str) -> Definition:
    """Return the definition of this full name.

    Raises
    ------
    KeyError
        There is no such definition.
    """
    return msgspec.structs.replace(definitions()[name], name=name)


@cache
def _names_by_kind() -> Mapping[tuple[str, str, str], str]:
    """Return the full name of the definition of every (group, version, kind)."""
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, fact in definitions().items()
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
    closed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in closed:
            closed.add(name)
            waiting += references(name)
    return sorted(closed)

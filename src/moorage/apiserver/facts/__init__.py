"""The facts of the Kubernetes API that the server serves, as data.

Place in the flow: `moorage.apiserver.schema` builds its definitions from `definitions`,
`moorage.apiserver.kinds` takes the served resources from `resources`. Each file is decoded when it
is first asked for. Protobuf's numbers are in `moorage.apiserver.protobuf.facts`.

Belongs here: names, types, keys and verbs of Kubernetes v1.36. Does not belong here: what
the server does with an object, and prose.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec


class ShapeFact(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The type of a field, and how the field merges.

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
        How a strategic merge patch treats the field.
    list_type, list_map_keys, map_type
        How server-side apply treats the field.
    """

    type: str = ""
    format: str = ""
    ref: str = ""
    list: ShapeFact | None = None
    map: ShapeFact | None = None
    patch_merge_key: str = ""
    patch_strategy: str = ""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""


class DefinitionFact(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One definition of the OpenAPI document.

    Parameters
    ----------
    fields
        Shape of each field, by JSON name.
    required
        Names of the fields that a client has to send.
    is_
        The type itself, for a definition without fields.
    group_version_kind
        The kinds that have this form; empty for a definition that is only a part.
    map_type
        ``atomic`` where server-side apply owns the value as a whole.
    unions
        Groups of fields of which one may be set.
    """

    fields: dict[str, ShapeFact]
    required: tuple[str, ...] = ()
    is_: ShapeFact | None = msgspec.field(default=None, name="is")
    group_version_kind: tuple[dict[str, str], ...] = ()
    map_type: str = ""
    unions: tuple[dict[str, Any], ...] = ()


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
def definitions() -> Mapping[str, DefinitionFact]:
    """Return every definition by its full name, ``io.k8s.api.core.v1.Pod``."""
    found: dict[str, DefinitionFact] = _decode("schema", dict[str, DefinitionFact])
    return found


@cache
def resources() -> tuple[ResourceFact, ...]:
    """Return every resource and subresource, ordered by group, version and name."""
    found = _decode("kinds", dict[str, _KindEntry])
    return tuple(_resource(path, entry) for path, entry in sorted(found.items()))


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

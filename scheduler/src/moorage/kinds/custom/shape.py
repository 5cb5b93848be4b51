"""The shape of a custom resource: its definition's schema, and the metadata of any object.

Place in the flow: the verbs use this shape as `moorage.kinds.kind.Shape`. Wrong types in fields
of the schema are errors of validation (422), as upstream. Only metadata fails to decode (400).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.resources import ResourceType
from moorage.kinds.custom.layout import schema_layout
from moorage.kinds.facts import OBJECT_META, definition
from moorage.kinds.kind import Layout, Obj
from moorage.kinds.schema import check, pruning
from moorage.kinds.schema.pruning import Schema

_V2_UNKNOWN = ("nullable", "anyOf", "oneOf", "allOf", "not", "default", "x-kubernetes-validations")


_API_VERSION = "APIVersion defines the group and version of the schema of this object."
_KIND = "Kind says which kind of resource this object is."
_METADATA = "Standard object's metadata, as every kind has it."


class CustomShape:
    """The form of objects that one version of a definition declares.

    Parameters
    ----------
    resource
        The kind.
    schema
        Its structural schema.
    list_kind
        Kind of the list of these objects.
    """

    merges_strategically = False

    def __init__(self, resource: ResourceType, schema: Schema, list_kind: str) -> None:
        self._resource = resource
        self._schema = schema
        self._layout = schema_layout(schema, whole=True)
        self.list_kind = list_kind

    def fits(self, obj: Obj) -> bool:
        """Return False: every object needs the close look."""
        return False

    def type_errors(self, obj: Obj) -> list[str]:
        """Return the type errors of the metadata."""
        meta = obj.get("metadata") or {}
        if not isinstance(meta, dict):
            return [check.no_object(meta, f"{self._resource.kind}.metadata", OBJECT_META)]
        return check.type_errors(definition(OBJECT_META), meta, "metadata.")

    def unknown_fields(self, obj: Obj) -> list[str]:
        """Return the paths of the fields the schema does not have."""
        meta = obj.get("metadata")
        found = []
        if isinstance(meta, dict):
            known = definition(OBJECT_META).fields
            found = [f"metadata.{key}" for key in meta if key not in known]
        return found + pruning.unknown_fields(self._schema, obj)

    def prune(self, obj: Obj) -> None:
        """Drop unknown fields, in place."""
        pruning.prune_metadata(obj)
        pruning.prune(self._schema, obj)

    def layout(self) -> Layout:
        """Return how server-side apply merges an object."""
        return self._layout

    def schema(self, *, v3: bool) -> dict[str, Any]:
        """Return the OpenAPI schema.

        Notes
        -----
        kubernetes v1.36 apiextensions-apiserver pkg/controller/openapi/builder, buildKubeNative: a
        reader of version 2 that saw some fields would refuse all others.
        """
        if not v3 and self._schema.get(pruning.PRESERVE):
            return {"type": "object"}
        rendered = _rendered(self._schema, v3=v3)
        properties = dict(rendered.get("properties") or {})
        where = "components/schemas" if v3 else "definitions"
        ref = {"$ref": f"#/{where}/{OBJECT_META}"}
        properties["apiVersion"] = {"type": "string", "description": _API_VERSION}
        properties["kind"] = {"type": "string", "description": _KIND}
        properties["metadata"] = {**({"allOf": [ref]} if v3 else ref), "description": _METADATA}
        return rendered | {"type": "object", "properties": dict(sorted(properties.items()))}


def _rendered(schema: Mapping[str, Any], *, v3: bool) -> dict[str, Any]:
    """Return a schema as OpenAPI of one version has it; version 2 has fewer keywords."""
    if v3:
        return dict(schema)
    rendered = {key: value for key, value in schema.items() if key not in _V2_UNKNOWN}
    if schema.get("x-kubernetes-int-or-string") or schema.get("nullable"):
        rendered.pop("type", None)
    if schema.get(pruning.PRESERVE):
        # A client that knows only some of the fields would drop the others.
        rendered.pop("properties", None)
        rendered.pop("items", None)
    if "properties" in rendered:
        members = rendered["properties"].items()
        rendered["properties"] = {name: _rendered(each, v3=False) for name, each in members}
    for key in ("items", "additionalProperties"):
        if isinstance(rendered.get(key), dict):
            rendered[key] = _rendered(rendered[key], v3=False)
    return rendered

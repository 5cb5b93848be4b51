"""The OpenAPI documents, versions 2 and 3, rendered from the facts of the API.

Place in the flow: ``/openapi/v2`` and ``/openapi/v3`` serve these documents, built once for each
set of kinds. kubectl reads from them the existing fields and how its patches merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from moorage.api.resources import ResourceType, group_version_path
from moorage.kinds import facts
from moorage.kinds.built_in import subresource_body
from moorage.kinds.facts import (
    META,
    NAMED_SCALARS,
    OBJECT_META,
    Definition,
    Field,
    closure,
    definition,
    definition_name,
    is_built_in,
    short_name,
)
from moorage.kinds.served import ServedKind
from moorage_sandbox.apiserver.documents.tagged_documents import digest
from moorage_sandbox.apiserver.verbs.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from moorage_sandbox.apiserver.wire.negotiate import JSON

STATUS = f"{META}.Status"
DELETE_OPTIONS = f"{META}.DeleteOptions"
LIST_META = f"{META}.ListMeta"

TITLE = "Kubernetes"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)

_SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "boolean": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
}

# Schema in version 3 of the scalars that are text or a number.
_TEXT_OR = {"Quantity": "number", "IntOrString": "integer"}

# The facts have no texts; clients explain the metadata of every kind by these.
_METADATA_FIELDS = {
    "annotations": "Annotations is a map of texts that tools keep with the object.",
    "creationTimestamp": "CreationTimestamp is a timestamp: when the server created the object.",
    "deletionGracePeriodSeconds": "Seconds that the object may take to end after its deletion.",
    "deletionTimestamp": "DeletionTimestamp is a timestamp: when the object is to be gone.",
    "finalizers": "Names of those that have to agree before the object is removed.",
    "generateName": "Start of a name that the server makes unique, where no name is given.",
    "generation": "Number of the desired state; the server counts its changes.",
    "labels": "Labels is a map of texts that selectors select by.",
    "managedFields": "Which manager set which fields, for server-side apply.",
    "name": "Name of the object, unique among its kind in the namespace.",
    "namespace": "Namespace of the object; empty for kinds without namespaces.",
    "ownerReferences": "Objects that this object depends on; it goes when all of them are gone.",
    "resourceVersion": "Version of the object; the server changes it with every write.",
    "uid": "Identity of the object, never used again.",
}

# Query parameters of writing calls, and of the calls that read many objects.
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_BOOLEAN = frozenset({"allowWatchBookmarks", "sendInitialEvents", "watch"})
_INTEGER = frozenset({"limit", "timeoutSeconds"})


class _Style(msgspec.Struct, frozen=True):
    """The version of OpenAPI of a document."""

    v3: bool

    def ref(self, name: str) -> dict[str, Any]:
        """Return a reference to a definition."""
        where = "components/schemas" if self.v3 else "definitions"
        return {"$ref": f"#/{where}/{name}"}

    def member_ref(self, name: str) -> dict[str, Any]:
        """Return a reference with room for a description."""
        return {"allOf": [self.ref(name)]} if self.v3 else self.ref(name)

    def content(self, schema: dict[str, Any], types: Sequence[str]) -> dict[str, Any]:
        """Return a body or an answer with this schema."""
        return {"content": {each: {"schema": schema} for each in types}}


_V2 = _Style(v3=False)
_V3 = _Style(v3=True)


def openapi_v2(kinds: Iterable[ServedKind], version: str) -> dict[str, Any]:
    """Render the whole API of a server of that version as one OpenAPI 2.0 (Swagger) document."""
    listed = list(kinds)
    return {
        "swagger": "2.0",
        "info": {"title": TITLE, "version": version},
        "paths": _paths(listed, _V2),
        "definitions": _definitions(listed, _V2),
    }


def openapi_v3_index(
    kinds: Iterable[ServedKind], encoded: Callable[[str], bytes]
) -> dict[str, Any]:
    """Render the list of OpenAPI 3.0 documents, one for each group and version.

    Parameters
    ----------
    kinds
        Every served kind.
    encoded
        Returns the document of an API version.

    Notes
    -----
    The address of each document has a hash of its content, so that clients may keep the document.
    """
    listed = list(kinds)
    paths = {}
    for group, version in sorted({(k.resource.group, k.resource.version) for k in listed}):
        path = group_version_path(group, version).lstrip("/")
        document = encoded(f"{group}/{version}" if group else version)
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest(document)}"}
    return {"paths": paths}


def encoded_v3(kinds: Iterable[ServedKind], group_version: str, version: str) -> bytes:
    """Return the OpenAPI 3.0 document of one group and version as JSON."""
    return msgspec.json.encode(openapi_v3(kinds, group_version, version), order="sorted") + b"\n"


def openapi_v3(kinds: Iterable[ServedKind], group_version: str, version: str) -> dict[str, Any]:
    """Render the OpenAPI 3.0 document of one group and version.

    Parameters
    ----------
    kinds
        Every served kind.
    group_version
        ``v1``, ``apps/v1`` and so on, or a path such as ``api/v1`` or ``apis/apps/v1``.
    version
        Of the server, as ``/version`` says it.

    Raises
    ------
    KeyError
        No kind of that group and version is served.
    """
    wanted = group_version.removeprefix("apis/").removeprefix("api/")
    chosen = [kind for kind in kinds if kind.resource.api_version == wanted]
    if not chosen:
        raise KeyError(group_version)
    return {
        "openapi": "3.0.0",
        "info": {"title": TITLE, "version": version},
        "paths": _paths(chosen, _V3),
        "components": {
            "schemas": _definitions(chosen, _V3),
            "securitySchemes": {
                "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}
            },
        },
    }


def _definitions(kinds: Sequence[ServedKind], style: _Style) -> dict[str, Any]:
    roots = {definition_name(kind.resource): kind for kind in kinds}
    custom = {name: kind.shape.schema(v3=style.v3) for name, kind in roots.items()}
    built_in = [name for name in roots if custom[name] is None]
    bodies = [definition_name(body) for kind in kinds for body in _bodies(kind)]
    shared = [STATUS, DELETE_OPTIONS, LIST_META, OBJECT_META]
    names = closure([*built_in, *(each for each in bodies if each not in roots), *shared])
    rendered = {name: _definition(definition(name), style) for name in names}
    rendered |= {name: _named_scalar(name, style) for name in _scalars_of(names)}
    rendered |= {name: schema for name, schema in custom.items() if schema is not None}
    for name, kind in roots.items():
        rendered[name]["x-kubernetes-group-version-kind"] = [_gvk(kind.resource)]
        if "list" in kind.verbs:
            rendered[f"{name}List"] = _list_definition(name, kind, style)
    return dict(sorted(rendered.items()))


def _bodies(kind: ServedKind) -> list[ResourceType]:
    """Return the types of the bodies of a kind's subresources."""
    return [subresource_body(kind.resource, name)[0] for name in _subresources(kind)]


def _subresources(kind: ServedKind) -> list[str]:
    """Return the subresources of a kind that answer with objects."""
    return sorted(kind.subresources - _ANSWERED_IN_BYTES)


@cache
def _scalar_names() -> Mapping[str, str]:
    """Return the full name of every definition that clients see as a single value."""
    found = {short_name(name): name for name in facts.definitions()}
    return {short: found[short] for short in sorted(NAMED_SCALARS)}


def _scalars_of(names: Iterable[str]) -> list[str]:
    """Return the full names of the named scalars that these definitions refer to."""
    fields = (field for name in names for field in definition(name).fields.values())
    used = {field.innermost.name for field in fields}
    return [full for short, full in _scalar_names().items() if short in used]


def _named_scalar(name: str, style: _Style) -> dict[str, Any]:
    """Render a named scalar; version 2 has text where version 3 has text or a number."""
    fact = facts.definitions()[name].is_
    assert fact is not None, f"{name} has fields"
    rendered = {} if fact.type == "any" else {"type": fact.type}
    if fact.format:
        rendered["format"] = fact.format
    other = _TEXT_OR.get(short_name(name))
    if other is None or not style.v3:
        return rendered
    del rendered["type"]
    return rendered | {"oneOf": [{"type": "string"}, {"type": other}]}


def _gvk(resource: ResourceType, kind: str = "") -> dict[str, str]:
    return {
        "group": resource.group,
        "kind": kind or resource.kind,
        "version": resource.version,
    }


def _definition(definition: Definition, style: _Style) -> dict[str, Any]:
    rendered: dict[str, Any] = {"type": "object"}
    if definition.required:
        rendered["required"] = sorted(definition.required)
    if definition.map_type:
        rendered["x-kubernetes-map-type"] = definition.map_type
    rendered["properties"] = {
        name: _property(definition.fields[name], style) for name in sorted(definition.fields)
    }
    if definition.name == OBJECT_META:
        for name, text in _METADATA_FIELDS.items():
            rendered["properties"][name]["description"] = text
    return rendered


# Facts about a field that are extensions of the same name in OpenAPI.
_EXTENSIONS = ("patch_strategy", "patch_merge_key", "list_type", "list_map_keys", "map_type")


def _property(field: Field, style: _Style) -> dict[str, Any]:
    rendered = _type(field, style)
    for name in _EXTENSIONS:
        if value := getattr(field, name):
            extension = f"x-kubernetes-{name.replace('_', '-')}"
            rendered[extension] = list(value) if isinstance(value, tuple) else value
    return rendered


def _type(field: Field, style: _Style) -> dict[str, Any]:
    if field.shape == "list":
        return {"type": "array", "items": _type(field.element, style)}
    if field.shape == "map":
        return {"type": "object", "additionalProperties": _type(field.element, style)}
    if field.shape == "object":
        return style.member_ref(field.name)
    if field.name in NAMED_SCALARS:
        return style.member_ref(_scalar_names()[field.name])
    return dict(_SCALARS[field.name])


def _list_definition(name: str, kind: ServedKind, style: _Style) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": dict(_SCALARS["string"]),
            "items": {"type": "array", "items": style.member_ref(name)},
            "kind": dict(_SCALARS["string"]),
            "metadata": style.member_ref(LIST_META),
        },
        "x-kubernetes-group-version-kind": [_gvk(kind.resource, kind.shape.list_kind)],
    }


def _paths(kinds: Sequence[ServedKind], style: _Style) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for kind in kinds:
        resource = kind.resource
        root = group_version_path(resource.group, resource.version)
        inside = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
        placed = ["namespace"] if resource.namespaced else []
        if resource.namespaced and "list" in kind.verbs:
            paths[f"{root}/{resource.plural}"] = _path(resource, ["list"], [], style)
        collection = f"{inside}/{resource.plural}"
        if verbs := _actions(kind.verbs, _ON_COLLECTIONS):
            paths[collection] = _path(resource, verbs, placed, style)
        placed.append("name")
        if verbs := _actions(kind.verbs, _ON_OBJECTS):
            paths[f"{collection}/{{name}}"] = _path(resource, verbs, placed, style)
        for name in _subresources(kind):
            body, allowed = subresource_body(resource, name)
            actions = _actions(frozenset(allowed), {**_ON_OBJECTS, "create": "post"})
            paths[f"{collection}/{{name}}/{name}"] = _path(body, actions, placed, style)
    return dict(sorted(paths.items()))


# Subresources of pods without a schema of their answer.
_ANSWERED_IN_BYTES = frozenset({"attach", "exec", "log", "portforward"})
# Verbs of discovery -> actions of OpenAPI.
_ON_COLLECTIONS = {"list": "list", "create": "post", "deletecollection": "deletecollection"}
_ON_OBJECTS = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}


def _actions(verbs: frozenset[str], known: Mapping[str, str]) -> list[str]:
    return [action for verb, action in known.items() if verb in verbs]


def _path(
    resource: ResourceType, verbs: Sequence[str], placed: Sequence[str], style: _Style
) -> dict[str, Any]:
    item: dict[str, Any] = {
        "parameters": [_parameter(name, "path", style) for name in placed],
    }
    for verb in verbs:
        method = {"list": "get", "deletecollection": "delete"}.get(verb, verb)
        item[method] = _operation(resource, verb, style)
    return item


def _operation(resource: ResourceType, verb: str, style: _Style) -> dict[str, Any]:
    name = definition_name(resource)
    answer = f"{name}List" if verb == "list" else STATUS if verb.startswith("delete") else name
    queries: tuple[str, ...] = ()
    if verb in ("list", "deletecollection"):
        queries = _LIST_PARAMETERS
    elif verb in ("post", "put", "patch"):
        queries = _WRITE_PARAMETERS
    parameters = [_parameter(each, "query", style) for each in queries]
    operation: dict[str, Any] = {
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": _gvk(resource),
        "responses": {"200": _answer(answer, style)},
    }
    body = _body_schema(name, verb, style)
    if body is not None:
        types = _patch_types(resource) if verb == "patch" else (JSON,)
        if style.v3:
            needed = not verb.startswith("delete")
            operation["requestBody"] = style.content(body, types) | {"required": needed}
        else:
            parameters.insert(0, {"name": "body", "in": "body", "schema": body})
            operation["consumes"] = list(types)
    if not style.v3:
        operation["produces"] = [JSON]
    operation["parameters"] = parameters
    return operation


def _patch_types(resource: ResourceType) -> tuple[str, ...]:
    """Return the patch types of a kind; kubectl uses the best type in this list."""
    if is_built_in(resource):
        return PATCH_TYPES
    return tuple(each for each in PATCH_TYPES if each != STRATEGIC_PATCH)


def _body_schema(name: str, verb: str, style: _Style) -> dict[str, Any] | None:
    if verb in ("post", "put"):
        return style.ref(name)
    if verb == "patch":
        return {"type": "object"}
    return style.ref(DELETE_OPTIONS) if verb.startswith("delete") else None


def _answer(name: str, style: _Style) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "OK"}
    if style.v3:
        return answer | style.content(style.ref(name), (JSON,))
    return answer | {"schema": style.ref(name)}


def _parameter(name: str, where: str, style: _Style) -> dict[str, Any]:
    kind = "boolean" if name in _BOOLEAN else "integer" if name in _INTEGER else "string"
    parameter: dict[str, Any] = {"name": name, "in": where}
    if where == "path":
        parameter["required"] = True
    if style.v3:
        return parameter | {"schema": {"type": kind, "uniqueItems": True}}
    return parameter | {"type": kind, "uniqueItems": True}

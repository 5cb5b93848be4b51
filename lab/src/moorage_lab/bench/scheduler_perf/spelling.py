"""The field names of manifests: the names that a kind has, spelt as the kind spells them.

The suite decodes most templates into Go types, which take a field's name in any case; one of its
templates counts on that. An API server takes only the exact name, and drops every other field.

Source: kubernetes v1.36 test/integration/scheduler_perf (``getSpecFromTextTemplateFile`` and
``yaml.UnmarshalStrict``; ``FieldValidation: "Strict"`` of createAny and updateAny).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from moorage.api.resources import ResourceType
from moorage.base.errors import DecodeError
from moorage.kinds.facts import Definition, Field, definition, kind_definition

Spelling: TypeAlias = Literal["any case", "exact", "free"]
"""How the suite reads a template.

``any case`` is a decoding into a Go type, ``exact`` a body under strict field validation, and
``free`` a body whose unknown fields the server drops.
"""


def spelt(obj: Mapping[str, Any], spelling: Spelling) -> dict[str, Any]:
    """Return an object whose fields have the names of its kind.

    Kinds that are not built in have no names here; the server checks them.

    Raises
    ------
    DecodeError
        The object has fields that its kind does not have; all are named.
    """
    kind = _definition_of(obj)
    if spelling == "free" or kind is None:
        return dict(obj)
    unknown: list[str] = []
    found = _object(kind, obj, "", spelling == "any case", unknown)
    if unknown:
        raise DecodeError("; ".join(f'unknown field "{path}"' for path in unknown))
    return found


def _definition_of(obj: Mapping[str, Any]) -> Definition | None:
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    resource = ResourceType(
        group=group, version=version, kind=str(obj["kind"]), plural="", singular="", namespaced=True
    )
    try:
        return kind_definition(resource)
    except KeyError:
        return None


def _object(
    kind: Definition, obj: Mapping[str, Any], prefix: str, any_case: bool, unknown: list[str]
) -> dict[str, Any]:
    names = {name.lower(): name for name in kind.fields} if any_case else {}
    fields: dict[str, Any] = {}
    for key, value in obj.items():
        name = key if key in kind.fields else names.get(str(key).lower(), key)
        field = kind.fields.get(name)
        if field is None or name in fields:
            unknown.append(f"{prefix}{key}")
        else:
            fields[name] = _inside(field, value, f"{prefix}{key}", any_case, unknown)
    return fields


def _inside(field: Field, value: Any, path: str, any_case: bool, unknown: list[str]) -> Any:
    if field.shape == "object" and isinstance(value, dict):
        return _object(definition(field.name), value, f"{path}.", any_case, unknown)
    if field.shape == "list" and isinstance(value, list):
        return [
            _inside(field.element, each, f"{path}[{index}]", any_case, unknown)
            for index, each in enumerate(value)
        ]
    if field.shape == "map" and isinstance(value, dict):
        return {
            key: _inside(field.element, each, f"{path}.{key}", any_case, unknown)
            for key, each in value.items()
        }
    return value

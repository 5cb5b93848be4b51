"""Checks a JSON value against a schema of an OpenAPI document; strict about both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    "$ref", "additionalProperties", "anyOf", "default", "description", "enum", "items", "maximum",
    "minimum", "properties", "required", "title", "type",
}  # fmt: skip


def faults(value: Any, schema: dict[str, Any], document: dict[str, Any], at: str) -> Iterator[str]:
    """Yield every place where a value is not what its schema says; properties are all described."""
    assert set(schema) <= _KNOWN, f"{at}: this check does not know {set(schema) - _KNOWN}"
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        yield from faults(value, document["components"]["schemas"][name], document, at)
        return
    if "anyOf" in schema:
        found = [list(faults(value, each, document, at)) for each in schema["anyOf"]]
        if all(found):
            yield f"{at}: {value!r} is none of {schema['anyOf']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is not one of {schema['enum']}"
    if "type" in schema:
        right = isinstance(value, _TYPES[schema["type"]])
        if not right or (isinstance(value, bool) and schema["type"] != "boolean"):
            yield f"{at}: {value!r} is no {schema['type']}"
            return
    if isinstance(value, dict):
        yield from _of_object(value, schema, document, at)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from faults(each, schema["items"], document, f"{at}[{index}]")


def _of_object(
    value: dict[str, Any], schema: dict[str, Any], document: dict[str, Any], at: str
) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}: {name} is missing"
    for name, each in value.items():
        if name in properties:
            yield from faults(each, properties[name], document, f"{at}.{name}")
        elif isinstance(others, dict):
            yield from faults(each, others, document, f"{at}.{name}")
        elif properties:
            yield f"{at}: {name} is not described"


def check(value: Any, path: str, document: dict[str, Any], *, status: str = "200") -> None:
    """Fail unless an answer is as the document describes the answer of its path."""
    answer = document["paths"][path]["get"]["responses"][status]
    schema = answer["content"]["application/json"]["schema"]
    assert list(faults(value, schema, document, "answer")) == []

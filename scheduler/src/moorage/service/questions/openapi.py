"""The OpenAPI document of the questions, made from the types of their answers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.base.version import __version__
from moorage.service.questions.question import (
    PREFIX,
    BodyQuestion,
    Parameter,
    Question,
)

_REFERENCE: Final = "#/components/schemas/{name}"
_STATUS: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "Why a question is not answered, as Kubernetes tells it.",
    "required": ["kind", "apiVersion", "status", "message", "reason", "code"],
    "properties": {
        "kind": {"type": "string", "enum": ["Status"]},
        "apiVersion": {"type": "string", "enum": ["v1"]},
        "metadata": {"type": "object"},
        "status": {"type": "string", "enum": ["Failure"]},
        "message": {"type": "string"},
        "reason": {"type": "string"},
        "details": {"type": "object"},
        "code": {"type": "integer"},
    },
}
_ERRORS: Final = {
    "400": "A parameter cannot be used.",
    "401": "The API server does not know the caller's token.",
    "403": "The path is not open to this caller.",
    "404": "The object of the question is not known.",
}


_ERRORS_OF_BODIES: Final = {
    "400": "The body cannot be read, or a change cannot be made.",
    "401": _ERRORS["401"],
    "403": _ERRORS["403"],
    "413": "The body is too large.",
    "429": "Too many questions wait; ask again after the seconds of Retry-After.",
    "503": "The question took too long; ask again after the seconds of Retry-After.",
}


def openapi(
    questions: Sequence[Question], with_body: Sequence[BodyQuestion] = ()
) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of some questions, and of those that come as a body."""
    answers = [each.answer for each in questions]
    for each in with_body:
        answers += [each.answer, each.body]
    _, schemas = msgspec.json.schema_components(answers, ref_template=_REFERENCE)
    for found in _structs(answers):
        _describe(schemas[found.__name__], found)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "moorage: questions about the scheduler",
            "version": __version__,
            "description": "Read only. Served on the scheduler's secure port.",
        },
        "paths": {
            **{f"{PREFIX}{each.path}": {"get": _operation(each)} for each in questions},
            **{f"{PREFIX}{each.path}": {"post": _body_operation(each)} for each in with_body},
        },
        "components": {"schemas": {**schemas, "Status": _STATUS}},
    }


def _operation(question: Question) -> dict[str, Any]:
    name = question.answer.__name__
    errors = {code: {"description": text, **_content("Status")} for code, text in _ERRORS.items()}
    return {
        "operationId": question.path.strip("/").replace("/", "-"),
        "summary": question.summary,
        "parameters": [_parameter(each) for each in question.parameters],
        "responses": {"200": {"description": "The answer.", **_content(name)}, **errors},
    }


def _body_operation(question: BodyQuestion) -> dict[str, Any]:
    named = {code: {"description": text} for code, text in _ERRORS_OF_BODIES.items()}
    errors = {
        code: each if code == "413" else {**each, **_content("Status")}
        for code, each in named.items()
    }
    name = question.answer.__name__
    return {
        "operationId": question.path.strip("/").replace("/", "-"),
        "summary": question.summary,
        "requestBody": {"required": True, **_content(question.body.__name__)},
        "responses": {"200": {"description": "The answer.", **_content(name)}, **errors},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }


def _content(name: str) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"$ref": _REFERENCE.format(name=name)}}}}


# --- descriptions, from the docstrings ----------------------------------------------------------


def _structs(roots: Sequence[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """Return the answers and every struct inside them, each once."""
    types: dict[type[msgspec.Struct], None] = {}
    todo: list[Any] = [msgspec.inspect.type_info(root) for root in roots]
    while todo:
        info = todo.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in types:
                continue
            types[info.cls] = None
            todo += [field.type for field in info.fields]
        else:
            todo += _inside(info)
    return list(types)


def _inside(info: Any) -> Iterator[Any]:
    for name in ("item_type", "value_type"):
        if hasattr(info, name):
            yield getattr(info, name)
    for name in ("types", "item_types"):
        yield from getattr(info, name, ())


def _describe(schema: dict[str, Any], cls: type[msgspec.Struct]) -> None:
    """Replace the docstring of a schema by its first line, and describe each property."""
    schema["description"] = inspect.cleandoc(cls.__doc__ or "").split("\n")[0]
    wire = {field.name: field.encode_name for field in msgspec.structs.fields(cls)}
    for base in reversed(cls.__mro__):
        for names, text in _documented(inspect.cleandoc(base.__dict__.get("__doc__") or "")):
            for name in names:
                if name in wire:
                    schema["properties"][wire[name]]["description"] = text


def _documented(doc: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names and the text of each entry of a docstring's section of parameters."""
    _, _, section = doc.partition("Parameters\n----------\n")
    names: list[str] = []
    lines: list[str] = []
    for line in [*section.split("\n\n")[0].splitlines(), "end"]:
        if line.startswith(" "):
            lines.append(line.strip())
            continue
        if names:
            yield names, " ".join(lines)
        names, lines = line.split(", "), []

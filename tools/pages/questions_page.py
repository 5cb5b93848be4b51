"""Writes the reference page of the questions over HTTP, from their OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from unittest.mock import Mock

from moorage.cli.run.serving import questions_of
from moorage.explain.workloads.question import explain_object_question
from moorage.service.questions.openapi import openapi
from moorage.service.questions.question import BodyQuestion, Question
from moorage.what_if.answering.question import tried_questions

_HEAD = """# Questions over HTTP

<!-- Written by `make docs` from the program. Do not edit. -->

A running scheduler answers these questions on its secure port (10259), in JSON; they only read. A
caller presents a token of the API server, and an answer shows only what the caller may read there
([how callers are reviewed](../decisions/0039-callers-are-reviewed.md)). `GET
/moorage/v1/openapi.json` is this page for programs. An answer that is refused is a Kubernetes
`Status`, with the reason in `message`.

```text
curl --cacert ca.crt -H "Authorization: Bearer $TOKEN" https://ADDRESS:10259/moorage/v1/queue
```

"""


def questions_over_http() -> tuple[list[Question], list[BodyQuestion]]:
    """Return the questions without and with a body, by path; none of them can be asked."""
    nobody = Mock()  # only a question that is asked needs a scheduler
    with_body = [
        *tried_questions(nobody, nobody, nobody, nobody),
        explain_object_question(nobody, nobody),
    ]
    return (
        sorted(questions_of(nobody, nobody, nobody), key=lambda each: each.path),
        sorted(with_body, key=lambda each: each.path),
    )


def questions_page() -> str:
    """Return the page."""
    document = openapi(*questions_over_http())
    described = [
        (path, method.upper(), operation)
        for path, methods in sorted(document["paths"].items())
        for method, operation in methods.items()
    ]
    operations = "\n".join(_operation(*each) for each in described)
    refusals = _refusals(operation for _, _, operation in described)
    types = "\n".join(
        _type(name, schema) for name, schema in sorted(document["components"]["schemas"].items())
    )
    return f"{_HEAD}{operations}\n{refusals}\n## Types\n\n{types}"


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    lines = [f"## {method} {path}", "", f"{operation['summary']}.", ""]
    if "requestBody" in operation:
        lines += [f"The body is a {_content(operation['requestBody'])}.", ""]
    parameters = operation.get("parameters", ())
    if parameters:
        lines += ["| Parameter | Type | |", "|---|---|---|"]
        lines += [
            f"| `{each['name']}`{' (required)' if each['required'] else ''} "
            f"| {_kind(each['schema'])} | {_cell(each['description'])} |"
            for each in parameters
        ]
        lines.append("")
    return "\n".join([*lines, f"The answer is a {_content(operation['responses']['200'])}.", ""])


def _refusals(operations: Iterable[Mapping[str, Any]]) -> str:
    """Return the codes of all refusals, with their reasons."""
    reasons: dict[str, dict[str, None]] = {}
    for operation in operations:
        for code, response in operation["responses"].items():
            if code != "200":
                reasons.setdefault(code, {})[response["description"]] = None
    rows = [f"| {code} | {' '.join(texts)} |\n" for code, texts in sorted(reasons.items())]
    return "## Refusals\n\n| Code | Why |\n|---|---|\n" + "".join(rows)


def _content(described: Mapping[str, Any]) -> str:
    return _kind(described["content"]["application/json"]["schema"])


def _type(name: str, schema: Mapping[str, Any]) -> str:
    text = _cell(schema.get("description", ""))
    if "properties" not in schema:
        return "\n".join([f"### {name}", "", f"{text} One of {_kind(schema)}.".strip(), ""])
    required = set(schema.get("required", ()))
    lines = [f"### {name}", "", text, ""]
    lines += ["| Field | Type | |", "|---|---|---|"]
    for field, form in schema["properties"].items():
        text = _cell(form.get("description", ""))
        default = "" if field in required or "default" not in form else _default(form["default"])
        lines.append(f"| `{field}` | {_kind(form)} | {text}{default} |")
    return "\n".join([*lines, ""])


def _default(value: Any) -> str:
    return "" if value in (None, "", [], {}) else f" Default: `{value}`."


def _kind(form: Mapping[str, Any]) -> str:
    """Return the type of a schema in words, with a link where it is a type of this page."""
    if "$ref" in form:
        name = form["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in form:
        return " or ".join(dict.fromkeys(map(_kind, form["anyOf"])))
    if "enum" in form:
        return ", ".join(f"`{each}`" for each in form["enum"])
    match form.get("type"):
        case "array":
            return f"list of {_kind(form.get('items') or {})}"
        case "object" if isinstance(form.get("additionalProperties"), dict):
            return f"map to {_kind(form['additionalProperties'])}"
        case None:
            return "anything"
        case kind:
            return str(kind)


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|").strip()

"""The tools of ``moorage mcp``: their schemas, and the command line that a call becomes."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import UsageError
from moorage.cli.main import main
from moorage.cli.mcp.tools import TARGET, TOOLS, Tool, input_schema, invocation

BY_NAME = {tool.name: tool for tool in TOOLS}
TARGET_WORDS = ["--context=prod"]
FORBIDDEN = {"from", "config", "running_config", "plugin", "records", "filename", "apply", "mix"}
"""Options that read a file, or run code that a file names."""


def words_of(name: str, fields: dict[str, Any]) -> list[str]:
    return list(invocation(BY_NAME[name], fields, main, TARGET_WORDS).arguments)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_tool_reads_files_runs_code_or_chooses_who_is_asked(tool: Tool) -> None:
    assert not (FORBIDDEN | TARGET) & input_schema(tool, main)["properties"].keys()


@pytest.mark.parametrize(
    ("name", "field", "schema"),
    [
        (
            "queue",
            "by",
            {"type": "string", "enum": ["owner", "group", "reason", "namespace", "none"]},
        ),
        ("queue", "limit", {"type": "integer", "minimum": 1, "maximum": 5000}),
        ("explain_object", "all_namespaces", {"type": "boolean"}),
        (
            "what_if",
            "drain",
            {
                "type": "array",
                "items": {"type": "string", "maxLength": 4096, "description": "NODE"},
                "maxItems": 50,
            },
        ),
        ("what_if", "manifests", {"type": "string", "maxLength": 1_000_000}),
    ],
)
def test_a_field_has_the_type_of_its_option(name: str, field: str, schema: dict[str, Any]) -> None:
    found = dict(input_schema(BY_NAME[name], main)["properties"][field])
    assert found.pop("description")
    assert found == schema


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("queue", {}, ["queue", "--context=prod"]),
        (
            "queue",
            {"namespace": "a", "limit": 3, "json": True},
            ["queue", "--namespace=a", "--limit=3", "--context=prod", "--output=json"],
        ),
        (
            "explain_pod",
            {"name": "--help"},
            ["explain", "pod", "--context=prod", "--", "--help"],
        ),
        (
            "explain_object",
            {"selector": "app=web", "all_namespaces": True},
            [
                *("explain", "object", "--selector=app=web", "--all-namespaces"),
                "--context=prod",
            ],
        ),
        (
            "explain_object",
            {"object": "deployment/api", "all_namespaces": False},
            ["explain", "object", "--context=prod", "--", "deployment/api"],
        ),
        (
            "what_if",
            {"drain": ["n1", "n2"], "manifests": "kind: Pod"},
            ["what-if", "--drain=n1", "--drain=n2", "--context=prod", "--apply=-"],
        ),
        ("capacity", {"manifests": "{}"}, ["capacity", "--context=prod", "--filename=-"]),
        ("reason", {"code": "InsufficientCPU"}, ["reason", "--", "InsufficientCPU"]),
    ],
)
def test_a_call_becomes_a_command_line(name: str, fields: dict[str, Any], words: list[str]) -> None:
    assert words_of(name, fields) == words


def test_manifests_are_standard_input() -> None:
    assert (
        invocation(BY_NAME["what_if"], {"manifests": "kind: Pod"}, main, []).stdin == b"kind: Pod"
    )


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("queue", {"config": "f"}, r"queue: there is no field config; known: namespace, by, "),
        ("queue", {"limit": "3"}, "queue: limit must be of type integer"),
        ("queue", {"limit": True}, "queue: limit must be of type integer"),
        ("queue", {"json": 1}, "queue: json must be of type boolean"),
        ("queue", {"namespace": "a" * 4097}, "with at most 4096 characters"),
        ("queue", {"namespace": "a\0b"}, "queue: namespace must be of type string"),
        ("what_if", {"drain": "n1"}, "what_if: drain must be of type array with at most 50 texts"),
        ("what_if", {"drain": ["n"] * 51}, "what_if: drain must be of type array"),
        ("what_if", {"drain": [1]}, "what_if: drain must be of type array"),
        ("explain_pod", {}, "explain_pod: name is missing"),
    ],
)
def test_input_that_does_not_match_is_refused_by_name(
    name: str, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        words_of(name, fields)

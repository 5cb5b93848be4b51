"""Names that programs, dashboards and files of users rely on.

``stable_names.txt`` has each with its kind, one a line. ``python -m tests.test_stable_names``
writes it anew. A line that goes is a breaking change, with a changelog fragment. A new line is not.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, get_args

import msgspec

from moorage.base.clock import ManualClock
from moorage.cli.run.serving import answers_of
from moorage.config.args import args_type
from moorage.config.own import MoorageConfiguration
from moorage.config.types import KubeSchedulerConfiguration
from moorage.explain.workloads.question import explain_object_question
from moorage.observe.catalogue import METRICS
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.questions.pages import OPENAPI_PATH
from moorage.what_if.answering.question import tried_questions
from moorage_lab.traces.scenario import Scenario
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests import packages
from tools.watching.alerts import ALERTS, RECORDINGS
from tools.watching.dashboards import DASHBOARDS, grafana

ROOT: Final = Path(__file__).resolve().parents[1]
STORED: Final = Path(__file__).with_name("stable_names.txt")
_OWN_NAME: Final = re.compile(r"moorage\.dev/[a-z0-9.-]+|MOORAGE_[A-Z_]+")


def stable_names() -> list[str]:
    """Return every name with its kind, sorted."""
    return sorted(
        {
            *_watched(),
            *_fields("file KubeSchedulerConfiguration", KubeSchedulerConfiguration),
            *_fields("file MoorageConfiguration", MoorageConfiguration),
            *_fields("file Scenario", Scenario),
            *_arguments(),
            *_questions(),
            *_in_source(),
        }
    )


def _watched() -> Iterator[str]:
    for metric in METRICS:
        yield f"metric {metric.name} {metric.kind} {','.join(metric.labels)}".strip()
    for alert in ALERTS:
        yield f"alert {alert.name}"
    for recording in RECORDINGS:
        yield f"recording {recording.name}"
    for dashboard in DASHBOARDS:
        yield f"dashboard {grafana(dashboard)['uid']}"


def _fields(where: str, struct: Any) -> Iterator[str]:
    """Yield the fields of a struct and of all structs in them by path, as a file spells them."""
    if isinstance(struct, type) and issubclass(struct, msgspec.Struct):
        for field in msgspec.structs.fields(struct):
            yield f"{where}.{field.encode_name}"
            yield from _fields(f"{where}.{field.encode_name}", field.type)
        return
    for part in get_args(struct):
        yield from _fields(where, part)


def _arguments() -> Iterator[str]:
    for entry in in_tree_registry():
        yield f"plugin {entry.name}"
        arguments = args_type(entry.name)
        if arguments is not None:
            yield from _fields(f"file {entry.name}Args", arguments)


def _questions() -> Iterator[str]:
    """Yield paths, parameters and properties of the questions' OpenAPI document."""
    clock = ManualClock()
    nothing: Any = None
    begun: Any = SimpleNamespace(given=None, plugins=())

    async def document() -> Any:
        async with VirtualCluster(clock, nodes=[]) as cluster:
            tried = tried_questions(cluster.scheduler, clock, nothing, nothing)
            tried.append(explain_object_question(cluster.scheduler, clock))
            pages = answers_of(cluster.scheduler, clock, tried, begun)
            return json.loads((await pages[OPENAPI_PATH]({})).body)

    described = run_virtual(document(), clock)
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            where = f"question {method.upper()} {path}"
            yield where
            yield from (f"{where}?{each['name']}" for each in operation.get("parameters", ()))
            content = operation.get("requestBody", {"content": {}})["content"].values()
            for body in content:
                yield from _properties(f"{where} body", body["schema"], schemas)
            (answer,) = operation["responses"]["200"]["content"].values()
            yield from _properties(f"{where} answer", answer["schema"], schemas)


def _properties(
    where: str, schema: Any, schemas: Any, within: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the properties of a schema by path; a schema within itself is not followed."""
    if isinstance(schema, list):
        for each in schema:
            yield from _properties(where, each, schemas, within)
    if not isinstance(schema, dict):
        return
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in within:
        return
    if name:
        yield from _properties(where, schemas[name], schemas, (*within, name))
    for key in ("items", "anyOf", "additionalProperties"):
        yield from _properties(where, schema.get(key), schemas, within)
    for each, inner in schema.get("properties", {}).items():
        yield f"{where}.{each}"
        yield from _properties(f"{where}.{each}", inner, schemas, within)


def _in_source() -> Iterator[str]:
    """Yield reasons and actions of Events, fields of the log, annotations and variables."""
    for path in packages.modules().values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if _OWN_NAME.fullmatch(node.value):
                    yield f"name {node.value}"
            elif isinstance(node, ast.Call):
                yield from _of_call(node)


def _of_call(call: ast.Call) -> Iterator[str]:
    function = call.func
    logs = isinstance(function, ast.Name) and function.id == "tell"
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        if logs:
            yield f"log field {keyword.arg}"
        elif keyword.arg in ("reason", "action") and isinstance(keyword.value, ast.Constant):
            text = keyword.value.value
            if isinstance(text, str) and re.fullmatch(r"[A-Z][A-Za-z]+", text):
                yield f"{keyword.arg} {text}"


def test_no_name_that_others_rely_on_has_changed() -> None:
    stored, found = STORED.read_text().splitlines(), stable_names()
    gone = sorted(set(stored) - set(found))
    assert gone == [], "others rely on these names: keep them, or make it a breaking change"
    assert sorted(set(found) - set(stored)) == [], "run python -m tests.test_stable_names"
    assert len(stored) > 800


def test_a_struct_within_others_is_looked_at() -> None:
    found = set(_fields("file", KubeSchedulerConfiguration))
    assert {"file.profiles", "file.profiles.schedulerName"} <= found
    assert any(
        each.startswith("question GET /moorage/v1/queue answer.pods.") for each in _questions()
    )


if __name__ == "__main__":
    STORED.write_text("\n".join(stable_names()) + "\n")

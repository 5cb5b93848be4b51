"""What is generated of the Helm chart: its README, and the definitions that it can install."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from moorage.kinds.custom.shipped import shipped_definitions

CHART: Final = Path(__file__).resolve().parents[2] / "deploy" / "chart"
_HEADER: Final = """# The Helm chart

<!-- Written by `make docs` from values.schema.json and values.yaml. Do not edit. -->

The chart runs moorage next to kube-scheduler, or in its place.
[Deploy it to a cluster](../../docs/how-to/deploy.md) shows both, and the way back. Helm refuses a
value that is not in this table, or that has a wrong form, and names its place.

| Value | Default | Meaning |
|---|---|---|
"""


class Value(NamedTuple):
    """A value of the chart: its path in values.yaml, and what it means."""

    path: tuple[str, ...]
    meaning: str


def chart_page() -> str:
    """Return the README of the chart.

    Raises
    ------
    KeyError
        A value of the schema has no description, or no default in values.yaml.
    """
    schema = json.loads((CHART / "values.schema.json").read_bytes())
    defaults = yaml.safe_load((CHART / "values.yaml").read_bytes())
    rows = [_row(value, defaults) for value in _values(schema, ()) if value.path != ("global",)]
    return _HEADER + "".join(rows)


def definition_files() -> dict[str, str]:
    """Return the CustomResourceDefinitions of scheduler-plugins as JSON, by file name."""
    return {
        f"{each['spec']['names']['plural']}.json": json.dumps(each, indent=1) + "\n"
        for each in shipped_definitions()
    }


def _values(schema: dict[str, Any], above: tuple[str, ...]) -> Iterator[Value]:
    for name, rule in schema["properties"].items():
        path = (*above, name)
        if "description" in rule:
            yield Value(path, rule["description"])
        else:
            yield from _values(rule, path)


def _row(value: Value, defaults: dict[str, Any]) -> str:
    default: Any = defaults
    for name in value.path:
        default = default[name]
    text = json.dumps(default)
    return f"| `{'.'.join(value.path)}` | `{text}` | {value.meaning} |\n"

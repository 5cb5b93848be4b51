"""Scope: odd objects of the kinds that scheduling reads, next to kube-apiserver's rules.

The objects and their messages are in ``scheduling_rules.yaml``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from moorage.api.yaml_text import read_one
from scheduler.tests.kinds.builders import World, create_errors, named

_RULES: Final[dict[str, Any]] = read_one(
    Path(__file__).with_name("scheduling_rules.yaml").read_text(encoding="utf-8")
)
_ROWS: Final = [*_RULES["taken"], *_RULES["refused"]]


@pytest.mark.parametrize(
    "row", [pytest.param(each, id=f"{each['resource']}: {each['fields']}") for each in _ROWS]
)
def test_an_object_is_answered_as_upstream(row: dict[str, Any]) -> None:
    world = World(("namespaces", {"metadata": {"name": "default"}}))
    fields: Any = read_one(row["fields"])
    errors = create_errors(row["resource"], named(row["resource"], "o", **fields), world)
    assert errors == row.get("messages", [])

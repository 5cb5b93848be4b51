"""Scope: the messages that the rules of all kinds give, for objects drawn at random.

``refused.jsonl`` has objects, and changes of objects, that break many different rules, with the
messages. They were recorded before the kinds stated their rules as data (`kinds.fields`), and again
after the rules of the kinds that scheduling reads were compared with kube-apiserver's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.kinds.devices.served import ADMIN_ACCESS
from scheduler.tests.kinds.builders import World, create_errors, created, update_errors

LINES = Path(__file__).with_name("refused.jsonl").read_bytes().splitlines()
CASES: list[dict[str, Any]] = [msgspec.json.decode(line) for line in LINES]


def ids(case: dict[str, Any]) -> str:
    change = "a change of " if "old" in case else ""
    return f"{change}{case['resource']}: {case['messages'][-1]}"[:100]


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_refused_objects_get_the_recorded_messages(case):
    plural = case["resource"]
    # A pod of a missing account is refused before its rules are asked.
    spec = (case.get("old") or case["new"]).get("spec") or {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    administered = {"metadata": {"name": "default", "labels": {ADMIN_ACCESS: "true"}}}
    world = World(
        ("serviceaccounts", {"metadata": {"name": account}}), ("namespaces", administered)
    )
    if "old" in case:
        found = sorted(update_errors(plural, case["new"], created(plural, case["old"], world)))
    else:
        found = create_errors(plural, case["new"], world)
    assert found == case["messages"]

"""How recorded hints are compared: who is asked, and what is noticed.

The recordings themselves run with all others (`test_recordings`). Not covered: which kind of event
ingest makes of adds and deletes.
"""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.plugins.in_tree import IN_TREE, in_tree_registry
from moorage_lab.conformance.case import Unsupported, run_case
from moorage_lab.conformance.recordings import Case
from moorage_lab.conformance.report import Report
from moorage_lab.conformance.runner import check_case

PUBLIC = Path(__file__).parent / "data" / "public"
REGISTRY = in_tree_registry()
# Plugins of pod groups are behind feature gates, which these recordings leave off; family hintsgang
# has theirs.
GATED = {"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
ASKED = {entry.name for entry in IN_TREE} - GATED
# These say something about a pod or an event, but are never asked about a node or another pod.
SILENT = {
    "PrioritySort",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeName",  # registers without a hint function
}


@cache
def recordings() -> list[dict[str, Any]]:
    with gzip.open(PUBLIC / "hints.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def checked(line: dict[str, Any]) -> Report:
    report = Report()
    check_case(from_dict(Case, line), REGISTRY, report)
    return report


def answers() -> dict[str, list[str]]:
    """Return our answers by plugin, over all recordings."""
    found: dict[str, list[str]] = {}
    for line in recordings():
        answer = run_case(from_dict(Case, line).scenario, REGISTRY)
        if isinstance(answer, Unsupported):
            continue
        for event in answer["events"]:
            for hints in event["hints"]:
                for asked in hints.get("pods", {}).values():
                    for name, text in asked.items():
                        found.setdefault(name, []).append(text)
    return found


@pytest.mark.slow
def test_every_plugins_hints_are_recorded_and_most_give_both_answers():
    found = answers()
    assert found.keys() >= ASKED - SILENT
    assert {name for name in ASKED - SILENT if len(found[name]) < 20} == set()
    single = {name for name in ASKED - SILENT if len(set(found[name])) < 2}
    assert single == {"DefaultPreemption"}  # its hint is there for PreEnqueue only


def first(what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a copy of the first equal recording with a field, and the part that has it."""
    for line in recordings():
        copy = deepcopy(line)
        for event in copy["expected"]["events"]:
            for part in (event, *event["hints"]):
                if part.get(what) and checked(line).families["hints"].equal:
                    return copy, part
    raise AssertionError(f"no recording has {what}")


def turn_an_answer(part: dict[str, Any]) -> None:
    asked = next(iter(part["pods"].values()))
    name = next(name for name in asked if name in ASKED)
    asked[name] = "Skip" if asked[name] == "Queue" else "Queue"


@pytest.mark.parametrize(
    ("what", "change"),
    [
        pytest.param("pods", turn_an_answer, id="another answer"),
        pytest.param("always", lambda part: part["always"].pop(), id="always Queue"),
        pytest.param("clusterEvents", lambda part: part["clusterEvents"].pop(), id="an event"),
        pytest.param("pods", lambda part: part["pods"].popitem(), id="a pod"),
        pytest.param("preCheck", lambda part: part["preCheck"].popitem(), id="an admission"),
    ],
)
def test_a_changed_recording_of_a_hint_is_found(what, change):
    line, part = first(what)
    change(part)
    tally = checked(line).families["hints"]
    assert (tally.equal, tally.different, tally.by_field) == (0, 1, {"events": 1})

"""Recorded faults of kube-scheduler: the list is exact, and nothing around its places is excused.

`test_recordings` checks that the recordings differ at no other place, and that each listed hint is
in one of them.
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
from moorage.plugins.affinity.hints import AffinityHints
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.conformance.case import Unsupported, run_case
from moorage_lab.conformance.compare import compare
from moorage_lab.conformance.faults import WRONG_ROWS
from moorage_lab.conformance.recordings import Case
from moorage_lab.conformance.report import Report
from moorage_lab.conformance.runner import check_case

PUBLIC = Path(__file__).parent / "data" / "public"
REGISTRY = in_tree_registry()
LISTED = [(case, pods) for fault in WRONG_ROWS for case, pods in fault.pods.items()]


@cache
def recordings(family: str) -> dict[str, dict[str, Any]]:
    with gzip.open(PUBLIC / f"{family}.jsonl.gz") as lines:
        return {line["scenario"]["name"]: line for line in map(json.loads, lines)}


def recorded(case: str) -> dict[str, Any]:
    return deepcopy(recordings(case.split("/")[1])[case])


def checked(line: dict[str, Any]) -> Report:
    report = Report()
    check_case(from_dict(Case, line), REGISTRY, report)
    return report


@pytest.mark.parametrize(("case", "pods"), LISTED, ids=[case for case, _ in LISTED])
def test_every_listed_row_differs(case, pods):
    line = from_dict(Case, recorded(case))
    answer = run_case(line.scenario, REGISTRY)
    assert not isinstance(answer, Unsupported)
    assert {d.pod for d in compare(case, line.expected, answer)} == set(pods)


def test_a_listed_case_counts_as_faulty_and_names_the_fault():
    report = checked(recorded("public/dra/evaluate/048"))
    subject = WRONG_ROWS[0].subject
    assert report.as_text().splitlines() == [
        "family  cases  equal  faulty  different  unsupported  by field",
        "------  -----  -----  ------  ---------  -----------  --------",
        "dra         1      0       1          0            0  -",
        "all         1      0       1          0            0",
        "",
        "Recorded faults of kube-scheduler, number of cases:",
        f"       1 {subject}",
    ]


def test_another_row_of_a_listed_case_is_still_compared():
    line = recorded("public/dra/evaluate/048")
    row = next(row for row in line["expected"]["pods"] if row["pod"] != "default/p03")
    row["outcome"] = "gated"
    (found,) = checked(line).first_differences
    assert (found.pod, found.field) == (row["pod"], "outcome")


def _first_hint(answer: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a copy of a recording, and its first answers of this kind by InterPodAffinity."""
    for case in recordings("hints"):
        line = recorded(case)
        for event in line["expected"]["events"]:
            for hint in event["hints"]:
                for asked in hint.get("pods", {}).values():
                    if hint["event"] == "AssignedPod/Delete" and (
                        asked.get("InterPodAffinity") == answer
                    ):
                        return line, asked
    raise AssertionError(f"no recording has {answer}")


def test_a_recorded_queue_has_to_be_queue():
    line, asked = _first_hint("Skip")
    report = checked(line)
    assert report.different == 0
    asked["NodeResourcesFit"] = "Queue" if asked["NodeResourcesFit"] == "Skip" else "Skip"
    assert checked(line).different == 1


def test_a_hint_that_skips_where_queue_is_recorded_differs(monkeypatch):
    line, _ = _first_hint("Queue")
    monkeypatch.setattr(AffinityHints, "pod_hint", lambda *_: False)
    assert checked(line).different == 1

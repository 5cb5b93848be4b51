"""What ``moorage status`` says of the pods without a node."""

from __future__ import annotations

from typing import Any

from moorage.cli.rows.text import Shown
from moorage_sandbox.cli.status import waiting_lines

GROUP = "pod group is unschedulable: 1 of 2 pods tried have a place, a/m2 has none: no room"
GATE = "waiting for scheduling gates: [quota]"


def waiting(pod: str, reason: str, message: str, **more: str) -> dict[str, Any]:
    entry = {"pod": pod, "state": "unschedulable", "reason": reason, "message": message}
    return {**entry, "owner": "", "group": "", **more}


def test_members_that_wait_as_one_are_one_row() -> None:
    rows = [
        waiting("a/m1", "GroupUnschedulable", GROUP, group="a/g"),
        waiting("a/m2", "InsufficientCPU", "0/1 nodes: 1 Insufficient cpu", group="a/g"),
        waiting("a/m3", "SchedulingGated", GATE, group="a/g", state="gated"),
        waiting("a/x", "InsufficientCPU", "0/1 nodes: 1 Insufficient cpu"),
    ]
    text = [line.split(maxsplit=2) for line in waiting_lines(rows, Shown())]
    assert [line[0] for line in text[1::2]] == ["2", "1", "1"]
    assert text[2][2].startswith("1 of 2 pods tried have a place, a/m2 has none")
    assert [line[-1].split()[-1] for line in text[1::2]] == [
        "GroupUnschedulable",
        "SchedulingGated",
        "InsufficientCPU",
    ]


def test_members_that_wait_by_themselves_keep_their_reasons() -> None:
    rows = [
        waiting("a/m1", "InsufficientCPU", "1 Insufficient cpu", group="a/g"),
        waiting("a/m2", "InsufficientMemory", "1 Insufficient memory", group="a/g"),
    ]
    reasons = [line.split()[-1] for line in waiting_lines(rows, Shown())[1::2]]
    assert reasons == ["InsufficientCPU", "InsufficientMemory"]


def test_members_that_are_placed_one_by_one_are_one_row_with_the_cause() -> None:
    cause = "0/2 nodes are available: 2 Insufficient cpu."
    note = f"pod group a/g: 2 of 3 pods needed have a node, a/m2 has none: {cause}"
    too_soon = f"0/2 nodes are available: podGroup a/g failed recently. {note}"
    rows = [
        waiting("a/m1", "GroupUnschedulable", too_soon, group="a/g"),
        waiting("a/m2", "InsufficientCPU", f"{cause} {note.partition(',')[0]}", group="a/g"),
    ]
    _, row, text = waiting_lines(rows, Shown())
    assert row.split()[0] == "2"
    assert row.split()[-1] == "InsufficientCPU"
    assert text.strip().startswith("group a/g: 2 of 3 pods needed have a node, a/m2")


def test_rows_by_reason_are_as_many_as_the_limit_says_and_wide_has_every_pod() -> None:
    rows = [
        waiting("a/x", "InsufficientCPU", "1 Insufficient cpu", owner="job/x"),
        waiting("b/y", "InsufficientCPU", "1 Insufficient cpu", owner="job/y"),
        waiting("a/z", "InsufficientMemory", "1 Insufficient memory"),
    ]
    lines = waiting_lines(rows, Shown(by="reason", limit=1))
    assert lines[1].split() == ["2", "pod/x,", "…", "unschedulable", "InsufficientCPU"]
    assert lines[-1] == "  1 more row with 1 pod is not shown; --limit shows more"
    assert [line.split()[0] for line in waiting_lines(rows, None)] == ["POD", "a/x", "b/y", "a/z"]

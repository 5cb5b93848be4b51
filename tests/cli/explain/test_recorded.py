"""A record as ``moorage explain pod NAME --attempt K`` prints it: whole texts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.cli.explain.recorded import record_text
from moorage.engine.notes.attempt_note import NOTHING_FOUND
from moorage.engine.notes.extender_answers import ExtenderAnswer
from moorage.observe.records.record import Failure, Step
from moorage.observe.records.shown_attempt import shown_attempt
from scheduler.tests.observe.records.build import record

_HEAD = "pod default/p, attempt 1, 1970-01-01T00:00:00.000000Z"
_NODES = tuple(f"n{number:02}" for number in range(12))


def text_of(*extenders: ExtenderAnswer, node: str = "", every: bool = False, **fields: Any) -> str:
    note = msgspec.structs.replace(NOTHING_FOUND, extenders=extenders)
    found = shown_attempt(record(1, took_ns=2_000_000, note=note, **fields))
    return record_text(found, node=node, every=every, wide=False)


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        pytest.param(
            {"node": "", "every": False},
            [
                "extender http://one",
                "  scores, alone > in the total: n01 5 > 100",
                "  Unschedulable: busy, hot",
                "  12 nodes: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09 and 2 more",
                "  UnschedulableAndUnresolvable: no reason given",
                "  1 nodes: x",
                "",
                "extender http://two",
                "  failed: out of order",
            ],
            id="the first ten nodes",
        ),
        pytest.param(
            {"node": "n11", "every": False},
            [
                "extender http://one",
                "  Unschedulable: busy, hot",
                "  1 nodes: n11",
                "",
                "extender http://two",
                "  failed: out of order",
            ],
            id="one node",
        ),
    ],
)
def test_the_answers_of_each_extender_are_printed(asked: dict[str, Any], lines: list[str]) -> None:
    rejected = (
        ("Unschedulable", ("busy", "hot"), _NODES),
        ("UnschedulableAndUnresolvable", (), ("x",)),
    )
    one = ExtenderAnswer("http://one", 2, rejected, (("n01", 5),), ())
    two = ExtenderAnswer("http://two", 1, (), (), ("out of order",))
    assert text_of(one, two, **asked).splitlines() == [
        f"{_HEAD}: reject: no room",
        "  0 of 100 nodes were feasible; 2.00 ms",
        "",
        *lines,
    ]


def test_the_plugin_whose_failure_ended_the_attempt_is_named() -> None:
    steps = (Step("Reserve", "Success", 1_000_000), Step("Permit", "Error", 3_000_000, "Mine"))
    failure = Failure(message="boom", broken_by="Mine")
    given: dict[str, Any] = {"node": "n1", "failure": failure, "end": "requeued"}
    found = shown_attempt(record(1, steps=steps, total=7, ended_ns=10**9, **given))
    assert record_text(found, node="", every=False, wide=False).splitlines() == [
        f"{_HEAD}: node n1 was chosen (total 7)",
        "  0 of 100 nodes were feasible; 0.00 ms",
        "  broken by plugin Mine",
        "  Reserve: Success, 1.00 ms",
        "  Permit: Error, 3.00 ms, by Mine",
        "  requeued 1970-01-01T00:00:01.000000Z: boom",
    ]

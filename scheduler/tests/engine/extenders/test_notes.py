"""The answers of each extender in the note of an attempt, whatever the attempt comes to."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import ExtenderError
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.notes.attempt_note import NoteWriter
from moorage.engine.notes.extender_answers import ExtenderAnswer
from moorage.engine.select_node import smallest_name
from moorage.framework.extender import in_order
from scheduler.tests.engine.builders import filterer, nodes, summary
from scheduler.tests.engine.extenders.test_cycle import POD, Scripted, decided
from scheduler.tests.framework.builders import profile

FAILS = ExtenderError("out of order")
UNRESOLVABLE = "UnschedulableAndUnresolvable"


@pytest.mark.parametrize(
    ("scripts", "outcome", "answers"),
    [
        pytest.param(
            [
                {"passing": (("n1", "n2"), {"n3": "busy"}, {})},
                {"scores": {"n1": 5, "n2": 1, "n3": 9}, "weight": 2},
            ],
            ("bind", "n1", ""),
            [
                ExtenderAnswer("e0", 1, (("Unschedulable", ("busy",), ("n3",)),), (), ()),
                ExtenderAnswer("e1", 2, (), (("n1", 5), ("n2", 1)), ()),
            ],
            id="rejected nodes with reasons, and scores of the best nodes",
        ),
        pytest.param(
            [{"passing": ((), {"n1": "busy", "n2": "busy"}, {"n2": "never"})}],
            ("reject", "", "0/3 nodes are available: 1 busy, 1 never."),
            [
                ExtenderAnswer(
                    "e0",
                    1,
                    (
                        ("Unschedulable", ("busy",), ("n1",)),
                        (UNRESOLVABLE, ("never",), ("n2",)),
                        (UNRESOLVABLE, (), ("n3",)),
                    ),
                    (),
                    (),
                )
            ],
            id="an extender that rejects every node, one of them without a reason",
        ),
        pytest.param(
            [{"passing": FAILS, "ignorable": True}, {"scores": FAILS}],
            ("bind", "n1", ""),
            [
                ExtenderAnswer("e0", 1, (), (), ("out of order",)),
                ExtenderAnswer("e1", 1, (), (), ("out of order",)),
            ],
            id="extenders that fail and are left out",
        ),
        pytest.param(
            [{"passing": FAILS}],
            ("error", "", "out of order"),
            [ExtenderAnswer("e0", 1, (), (), ("out of order",))],
            id="an extender that fails and ends the attempt",
        ),
    ],
)
def test_the_note_has_what_each_extender_answered(
    scripts: list[dict[str, Any]], outcome: tuple[str, str, str], answers: list[ExtenderAnswer]
) -> None:
    snapshot = nodes()
    made = profile(filterer("A", {}), snapshot=snapshot)
    made.extenders = in_order([Scripted(f"e{i}", **each) for i, each in enumerate(scripts)])
    cycle = ExtendedCycle(made, snapshot, smallest_name, notes=NoteWriter(made, snapshot))
    decision = decided(cycle, POD)
    assert summary(decision) == outcome
    assert decision.note is not None
    assert sorted(decision.note.extenders, key=lambda each: each.extender) == answers

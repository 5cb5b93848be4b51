"""The text of a failed attempt, and what one rejection on the chosen node comes to."""

from __future__ import annotations

import pytest

from moorage.framework.diagnosis import Diagnosis, count_reasons, of_one_node
from moorage.framework.status import Code, Status, error, unschedulable


@pytest.mark.parametrize(
    ("diagnosis", "text"),
    [
        pytest.param(Diagnosis(3), "0/3 nodes are available:", id="no reasons at all"),
        pytest.param(
            Diagnosis(12, {"y": 2, "x": 10}),
            "0/12 nodes are available: 10 x, 2 y.",
            id="entries sort as strings: 10 x before 2 y",
        ),
        pytest.param(
            Diagnosis(4, {"b": 1, "a": 1, "Insufficient cpu": 2}),
            "0/4 nodes are available: 1 a, 1 b, 2 Insufficient cpu.",
            id="equal counts sort by reason",
        ),
        pytest.param(
            Diagnosis(3, {"x": 3}, pre_filter_message="not at all"),
            "0/3 nodes are available: not at all.",
            id="the message of PreFilter stands for every node",
        ),
        pytest.param(
            Diagnosis(3, {"x": 3}).with_post_filter("preemption: no"),
            "0/3 nodes are available: 3 x. preemption: no",
            id="the message of PostFilter comes last, without a full stop",
        ),
        pytest.param(
            Diagnosis(3, pre_filter_message="no", post_filter_message="nor that"),
            "0/3 nodes are available: no. nor that",
            id="messages of PreFilter and PostFilter",
        ),
    ],
)
def test_message(diagnosis, text):
    assert diagnosis.message == text


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            unschedulable("a", "b").by("P"),
            Diagnosis(1, {"a": 1, "b": 1}, frozenset({"P"})),
            id="each reason counts once",
        ),
        pytest.param(
            Status(Code.PENDING, ("a",), "P"),
            Diagnosis(1, {"a": 1}, frozenset({"P"}), frozenset({"P"})),
            id="Pending is remembered",
        ),
        pytest.param(unschedulable("a"), Diagnosis(1, {"a": 1}), id="a rejection without a plugin"),
    ],
)
def test_a_rejection_on_the_chosen_node(status, expected):
    assert of_one_node("n1", status) == expected


def test_only_rejections_are_diagnosed():
    with pytest.raises(AssertionError, match="on n1 is not a rejection"):
        of_one_node("n1", error("broken"))


def test_nodes_count_once_for_each_of_their_reasons():
    counted = count_reasons([(("a", "b"), 2), (("b",), 3), ((), 4)])
    assert counted == {"a": 2, "b": 5}

"""Levels of detail: which ``-v`` shows which lines, and how a message with facts is written."""

from __future__ import annotations

import logging

import pytest

from moorage.base.verbosity import (
    V0,
    V1,
    V2,
    V3,
    V5,
    V10,
    LogMessage,
    ObjectName,
    level_of,
    verbosity_of,
)

LEVELS = {0: V0, 1: V1, 2: V2, 3: V3, 5: V5, 10: V10}


@pytest.mark.parametrize("verbosity", range(12))
def test_a_verbosity_shows_the_lines_of_every_level_up_to_it(verbosity: int) -> None:
    shown = [each for each, level in LEVELS.items() if level >= level_of(verbosity)]
    assert shown == [each for each in LEVELS if each <= verbosity]


@pytest.mark.parametrize(
    ("level", "verbosity"),
    [
        pytest.param(logging.ERROR, 0, id="errors are always shown"),
        pytest.param(logging.WARNING, 0, id="warnings are always shown"),
        *(pytest.param(level, each, id=f"level {each} of klog") for each, level in LEVELS.items()),
        pytest.param(logging.DEBUG, 10, id="lines for debugging are shown with everything"),
    ],
)
def test_each_level_names_the_smallest_verbosity_that_shows_it(level: int, verbosity: int) -> None:
    assert verbosity_of(level) == verbosity
    assert level_of(verbosity) <= level


def test_a_message_with_facts_is_written_as_klog_writes_it() -> None:
    told = LogMessage(
        "Node's answer",
        {"pod": ObjectName("a", "web"), "node": ObjectName("n1"), "score": 7, "err": 'a "b"\nc'},
    )
    assert str(told) == ('"Node\'s answer" pod="web/a" node="n1" score=7 err="a \\"b\\"\\nc"')

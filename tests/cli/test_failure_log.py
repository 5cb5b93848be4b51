"""Failures of plugins in the log: the first whole, the others counted, a line a minute."""

from __future__ import annotations

import logging
import sys

import pytest

from moorage.api.pod import Pod
from moorage.cli.failure_log import RepeatedFailures
from moorage_sandbox.testing.builders import pod

FAILED = "plugin %s failed at %s"


def asked_about(pod: Pod, problem: Exception) -> None:
    """Fail as a plugin that is asked about a pod."""
    raise problem


def record(
    seconds: float,
    *,
    name: str = "a",
    plugin: str = "Bad",
    problem: Exception | None = None,
    room: str = "moorage.framework.containment",
) -> logging.LogRecord:
    try:
        asked_about(pod(name), problem or ValueError("no"))
    except Exception:
        info = sys.exc_info()
    made = logging.LogRecord(room, logging.ERROR, "f", 1, FAILED, (plugin, "Filter"), info)
    made.created = seconds
    return made


def told(records: list[logging.LogRecord]) -> list[tuple[str, bool]]:
    """Texts of the records that pass, and whether they have a traceback."""
    repeated = RepeatedFailures()
    passed = [each for each in records if repeated.filter(each)]
    return [(each.getMessage(), bool(each.exc_info)) for each in passed]


def test_the_first_failure_is_logged_whole_and_repeats_are_counted_once_a_minute() -> None:
    moments = [0.0, 0.1, 30.0, 59.9, 60.0, 61.0, 119.0, 121.0]
    records = [record(each, name=f"p{number}") for number, each in enumerate(moments)]
    assert told(records) == [
        ("plugin Bad failed at Filter, for pod default/p0", True),
        (
            "plugin Bad at Filter failed 4 more times in 60 s, "
            "the last time for pod default/p4: no",
            False,
        ),
        (
            "plugin Bad at Filter failed 3 more times in 61 s, "
            "the last time for pod default/p7: no",
            False,
        ),
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(record(1, plugin="Worse"), id="another plugin"),
        pytest.param(record(1, problem=KeyError("k")), id="another exception"),
        pytest.param(record(1, room="moorage.service.attempts.pump"), id="not about a plugin"),
    ],
)
def test_a_different_failure_is_logged_whole(other: logging.LogRecord) -> None:
    assert [whole for _, whole in told([record(0), other])] == [True, True]

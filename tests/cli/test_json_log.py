"""``--logging-format``: what a line of JSON holds, and which formats there are."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import cast

import pytest

from moorage.base.errors import UsageError
from moorage.base.verbosity import V5, LogMessage, ObjectName
from moorage.cli.json_log import JsonFormatter
from moorage.cli.klog_text import KlogFormatter
from moorage.cli.options import log_formatter, log_from


def line(level: int, message: str, *values: object, broken: bool = False) -> dict[str, object]:
    """What the formatter makes of a record; times are told apart by a fixed one."""
    exc_info = None
    if broken:
        try:
            int("boom")
        except ValueError:
            exc_info = sys.exc_info()
    record = logging.LogRecord(
        "moorage.x", level, "/somewhere/pump.py", 12, message, values, exc_info
    )
    record.created = 1_767_225_600.25
    text = JsonFormatter().format(record)
    assert "\n" not in text, "one object a line"
    found: dict[str, object] = json.loads(text)
    return found


@pytest.mark.parametrize(
    ("level", "name", "verbosity"),
    [
        pytest.param(logging.DEBUG, "debug", {"v": 10}, id="details"),
        pytest.param(logging.INFO, "info", {"v": 1}, id="a message of level info"),
        pytest.param(V5, "info", {"v": 5}, id="a level of klog"),
        pytest.param(logging.WARNING, "warning", {"v": 0}, id="warnings"),
        pytest.param(logging.ERROR, "error", {}, id="errors have no verbosity"),
    ],
)
def test_a_line_is_an_object_with_kube_schedulers_keys(
    level: int, name: str, verbosity: dict[str, int]
) -> None:
    assert line(level, 'pod "%s"\nis new', "a/b") == {
        "ts": 1_767_225_600_250.0,
        "level": name,
        "logger": "moorage.x",
        "caller": "pump.py:12",
        "msg": 'pod "a/b"\nis new',
        **verbosity,
    }


def test_every_fact_of_a_message_has_a_key() -> None:
    facts = {"pod": ObjectName("a", "web"), "feasibleNodes": 3}
    told = line(V5, cast("str", LogMessage("Found feasible nodes for pod", facts)))
    assert told == {
        "ts": 1_767_225_600_250.0,
        "level": "info",
        "logger": "moorage.x",
        "caller": "pump.py:12",
        "msg": "Found feasible nodes for pod",
        "pod": {"name": "a", "namespace": "web"},
        "feasibleNodes": 3,
        "v": 5,
    }


def test_the_traceback_of_an_error_is_one_value() -> None:
    told = line(logging.ERROR, "broke", broken=True)
    assert str(told["err"]).startswith("Traceback (most recent call last):\n")
    assert str(told["err"]).endswith("with base 10: 'boom'")


def test_text_is_the_default_and_other_formats_are_refused() -> None:
    assert isinstance(log_formatter("json"), JsonFormatter)
    record = logging.LogRecord("moorage.x", logging.INFO, "p.py", 1, "said", (), None)
    assert log_formatter("text").format(record) == "INFO moorage.x: said"
    record.created, record.process = 1_767_225_600.25, 42
    when = datetime.fromtimestamp(record.created, UTC).astimezone()
    line_of_klog = log_formatter("text", klog=True).format(record)
    assert line_of_klog == f"I{when:%m%d %H:%M:%S}.250000      42 p.py:1] said"
    with pytest.raises(UsageError, match="--logging-format xml: write text or json"):
        log_formatter("xml")


@pytest.mark.parametrize(
    ("level", "letter"),
    [(logging.DEBUG, "I"), (V5, "I"), (logging.WARNING, "W"), (logging.ERROR, "E")],
)
def test_a_line_of_klog_begins_with_its_severity_and_ends_with_the_traceback(
    level: int, letter: str
) -> None:
    try:
        int("boom")
    except ValueError:
        record = logging.LogRecord("x", level, "p.py", 1, "said", (), sys.exc_info())
    first, second, *_, last = KlogFormatter().format(record).splitlines()
    assert re.fullmatch(rf"{letter}\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} +\d+ p\.py:1\] said", first)
    assert second == "Traceback (most recent call last):"
    assert last.endswith("with base 10: 'boom'")


def test_the_name_info_still_stands_for_its_own_level() -> None:
    log_from(logging.WARNING)
    assert logging.getLevelName("INFO") == logging.INFO

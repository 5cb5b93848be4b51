"""The audit of dependencies fails unless each was answered for, now or in the record."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from tests.dependency_audit import (
    LOCK,
    Advisory,
    Answer,
    Record,
    ask,
    judge,
    locked,
    read_record,
)

DAY = datetime.date(2026, 11, 22)
SOUND = Answer()
FAULTY = Answer([Advisory("PYSEC-1", ["2.1", "3.0"])])
UNREACHED = Answer(silent="PyPI is not reached: timed out")
OLDER = Answer(silent="PyPI answers for 9.0 only")


@pytest.mark.parametrize(
    ("now", "record", "code", "lines"),
    [
        pytest.param(
            {"a==1": SOUND, "b==2": SOUND},
            None,
            0,
            ["2 of 2 dependencies were checked, 0 of them by the record"],
            id="all are sound",
        ),
        pytest.param(
            {"a==1": SOUND, "b==2": FAULTY},
            {"b==2": SOUND},
            1,
            [
                "b==2: PYSEC-1, fixed in 2.1, 3.0",
                "2 of 2 dependencies were checked, 0 of them by the record",
            ],
            id="one has a fault, which the record did not know",
        ),
        pytest.param(
            {"a==1": SOUND, "b==2": UNREACHED},
            None,
            1,
            [
                "not checked: b==2: PyPI is not reached: timed out",
                "1 of 2 dependencies were checked, 0 of them by the record",
            ],
            id="one was not answered for",
        ),
        pytest.param(
            {"a==1": SOUND, "b==2": UNREACHED},
            {"b==2": SOUND},
            0,
            ["2 of 2 dependencies were checked, 1 of them by the record"],
            id="one is answered for in the record",
        ),
        pytest.param(
            {"a==1": SOUND, "b==2": UNREACHED},
            {"b==1": SOUND},
            1,
            [
                "not checked: b==2: PyPI is not reached: timed out",
                "1 of 2 dependencies were checked, 0 of them by the record",
            ],
            id="the record answers for another version",
        ),
        pytest.param(
            {"a==1": UNREACHED},
            {"a==1": FAULTY},
            1,
            [
                "a==1: PYSEC-1, fixed in 2.1, 3.0 (of 2026-11-22)",
                "1 of 1 dependencies were checked, 1 of them by the record",
            ],
            id="the record knows a fault",
        ),
        pytest.param(
            {"a==1": SOUND, "b==2": OLDER},
            {"b==2": OLDER},
            0,
            [
                "not checked: b==2: PyPI answers for 9.0 only (of 2026-11-22)",
                "1 of 2 dependencies were checked, 0 of them by the record",
            ],
            id="one was silent when the record was made, too, which is told",
        ),
        pytest.param(
            {"a==1": UNREACHED},
            {"a==1": OLDER},
            1,
            [
                "not checked: a==1: PyPI answers for 9.0 only (of 2026-11-22)",
                "NOTHING WAS CHECKED of 1 dependencies",
            ],
            id="nothing was checked, now or ever",
        ),
        pytest.param({}, {}, 1, ["NOTHING WAS CHECKED of 0 dependencies"], id="none was named"),
    ],
)
def test_the_result_of_the_audit(
    now: dict[str, Answer], record: dict[str, Answer] | None, code: int, lines: list[str]
):
    kept = None if record is None else Record(DAY, record)
    assert judge(list(now), now, kept, today=DAY) == (code, lines)


def test_old_answers_count_and_are_told():
    later = DAY + datetime.timedelta(days=91)
    code, lines = judge(["a==1"], {"a==1": UNREACHED}, Record(DAY, {"a==1": SOUND}), today=later)
    assert (code, lines[0]) == (
        0,
        "the recorded answers are old: run make audit ARGS=--record, 2026-11-22",
    )


def _page(version: str, *advisories: dict[str, Any]) -> bytes:
    return json.dumps({"info": {"version": version}, "vulnerabilities": advisories}).encode()


KNOWN = {"id": "PYSEC-1", "fixed_in": ["2"], "withdrawn": None, "aliases": []}


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        pytest.param(
            {"a/1.0/json": _page("1.0", KNOWN)},
            Answer([Advisory("PYSEC-1", ["2"])]),
            id="the version's own page",
        ),
        pytest.param(
            {"a/json": _page("1.0.0", KNOWN)},
            Answer([Advisory("PYSEC-1", ["2"])]),
            id="the project's page, of the same version",
        ),
        pytest.param(
            {"a/json": _page("2.0")},
            Answer(silent="PyPI answers for 2.0 only"),
            id="the project's page, of a newer version",
        ),
        pytest.param(
            {"a/1.0/json": _page("1.0", KNOWN | {"withdrawn": "2026-01-01T00:00:00Z"})},
            SOUND,
            id="an advisory that was withdrawn",
        ),
        pytest.param({}, Answer(silent="PyPI does not have it"), id="no page"),
        pytest.param(
            {"a/1.0/json": b'{"info":{"version":"1.0"}}'},
            Answer(
                silent="PyPI's answer cannot be read: Object missing required field "
                "`vulnerabilities`"
            ),
            id="a page without a word on vulnerabilities",
        ),
    ],
)
def test_the_answer_of_pypi_about_a_version(pages: dict[str, bytes], expected: Answer):
    assert ask("a==1.0", lambda url: pages.get(url.removeprefix("https://pypi.org/pypi/"))) == (
        expected
    )


def test_a_pypi_that_is_not_reached_is_silent():
    def get(url: str) -> bytes | None:
        raise TimeoutError("timed out")

    assert ask("a==1", get) == UNREACHED


def test_every_pin_of_a_lock_is_found():
    text = 'a-b==1.0 \\\n    --hash=x\nc.d==2 ; python_version < "3" \\\n    --hash=y\nc.d==3\n'
    assert locked(text) == ["a-b==1.0", "c.d==2", "c.d==3"]


def test_the_record_is_of_this_lock():
    pins = locked(LOCK.read_text(encoding="utf-8"))
    assert sorted(read_record().answers) == pins, "after make lock, run make audit ARGS=--record"

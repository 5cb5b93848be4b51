"""The audit of dependencies fails unless every one of them was checked and is without fault."""

from __future__ import annotations

import msgspec
import pytest

from tests.dependency_audit import Report, judge

SOUND = {"name": "a", "version": "1.0", "vulns": []}
FAULTY = {
    "name": "b",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1", "3.0"], "aliases": [], "description": ""}],
}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited"}


@pytest.mark.parametrize(
    ("dependencies", "if_reached", "code", "lines"),
    [
        pytest.param([SOUND], False, 0, ["1 dependencies were checked"], id="all sound"),
        pytest.param(
            [SOUND, FAULTY],
            True,
            1,
            ["b 2.0: PYSEC-1, fixed in 2.1, 3.0", "2 dependencies were checked"],
            id="one with a fault",
        ),
        pytest.param(
            [SOUND, SKIPPED],
            True,
            1,
            ["not checked: c", "1 dependencies were checked"],
            id="one that was passed over",
        ),
        pytest.param(
            [SKIPPED],
            False,
            1,
            ["NOTHING WAS CHECKED: none of 1 dependencies was found at PyPI"],
            id="none was found",
        ),
        pytest.param(
            [SKIPPED],
            True,
            0,
            ["NOTHING WAS CHECKED: none of 1 dependencies was found at PyPI"],
            id="none was found, on a machine that reaches no advisories",
        ),
        pytest.param(
            [],
            False,
            1,
            ["NOTHING WAS CHECKED: none of 0 dependencies was found at PyPI"],
            id="none was named",
        ),
    ],
)
def test_what_a_report_comes_to(dependencies, if_reached, code, lines):
    report = msgspec.convert({"dependencies": dependencies, "fixes": []}, Report)
    assert judge(report, if_reached=if_reached) == (code, lines)

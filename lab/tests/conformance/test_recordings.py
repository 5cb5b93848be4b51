"""kube-scheduler's recorded decisions are ours: every family, against the numbers reached so far.

Not covered: whatever a family lists as unsupported; the numbers in ``expected.py`` say how much
that is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tests.conformance.expected import EQUAL, WHOLE
from moorage_lab.conformance.faults import FORGOTTEN
from moorage_lab.conformance.runner import check_recordings
from tools.pages import conformance_table

PUBLIC = Path(__file__).parent / "data" / "public"
LONG = {"dra", "hints", "large"}
"""The families that take more than five seconds each."""


def test_every_recording_has_its_number():
    assert {path.name.partition(".")[0] for path in PUBLIC.iterdir()} == set(EQUAL)


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=[pytest.mark.slow] if family in LONG else [])
        for family in sorted(EQUAL)
    ],
)
def test_recorded_decisions_are_reproduced(family):
    report = check_recordings([PUBLIC / f"{family}.jsonl.gz"])
    assert list(report.families) == [family]
    tally = report.families[family]
    assert tally.equal >= EQUAL[family], report.as_text()
    assert tally.different == 0, report.as_text()
    assert tally.equal + tally.faulty + tally.unsupported == tally.cases
    assert conformance_table.row(family, tally) in conformance_table.PAGE.read_text(), "make docs"
    if family == "hints":
        assert set(tally.faults) == {fault.subject for fault in FORGOTTEN}
    if family in WHOLE:
        assert tally.equal + tally.faulty == tally.cases, report.as_text()

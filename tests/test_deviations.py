"""The table of deviations: every row says everything, and no subject has two."""

from __future__ import annotations

from tools.pages.deviations_table import DEVIATIONS


def test_every_row_says_what_differs_and_why() -> None:
    told = [(each.subject, each.upstream, each.here, each.why) for each in DEVIATIONS]
    assert [row for row in told if not all(row)] == []


def test_no_subject_has_two_rows() -> None:
    subjects = [each.subject for each in DEVIATIONS]
    assert sorted(set(subjects)) == sorted(subjects)


def test_documented_deviations_differ() -> None:
    assert [each.subject for each in DEVIATIONS if each.upstream == each.here] == []

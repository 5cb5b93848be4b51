"""Learned run times outlive a restart in their file; a wrong file is refused with its field."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.base.errors import UsageError
from moorage.estimates.run_time_book import RunTimeBook
from moorage.estimates.run_time_file import load_run_times, run_times_text, write_run_times


def test_a_book_is_the_same_after_a_restart(tmp_path: Path) -> None:
    book, again, file = RunTimeBook(), RunTimeBook(), tmp_path / "run-times.json"
    for number in range(30):
        book.note_run((f"own {number % 3}", "ns"), 1.5**number, declared=100.0)
    load_run_times(file, again)
    assert again.as_bins() == {}, "a file that is not there says nothing"
    write_run_times(file, run_times_text(book))
    load_run_times(file, again)
    assert again.as_bins() == book.as_bins()
    assert again.law(("own 1", "ns")) == book.law(("own 1", "ns"))
    assert [each.name for each in tmp_path.iterdir()] == ["run-times.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "has no run times", id="half a file"),
        pytest.param('{"format": "x", "classes": {}}', "has format x, not", id="another format"),
        pytest.param('{"format": "x"}', "has no run times", id="no classes"),
    ],
)
def test_a_wrong_file_is_refused_and_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "run-times.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"startEstimates\.file: ") as refused:
        load_run_times(file, RunTimeBook())
    assert message in str(refused.value)
    assert str(file) in str(refused.value)

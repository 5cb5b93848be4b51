"""Records as lines of a file: rotation, replay, and disks that are full."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any, Self

import pytest

from moorage.base.errors import UsageError
from moorage.observe.records.file import RecordFile, read_records
from moorage.observe.records.record import Failure
from moorage.observe.records.shown_attempt import shown_attempt
from scheduler.tests.observe.records.build import record


def numbers(path: Path) -> list[int]:
    return [each.number for each in read_records(path)]


def test_written_records_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    failure = Failure("reject", "no room", nominated="n1", victims=("default/v",))
    first = record(1, "a", failure=failure)
    file = RecordFile(path)
    file.add_record(first)
    file.flush()
    assert list(read_records(path)) == [shown_attempt(first)]


def test_a_long_file_is_rotated_and_the_oldest_file_goes(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    file = RecordFile(path, bytes_max=1, files_max=3)
    for number in range(1, 7):
        file.add_record(record(number))
        file.flush()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "records.jsonl",
        "records.jsonl.1",
        "records.jsonl.2",
    ]
    assert numbers(path) == [4, 5, 6]


def test_a_full_disk_loses_lines_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "records.jsonl"
    file = RecordFile(path)
    file.add_record(record(1))
    file.flush()
    opened, full = Path.open, True

    class Half:
        """Writes half of what it is given; then the disk is full."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self._inner.close()

        def write(self, data: bytes) -> None:
            self._inner.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        def truncate(self, size: int) -> None:
            self._inner.truncate(size)

    def open_(self: Path, *args: Any, **more: Any) -> Any:
        inner = opened(self, *args, **more)
        return Half(inner) if full and self == path else inner

    monkeypatch.setattr(Path, "open", open_)
    with caplog.at_level(logging.WARNING):
        for number in (2, 3):
            file.add_record(record(number))
            file.flush()
        full = False
        file.add_record(record(4))
        file.flush()
    assert (file.written, file.lost) == (2, 2)
    assert [each.getMessage() for each in caplog.records] == [
        f"records cannot be written to {path}: No space left on device; they are lost until they "
        "can",
        f"records are written to {path} again; 2 are lost",
    ]
    assert numbers(path) == [1, 4]


def test_a_file_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write records to .*: No such file or directory"):
        RecordFile(tmp_path / "nosuch" / "records.jsonl")


def test_a_line_that_is_no_record_is_told(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("{}\n")
    with pytest.raises(UsageError, match=r"records\.jsonl:1: this line is no record"):
        list(read_records(path))

"""Traces in Standard Workload Format: what is read, and what is refused with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from moorage.base.errors import ConfigError, UsageError
from moorage_lab.traces.jobs.swf import Job, read_jobs

REST = "-1 -1 -1 -1 -1 -1 -1 -1 -1"


def read(tmp_path: Path, text: str) -> tuple[Job, ...]:
    file = tmp_path / "site.swf"
    file.write_text(text)
    return read_jobs(str(file)).jobs


@pytest.mark.parametrize(
    ("line", "job"),
    [
        pytest.param(f"3 10 -1 60 4 -1 -1 -1 90 {REST}", Job(3, 10, 60, 4, 90), id="all is said"),
        pytest.param(
            f"3 10 -1 60 4 -1 -1 8 -1 {REST}", Job(3, 10, 60, 8, 60), id="the wider width"
        ),
        pytest.param(f"3 10 -1 -1 4 -1 -1 -1 90 {REST}", Job(3, 10, 10, 4, 90), id="no run time"),
        pytest.param("3 10 -1 6.5 4 -1 -1 -1 90 -1 1 17", Job(3, 10, 6.5, 4, 90, 17), id="a user"),
    ],
)
def test_a_job(tmp_path: Path, line: str, job: Job) -> None:
    assert read(tmp_path, f"; Version: 2.2\n\n{line}\n") == (job,)


def test_jobs_are_sorted_by_number_and_those_without_run_time_left_out(tmp_path: Path) -> None:
    rows = [f"2 9 -1 5 1 -1 -1 -1 -1 {REST}", f"1 7 -1 5 1 -1 -1 -1 -1 {REST}"]
    rows.append(f"3 9 -1 0 1 -1 -1 -1 -1 {REST}")
    file = tmp_path / "site.swf.gz"
    with gzip.open(file, "wt") as packed:
        packed.write(";   MaxNodes: 8\r\n; MaxProcs: 64 \r\n" + "\r\n".join(rows))
    trace = read_jobs(str(file))
    assert [job.number for job in trace.jobs] == [1, 2]
    assert (trace.processors, trace.left_out, trace.name) == (64, 1, "site.swf.gz")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param("1 2 3", "line 2: 3 fields, and a job has 18", id="too few fields"),
        pytest.param(f"1 x -1 5 1 -1 -1 -1 -1 {REST}", "field 2: 'x' is no number", id="a word"),
        pytest.param(f"1 -1 -1 5 1 -1 -1 -1 -1 {REST}", "no submit time", id="no submit time"),
        pytest.param(f"1 2 -1 5 -1 -1 -1 0 -1 {REST}", "asks for no processors", id="no width"),
        pytest.param(f"7 2 -1 5 1 -1 -1 -1 -1 {REST}", "job 7 comes twice", id="a number twice"),
        pytest.param(f"1 nan -1 5 1 -1 -1 -1 -1 {REST}", "'nan' is no number", id="not a number"),
        pytest.param(f"1 1e99 -1 5 1 -1 -1 -1 -1 {REST}", "is no number", id="beyond all time"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: str, fault: str) -> None:
    with pytest.raises(ConfigError) as problem:
        read(tmp_path, f"7 2 -1 5 1 -1 -1 -1 -1 {REST}\n{line}\n")
    assert "line 2: " in str(problem.value)
    assert fault in str(problem.value)


def test_many_bad_lines_are_cut_short(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as problem:
        read(tmp_path, "bad\n" * 1000)
    assert str(problem.value).count("line ") == 20
    assert "and more below it" in str(problem.value)


@pytest.mark.parametrize("content", [b"", b"; only a header\n", b"\xff\xfe\x00", b"\x1f\x8b rest"])
def test_a_file_without_jobs_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "site.swf"
    file.write_bytes(content)
    with pytest.raises(UsageError):
        read_jobs(str(file))
    with pytest.raises(UsageError, match="cannot read"):
        read_jobs(str(tmp_path / "missing.swf"))

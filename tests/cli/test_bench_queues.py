"""``moorage bench queues``: the table, the JSON, progress, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lab.tests.bench.queues.traces import small_trace, text_of
from moorage.cli.main import main
from moorage_lab.bench.queues import published

SHORT = ("--samples", "2", "--sample-jobs", "64")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    file = tmp_path / "small.swf"
    file.write_text(text_of(small_trace()))
    return str(file)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["bench", "queues", *arguments])


def test_every_policy_has_a_row_without_and_with_backfill(trace: str) -> None:
    result = run(trace, *SHORT)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split()[:4] == ["TRACE", "POLICY", "BACKFILL", "SLOWDOWN"]
    rows = [line.split()[:3] for line in lines[1:]]
    names = ("FCFS", "WFP3", "UNICEP", "SJF", "F1", "SAF", "Headroom")
    assert rows == [["small.swf", name, easy] for name in names for easy in ("none", "EASY")]
    assert result.stderr.splitlines()[0].startswith("small.swf FCFS: ")


def test_the_same_trace_gives_the_same_digests(trace: str) -> None:
    arguments = (trace, *SHORT, "--policy", "saf", "--policy", "Headroom", "-o", "json")
    first, second = (json.loads(run(*arguments).stdout) for _ in range(2))
    assert [each["digest"] for each in first["runs"]] == [each["digest"] for each in second["runs"]]
    assert len({each["digest"] for each in first["runs"]}) > 2
    assert {each["head"] for each in first["runs"]} == {"fresh"}
    assert (first["publishedValues"], first["publishedValuesEqual"]) == (0, 0)


def test_a_published_trace_with_other_values_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "like.swf"
    file.write_text(text_of(small_trace(2200)))
    known = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    monkeypatch.setitem(published._TRACES, known, "Lublin-1")
    result = run(str(file), "--policy", "FCFS", "--backfill", "none")
    assert result.exit_code == 1
    assert "0 of 2 published values are equal" in result.stdout
    assert "7273.77" in result.stdout


def test_drawn_traces_have_means_over_their_seeds() -> None:
    result = run("--draw", "two", "--seeds", "1,2", "--policy", "SAF", *SHORT, "--backfill", "none")
    assert result.exit_code == 0, result.output
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:3]] == [
        ["two", "1"],
        ["two", "2"],
    ]
    assert result.stdout.splitlines()[-1].startswith("two, 2 seeds   SAF")


def test_files_with_blanks_in_their_names_have_no_means(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("my 1.swf", "my 2.swf")]
    for file in files:
        file.write_text(text_of(small_trace()))
    result = run(*map(str, files), "--policy", "SAF", *SHORT, "--backfill", "none")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param((), "give a TRACE, or --draw", id="nothing to play"),
        pytest.param(("--draw", "one", "--policy", "LIFO"), "is not one of FCFS", id="no policy"),
        pytest.param(("--draw", "one", "--seeds", "x"), "no list of seeds", id="no seed"),
        pytest.param(("missing.swf",), "cannot read missing.swf", id="no file"),
    ],
)
def test_what_cannot_be_played_is_refused(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_trace_is_refused_that_the_machine_is_too_small_for(trace: str, tmp_path: Path) -> None:
    assert "asks for" in run(trace, *SHORT, "--processors", "2").stderr
    file = tmp_path / "plain.swf"
    file.write_text(text_of(small_trace(), header=""))
    assert "give --processors" in run(str(file), *SHORT).stderr
    assert "need 2050: give a longer trace or --sample-jobs" in run(trace).stderr

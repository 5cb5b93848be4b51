"""``python -m tools.compare``: its table, what it refuses, and its way against a sandbox."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sandbox.tests.sandbox.process import Up
from tools.compare.__main__ import compare, table
from tools.compare.drained import Drained

RUN = f"{sys.executable} -m moorage.cli.main run"


def drained(name: str, *, seconds: float, cpu: float, placed: int = 101) -> Drained:
    """Return a measurement of 101 pods."""
    return Drained(name, placed, 101, seconds=seconds, start_seconds=1.0, cpu_seconds=cpu)


def test_the_table_has_the_median_of_each_scheduler() -> None:
    results = [
        drained("a", seconds=1.0, cpu=3.0),
        drained("b", seconds=0.5, cpu=1.0),
        drained("a", seconds=2.0, cpu=5.0),
        drained("b", seconds=0.0, cpu=1.0, placed=1),
        drained("a", seconds=4.0, cpu=4.0),
    ]
    assert table(results) == [
        "| Scheduler | Pods/s | CPU, s | Placed |",
        "|---|---|---|---|",
        "| a | 50 (25 to 100) | 4.0 | 101 of 101 |",
        "| b | 100 (0 to 200) | 1.0 | 1 of 101 |",
    ]


def test_a_scheduler_without_a_command_is_refused(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("")
    result = CliRunner().invoke(compare, ["--kubeconfig", str(tmp_path / "k"), "--scheduler", "a"])
    assert result.exit_code == 2
    assert "--scheduler a: write NAME=COMMAND" in result.output


@pytest.mark.slow
def test_a_backlog_is_drained_and_nothing_is_left(tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "0", "--empty", "--no-scheduler") as up:
        up.started()
        words = ["--kubeconfig", str(up.kubeconfig), "--nodes", "3", "--pods", "20"]
        words += ["--rounds", "1", "-o", "json", "--scheduler"]
        result = CliRunner().invoke(compare, [*words, f"moorage={RUN}"])
        assert result.exit_code == 0, result.output
        (found,) = json.loads(result.stdout)
        assert (found["scheduler"], found["placed"], found["pods"]) == ("moorage", 20, 20)
        assert found["cpu_seconds"] > 0
        # Again: nodes and pods of the first time are gone.
        result = CliRunner().invoke(compare, [*words, "broken=false"])
        assert (result.exit_code, "broken ended with 1" in result.stderr) == (1, True)
        result = CliRunner().invoke(compare, [*words, "absent=/no/such"])
        assert (result.exit_code, "cannot start /no/such" in result.stderr) == (2, True)

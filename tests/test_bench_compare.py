"""The comparison of two revisions: figures, ratios of rounds, digests, and failures.

Left out: whole benchmarks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import bench_compare
from tests.bench_compare import ComparisonError, figures, lines, take_out


def result(seconds: float, *, digest: str = "d", **more: Any) -> dict[str, Any]:
    parts = {"decide": seconds / 2, "idle": 0}
    return {"params": {"nodes": 5}, "seconds": seconds, "digest": digest, "parts": parts, **more}


def test_figures_are_the_numbers_by_name_without_parameters_and_lists() -> None:
    found = figures(result(2.0, fine=True, dataItems=[{"data": 1}]))
    assert found == {"seconds": 2.0, "parts.decide": 1.0, "parts.idle": 0}


def test_a_ratio_is_that_of_one_round_and_its_spread_is_told() -> None:
    rounds = [(result(4.0), result(2.0)), (result(10.0), result(6.0)), (result(6.0), result(1.5))]
    assert lines(rounds, "0123456789abcdef") == [
        f"{'':40}  0123456789ab  working tree    ratio  spread of 3 rounds",
        f"{'seconds':40}             6             2    0.500  0.250 to 0.600",
        f"{'parts.decide':40}             3             1    0.500  0.250 to 0.600",
        "digests equal: d",
    ]


def test_other_placements_are_told() -> None:
    assert lines([(result(1.0), result(1.0, digest="e"))], "main")[-1] == "DIGESTS DIFFER"


def test_placements_that_depend_on_timing_are_no_difference_of_the_sides() -> None:
    rounds = [(result(1.0, digest="a"), result(1.0)), (result(1.0, digest="b"), result(1.0))]
    assert lines(rounds, "main")[-1].startswith("digests differ from run to run")


def test_a_figure_that_one_side_lacks_is_left_out() -> None:
    assert "new" not in "".join(lines([(result(1.0), result(1.0, new=3))], "main"))


def test_the_benchmark_runs_with_each_side_in_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran: list[tuple[str, list[str]]] = []

    def taken(ref: str, folder: Path) -> Path:
        (folder / "requirements.lock").write_text(ref)
        return folder

    def run(source: Path, arguments: list[str]) -> dict[str, Any]:
        ran.append(("here" if source == Path.cwd() else "there", arguments))
        return result(2.0)

    monkeypatch.setattr(bench_compare, "take_out", taken)
    monkeypatch.setattr(bench_compare, "run", run)
    assert bench_compare.main(["--rounds", "2", "v1", "basic", "--nodes", "5"]) == 0
    asked = ["basic", "--nodes", "5"]
    assert ran == [("there", asked), ("here", asked)] * 2
    assert capsys.readouterr().out.startswith("the packages of the two sides differ")
    monkeypatch.setattr(bench_compare, "run", lambda source, _: result(1.0, digest=str(source)))
    assert bench_compare.main(["--rounds", "1", "v1"]) == 1


def test_an_unknown_revision_and_a_failed_benchmark_are_told(tmp_path: Path) -> None:
    with pytest.raises(ComparisonError, match="no-such-revision"):
        take_out("no-such-revision", tmp_path)
    with pytest.raises(ComparisonError, match="bench no-such-benchmark with"):
        bench_compare.run(Path.cwd(), ["no-such-benchmark"])

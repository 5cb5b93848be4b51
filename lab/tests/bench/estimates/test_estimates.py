"""Replays of a small trace, and estimates that are asked for on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lab.tests.bench.queues.traces import text_of
from moorage.cli.main import main
from moorage.estimates.intervals import Interval
from moorage_lab.bench.estimates.asking import EstimateOutcome, ask_all
from moorage_lab.bench.estimates.replay import PlayedJob, play_jobs
from moorage_lab.bench.estimates.report import figures_of
from moorage_lab.traces.jobs.swf import Job


def _job(number: int, submit: float, run: float, processors: int) -> Job:
    return Job(number, submit, run, processors, run)


def _busy_jobs(number: int) -> list[Job]:
    """Return jobs of four widths that keep 16 processors busy; run times differ by class."""
    return [
        _job(n, 40 * n, 100 + 37 * (n * 7 % 11) + 200 * (n % 3), (2, 4, 8, 4)[n % 4])
        for n in range(number)
    ]


def test_jobs_start_as_on_one_node_but_for_backoff() -> None:
    jobs = [_job(1, 0, 500, 16), _job(2, 10, 100, 16), _job(3, 20, 1000, 8)]
    starts = [each.start for each in play_jobs(jobs, 16)]
    assert starts[0] < 1
    assert 500 <= starts[1] < 520, "the whole machine comes free for it first"
    assert 600 <= starts[2] < 640


def test_with_exact_run_times_and_nothing_to_come_a_start_is_known_but_for_backoff() -> None:
    """Twenty arrivals are too few for a rate: no roll-out knows of later jobs."""
    jobs = [_job(n, n, 1000.0 + 100 * n, 16) for n in range(8)]
    played = play_jobs(jobs, 16)
    asked = ask_all(played, 16, run_times="exact", roll_outs=3, seed=1)
    assert len(asked) == 14
    assert all(abs(each.shown.low - each.wait) < 120 for each in asked)
    assert all(each.shown.high - each.shown.low < 1 for each in asked)


def test_figures_count_thirds_and_infinite_intervals() -> None:
    def asked(wait: float, high: float) -> EstimateOutcome:
        shown = Interval(0.0, high)
        return EstimateOutcome(
            at="arrival",
            shown=shown,
            wait=wait,
            whole_wait=wait,
            by_rate=wait,
            by_waits=Interval(0.0, 100.0),
        )

    (figures,) = figures_of(
        "exact", [asked(10.0, 50.0), asked(20.0, 5.0), asked(30.0, float("inf"))]
    )
    assert figures.covered == 1 / 3
    assert figures.covered_by_third == (1.0, 0.0, 0.0)
    assert figures.score_by_waits == 100.0


def test_no_question_looks_ahead() -> None:
    """What comes after a question changes nothing about its estimate."""
    played = [PlayedJob(job, job.submit + 100) for job in _busy_jobs(60)]
    early = ask_all(played[:40], 16, run_times="learned", roll_outs=4, seed=3)
    late = ask_all(played, 16, run_times="learned", roll_outs=4, seed=3)
    before = [each for each in early if each.at == "arrival"][:30]
    assert [each.shown for each in before] == [each.shown for each in late if each.at == "arrival"][
        :30
    ]


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    file = tmp_path / "small.swf"
    file.write_text(text_of(_busy_jobs(60)))

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["bench", "estimates", str(file), *arguments])

    table = run("--jobs", "60", "--roll-outs", "3", "--run-times", "learned")
    assert table.exit_code == 0, table.output
    assert table.stdout.splitlines()[0].split()[:4] == ["RUN", "TIMES", "ASKED", "AT"]
    assert "60 jobs on 1 node of 16 cpus" in table.stderr
    again = [
        run("--jobs", "60", "--roll-outs", "3", "--run-times", "inexact", "-o", "json").stdout
        for _ in range(2)
    ]
    assert again[0] == again[1]
    figures = json.loads(again[0])["estimates"]
    assert [each["askedAt"] for each in figures] == ["arrival", "half the wait"]
    refused = run("--jobs", "100")
    assert refused.exit_code != 0
    assert "has 60 jobs" in refused.output

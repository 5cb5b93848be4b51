"""Jobs of several pods in a scenario: arrivals, run times by laws, and the figures of jobs."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from lab.tests.traces.scenes import column, nodes, once, pods
from moorage.base.errors import ConfigError, UsageError
from moorage.base.rng import Random, Streams
from moorage_lab.traces.in_python import simulate
from moorage_lab.traces.jobs.figures import jain
from moorage_lab.traces.jobs.laws import daily_times, known_run_times, run_seconds_of
from moorage_lab.traces.plots import Line, bands
from moorage_lab.traces.scenario import RunTime


@pytest.fixture
def rng() -> Random:
    return Streams(1).stream("laws")


def drawn(law: RunTime, rng: Random, count: int = 4000) -> list[float]:
    seconds = [run_seconds_of(law, None, [], rng) for _ in range(count)]
    return [each for each in seconds if each is not None]


def test_lognormal_run_times_have_their_median_and_sigma(rng: Random) -> None:
    seconds = drawn(RunTime(kind="lognormal", median="10m", sigma=1.5), rng)
    logs = [math.log(each / 600) for each in seconds]
    assert median(logs) == pytest.approx(0, abs=0.1)
    assert fmean(each * each for each in logs) ** 0.5 == pytest.approx(1.5, rel=0.05)


def test_weibull_run_times_have_their_mean(rng: Random) -> None:
    seconds = drawn(RunTime(kind="weibull", scale="10m", shape=2), rng)
    assert fmean(seconds) == pytest.approx(600 * math.gamma(1.5), rel=0.05)
    assert fmean(each > 600 for each in seconds) == pytest.approx(math.exp(-1), abs=0.03)


@pytest.mark.parametrize(
    "law",
    [RunTime(kind="lognormal", sigma=100), RunTime(kind="weibull", shape=0.001)],
)
def test_laws_without_bounds_give_finite_run_times(law: RunTime, rng: Random) -> None:
    assert all(0 <= each < math.inf for each in drawn(law, rng, 500))


def test_empirical_run_times_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("runtime\n5\n50\n")
    source = pods("10m", count=40, runTime={"kind": "empirical", "file": f"{tmp_path}/runs.csv"})
    run = once({"nodes": [nodes(4)], "pods": [source]})
    ran = [round(end - placed) for end, placed in column(run, "ended", "placed")]
    assert {each - 1 for each in ran} == {5, 50}  # a pod takes a second to start


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        pytest.param("runtime\n5\nx\n", ConfigError, "runs.csv:3: 'x' is no run time", id="a word"),
        pytest.param("runtime\n-5\n", ConfigError, "runs.csv:2: '-5'", id="below zero"),
        pytest.param("seconds\n5\n", UsageError, "there is no column runtime", id="no column"),
        pytest.param("runtime\n", UsageError, "no rows below its heading", id="no rows"),
    ],
)
def test_a_bad_file_of_run_times_is_refused(
    tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(text)
    with pytest.raises(error, match=message):
        known_run_times(RunTime(kind="empirical", file=str(file)))


def test_daily_arrivals_are_most_frequent_at_the_peak(rng: Random) -> None:
    times = list(daily_times(20_000, 60, rng, peak_hour=14, swing=0.8))
    assert times == sorted(times)
    assert times[-1] / 20_000 == pytest.approx(60, rel=0.03)
    hours = [0] * 24
    for each in times[: int(86_400 * 13 / 60)]:
        hours[int(each) % 86_400 // 3600] += 1
    at_peak, at_night = sum(hours[13:15]), sum(hours[1:3])
    assert at_peak / at_night == pytest.approx(1.8 / 0.2, rel=0.25)


def gang(**more: Any) -> dict[str, Any]:
    return pods("2", count=2, name="train", members=3, **more)


def test_the_pods_of_a_job_come_together_and_run_from_when_all_are_placed() -> None:
    # Each job takes 6 of 8 cores, so one member of the second is left over until the first ends.
    source = gang(runTime={"kind": "fixed", "mean": "60s"}, arrivals={"kind": "spaced"})
    run = once({"nodes": [nodes(2)], "pods": [source]})
    rows = column(run, "name", "arrived", "placed", "ended")
    assert [row[0] for row in rows] == [f"train-{job}-{n}" for job in (1, 2) for n in range(3)]
    assert [row[1] for row in rows] == [0, 0, 0, 1, 1, 1]
    first, second = rows[:3], rows[3:]
    assert len({row[3] for row in first}) == 1
    last_placed = max(row[2] for row in second)
    assert last_placed > 60 > min(row[2] for row in second)
    assert [row[3] for row in second] == [pytest.approx(last_placed + 61, abs=0.01)] * 3
    totals = run.totals
    assert (totals["jobs"], totals["jobsCompleted"]) == (2, 2)
    assert totals["groupWaitP90"] == pytest.approx(last_placed - 1, abs=0.01)
    assert totals["makespan"] == pytest.approx(last_placed + 61, abs=0.01)
    assert totals["slowdownMean"] == pytest.approx((1 + (last_placed + 60) / 61) / 2, abs=0.01)


def test_an_evicted_member_does_not_keep_its_job_from_ending() -> None:
    failure = {"node": "node-01", "at": "10s", "for": "5s"}
    source = gang(runTime={"kind": "fixed", "mean": "60s"}, resubmitted=True)
    run = once({"nodes": [nodes(2, "cpu=8,memory=16Gi")], "pods": [source], "failures": [failure]})
    assert run.totals["jobsCompleted"] == 2
    assert run.totals["lost"] > 0


def test_fairness_is_measured_between_namespaces() -> None:
    def tenant(name: str, count: int) -> dict[str, Any]:
        source = pods("2", count=count, runTime={"kind": "fixed", "mean": "100s"})
        source["template"]["metadata"]["namespace"] = name
        return source

    run = once({"nodes": [nodes(1)], "pods": [tenant("a", 1), tenant("b", 3)]})
    shares = run.totals["fairnessShare"]
    assert shares == pytest.approx((1 + 3) ** 2 / (2 * (1 + 9)))
    assert run.totals["fairnessSlowdown"] < 1
    assert run.totals["gpuHours"] == 0


@pytest.mark.parametrize(
    ("values", "index"),
    [
        pytest.param([3.0, 3.0], 1.0, id="all alike"),
        pytest.param([1.0, 0.0, 0.0, 0.0], 0.25, id="one has all"),
        pytest.param([], 1.0, id="nobody"),
    ],
)
def test_jains_index(values: list[float], index: float) -> None:
    assert jain(values) == index


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param({"members": 0}, "members", id="no members"),
        pytest.param({"runTime": {"kind": "empirical"}}, "runTime.file", id="no file"),
        pytest.param({"runTime": {"file": "x.csv"}}, "only the kind empirical", id="a file unread"),
        pytest.param({"runTime": {"sigma": 0}}, "runTime.sigma", id="no spread"),
        pytest.param({"arrivals": {"swing": 2}}, "arrivals.swing", id="a negative rate"),
        pytest.param({"arrivals": {"peakHour": 25}}, "arrivals.peakHour", id="no hour"),
    ],
)
def test_faults_of_laws_and_jobs_are_listed(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        simulate({"nodes": [nodes()], "pods": [pods("1", count=1, **change)]})


def test_a_load_of_jobs_is_refused() -> None:
    with pytest.raises(ConfigError, match="single pods are drawn"):
        simulate({"nodes": [nodes()], "pods": [gang()], "load": {"share": 1}})


def test_a_band_has_the_least_the_mean_and_the_greatest_of_the_seeds() -> None:
    lines = [Line("a", [0, 10], [1, 3]), Line("a", [0, 5, 10], [1, 2, 5]), Line("b", [0], [7])]
    first, second = bands(lines)
    assert (first.seconds, first.low, first.mean, first.high) == (
        [0, 5, 10],
        [1, 1, 3],
        [1, 1.5, 4],
        [1, 2, 5],
    )
    assert (second.configuration, second.low, second.high) == ("b", [7], [7])

"""``moorage bench fgd``: the table, the JSON, and what is refused."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from moorage.cli.main import main
from moorage_lab.bench.fgd import experiment
from moorage_lab.bench.fgd.experiment import run_experiment

DATA = Path(__file__).parents[2] / "lab/tests/bench/fgd/data"


def run(*args: str):
    return CliRunner().invoke(main, ["bench", "fgd", *args])


def test_a_run_without_published_results():
    found = run(
        "--data", str(DATA), "--trace", "default", "--policy", "BestFit", "--seeds", "1,2", "-o",
        "json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    [summary] = json.loads(found.stdout)
    assert (summary["trace"], summary["policy"], summary["runs"]) == ("default", "BestFit", 2)
    assert (summary["agrees"], summary["publishedPercent"]) == (None, None)
    assert 0 < summary["unallocatedPercent"] < 100


def test_all_traces_of_the_folder_are_run_whatever_their_names(tmp_path):
    pods = (DATA / "openb_pod_list_default.csv").read_text()
    shutil.copy(DATA / "openb_node_list_gpu_node.csv", tmp_path)
    (tmp_path / "openb_pod_list_multigpu50.csv").write_text(pods)
    (tmp_path / "openb_pod_list_multigpu50.csv.gz").write_bytes(b"not looked at")
    with gzip.open(tmp_path / "openb_pod_list_cpu250.csv.gz", "wt") as file:
        file.write(pods)
    found = run("--data", str(tmp_path), "--policy", "Lookahead", "--seeds", "42", "-o", "json")
    assert found.exit_code == 0, found.output
    summaries = json.loads(found.stdout)
    assert [each["trace"] for each in summaries] == ["cpu250", "multigpu50"]
    assert [each["agrees"] for each in summaries] == [None, None]
    assert summaries[0]["unallocatedPercent"] == summaries[1]["unallocatedPercent"]


def test_a_run_that_does_not_agree_with_published_results_exits_with_1(tmp_path):
    for file in DATA.glob("*.csv"):
        shutil.copy(file, tmp_path)
    text = "trace,policy,seed,allocated_at_100\ndefault,BestFit,42,12.34\n"
    (tmp_path / "expected.csv").write_text(text)
    found = run(
        "--data", str(tmp_path), "--trace", "default", "--policy", "BestFit", "--seeds", "42"
    )
    assert found.exit_code == 1
    assert "87.66 +- 0.00" in found.stdout
    assert "0 of 1" in found.stdout


def test_a_finished_experiment_is_not_done_again(tmp_path, monkeypatch):
    data, found = tmp_path / "data", tmp_path / "found"
    shutil.copytree(DATA, data)
    args = ["--data", str(data), "--trace", "default", "--policy", "BestFit", "-o", "json"]
    first = run(*args, "--out", str(found), "--seeds", "1")
    seeds: list[int] = []

    def counted(trace, policy, seed, **kwargs):
        seeds.append(seed)
        return run_experiment(trace, policy, seed, **kwargs)

    monkeypatch.setattr(experiment, "run_experiment", counted)
    assert run(*args, "--out", str(found), "--seeds", "1").stdout == first.stdout
    assert seeds == []
    run(*args, "--out", str(found), "--seeds", "1,2")
    assert seeds == [2]
    file = data / "openb_pod_list_default.csv"
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    run(*args, "--out", str(found), "--seeds", "1,2")
    assert seeds == [2, 1, 2]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["--policy", "Best"], "'Best' is not one of Random, DotProd", id="a policy"),
        pytest.param(["--seeds", "x"], "'x' is no list of seeds such as 42,45-51", id="seeds"),
        pytest.param(["--trace", "none"], "openb_pod_list_none.csv.gz: No such file", id="a trace"),
    ],
)
def test_unknown_names_are_refused(args, message):
    found = run("--data", str(DATA), *args)
    assert found.exit_code != 0
    assert message in found.output + str(found.exception)


def test_a_folder_without_traces_is_refused(tmp_path):
    shutil.copy(DATA / "openb_node_list_gpu_node.csv", tmp_path)
    found = run("--data", str(tmp_path))
    assert found.exit_code != 0
    assert "has no openb_pod_list_TRACE.csv" in found.output + str(found.exception)

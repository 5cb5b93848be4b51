"""``moorage simulate``: output, files and exit codes."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Type

_SCENARIO = """
apiVersion: moorage.dev/v1alpha1
kind: Simulation
nodes:
- {shape: "cpu=4,memory=16Gi", count: 4}
pods:
- template: {spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "1"}}}]}}
  count: 8
  arrivals: {kind: spaced, every: 1s}
configurations:
- name: spread
- name: pack
  arguments: {NodeResourcesFit: {scoringStrategy: {type: MostAllocated}}}
"""


def _write() -> None:
    Path("scenario.yaml").write_text(_SCENARIO)


def test_a_table_compares_the_configurations(bare: Type) -> None:
    _write()
    result = bare("simulate", "scenario.yaml")
    assert result.exit_code == 0
    lines = re.sub(r"[0-9a-f]{12}   [0-9.]+ s", "DIGEST", result.stdout).splitlines()
    assert lines[0].split()[:4] == ["CONFIGURATION", "SEEDS", "PLACED", "PENDING"]
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["spread", "1", "8", "0"],
        ["pack", "1", "8", "0"],
    ]
    assert max(map(len, lines)) <= 80
    assert [line.split("   ")[0] for line in lines if line.startswith("DIFFERENCE")] == [
        "DIFFERENCE FROM SPREAD"
    ]
    assert [re.split(r" {3,}", line) for line in lines[-3:]] == [
        ["CONFIGURATION", "SEED", "PLACEMENTS", "TOOK"],
        ["spread", "1", "DIGEST"],
        ["pack", "1", "DIGEST"],
    ]
    assert result.stderr.splitlines()[-1] == "2 of 2 runs"


def test_json_has_every_figure_and_the_whole_digest(bare: Type) -> None:
    _write()
    result = bare("simulate", "scenario.yaml", "--seeds", "2", "-o", "json")
    found = json.loads(result.stdout)
    assert [(each["configuration"], each["seed"]) for each in found["runs"]] == [
        ("spread", 1),
        ("spread", 2),
        ("pack", 1),
        ("pack", 2),
    ]
    assert {len(each["digest"]) for each in found["runs"]} == {64}
    used = [each for each in found["summary"] if each["metric"] == "nodesUsed"]
    assert [(each["configuration"], each["mean"]) for each in used] == [("spread", 4), ("pack", 2)]
    (change,) = [each for each in found["comparison"] if each["metric"] == "nodesUsed"]
    assert (change["difference"], change["low"], change["high"]) == (-2, -2, -2)


def test_out_has_every_pod_and_the_runs_are_not_done_again(bare: Type) -> None:
    _write()
    bare("simulate", "scenario.yaml", "--out", "found")
    with Path("found/pods.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    assert rows[0] == {
        "configuration": "spread",
        "seed": "1",
        "namespace": "default",
        "name": "pod-1",
        "node": rows[0]["node"],
        "arrived": "0.0",
        "placed": "0.002",
        "wait": "0.002",
        "ended": "",
        "outcome": "running",
        "evictedBy": "",
        "reason": "",
    }
    assert sorted(file.name for file in Path("found").iterdir()) == [
        "comparison.csv",
        "pods.csv",
        "results.json",
        "runs",
        "runs.csv",
        "series.csv",
        "summary.csv",
    ]
    again = bare("simulate", "scenario.yaml", "--out", "found")
    assert again.stderr.splitlines()[0] == "note: 2 of 2 runs were finished before"


def test_parquet_holds_what_csv_holds(bare: Type) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    _write()
    bare("simulate", "scenario.yaml", "--out", "found", "--format", "parquet")
    bare("simulate", "scenario.yaml", "--out", "found")
    table = parquet.read_table("found/pods.parquet")
    with Path("found/pods.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert table.column_names == list(rows[0])
    assert [str(each) for each in table.column("node").to_pylist()] == [row["node"] for row in rows]
    assert table.column("placed").to_pylist() == [float(row["placed"]) for row in rows]


def test_nodes_and_pods_as_flags(bare: Type) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    }
    Path("nodes.json").write_text(json.dumps(node))
    Path("pods.json").write_text(json.dumps(pod))
    result = bare("simulate", "--nodes", "nodes.json", "--pods", "pods.json")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].split()[:4] == ["default", "1", "1", "0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param([], "write a SCENARIO, or --nodes FILE and --pods FILE", id="nothing"),
        pytest.param(
            ["scenario.yaml", "--pods", "p.yaml"],
            "a scenario says all that --nodes, --pods, --config and --plugin say: write it there, "
            "or leave the scenario out",
            id="a scenario and flags",
        ),
        pytest.param(
            ["nowhere.yaml"],
            "nowhere.yaml: cannot read the file: No such file or directory",
            id="a file that is not there",
        ),
    ],
)
def test_bad_input_is_told_in_a_line(bare: Type, words: list[str], message: str) -> None:
    _write()
    result = bare("simulate", *words)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {message}\n")


def test_parquet_without_pyarrow_is_refused_before_any_run(
    bare: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = bare("simulate", "scenario.yaml", "--out", "found", "--format", "parquet")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: --format parquet needs pyarrow: pip install 'moorage[arrow]'\n",
    )

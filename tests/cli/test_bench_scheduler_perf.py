"""``moorage bench scheduler-perf``: exit codes, output and the file of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import main
from moorage_lab.bench.scheduler_perf import run_suite
from moorage_lab.bench.scheduler_perf.cases import TestCase, Workload
from moorage_lab.bench.scheduler_perf.run_workload import Planned, plan

CASES = """
- name: Basic
  workloadTemplate:
  - {opcode: createNodes, count: 1}
  - {opcode: createPods, count: 2, collectMetrics: true}
  workloads:
  - {name: good}
  - {name: slow, threshold: 1000000}
  - {name: gated, featureGates: {PaintedNodes: true}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a workload file."""
    file = tmp_path / "cases.yaml"
    file.write_text(CASES)
    return file


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["bench", "scheduler-perf", *map(str, arguments)])


def test_a_malformed_file_lists_its_faults_and_ends_with_2(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text("- {name: a, colour: red}\n")
    result = run(file)
    assert (result.exit_code, result.stdout.splitlines()) == (
        2,
        [
            f"{file}: 3 faults",
            '  a: unknown field "[0].colour"',
            "  a: [0].workloads: Required value",
            "  a: [0].workloadTemplate: Required value",
        ],
    )


def test_a_workload_that_is_not_supported_is_no_failure(path: Path) -> None:
    result = run(path, "--filter", "Basic/gated")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        ["Basic/gated: not supported", "  feature gate PaintedNodes=true"],
    )


def test_flags_for_a_cluster_need_a_kubeconfig(path: Path) -> None:
    result = run(path, "--no-scheduler")
    assert result.exit_code == 2
    assert "--no-scheduler and --with-nodes need --kubeconfig" in result.stderr


def test_results_are_written_and_printed(path: Path, tmp_path: Path) -> None:
    result = run(path, "--filter", "/good", "--data-items-dir", tmp_path / "out", "-o", "json")
    assert result.exit_code == 0, result.output
    (written,) = (tmp_path / "out").iterdir()
    assert written.name.startswith("BenchmarkPerfScheduling_benchmark_2")
    document, shown = json.loads(written.read_text()), json.loads(result.stdout)
    assert list(document) == ["version", "dataItems"]
    assert document["dataItems"] == shown["dataItems"]
    first, *others = [item["labels"] for item in document["dataItems"]]
    assert (first["Name"], first["Metric"], first["event"]) == (
        "BenchmarkPerfScheduling/Basic/good/namespace-1",
        "SchedulingThroughput",
        "not applicable",
    )
    assert [set(labels) for labels in others] == [set(first)] * len(others)
    assert [each["outcome"] for each in shown["workloads"]] == ["done"]


def test_an_interrupted_run_has_printed_and_written_what_had_ended(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_first(case: TestCase, workload: Workload) -> tuple[Planned, list[str]]:
        if workload.name != "good":
            raise KeyboardInterrupt
        return plan(case, workload)

    monkeypatch.setattr(run_suite, "plan", plan_first)
    result = run(path, "--data-items-dir", tmp_path / "out")
    assert result.exit_code == 130
    assert result.stdout.splitlines()[0] == "Basic/good: done"
    (written,) = (tmp_path / "out").iterdir()
    names = {item["labels"]["Name"] for item in json.loads(written.read_text())["dataItems"]}
    assert names == {"BenchmarkPerfScheduling/Basic/good/namespace-1"}


def test_a_topic_is_part_of_the_name_of_the_results(path: Path, tmp_path: Path) -> None:
    run(path, "--filter", "/good", "--data-items-dir", tmp_path / "out", "--topic", "misc")
    (written,) = (tmp_path / "out").iterdir()
    assert written.name.startswith("BenchmarkPerfScheduling_benchmark_misc_2")


def test_a_missed_threshold_ends_with_1(path: Path) -> None:
    result = run(path, "--filter", "/slow")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, "Basic/slow: below threshold")

"""Workloads run in clusters in virtual time: outcomes, messages and results.

The small workload of every case of ours is run by the tests marked slow.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.scheduler_perf.clusters import Cluster, Settings, in_process
from moorage_lab.bench.scheduler_perf.files import OWN, read_files
from moorage_lab.bench.scheduler_perf.run_suite import Suite, SuiteReport, WorkloadReport
from moorage_lab.bench.scheduler_perf.run_workload import Planned
from moorage_sandbox.testing.virtual_loop import run_virtual

CASES = """
- name: Basic
  workloadTemplate:
  - {opcode: createNodes, count: 2}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
  workloads:
  - {name: good, labels: [short], params: {pods: 4}}
  - {name: unused, params: {pods: 1, colour: 1}}
  - {name: undefined}
  - {name: slow, params: {pods: 4}, threshold: 1000000}
  - {name: gated, params: {pods: 1}, featureGates: {PaintedNodes: true}}
  - {name: full, params: {pods: 81}}
  - name: attempts
    params: {pods: 4}
    threshold: 1000000
    thresholdMetricSelector:
      name: scheduler_scheduling_attempt_duration_seconds
      labels: {result: scheduled}
      dataBucket: Perc99
      expectLower: true
  - name: groups
    params: {pods: 4}
    threshold: 8
    thresholdMetricSelector:
      name: scheduler_podgroup_scheduling_attempt_duration_seconds
      labels: {result: scheduled}
      dataBucket: Average
      expectLower: true
  - name: uncollected
    params: {pods: 4}
    thresholdMetricSelector: {name: scheduler_painting_seconds, dataBucket: Average}
  - name: unlabelled
    params: {pods: 4}
    thresholdMetricSelector:
      name: scheduler_scheduling_attempt_duration_seconds
      labels: {colour: red}
      dataBucket: Average
  - name: no bucket
    params: {pods: 4}
    thresholdMetricSelector: {name: SchedulingThroughput}
- name: Unknown
  workloadTemplate: [{opcode: paintNodes}, {opcode: paintNodes}, {opcode: paintPods}]
  workloads: [{name: w}]
- name: Kind
  workloadTemplate:
  - {opcode: createAny, templatePath: kind.yaml}
  - {opcode: createPods, count: 1, collectMetrics: true}
  workloads: [{name: w}]
- name: Missing
  workloadTemplate:
  - {opcode: createNodes, count: 1, nodeTemplatePath: nothing.yaml}
  - {opcode: createPods, countParam: $undefined, podTemplatePath: open.yaml, collectMetrics: true}
  - opcode: createPodSets
    count: 1
    namespacePrefix: set
    createPodsOp: {opcode: createPods, count: 1, podTemplatePath: nothing.yaml}
  - {opcode: churn, mode: create, templatePaths: [kind.yaml, void.yaml]}
  defaultPodTemplatePath: default.yaml
  workloads: [{name: w}]
- name: Configured
  schedulerConfigPath: nothing.yaml
  defaultPodTemplatePath: default.yaml
  workloadTemplate:
  - {opcode: createPods, count: 1, collectMetrics: true}
  workloads: [{name: w}]
- name: Later
  schedulerApiClientQPS: 10
  workloadTemplate:
  - {opcode: createPods, count: 1, nominatedNodeName: node-1, collectMetrics: true}
  workloads: [{name: w}]
"""


def run(
    path: Path,
    names: str = "",
    *,
    labels: str = "",
    wait_seconds: float = 30,
    lines: list[str] | None = None,
) -> SuiteReport:
    """Run workloads of a file, each in a cluster in virtual time; lines gets all that is told."""
    told: list[str] = [] if lines is None else lines
    clock, registry = ManualClock(), in_tree_registry()

    def opened(
        planned: Planned, failed: Callable[[str, BaseException], None]
    ) -> AbstractAsyncContextManager[Cluster]:
        settings = Settings(
            config=planned.config, registry=registry, clock=clock, seed=1, latency_seconds=0.001
        )
        return in_process(settings, failed)

    suite = Suite(
        opened,
        clock=clock,
        streams=Streams(1),
        names=names,
        labels=labels,
        wait_seconds=wait_seconds,
        progress=lambda line: told.append(f"progress {line}"),
    )
    return run_virtual(suite.run(read_files(path), told.extend), clock)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file with the cases of this module."""
    file = tmp_path / "cases.yaml"
    file.write_text(CASES)
    kind = "apiVersion: paint.example.com/v1\nkind: Paint\nmetadata: {name: red}\n"
    (tmp_path / "kind.yaml").write_text(kind)
    (tmp_path / "open.yaml").write_text("kind: {{ .Index")
    return file


def only(report: SuiteReport) -> WorkloadReport:
    """Return the report of the only workload."""
    (workload,) = report.workloads
    return workload


def test_a_workload_is_run_and_measured(path: Path) -> None:
    report = run(path, labels="short")
    workload = only(report)
    assert (workload.name, workload.outcome, workload.messages) == ("Basic/good", "done", ())
    name = "BenchmarkPerfScheduling/Basic/good/namespace-1"
    assert {item.labels["Name"] for item in workload.items} == {name}
    throughput, duration = workload.items[:2]
    assert (throughput.metric, throughput.unit) == ("SchedulingThroughput", "pods/s")
    assert throughput.data["Average"] == pytest.approx(4 / duration.data["Duration"])
    assert {"scheduler_scheduling_attempt_duration_seconds"} < {
        item.metric for item in workload.items
    }
    shown = report.as_json()
    assert (shown["version"], shown["workloads"], shown["malformed"]) == (
        "v1",
        [{"name": "Basic/good", "outcome": "done", "messages": []}],
        {},
    )
    assert shown["dataItems"][0]["labels"]["Metric"] == "SchedulingThroughput"


@pytest.mark.parametrize(
    ("names", "outcome", "messages"),
    [
        pytest.param(
            "Basic/unused",
            "done",
            ["no operation uses the parameters colour"],
            id="a parameter that is not used",
        ),
        pytest.param(
            "Basic/undefined",
            "failed",
            ["op 1: parameter pods is undefined"],
            id="a parameter that is undefined",
        ),
        pytest.param(
            "Basic/gated",
            "not supported",
            ["feature gate PaintedNodes=true"],
            id="an unknown feature gate",
        ),
        pytest.param("Basic/attempts", "done", [], id="a threshold of a histogram"),
        pytest.param(
            "Basic/groups",
            "done",
            [
                "scheduler_podgroup_scheduling_attempt_duration_seconds was not measured, "
                "nothing was compared with 8"
            ],
            id="a threshold of a histogram without observations",
        ),
        pytest.param(
            "Basic/uncollected",
            "failed",
            ["threshold: metric scheduler_painting_seconds is selected, but not collected"],
            id="a threshold of a metric that is not collected",
        ),
        pytest.param(
            "Basic/unlabelled",
            "failed",
            [
                "threshold: metric scheduler_scheduling_attempt_duration_seconds colour=red is "
                "selected, but not collected"
            ],
            id="a threshold of a label that is not collected",
        ),
        pytest.param(
            "Basic/no bucket",
            "failed",
            ["threshold: metric SchedulingThroughput is selected without a dataBucket"],
            id="a threshold without a bucket",
        ),
        pytest.param(
            "Unknown",
            "not supported",
            ["opcode paintNodes", "opcode paintPods"],
            id="unknown opcodes, each once",
        ),
        pytest.param(
            "Kind",
            "not supported",
            ["kind Paint of paint.example.com/v1"],
            id="a kind that the server does not have",
        ),
        pytest.param(
            "Basic/full",
            "failed",
            ["op 1 (createPods): namespace namespace-1: 80 of 81 pods are scheduled after 30 s"],
            id="pods that do not fit",
        ),
        pytest.param(
            "Missing",
            "failed",
            [
                "op 1: parameter undefined is undefined",
                "op 0 (createNodes): {folder}/nothing.yaml: cannot be read: No such file",
                "op 1 (createPods): {folder}/open.yaml: ",
                "op 2 (createPodSets): {folder}/nothing.yaml: cannot be read: No such file",
                "op 3 (churn): {folder}/void.yaml: cannot be read: No such file",
            ],
            id="templates that cannot be read, all before the workload begins",
        ),
        pytest.param(
            "Configured",
            "failed",
            [
                "op 0 (createPods): {folder}/default.yaml: cannot be read: No such file",
                "schedulerConfigPath: {folder}/nothing.yaml: cannot read the file",
            ],
            id="a configuration that is not there",
        ),
        pytest.param(
            "Later",
            "not supported",
            ["field schedulerApiClientQPS", "field nominatedNodeName of createPods"],
            id="fields that are newer than v1.36",
        ),
    ],
)
def test_the_outcome_of_a_workload(
    names: str, outcome: str, messages: list[str], path: Path
) -> None:
    workload = only(run(path, names))
    assert (workload.outcome, len(workload.messages)) == (outcome, len(messages))
    for told, expected in zip(workload.messages, messages, strict=True):
        assert told.startswith(expected.format(folder=path.parent))


def test_a_threshold_that_is_missed_is_told(path: Path) -> None:
    workload = only(run(path, "Basic/slow"))
    assert (workload.outcome, workload.has_failed) == ("below threshold", True)
    assert workload.items[0].data["AverageThreshold"] == 1_000_000
    assert workload.messages[0].startswith(
        "BenchmarkPerfScheduling/Basic/slow/namespace-1: expected SchedulingThroughput Average "
        "to be higher: got "
    )


def test_the_faults_of_a_file_are_reported_beside_the_workloads(tmp_path: Path) -> None:
    (tmp_path / "performance-config.yaml").write_text("- name: a\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "performance-config.yaml").write_text("name: a\n")
    lines: list[str] = []
    report = run(tmp_path, lines=lines)
    assert (len(report.malformed), report.workloads) == (2, ())
    assert lines == [
        f"{tmp_path}/more/performance-config.yaml: 1 fault",
        "  expected a list of test cases",
        f"{tmp_path}/performance-config.yaml: 2 faults",
        "  a: [0].workloads: Required value",
        "  a: [0].workloadTemplate: Required value",
    ]


def test_a_workload_is_told_when_it_ends_and_faults_of_files_before_all(tmp_path: Path) -> None:
    workloads = "[{name: v, params: {pods: x}}, {name: w, params: {pods: x}}]"
    operation = "{opcode: createPods, countParam: $pods, collectMetrics: true}"
    whole = f"- {{name: a, workloads: {workloads}, workloadTemplate: [{operation}]}}"
    for folder, text in (("a", whole), ("b", "name: a")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "performance-config.yaml").write_text(text)
    lines: list[str] = []
    run(tmp_path, lines=lines)
    fault = "  op 0: parameter pods is 'x', which is not of type int"
    assert lines == [
        f"{tmp_path}/b/performance-config.yaml: 1 fault",
        "  expected a list of test cases",
        "progress a/v",
        "a/v: failed",
        fault,
        "progress a/w",
        "a/w: failed",
        fault,
    ]


def test_a_selection_of_nothing_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="no workload is selected"):
        run(path, "Nothing")


_OWN = [case.name for file in read_files(OWN) for case in file.cases]


@pytest.mark.slow
@pytest.mark.parametrize("name", _OWN)
def test_the_small_workload_of_a_case_of_ours(name: str) -> None:
    workload = only(run(OWN, f"^{name}$", labels="short"))
    assert (workload.outcome, workload.messages) == ("done", ())
    assert workload.items[0].metric == "SchedulingThroughput"

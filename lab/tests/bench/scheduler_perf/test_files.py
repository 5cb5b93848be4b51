"""Reading workload files: what is understood, and every fault that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.base.errors import UsageError
from moorage_lab.bench.scheduler_perf.cases import ThresholdMetric
from moorage_lab.bench.scheduler_perf.files import OWN, read_files
from moorage_lab.bench.scheduler_perf.operations import (
    OPERATIONS,
    CreateNodes,
    CreatePods,
    CreatePodSets,
)

WHOLE = """
- name: Basic
  featureGates: {DynamicResourceAllocation: true}
  defaultPodTemplatePath: pod.yaml
  labels: [integration-test]
  metricsCollectorConfig:
    metrics:
      scheduler_scheduling_attempt_duration_seconds:
      - {label: result, values: [scheduled]}
  defaultThresholdMetricSelector: {name: m, dataBucket: Perc99, expectLower: true}
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - opcode: createPods
    count: 2
    collectMetrics: true
  workloads:
  - name: small
    labels: [short]
    threshold: {topic: 7}
    params: {nodes: 5}
"""


def read(text: str, folder: Path) -> tuple[str, ...]:
    """Return the faults of a file with this text."""
    path = folder / "file.yaml"
    path.write_text(text)
    (file,) = read_files(path)
    assert bool(file.faults) != bool(file.cases)
    return file.faults


def test_a_case_is_read_with_all_its_parts(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(WHOLE)
    (file,) = read_files(tmp_path / "file.yaml")
    (case,) = file.cases
    (workload,) = case.written.workloads
    nodes, pods = case.operations
    assert isinstance(nodes, CreateNodes)
    assert nodes.label_node_prepare_strategy is not None
    assert nodes.label_node_prepare_strategy.label_values == ["a", "b"]
    assert isinstance(pods, CreatePods)
    assert (nodes.count_param, pods.count, pods.collect_metrics) == ("$nodes", 2, True)
    assert (case.name, case.unknown, case.folder) == ("Basic", (), tmp_path)
    assert case.gates(workload) == {"DynamicResourceAllocation": True}
    assert (workload.bound("topic"), workload.bound("other")) == (7, 0)
    selected = case.threshold_metric(workload)
    assert selected == ThresholdMetric(name="m", data_bucket="Perc99", expect_lower=True)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("", ["expected a list of test cases"], id="an empty file"),
        pytest.param("name: a", ["expected a list of test cases"], id="no list"),
        pytest.param(
            "- name: a\n  name: b",
            ['line 2: key "name" already set in map'],
            id="a key twice",
        ),
        pytest.param(
            "- workloads: []",
            ["[0].name: Required value"],
            id="a case without a name",
        ),
        pytest.param(
            "- name: a",
            ["a: [0].workloads: Required value", "a: [0].workloadTemplate: Required value"],
            id="a case without anything else",
        ),
    ],
)
def test_the_faults_of_a_file_without_operations(
    text: str, faults: list[str], tmp_path: Path
) -> None:
    assert list(read(text, tmp_path)) == faults


@pytest.mark.parametrize(
    ("operation", "faults"),
    [
        pytest.param("{}", [".opcode: Required value"], id="no opcode"),
        pytest.param(
            "{opcode: createNodes, counts: 3}",
            ['unknown field "{}.counts" (did you mean "count"?)'],
            id="a misspelt field",
        ),
        pytest.param(
            "{opcode: createNodes, count: many}",
            ['.count: Invalid value: "many": expected int, got str'],
            id="a count that is no number",
        ),
        pytest.param(
            "{opcode: createNodes, count: -1}",
            [".count: Invalid value: -1: must not be negative"],
            id="a negative count",
        ),
        pytest.param(
            "{opcode: createNodes, countParam: nodes}",
            ['.countParam: Invalid value: "nodes": must be the name of a parameter after a "$"'],
            id="a parameter without its mark",
        ),
        pytest.param(
            "{opcode: createPods, collectMetrics: true, skipWaitToCompletion: true, "
            "steadyState: true}",
            [
                ": collectMetrics and skipWaitToCompletion cannot be true at the same time",
                ": skipWaitToCompletion and steadyState cannot be true at the same time",
            ],
            id="pods that are measured and not waited for",
        ),
        pytest.param(
            "{opcode: createPods, duration: soon}",
            [
                '.duration: Invalid value: "soon": '
                "invalid duration 'soon': write it like 15s or 1m30s"
            ],
            id="a duration that is none",
        ),
        pytest.param(
            "{opcode: createPods, persistentVolumeClaimTemplatePath: c}",
            [".persistentVolumeTemplatePath: Required value"],
            id="claims without volumes",
        ),
        pytest.param(
            "{opcode: churn, mode: recreate}",
            [
                ".number: Invalid value: 0: must be greater than 0 in mode recreate",
                ".templatePaths: Required value",
            ],
            id="a churn of nothing",
        ),
        pytest.param(
            "{opcode: churn, mode: often, templatePaths: [p], intervalMilliseconds: -1}",
            [
                '.mode: Invalid value: "often": must be one of create, recreate',
                ".intervalMilliseconds: Invalid value: -1: must not be negative",
            ],
            id="a churn of another mode",
        ),
        pytest.param(
            "{opcode: barrier, stageRequirement: Bound}",
            ['.stageRequirement: Invalid value: "Bound": must be one of Scheduled, Attempted'],
            id="a barrier for something else",
        ),
        pytest.param(
            "{opcode: startCollectingMetrics}",
            [".namespaces: Required value"],
            id="metrics of no namespace",
        ),
        pytest.param(
            "{opcode: updateAny, updatePerSecond: -1}",
            [
                ".templatePath: Required value",
                ".updatePerSecond: Invalid value: -1: must not be negative",
            ],
            id="an update of nothing",
        ),
        pytest.param(
            "{opcode: createResourceDriver}",
            [".driverName: Required value", ".nodes: Required value"],
            id="a driver without a name",
        ),
        pytest.param(
            "{opcode: createResourceClaims, templatePath: c}",
            [".namespace: Required value"],
            id="claims in no namespace",
        ),
        pytest.param(
            "{opcode: createPodSets, createPodsOp: {opcode: createPods, count: -2}}",
            [
                ".namespacePrefix: Required value",
                ".createPodsOp.count: Invalid value: -2: must not be negative",
            ],
            id="sets of faulty pods",
        ),
        pytest.param(
            "{opcode: deletePods, deletePodsPerSecond: -1}",
            [".deletePodsPerSecond: Invalid value: -1: must not be negative"],
            id="a negative rate of deletions",
        ),
    ],
)
def test_the_faults_of_an_operation(operation: str, faults: list[str], tmp_path: Path) -> None:
    measured = "{opcode: createPods, count: 1, collectMetrics: true}"
    text = f"- name: a\n  workloads: [{{name: w}}]\n  workloadTemplate: [{operation}, {measured}]"
    place = "[0].workloadTemplate[0]"
    expected = [
        fault.format(place) if fault.startswith("unknown") else place + fault for fault in faults
    ]
    opcode = operation.removeprefix("{opcode: ").partition(",")[0].strip("{}")
    shown = f"a, op 0 ({opcode}): " if opcode else "a, op 0: "
    assert list(read(text, tmp_path)) == [shown + fault for fault in expected]


def test_a_fault_of_an_operation_has_no_other_as_its_consequence(tmp_path: Path) -> None:
    measured = '{opcode: createPods, count: 1, collectMetrics: "yes"}'
    text = f"- name: a\n  workloads: [{{name: w}}]\n  workloadTemplate: [{measured}]"
    (fault,) = read(text, tmp_path)
    assert "collectMetrics: Invalid value" in fault


def test_the_faults_of_several_cases_are_told_together(tmp_path: Path) -> None:
    text = """
- name: a
  surprise: 1
  workloads: [{name: w}, {name: w, threshold: -1}]
  workloadTemplate: [{opcode: createPods, count: 1}]
- name: a
  workloads: [{name: w}]
  workloadTemplate: [{opcode: createPods, count: 1, collectMetrics: true}]
"""
    assert read(text, tmp_path) == (
        'a: unknown field "[0].surprise"',
        "a: [0].workloadTemplate: no operation collects metrics",
        'a: [0].workloads[1].name: Duplicate value: "w"',
        "a: [0].workloads[1].threshold: must not be negative",
        '[1].name: Duplicate value: "a"',
    )


def test_an_unknown_opcode_is_no_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(
        "- name: a\n  workloads: [{name: w}]\n"
        "  workloadTemplate: [{opcode: paintNodes, color: red}, {opcode: sleep}]"
    )
    (file,) = read_files(path)
    assert (file.faults, file.cases[0].unknown) == ((), ("paintNodes",))


def test_fields_are_read_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(
        "- Name: a\n  Workloads: [{name: w}]\n"
        "  WorkloadTemplate: [{Opcode: createPods, CountParam: $n, collectmetrics: true},"
        " {opcode: createPodSets, namespacePrefix: ns,"
        " CreatePodsOp: {Opcode: createPods, Count: 2}}]"
    )
    (file,) = read_files(path)
    assert file.faults == ()
    pods, sets = file.cases[0].operations
    assert isinstance(pods, CreatePods)
    assert isinstance(sets, CreatePodSets)
    assert (pods.count_param, pods.collect_metrics) == ("$n", True)
    assert sets.create_pods_op.count == 2


def test_a_field_in_two_spellings_is_a_fault(tmp_path: Path) -> None:
    text = "- {name: a, Name: b, workloads: [{name: w}], workloadTemplate: [{opcode: paint}]}"
    assert read(text, tmp_path) == ('a: unknown field "[0].Name" (did you mean "name"?)',)


def test_a_folder_stands_for_every_workload_file_below_it(tmp_path: Path) -> None:
    for name in ("b", "a/deep"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "performance-config.yaml").write_text(WHOLE)
    (tmp_path / "other.yaml").write_text("not: a workload file")
    found = [file.path.parent for file in read_files(tmp_path)]
    assert found == [tmp_path / "a/deep", tmp_path / "b"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("missing", "no such file or folder", id="a path that is not there"),
        pytest.param(".", "no performance-config.yaml here or below", id="a folder without files"),
    ],
)
def test_a_path_without_workload_files_is_refused(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=text):
        read_files(tmp_path / name)


def test_our_own_files_are_whole_and_use_every_opcode() -> None:
    files = read_files(OWN)
    assert [file.faults for file in files] == [()] * len(files)
    cases = [case for file in files for case in file.cases]
    assert [case.unknown for case in cases] == [()] * len(cases)
    used = {op.opcode for case in cases for op in case.operations}
    # createResourceClaims is createAny of the suite before v1.32; a sleep measures nothing.
    assert set(OPERATIONS) - used == {"createResourceClaims", "sleep"}
    assert all("short" in case.written.workloads[0].labels for case in cases)
    names = [case.name for case in cases]
    assert sorted(set(names)) == sorted(names)

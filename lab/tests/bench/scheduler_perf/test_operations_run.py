"""Operations carried out: the objects that a workload leaves in its cluster.

Each workload runs in a cluster in virtual time, and the server is read before the cluster ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.resources import NODES, PODS, ResourceType
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.client.requests import Selection
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.scheduler_perf import nodes as nodes_module
from moorage_lab.bench.scheduler_perf.clusters import Cluster, Settings, in_process
from moorage_lab.bench.scheduler_perf.files import read_files
from moorage_lab.bench.scheduler_perf.run_suite import Suite, WorkloadReport
from moorage_lab.bench.scheduler_perf.run_workload import Planned
from moorage_sandbox.testing.virtual_loop import run_virtual

Listed = list[dict[str, Any]]

MEASURED = "{opcode: startCollectingMetrics, namespaces: [a]}, {opcode: stopCollectingMetrics}"
"""The end of a workload that measures nothing; a file is refused without it."""
MISSPELT = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {Unschedulable: true}\n"


def run(
    folder: Path, operations: str, *kinds: ResourceType, shared: bool = False
) -> tuple[WorkloadReport, list[Listed]]:
    """Run a workload of some operations; return its report and the objects of some kinds.

    A shared cluster is read after the workload's objects were removed.
    """
    (folder / "performance-config.yaml").write_text(
        f"- name: Case\n  workloadTemplate: [{operations}]\n  workloads: [{{name: w}}]\n"
    )
    clock, found = ManualClock(), list[Listed]()

    @asynccontextmanager
    async def opened(
        planned: Planned, failed: Callable[[str, BaseException], None]
    ) -> AsyncIterator[Cluster]:
        settings = Settings(config=planned.config, registry=in_tree_registry(), clock=clock, seed=1)
        async with in_process(settings, failed) as cluster:
            yield msgspec.structs.replace(cluster, shared=shared)
            for kind in kinds:
                listed: Any = await cluster.client.list(kind, Selection())
                found.append(list(listed["items"]))

    suite = Suite(opened, clock=clock, streams=Streams(1), wait_seconds=30)
    report = run_virtual(suite.run(read_files(folder)), clock)
    return report.workloads[0], found


@pytest.mark.parametrize(
    ("template", "names"),
    [
        pytest.param("", ["node-0-"] * 3, id="the default node"),
        pytest.param("generateName: worker-", ["worker-"] * 3, id="a name to be completed"),
        pytest.param(
            "name: 'worker-{{.Index}}'", ["worker-0", "worker-1", "worker-2"], id="a name"
        ),
        pytest.param(
            "{name: 'worker-{{.Index}}', labels: {kubernetes.io/hostname: other}}",
            ["worker-0", "worker-1", "worker-2"],
            id="a label that says something else",
        ),
    ],
)
def test_every_node_has_its_name_as_the_label_of_its_host(
    template: str, names: list[str], tmp_path: Path
) -> None:
    """Rules about hosts, such as anti-affinity, pass over nodes that have no such label."""
    text = (
        f"apiVersion: v1\nkind: Node\nmetadata:\n  {template}\nstatus: {{capacity: {{cpu: 1}}}}\n"
    )
    (tmp_path / "node.yaml").write_text(text)
    path = ", nodeTemplatePath: node.yaml" if template else ""
    operations = f"{{opcode: createNodes, count: 3{path}}}, {MEASURED}"
    report, [nodes] = run(tmp_path, operations, NODES)
    assert (report.outcome, report.messages) == ("done", ())
    found = [node["metadata"]["name"] for node in nodes]
    assert [name[: len(known)] for name, known in zip(found, names, strict=True)] == names
    assert [node["metadata"]["labels"]["kubernetes.io/hostname"] for node in nodes] == found


def test_a_name_that_is_taken_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffixes = iter(["aaaaa", "aaaaa", "bbbbb"])
    monkeypatch.setattr(nodes_module, "name_suffix", lambda rng: next(suffixes))
    report, [nodes] = run(tmp_path, f"{{opcode: createNodes, count: 2}}, {MEASURED}", NODES)
    assert report.outcome == "done"
    assert [node["metadata"]["name"] for node in nodes] == ["node-0-aaaaa", "node-0-bbbbb"]


@pytest.mark.parametrize(
    ("operation", "cordoned"),
    [
        pytest.param("{opcode: createNodes, count: 1, nodeTemplatePath: node.yaml}", True),
        pytest.param(
            "{opcode: churn, mode: create, number: 1, templatePaths: [node.yaml]}, "
            "{opcode: sleep, duration: 1s}",
            False,
        ),
    ],
)
def test_a_field_counts_in_any_case_where_the_suite_decodes_it(
    operation: str, cordoned: bool, tmp_path: Path
) -> None:
    (tmp_path / "node.yaml").write_text(MISSPELT)
    report, [nodes] = run(tmp_path, f"{operation}, {MEASURED}", NODES)
    assert report.outcome == "done"
    assert [bool(node.get("spec", {}).get("unschedulable")) for node in nodes] == [cordoned]


@pytest.mark.parametrize("opcode", ["createAny", "updateAny"])
def test_a_field_in_another_case_fails_where_the_suite_asks_for_strictness(
    opcode: str, tmp_path: Path
) -> None:
    (tmp_path / "node.yaml").write_text(MISSPELT)
    report, _ = run(tmp_path, f"{{opcode: {opcode}, templatePath: node.yaml}}, {MEASURED}")
    assert (report.outcome, report.messages) == (
        "failed",
        (f'op 0 ({opcode}): {tmp_path}/node.yaml: unknown field "spec.Unschedulable"',),
    )


def test_pods_whose_finalizers_nobody_removes_are_removed_from_a_shared_cluster(
    tmp_path: Path,
) -> None:
    """As those of SchedulingDeletedPodsWithFinalizers, deleted before the workload ends or not."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-, finalizers: [a.b/c]}\n"
    (tmp_path / "pod.yaml").write_text(f"{text}spec: {{containers: [{{name: c, image: i}}]}}\n")
    operations = (
        "{opcode: createNodes, count: 1}, "
        "{opcode: createPods, count: 2, namespace: a, podTemplatePath: pod.yaml}, "
        "{opcode: deletePods, namespace: a}, "
        f"{{opcode: createPods, count: 2, namespace: a, podTemplatePath: pod.yaml}}, {MEASURED}"
    )
    report, [pods, nodes] = run(tmp_path, operations, PODS, NODES, shared=True)
    assert (report.outcome, report.messages, pods, nodes) == ("done", (), [], [])

"""NodeResourceTopologyMatch, Score: the cases of scheduler-plugins' own table tests.

The tables are those of ``pkg/noderesourcetopology/score_test.go`` (v0.35), case by case and under
their names: inputs and results, from upstream's tests and not from a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.api.custom.node_topology import NodeResourceTopology
from moorage.api.pod import Pod
from moorage.config.scheduler_plugins.numa import NodeResourceTopologyMatchArgs, TopologyScoring
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import scores
from scheduler.tests.plugins.numa.builders import nodes_of, pod_of, topology

NAME = "NodeResourceTopologyMatch"
SINGLE, BEST_CONTAINER, BEST_POD = (
    "SingleNUMANodeContainerLevel",
    "BestEffortContainerLevel",
    "BestEffortPodLevel",
)
GPU = "gpu"
NO_NUMA = "non-numa-resource"


def default_numa_nodes(policy: str) -> list[NodeResourceTopology]:
    """Return three nodes of two like NUMA nodes."""
    sizes = {"Node1": ("4", "500Mi"), "Node2": ("2", "50Mi"), "Node3": ("6", "60Mi")}
    return [
        topology(
            name,
            {f"node-{at}": {"cpu": cpu, "memory": memory} for at in (0, 1)},
            policy=policy,
        )
        for name, (cpu, memory) in sizes.items()
    ]


NEAR = [[10, 12, 20, 20], [12, 10, 20, 20], [20, 20, 10, 12], [20, 20, 12, 10]]


def four_numa_nodes() -> list[NodeResourceTopology]:
    """Return two nodes of four NUMA nodes, near in pairs, with GPUs on a near or a far pair."""
    gpus = {"Node1": "1100", "Node2": "1010"}
    return [
        topology(
            name,
            {
                f"node-{at}": {
                    "cpu": "2",
                    "memory": "50Mi",
                    GPU: count,
                    "costs": {f"node-{other}": cost for other, cost in enumerate(NEAR[at])},
                }
                for at, count in enumerate(counts)
            },
            policy=BEST_CONTAINER,
        )
        for name, counts in gpus.items()
    ]


def asks(cpu: str, **more: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": "50Mi", **more}


def strategy(name: str) -> NodeResourceTopologyMatchArgs:
    return NodeResourceTopologyMatchArgs(scoring_strategy=TopologyScoring(type=name))


def by_node(snapshot: Snapshot, waiting: Pod, name: str) -> dict[str, int]:
    raw, normalized = scores(NAME, snapshot, waiting, args=strategy(name))
    assert raw == normalized
    return dict(zip(snapshot.names, raw, strict=True))


# Upstream's request of cpu and memory: 2 and 20Mi.
POD1 = pod_of([{"cpu": "2", "memory": "20Mi"}])
TestNodeResourceScorePlugin = [
    ("MostAllocated strategy", "MostAllocated", {"Node2": 70}),
    ("BalancedAllocation strategy", "BalancedAllocation", {"Node3": 100}),
    ("LeastAllocated strategy", "LeastAllocated", {"Node1": 73}),
]
TestNodeResourcePartialDataScorePlugin = [
    ("No data at all, MostAllocated strategy", "MostAllocated", {}),
    ("No data at all, LeastAllocated strategy", "LeastAllocated", {}),
    ("No data at all, BalancedAllocation strategy", "BalancedAllocation", {}),
    ("One node with NRT data, MostAllocated strategy", "MostAllocated", {"Node1": 27}),
    ("One node with NRT data, LeastAllocated strategy", "LeastAllocated", {"Node1": 73}),
    ("One node with NRT data, BalancedAllocation strategy", "BalancedAllocation", {"Node1": 89}),
]
DEFAULT, FOUR = "default", "four"
TestNodeResourceScorePluginLeastNUMA = [
    ("container scope, one container case 1", BEST_CONTAINER, [asks("2")], [94, 94, 94]),
    ("container scope, one container case 2", BEST_CONTAINER, [asks("4")], [94, 82, 94]),
    ("container scope, one container case 3", BEST_CONTAINER, [asks("6")], [82, 0, 94]),
    ("container scope, two containers case 1", BEST_CONTAINER, [asks("2")] * 2, [94, 94, 94]),
    (
        "container scope, two containers case 2",
        BEST_CONTAINER,
        [asks("1"), asks("3")],
        [94, 82, 94],
    ),
    ("container scope, two containers case 3", BEST_CONTAINER, [asks("5"), asks("3")], [82, 0, 94]),
    (
        "container scope, two containers non NUMA resource",
        BEST_CONTAINER,
        [{NO_NUMA: "1"}, {NO_NUMA: "2"}],
        [100] * 3,
    ),
    ("pod scope, two containers case 1", BEST_POD, [asks("2")] * 2, [94, 82, 82]),
    ("pod scope, two containers case 2", BEST_POD, [asks("1"), asks("3")], [94, 82, 82]),
    ("pod scope, two containers case 3", BEST_POD, [asks("5"), asks("3")], [82, 0, 82]),
    ("pod scope, one containers non NUMA resource", BEST_POD, [{NO_NUMA: "1"}], [100] * 3),
    ("container scope, one container, 4 NUMA nodes, 1 gpu ", FOUR, [asks("2", gpu="1")], [94, 94]),
    ("container scope, one container, 4 NUMA nodes, 2 gpu ", FOUR, [asks("2", gpu="2")], [82, 76]),
    (
        "container scope, 2 containers, 4 NUMA nodes, 2 gpu in one container ",
        FOUR,
        [asks("2", gpu="2"), asks("2")],
        [82, 76],
    ),
]


def _cases(table: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [pytest.param(*row[1:], id=row[0]) for row in table]


def best_of(by_name: dict[str, int]) -> str:
    return max(by_name, key=lambda name: by_name[name])


@pytest.mark.parametrize(("name", "expected"), _cases(TestNodeResourceScorePlugin))
def test_the_best_node_and_its_score(name, expected):
    found = by_node(nodes_of(default_numa_nodes(SINGLE)), POD1, name)
    best = best_of(found)
    assert {best: found[best]} == expected


@pytest.mark.parametrize(("name", "expected"), _cases(TestNodeResourcePartialDataScorePlugin))
def test_nodes_without_a_topology_score_zero(name, expected):
    without = [each for each in ("Node1", "Node2", "Node3") if each not in expected]
    snapshot = nodes_of(default_numa_nodes(SINGLE), without=without)
    assert by_node(snapshot, POD1, name) == {**dict.fromkeys(without, 0), **expected}


@pytest.mark.parametrize(
    ("nodes", "containers", "expected"), _cases(TestNodeResourceScorePluginLeastNUMA)
)
def test_the_fewest_numa_nodes(nodes, containers, expected):
    topologies = four_numa_nodes() if nodes == FOUR else default_numa_nodes(nodes)
    found = by_node(nodes_of(topologies), pod_of(containers), "LeastNUMANodes")
    assert list(found.values()) == expected

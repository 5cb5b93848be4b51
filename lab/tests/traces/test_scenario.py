"""The file of a scenario: read whole, every fault listed, unknown fields refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.tests.traces.scenes import nodes, pods
from moorage.base.errors import ConfigError
from moorage_lab.traces.scenario import API_VERSION, KIND, read_scenario, scenario_of

_HEAD = {"apiVersion": API_VERSION, "kind": KIND}


def faults(**changes: Any) -> list[str]:
    """Return the faults of a scenario with changes."""
    value = {**_HEAD, "nodes": [nodes()], "pods": [pods()], **changes}
    try:
        scenario_of(value, folder=Path())
    except ConfigError as error:
        return list(error.faults)
    return []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"podz": [], "seeds": 0},
            [
                'unknown field "podz" (did you mean "pods"?)',
                "seeds: Invalid value: 0: write a number from 1 on, or different seeds",
            ],
            id="an unknown field and no seeds",
        ),
        pytest.param(
            {"nodes": [{"shape": "cpu=1", "file": "n.yaml"}, {"file": "n.yaml", "count": 3}]},
            [
                "nodes[0]: Invalid value: file and shape: write exactly one of file, trace, shape",
                "nodes[0].count: Required value: how many of the shape",
                "nodes[1].count: Invalid value: 3: only a shape has a count",
            ],
            id="two sources at once, and a count of a file",
        ),
        pytest.param(
            {"pods": [{"arrivals": {"kind": "often", "every": "1x", "speed": 0}}]},
            [
                'pods[0].arrivals.kind: Unsupported value: "often": supported values: "bursts", '
                '"daily", "given", "poisson", "spaced", "together"',
                "pods[0]: Invalid value: none: write exactly one of file, trace, events, template",
                'pods[0].arrivals.every: Invalid value: "1x": write a duration, such as 90s, 5m '
                "or 1h30m",
                "pods[0].arrivals.speed: Invalid value: 0.0: must be greater than 0",
            ],
            id="no source, and four faults of arrivals",
        ),
        pytest.param(
            {"nodes": [], "pods": []},
            [
                "nodes: Required value: there are no nodes",
                "pods: Required value: there are no pods",
            ],
            id="no nodes and no pods",
        ),
        pytest.param(
            {
                "configurations": [{"name": "a"}, {"name": "a"}],
                "grid": {"a": [], "A.b": [1]},
                "failures": [{"node": "n", "at": "-1s"}],
                "load": {"share": -1.0},
            },
            [
                'failures[0].at: Invalid value: "-1s": is negative',
                "load.share: Invalid value: -1.0: must be greater than 0",
                'configurations[1].name: Invalid value: "a": every configuration has its own',
                'grid[a]: Invalid value: "a": write Plugin.argument or weights.Plugin',
                "grid[a]: Required value: there are no values",
            ],
            id="configurations of one name, an empty grid, a negative time and load",
        ),
        pytest.param(
            {"seeds": [3, 3]},
            ["seeds: Invalid value: [3,3]: write a number from 1 on, or different seeds"],
            id="a seed that is given twice",
        ),
    ],
)
def test_every_fault_is_listed(changes: dict[str, Any], expected: list[str]) -> None:
    assert faults(**changes) == expected


def test_files_are_found_beside_the_scenario(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        f"""
apiVersion: {API_VERSION}
kind: {KIND}
nodes:
- file: nodes.yaml
pods:
- trace: /elsewhere/pods.csv
  columns: {{name: pod}}
configurations:
- {{name: own, file: own.yaml, plugins: [score.py:own, package.module:other]}}
"""
    )
    scenario = read_scenario(file)
    assert scenario.nodes[0].file == str(tmp_path / "nodes.yaml")
    assert scenario.pods[0].trace == "/elsewhere/pods.csv"
    assert scenario.configurations[0].file == str(tmp_path / "own.yaml")
    assert scenario.configurations[0].plugins == [
        f"{tmp_path}/score.py:own",
        "package.module:other",
    ]


def test_seeds_are_counted_or_listed() -> None:
    counted = scenario_of(
        {**_HEAD, "nodes": [nodes()], "pods": [pods()], "seeds": 3}, folder=Path()
    )
    listed = scenario_of(
        {**_HEAD, "nodes": [nodes()], "pods": [pods()], "seeds": [7, 42]}, folder=Path()
    )
    assert (counted.seed_list, listed.seed_list) == ([1, 2, 3], [7, 42])

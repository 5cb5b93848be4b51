"""What describing a node says its pods request: as the scheduler counts it.

Whole descriptions are in test_commands.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.cli.describe.text import node_lines


def _pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "web"}, "spec": spec, "status": {}}


def _asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("pods", "cpu"),
    [
        pytest.param([], "0", id="no pods"),
        pytest.param([_pod(containers=[_asks("1"), _asks("250m")])], "1250m", id="containers add"),
        pytest.param(
            [_pod(containers=[_asks("1")], initContainers=[_asks("3")])],
            "3",
            id="init containers run before the others",
        ),
        pytest.param(
            [
                _pod(
                    containers=[_asks("1")],
                    initContainers=[_asks("1", restartPolicy="Always"), _asks("3")],
                )
            ],
            "4",
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            [_pod(containers=[_asks("1")], overhead={"cpu": "500m"})],
            "1500m",
            id="overhead comes on top",
        ),
        pytest.param(
            [_pod(containers=[_asks("1")], resources={"requests": {"cpu": "2"}})],
            "2",
            id="pod-level requests replace the containers' requests",
        ),
        pytest.param(
            [{**_pod(containers=[_asks("1")]), "status": {"phase": "Succeeded"}}],
            "0",
            id="finished pods take nothing",
        ),
    ],
)
def test_requested_cpu_of_a_node(pods, cpu):
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}
    live = [pod for pod in pods if not pod["status"]]
    lines = node_lines(node, pods)
    first = lines.index("Resources:") + 1
    assert [line.split() for line in lines[first : first + 3]] == [
        ["RESOURCE", "ALLOCATABLE", "REQUESTED"],
        ["cpu", "8", cpu],
        ["pods", "110", str(len(live))],
    ]

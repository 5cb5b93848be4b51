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


def _with_gpus(name: str, *, index: str = "", milli: str = "1000", **spec: Any) -> dict[str, Any]:
    prefix = "alibabacloud.com/gpu-"
    notes = {f"{prefix}milli": milli, f"{prefix}index": index} if index else {}
    metadata = {"namespace": "default", "name": name, "uid": name, "annotations": notes}
    return {"metadata": metadata, "spec": spec, "status": {}}


def test_every_gpu_of_a_node_has_a_row():
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "3"}}}
    whole = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    pods = [
        _with_gpus("a", index="0", milli="460", containers=[{"name": "main"}]),
        _with_gpus("b", index="0", milli="300", containers=[{"name": "main"}]),
        _with_gpus("c", containers=[whole]),
    ]
    lines = node_lines(node, pods)
    assert "  nvidia.com/gpu   3             1.76" in lines
    assert lines[lines.index("Devices:") + 1 :] == [
        "  POOL             DEVICE      USED   BY",
        "  nvidia.com/gpu   0           0.76   default/a 0.46, default/b 0.3",
        "  nvidia.com/gpu   1           0      <none>",
        "  nvidia.com/gpu   2           0      <none>",
        "  nvidia.com/gpu   <unknown>   1      default/c 1",
    ]


def test_a_node_of_which_nobody_says_which_gpus_it_has_has_no_rows():
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "3"}}}
    assert "Devices:" not in node_lines(node, [])

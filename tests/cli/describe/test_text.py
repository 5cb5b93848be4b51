"""What describing a node says its pods request: as the scheduler counts it.

Whole descriptions are in test_commands.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage_sandbox.cli.describe.devices import device_lines
from moorage_sandbox.cli.describe.text import node_lines
from scheduler.tests.plugins.claims.builders import allocated, claim, offered, result


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
    assert "  nvidia.com/gpu   3             1.76" in node_lines(node, pods)
    assert device_lines(from_dict(Node, node), [from_dict(Pod, pod) for pod in pods])[1:] == [
        "  POOL             DEVICE      USED   BY",
        "  nvidia.com/gpu   0           0.76   default/a 0.46, default/b 0.3",
        "  nvidia.com/gpu   1           0      <none>",
        "  nvidia.com/gpu   2           0      <none>",
        "  nvidia.com/gpu   <unknown>   1      default/c 1",
    ]


def test_a_node_of_which_nobody_says_which_gpus_it_has_has_no_rows():
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "3"}}}
    assert device_lines(from_dict(Node, node), []) == []


def test_every_device_of_a_pool_of_which_a_pod_has_one_has_a_row():
    slices = [offered("n", "gpu-0", "gpu-1", capacity={"memory": {"value": "40Gi"}})]
    share: dict[str, Any] = {"shareID": "s", "consumedCapacity": {"memory": "10Gi"}}
    claims = [
        claim("whole", allocation=allocated("n", result("n", "gpu-1")), reserved=("a", "b")),
        claim("share", allocation=allocated("n", result("n", "gpu-0", **share)), reserved=("a",)),
    ]
    node = from_dict(Node, {"metadata": {"name": "n"}})
    pods = [
        from_dict(Pod, {"metadata": {"namespace": "default", "name": name, "uid": name}})
        for name in ("a", "b", "c")
    ]
    assert device_lines(node, pods, claims, slices) == [
        "Devices:",
        "  POOL            DEVICE   USED   BY",
        "  gpu.example/n   gpu-0    0.25   default/a 0.25",
        "  gpu.example/n   gpu-1    1      default/a 0.5, default/b 0.5",
    ]

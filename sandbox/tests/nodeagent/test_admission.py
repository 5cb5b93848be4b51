"""What a node refuses, with a kubelet's reason and words."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage_sandbox.nodeagent.admission import NodeLoad, Refusal, refuse

ROOM = {"cpu": "2", "memory": "1Gi", "pods": "3", "example.com/gpu": "1"}


def node(**more: Any) -> Node:
    metadata = {"name": "n", "labels": {"zone": "a"}}
    return from_dict(
        Node,
        {"metadata": metadata, "spec": more, "status": {"allocatable": ROOM}},
    )


def pod(name: str = "p", **spec: Any) -> Pod:
    requests = spec.pop("requests", {})
    ports = spec.pop("ports", [])
    container = {"name": "c", "resources": {"requests": requests}, "ports": ports}
    metadata = {"namespace": "ns", "name": name, "uid": f"uid-{name}"}
    return from_dict(Pod, {"metadata": metadata, "spec": {"containers": [container], **spec}})


def short(name: str, requested: int, used: int, capacity: int) -> Refusal:
    return Refusal(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, "
        f"requested: {requested}, used: {used}, capacity: {capacity}",
    )


AFFINITY = Refusal(
    "NodeAffinity",
    "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
)
PORTS = Refusal(
    "NodePorts",
    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
)
TAINT = Refusal(
    "TaintToleration",
    "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
)


def zone_in(*values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def taint(effect: str) -> dict[str, Any]:
    return {"taints": [{"key": "k", "effect": effect}]}


PORT_80: dict[str, Any] = {"ports": [{"containerPort": 80, "hostPort": 80}]}
PORT_80_ON_LOOPBACK = {"ports": [{"hostPort": 80, "hostIP": "127.0.0.1"}]}
PORT_80_ELSEWHERE = {"ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]}
PORT_80_UDP = {"ports": [{"hostPort": 80, "protocol": "UDP"}]}
EXISTS = [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("others", "wanted", "spec", "expected"),
    [
        pytest.param([], {}, {}, None, id="a pod without wishes is taken"),
        pytest.param([], {"requests": {"cpu": "2"}}, {}, None, id="a pod may fill the node"),
        pytest.param([{}] * 3, {}, {}, short("pods", 1, 3, 3), id="no room for one more pod"),
        pytest.param(
            [{"requests": {"cpu": "500m"}}],
            {"requests": {"cpu": "1600m"}},
            {},
            short("cpu", 1600, 500, 2000),
            id="not enough cpu, told in millicores",
        ),
        pytest.param(
            [],
            {"requests": {"cpu": "3", "memory": "2Gi"}},
            {},
            short("cpu", 3000, 0, 2000),
            id="of several lacks the first is told",
        ),
        pytest.param(
            [],
            {"requests": {"memory": "2Gi"}},
            {},
            short("memory", 2 << 30, 0, 1 << 30),
            id="not enough memory, told in bytes",
        ),
        pytest.param(
            [],
            {"requests": {"ephemeral-storage": "1"}},
            {},
            short("ephemeral-storage", 1, 0, 0),
            id="no disk at all",
        ),
        pytest.param(
            [{"requests": {"example.com/gpu": "1"}}],
            {"requests": {"example.com/gpu": "1"}},
            {},
            short("example.com/gpu", 1, 1, 1),
            id="an extended resource that is used up",
        ),
        pytest.param(
            [],
            {"requests": {"example.com/unknown": "1"}},
            {},
            None,
            id="an extended resource the node never heard of is not its business",
        ),
        pytest.param([], {"nodeSelector": {"zone": "b"}}, {}, AFFINITY, id="another nodeSelector"),
        pytest.param(
            [], {"nodeSelector": {"zone": "a"}}, {}, None, id="the nodeSelector of the node"
        ),
        pytest.param([], {"affinity": zone_in("b", "c")}, {}, AFFINITY, id="another zone"),
        pytest.param([], {"affinity": zone_in("a")}, {}, None, id="the zone of the node"),
        pytest.param([PORT_80], PORT_80, {}, PORTS, id="a host port that is taken"),
        pytest.param([PORT_80], PORT_80_UDP, {}, None, id="the same port of another protocol"),
        pytest.param(
            [PORT_80], PORT_80_ON_LOOPBACK, {}, PORTS, id="a wildcard takes the port everywhere"
        ),
        pytest.param(
            [PORT_80_ON_LOOPBACK], PORT_80_ELSEWHERE, {}, None, id="another address is free"
        ),
        pytest.param([], {}, taint("NoExecute"), TAINT, id="a NoExecute taint"),
        pytest.param([], {}, taint("NoSchedule"), None, id="NoSchedule is for schedulers"),
        pytest.param(
            [], {"tolerations": EXISTS}, taint("NoExecute"), None, id="a tolerated NoExecute taint"
        ),
        pytest.param(
            [],
            {"requests": {"cpu": "lots"}},
            {},
            Refusal(
                "UnexpectedAdmissionError",
                "Cannot read a quantity: quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            id="a quantity that is none",
        ),
    ],
)
def test_a_pod_that_does_not_fit_its_node_is_refused(others, wanted, spec, expected):
    load = NodeLoad()
    for number, other in enumerate(others):
        load.add(pod(f"other-{number}", **other))
    assert refuse(pod(**wanted), node(**spec), load) == expected


def test_a_removed_pod_frees_its_resources_and_ports():
    load = NodeLoad()
    first = pod("first", requests={"cpu": "2"}, **PORT_80)
    load.add(first)
    load.add(first)
    assert (len(load), load.used("cpu")) == (1, 2000)
    load.remove(first.uid)
    load.remove("never seen")
    assert refuse(pod(requests={"cpu": "2"}, **PORT_80), node(), load) is None

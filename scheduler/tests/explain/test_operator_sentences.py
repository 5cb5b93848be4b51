"""Sentences that an operator can act on: names, amounts, places, and "never" where it is so.

Each case is one line of trouble that an operator meets; the whole sentence is compared.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.explain.answer import Where
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting
from scheduler.tests.explain.planted_devices import (
    device_class,
    offered,
    resource_claim,
    taken,
    using,
)
from scheduler.tests.explain.planted_volumes import claim, mounted

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEVER = "never fits here, not even on an empty node, because of"


def _nodes(count: int, **fields: Any) -> list[Manifest]:
    return [node_manifest(f"n{index}", **fields) for index in range(count)]


def _condition(name: str, *effects: str) -> list[dict[str, str]]:
    return [{"key": f"node.kubernetes.io/{name}", "effect": effect} for effect in effects]


def _taint(key: str) -> dict[str, str]:
    return {"key": key, "value": "1", "effect": "NoSchedule"}


def _affinity(kind: str, key: str, **selector: Any) -> dict[str, Any]:
    return {kind: {REQUIRED: [{"labelSelector": selector, "topologyKey": key}]}}


def _near_redis(key: str) -> Manifest:
    return waiting("p", affinity=_affinity("podAffinity", key, matchLabels={"app": "redis"}))


def _near_both(key: str, *labels: str) -> dict[str, Any]:
    terms = [
        {"labelSelector": {"matchLabels": {label: "1"}}, "topologyKey": key} for label in labels
    ]
    return {"podAffinity": {REQUIRED: terms}}


def _redis(node: str, **fields: Any) -> Manifest:
    return bound("redis", node, labels={"app": "redis"}, **fields)


def _init(name: str, cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    return {"name": name, "image": "registry.example/app:1", "resources": resources}


def _of_daemon_set(name: str, node: str, **fields: Any) -> Manifest:
    pod = bound(name, node, **fields)
    pod["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": "agent",
            "uid": "of-agent",
            "controller": True,
        }
    ]
    return pod


def _nominated(node: str, **fields: Any) -> Manifest:
    pod = waiting("first", priority=10, **fields)
    pod["status"] = {"nominatedNodeName": node}
    return pod


def _deleted_claim() -> Manifest:
    found = claim(volumeName="pv")
    found["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    return found


def _class_of(driver: str) -> Manifest:
    expression = f'device.driver == "{driver}"'
    return {**device_class(), "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def _of_driver(driver: str, node: str) -> Manifest:
    found = offered(node)
    found["spec"]["driver"] = driver
    return found


def _without_plugin(name: str, capacity: str) -> Manifest:
    node = node_manifest(name)
    node["status"]["capacity"]["example.com/gpu"] = capacity
    node["status"]["allocatable"]["example.com/gpu"] = "0"
    return node


def _asking_for_gpus(count: str) -> dict[str, Any]:
    amounts = {"example.com/gpu": count}
    resources = {"requests": amounts, "limits": amounts}
    return {"name": "main", "image": "registry.example/app:1", "resources": resources}


CASES = [
    pytest.param(
        [
            *_nodes(3, unschedulable=True, taints=_condition("unschedulable", "NoSchedule")),
            waiting("p"),
        ],
        Where.REJECTED,
        "fits on no node now: all 3 nodes are cordoned (n0, n1, n2)",
        id="a cordon and its taint are one cause, which ends",
    ),
    pytest.param(
        [*_nodes(2, taints=_condition("not-ready", "NoSchedule", "NoExecute")), waiting("p")],
        Where.REJECTED,
        "fits on no node now: 2 of 2 nodes are not ready (n0, n1)",
        id="nodes that are not ready",
    ),
    pytest.param(
        [
            *_nodes(1, unschedulable=True, taints=_condition("unschedulable", "NoSchedule")),
            node_manifest("dead", taints=_condition("not-ready", "NoSchedule", "NoExecute")),
            waiting("p"),
        ],
        Where.REJECTED,
        "fits on no node now: 1 of 2 nodes is cordoned (n0); 1 of 2 nodes is not ready (dead)",
        id="a cordoned node, and one that is not ready: each is counted once",
    ),
    pytest.param(
        [
            node_manifest("full", taints=_condition("disk-pressure", "NoSchedule")),
            node_manifest("small", cpu="1"),
            waiting("p", cpu="2"),
        ],
        Where.REJECTED,
        "fits on no node now: 1 of 2 nodes is under disk pressure (full)",
        id="a node under pressure, next to a node that is too small for ever",
    ),
    pytest.param(
        [*_nodes(2, unschedulable=True), bound("w", "n0", cpu="4"), waiting("p", cpu="1")],
        Where.REJECTED,
        "fits on no node now: all 2 nodes are cordoned (n0, n1)",
        id="of two cordoned nodes one is full as well",
    ),
    pytest.param(
        [
            *_nodes(1, labels={"zone": "a"}),
            _redis("n0", namespace="other"),
            _near_redis("zone"),
        ],
        Where.REJECTED,
        "fits on no node now: its required pod affinity (app=redis over zone), as no pod on a node "
        "in namespace default matches app=redis (1 in namespace other would)",
        id="the partner of an affinity is in another namespace",
    ),
    pytest.param(
        [
            *_nodes(1, labels={"zone": "a"}),
            bound("x", "n0", labels={"a": "1"}),
            bound("y", "n0", labels={"b": "1"}),
            waiting("p", affinity=_near_both("zone", "a", "b")),
        ],
        Where.REJECTED,
        "fits on no node now: its required pod affinity (a=1 over zone) and (b=1 over zone), as "
        "no pod matches all of these terms",
        id="a partner has to match all terms",
    ),
    pytest.param(
        [*_nodes(2), _redis("n0"), _near_redis("rack")],
        Where.NEVER,
        f"{NEVER} its required pod affinity (app=redis over rack), a label that no node has",
        id="no node has the label of an affinity",
    ),
    pytest.param(
        [
            node_manifest("a", labels={"zone": "a"}, taints=[_taint("team")]),
            node_manifest("b", labels={"zone": "b"}),
            _redis("a"),
            _near_redis("zone"),
        ],
        Where.REJECTED,
        "fits on no node now: its required pod affinity (app=redis over zone), whose pods are in "
        "zone a",
        id="the partners of an affinity are elsewhere",
    ),
    pytest.param(
        [
            *_nodes(2),
            bound("w0", "n0", host_ports=[443]),
            bound("w1", "n1", host_ports=[443]),
            waiting("p", host_ports=[443]),
        ],
        Where.REJECTED,
        "would fit on 2 nodes of 2 but for the host port 443/TCP, which pod default/w0 and 1 more "
        "have",
        id="the pods that have a host port are named",
    ),
    pytest.param(
        [
            *_nodes(1, labels={"zone": "a"}),
            bound(
                "shy",
                "n0",
                affinity=_affinity("podAntiAffinity", "zone", matchLabels={"app": "p"}),
            ),
            waiting("p", labels={"app": "p"}),
        ],
        Where.REJECTED,
        "would fit on 1 node of 1 but for the required anti-affinity of pod default/shy (app=p "
        "over zone)",
        id="the pods whose anti-affinity stands in the way are named",
    ),
    pytest.param(
        [
            *_nodes(1),
            bound("w", "n0", labels={"x": "1"}),
            waiting(
                "p",
                affinity=_affinity(
                    "podAntiAffinity",
                    "kubernetes.io/hostname",
                    matchExpressions=[{"key": "x", "operator": "Exists"}],
                ),
            ),
        ],
        Where.REJECTED,
        "would fit on 1 node of 1 but for its required pod anti-affinity (x Exists over "
        "kubernetes.io/hostname) to pod default/w",
        id="an expression without values has no empty list",
    ),
    pytest.param(
        [
            node_manifest("a", labels={"disktype": "hdd"}),
            node_manifest("b", labels={"disktype": "ssd"}),
            waiting("p", node_selector={"disktype": "sdd"}),
        ],
        Where.NEVER,
        f"{NEVER} its nodeSelector disktype=sdd (nodes have hdd, ssd)",
        id="the values that a label has",
    ),
    pytest.param(
        [
            node_manifest("a", taints=[_taint("a")]),
            node_manifest("b", taints=[_taint("b")]),
            waiting("p"),
        ],
        Where.NEVER,
        f"{NEVER} the taints a=1:NoSchedule of a, b=1:NoSchedule of b, which it does not tolerate",
        id="which taint is on which node",
    ),
    pytest.param(
        [*_nodes(1), waiting("p", initContainers=[_init("setup", "24"), _init("small", "1")])],
        Where.NEVER,
        f"{NEVER} cpu (it requests 24 for its init container setup, the largest of these nodes "
        "has 4)",
        id="the init container that requests most",
    ),
    pytest.param(
        [
            *_nodes(2),
            _of_daemon_set("agent-0", "n0", cpu="1500m"),
            _of_daemon_set("agent-1", "n1", cpu="1500m"),
            waiting("p", cpu="3"),
        ],
        Where.NEVER,
        f"{NEVER} cpu (it requests 3, the largest of these nodes has 2500m next to DaemonSet "
        "agent's pod default/agent-0, which takes 1500m, and 1 more)",
        id="the pods of a DaemonSet stay",
    ),
    pytest.param(
        [
            *_nodes(1),
            _of_daemon_set("agent", "n0", cpu="1500m"),
            waiting("p", cpu="3", priority=10),
        ],
        Where.REJECTED,
        "would fit on 1 node of 1 but for cpu (it requests 3, the most that is free on one of them "
        "is 2500m)",
        id="a pod of a DaemonSet with less priority may be preempted",
    ),
    pytest.param(
        [
            node_manifest("n", cpu="2", pods="1"),
            bound("w", "n"),
            waiting("p", cpu="3"),
        ],
        Where.NEVER,
        f"{NEVER} cpu (it requests 3, the largest of these nodes has 2)",
        id="the number of pods is no cause for ever",
    ),
    pytest.param(
        [*_nodes(1), _nominated("n0", cpu="3"), bound("w", "n0", cpu="1"), waiting("p", cpu="2")],
        Where.REJECTED,
        "would fit on 1 node of 1 but for cpu (it requests 2, the most that is free on one of them "
        "is 0 next to nominated pod default/first, which takes 3)",
        id="amounts next to a nominated pod",
    ),
    pytest.param(
        [*_nodes(1), _nominated("n0", host_ports=[80]), waiting("p", host_ports=[80, 81])],
        Where.REJECTED,
        "would fit on 1 node of 1 but for the host port 80/TCP, which pod default/first has",
        id="a host port that a nominated pod has",
    ),
    pytest.param(
        [*_nodes(1), _deleted_claim(), waiting("p", volumes=mounted())],
        Where.REJECTED,
        "is not tried on any node, because of its claim data, which is being deleted "
        '(VolumeBinding: persistentvolumeclaim "data" is being deleted)',
        id="a claim that is being deleted",
    ),
    pytest.param(
        [
            *_nodes(1),
            device_class(),
            resource_claim(),
            offered("n0"),
            resource_claim("of-w", status=taken("n0", by="w")),
            bound("w", "n0", resourceClaims=using("of-w")),
            waiting("p", resourceClaims=using()),
        ],
        Where.REJECTED,
        "would fit on 1 node of 1 but for its resource claim c (device class gpu), whose devices "
        "on these nodes other pods have (it asks for 1; pod default/w has 1)",
        id="who has the devices of a claim, and how many",
    ),
    pytest.param(
        [
            *_nodes(1),
            device_class(),
            resource_claim(count=3),
            offered("n0"),
            waiting("p", resourceClaims=using()),
        ],
        Where.NEVER,
        f"{NEVER} its resource claim c (device class gpu), which asks for more devices than these "
        "nodes offer (it asks for 3, one of these nodes has 1 at most)",
        id="how many devices a claim asks for, and a node has",
    ),
    pytest.param(
        [*_nodes(1), device_class(), resource_claim(), waiting("p", resourceClaims=using())],
        Where.REJECTED,
        "fits on no node now: its resource claim c (device class gpu), for which these nodes "
        "offer no device",
        id="a device that no driver offers yet",
    ),
    pytest.param(
        [
            *_nodes(1),
            _class_of("gpu.example"),
            resource_claim(),
            _of_driver("nic.example", "n0"),
            waiting("p", resourceClaims=using()),
        ],
        Where.REJECTED,
        "fits on no node now: its resource claim c (device class gpu), for which these nodes "
        "offer no device",
        id="a driver that does not offer its devices yet, next to another driver",
    ),
    pytest.param(
        [
            *_nodes(2, taints=[{"key": "cni.example/agent-not-ready", "effect": "NoExecute"}]),
            waiting("p"),
        ],
        Where.REJECTED,
        "fits on no node now: 2 of 2 nodes are tainted cni.example/agent-not-ready (n0, n1)",
        id="a taint of an agent that has not started",
    ),
    pytest.param(
        [_without_plugin("n0", "2"), waiting("p", containers=[_asking_for_gpus("2")])],
        Where.REJECTED,
        "fits on no node now: example.com/gpu (it requests 2, these nodes have it, but offer none "
        "now)",
        id="a device plugin that has not started",
    ),
    pytest.param(
        [_without_plugin("n0", "2"), waiting("p", containers=[_asking_for_gpus("4")])],
        Where.NEVER,
        f"{NEVER} example.com/gpu (it requests 4, none of these nodes has any)",
        id="more of an extended resource than the node's capacity",
    ),
    pytest.param(
        [
            node_manifest("a", cpu="4", memory="1Gi"),
            node_manifest("b", cpu="1", memory="8Gi"),
            waiting("p", cpu="2", memory="2Gi"),
        ],
        Where.NEVER,
        f"{NEVER} cpu (it requests 2, the largest of these nodes has 1) on 1 of them, and memory "
        "(it requests 2Gi, the largest of these nodes has 1Gi) on 1 of them",
        id="one resource is too small on one node, another on the other",
    ),
]


@pytest.mark.parametrize(("manifests", "where", "sentence"), CASES)
def test_the_sentence_says_what_an_operator_needs(
    manifests: list[Manifest], where: Where, sentence: str
) -> None:
    found = explained(*manifests)
    assert found.sentence == sentence
    assert found.where is where

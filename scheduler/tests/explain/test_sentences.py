"""The first sentence and the suggestions of a pod, by the one thing that is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.explain.answer import Where
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting

TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
ZONES = [{"zone": zone} for zone in "abc"]


def _nodes(**fields: Any) -> list[Manifest]:
    """Return three nodes of four cores, one in each zone."""
    return [
        node_manifest(f"n{index}", labels=labels, **fields) for index, labels in enumerate(ZONES)
    ]


def _filled(cpu: str = "3", **fields: Any) -> list[Manifest]:
    """Return three nodes with a pod on each."""
    pods = [bound(f"w{i}", f"n{i}", cpu=cpu, labels={"app": "w"}, **fields) for i in range(3)]
    return [*_nodes(), *pods]


def _affinity(kind: str, app: str, key: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "p"}},
}
HOSTNAME = "kubernetes.io/hostname"

CASES = [
    pytest.param(
        [*_nodes(), waiting("p", cpu="64")],
        "never fits here, not even on an empty node, because of cpu (it requests 64, the "
        "largest of these nodes has 4)",
        ["node", "request"],
        id="a request larger than every node",
    ),
    pytest.param(
        [*_filled(), waiting("p", cpu="2")],
        "would fit on 3 nodes of 3 but for cpu (it requests 2, the most that is free on one of "
        "them is 1)",
        ["evict", "request", "priority", "node"],
        id="a request larger than the room that is left",
    ),
    pytest.param(
        [*_nodes(taints=[TAINT]), waiting("p")],
        "never fits here, not even on an empty node, because of the taint dedicated=db:NoSchedule, "
        "which it does not tolerate",
        ["toleration", "taint"],
        id="a taint on every node",
    ),
    pytest.param(
        [*_nodes(), waiting("p", node_selector={"disk": "ssd", "zone": "a"})],
        "never fits here, not even on an empty node, because of its nodeSelector disk=ssd (no "
        "node has the label disk) and zone=a on 2 of them",
        ["selector", "label"],
        id="a selector that no node matches",
    ),
    pytest.param(
        [*_nodes(unschedulable=True), waiting("p")],
        "fits on no node now: all 3 nodes are cordoned (n0, n1, n2)",
        ["uncordon"],
        id="cordoned nodes",
    ),
    pytest.param(
        [*_filled("1", host_ports=[80]), waiting("p", host_ports=[80])],
        "would fit on 3 nodes of 3 but for the host port 80/TCP, which pod default/w0 and 2 more "
        "have",
        ["host port", "evict", "priority", "node"],
        id="a host port that other pods have",
    ),
    pytest.param(
        [*_nodes(), waiting("p", affinity=_affinity("podAffinity", "none", "zone"))],
        "fits on no node now: its required pod affinity (app=none over zone), as no pod on a node "
        "in namespace default matches app=none",
        ["affinity term"],
        id="a pod affinity to no pod",
    ),
    pytest.param(
        [*_filled("1"), waiting("p", affinity=_affinity("podAntiAffinity", "w", HOSTNAME))],
        "would fit on 3 nodes of 3 but for its required pod anti-affinity (app=w over "
        "kubernetes.io/hostname) to pod default/w0 and 2 more",
        ["affinity term", "evict", "priority", "node"],
        id="an anti-affinity to pods on every node",
    ),
    pytest.param(
        [
            *_filled("1", affinity=_affinity("podAntiAffinity", "p", HOSTNAME)),
            waiting("p", labels={"app": "p"}),
        ],
        "would fit on 3 nodes of 3 but for the required anti-affinity of pod default/w0 and 2 more "
        "(app=p over kubernetes.io/hostname)",
        ["evict", "priority", "node"],
        id="the anti-affinity of pods on every node",
    ),
    pytest.param(
        [
            *_nodes()[:2],
            bound("w", "n0", cpu="4"),
            bound("q", "n1", labels={"app": "p"}),
            waiting("p", cpu="1", labels={"app": "p"}, topologySpreadConstraints=[SPREAD]),
        ],
        "would fit on 1 node of 2 but for cpu (it requests 1, the most that is free on one of "
        "them is 0); on 1 more but for its topology spread constraint over zone (maxSkew 1)",
        ["constraint", "evict", "priority", "node"],
        id="of several sets of one size the set of the most nodes, then in the profile's order",
    ),
    pytest.param(
        [
            *_nodes(),
            waiting("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]),
        ],
        "is not tried on any node, because of its claim gone, which does not exist in namespace "
        'default (VolumeRestrictions: persistentvolumeclaim "gone" not found)',
        [],
        id="a claim that is not there",
    ),
]


@pytest.mark.parametrize(("manifests", "sentence", "kinds"), CASES)
def test_the_cause_is_named_and_suggestions_are_found(
    manifests: list[Manifest], sentence: str, kinds: list[str]
) -> None:
    found = explained(*manifests)
    assert found.sentence == sentence
    assert [way.kind for way in found.suggestions] == kinds


def test_the_request_that_fits_is_exact() -> None:
    """With one millicore more, no node takes the pod."""
    found = explained(
        *_nodes(),
        *[bound(f"w{i}", f"n{i}", cpu=f"31{i}7m") for i in range(3)],
        waiting("p", cpu="2"),
    )
    way = next(each for each in found.suggestions if each.kind == "request")
    assert way.text == "request at most 893m cpu instead of 2"
    path = "/spec/containers/0/resources/requests/cpu"
    assert way.patch == ({"op": "add", "path": path, "value": "893m"},)
    assert (way.node, way.nodes) == ("n0", 1)


def test_several_requests_that_are_too_large_are_lowered_together() -> None:
    """Neither less cpu nor less memory alone would do."""
    found = explained(*_nodes(), waiting("p", cpu="500", memory="1Ti"))
    assert [way.text for way in found.suggestions] == [
        "request at most 4 cpu instead of 500 and at most 8Gi memory instead of 1Ti"
    ]


def test_closed_nodes_are_set_aside_while_others_could_take_the_pod() -> None:
    """Of two tainted nodes and one full node the full node is the cause."""
    closed = [node_manifest(f"t{i}", taints=[TAINT]) for i in range(2)]
    found = explained(*closed, node_manifest("n"), bound("w", "n", cpu="4"), waiting("p", cpu="1"))
    assert found.where is Where.REJECTED
    assert found.sentence == (
        "would fit on 1 node of 3 but for cpu (it requests 1, the most that is free on one of "
        "them is 0)"
    )


def test_nodes_that_the_pod_does_not_choose_come_last() -> None:
    """The taint of the node in the pod's zone is the cause, not its selector."""
    found = explained(
        node_manifest("a", labels={"zone": "a"}, taints=[TAINT]),
        *[node_manifest(f"b{i}", labels={"zone": "b"}) for i in range(5)],
        waiting("p", node_selector={"zone": "a"}),
    )
    assert [cause.plugins for cause in found.causes] == [("TaintToleration",), ("NodeAffinity",)]
    assert [cause.nodes for cause in found.causes] == [1, 5]
    kinds = [way.kind for way in found.suggestions]
    assert kinds == ["toleration", "selector", "label", "taint"]


def test_the_least_important_pod_is_the_one_to_evict() -> None:
    """Either pod would do; the important one is on the node that lacks less."""
    found = explained(
        *_nodes()[:2],
        bound("important", "n0", cpu="3", priority=1000),
        bound("plain", "n1", cpu="3500m"),
        waiting("p", cpu="2"),
    )
    assert [way.delete for way in found.suggestions if way.kind == "evict"] == ["default/plain"]


def test_no_priority_class_of_the_system_is_recommended() -> None:
    system = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
    }
    found = explained(system, *_filled(), waiting("p", cpu="2"))
    way = next(each for each in found.suggestions if each.kind == "priority")
    assert way.text.startswith("a new PriorityClass priority-1 of value 1 as priorityClassName: it")


def test_the_whole_selector_is_dropped_where_no_single_label_helps() -> None:
    found = explained(*_nodes(), waiting("p", node_selector={"disk": "ssd", "rack": "r9"}))
    assert [way.text for way in found.suggestions] == [
        "drop its whole nodeSelector",
        "label node n0 disk=ssd, rack=r9",
    ]
    assert found.suggestions[0].patch == ({"op": "remove", "path": "/spec/nodeSelector"},)


def test_a_few_nodes_are_all_emptied() -> None:
    """So there is no note about nodes that were not."""
    found = explained(*_filled("1", host_ports=[80]), waiting("p", host_ports=[80]))
    assert found.notes == ()

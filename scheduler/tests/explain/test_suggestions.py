"""Changes that are suggested can be made: the API takes each one, and the pod then gets a node.

Each case has a pod whose obvious change the API would refuse, or that takes two changes. A running
scheduler explains it; every suggestion is applied to a cluster of its own, through the API.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting
from scheduler.tests.explain.plan import Case
from scheduler.tests.explain.planted_volumes import claim, volume
from scheduler.tests.explain.running import binds, live

HOSTNAME = "kubernetes.io/hostname"


def _constraint(**fields: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "p"}},
        **fields,
    }


def _skewed(*constraints: dict[str, Any]) -> list[Manifest]:
    """One node has a pod that matches, and the other is tainted."""
    pod = waiting("p", labels={"app": "p"}, topologySpreadConstraints=list(constraints))
    far = node_manifest("far", taints=[_taint("far"), _taint("further")])
    return [node_manifest("n"), far, bound("w", "n", labels={"app": "p"}), pod]


def _taint(key: str) -> dict[str, str]:
    return {"key": key, "effect": "NoSchedule"}


def _node(amounts: dict[str, Any]) -> Manifest:
    return node_manifest("n", **amounts)


def _class(name: str, value: int, **fields: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def _budget(name: str, app: str, *, allowed: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def _running(name: str, node: str, **fields: Any) -> Manifest:
    pod = bound(name, node, **fields)
    pod["status"] = {"phase": "Running"}
    return pod


def _container(amounts: dict[str, str], **fields: Any) -> dict[str, Any]:
    limits = {name: amount for name, amount in amounts.items() if "/" in name or "pages" in name}
    resources = {"requests": amounts, "limits": limits}
    return {"name": "main", "image": "registry.example/app:1", "resources": resources, **fields}


def _sidecar(port: int) -> dict[str, Any]:
    ports = [{"containerPort": port, "hostPort": port}]
    return {**_container({}, restartPolicy="Always", ports=ports), "name": "proxy"}


CASES = [
    pytest.param(
        _skewed(_constraint(minDomains=2)),
        [
            ("constraint", f"let its spread constraint over {HOSTNAME} be ScheduleAnyway, without "
             "minDomains 2"),
            ("evict", "evict pod default/w (priority 0) from n"),
            ("priority", "a new PriorityClass priority-1 of value 1 as priorityClassName: it would "
             "evict default/w from n"),
            ("node", "one more node like n (4 cpu, 8Gi memory; there is 1 of this shape)"),
        ],
        id="minDomains goes with DoNotSchedule alone",
    ),
    pytest.param(
        _skewed(_constraint(), _constraint(whenUnsatisfiable="ScheduleAnyway")),
        [
            ("constraint", f"drop its spread constraint over {HOSTNAME} that is DoNotSchedule"),
            ("evict", "evict pod default/w (priority 0) from n"),
            ("priority", "a new PriorityClass priority-1 of value 1 as priorityClassName: it would "
             "evict default/w from n"),
            ("node", "one more node like n (4 cpu, 8Gi memory; there is 1 of this shape)"),
        ],
        id="two soft constraints may not have one key",
    ),
    pytest.param(
        [
            _class("quiet", 5, preemptionPolicy="Never"),
            _class("loud", 7),
            node_manifest("n"),
            bound("w", "n", cpu="4"),
            waiting("p", cpu="1"),
        ],
        [
            ("evict", "evict pod default/w (priority 0) from n"),
            ("priority", "priorityClassName loud (priority 7): it would evict default/w from n"),
            ("node", "one more node like n (4 cpu, 8Gi memory; there is 1 of this shape)"),
        ],
        id="a class that never preempts is none",
    ),
    pytest.param(
        [
            _class("priority-1", 1, preemptionPolicy="Never"),
            node_manifest("n"),
            bound("w", "n", cpu="4"),
            waiting("p", cpu="1"),
        ],
        [
            ("evict", "evict pod default/w (priority 0) from n"),
            ("priority", "a new PriorityClass priority-1-preempting of value 1 as "
             "priorityClassName: it would evict default/w from n"),
            ("node", "one more node like n (4 cpu, 8Gi memory; there is 1 of this shape)"),
        ],
        id="the name of a new class is not taken",
    ),
    pytest.param(
        [
            _node({"hugepages-2Mi": "5Mi"}),
            waiting("p", containers=[_container({"cpu": "1", "hugepages-2Mi": "8Mi"})]),
        ],
        [("request", "request at most 4Mi hugepages-2Mi instead of 8Mi")],
        id="hugepages are whole pages",
    ),
    pytest.param(
        [
            node_manifest("n", labels={"node.kubernetes.io/instance-type": "m5.large"}),
            waiting("p", containers=[_container({"cpu": "92", "memory": "1Gi"})]),
        ],
        [
            (
                "node",
                "one more node of a larger type, such as m6i.32xlarge (128 cpu, 512Gi memory)",
            ),
            ("request", "request at most 4 cpu instead of 92"),
        ],
        id="of 96 cpu the kubelet keeps a part, and the cluster's cloud has the types",
    ),
    pytest.param(
        [
            node_manifest("n"),
            waiting("p", containers=[_container({"cpu": "9", "nvidia.com/gpu": "8"})]),
        ],
        [
            (
                "node",
                "one more node of a larger type, such as p3.16xlarge (64 cpu, 488Gi memory, "
                "8 nvidia.com/gpu)",
            ),
        ],
        id="a type with GPUs",
    ),
    pytest.param(
        [
            _node({"example.com/gpu": "1"}),
            waiting("p", containers=[_container({"cpu": "1", "example.com/gpu": "3"})]),
        ],
        [("request", "request at most 1 example.com/gpu instead of 3")],
        id="the limit of an extended resource follows its request",
    ),
    pytest.param(
        [
            node_manifest("n"),
            waiting(
                "p",
                resources={"requests": {"cpu": "9"}},
                containers=[_container({"cpu": "5"}), {**_container({"cpu": "3"}), "name": "b"}],
            ),
        ],
        [
            ("request", "request at most 4 cpu instead of 9"),
            (
                "node",
                "one more node of a larger type, such as Standard_F16s_v2 (16 cpu, 32Gi memory)",
            ),
        ],
        id="containers request no more than their pod",
    ),
    pytest.param(
        [
            node_manifest("n"),
            bound("w", "n", host_ports=[80]),
            waiting("p", initContainers=[_sidecar(80)]),
        ],
        [
            ("host port", "do without the host port 80"),
            ("evict", "evict pod default/w (priority 0) from n"),
            ("priority", "a new PriorityClass priority-1 of value 1 as priorityClassName: it would "
             "evict default/w from n"),
            ("node", "one more node like n (4 cpu, 8Gi memory; there is 1 of this shape)"),
        ],
        id="the host port of a sidecar",
    ),
    pytest.param(
        [node_manifest("n", taints=[_taint("a"), _taint("b")]), waiting("p")],
        [
            ("pair", "tolerate the taint a:NoSchedule, and tolerate the taint b:NoSchedule"),
            ("pair", "remove the taint a:NoSchedule from node n, and tolerate the taint "
             "b:NoSchedule"),
        ],
        id="two taints take two tolerations",
    ),
    pytest.param(
        [
            node_manifest(
                "n", unschedulable=True, taints=[_taint("node.kubernetes.io/unschedulable")]
            ),
            waiting("p", node_selector={"disk": "ssd"}),
        ],
        [
            ("pair", "drop disk=ssd from its nodeSelector, and uncordon node n"),
            ("pair", "label node n disk=ssd, and uncordon node n"),
        ],
        id="a selector and a cordon",
    ),
    pytest.param(
        [node_manifest("n", cpu="2", taints=[_taint("a")]), waiting("p", cpu="3")],
        [
            ("pair", "tolerate the taint a:NoSchedule, and request at most 2 cpu instead of 3"),
            ("pair", "remove the taint a:NoSchedule from node n, and request at most 2 cpu "
             "instead of 3"),
        ],
        id="a taint and a request",
    ),
    pytest.param(
        [
            node_manifest("n", unschedulable=True),
            bound("w", "n", cpu="4"),
            waiting("p", cpu="1"),
        ],
        [("pair", "uncordon node n, and evict pod default/w (priority 0) from n")],
        id="a cordon and an eviction",
    ),
    pytest.param(
        [node_manifest("n", cpu="4"), waiting("p", cpu="30", node_selector={"disk": "ssd"})],
        [
            ("pair", "drop disk=ssd from its nodeSelector, and one more node of a larger type, "
             "such as n2-standard-32 (32 cpu, 128Gi memory)"),
            ("pair", "label node n disk=ssd, and request at most 4 cpu instead of 30"),
        ],
        id="a label of a node does nothing for a new node",
    ),
]  # fmt: skip

_ONE_OF = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [
        {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]},
        {"key": "old", "operator": "DoesNotExist"},
    ]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]},
]}}  # fmt: skip


@pytest.mark.parametrize(
    ("node", "pod", "texts", "commands"),
    [
        pytest.param(
            node_manifest("n"),
            waiting("p", node_selector={"disk": "ssd"}),
            ["label node n disk=ssd"],
            ["kubectl label node n disk=ssd"],
            id="a label that the node lacks",
        ),
        pytest.param(
            node_manifest("n", labels={"disk": "hdd", "old": "yes"}),
            waiting("p", affinity={"nodeAffinity": _ONE_OF}),
            ["label node n disk=nvme, and remove the label old from node n"],
            ["kubectl label node n disk=nvme old- --overwrite"],
            id="expressions of a required affinity",
        ),
        pytest.param(
            node_manifest("n"),
            waiting("p", node_selector={"topology.kubernetes.io/zone": "b"}),
            [],
            [],
            id="a label that says where the node is",
        ),
        pytest.param(
            node_manifest("n", taints=[{"key": "a", "value": "b", "effect": "NoExecute"}]),
            waiting("p"),
            ["remove the taint a=b:NoExecute from node n"],
            ["kubectl taint node n a=b:NoExecute-"],
            id="a taint",
        ),
        pytest.param(
            node_manifest("n", taints=[_taint("node.kubernetes.io/not-ready")]),
            waiting("p"),
            [],
            [],
            id="a taint for a condition, which its controller would set again",
        ),
    ],
)
def test_a_node_that_is_changed_takes_the_pod(
    node: Manifest, pod: Manifest, texts: list[str], commands: list[str]
) -> None:
    case = Case("", [node, pod], "", LoadedConfiguration())
    changes = [each for each in live(case).suggestions if each.kind in {"label", "taint"}]
    assert [each.text for each in changes] == texts
    assert [each.command for each in changes] == commands
    assert [each.text for each in changes if not binds(case, each)] == []


@pytest.mark.parametrize(("manifests", "expected"), CASES)
def test_each_suggestion_is_valid_and_binds_the_pod(
    manifests: list[Manifest], expected: list[tuple[str, str]]
) -> None:
    nodes = [each for each in manifests if each["kind"] == "Node"]
    others = [each for each in manifests if each["kind"] != "Node"]
    case = Case("", [*nodes, *others], "", LoadedConfiguration())
    found = live(case)
    assert [(way.kind, way.text) for way in found.suggestions] == expected
    assert [way.text for way in found.suggestions if not binds(case, way)] == []


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        pytest.param(
            [_budget("tight", "a", allowed=0)],
            "evict pod default/b (priority 0) from n",
            id="a pod that a budget protects comes last",
        ),
        pytest.param(
            [_budget("tight", "a", allowed=0), _budget("loose", "b", allowed=1)],
            "evict pod default/b (priority 0) from n; PodDisruptionBudget loose allows 1 eviction "
            "now",
            id="a budget that allows it",
        ),
        pytest.param(
            [_budget("one", "a", allowed=1), _budget("two", "a", allowed=1)],
            "evict pod default/b (priority 0) from n",
            id="a pod with two budgets cannot be evicted",
        ),
        pytest.param(
            [_budget("tight", "a", allowed=0), _budget("other", "b", allowed=0)],
            "delete pod default/a (priority 0) from n; PodDisruptionBudget tight allows no "
            "eviction of it now",
            id="no budget allows it",
        ),
    ],
)
def test_an_eviction_says_what_budgets_allow(budgets: list[Manifest], expected: str) -> None:
    found = explained(
        *budgets,
        node_manifest("n"),
        _running("a", "n", cpu="2", labels={"app": "a"}),
        _running("b", "n", cpu="2", labels={"app": "b"}),
        waiting("p", cpu="1"),
    )
    assert [way.text for way in found.suggestions if way.kind == "evict"] == [expected]


def _of(kind: str, name: str, pod: Manifest) -> Manifest:
    """Return a pod with a controller."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Job"])
def test_a_pod_of_the_same_controller_is_not_to_be_evicted(kind: str) -> None:
    """The controller would make another, and as many would wait as before."""
    full = [node_manifest("n"), *(_of(kind, "a", _running(f"a{i}", "n", cpu="2")) for i in (1, 2))]
    found = explained(*full, _of(kind, "a", waiting("p", cpu="1")))
    assert [way.kind for way in found.suggestions] == ["node"]
    found = explained(*full, _of(kind, "b", waiting("p", cpu="1")))
    assert [way.kind for way in found.suggestions] == ["evict", "priority", "node"]


def test_another_pod_is_evicted_than_one_of_the_same_controller() -> None:
    found = explained(
        node_manifest("n"),
        _of("ReplicaSet", "a", _running("a", "n", cpu="3")),
        _running("z", "n", cpu="1", priority=0),
        _of("ReplicaSet", "a", waiting("p", cpu="1")),
    )
    assert [way.delete for way in found.suggestions if way.kind == "evict"] == ["default/z"]


def test_the_user_of_a_claim_for_one_pod_is_named_unless_it_has_the_same_controller() -> None:
    objects = [
        claim(volumeName="pv", mode="ReadWriteOncePod"),
        volume("pv", of="data", accessModes=["ReadWriteOncePod"]),
    ]
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    user = _of("ReplicaSet", "a", _running("u", "n", volumes=volumes))
    for name, kinds in (("b", ["evict"]), ("a", [])):
        pod = _of("ReplicaSet", name, waiting("p", volumes=volumes))
        found = explained(node_manifest("n"), *objects, user, pod)
        assert [way.kind for way in found.suggestions if way.delete] == kinds


def test_preemption_against_a_budget_is_said() -> None:
    found = explained(
        _budget("tight", "a", allowed=0),
        node_manifest("n"),
        _running("a", "n", cpu="4", labels={"app": "a"}),
        waiting("p", cpu="1", priority=1),
    )
    assert found.notes == (
        "At its priority, its next attempt evicts default/a from n, against PodDisruptionBudget "
        "tight.",
    )


def test_what_was_not_tried_is_said() -> None:
    """With 2,000 nodes two of the six first changes are tried with others."""
    taints = [_taint("a"), _taint("b"), _taint("c")]
    nodes = [node_manifest(f"n{index}", taints=taints) for index in range(2000)]
    found = explained(*nodes, waiting("p"))
    assert found.suggestions == ()
    assert found.notes == (
        "No change helps, single or in a pair, as far as was tried: 2 of 6 first changes were "
        "tried with others; --thorough tries more.",
    )


def _full(*amounts: str, node: str = "n", **fields: Any) -> list[Manifest]:
    """Return a node of 4 cpu, and its pods a, b, ... with these amounts of cpu."""
    names = "abcdefgh"
    pods = [_running(names[i], node, cpu=cpu, **fields) for i, cpu in enumerate(amounts)]
    return [node_manifest(node), *pods]


@pytest.mark.parametrize(
    ("objects", "cpu", "expected"),
    [
        pytest.param(
            _full("1", "1", "1", "1"),
            "2",
            ("evict pods default/a (priority 0) and default/b (priority 0) from n", "a b"),
            id="two pods, where one is not enough",
        ),
        pytest.param(
            _full("500m", "1", "1", "1500m"),
            "2",
            ("evict pods default/b (priority 0) and default/c (priority 0) from n", "b c"),
            id="a pod that is not needed stays",
        ),
        pytest.param(
            [_budget("tight", "x", allowed=1), *_full("2", "2", labels={"app": "x"})],
            "4",
            (
                "delete pods default/a (priority 0) and default/b (priority 0) from n; "
                "PodDisruptionBudget tight does not allow all these evictions now",
                "a b",
            ),
            id="a budget that allows one of them",
        ),
        pytest.param(_full(*["500m"] * 8), "2500m", None, id="five pods are too many"),
        pytest.param(
            [
                node_manifest("n"),
                *(_of("ReplicaSet", "x", _running(name, "n", cpu="2")) for name in ("a", "b")),
            ],
            "4",
            None,
            id="a replacement would take the room of the first before the last has left",
        ),
    ],
)
def test_several_pods_of_a_node_may_have_to_go(
    objects: list[Manifest], cpu: str, expected: tuple[str, str] | None
) -> None:
    case = Case("", [*objects, waiting("p", cpu=cpu)], "", LoadedConfiguration())
    found = [each for each in explained(*case.manifests).suggestions if each.kind == "evict"]
    if expected is None:
        assert found == []
        return
    text, names = expected
    assert [each.text for each in found] == [text]
    assert [each.command for each in found] == [f"kubectl -n default delete pod {names}"]
    assert [each.text for each in found if not binds(case, each)] == []


@pytest.mark.parametrize(
    ("kind", "elsewhere", "expected"),
    [
        pytest.param(
            "ReplicaSet",
            "4",
            (
                "move",
                "move pod default/a (priority 0) from n to m: delete it, and its ReplicaSet makes "
                "another, which fits there",
            ),
            id="its replacement fits elsewhere",
        ),
        pytest.param(
            "ReplicaSet",
            "1",
            (
                "evict",
                "evict pod default/a (priority 0) from n; its ReplicaSet makes another, which "
                "needs a place of its own",
            ),
            id="its replacement fits nowhere",
        ),
        pytest.param(
            "DaemonSet", "4", None, id="a pod of a DaemonSet ends and is made again on its node"
        ),
    ],
)
def test_a_pod_is_moved_whose_replacement_fits_elsewhere(
    kind: str, elsewhere: str, expected: tuple[str, str] | None
) -> None:
    found = explained(
        node_manifest("n", labels={"disk": "ssd"}),
        node_manifest("m", cpu=elsewhere),
        *(_of(kind, "x", _running(name, "n", cpu="2")) for name in ("a", "b")),
        waiting("p", cpu="2", nodeSelector={"disk": "ssd"}),
    )
    leaving = [(each.kind, each.text) for each in found.suggestions if each.delete]
    assert leaving == ([] if expected is None else [expected])

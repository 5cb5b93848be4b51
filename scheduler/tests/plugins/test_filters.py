"""Filter plugins one rule at a time: rejection of every node, with code and reasons."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.config.feature_gates import feature_gates
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import PreFilterResult
from moorage.framework.status import SKIP, SUCCESS, unresolvable
from moorage.plugins.nodes.node_declared_features import NodeDeclaredFeatures
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import cluster, handle, make, node, pod, rejections

HARD = "UnschedulableAndUnresolvable"
SOFT = "Unschedulable"
NAME = (HARD, ("node(s) didn't match the requested node name",))
CORDONED = (HARD, ("node(s) were unschedulable",))
TAINTED = (HARD, ("node(s) had untolerated taint(s)",))
PORTS = (SOFT, ("node(s) didn't have free ports for the requested pod ports",))
AFFINITY = (HARD, ("node(s) didn't match Pod's node affinity/selector",))
FEATURES = (HARD, ("node(s) didn't match Pod's required features",))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param("", {}, id="a pod that names no node passes everywhere"),
        pytest.param("b", {"a": NAME}, id="only the named node passes"),
        pytest.param("gone", {"a": NAME, "b": NAME}, id="an unknown name fails everywhere"),
    ],
)
def test_node_name(wanted, expected):
    snapshot = cluster(node("a"), node("b"))
    assert rejections("NodeName", snapshot, pod(nodeName=wanted)) == expected
    only_a = {name: rejection for name, rejection in expected.items() if name == "a"}
    assert rejections("NodeName", snapshot, pod(nodeName=wanted), rows=[0]) == only_a


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(None, {"cordoned": CORDONED}, id="a cordoned node is rejected"),
        pytest.param(
            {"operator": "Exists"}, {}, id="a pod that tolerates everything passes a cordoned node"
        ),
        pytest.param(
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {},
            id="the operator defaults to Equal, the value to the empty one",
        ),
        pytest.param(
            {"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "value": "x"},
            {"cordoned": CORDONED},
            id="a toleration of another value does not help",
        ),
    ],
)
def test_node_unschedulable(toleration, expected):
    snapshot = cluster(node("open"), node("cordoned", unschedulable=True))
    asked = pod(tolerations=[toleration] if toleration else [])
    assert rejections("NodeUnschedulable", snapshot, asked) == expected


@pytest.mark.parametrize(
    ("effect", "toleration", "expected"),
    [
        pytest.param("NoSchedule", None, {"n1": TAINTED}, id="NoSchedule blocks"),
        pytest.param("NoExecute", None, {"n1": TAINTED}, id="NoExecute blocks"),
        pytest.param("PreferNoSchedule", None, {}, id="PreferNoSchedule does not block"),
        pytest.param(
            "NoSchedule", {"key": "k", "operator": "Exists"}, {}, id="Exists ignores the value"
        ),
        pytest.param(
            "NoSchedule",
            {"key": "k", "value": "v", "effect": "NoExecute"},
            {"n1": TAINTED},
            id="a toleration of another effect does not help",
        ),
        pytest.param(
            "NoSchedule",
            {"key": "k", "operator": "Gt", "value": "1"},
            {"n1": TAINTED},
            id="comparison operators are switched off",
        ),
    ],
)
def test_taint_toleration(effect, toleration, expected):
    snapshot = cluster(node(taints=[{"key": "k", "value": "v", "effect": effect}]))
    asked = pod(tolerations=[toleration] if toleration else [])
    assert rejections("TaintToleration", snapshot, asked) == expected


def port(number: int, ip: str = "", protocol: str = "TCP") -> dict[str, list[dict[str, object]]]:
    return {"ports": [{"hostPort": number, "hostIP": ip, "protocol": protocol}]}


@pytest.mark.parametrize(
    ("wanted", "taken", "fails"),
    [
        pytest.param(port(80), port(80), True, id="the same port on any address"),
        pytest.param(port(80), port(81), False, id="another port"),
        pytest.param(port(80), port(80, protocol="UDP"), False, id="another protocol"),
        pytest.param(
            port(80), port(80, "10.0.0.1"), True, id="any address wanted, one address in use"
        ),
        pytest.param(
            port(80, "10.0.0.1"), port(80), True, id="one address wanted, any address in use"
        ),
        pytest.param(
            port(80, "10.0.0.1"),
            port(80, "10.0.0.2"),
            False,
            id="two different addresses do not clash",
        ),
        pytest.param(
            port(80, "::"), port(80, "10.0.0.2"), False, id="the address :: is no wildcard"
        ),
        pytest.param(port(0), port(80), False, id="no host port wanted"),
    ],
)
def test_node_ports(wanted, taken, fails):
    snapshot = cluster(node("n1"), pods={"n1": [pod("there", container=taken)]})
    expected = {"n1": PORTS} if fails else {}
    assert rejections("NodePorts", snapshot, pod(container=wanted)) == expected


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({}, None, id="a pod without requests needs only a free place"),
        pytest.param({"cpu": "4"}, None, id="a request of all free resources fits"),
        pytest.param(
            {"cpu": "3", "there": "2"}, (SOFT, ("Insufficient cpu",)), id="too little is free"
        ),
        pytest.param(
            {"cpu": "5"},
            (HARD, ("Insufficient cpu",)),
            id="the request exceeds the allocatable amount",
        ),
        pytest.param(
            {"cpu": "3", "memory": "9Gi", "there": "2"},
            (HARD, ("Insufficient cpu", "Insufficient memory")),
            id="all reasons are listed, one unresolvable reason makes the node unresolvable",
        ),
        pytest.param(
            {"z.io/a": "1", "a.io/b": "1", "ephemeral-storage": "1Gi"},
            (
                HARD,
                (
                    "Insufficient ephemeral-storage",
                    "Insufficient a.io/b",
                    "Insufficient z.io/a",
                ),
            ),
            id="extended resources come last, sorted by name",
        ),
        pytest.param({"foo": "1"}, None, id="a name without a slash is no resource"),
        pytest.param({"pods": "9"}, None, id="pods cannot be requested"),
    ],
)
def test_node_resources_fit(requests, expected):
    wanted = dict(requests)
    there = [pod("there", requests={"cpu": wanted.pop("there")})] if "there" in wanted else []
    snapshot = cluster(node("n1"), pods={"n1": there})
    found = rejections("NodeResourcesFit", snapshot, pod(requests=wanted))
    assert found == ({} if expected is None else {"n1": expected})


def test_too_many_pods_is_resolvable_and_comes_first():
    small = node("n1", allocatable={"cpu": "1", "pods": "1"})
    snapshot = cluster(small, pods={"n1": [pod("there")]})
    found = rejections("NodeResourcesFit", snapshot, pod(requests={"cpu": "1"}))
    assert found == {"n1": (SOFT, ("Too many pods",))}
    full = rejections("NodeResourcesFit", snapshot, pod(requests={"cpu": "2"}))
    assert full == {"n1": (HARD, ("Too many pods", "Insufficient cpu"))}


def test_a_node_without_allocatable_takes_nothing():
    snapshot = cluster(node("n1", allocatable={}))
    assert rejections("NodeResourcesFit", snapshot, pod()) == {"n1": (SOFT, ("Too many pods",))}


def test_an_overcommitted_node_takes_pods_that_ask_for_something_else():
    snapshot = cluster(node("n1"), pods={"n1": [pod("there", requests={"cpu": "9"})]})
    assert rejections("NodeResourcesFit", snapshot, pod(requests={"memory": "1Gi"})) == {}


def test_many_combinations_of_reasons_are_distinguished():
    """More checks fail than are counted without sorting."""
    names = [f"r.io/{letter}" for letter in "abcdefghijkl"]
    rooms = [{"pods": "9", **dict.fromkeys(names[row:], "1")} for row in range(3)]
    snapshot = cluster(*(node(f"n{row}", allocatable=room) for row, room in enumerate(rooms)))
    there = {"n0": [pod("t", requests=dict.fromkeys(names, "1"))]}
    for placed in there["n0"]:
        snapshot.table.add_pod(placed, "n0")
    found = rejections("NodeResourcesFit", snapshot, pod(requests=dict.fromkeys(names, "1")))
    assert found == {
        "n0": (SOFT, tuple(f"Insufficient {name}" for name in names)),
        "n1": (HARD, ("Insufficient r.io/a",)),
        "n2": (HARD, ("Insufficient r.io/a", "Insufficient r.io/b")),
    }


@pytest.mark.parametrize(
    ("declared", "asked", "expected"),
    [
        pytest.param([], {}, {}, id="a pod that needs no feature passes"),
        pytest.param(
            [],
            {"hostNetwork": True, "hostUsers": False},
            {"n1": FEATURES},
            id="a needed feature is missing",
        ),
        pytest.param(
            ["UserNamespacesHostNetworkSupport", "Unknown"],
            {"hostNetwork": True, "hostUsers": False},
            {},
            id="the needed feature is one of several declared features",
        ),
    ],
)
def test_node_declared_features(declared, asked, expected):
    snapshot = cluster(node("n1", declaredFeatures=declared))
    assert rejections("NodeDeclaredFeatures", snapshot, pod(**asked)) == expected


def test_node_declared_features_asks_nothing_without_its_gate():
    snapshot = cluster(node("n1"))
    gates = feature_gates({"NodeDeclaredFeatures": False})
    plugin = NodeDeclaredFeatures(None, msgspec.structs.replace(handle(snapshot), gates=gates))
    asked = PodInfo(pod(hostNetwork=True, hostUsers=False))
    assert plugin.pre_filter(CycleState(), asked, snapshot) == (None, SKIP)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": rule}}


def names_in(*names: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    return {"matchFields": [field]}


def gt(value: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": [value]}]}


@pytest.mark.parametrize(
    ("spec", "status", "names"),
    [
        pytest.param({}, SKIP, None, id="a pod without required terms is skipped"),
        pytest.param(
            {"nodeSelector": {}}, SUCCESS, None, id="a selector without terms is not skipped"
        ),
        pytest.param(
            required(), SUCCESS, None, id="terms without node names do not restrict the search"
        ),
        pytest.param(
            required(names_in("a")), SUCCESS, {"a"}, id="a node name restricts the search"
        ),
        pytest.param(
            required(names_in("a"), names_in("b")),
            SUCCESS,
            {"a", "b"},
            id="node names of several terms are united",
        ),
        pytest.param(
            required({"matchFields": names_in("a")["matchFields"] + names_in("b")["matchFields"]}),
            unresolvable("pod affinity terms conflict"),
            None,
            id="contradicting node names of one term are a conflict",
        ),
        pytest.param(
            required(names_in("a"), gt("1")),
            SUCCESS,
            None,
            id="a term without node names lifts the restriction",
        ),
    ],
)
def test_node_affinity_pre_filter(spec, status, names):
    snapshot = cluster(node("a"), node("b"))
    plugin, _ = make("NodeAffinity", snapshot)
    result = None if names is None else PreFilterResult(frozenset(names))
    found = plugin.pre_filter(CycleState(), PodInfo(pod(**spec)), snapshot)
    assert found == (result, status)


@pytest.mark.parametrize(
    ("labels", "fails"),
    [
        pytest.param({"gen": "5"}, False, id="a greater number"),
        pytest.param({"gen": "4"}, True, id="an equal number is not greater"),
        pytest.param({"gen": "005"}, False, id="a number with leading zeros"),
        pytest.param({"gen": "five"}, True, id="a value that is not a number"),
        pytest.param({"gen": "9" * 30}, True, id="a value beyond 64 bits"),
        pytest.param({}, True, id="a missing label"),
    ],
)
def test_node_affinity_compares_whole_numbers(labels, fails):
    snapshot = cluster(node("n1", labels=labels))
    expected = {"n1": AFFINITY} if fails else {}
    assert rejections("NodeAffinity", snapshot, pod(**required(gt("4")))) == expected


def test_node_affinity_follows_nodes_that_come_and_change_labels():
    snapshot = cluster(node("n1", labels={"zone": "a"}))
    asked, state = PodInfo(pod(nodeSelector={"zone": "b"})), CycleState()
    plugin, _ = make("NodeAffinity", snapshot)
    assert plugin.filter(state, asked, snapshot.all()).code_n.tolist() == [3]
    snapshot.table.add_node(node("n2", labels={"zone": "b"}))
    assert plugin.filter(state, asked, snapshot.all()).code_n.tolist() == [3, 0]
    snapshot.table.update_node(node("n1", labels={"zone": "b"}))
    assert plugin.filter(state, asked, snapshot.all()) is None

"""Pods that leave their nodes: by whom they are made again, and what a drain does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.base.clock import rfc3339
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.what_if.change import AddTaint, Apply, Change, Drain, RemoveNode, Scale
from moorage.what_if.consequences import ChangeComparison, FlagNeed, Loss, NotEvicted
from moorage.what_if.course import tried, try_steps
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from scheduler.tests.what_if.cluster import bare, inputs_of, pod_of, replica_set

_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _owned(name: str, node_name: str, owner: Manifest, **fields: Any) -> Manifest:
    pod = bare(name, node_name, **fields)
    pod["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": f"uid-{owner['metadata']['name']}",
            "controller": True,
        }
    ]
    return pod


def _owner(version: str, kind: str, name: str = "x") -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


_DAEMONS = _owner("apps/v1", "DaemonSet", "agent")
_EVERYTHING = [{"operator": "Exists"}]


def _daemon(node_name: str, **fields: Any) -> Manifest:
    """Return the pod of a DaemonSet, pinned to its node as the controller does."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = _owned(f"agent-{node_name}", node_name, _DAEMONS, cpu="100m", **fields)
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    return pod


def _fates(course: ChangeComparison) -> dict[str, list[str]]:
    found = {
        "moves": [f"{each.pod} {each.from_node} {each.to_node}" for each in course.moves],
        "lost": [f"{each.pod} {each.unknown_owner}".strip() for each in course.lost],
        "ended": [each.pod for each in course.ended],
        "waits": [each.was for each in course.newly_pending],
        "not_evicted": [each.pod for each in course.not_evicted],
    }
    return {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(
    ("items", "change", "fates"),
    [
        pytest.param(
            [_owned("p", "n1", _owner("v1", "ConfigMap", "samples"), cpu="1")],
            Drain("n1"),
            {"lost": ["default/p ConfigMap samples"]},
            id="a ConfigMap makes no pod",
        ),
        pytest.param(
            [_owned("p", "n1", _owner("ray.io/v1", "RayCluster", "r"), cpu="1")],
            RemoveNode("n1"),
            {"lost": ["default/p RayCluster r"]},
            id="a custom resource may make a pod or not",
        ),
        pytest.param(
            [_owned("p", "n1", _owner("example.com/v1", "ReplicaSet", "r"), cpu="1")],
            Drain("n1"),
            {"lost": ["default/p ReplicaSet r"]},
            id="a ReplicaSet of another API group is unknown",
        ),
        pytest.param(
            [_owned("p", "n1", _owner("batch/v1", "Job", "j"), cpu="3"), bare("b", "n2", cpu="4")],
            Drain("n1"),
            {"moves": ["default/p n1 n3"]},
            id="a Job makes its pod again",
        ),
        pytest.param(
            [_daemon("n1"), _daemon("n2")],
            RemoveNode("n1"),
            {"ended": ["default/agent-n1"]},
            id="the pod of a DaemonSet ends with its node",
        ),
        pytest.param(
            [_daemon("n1"), _daemon("n2")],
            AddTaint("n1", "broken", "", "NoExecute"),
            {"ended": ["default/agent-n1"]},
            id="a DaemonSet does not run where a taint repels it",
        ),
        pytest.param(
            [_daemon("n1", tolerations=_EVERYTHING)],
            AddTaint("n1", "broken", "", "NoExecute"),
            {},
            id="a DaemonSet that tolerates everything stays",
        ),
        pytest.param(
            [
                _daemon("n1"),
                replica_set("web", 1),
                pod_of("web", 0, "n1", cpu="3"),
                bare("b", "n3", cpu="4"),
            ],
            Drain("n1"),
            {"moves": ["default/web-0 n1 n2"]},
            id="a drain leaves the pods of DaemonSets",
        ),
    ],
)
def test_a_pod_that_leaves_is_made_again_by_kinds_that_do_so(
    items: Sequence[Manifest], change: Change, fates: dict[str, list[str]]
) -> None:
    """Everything else is lost, or ends with its node; another node is full where it has to be."""
    course = try_steps(inputs_of(*items), [change])
    assert _fates(course) == fates
    assert course.worse if "lost" in fates else not course.worse


def test_an_unknown_owner_is_named() -> None:
    """The sentence says that nobody knows, instead of that the pod is lost."""
    pod = _owned("p", "n1", _owner("v1", "ConfigMap", "samples"), cpu="1")
    course = try_steps(inputs_of(pod), [Drain("n1")])
    assert course.lost == (
        Loss("default/p", "n1", unknown_owner="ConfigMap samples", owner="configmap/samples"),
    )
    assert course.worse == ("1 pod may be lost: ConfigMap samples is not known to make another",)


def _budget(name: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def _ready(pod: Manifest) -> Manifest:
    return {**pod, "status": _READY}


def _two_on_one() -> list[Manifest]:
    return [replica_set("web", 2), *(_ready(pod_of("web", n, "n1", cpu="1")) for n in (0, 1))]


@pytest.mark.parametrize(
    ("budgets", "fates"),
    [
        pytest.param([], {"moves": 2}, id="without a budget both pods move"),
        pytest.param(
            [_budget("pdb", minAvailable=1)],
            {"moves": 2},
            id="one after another, as ready ones come",
        ),
        pytest.param(
            [_budget("pdb", minAvailable=2)], {"not_evicted": 2}, id="a budget without room"
        ),
        pytest.param(
            [_budget("pdb", maxUnavailable="50%")], {"moves": 2}, id="a share of the replicas"
        ),
        pytest.param(
            [_budget("pdb", maxUnavailable=0)], {"not_evicted": 2}, id="none may be missing"
        ),
        pytest.param(
            [_budget("a", minAvailable=0), _budget("b", minAvailable=0)],
            {"not_evicted": 2},
            id="two budgets for one pod",
        ),
    ],
)
def test_a_drain_evicts_as_budgets_allow(
    budgets: Sequence[Manifest], fates: dict[str, int]
) -> None:
    """The statuses of the budgets are computed, as their controller does."""
    course = try_steps(inputs_of(*_two_on_one(), *budgets), [Drain("n1")])
    assert {name: len(lines) for name, lines in _fates(course).items()} == fates
    assert course.is_quiet


def test_a_drain_that_never_ends_says_why() -> None:
    """A pod that is not ready yet needs no budget; a ready one does."""
    inputs = inputs_of(*_two_on_one(), _budget("pdb", minAvailable=2))
    course = try_steps(inputs, [Drain("n1")])
    why = "the disruption budget pdb needs 2 healthy pods and has 2"
    assert course.not_evicted == (
        NotEvicted("default/web-0", "n1", why, "replicaset/web"),
        NotEvicted("default/web-1", "n1", why, "replicaset/web"),
    )
    assert course.worse == ("2 pods not evicted: kubectl drain would wait",)


def test_the_flags_that_a_drain_needs_are_said() -> None:
    """A pod without an owner, a pod with a volume that ends with it, a pod of a DaemonSet."""
    scratch = pod_of("web", 0, "n1", cpu="1", volumes=[{"name": "v", "emptyDir": {}}])
    items = [replica_set("web", 1), scratch, bare("solo", "n1", cpu="1"), _daemon("n1")]
    course = try_steps(inputs_of(*items), [Drain("n1")])
    assert course.drain_flags == (
        FlagNeed("--delete-emptydir-data", ("default/web-0",)),
        FlagNeed("--force", ("default/solo",)),
        FlagNeed("--ignore-daemonsets", ("default/agent-n1",)),
    )


@pytest.mark.parametrize(
    ("free", "matters"),
    [
        pytest.param("1", True, id="room for one of two"),
        pytest.param("4", False, id="room for all"),
    ],
)
def test_an_order_that_matters_is_said(free: str, matters: bool) -> None:
    """Two owners make their pods again at once, and no model knows which is first."""
    used = str(4 - int(free)) if free != "4" else "10m"
    items = [
        *(replica_set(name, 1, "1") for name in ("a", "b")),
        *(pod_of(name, 0, "n1", cpu="1") for name in ("a", "b")),
        bare("full", "n2", cpu=used),
    ]
    course = try_steps(inputs_of(*items, nodes=2), [Drain("n1")])
    assert course.order_matters is matters


def _renamed(pod: Manifest, name: str) -> Manifest:
    return {**pod, "metadata": {**pod["metadata"], "name": name, "uid": f"uid-{name}"}}


@pytest.mark.parametrize(
    ("pods", "change"),
    [
        pytest.param(
            [
                pod_of("a", 0, "n1", cpu="1"),
                pod_of("b", 0, "n1", cpu="1"),
                _renamed(pod_of("a", 1, "n1", cpu="1"), "c-0"),
            ],
            Drain("n1"),
            id="pods of one owner are the first and the last",
        ),
        pytest.param(
            [pod_of("a", 0, "n1", cpu="1"), pod_of("b", 0, "n1", cpu="1")],
            Apply(pod_manifest("high", cpu="4", priorityClassName="high")),
            id="victims of one preemptor",
        ),
    ],
)
def test_an_order_between_the_first_and_its_reverse_is_tried(
    pods: list[Manifest], change: Change
) -> None:
    """The order as listed and its reverse come out alike; there is room for one pod."""
    owners = [replica_set("a", 2, "1"), replica_set("b", 1, "1")]
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    owners.append({**kind, "metadata": {"name": "high"}, "value": 9})
    inputs = inputs_of(*owners, *pods, bare("full", "n2", cpu="3", priority=9), nodes=2)
    alike = [tried(ClusterModel(inputs), [change], order=order).fates for order in (0, 1)]
    assert alike[0] == alike[1]
    assert try_steps(inputs, [change]).order_matters


def _stopping(pod: Manifest, inputs: ClusterInputs, *, asked_seconds_ago: int) -> Manifest:
    end_ns = inputs.now_ns + (30 - asked_seconds_ago) * 10**9
    pod["metadata"] |= {"deletionTimestamp": rfc3339(end_ns), "deletionGracePeriodSeconds": 30}
    return pod


@pytest.mark.parametrize(
    ("asked_seconds_ago", "starts"),
    [
        pytest.param(0, 1, id="it stops within its grace period"),
        pytest.param(20, 1, id="another kubelet takes the whole grace period"),
        pytest.param(600, 0, id="a pod that should have stopped long ago is stuck"),
    ],
)
def test_a_pod_that_is_stopping_gives_its_room_back(asked_seconds_ago: int, starts: int) -> None:
    """A model begins with what is under way: the pod that waits starts anyway."""
    old = _stopping(bare("old", "n1", cpu="4"), inputs_of(), asked_seconds_ago=asked_seconds_ago)
    course = try_steps(inputs_of(old, bare("waits", cpu="4"), nodes=1), [])
    assert len(course.anyway) == starts
    assert len(course.still_pending) == 1 - starts


def test_a_preemption_under_way_goes_on() -> None:
    """The preemptor has its node, the victims are stopping, and the room that is left is used."""
    high = bare("high", cpu="4", priority=100)
    high["status"] = {"phase": "Pending", "nominatedNodeName": "n1"}
    victims = [
        _stopping(bare(f"v{n}", "n1", cpu="2"), inputs_of(), asked_seconds_ago=0) for n in (1, 2)
    ]
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    for each in victims:
        each["status"] = {"phase": "Running", "conditions": [preempted]}
    low = [bare(f"low{n}", cpu="2") for n in range(3)]
    course = try_steps(inputs_of(high, *victims, *low, bare("b", "n2", cpu="1"), nodes=2), [])
    assert sorted(f"{each.pod} {each.node}" for each in course.anyway) == [
        "default/high n1",
        "default/low0 n2",
    ]
    assert [each.pod for each in course.still_pending] == ["default/low1", "default/low2"]


def test_a_pod_whose_owner_wants_no_other_any_more_ends() -> None:
    """Its successor found no node, and went when its owner became smaller."""
    items = [replica_set("web", 1), pod_of("web", 0, "n1")]
    steps: list[Change] = [Drain("n1"), Scale("ReplicaSet", "default", "web", 0)]
    course = try_steps(inputs_of(*items, nodes=1), steps)
    assert _fates(course) == {"ended": ["default/web-0"]}
    assert not course.worse

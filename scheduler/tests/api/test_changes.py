"""Cluster events: labels, matching, and what changed between two versions."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import changes
from moorage.api.changes import (
    Action,
    ClusterEvent,
    Resource,
    action_names,
    matches,
    node_changes,
    pod_changes,
)
from moorage.api.claims import PodExtendedResourceClaimStatus, PodResourceClaimStatus
from moorage.api.meta import Condition, ObjectMeta, ResourceList
from moorage.api.node import Node, NodeSpec, NodeStatus, Taint
from moorage.api.pod import (
    Container,
    Pod,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    Resources,
    Toleration,
)


@pytest.mark.parametrize(
    ("event", "label"),
    [
        pytest.param(ClusterEvent("Node", Action.ADD), "NodeAdd", id="resource and action"),
        pytest.param(
            ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL),
            "UnschedulablePodUpdatePodLabel",
            id="a part of an update",
        ),
        pytest.param(
            ClusterEvent(Resource.CSI_NODE, Action.UPDATE),
            "storage.k8s.io/CSINodeUpdate",
            id="a group",
        ),
        pytest.param(
            ClusterEvent("Pod", Action.ADD | Action.DELETE), "Pod", id="combinations have no name"
        ),
        pytest.param(changes.UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout", id="the flush"),
        pytest.param(changes.FORCE_ACTIVATE, "ForceActivate", id="activation"),
        pytest.param(changes.WILDCARD, "*All", id="the wildcard itself"),
    ],
)
def test_the_label_of_a_cluster_event(event, label):
    assert event.label == label


@pytest.mark.parametrize(
    ("action", "names"),
    [
        pytest.param(Action.ADD, ("Add",), id="one action"),
        pytest.param(
            Action.DELETE | Action.UPDATE_POD_LABEL, ("Delete", "UpdatePodLabel"), id="two actions"
        ),
        pytest.param(
            Action.ADD | Action.UPDATE,
            ("Add", "Update"),
            id="every kind of update is one update, whatever the resource",
        ),
        pytest.param(Action.UPDATE, ("Update",), id="updates alone"),
        pytest.param(Action.ALL, ("All",), id="everything"),
    ],
)
def test_the_parts_of_an_action_have_names(action, names):
    assert action_names(action) == names


def test_bits_are_those_of_kube_scheduler():
    assert {action.name: int(action) for action in Action.__members__.values()} == {
        "ADD": 1,
        "DELETE": 2,
        "UPDATE_NODE_ALLOCATABLE": 4,
        "UPDATE_NODE_LABEL": 8,
        "UPDATE_NODE_TAINT": 16,
        "UPDATE_NODE_CONDITION": 32,
        "UPDATE_NODE_ANNOTATION": 64,
        "UPDATE_NODE_DECLARED_FEATURE": 128,
        "UPDATE_POD_LABEL": 256,
        "UPDATE_POD_SCALE_DOWN": 512,
        "UPDATE_POD_TOLERATION": 1024,
        "UPDATE_POD_SCHEDULING_GATES_ELIMINATED": 2048,
        "UPDATE_POD_GENERATED_RESOURCE_CLAIM": 4096,
        "UPDATE": 8188,
        "ALL": 8191,
    }
    assert sum(1 << bit for bit in range(2, 13)) == Action.UPDATE


def test_equal_events_are_the_same_key():
    assert {ClusterEvent("Node", Action.ADD): 1}[ClusterEvent("Node", 1)] == 1


NODE_LABEL = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
POD_ANY = ClusterEvent(Resource.POD, Action.ALL)


@pytest.mark.parametrize(
    ("registered", "incoming", "expected"),
    [
        pytest.param(NODE_LABEL, ClusterEvent("Node", Action.ADD), True, id="one of its actions"),
        pytest.param(NODE_LABEL, ClusterEvent("Node", Action.DELETE), False, id="another action"),
        pytest.param(
            NODE_LABEL, ClusterEvent("Node", Action.UPDATE_NODE_TAINT), False, id="another part"
        ),
        pytest.param(
            NODE_LABEL,
            ClusterEvent("Node", Action.UPDATE),
            False,
            id="a generic update is more than one part",
        ),
        pytest.param(
            ClusterEvent("Node", Action.UPDATE),
            ClusterEvent("Node", Action.UPDATE_NODE_TAINT),
            True,
            id="a part is covered by a generic update",
        ),
        pytest.param(NODE_LABEL, ClusterEvent("Pod", Action.ADD), False, id="another resource"),
        pytest.param(
            POD_ANY, ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), True, id="assigned pods"
        ),
        pytest.param(
            POD_ANY, ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE), True, id="waiting"
        ),
        pytest.param(
            ClusterEvent(Resource.ASSIGNED_POD, Action.ALL),
            ClusterEvent(Resource.POD, Action.ADD),
            False,
            id="only Pod stands for both forms",
        ),
        pytest.param(
            changes.WILDCARD, ClusterEvent("Node", Action.DELETE), True, id="registered for all"
        ),
        pytest.param(
            ClusterEvent("*", Action.ADD), ClusterEvent("Node", Action.ADD), True, id="any resource"
        ),
        pytest.param(
            ClusterEvent("*", Action.ADD),
            ClusterEvent("Node", Action.DELETE),
            False,
            id="any resource, another action",
        ),
        pytest.param(NODE_LABEL, changes.FORCE_ACTIVATE, False, id="an incoming wildcard is wider"),
    ],
)
def test_a_registered_event_matches_an_incoming_one(registered, incoming, expected):
    assert matches(registered, incoming) is expected


def node(
    *,
    unschedulable: bool = False,
    taints: Iterable[Taint] = (),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **status: Any,
) -> Node:
    return Node(
        metadata=ObjectMeta(name="n", labels=labels or {}, annotations=annotations or {}),
        spec=NodeSpec(unschedulable=unschedulable, taints=list(taints)),
        status=NodeStatus(**status),
    )


T = Taint(key="t", effect="NoSchedule")
READY = Condition(type="Ready", status="True")
NODE_PARTS: dict[Action, dict[str, Any]] = {
    Action.UPDATE_NODE_ALLOCATABLE: {"allocatable": {"cpu": "1"}},
    Action.UPDATE_NODE_LABEL: {"labels": {"a": "b"}},
    Action.UPDATE_NODE_TAINT: {"taints": [T]},
    Action.UPDATE_NODE_CONDITION: {"conditions": [READY]},
    Action.UPDATE_NODE_ANNOTATION: {"annotations": {"a": "b"}},
    Action.UPDATE_NODE_DECLARED_FEATURE: {"declared_features": ["F"]},
}


@given(st.sets(st.sampled_from(sorted(NODE_PARTS))))
def test_each_changed_part_of_a_node_gives_its_event_in_order(parts):
    changed = {k: v for part in parts for k, v in NODE_PARTS[part].items()}
    expected = [ClusterEvent("Node", part) for part in NODE_PARTS if part in parts]
    assert node_changes(node(), node(**changed)) == expected
    assert node_changes(node(**changed), node()) == expected


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(
            node(unschedulable=True),
            node(),
            [Action.UPDATE_NODE_TAINT],
            id="uncordoned counts as a taint change",
        ),
        pytest.param(node(), node(unschedulable=True), [], id="cordoned cures nothing"),
        pytest.param(
            node(unschedulable=True, taints=[T]),
            node(labels={"a": "b"}),
            [Action.UPDATE_NODE_TAINT, Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT],
            id="uncordoned comes first, the taint in its own place",
        ),
        pytest.param(
            node(allocatable={"cpu": "1"}),
            node(allocatable={"cpu": "1000m"}),
            [],
            id="the same amount in another spelling",
        ),
        pytest.param(
            node(allocatable={"cpu": "1"}),
            node(allocatable={"cpu": "1", "x.y/z": "0"}),
            [Action.UPDATE_NODE_ALLOCATABLE],
            id="a new resource, though there is none of it",
        ),
        pytest.param(
            node(conditions=[READY]),
            node(
                conditions=[
                    Condition(type="Ready", status="True", last_heartbeat_time="t", reason="r")
                ]
            ),
            [],
            id="a heartbeat is not a change",
        ),
        pytest.param(
            node(conditions=[READY]),
            node(conditions=[Condition(type="Ready", status="Unknown")]),
            [Action.UPDATE_NODE_CONDITION],
            id="a condition's status is",
        ),
        pytest.param(node(capacity={"cpu": "1"}), node(), [], id="capacity is not looked at"),
    ],
)
def test_node_changes(old, new, actions):
    assert node_changes(old, new) == [ClusterEvent("Node", action) for action in actions]


def pod(
    *,
    node_name: str = "",
    labels: dict[str, str] | None = None,
    gates: Iterable[str] = (),
    tolerations: int = 0,
    claims: Iterable[str] = (),
    extended_claim: str = "",
    cpu: str | None = None,
    message: str = "",
) -> Pod:
    requests: ResourceList = {} if cpu is None else {"cpu": cpu}
    extended = (
        PodExtendedResourceClaimStatus(resource_claim_name=extended_claim)
        if extended_claim
        else None
    )
    return Pod(
        metadata=ObjectMeta(name="p", labels=labels or {}),
        spec=PodSpec(
            node_name=node_name,
            containers=[Container(name="c", resources=Resources(requests=requests))],
            scheduling_gates=[PodSchedulingGate(name=name) for name in gates],
            tolerations=[Toleration(key=f"k{i}") for i in range(tolerations)],
        ),
        status=PodStatus(
            message=message,
            resource_claim_statuses=[PodResourceClaimStatus(name=name) for name in claims],
            extended_resource_claim_status=extended,
        ),
    )


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(pod(), pod(), [Action.UPDATE], id="nothing known: a generic update"),
        pytest.param(pod(), pod(message="x"), [Action.UPDATE], id="a part nobody waits for"),
        pytest.param(pod(), pod(labels={"a": "b"}), [Action.UPDATE_POD_LABEL], id="labels"),
        pytest.param(pod(cpu="2"), pod(cpu="1"), [Action.UPDATE_POD_SCALE_DOWN], id="fewer cpus"),
        pytest.param(pod(cpu="2"), pod(), [Action.UPDATE_POD_SCALE_DOWN], id="no more request"),
        pytest.param(pod(cpu="1"), pod(cpu="2"), [Action.UPDATE], id="more is no scale-down"),
        pytest.param(
            pod(cpu="1"), pod(cpu="1000m"), [Action.UPDATE], id="the same in another spelling"
        ),
        pytest.param(
            pod(gates=["a", "b"]), pod(gates=["a"]), [Action.UPDATE], id="a gate is still closed"
        ),
        pytest.param(
            pod(gates=["a"]),
            pod(),
            [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED],
            id="the last gate is gone",
        ),
        pytest.param(
            pod(), pod(tolerations=1), [Action.UPDATE_POD_TOLERATION], id="a toleration more"
        ),
        pytest.param(
            pod(), pod(claims=["a"]), [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM], id="a claim"
        ),
        pytest.param(
            pod(),
            pod(extended_claim="a"),
            [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
            id="a claim for extended resources",
        ),
        pytest.param(
            pod(cpu="2", gates=["a"]),
            pod(cpu="1", labels={"a": "b"}, tolerations=1, claims=["c"]),
            [
                Action.UPDATE_POD_LABEL,
                Action.UPDATE_POD_SCALE_DOWN,
                Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                Action.UPDATE_POD_TOLERATION,
                Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            ],
            id="all of them, in order",
        ),
    ],
)
def test_pod_changes(old, new, actions):
    waiting = [ClusterEvent(Resource.UNSCHEDULABLE_POD, action) for action in actions]
    assert pod_changes(old, new) == waiting


def test_a_pod_with_a_node_is_an_assigned_pod():
    assert pod_changes(pod(), pod(node_name="n")) == [
        ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE)
    ]

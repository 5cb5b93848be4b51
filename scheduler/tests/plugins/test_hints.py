"""Which events wake a waiting pod, plugin by plugin."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.changes import Action, ClusterEvent, Resource, matches
from moorage.api.codec import from_dict
from moorage.api.devices import DeviceClass
from moorage.api.node import Node
from moorage.api.pod import NodeAffinity, Pod
from moorage.config.plugin_args import NodeAffinityArgs
from scheduler.tests.plugins.builders import ROOM, make, node, pod

ADD, DELETE = Action.ADD, Action.DELETE
GATES = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED

REGISTERED: dict[str, list[tuple[str, int, bool]]] = {
    "SchedulingGates": [(Resource.POD, GATES, True)],
    "NodeName": [(Resource.NODE, ADD, False)],
    "NodeUnschedulable": [
        (Resource.NODE, ADD | Action.UPDATE_NODE_TAINT, True),
        (Resource.POD, Action.UPDATE_POD_TOLERATION, True),
    ],
    "TaintToleration": [
        (Resource.NODE, ADD | Action.UPDATE_NODE_TAINT, True),
        (Resource.POD, Action.UPDATE_POD_TOLERATION, True),
    ],
    "NodeAffinity": [(Resource.NODE, ADD | Action.UPDATE_NODE_LABEL, True)],
    "NodePorts": [(Resource.POD, DELETE, True), (Resource.NODE, ADD, False)],
    "NodeResourcesFit": [
        (Resource.POD, DELETE | Action.UPDATE_POD_SCALE_DOWN, True),
        (Resource.NODE, ADD | Action.UPDATE_NODE_ALLOCATABLE, True),
        (Resource.DEVICE_CLASS, ADD | Action.UPDATE, True),
    ],
    "NodeDeclaredFeatures": [
        (Resource.NODE, ADD | Action.UPDATE_NODE_DECLARED_FEATURE, True),
        (Resource.POD, Action.UPDATE, True),
    ],
}


@pytest.mark.parametrize(
    ("name", "expected"), [pytest.param(*i, id=i[0]) for i in REGISTERED.items()]
)
def test_registered_events_are_those_of_the_reference(name, expected):
    plugin, _ = make(name)
    found = [
        (each.event.resource, int(each.event.action), each.hint is not None)
        for each in plugin.events_to_register()
    ]
    assert found == expected


@pytest.mark.parametrize(
    "name", ["PrioritySort", "ImageLocality", "NodeResourcesBalancedAllocation", "DefaultBinder"]
)
def test_plugins_that_reject_nothing_register_nothing(name):
    plugin, _ = make(name)
    assert not hasattr(plugin, "events_to_register")


def wakes(
    name: str, event: tuple[str, int], waiting: Pod, old: Any, new: Any, args: Any = None
) -> bool:
    plugin, _ = make(name, args=args)
    answers = [
        each.hint is None or each.hint(waiting, old, new)
        for each in plugin.events_to_register()
        if matches(each.event, ClusterEvent(*event))
    ]
    assert len(answers) == 1, "exactly one registration hears of the event"
    return bool(answers[0])


NODE_ADD = (Resource.NODE, ADD)
TAINT = (Resource.NODE, Action.UPDATE_NODE_TAINT)
LABEL = (Resource.NODE, Action.UPDATE_NODE_LABEL)
ROOM_CHANGED = (Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
FEATURE = (Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
POD_GONE = (Resource.ASSIGNED_POD, DELETE)
SHRUNK = (Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
TOLERATES = (Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)
CLASS_ADD = (Resource.DEVICE_CLASS, ADD)
CLASS_UPDATE = (Resource.DEVICE_CLASS, Action.UPDATE)

EXISTS = [{"operator": "Exists"}]
HARD = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
WEB = {"ports": [{"hostPort": 80}]}
ZONE_A: dict[str, Any] = {"nodeSelector": {"zone": "a"}}


def sized(name: str, cpu: str, **spec: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, **spec)


def room(**changes: str) -> Node:
    return node(allocatable={**ROOM, **changes})


def device_class(extended: str | None = None) -> DeviceClass:
    spec = {} if extended is None else {"extendedResourceName": extended}
    return from_dict(DeviceClass, {"metadata": {"name": "gpu"}, "spec": spec})


GPU = pod(requests={"example.com/gpu": "1"})
IMPLICIT = pod(requests={"deviceclass.resource.kubernetes.io/gpu": "1"})

CASES = [
    pytest.param(
        "SchedulingGates",
        (Resource.UNSCHEDULABLE_POD, GATES),
        pod("a"),
        pod("a"),
        pod("a"),
        True,
        id="gates: the pod's last gate is removed",
    ),
    pytest.param(
        "SchedulingGates",
        (Resource.UNSCHEDULABLE_POD, GATES),
        pod("a"),
        pod("b"),
        pod("b"),
        False,
        id="gates: another pod's gate is removed",
    ),
    pytest.param("NodeName", NODE_ADD, pod(), None, node(), True, id="name: any new node"),
    pytest.param(
        "NodeUnschedulable",
        NODE_ADD,
        pod(),
        None,
        node(),
        True,
        id="cordon: a new schedulable node",
    ),
    pytest.param(
        "NodeUnschedulable",
        NODE_ADD,
        pod(),
        None,
        node(unschedulable=True),
        False,
        id="cordon: a new cordoned node",
    ),
    pytest.param(
        "NodeUnschedulable",
        TAINT,
        pod(),
        node(unschedulable=True),
        node(),
        True,
        id="cordon: a node uncordoned",
    ),
    pytest.param(
        "NodeUnschedulable",
        TAINT,
        pod(),
        node(),
        node(taints=HARD),
        False,
        id="cordon: other taints changed",
    ),
    pytest.param(
        "NodeUnschedulable",
        TOLERATES,
        pod("a"),
        pod("a"),
        pod("a", tolerations=EXISTS),
        True,
        id="cordon: the pod newly tolerates the cordon",
    ),
    pytest.param(
        "NodeUnschedulable",
        TOLERATES,
        pod("a"),
        pod("a"),
        pod("a", tolerations=[{"key": "x", "operator": "Exists"}]),
        False,
        id="cordon: the pod newly tolerates another taint",
    ),
    pytest.param(
        "NodeUnschedulable",
        TOLERATES,
        pod("a"),
        pod("b"),
        pod("b", tolerations=EXISTS),
        False,
        id="cordon: another pod newly tolerates the cordon",
    ),
    pytest.param(
        "TaintToleration",
        NODE_ADD,
        pod(),
        None,
        node(),
        True,
        id="taints: a new node without taints",
    ),
    pytest.param(
        "TaintToleration",
        NODE_ADD,
        pod(),
        None,
        node(taints=HARD),
        False,
        id="taints: a new node with an untolerated taint",
    ),
    pytest.param(
        "TaintToleration",
        TAINT,
        pod(),
        node(taints=HARD),
        node(),
        True,
        id="taints: an untolerated taint is removed",
    ),
    pytest.param(
        "TaintToleration",
        TAINT,
        pod(tolerations=EXISTS),
        node(taints=HARD),
        node(),
        False,
        id="taints: a tolerated taint is removed",
    ),
    pytest.param(
        "TaintToleration",
        TOLERATES,
        pod("a"),
        pod("a"),
        pod("a"),
        True,
        id="taints: the pod itself is updated",
    ),
    pytest.param(
        "TaintToleration",
        TOLERATES,
        pod("a"),
        pod("b"),
        pod("b"),
        False,
        id="taints: another pod is updated",
    ),
    pytest.param(
        "NodeAffinity",
        NODE_ADD,
        pod(**ZONE_A),
        None,
        node(labels={"zone": "a"}),
        True,
        id="affinity: a new node that matches",
    ),
    pytest.param(
        "NodeAffinity",
        NODE_ADD,
        pod(**ZONE_A),
        None,
        node(),
        False,
        id="affinity: a new node that does not match",
    ),
    pytest.param(
        "NodeAffinity",
        LABEL,
        pod(**ZONE_A),
        node(),
        node(labels={"zone": "a"}),
        True,
        id="affinity: a node relabelled to match",
    ),
    pytest.param(
        "NodeAffinity",
        LABEL,
        pod(**ZONE_A),
        node(labels={"zone": "a"}),
        node(labels={"zone": "a", "x": "y"}),
        False,
        id="affinity: a node that matched before",
    ),
    pytest.param(
        "NodePorts",
        POD_GONE,
        pod(container=WEB),
        pod("x", container=WEB, nodeName="n"),
        None,
        True,
        id="ports: a deleted pod used the port",
    ),
    pytest.param(
        "NodePorts",
        POD_GONE,
        pod(container=WEB),
        pod("x", container=WEB),
        None,
        False,
        id="ports: a deleted pod had no node",
    ),
    pytest.param(
        "NodePorts",
        POD_GONE,
        pod(container=WEB),
        pod("x", container=WEB, status={"nominatedNodeName": "n"}),
        None,
        True,
        id="ports: a deleted pod was nominated",
    ),
    pytest.param(
        "NodePorts",
        POD_GONE,
        pod(container=WEB),
        pod("x", nodeName="n"),
        None,
        False,
        id="ports: a deleted pod had no port",
    ),
    pytest.param(
        "NodePorts", NODE_ADD, pod(container=WEB), None, node(), True, id="ports: a new node"
    ),
    pytest.param(
        "NodeResourcesFit",
        POD_GONE,
        sized("a", "4"),
        sized("x", "1m", nodeName="n"),
        None,
        True,
        id="fit: a deleted pod on a node, of any size",
    ),
    pytest.param(
        "NodeResourcesFit",
        POD_GONE,
        sized("a", "4"),
        sized("x", "4"),
        None,
        False,
        id="fit: a deleted pod had no node",
    ),
    pytest.param(
        "NodeResourcesFit",
        SHRUNK,
        sized("a", "4"),
        sized("a", "4"),
        sized("a", "3"),
        True,
        id="fit: the pod itself requests less",
    ),
    pytest.param(
        "NodeResourcesFit",
        SHRUNK,
        sized("a", "4"),
        sized("x", "2", nodeName="n"),
        sized("x", "1", nodeName="n"),
        True,
        id="fit: another pod requests less of the wanted resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        SHRUNK,
        sized("a", "4"),
        sized("x", "2"),
        sized("x", "1"),
        False,
        id="fit: a pod without node requests less",
    ),
    pytest.param(
        "NodeResourcesFit",
        SHRUNK,
        pod("a", requests={"memory": "1"}),
        sized("x", "2", nodeName="n"),
        sized("x", "1", nodeName="n"),
        False,
        id="fit: another pod requests less of another resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        NODE_ADD,
        sized("a", "4"),
        None,
        room(),
        True,
        id="fit: a new node that is large enough",
    ),
    pytest.param(
        "NodeResourcesFit",
        NODE_ADD,
        sized("a", "5"),
        None,
        room(),
        False,
        id="fit: a new node that is too small",
    ),
    pytest.param(
        "NodeResourcesFit",
        NODE_ADD,
        sized("a", "1"),
        None,
        room(pods="0"),
        False,
        id="fit: a new node that takes no pods",
    ),
    pytest.param(
        "NodeResourcesFit",
        ROOM_CHANGED,
        sized("a", "4"),
        room(cpu="3"),
        room(),
        True,
        id="fit: a node has more of the wanted resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        ROOM_CHANGED,
        sized("a", "4"),
        room(memory="1"),
        room(),
        False,
        id="fit: a node has more of another resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        ROOM_CHANGED,
        sized("a", "4"),
        room(pods="1"),
        room(),
        True,
        id="fit: a node takes more pods",
    ),
    pytest.param(
        "NodeResourcesFit",
        CLASS_ADD,
        IMPLICIT,
        None,
        device_class(),
        True,
        id="fit: a new device class for the wanted resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        CLASS_ADD,
        GPU,
        None,
        device_class(),
        False,
        id="fit: a new device class for another resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        CLASS_UPDATE,
        GPU,
        device_class(),
        device_class("example.com/gpu"),
        True,
        id="fit: a changed device class newly names the wanted resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        CLASS_UPDATE,
        GPU,
        device_class("example.com/gpu"),
        device_class("example.com/gpu"),
        False,
        id="fit: a changed device class named the wanted resource before",
    ),
    pytest.param(
        "NodeDeclaredFeatures", NODE_ADD, pod(), None, node(), True, id="features: a new node"
    ),
    pytest.param(
        "NodeDeclaredFeatures",
        FEATURE,
        pod(),
        node(),
        node(declaredFeatures=["X"]),
        True,
        id="features: a node declares more",
    ),
    pytest.param(
        "NodeDeclaredFeatures", FEATURE, pod(), node(), node(), False, id="features: no change"
    ),
    pytest.param(
        "NodeDeclaredFeatures",
        TOLERATES,
        pod("a", hostNetwork=True, hostUsers=False),
        pod("a", hostNetwork=True, hostUsers=False),
        pod("a"),
        True,
        id="features: the pod needs less",
    ),
    pytest.param(
        "NodeDeclaredFeatures",
        TOLERATES,
        pod("a"),
        pod("a"),
        pod("a"),
        False,
        id="features: the pod needs the same",
    ),
]


@pytest.mark.parametrize(("name", "event", "waiting", "old", "new", "expected"), CASES)
def test_hint(name, event, waiting, old, new, expected):
    assert wakes(name, event, waiting, old, new) is expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(
            {"zone": "a", "pool": "x"}, True, id="the pod's terms and the added affinity match"
        ),
        pytest.param({"zone": "a"}, False, id="the added affinity does not match"),
    ],
)
def test_the_node_hint_checks_added_affinity(labels, expected):
    rule = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x"]}]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [rule]}}
    args = NodeAffinityArgs(added_affinity=from_dict(NodeAffinity, added))
    found = wakes("NodeAffinity", NODE_ADD, pod(**ZONE_A), None, node(labels=labels), args)
    assert found is expected

"""In-tree hints that declare that replicas agree give the same answer for every replica.

Replicas share namespace, labels and spec. They differ in name, uid, annotations, owners and claims
made for them. The event is about none of them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.changes import Resource
from moorage.api.codec import from_dict
from moorage.api.devices import DeviceClass
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.api.workloads import Namespace
from moorage.config.plugin_args import PodTopologySpreadArgs
from moorage.framework.points import EventRegistration
from moorage.plugins.in_tree import in_tree_registry
from scheduler.tests.plugins import strategies as pods_and_nodes
from scheduler.tests.plugins.affinity import strategies as affinity
from scheduler.tests.plugins.builders import make
from scheduler.tests.plugins.spread import strategies as spread

NAMES = ("one", "other")
NAMESPACES = ("a", "a", "a", "b")
CLAIMS = ("shared", "one-own", "other-own", "nobodys")
DRIVER = "ebs.csi.aws.com"

ASKED_EACH = {
    ("NodeVolumeLimits", Resource.PERSISTENT_VOLUME_CLAIM),
    ("VolumeBinding", Resource.PERSISTENT_VOLUME_CLAIM),
    ("DynamicResources", Resource.RESOURCE_CLAIM),
    ("GangScheduling", Resource.POD),
    ("TopologyPlacementGenerator", Resource.NODE),
    ("TopologyPlacementGenerator", Resource.POD),
    ("Coscheduling", Resource.POD),
    ("Coscheduling", Resource.NODE),
    ("Coscheduling", Resource.COSCHEDULING_GROUP),
}
"""These read the pod's name or uid, or the members of its group that are known by now."""


def registrations(name: str) -> list[EventRegistration]:
    plugin, _ = make(name)
    found = plugin.events_to_register() if hasattr(plugin, "events_to_register") else ()
    return [each for each in found if each.hint is not None]


ALL = [(entry.name, each) for entry in in_tree_registry() for each in registrations(entry.name)]


def test_every_other_in_tree_hint_declares_that_replicas_agree() -> None:
    undeclared = {(name, each.event.resource) for name, each in ALL if not each.replicas_agree}
    assert undeclared == ASKED_EACH


def test_default_constraints_that_are_hard_depend_on_the_owner() -> None:
    args = PodTopologySpreadArgs(
        default_constraints=(spread_rule("DoNotSchedule"),), defaulting_type="List"
    )
    plugin, _ = make("PodTopologySpread", args=args)
    assert not any(each.replicas_agree for each in plugin.events_to_register())


def spread_rule(action: str) -> Any:
    from moorage.api.pod import TopologySpreadConstraint

    raw = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": action}
    return from_dict(TopologySpreadConstraint, raw)


# -- pods ----------------------------------------------------------------------------------------

_volumes = st.lists(
    st.sampled_from(
        [
            {"name": "v", "persistentVolumeClaim": {"claimName": "shared"}},
            {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "d", "gcePersistentDisk": {"pdName": "disk"}},
            {"name": "e", "awsElasticBlockStore": {"volumeID": "vol"}},
            {"name": "c", "csi": {"driver": DRIVER}},
        ]
    ),
    max_size=3,
    unique_by=lambda volume: str(volume["name"]),
)


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Return a pod of fields that hints read, without a name."""
    spec: dict[str, Any] = {"containers": [{"name": "c"}], "volumes": draw(_volumes)}
    spec["affinity"] = draw(st.none() | affinity.affinities)
    rules = st.lists(spread.constraints(), min_size=1, max_size=2)
    spec["topologySpreadConstraints"] = draw(st.just([]) | rules)
    if draw(st.booleans()):
        spec["schedulingGroup"] = {"podGroupName": draw(st.sampled_from(["g", "h"]))}
    labels = draw(affinity.labels)
    namespace = draw(st.sampled_from(NAMESPACES))
    return {"metadata": {"namespace": namespace, "labels": labels}, "spec": spec}


@st.composite
def made(draw: st.DrawFn) -> Pod:
    """Return a pod of random requests, ports, tolerations and node affinity, and of `specs`."""
    plain, more = draw(pods_and_nodes.pods()), from_dict(Pod, draw(specs()))
    fields = ("volumes", "topology_spread_constraints", "scheduling_group")
    wanted = {field: getattr(more.spec, field) for field in fields}
    near = more.spec.affinity
    if near is not None and plain.spec.affinity is not None:
        near = msgspec.structs.replace(near, node_affinity=plain.spec.affinity.node_affinity)
    return msgspec.structs.replace(
        more, spec=msgspec.structs.replace(plain.spec, affinity=near, **wanted)
    )


def named(pod: Pod, name: str, *, node_name: str = "", nominated: str = "") -> Pod:
    """Return the pod under a name, with all that replicas do not share."""
    before = pod.metadata
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
    metadata = from_dict(
        ObjectMeta,
        {
            "name": name,
            "uid": f"uid-{name}",
            "namespace": before.namespace,
            "labels": before.labels,
            "annotations": {"made-for": name},
            "ownerReferences": [owner],
        },
    )
    status = {
        "nominatedNodeName": nominated,
        "resourceClaimStatuses": [{"name": "own", "resourceClaimName": f"{name}-own"}],
    }
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    told = from_dict(Pod, {"status": status}).status
    return Pod(metadata=metadata, spec=spec, status=told)


@st.composite
def subjects(draw: st.DrawFn) -> Pod:
    """Return the pod of an event: it has a node, a nomination, or neither."""
    where = draw(st.sampled_from([{"node_name": "n1"}, {"nominated": "n1"}, {}]))
    return named(draw(made()), "third", **where)


# -- events --------------------------------------------------------------------------------------


def objects(type_: type[Any], *raw: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([from_dict(type_, each) for each in raw])


CHANGED: dict[str, st.SearchStrategy[Any]] = {
    Resource.POD: subjects(),
    Resource.NODE: pods_and_nodes.nodes("n1") | spread.nodes("n1") | affinity.nodes("n1"),
    Resource.PERSISTENT_VOLUME_CLAIM: objects(
        PersistentVolumeClaim, *({"metadata": {"name": name, "namespace": "a"}} for name in CLAIMS)
    ),
    Resource.NAMESPACE: objects(
        Namespace,
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "b", "labels": {"team": "x"}}},
        {"metadata": {"name": "b", "labels": {"team": "y"}}},
    ),
    Resource.PERSISTENT_VOLUME: objects(
        PersistentVolume,
        {"metadata": {"name": "pv"}},
        {"metadata": {"name": "pv", "labels": {"topology.kubernetes.io/zone": "z1"}}},
    ),
    Resource.STORAGE_CLASS: objects(
        StorageClass,
        {"metadata": {"name": "s"}},
        {"metadata": {"name": "s"}, "volumeBindingMode": "WaitForFirstConsumer"},
    ),
    Resource.CSI_NODE: objects(
        CSINode,
        {"metadata": {"name": "n1"}},
        {
            "metadata": {
                "name": "n1",
                "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "x"},
            }
        },
        {
            "metadata": {"name": "n1"},
            "spec": {"drivers": [{"name": DRIVER, "nodeID": "n1", "allocatable": {"count": 3}}]},
        },
    ),
    Resource.CSI_DRIVER: objects(
        CSIDriver,
        {"metadata": {"name": DRIVER}},
        {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}},
    ),
    Resource.CSI_STORAGE_CAPACITY: objects(
        CSIStorageCapacity,
        {"metadata": {"name": "c"}},
        {"metadata": {"name": "c"}, "capacity": "1Gi"},
        {"metadata": {"name": "c"}, "capacity": "2Gi"},
    ),
    Resource.VOLUME_ATTACHMENT: objects(
        VolumeAttachment,
        {"metadata": {"name": "a"}, "spec": {"attacher": DRIVER}},
        {"metadata": {"name": "a"}, "spec": {"attacher": "other"}},
    ),
    Resource.DEVICE_CLASS: objects(
        DeviceClass,
        {"metadata": {"name": "d"}},
        {"metadata": {"name": "d"}, "spec": {"extendedResourceName": "example.com/gpu"}},
        {"metadata": {"name": "d"}, "spec": {"extendedResourceName": "vendor.io/nic"}},
    ),
    Resource.POD_GROUP: objects(
        PodGroup,
        *({"metadata": {"name": name, "namespace": "a"}} for name in "gh"),
    ),
    Resource.RESERVATION: subjects(),
}


def answer(each: EventRegistration, waiting: Pod, old: Any, new: Any) -> bool | type[Exception]:
    assert each.hint is not None
    try:
        return each.hint(waiting, old, new)
    except (AssertionError, ValueError) as fault:  # a hint that breaks queues the pod
        return type(fault)


DECLARED: dict[str, list[tuple[str, EventRegistration]]] = {}
for _name, _each in ALL:
    if _each.replicas_agree:
        DECLARED.setdefault(_each.event.resource, []).append((_name, _each))


@pytest.mark.parametrize("resource", DECLARED)
@settings(max_examples=40)
@given(data=st.data())
def test_replicas_get_the_same_answer(resource: str, data: Any) -> None:
    pod = data.draw(made(), "pod")
    changed = CHANGED[resource]
    nothing = st.none()
    came, went = st.tuples(nothing, changed), st.tuples(changed, nothing)
    old, new = data.draw(came | went | st.tuples(changed, changed), "event")
    one, other = (named(pod, each) for each in NAMES)
    for name, registration in DECLARED[resource]:
        assert answer(registration, one, old, new) == answer(registration, other, old, new), name

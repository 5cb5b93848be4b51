"""The pods of a StatefulSet are made again in the order and at the time of its controller."""

from __future__ import annotations

from functools import partial

import pytest

from moorage.api.pod import Pod
from moorage.virtual.effects import CALL_SECONDS
from moorage.virtual.model import ClusterModel
from moorage.what_if.answering.answers import capacity_kinds
from moorage.what_if.capacity.count import room_in
from moorage.what_if.change import Drain, Scale
from moorage.what_if.changes import Scene
from moorage.what_if.course import scene_of, try_steps
from moorage.what_if.wire import CapacityBody
from moorage.workloads.stateful_steps import REVISION_LABEL
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import bare, inputs_of

_CALL_MS = round(CALL_SECONDS * 1000)


def _stateful_set(replicas: int) -> Manifest:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "uid": "uid-db"},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [container]},
            },
        },
    }


def _pod(ordinal: int) -> Manifest:
    labels = {"app": "db", REVISION_LABEL: "db-7f9c"}
    pod = bare(f"db-{ordinal}", "n1", cpu="1", labels=labels)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return pod


def _course(scene: Scene, gone_ms: dict[int, int]) -> dict[int, int]:
    """Let pods be gone after so many milliseconds; return when their ordinals are made again."""
    model = scene.model
    begin_ns = model.virtual_now_ns
    made: dict[int, int] = {}
    pods = model.objects.pods

    def note(pod: Pod) -> None:
        current = model.current(pod)
        if current is not None and not current.spec.node_name:
            ordinal = int(pod.name.rpartition("-")[2])
            made.setdefault(ordinal, (model.virtual_now_ns - begin_ns) // 10**6)

    model.listeners.append(note)
    for ordinal, after_ms in gone_ms.items():
        leaves = partial(model.leave, pods["default", f"db-{ordinal}"], at_once=True)
        model.call_at(begin_ns + after_ms * 10**6, leaves)
    model.settle()
    return made


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        pytest.param(
            "OrderedReady",
            "its StatefulSet makes pods in order, and db-0 is not ready",
            id="a set in order does not make the second pod",
        ),
        pytest.param("Parallel", "2 Insufficient cpu", id="a parallel set makes both pods"),
    ],
)
def test_pods_of_a_set_that_find_no_room_wait(policy: str, reason: str) -> None:
    """The second pod "ended", as if its owner wanted no other pod, and nothing got worse."""
    stateful_set = _stateful_set(2)
    stateful_set["spec"]["podManagementPolicy"] = policy
    full = [bare(f"full-{number}", f"n{number}", cpu="4") for number in (2, 3)]
    course = try_steps(inputs_of(stateful_set, _pod(0), _pod(1), *full), [Drain("n1")])
    assert course.ended == ()
    first, second = sorted(course.newly_pending, key=lambda each: each.pod)
    assert (first.pod, first.was) == ("default/db-0", "default/db-0 on n1")
    assert (second.pod, second.was) == ("default/db-1", "default/db-1 on n1")
    assert second.owner == "statefulset/db"
    assert reason in second.reason
    assert course.worse


def test_a_pod_that_a_set_does_not_want_any_more_ends() -> None:
    course = try_steps(
        inputs_of(_stateful_set(2), _pod(0), _pod(1)), [Scale("StatefulSet", "default", "db", 1)]
    )
    assert [each.pod for each in course.ended] == ["default/db-1"]
    assert course.newly_pending == ()


@pytest.mark.parametrize(
    ("gone_ms", "made_ms"),
    [
        pytest.param({0: 0}, {0: _CALL_MS}, id="a call after the name is free"),
        pytest.param(
            {0: 0, 1: 0}, {0: _CALL_MS, 1: _CALL_MS}, id="pods that go together come together"
        ),
        pytest.param(
            {0: 0, 1: 2 * _CALL_MS},
            {0: _CALL_MS, 1: 3 * _CALL_MS},
            id="a pod that goes later comes a call later, too",
        ),
        pytest.param(
            {0: 0, 1: _CALL_MS},
            {0: _CALL_MS, 1: 2 * _CALL_MS},
            id="nothing is made in the moment in which a pod goes",
        ),
        pytest.param(
            {0: 0, 1: _CALL_MS // 2},
            {0: _CALL_MS, 1: 2 * _CALL_MS},
            id="a pod that goes during a call comes after the next one",
        ),
    ],
)
def test_a_pod_is_made_again_a_call_after_its_set_was_looked_at(
    gone_ms: dict[int, int], made_ms: dict[int, int]
) -> None:
    """kubernetes v1.36 pkg/controller/statefulset: a sync lists the pods once, when it begins.

    What it sees then is what it makes and deletes, and the set is not synced again meanwhile.
    """
    inputs = inputs_of(_stateful_set(2), _pod(0), _pod(1))
    assert _course(scene_of(ClusterModel(inputs)), gone_ms) == made_ms


def _claim(ordinal: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"data-db-{ordinal}",
            "namespace": "default",
            "uid": f"c{ordinal}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"storageClassName": "late", "volumeName": f"v{ordinal}"},
        "status": {"phase": "Bound"},
    }


def _volume(ordinal: int, node_name: str) -> Manifest:
    names = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}]
    claim = {"namespace": "default", "name": f"data-db-{ordinal}", "uid": f"c{ordinal}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"v{ordinal}", "uid": f"v{ordinal}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "claimRef": claim,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": names}]}},
        },
        "status": {"phase": "Bound"},
    }


def _with_volumes(mode: str) -> list[Manifest]:
    """Return a set of one pod with a claim whose volume is on a node, and its storage class."""
    found = _stateful_set(1)
    found["spec"]["volumeClaimTemplates"] = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "storageClassName": "late",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]
    pod = _pod(0)
    source = {"persistentVolumeClaim": {"claimName": "data-db-0"}}
    pod["spec"]["volumes"] = [{"name": "data", **source}]
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": mode,
    }
    return [found, pod, storage, _claim(0)]


@pytest.mark.parametrize(
    ("node_name", "moves", "waits"),
    [
        pytest.param("n1", 0, 1, id="a volume of the drained node"),
        pytest.param("n2", 1, 0, id="a volume that is reached from another node"),
    ],
)
def test_a_pod_that_is_made_again_has_the_claim_of_the_one_before(
    node_name: str, moves: int, waits: int
) -> None:
    """The claim stays when the pod goes, and its volume says where the next pod can be."""
    items = [*_with_volumes("WaitForFirstConsumer"), _volume(0, node_name)]
    course = try_steps(inputs_of(*items), [Drain("n1")])
    assert (len(course.moves), len(course.newly_pending)) == (moves, waits)


def test_a_new_pod_of_a_set_gets_a_claim_of_its_own() -> None:
    """The volume is made for the node that is chosen, so the pod starts."""
    items = [*_with_volumes("WaitForFirstConsumer"), _volume(0, "n1")]
    course = try_steps(inputs_of(*items), [Scale("StatefulSet", "default", "db", 3)])
    assert [each.pod for each in course.starts] == ["default/db-1", "default/db-2"]


def test_a_set_that_is_deleted_during_its_call_gets_no_pod() -> None:
    """A pod that came after all would be collected with its owner."""
    scene = scene_of(ClusterModel(inputs_of(_stateful_set(1), _pod(0))))
    model = scene.model
    deletes = partial(scene.workloads.delete_owner, "StatefulSet", ("default", "db"))
    model.call_at(model.virtual_now_ns + 10**6, deletes)
    assert _course(scene, {0: 0}) == {}
    assert model.objects.pods == {}


def _quota(**hard: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "bound", "namespace": "default", "uid": "uid-bound"},
        "spec": {"hard": hard},
    }


def test_pods_whose_claims_a_quota_refuses_are_not_made() -> None:
    """The other pods of the set are made, with their claims."""
    items = [*_with_volumes("WaitForFirstConsumer"), _quota(persistentvolumeclaims="3")]
    course = try_steps(inputs_of(*items), [Scale("StatefulSet", "default", "db", 5)])
    assert [each.pod for each in course.starts] == ["default/db-1", "default/db-2"]
    assert [each.pod for each in course.newly_pending] == ["default/db-3", "default/db-4"]
    assert "PersistentVolumeClaim data-db-3 would be refused" in course.newly_pending[0].reason


@pytest.mark.parametrize("whole", [False, True], ids=["pods like its pods", "sets of three pods"])
@pytest.mark.parametrize(
    ("hard", "pods"),
    [
        pytest.param({}, 11, id="room of the nodes"),
        pytest.param({"requests.storage": "5Gi"}, 5, id="room for claims in a quota"),
    ],
)
def test_capacity_counts_pods_with_the_claims_that_their_set_makes(
    whole: bool, hard: dict[str, str], pods: int
) -> None:
    items = _with_volumes("WaitForFirstConsumer")
    scene = scene_of(ClusterModel(inputs_of(*items, *([_quota(**hard)] if hard else []))))
    larger = items[0] | {"spec": items[0]["spec"] | {"replicas": 3}}
    body = CapacityBody(mix=(larger,), whole=True) if whole else CapacityBody(like="sts/db")
    room = room_in(scene, capacity_kinds(body, scene), most=100)
    assert (room.pods, room.fit) == (pods, pods // 3 if whole else pods)
    nodes = "0/3 nodes are available: 3 Insufficient cpu."
    assert "exceeded quota" in room.message if hard else room.message == nodes

"""Planted causes of workloads, nodes and claims: the cause is named first.

Each planted cause of a pending pod (``scheduler/tests/explain/planted.py``) is planted into the
pod of a ReplicaSet as well. Causes of pods that do not exist or are not ready, of nodes and of
claims are planted here, with drawn numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from moorage.base.rng import Random, Streams
from moorage.explain.workloads.answer import ObjectExplanation, Stage
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, waiting
from scheduler.tests.explain.plan import Case
from scheduler.tests.explain.planted import INNOCENT, PLANTED, planted
from scheduler.tests.explain.workloads.owned import (
    about,
    failed_create,
    of,
    owner,
    pending_pods,
    quota,
    ready_pods,
    reference,
)

SEEDS: Final = 4
LACKING: Final = frozenset({Stage.PENDING, Stage.GATED, Stage.PERMIT})


def _owned(case: Case) -> ObjectExplanation:
    """Explain the ReplicaSet of the pod of a case."""
    manifests = []
    for each in case.manifests:
        is_pod = each["kind"] == "Pod" and each["metadata"]["name"] == "p"
        manifests.append(of(reference("ReplicaSet", "r"), dict(each)) if is_pod else each)
    set_ = owner("ReplicaSet", "r", replicas=1)
    return about(*manifests, set_, type_="rs", name="r", config=case.config)


@pytest.mark.parametrize("plant", range(len(PLANTED)), ids=[each.__name__ for each in PLANTED])
def test_the_cause_of_a_pod_is_that_of_its_workload(plant: int) -> None:
    case = planted(plant)
    found = _owned(case)
    start, about_ = case.expected.split("|")
    first = found.counts[0]
    text = first.cause.split("; on ")[0]
    assert first.stage in LACKING
    assert text.startswith(start), text
    assert about_ in text.removeprefix(start), text
    assert not any(each in text for each in INNOCENT.get(case.kind, ()))
    assert found.sentence.startswith("0 of 1 pods are ready; 1 ")


# --- pods that do not exist, or are not ready -----------------------------------------------------

Planted = tuple[list[Manifest], dict[str, str], str]


def _nodes(draw: Random) -> list[Manifest]:
    return [node_manifest(f"n{index}", cpu="8") for index in range(draw.randint(2, 6))]


def _deployment(draw: Random, nodes: int) -> tuple[list[Manifest], int, int]:
    """Return a Deployment with some of its pods, the number that is wanted, and that exists."""
    there, lacking = draw.randint(1, 5), draw.randint(1, 9)
    below = reference("Deployment", "api")
    manifests = [
        owner("Deployment", "api", replicas=there + lacking),
        owner("ReplicaSet", "api-1", below=below, replicas=there + lacking),
        *ready_pods(reference("ReplicaSet", "api-1"), there, nodes=nodes, cpu="1"),
    ]
    return manifests, there + lacking, there


API: Final = {"type_": "deployment", "name": "api"}


def quota_of_cpu(draw: Random) -> Planted:
    """A quota of cpu is used up, as no report says yet."""
    nodes = _nodes(draw)
    manifests, wanted, there = _deployment(draw, len(nodes))
    bound_ = quota("team", {"requests.cpu": f"{there}"}, requests_cpu=f"{there}")
    wide = quota("wide", {"pods": f"{there}"}, pods="500")
    start = f"{there} of {wanted} pods are ready; {wanted - there} "
    return [*nodes, *manifests, bound_, wide], API, f"{start}|created: quota team is used up"


def quota_of_pods(draw: Random) -> Planted:
    """A quota of the number of pods is used up, and an Event says so."""
    nodes = _nodes(draw)
    manifests, _, there = _deployment(draw, len(nodes))
    event = failed_create(
        "ReplicaSet",
        "api-1",
        f'Error creating: pods "api-1-z" is forbidden: exceeded quota: few, requested: pods=1, '
        f"used: pods={there}, limited: pods={there}",
    )
    bound_ = quota("few", {"pods": f"{there}"}, pods=f"{there}")
    return [*nodes, *manifests, bound_, event], API, f"{there} of |quota few is used up"


def unnamed_request(draw: Random) -> Planted:
    """A quota demands limits of memory, which the template does not state."""
    nodes = _nodes(draw)
    manifests, _, there = _deployment(draw, len(nodes))
    bound_ = quota("limits", {"limits.memory": "0"}, limits_memory="8Gi")
    return [*nodes, *manifests, bound_], API, f"{there} of |must specify limits.memory"


def _refused(draw: Random, message: str, words: str) -> Planted:
    nodes = _nodes(draw)
    manifests, _, there = _deployment(draw, len(nodes))
    event = failed_create("ReplicaSet", "api-1", f"Error creating: {message}")
    return [*nodes, *manifests, event], API, f"{there} of |{words}"


def pod_security(draw: Random) -> Planted:
    """The namespace forbids privileged pods."""
    text = 'pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged'
    return _refused(draw, text, "created: pod security refuses them")


def webhook(draw: Random) -> Planted:
    """An admission webhook refuses the pods."""
    text = f'admission webhook "w{draw.randint(1, 9)}.io" denied the request: no'
    return _refused(draw, text, "created: an admission webhook refuses them")


def limit_range(draw: Random) -> Planted:
    """A limit range refuses the pods."""
    text = 'pods "x" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi'
    return _refused(draw, text, "created: a limit range refuses them")


def service_account(draw: Random) -> Planted:
    """The service account of the template does not exist."""
    text = (
        'pods "x" is forbidden: error looking up service account default/robot: serviceaccount '
        '"robot" not found'
    )
    return _refused(draw, text, "their service account is missing")


def silent_controller(draw: Random) -> Planted:
    """Nothing refuses the pods: the controller has not seen the newest version."""
    nodes = _nodes(draw)
    manifests, _, there = _deployment(draw, len(nodes))
    manifests[0]["metadata"]["generation"] = 7
    return [*nodes, *manifests], API, f"{there} of |has not seen the newest version of api"


def image(draw: Random) -> Planted:
    """The image of some pods cannot be pulled."""
    nodes, owners = _nodes(draw), reference("StatefulSet", "db")
    number = draw.randint(1, 4)
    pods = [of(owners, bound(f"db-{index}", "n0")) for index in range(number)]
    for pod in pods:
        pod["status"] = {
            "phase": "Pending",
            "containerStatuses": [
                {"name": "main", "ready": False, "state": {"waiting": {"reason": "ErrImagePull"}}}
            ],
        }
    set_ = owner("StatefulSet", "db", replicas=number)
    about_ = "bound and not ready: container main waits: ErrImagePull"
    return [*nodes, set_, *pods], {"type_": "sts", "name": "db"}, f"0 of {number} |{about_}"


def large_job(draw: Random) -> Planted:
    """The pods of a Job request more than any node has."""
    number = draw.randint(1, 4)
    job = owner("Job", "train", parallelism=number, completions=9)
    pods = pending_pods(reference("Job", "train"), number, cpu="90")
    return [*_nodes(draw), job, *pods], {"type_": "job", "name": "train"}, (
        f"0 of {number} |never fits here, not even on an empty node, because of cpu"
    )  # fmt: skip


# --- nodes and claims -----------------------------------------------------------------------------


def cordoned_node(draw: Random) -> Planted:
    """A node is cordoned, and pods wait."""
    nodes = _nodes(draw)
    nodes[0]["spec"]["unschedulable"] = True
    pods = [waiting(f"p{index}", cpu="90m") for index in range(draw.randint(1, 4))]
    return [*nodes, *pods], {"type_": "node", "name": "n0"}, (
        f"is cordoned; {len(pods)} of {len(pods)} pending pods do not fit on it|NodeUnschedulable"
    )  # fmt: skip


def tainted_node(draw: Random) -> Planted:
    """A node has a taint that no pending pod tolerates."""
    nodes = _nodes(draw)
    key = f"pool-{draw.randint(1, 9)}"
    nodes[0]["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"}]
    pods = [waiting(f"p{index}", cpu="90m") for index in range(draw.randint(1, 4))]
    return [*nodes, *pods], {"type_": "node", "name": "n0"}, (
        f"has the taint {key}:NoSchedule; {len(pods)} of |TaintToleration"
    )  # fmt: skip


def full_node(draw: Random) -> Planted:
    """A node has no cpu left, and its memory is stranded."""
    nodes = _nodes(draw)
    pods = [waiting(f"p{index}", cpu="2") for index in range(draw.randint(1, 4))]
    return [*nodes, bound("w", "n0", cpu="8"), *pods], {"type_": "no", "name": "n0"}, (
        f"has no cpu left; {len(pods)} of |NodeResourcesFit: Insufficient cpu"
    )  # fmt: skip


def open_node(draw: Random) -> Planted:
    """Nothing keeps the pending pods off a node."""
    pods = [waiting(f"p{index}", cpu="1") for index in range(draw.randint(1, 4))]
    number = len(pods)
    return [*_nodes(draw), *pods], {"type_": "node", "name": "n1"}, (
        f"is open and has room; |{number} of {number} pending pods fit on it now"
    )  # fmt: skip


def _volume_claim(**spec: object) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "uid-data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def _class(mode: str) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "example.com/disk",
        "volumeBindingMode": mode,
    }


PVC: Final = {"type_": "pvc", "name": "data"}


def first_consumer(draw: Random) -> Planted:
    """A claim waits for its first consumer, and there is none."""
    claim = _volume_claim(storageClassName="local")
    return [*_nodes(draw), _class("WaitForFirstConsumer"), claim], PVC, (
        "waits for its first consumer|as no pod uses it"
    )  # fmt: skip


def missing_class(draw: Random) -> Planted:
    """The class of a claim does not exist."""
    return [*_nodes(draw), _volume_claim(storageClassName="gone")], PVC, "has no volume: |gone"


def no_device(draw: Random) -> Planted:
    """No device of the class is there."""
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {},
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default", "uid": "uid-c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    return [*_nodes(draw), device_class, claim], {"type_": "resourceclaim", "name": "c"}, (
        "is not allocated: a pod that needs nothing else |device"
    )  # fmt: skip


FAMILIES: Final[tuple[Callable[[Random], Planted], ...]] = (
    quota_of_cpu,
    quota_of_pods,
    unnamed_request,
    pod_security,
    webhook,
    limit_range,
    service_account,
    silent_controller,
    image,
    large_job,
    cordoned_node,
    tainted_node,
    full_node,
    open_node,
    first_consumer,
    missing_class,
    no_device,
)


@pytest.mark.parametrize("family", FAMILIES, ids=[each.__name__ for each in FAMILIES])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_cause_is_named_first(family: Callable[[Random], Planted], seed: int) -> None:
    manifests, query, expected = family(Streams(seed).stream(family.__name__))
    found = about(*manifests, type_=query["type_"], name=query["name"])
    start, about_ = expected.split("|")
    assert found.sentence.startswith(start), found.sentence
    assert about_ in found.sentence, found.sentence

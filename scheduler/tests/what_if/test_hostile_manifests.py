"""Manifests with values of every wrong kind: a change is made or refused, and nothing breaks.

One or two values of a whole cluster are replaced at random. The cluster is read as from a file; the
manifest is applied to it, or the cluster is drained and scaled. ``FUZZ_RUNS`` and ``FUZZ_SEED``
prolong it, as in ``tests/attack``.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.base.errors import MoorageError
from moorage.base.rng import Random, Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import read_objects
from moorage.what_if.change import AddNode, Apply, Change, Cordon, Delete, Drain, RemoveNode, Scale
from moorage.what_if.course import try_steps
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.what_if.cluster import inputs_of, pod_of, replica_set

_RUNS = int(os.environ.get("FUZZ_RUNS", "60"))
_SEED = int(os.environ.get("FUZZ_SEED", "1"))
_WRONG: tuple[Any, ...] = (
    {}, [], None, 0, -1, "", "x" * 50_000, {"a": "b"}, [{}], [None], [[]], True, 1.5, 10**30,
    "10P", "-5", {"": ""}, ["x"], "9" * 5000, "2026-13-01T00:00:00Z",
)  # fmt: skip


def _owner(kind: str, name: str, **fields: Any) -> Manifest:
    found = replica_set(name, 2, "1")
    found |= {"apiVersion": "batch/v1" if kind == "Job" else "apps/v1", "kind": kind}
    found["spec"] |= fields
    return found


def _object(version: str, kind: str, name: str, **fields: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


_TEMPLATE = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "wait",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
_AMOUNTS = {"pods": "9", "limits.cpu": "9"}
OBJECTS: tuple[Manifest, ...] = (
    node_manifest("n1"),
    node_manifest("n2"),
    replica_set("web", 2, "1"),
    pod_of("web", 0, "n1", cpu="1"),
    _owner("Deployment", "dep"),
    _owner("StatefulSet", "st", serviceName="s", volumeClaimTemplates=[_TEMPLATE]),
    _owner("DaemonSet", "ds"),
    _object(
        "v1",
        "ResourceQuota",
        "q",
        spec={
            "hard": _AMOUNTS,
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                ]
            },
        },
        status={"hard": _AMOUNTS, "used": {"pods": "1", "limits.cpu": "2"}},
    ),
    _object(
        "v1",
        "LimitRange",
        "l",
        spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "1"}}]},
    ),
    _object(
        "policy/v1",
        "PodDisruptionBudget",
        "b",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    ),
    _object(
        "storage.k8s.io/v1",
        "StorageClass",
        "wait",
        provisioner="x",
        volumeBindingMode="WaitForFirstConsumer",
    ),
    _object(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "t",
        spec={"spec": {"devices": {"requests": []}}},
    ),
    _object("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", spec={"minMember": 2}),
)
_CHANGES: tuple[Change, ...] = (
    Drain("n1"),
    RemoveNode("n1"),
    Cordon("n1"),
    Scale("Deployment", "default", "dep", 3),
    Scale("StatefulSet", "default", "st", 3),
    Scale("ReplicaSet", "default", "web", 4),
    Delete("ResourceQuota", "default", "q"),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values below a value."""
    members: Any = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else members:
        yield (*path, key)
        yield from _places(each, (*path, key))


def _damaged(rng: Random, manifest: Manifest) -> Manifest:
    """Return a copy with one or two other values; its kind stays."""
    found = copy.deepcopy(manifest)
    for _ in range(rng.choice((1, 1, 2))):
        *above, last = rng.choice([p for p in _places(found) if p[-1] not in ("kind",)])
        parent: Any = found
        for key in above:
            parent = parent[key]
        if rng.random() < 0.15:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(rng.choice(_WRONG))
    return found


def _played(items: list[Manifest], change: Change) -> None:
    """Try a change; it may be refused."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    with contextlib.suppress(MoorageError):
        inputs = ClusterInputs(
            objects=read_objects(text.encode(), "test"), registry=in_tree_registry()
        )
        try_steps(inputs, [change])


@pytest.mark.parametrize("part", range(4))
def test_nothing_breaks(part: int) -> None:
    """A part plays a quarter of the runs."""
    for number in range(part, _RUNS, 4):
        rng = Streams(_SEED).stream(f"hostile {number}")
        index = rng.randint(0, len(OBJECTS) - 1)
        damaged, others = _damaged(rng, OBJECTS[index]), list(OBJECTS)
        if rng.random() < 0.4:
            change: Change = Apply(damaged)
            others = [each for each in others if each is not OBJECTS[index]]
        else:
            change, others[index] = rng.choice(_CHANGES), damaged
        _played(others, change)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        pytest.param({}, "a node without a name cannot be added", id="a node without anything"),
        pytest.param(
            {"metadata": {"name": "x"}, "status": {"allocatable": {"cpu": "-1"}}},
            r"Node x: status.allocatable\[cpu\]: -1 is negative",
            id="a negative amount",
        ),
    ],
)
@pytest.mark.parametrize(
    "kind", [AddNode, lambda obj: Apply({"apiVersion": "v1", "kind": "Node", **obj})]
)
def test_nodes_that_make_no_sense_are_refused(kind: Any, manifest: Manifest, message: str) -> None:
    with pytest.raises(MoorageError, match=message):
        try_steps(inputs_of(), [kind(manifest)])


@pytest.mark.parametrize("metadata", [["a"], "x", 5, True])
def test_metadata_of_a_custom_resource_that_is_no_object_is_refused(metadata: Any) -> None:
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {}}
    with pytest.raises(MoorageError, match=r"PodGroup\.metadata of type v1\.ObjectMeta"):
        try_steps(inputs_of(), [Apply({**group, "metadata": metadata})])

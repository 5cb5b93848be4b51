"""Nodes, pods and clusters for this room's tests, and the whole content of a snapshot by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.selectors import EVERYTHING, equality_selector
from moorage.snapshot.affinity_terms import TermKey, term_keys
from moorage.snapshot.pod_affinity import POD_AFFINITY
from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.sets import SetColumn
from moorage.snapshot.snapshot import Snapshot

RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "never.io/asked")
LABEL_KEYS = ("zone", "disk")
IMAGES = {"app:1": 700, "base:latest": 90}
COUNTS = tuple(
    CountKey(selector, namespaces, live_only)
    for selector in (EVERYTHING, equality_selector({"app": "web"}))
    for namespaces in (None, frozenset({"a"}), frozenset({"a", "b"}))
    for live_only in (False, True)
)


def node(name: str = "n1", *, labels=None, taints=(), unschedulable=False, **status: Any) -> Node:
    return from_dict(
        Node,
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, **status},
        },
    )


def pod(
    name: str = "p",
    *,
    requests=None,
    ports=(),
    namespace="a",
    labels=None,
    deleted=False,
    annotations=None,
    status=None,
    generate_name="",
    **spec: Any,
) -> Pod:
    first = {"name": "c", "resources": {"requests": requests or {}}, "ports": list(ports)}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}}
    if annotations is not None:
        metadata["annotations"] = annotations
    if generate_name:
        metadata["generateName"] = generate_name
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return from_dict(
        Pod,
        {
            "metadata": metadata,
            "spec": {"containers": [first], **spec},
            "status": status or {},
        },
    )


def port(number: int, *, ip: str = "", protocol: str = "") -> dict[str, Any]:
    return {"containerPort": 1, "hostPort": number, "hostIP": ip, "protocol": protocol}


def cluster(*nodes: Node, pods: dict[str, list[Pod]] | None = None) -> Snapshot:
    snapshot = Snapshot()
    for each in nodes:
        snapshot.table.add_node(each)
    for name, placed in (pods or {}).items():
        for each_pod in placed:
            snapshot.table.add_pod(each_pod, name)
    return snapshot


def taint_names(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Keys of each node's taints."""
    return {
        name: tuple(taint.key for taint in snapshot.taint_sets.at(row))
        for row, name in enumerate(snapshot.names)
    }


def content(snapshot: Snapshot, *, ports: bool = True) -> dict[str, dict[str, object]]:
    """Return everything the columns say about each node, decoded, by name.

    Used ports follow history (a port that two pods shared is freed by the first to go), so a
    comparison with a fresh build leaves them out.
    """
    facts: dict[str, Any] = {
        "pod_count": snapshot.pod_count,
        "allowed_pods": snapshot.allowed_pods,
        "unschedulable": snapshot.unschedulable,
        "nonzero_cpu": snapshot.nonzero_requested("cpu"),
        "nonzero_memory": snapshot.nonzero_requested("memory"),
    }
    for resource in RESOURCES:
        facts[f"allocatable {resource}"] = snapshot.allocatable(resource)
        facts[f"allocatable_float {resource}"] = snapshot.allocatable_float(resource)
        facts[f"requested {resource}"] = snapshot.requested(resource)
    for image in IMAGES:
        facts[f"image {image}"] = snapshot.image_presence(image)
    for i, count in enumerate(COUNTS):
        facts[f"count {i}"] = snapshot.count_column(count)
    lists = {name: column.tolist() for name, column in facts.items()}
    for key in LABEL_KEYS:
        column = snapshot.label_column(key)
        lists[f"label {key}"] = [None if i < 0 else column.values[i] for i in column.ids]
    sets: dict[str, SetColumn[Any]] = {
        "taints": snapshot.taint_sets,
        "features": snapshot.feature_sets,
    }
    if ports:
        sets["ports"] = snapshot.port_sets
    for name, column_of_sets in sets.items():
        lists[name] = [column_of_sets.item(int(i)) for i in column_of_sets.ids]
    lists["pods"] = [
        sorted(info.uid for info in pods) for pods in map(snapshot.pods, range(snapshot.num_nodes))
    ]
    assert {len(column) for column in lists.values()} == {snapshot.num_nodes}
    return {
        node_name: {name: column[row] for name, column in lists.items()}
        for row, node_name in enumerate(snapshot.names)
    }


TermCounts = dict[TermKey, tuple[int, dict[str, int]]]


def terms_by_name(snapshot: Snapshot) -> TermCounts:
    """Return what the index knows: uses and pods by label value for each distinct term."""
    return {
        (one.kind, one.term, one.weight): (one.uses, one.counts())
        for one in snapshot.affinity_terms
    }


def naive_terms(snapshot: Snapshot) -> TermCounts:
    """Return the same by walking nodes and pods."""
    found: TermCounts = {}
    for row, labels in enumerate(each.metadata.labels for each in snapshot.table.nodes):
        for info in snapshot.pods(row):
            for key in term_keys(info.part(POD_AFFINITY).value):
                uses, by_value = found.get(key, (0, {}))
                value = labels.get(key[1].topology_key)
                if value is not None:
                    by_value[value] = by_value.get(value, 0) + 1
                found[key] = uses + 1, by_value
    return found


def validate(snapshot: Snapshot) -> None:
    """Hold the parts of a table against each other."""
    table = snapshot.table
    rows = range(snapshot.num_nodes)
    assert [table.row_of(name) for name in table.names] == list(rows)
    assert [item.name for item in table.nodes] == list(table.names)
    assert len(table.pods_by_row) == len(table.image_sizes_by_row()) == snapshot.num_nodes
    for row in rows:
        for uid, info in table.pods_by_row[row].items():
            assert (table.node_of_pod(uid), table.pod_info(uid)) == (table.names[row], info)
    placed = [info for row in rows for info in snapshot.pods(row)]
    terminating = {info.uid: info for info in placed if info.pod.metadata.deletion_timestamp}
    assert table.terminating == terminating
    sets: tuple[SetColumn[Any], ...] = (table.taints, table.features, table.ports)
    for column in sets:
        used = np.bincount(column.ids, minlength=column.size).tolist()
        assert column._uses == used
        assert sorted({0, *(i for i, uses in enumerate(used) if uses)}) == list(column.live())
    assert terms_by_name(snapshot) == naive_terms(snapshot)
    counted = sum(len(pods) for pods in table.pods_by_row)
    hidden = sum(len(table._hidden[name]) for name in table.hidden_nodes)
    assert counted + hidden == table.pod_total

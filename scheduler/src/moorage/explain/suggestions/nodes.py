"""Suggestions of further nodes: one more node of a shape that is there, or else a larger one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from moorage.api.codec import to_dict
from moorage.api.node import Node
from moorage.api.pod import MIRROR, Pod
from moorage.api.quantity import canonical, parse_quantity
from moorage.api.requests import to_units
from moorage.explain.answer import Suggestion
from moorage.explain.suggestions.ranked import LARGER_NODE, NODE, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.nodeshapes.instance_types import GPU, InstanceType, instance_types
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot

HOST_LABEL: Final = "kubernetes.io/hostname"
NEW_NODE: Final = "one-more-node"
SHAPES_MOST: Final = 4
"""Shapes of which a further node is tried."""
TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
_SHARE: Final = {"cpu": 0.95, "memory": 0.9}
"""The part of a type's size that pods may request; the kubelet keeps the rest. A guess."""


class FurtherNode(NamedTuple):
    """A node that the cluster could have in addition.

    Attributes
    ----------
    row
        The row whose CSI drivers, and pods that come with nodes, the node has.
    node
        A node like it, with the name of another.
    words
        What it is like.
    size
        As `RankedSuggestion` has it.
    """

    row: int
    node: Node
    words: str
    size: float


def further_nodes(snapshot: Snapshot, pod: Pod) -> Iterator[FurtherNode]:
    """Yield nodes of the shapes that are there, then of the instance types with room for a pod.

    Those of a type have the labels, taints and other amounts of the commonest nodes.
    """
    shapes = node_shapes(snapshot)[:SHAPES_MOST]
    for row, count in shapes:
        example = snapshot.node(row)
        yield FurtherNode(row, example, shape_text(example, pod, count), NODE)
    for row, _ in shapes[:1]:
        example = snapshot.node(row)
        for each in _types_with_room(example, pod)[:SHAPES_MOST]:
            words = f"of a larger type, such as {_type_text(each)}"
            yield FurtherNode(row, _of_type(example, each), words, LARGER_NODE)


def more_nodes(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the first of the further nodes that takes the pod."""
    snapshot = trying.inquiry.snapshot
    for each in further_nodes(snapshot, trying.pod):
        new = node_like(each.node, free_node_name(snapshot))
        with node_added(snapshot, new, each.row) as row_added:
            takes = len(trying.rows_of(trying.pod, snapshot.rows([row_added]))) > 0
        if takes:
            text, created = f"one more node {each.words}", (node_to_create(new),)
            suggestion = Suggestion(kind="node", text=text, nodes=1, node=new.name, create=created)
            yield RankedSuggestion(each.size, suggestion)
            return


def _type_text(type_: InstanceType) -> str:
    """Return the name of an instance type, with its size."""
    amounts = ", ".join(f"{canonical(each)} {name}" for name, each in type_.resources.items())
    return f"{type_.name} ({amounts})"


def _types_with_room(example: Node, pod: Pod) -> list[InstanceType]:
    """Return the instance types that have room for a pod, the smallest first.

    Only types of the node's cloud, where its labels name a type that is known.
    """
    known = instance_types()
    own = known.get(example.metadata.labels.get(TYPE_LABEL, ""))
    wanted = PodInfo(pod).part(RESOURCES).value.filter
    has = example.status.allocatable
    fitting: list[tuple[list[int], InstanceType]] = []
    for each in known.values():
        if own is not None and each.cloud != own.cloud:
            continue
        amounts = {**has, **each.resources}
        if all(
            units <= to_units(name, parse_quantity(amounts.get(name, 0))) * _SHARE.get(name, 1.0)
            for name, units in wanted.items()
        ):
            size = [parse_quantity(each.resources.get(name, 0)) for name in (GPU, "cpu", "memory")]
            fitting.append((size, each))
    return [each for _, each in sorted(fitting, key=lambda entry: (entry[0], entry[1].name))]


def _of_type(node: Node, type_: InstanceType) -> Node:
    """Return a node with the amounts of an instance type, and its label where the node has one."""
    labels = dict(node.metadata.labels)
    if TYPE_LABEL in labels:
        labels[TYPE_LABEL] = type_.name
    metadata = msgspec.structs.replace(node.metadata, labels=labels)
    has = {**node.status.allocatable, **type_.resources}
    status = msgspec.structs.replace(node.status, allocatable=has, capacity=has)
    return msgspec.structs.replace(node, metadata=metadata, status=status)


def shape_text(example: Node, pod: Pod, count: int) -> str:
    """Return what a node like another has: cpu, memory, and what else the pod requests.

    Parameters
    ----------
    example
        The node.
    pod
        The pod for which a node is wanted.
    count
        The number of nodes of this shape.
    """
    has, names = example.status.allocatable, ["cpu", "memory"]
    names += sorted(has.keys() & PodInfo(pod).part(RESOURCES).value.filter.keys() - {*names})
    amounts = ", ".join(f"{canonical(has.get(name, 0))} {name}" for name in names)
    there = f"there {'is' if count == 1 else 'are'} {count} of this shape"
    return f"like {example.name} ({amounts}; {there})"


def node_shapes(snapshot: Snapshot) -> list[tuple[int, int]]:
    """Return, for each shape of the nodes, the first row by name and the number of nodes.

    Nodes have one shape if they agree in amounts, taints and labels, apart from the name.
    """
    columns = [snapshot.allowed_pods, snapshot.taint_sets.ids, snapshot.feature_sets.ids]
    columns += [snapshot.allocatable(name) for name in sorted(snapshot.table.exact_limit)]
    amounts = list(zip(*(column.tolist() for column in columns), strict=True))
    names, nodes = snapshot.names, snapshot.table.nodes
    rows_of: dict[tuple[object, ...], list[int]] = {}
    for row in np.flatnonzero(~snapshot.unschedulable).tolist():
        # Labels of one order are found by one look-up; sorting them costs five times as much.
        labels = dict(nodes[row].metadata.labels)
        labels.pop(HOST_LABEL, None)
        rows_of.setdefault((amounts[row], *labels.items()), []).append(row)
    alike: dict[object, list[int]] = {}
    for (amounts_here, *items), rows in rows_of.items():
        alike.setdefault((amounts_here, frozenset(items)), []).extend(rows)
    found = [(min(rows, key=names.__getitem__), len(rows)) for rows in alike.values()]
    return sorted(found, key=lambda each: (-each[1], names[each[0]]))


def free_node_name(snapshot: Snapshot) -> str:
    """Return a name that no node has, and that no pod names."""
    number, name, hidden = 1, NEW_NODE, snapshot.table.hidden_nodes
    while snapshot.row_of(name) is not None or name in hidden:
        number += 1
        name = f"{NEW_NODE}-{number}"
    return name


def node_like(example: Node, name: str) -> Node:
    """Return a new node of the shape of another."""
    labels = {**example.metadata.labels, HOST_LABEL: name}
    metadata = msgspec.structs.replace(
        example.metadata, name=name, uid=name, labels=labels, resource_version=""
    )
    status = msgspec.structs.replace(
        example.status, volumes_attached=[], volumes_in_use=[], images=[]
    )
    return msgspec.structs.replace(example, metadata=metadata, status=status)


def node_to_create(node: Node) -> dict[str, Any]:
    """Return the labels, taints and capacity of the node to create."""
    plain = to_dict(node)
    spec = {"taints": plain["spec"]["taints"]} if node.spec.taints else {}
    amounts = dict(node.status.allocatable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": dict(node.metadata.labels)},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


@contextmanager
def node_added(snapshot: Snapshot, new: Node, example: int) -> Iterator[int]:
    """Add a node on trial, with the example's CSI drivers, and its pods that come with nodes."""
    table, csi_nodes = snapshot.table, snapshot.listers.csi_nodes
    drivers = csi_nodes.get(snapshot.names[example])
    daemons = [pod for pod in snapshot.pods(example) if _comes_with_nodes(pod)]
    table.add_node(new)
    if drivers is not None:
        named = msgspec.structs.replace(drivers.metadata, name=new.name, uid=new.name)
        drivers = msgspec.structs.replace(drivers, metadata=named)
        csi_nodes.put(drivers)
    added: list[str] = []
    try:
        for index, pod in enumerate(daemons):
            uid = f"{new.name}-{index}"
            metadata = msgspec.structs.replace(pod.pod.metadata, uid=uid, name=uid)
            spec = msgspec.structs.replace(pod.pod.spec, node_name=new.name)
            copy = msgspec.structs.replace(pod.pod, metadata=metadata, spec=spec)
            table.add_pod(PodInfo(copy), new.name)
            added.append(uid)
        row = table.row_of(new.name)
        assert row is not None, "the node was just added"
        yield row
    finally:
        for uid in added:
            table.remove_pod(uid)
        if drivers is not None:
            csi_nodes.remove(drivers)
        table.remove_node(new.name)


def _comes_with_nodes(pod: PodInfo) -> bool:
    """Whether a further node of the shape has such a pod: of a DaemonSet, or a static one."""
    return MIRROR in pod.annotations or any(
        owner.kind == "DaemonSet" and owner.controller
        for owner in pod.pod.metadata.owner_references
    )

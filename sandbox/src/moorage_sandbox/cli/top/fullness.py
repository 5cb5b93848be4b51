"""Counts how full a cluster is: what pods request of what nodes offer. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import NANO, parse_quantity
from moorage.plugins.gpu_share.asking import node_requests

Kind = Literal["nodes", "pods", "namespaces"]

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_BASIC: Final = ("cpu", "memory")
# Resources that nearly every pod needs: where one of them is gone, the others are of no use.
_NEEDED: Final = ("cpu", "memory", "pods")
# From this share on, a resource of a node counts as gone.
_GONE_PERCENT: Final = 95

Amounts = dict[str, int]
"""Amounts in nano units, by resource."""


class Total(msgspec.Struct, frozen=True, rename="camel"):
    """One resource over all nodes, in nano units.

    Parameters
    ----------
    resource
        Its name.
    used, allocatable
        What bound pods request, and what nodes offer.
    free
        The sum of what nodes have left; a node with too many requests has nothing left.
    largest_free
        The most that one node has left.
    stranded
        Free amounts on nodes where cpu, memory or the number of pods is used to 95 % or more.
    """

    resource: str
    used: int
    allocatable: int
    free: int
    largest_free: int
    stranded: int


class Row(msgspec.Struct, frozen=True):
    """A node, a pod or a namespace.

    Parameters
    ----------
    name
        Its name.
    pods, used
        Its bound pods, and what they request.
    allocatable
        What a node offers.
    owner
        The owner of a pod, as ``kind/name``; "" for none.
    """

    name: str
    pods: int
    used: Amounts
    allocatable: Amounts = {}
    owner: str = ""


class Fullness(msgspec.Struct, frozen=True):
    """The fullness of a cluster, and the number of its nodes; pods are counted by phase."""

    totals: tuple[Total, ...]
    phases: dict[str, int]
    rows: tuple[Row, ...]
    nodes: int = 0


def fullness(
    nodes: Sequence[Node], pods: Sequence[Pod], resources: Sequence[str], kind: Kind
) -> Fullness:
    """Count requests of bound pods that have not finished, and the GPUs that they hold.

    Parameters
    ----------
    resources
        What to count; empty for cpu, memory, and the extended resources of nodes.
    kind
        What the rows are.
    """
    by_name = {node.name: node for node in nodes}
    bound = [
        (pod, node_requests(pod, by_name.get(pod.spec.node_name)) | {"pods": NANO})
        for pod in pods
        if pod.spec.node_name and pod.status.phase not in _FINISHED
    ]
    on_nodes = _rows(
        [(pod.spec.node_name, requests) for pod, requests in bound],
        {name: _allocatable(node) for name, node in by_name.items()},
    )
    offered = sorted({name for row in on_nodes for name in row.allocatable if "/" in name})
    shown = tuple(resources) or (*_BASIC, *offered)
    rows = on_nodes
    if kind == "pods":
        owners = {pod.full_name: pod.metadata.owner_title for pod, _ in bound}
        rows = [
            msgspec.structs.replace(row, owner=owners[row.name])
            for row in _rows([(pod.full_name, requests) for pod, requests in bound], {})
        ]
    elif kind == "namespaces":
        rows = _rows([(pod.namespace, requests) for pod, requests in bound], {})
    return Fullness(
        totals=tuple(_total(name, on_nodes) for name in shown),
        phases=dict(sorted(Counter(pod.status.phase or "Pending" for pod in pods).items())),
        rows=tuple(rows),
        nodes=len(nodes),
    )


def _rows(requests: Sequence[tuple[str, Amounts]], allocatable: Mapping[str, Amounts]) -> list[Row]:
    used: dict[str, Counter[str]] = {name: Counter() for name in allocatable}
    for name, asked in requests:
        used.setdefault(name, Counter()).update(asked)
    return [
        Row(name, amounts["pods"] // NANO, dict(amounts), allocatable.get(name, {}))
        for name, amounts in sorted(used.items())
    ]


def _total(resource: str, rows: Sequence[Row]) -> Total:
    free = [max(0, row.allocatable.get(resource, 0) - row.used.get(resource, 0)) for row in rows]
    return Total(
        resource=resource,
        used=sum(row.used.get(resource, 0) for row in rows),
        allocatable=sum(row.allocatable.get(resource, 0) for row in rows),
        free=sum(free),
        largest_free=max(free, default=0),
        stranded=sum(
            left for left, row in zip(free, rows, strict=True) if _another_is_gone(resource, row)
        ),
    )


def _another_is_gone(resource: str, row: Row) -> bool:
    """Whether another resource of the node is gone."""
    return any(
        100 * row.used.get(name, 0) >= _GONE_PERCENT * row.allocatable.get(name, 0)
        for name in _NEEDED
        if name != resource
    )


def _allocatable(node: Node) -> Amounts:
    return {name: parse_quantity(amount) for name, amount in node.status.allocatable.items()}

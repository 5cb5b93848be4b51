"""Templates of the nodes to play: default nodes, or nodes read from a file.

The command line makes templates here and hands them to ``agents``. A template is a Node object
as plain JSON values: metadata, spec and the lasting part of status.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from moorage.api.bounds import OF_FILE, check_bounds
from moorage.api.codec import decode_untyped, from_dict
from moorage.api.manifest_text import object_texts
from moorage.api.names import dns_subdomain_faults
from moorage.api.node import Node
from moorage.api.quantity import parse_quantity
from moorage.base.errors import DecodeError, UsageError
from moorage.base.files import DATA_BYTES_MAX, read_file

NodeTemplate: TypeAlias = dict[str, object]
"""A Node object as plain JSON values."""

ZONES = ("a", "b", "c")
DEFAULT_RESOURCES = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}

# Fields that other programs wrote about a past object: not part of a template.
_METADATA_KEPT = ("name", "labels", "annotations")
_STATUS_KEPT = (
    "allocatable",
    "capacity",
    "images",
    "nodeInfo",
    "addresses",
    "declaredFeatures",
    "features",
)
# Taints that mirror a condition; the agent reports its nodes in good health.
_CONDITION_TAINTS = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        "not-ready",
        "unreachable",
        "memory-pressure",
        "disk-pressure",
        "pid-pressure",
        "network-unavailable",
    )
)


def default_nodes(
    count: int,
    *,
    prefix: str = "node",
    resources: Mapping[str, str] | None = None,
    first: int = 1,
) -> list[NodeTemplate]:
    """Return templates of equal nodes, spread over three zones.

    Parameters
    ----------
    count
        Number of nodes.
    prefix
        Names are ``<prefix>-<number>``, numbers of equal length.
    resources
        Capacity and allocatable; None for 8 cpu, 32Gi memory, 100Gi disk, 110 pods.
    first
        Number of the first node.
    """
    width = max(2, len(str(first + count - 1)))
    amounts = dict(DEFAULT_RESOURCES if resources is None else resources)
    templates: list[NodeTemplate] = []
    for number in range(first, first + count):
        labels = {"topology.kubernetes.io/zone": ZONES[(number - 1) % len(ZONES)]}
        template: NodeTemplate = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"{prefix}-{number:0{width}d}", "labels": labels},
            "spec": {},
            "status": {"capacity": dict(amounts), "allocatable": dict(amounts)},
        }
        templates.append(complete(template))
    return templates


def load_nodes(path: Path) -> list[NodeTemplate]:
    """Read templates from a file: Nodes, one or in a List, YAML or JSON.

    The output of ``kubectl get nodes -o json`` can be used as it is.

    Raises
    ------
    UsageError
        The file cannot be read, or a node in it cannot be played; the message names the node and
        why.
    """
    try:
        text = read_file(path, DATA_BYTES_MAX)
    except OSError as error:
        raise UsageError(f"{path}: cannot read the nodes: {error.strerror}") from error
    templates: dict[str, NodeTemplate] = {}
    for number, raw in enumerate(_nodes(text, path), start=1):
        template = _checked(raw, f"{path}: node {number}")
        name = name_of(template)
        if name in templates:
            raise UsageError(f"{path}: there are two nodes named {name}; give each its own name")
        templates[name] = template
    if not templates:
        raise UsageError(f"{path}: there are no nodes in it; write Node objects, or a List of them")
    return list(templates.values())


def complete(template: NodeTemplate) -> NodeTemplate:
    """Add missing labels and resources that every kubelet reports, and a region."""
    return _completed(template, {"topology.kubernetes.io/region": "sandbox"})


def _completed(template: NodeTemplate, more: Mapping[str, str]) -> NodeTemplate:
    """Add what every kubelet reports, and more labels, where they are missing."""
    node = copy.deepcopy(template)
    metadata = _mapping(node, "metadata")
    defaults = {
        "kubernetes.io/hostname": str(metadata["name"]),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **more,
    }
    metadata["labels"] = defaults | _mapping(metadata, "labels")
    status = _mapping(node, "status")
    allocatable = _mapping(status, "allocatable") or dict(_mapping(status, "capacity"))
    if allocatable:
        allocatable.setdefault("pods", DEFAULT_RESOURCES["pods"])
    status["allocatable"] = allocatable
    status["capacity"] = allocatable | _mapping(status, "capacity")
    return node


def template_of(node: Mapping[str, object]) -> NodeTemplate:
    """Return the template of a node read from a server, which says its region itself."""
    return _completed(_lasting(node), {})


def name_of(template: NodeTemplate) -> str:
    """Return the node's name."""
    return str(_mapping(template, "metadata")["name"])


def _nodes(text: bytes, path: Path) -> Iterable[Mapping[str, object]]:
    try:
        documents = [(where, decode_untyped(each)) for where, each in object_texts(text)]
    except DecodeError as error:
        raise UsageError(f"{path}: {error}") from error
    for where, document in documents:
        kind = document.get("kind", "Node" if "item" in where else "")
        if kind != "Node":
            raise UsageError(f"{path}: a {kind or 'thing without kind'} where Nodes should be")
        try:
            check_bounds(document, OF_FILE)
        except DecodeError as error:
            raise UsageError(f"{path}: {error}") from error
        yield {"kind": "Node", **document}


def _checked(raw: Mapping[str, object], where: str) -> NodeTemplate:
    try:
        node = from_dict(Node, raw)
    except DecodeError as error:
        raise UsageError(f"{where}: {error}") from error
    if faults := dns_subdomain_faults(node.name):
        raise UsageError(f"{where}: metadata.name {node.name!r}: {faults[0]}")
    for field, amounts in (
        ("capacity", node.status.capacity),
        ("allocatable", node.status.allocatable),
    ):
        for resource, amount in amounts.items():
            try:
                negative = parse_quantity(amount) < 0
            except ValueError as error:
                text = f"{where} ({node.name}): status.{field}.{resource}: {amount!r}: {error}"
                raise UsageError(text) from error
            if negative:
                raise UsageError(f"{where} ({node.name}): status.{field}.{resource} is negative")
    if not node.status.allocatable and not node.status.capacity:
        raise UsageError(
            f"{where} ({node.name}): no status.allocatable and no status.capacity, so no pod "
            "could ever run there; add one of them"
        )
    return complete(_lasting(raw))


def _lasting(raw: Mapping[str, object]) -> NodeTemplate:
    """Return the lasting fields of a node, without the fields of its past."""
    metadata, spec, status = (_mapping(raw, part) for part in ("metadata", "spec", "status"))
    taints = spec.get("taints")
    kept_spec = {key: value for key, value in spec.items() if value is not None}
    if isinstance(taints, list):
        kept_spec["taints"] = [
            {key: value for key, value in taint.items() if key != "timeAdded"}
            for taint in taints
            if isinstance(taint, dict) and taint.get("key") not in _CONDITION_TAINTS
        ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {key: metadata[key] for key in _METADATA_KEPT if metadata.get(key)},
        "spec": kept_spec,
        "status": {key: status[key] for key in _STATUS_KEPT if status.get(key)},
    }


def _mapping(parent: Mapping[str, object], name: str) -> dict[str, object]:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}

"""The shapes of a cluster's nodes: what a further node could look like.

Nodes have one shape if decisions about the pods that wait cannot tell them apart: they offer the
same, and have the same taints and the same labels, as far as a label is asked about at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from moorage.api.node import Node
from moorage.api.quantity import parse_quantity
from moorage.framework.points import Plugin
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import ClusterObjects

HOSTNAME: Final = "kubernetes.io/hostname"
SHAPES_MOST: Final = 20
"""So many shapes are tried, those of the most nodes: a guess, more than a table should have."""
_SIZE: Final = ("cpu", "memory")
# A zone or a region has several label keys, and volumes are read by any of them.
_FAMILIES: Final = frozenset({"zone", "region"})

Shape = tuple[str, Mapping[str, Any]]
"""The first node of a shape, and the manifest of a node like it."""


class Shapes(msgspec.Struct, frozen=True):
    """The shapes to try, the smallest first.

    Parameters
    ----------
    tried
        The shapes.
    left_out
        The first nodes of those that are left out.
    labels
        The label keys that make a difference; None for all of them.
    """

    tried: list[tuple[str, dict[str, Any]]]
    left_out: list[str]
    labels: frozenset[str] | None


def shapes_to_try(model: ClusterModel) -> Shapes:
    """Return the shapes of a cluster's nodes, at most `SHAPES_MOST`: those of the most nodes."""
    labels = labels_in_question(model)
    grouped = _grouped(model.objects, labels)
    common = sorted(grouped, key=lambda nodes: (-len(nodes), _size(nodes[0])))
    tried = sorted((nodes[0] for nodes in common[:SHAPES_MOST]), key=_size)
    left_out = sorted((nodes[0] for nodes in common[SHAPES_MOST:]), key=_size)
    shapes = [(node.name, _manifest(node)) for node in tried]
    return Shapes(shapes, [node.name for node in left_out], labels)


def differences(
    manifests: Sequence[Mapping[str, Any]], labels: Collection[str] | None = None
) -> list[dict[str, str]]:
    """Return in what each shape differs from those of the same cpu and memory.

    Parameters
    ----------
    manifests
        The shapes.
    labels
        The label keys that make a difference; None for all of them.

    Returns
    -------
    list of dict
        For each shape, labels, taints and amounts by their names; "" for one that only others have.
    """
    facts = [_facts(each, labels) for each in manifests]
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, each in enumerate(facts):
        alike.setdefault(tuple(each.get(name, "") for name in _SIZE), []).append(number)
    differing: list[dict[str, str]] = [{} for _ in facts]
    for numbers in alike.values():
        for name in sorted({name for number in numbers for name in facts[number]}):
            values = [facts[number].get(name, "") for number in numbers]
            if len(set(values)) > 1:
                for number, value in zip(numbers, values, strict=True):
                    differing[number][name] = value
    return differing


def _facts(manifest: Mapping[str, Any], labels: Collection[str] | None) -> dict[str, str]:
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    facts = {
        key: str(value)
        for key, value in (metadata.get("labels") or {}).items()
        if labels is None or key in labels
    }
    for each in spec.get("taints") or []:
        # A key may have a taint of each effect.
        facts[f"taint {each['key']}:{each['effect']}"] = each.get("value") or "yes"
    allocatable = manifest["status"].get("allocatable") or {}
    return facts | {name: str(amount) for name, amount in allocatable.items()}


def labels_in_question(model: ClusterModel) -> frozenset[str] | None:
    """Return the label keys of nodes that may matter to a pod that waits; None for all of them.

    A key counts if it occurs anywhere in a pod that waits, in the affinity of another pod, in an
    object of another kind that the scheduler watches, or in the configuration. That is more than
    the plugins read, and never less. A plugin from outside may read any label.
    """
    inputs, objects = model.inputs, model.objects
    profiles = model.half.core.profiles.values()
    names = {
        cast("Plugin", plugin).name
        for profile in profiles
        for plugins in profile.points.values()
        for plugin in plugins
    }
    for name in sorted(names):
        entry = inputs.registry.find(name)
        if entry is None or entry.origin:
            return None
    keys = {key for node in objects.nodes.values() for key in node.metadata.labels}
    words: set[str] = set()
    _add_words(inputs.config, words)
    for pod in objects.pods.values():
        if not pod.spec.node_name:
            _add_words((pod.spec, pod.metadata.annotations), words)
        elif pod.spec.affinity is not None:
            _add_words(pod.spec.affinity, words)
    for found in objects.watched.values():
        for obj in found.values():
            _add_words(obj, words)
    families = {_family(word) for word in words if "/" in word} & _FAMILIES
    return frozenset(key for key in keys if key in words or _family(key) in families)


def _family(key: str) -> str:
    return key.rpartition("/")[2]


def _add_words(value: object, words: set[str]) -> None:
    """Add every text in a value, keys of mappings and label values included."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            words.add(each)
        elif isinstance(each, msgspec.Struct):
            left += [getattr(each, name) for name in each.__struct_fields__]
        elif isinstance(each, Mapping):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, Iterable) and not isinstance(each, bytes | msgspec.Raw):
            left += each


def _grouped(objects: ClusterObjects, labels: Collection[str] | None) -> list[list[Node]]:
    known: dict[bytes, list[Node]] = {}
    for name in sorted(objects.nodes):
        node = objects.nodes[name]
        manifest = _manifest(node)
        if labels is not None:
            found = manifest["metadata"]["labels"]
            manifest["metadata"]["labels"] = {k: v for k, v in found.items() if k in labels}
        known.setdefault(msgspec.json.encode(manifest, order="sorted"), []).append(node)
    return list(known.values())


def _manifest(node: Node) -> dict[str, Any]:
    labels = {k: v for k, v in node.metadata.labels.items() if k != HOSTNAME}
    taints = [each for each in node.spec.taints if not each.key.startswith("node.kubernetes.io/")]
    return {
        "metadata": {"labels": labels},
        "spec": {"taints": [msgspec.to_builtins(each) for each in taints]},
        "status": {
            "allocatable": dict(node.status.allocatable),
            "capacity": dict(node.status.allocatable),
        },
    }


def _size(node: Node) -> tuple[int, int, str]:
    offered = node.status.allocatable
    cpu, memory = (parse_quantity(offered.get(each, 0)) for each in _SIZE)
    return cpu, memory, node.name

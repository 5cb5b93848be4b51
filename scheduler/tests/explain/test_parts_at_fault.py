"""Of several parts of a pod the sentence names those at fault, and no other.

For each kind of part a pod has several of them. A draw decides which are at fault on which nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.base.rng import Random, Streams
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
SEEDS = range(6)

Faults = dict[str, set[int]]
"""Part to the nodes on which it is at fault."""
Made = tuple[list[Manifest], Manifest]


def _labels(nodes: range) -> list[dict[str, str]]:
    return [{"rack": f"r{index}", "zone": f"z{index}"} for index in nodes]


def ports(parts: list[str], faults: Faults, count: int) -> Made:
    """Pods on the nodes have the ports."""
    nodes = [node_manifest(f"n{index}") for index in range(count)]
    having = [
        bound(f"has-{part}-{index}", f"n{index}", host_ports=[_port(part)])
        for part in parts
        for index in sorted(faults[part])
    ]
    return [*nodes, *having], waiting("p", host_ports=[_port(part) for part in parts])


def _port(part: str) -> int:
    return 8000 + "abcdef".index(part)


def constraints(parts: list[str], faults: Faults, count: int) -> Made:
    """A constraint counts pods of one label over the nodes; only free nodes have none of them."""
    nodes = [node_manifest(f"n{index}") for index in range(count)]
    # An empty node that the pod does not choose keeps the least number at 0.
    nodes.append(node_manifest("far", taints=[{"key": "far", "effect": "NoSchedule"}]))
    having = [
        bound(f"has-{part}-{index}", f"n{index}", labels={part: "yes"})
        for part in parts
        for index in sorted(faults[part])
    ]
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {part: "yes"}},
            "minDomains": "abcdef".index(part) + 1,
        }
        for part in parts
    ]
    labels = dict.fromkeys(parts, "yes")
    pod = waiting("p", labels=labels, topologySpreadConstraints=constraints)
    return [*nodes, *having], pod


def _terms(kind: str, parts: list[str]) -> dict[str, Any]:
    terms = [
        {"labelSelector": {"matchLabels": {part: "yes"}}, "topologyKey": HOSTNAME} for part in parts
    ]
    return {kind: {REQUIRED: terms}}


def anti_affinity(parts: list[str], faults: Faults, count: int) -> Made:
    nodes = [node_manifest(f"n{index}") for index in range(count)]
    having = [
        bound(f"has-{part}-{index}", f"n{index}", labels={part: "yes"})
        for part in parts
        for index in sorted(faults[part])
    ]
    return [*nodes, *having], waiting("p", affinity=_terms("podAntiAffinity", parts))


def affinity(parts: list[str], faults: Faults, count: int) -> Made:
    """A pod on each node matches all terms, and each term wants a label of the node as well."""
    nodes = []
    for index in range(count):
        keys = [part for part in parts if index not in faults[part]]
        nodes.append(node_manifest(f"n{index}", labels=dict.fromkeys(keys, f"d{index}")))
    labels = dict.fromkeys(parts, "yes")
    everywhere = dict.fromkeys(parts, "d")
    partner_node = node_manifest(
        "far", labels=everywhere, taints=[{"key": "far", "effect": "NoSchedule"}]
    )
    partners = [bound(f"q{index}", f"n{index}", labels=labels) for index in range(count)]
    terms = [
        {"labelSelector": {"matchLabels": {part: "yes"}}, "topologyKey": part} for part in parts
    ]
    pod = waiting("p", affinity={"podAffinity": {REQUIRED: terms}})
    return [partner_node, *nodes, *partners], pod


def _labelled(parts: list[str], faults: Faults, count: int) -> list[Manifest]:
    return [
        node_manifest(
            f"n{index}",
            labels={part: "no" if index in faults[part] else "yes" for part in parts},
        )
        for index in range(count)
    ]


def selectors(parts: list[str], faults: Faults, count: int) -> Made:
    return _labelled(parts, faults, count), waiting("p", node_selector=dict.fromkeys(parts, "yes"))


def expressions(parts: list[str], faults: Faults, count: int) -> Made:
    found = [{"key": part, "operator": "In", "values": ["yes"]} for part in parts]
    terms = [{"matchExpressions": found}]
    pod = waiting("p", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    return _labelled(parts, faults, count), pod


def taints(parts: list[str], faults: Faults, count: int) -> Made:
    nodes = [
        node_manifest(
            f"n{index}",
            taints=[
                {"key": part, "effect": "NoSchedule"} for part in parts if index in faults[part]
            ],
        )
        for index in range(count)
    ]
    return nodes, waiting("p")


def requests(parts: list[str], faults: Faults, count: int) -> Made:
    """Pods on the nodes take all of an extended resource."""
    amounts: dict[str, Any] = {f"example.com/{part}": "2" for part in parts}
    nodes = [node_manifest(f"n{index}", **amounts) for index in range(count)]
    having = [
        bound(f"has-{part}-{index}", f"n{index}", containers=[_container({part: "2"})])
        for part in parts
        for index in sorted(faults[part])
    ]
    return [*nodes, *having], waiting("p", containers=[_container(dict.fromkeys(parts, "1"))])


def _container(parts: dict[str, str]) -> dict[str, Any]:
    amounts = {f"example.com/{part}": amount for part, amount in parts.items()}
    resources = {"requests": amounts, "limits": amounts}
    return {"name": "main", "image": "registry.example/app:1", "resources": resources}


KINDS: list[Any] = [
    pytest.param(ports, "the host port {port}/TCP", id="host ports"),
    pytest.param(constraints, "minDomains {place}", id="spread constraints"),
    pytest.param(anti_affinity, "({part}=yes over", id="anti-affinity terms"),
    pytest.param(affinity, "({part}=yes over", id="affinity terms"),
    pytest.param(selectors, "{part}=yes", id="labels of nodeSelector"),
    pytest.param(expressions, "{part} In [yes]", id="expressions of node affinity"),
    pytest.param(taints, "{part}:NoSchedule", id="taints"),
    pytest.param(requests, "example.com/{part} (", id="requests"),
]


def _mentioned(sentence: str, parts: list[str], pattern: str) -> list[str]:
    return [
        part
        for part in parts
        if pattern.format(part=part, port=_port(part), place="abcdef".index(part) + 1) in sentence
    ]


def _faults(draw: Random, parts: list[str], guilty: list[str], count: int) -> Faults:
    """Return nodes for each guilty part, so that every node has some guilty part."""
    faults: Faults = {part: set() for part in parts}
    for index in range(count):
        faults[draw.choice(guilty)].add(index)
    for place, part in enumerate(guilty):
        faults[part].add(place)
    return faults


@pytest.mark.parametrize(("made", "pattern"), KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_part_at_fault_is_named_alone(
    made: Callable[[list[str], Faults, int], Made], pattern: str, seed: int
) -> None:
    draw = Streams(seed).stream("part")
    parts = draw.sample("abcdef", draw.randint(2, 4))
    guilty = draw.choice(parts)
    count = draw.randint(1, 4)
    faults: Faults = {part: set(range(count)) if part == guilty else set() for part in parts}
    manifests, pod = made(parts, faults, count)
    sentence = explained(*manifests, pod).sentence
    assert _mentioned(sentence, parts, pattern) == [guilty], sentence


@pytest.mark.parametrize(("made", "pattern"), KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_parts_at_fault_on_different_nodes_are_all_named(
    made: Callable[[list[str], Faults, int], Made], pattern: str, seed: int
) -> None:
    draw = Streams(seed).stream("parts")
    parts = draw.sample("abcdef", 4)
    guilty = [part for part in parts if part in draw.sample(parts, 2)]
    count = draw.randint(2, 4)
    faults = _faults(draw, parts, guilty, count)
    manifests, pod = made(parts, faults, count)
    sentence = explained(*manifests, pod).sentence
    assert _mentioned(sentence, parts, pattern) == guilty, sentence

"""Scores, node by node, from the scheduling spec: slow and plain on purpose, as `filters`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from moorage.api.node import Node
from moorage.api.pod import NodeAffinity, Pod
from moorage.api.requests import pod_requests
from moorage_lab.fault_sim.reference.filters import (
    allocatable,
    is_scalar,
    node_affinity_of,
    term_matches,
    tolerates,
    units,
    used,
    used_with_defaults,
)

MIB: Final = 2**20
Weights = Sequence[tuple[str, int]]
"""Resources that count, each with its weight."""


def affinity_score(pod: Pod, node: Node, added: NodeAffinity | None = None) -> int:
    """Return the weights of the wishes that a node meets, by NodeAffinity."""
    total = 0
    for affinity in (node_affinity_of(pod), added):
        wishes = affinity and affinity.preferred_during_scheduling_ignored_during_execution
        for wish in wishes or ():
            if term_matches(wish.preference, node):
                total += wish.weight
    return total


def taint_score(pod: Pod, node: Node) -> int:
    """Return the number of soft taints that a pod does not tolerate, by TaintToleration."""
    soft = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(tolerates(t, taint) for t in soft)
        for taint in node.spec.taints
    )


def normalized(raw: Sequence[int], *, reverse: bool) -> list[int]:
    """Return scores from 0 to 100."""
    top = max(raw, default=0)
    scaled = [0 if top == 0 else score * 100 // top for score in raw]
    return [100 - score for score in scaled] if reverse else scaled


def used_by_resource(
    pod: Pod, node: Node, pods: Sequence[Pod], resources: Weights, *, balanced: bool = False
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (allocatable, used without, used with the pod, weight) of resources that count."""
    if balanced:
        want = units(pod_requests(pod, use_status=True, pod_level=True))
    else:
        want = units(pod_requests(pod, use_status=False, pod_level=False, non_zero=True))
    have = allocatable(node)
    for name, weight in resources:
        amount = want.get(name, 0)
        if have.get(name, 0) == 0 or (is_scalar(name) and amount == 0):
            continue
        before = used(pods, name) if balanced else used_with_defaults(pods, name)
        yield have[name], before, before + amount, weight


def least(pod: Pod, node: Node, pods: Sequence[Pod], resources: Weights) -> int:
    """Return the score of LeastAllocated."""
    total = weights = 0
    for have, _, want, weight in used_by_resource(pod, node, pods, resources):
        total += weight * (0 if want > have else (have - want) * 100 // have)
        weights += weight
    return total // weights if weights else 0


def most(pod: Pod, node: Node, pods: Sequence[Pod], resources: Weights) -> int:
    """Return the score of MostAllocated."""
    total = weights = 0
    for have, _, want, weight in used_by_resource(pod, node, pods, resources):
        total += weight * (min(want, have) * 100 // have)
        weights += weight
    return total // weights if weights else 0


def shape_value(points: Sequence[tuple[int, int]], percent: int) -> int:
    """Return the value of a shape at a share, in tenths of its scores."""
    points = [(at, score * 10) for at, score in points]
    for index, (at, score) in enumerate(points):
        if percent <= at:
            if index == 0:
                return score
            left, base = points[index - 1]
            return base + math.trunc((score - base) * (percent - left) / (at - left))
    return points[-1][1]


def ratio(
    pod: Pod,
    node: Node,
    pods: Sequence[Pod],
    resources: Weights,
    points: Sequence[tuple[int, int]],
) -> int:
    """Return the score of RequestedToCapacityRatio."""
    total = weights = 0
    for have, _, want, weight in used_by_resource(pod, node, pods, resources):
        score = shape_value(points, 100 if want > have else want * 100 // have)
        if score > 0:
            total += score * weight
            weights += weight
    return math.floor(total / weights + 0.5) if weights else 0


def balance(fractions: Sequence[float]) -> int:
    """Return how even shares are, 100 for equal ones."""
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean, squares = total / float(len(fractions)), 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / float(len(fractions)))
    return int((1 - deviation) * 100.0)


def balanced(pod: Pod, node: Node, pods: Sequence[Pod], resources: Weights) -> int:
    """Return the score of NodeResourcesBalancedAllocation."""
    rows = list(used_by_resource(pod, node, pods, resources, balanced=True))
    after = balance([min(1.0, float(want) / float(have)) for have, _, want, _ in rows])
    before = balance([min(1.0, float(was) / float(have)) for have, was, _, _ in rows])
    return 50 + (50 + after - before) // 2


def image_name(name: str) -> str:
    """Return the name of an image with its tag."""
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"


def image_locality(pod: Pod, node: Node, nodes: Sequence[Node]) -> int:
    """Return the score of ImageLocality, where nodes agree on the size of each image."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    wanted = [c.image for c in containers]
    wanted += [volume.image.reference for volume in pod.spec.volumes if volume.image]
    total = 0
    for name in map(image_name, wanted):
        sizes = {n: i.size_bytes for i in node.status.images for n in i.names}
        if name in sizes:
            spread = sum(any(name in i.names for i in n.status.images) for n in nodes)
            total += int(float(sizes[name]) * (float(spread) / float(len(nodes))))
    most_bytes = 1000 * MIB * len(containers)
    clamped = min(max(total, 23 * MIB), most_bytes)
    return 100 * (clamped - 23 * MIB) // (most_bytes - 23 * MIB)

"""GPU sharing in plain Python: one node at a time, as the definitions are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.config.plugin_args_gpu import TypicalPod

Devices = list[int]


@dataclass
class RefNode:
    cpu: int
    memory: int
    free: Devices
    model: str = ""
    tags: set[str] = field(default_factory=set)
    pods: int = 0


@dataclass(frozen=True)
class RefPod:
    cpu: int
    memory: int = 0
    gpus: int = 0
    milli: int = 0
    models: frozenset[str] = frozenset()

    @property
    def tag(self) -> str:
        return "share" if self.milli < 1000 else f"{self.gpus}-gpu"

    @property
    def total(self) -> int:
        return self.gpus * self.milli


def fits(node: RefNode, pod: RefPod) -> bool:
    if pod.cpu > node.cpu or pod.memory > node.memory:
        return False
    if pod.gpus == 0:
        return True
    if pod.models and node.model not in pod.models:
        return False
    return sum(left >= pod.milli for left in node.free) >= pod.gpus


def take_whole(free: Devices, pod: RefPod) -> Devices:
    left, found = pod.gpus, []
    for each in free:
        taken = left > 0 and each == 1000
        left -= taken
        found.append(0 if taken else each)
    return found


def after_each(node: RefNode, pod: RefPod) -> list[tuple[int, RefNode]]:
    """The node after each choice of a device; device -1 where there is no choice."""

    def with_free(free: Devices) -> RefNode:
        return RefNode(node.cpu - pod.cpu, node.memory - pod.memory, free, node.model)

    if pod.gpus == 0 or pod.milli == 1000:
        return [(-1, with_free(take_whole(node.free, pod)))]
    found = []
    for device, left in enumerate(node.free):
        if left >= pod.milli:
            free = list(node.free)
            free[device] -= pod.milli
            found.append((device, with_free(free)))
    return found


def fragmentation(
    node: RefNode, typical: Sequence[TypicalPod], *, slack: float | None = None
) -> float:
    """Idle GPU that typical pods cannot use; with `slack`, as GpuLookahead counts it."""
    total_share = sum(pod.share for pod in typical)
    idle, fragmented = sum(node.free), 0.0
    mean_cpu = sum(p.share * p.cpu_milli for p in typical if p.gpus)
    mean_gpu = sum(p.share * p.gpus * p.gpu_milli for p in typical)
    for pod in typical:
        fitting = [left for left in node.free if left >= pod.gpu_milli]
        admitted = not pod.models or node.model in pod.models
        ok = pod.gpus and admitted and len(fitting) >= pod.gpus and node.cpu >= pod.cpu_milli
        usable = float(sum(fitting)) if ok else 0.0
        if ok and slack is not None:
            spare = node.cpu - pod.cpu_milli
            usable = min(usable, pod.gpus * pod.gpu_milli + slack * mean_gpu / mean_cpu * spare)
        fragmented += pod.share / total_share * (idle - usable)
    return fragmented


def fragmentation_by_category(node: RefNode, typical: Sequence[TypicalPod]) -> float:
    """The same, in the order of the published program: to the last bit."""
    sums = dict.fromkeys(("both", "gpu", "cpu", "plain fits", "plain full", "model"), 0.0)
    idle = sum(node.free)
    for pod in typical:
        has_cpu, amount = node.cpu >= pod.cpu_milli, idle
        if pod.gpus == 0:
            category = "plain fits" if has_cpu else "plain full"
        elif pod.models and node.model not in pod.models:
            category = "model"
        elif sum(left >= pod.gpu_milli for left in node.free) >= pod.gpus:
            category = "gpu" if has_cpu else "cpu"
            if has_cpu:
                amount = sum(left for left in node.free if left < pod.gpu_milli)
        else:
            category = "gpu" if has_cpu else "both"
        sums[category] += pod.share * amount
    total = 0.0
    for each in sums.values():
        total += each
    return total


def fgd_growth(before: RefNode, after: RefNode, typical: Sequence[TypicalPod]) -> float:
    was = fragmentation_by_category(before, typical)
    return fragmentation_by_category(after, typical) - was


def loss(before: RefNode, after: RefNode, typical: Sequence[TypicalPod], **how: float) -> float:
    found = fragmentation(after, typical, **how) - fragmentation(before, typical, **how)
    return 0.0 if abs(found) < 1e-6 else found


def fgd_score(growth: float) -> int:
    return int(100 / (1 + math.exp(growth / 1000)))


def dot_product(node: RefNode, pod: RefPod) -> int:
    dot = (node.cpu / 128000) * (pod.cpu / 128000) + (sum(node.free) / 8000) * (pod.total / 8000)
    return int(100 * (1 - dot / 2))


def clustering(node: RefNode, pod: RefPod) -> int:
    if pod.gpus == 0:
        return 0
    base = 25 * (8000 - sum(node.free)) // 8000
    if not node.tags:
        return base + 25
    if pod.tag not in node.tags:
        return base
    return base + (75 if len(node.tags) == 1 else 50)


def packing(node: RefNode, pod: RefPod) -> int:
    if pod.gpus == 0:
        return 0
    whole = node.free.count(1000)
    if whole == len(node.free):
        return max(33 - whole, whole)
    taken = sorted(left for left in node.free if left >= pod.milli)[: pod.gpus]
    fresh = taken.count(1000)
    if fresh:
        return max(50 - fresh, 33)
    return max(100 - sum(left * 100 // 1000 for left in taken) // 10, 50)


def best_fit(node: RefNode, pod: RefPod) -> int:
    left = ((node.cpu - pod.cpu) / 128000) * 0.5 + ((sum(node.free) - pod.total) / 8000) * 0.5
    return int((1 - left) * 100)


def fullest(node: RefNode, pod: RefPod) -> int:
    """The device with the least room for a share."""
    return min((left, device) for device, left in enumerate(node.free) if left >= pod.milli)[1]


def pressure(nodes: Sequence[RefNode], typical: Sequence[TypicalPod]) -> dict[str, float]:
    """Demand of the typical pods for each idle GPU of a model."""
    idle: dict[str, int] = {}
    for node in nodes:
        idle[node.model] = idle.get(node.model, 0) + sum(node.free)
    demand = sum(pod.share * pod.gpus * pod.gpu_milli for pod in typical)
    found = dict.fromkeys(idle, 0.0)
    for pod in typical:
        admitted = [model for model in idle if not pod.models or model in pod.models]
        supply = sum(idle[model] for model in admitted)
        for model in admitted:
            if supply:
                asked = pod.share * pod.gpus * pod.gpu_milli
                found[model] += asked / supply * sum(idle.values()) / demand
    return found

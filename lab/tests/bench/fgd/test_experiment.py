"""Experiments on a cut of the traces: every placement equals that of plain definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.base.clock import ManualClock
from moorage.base.digests import digest
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.fgd.experiment import Trace, configuration, run_experiment
from moorage_lab.bench.fgd.openb import TracePod, read_nodes, read_pods, typical_of
from moorage_lab.bench.fgd.protocol import prepare
from scheduler.tests.plugins.gpu_share import reference as ref

DATA = Path(__file__).parent / "data"
RULES = {
    "DotProd": ref.dot_product,
    "GpuClustering": ref.clustering,
    "GpuPacking": ref.packing,
    "BestFit": ref.best_fit,
}


def cut(name: str) -> Trace:
    return Trace(name, read_nodes(DATA), read_pods(DATA, name))


class Reference:
    """The experiment in plain Python."""

    def __init__(self, trace: Trace, policy: str, seed: int) -> None:
        self.policy, self.typical = policy, typical_of(trace.pods)
        made = prepare(trace.nodes, trace.pods, seed=seed)
        self.names = [node.name for node in made.nodes]
        self.nodes = [
            ref.RefNode(n.cpu_milli, n.memory_mib, [1000] * n.gpus, n.model) for n in made.nodes
        ]
        self.pods = made.pods
        self.placements = [
            (f"openb/{pod.name}-{index}", self.place(pod)) for index, pod in enumerate(made.pods)
        ]

    def place(self, trace_pod: TracePod) -> str:
        models = frozenset(model for model in trace_pod.spec.split("|") if model)
        p = trace_pod
        pod = ref.RefPod(p.cpu_milli, p.memory_mib, p.gpus, p.gpu_milli, models)
        feasible = [index for index, node in enumerate(self.nodes) if ref.fits(node, pod)]
        if not feasible:
            return ""
        best = max(feasible, key=lambda index: (self.score(index, pod)[0], -index))
        node = self.nodes[best]
        device = self.score(best, pod)[1]
        if 0 < pod.milli < 1000:
            node.free[-device] -= pod.milli
        else:
            node.free = ref.take_whole(node.free, pod)
        node.cpu, node.memory = node.cpu - pod.cpu, node.memory - pod.memory
        if pod.gpus:
            node.tags.add(pod.tag)
        return self.names[best]

    def score(self, index: int, pod: ref.RefPod) -> tuple[float, int]:
        """The score of a node, and the negative number of the best device."""
        node, shares = self.nodes[index], 0 < pod.milli < 1000
        if self.policy in RULES:
            return RULES[self.policy](node, pod), -ref.fullest(node, pod) if shares else 0
        choices = ref.after_each(node, pod)
        if self.policy == "FGD":
            growths = [(ref.fgd_growth(node, a, self.typical), d) for d, a in choices]
            return max((ref.fgd_score(growth), -d) for growth, d in growths)
        press = ref.pressure(self.nodes, self.typical)[node.model]
        if not any(each.models for each in self.typical):
            press = 0.0
        return max(
            (round(-ref.loss(node, a, self.typical, slack=1.5) - press * pod.total, 4), -d)
            for d, a in choices
        )


@pytest.mark.parametrize("trace", ["default", "gpuspec33", "multigpu20"])
@pytest.mark.parametrize("policy", [*RULES, "FGD", "Lookahead"])
def test_every_pod_is_placed_as_by_plain_definitions(trace, policy):
    run = run_experiment(cut(trace), policy, 42, registry=in_tree_registry(), clock=ManualClock())
    reference = Reference(cut(trace), policy, 42)
    assert run.digest == digest(reference.placements)
    assert run.failed == sum(not name for _, name in reference.placements) > 0


def test_random_places_as_many_pods_and_repeats_with_its_seed():
    runs = [
        run_experiment(
            cut("default"), "Random", seed, registry=in_tree_registry(), clock=ManualClock()
        )
        for seed in (42, 42, 43)
    ]
    assert (runs[0].digest, runs[0].curves) == (runs[1].digest, runs[1].curves)
    assert runs[0].digest != runs[2].digest


@pytest.mark.parametrize("policy", ["FGD", "Lookahead"])
def test_a_policy_is_told_how_frequent_kinds_of_pods_are_and_not_their_order(policy):
    pods = cut("gpuspec33").pods
    orders = [prepare(cut("gpuspec33").nodes, pods, seed=seed).pods[: len(pods)] for seed in (1, 2)]
    assert orders[0] != orders[1]
    told = {configuration(policy, typical_of(order)) for order in (pods, *orders)}
    assert len(told) == 1

"""The order of pods and nodes in one experiment, drawn as in the published runs.

Rules: ``generate_run_scripts.py`` and ``pkg/simulator/{core,simulator}.go``
of kubernetes-scheduler-simulator: tuning ratio 1.3, shuffled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI
from moorage_lab.bench.fgd.go_rand import GoRand
from moorage_lab.bench.fgd.openb import TraceNode, TracePod

_TUNING_RATIO: Final = 1.3
# Values that the published runs draw for other purposes, found by search: the argument of a log
# line before the shuffle, and the watch timeouts of informers before the nodes are permuted.
_DROPPED_FIRST: Final = 1
_DROPPED_BETWEEN: Final = 10


class Experiment(msgspec.Struct, frozen=True):
    """Nodes and pods in the order of one experiment.

    Parameters
    ----------
    nodes
        Nodes with their names in the experiment. Ties go to the first.
    pods
        Pods in the order in which they come. Copies of a pod are the same object.
    total_gpus
        Number of GPUs of all nodes.
    """

    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]
    total_gpus: int


def prepare(nodes: Sequence[TraceNode], pods: Sequence[TracePod], *, seed: int) -> Experiment:
    """Return the experiment of one seed.

    Parameters
    ----------
    nodes, pods
        The trace, by name.
    seed
        Seed of the generator.
    """
    total_gpus = sum(node.gpus for node in nodes)
    generator = GoRand(seed)
    for _ in range(_DROPPED_FIRST):
        generator.bits63()
    arrivals = list(pods)
    generator.shuffle(arrivals)
    _tune(arrivals, pods, generator, most_milli=_TUNING_RATIO * WHOLE_GPU_MILLI * total_gpus)
    for _ in range(_DROPPED_BETWEEN):
        generator.bits63()
    permuted = generator.permutation(len(nodes))
    renamed = [
        msgspec.structs.replace(node, name=f"{position:04d}-{node.name}")
        for position, node in zip(permuted, nodes, strict=True)
    ]
    renamed.sort(key=lambda node: node.name.encode())
    return Experiment(tuple(renamed), tuple(arrivals), total_gpus)


def _tune(
    arrivals: list[TracePod], pods: Sequence[TracePod], generator: GoRand, *, most_milli: float
) -> None:
    """Remove pods, or append copies, until the pods ask for a given amount of GPU."""
    total_milli = sum(pod.total_milli for pod in arrivals)
    if total_milli > most_milli:
        while total_milli > most_milli:
            total_milli -= arrivals.pop(generator.below(len(arrivals))).total_milli
        return
    while True:
        pod = pods[generator.below(len(pods))]
        if total_milli + pod.gpu_milli > most_milli:
            return
        arrivals.append(pod)
        total_milli += pod.total_milli

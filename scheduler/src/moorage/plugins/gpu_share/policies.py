"""The policies by the names of the published tables, and the pods that some of them expect.

Rules: "Beware of Fragmentation" (Weng et al., USENIX ATC 2023), section 3: the typical pods are the
most frequent kinds, which together are 95 % of the pods.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from moorage.config.plugin_args_gpu import TypicalPod

ACCOUNT: Final = "GpuShare"
"""The plugin that keeps account of the devices, next to every policy."""
POLICIES: Final = {
    "Random": "GpuRandom",
    "DotProd": "GpuDotProduct",
    "GpuClustering": "GpuClustering",
    "GpuPacking": "GpuPacking",
    "BestFit": "GpuBestFit",
    "FGD": "GpuFragmentation",
    "Lookahead": "GpuLookahead",
}
"""Plugins by the names of the published tables; the last is not published."""
EXPECTING: Final = frozenset({"FGD", "Lookahead"})
"""The policies that have typical pods as an argument."""
_POPULAR_PERCENT: Final = 95

Kind = tuple[int, int, int, str]
"""Millicores, milli-GPU of each GPU, GPUs, and admissible models joined by ``|``."""


def typical_pods(counts: Counter[Kind]) -> tuple[TypicalPod, ...]:
    """Return the most frequent kinds of pods, which together are 95 % of them.

    Equally frequent kinds come by CPU, milli-GPU, GPUs and models, all descending.

    Parameters
    ----------
    counts
        The number of pods of each kind; at least one.
    """
    ranked = sorted(((count, *kind) for kind, count in counts.items()), reverse=True)
    total = sum(counts.values())
    chosen, covered = 0, 0
    while 100 * covered < _POPULAR_PERCENT * total:
        covered += ranked[chosen][0]
        chosen += 1
    return tuple(
        TypicalPod(
            cpu_milli=cpu_milli,
            gpus=gpus,
            gpu_milli=gpu_milli,
            models=tuple(model for model in spec.split("|") if model),
            # The two divisions of the published program; one would differ in the last bit.
            share=(count / total) / (covered / total),
        )
        for count, cpu_milli, gpu_milli, gpus, spec in ranked[:chosen]
    )

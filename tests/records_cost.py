"""Measures what records of attempts cost: ``python -m tests.records_cost [WORKLOAD ...]``.

Two schedulers decide the same pods in one process, one of them with records. They take turns, some
pods each, so that both meet the same load of the machine. Compared is the processor time of one
turn of each. The median of many turns says more than the sum, which holds every disturbance.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from statistics import median, quantiles
from typing import Final

import msgspec

from moorage.base.clock import SystemClock, processor_ns
from moorage.base.memory import settle_memory
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.catalogue import WORKLOADS
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.workload import Workload

_DEFAULT: Final = ("basic", "hard-spread", "mixed")
_BLOCK: Final = 100


class Cost(msgspec.Struct, frozen=True):
    """The processor time of each pair of turns, nanoseconds: without and with records."""

    pods: int
    pairs: tuple[tuple[int, int], ...]

    @property
    def throughput(self) -> float:
        """Throughput with records, as a part of that without: the median of the turns."""
        return median(off / on for off, on in self.pairs)

    @property
    def line(self) -> str:
        """The figures for people."""
        low, _, high = quantiles([off / on for off, on in self.pairs], n=4)
        off, on = (median(side) / self.pods / 1000 for side in zip(*self.pairs, strict=True))
        whole = sum(off for off, _ in self.pairs) / sum(on for _, on in self.pairs)
        return (
            f"throughput {self.throughput:.3f} (half of the turns {low:.3f} to {high:.3f}, in sum "
            f"{whole:.3f}); a pod {off:.1f} us without, {on:.1f} us with records"
        )


def measure(workload: Workload, pods: int = _BLOCK, *, seed: int = 1) -> Cost:
    """Run a workload with and without records in turn.

    Raises
    ------
    AssertionError
        A pod got another node because of records.
    """
    clock = SystemClock()
    sides = [
        EngineRun(workload, in_tree_registry(), clock=clock, streams=Streams(seed), records=records)
        for records in (False, True)
    ]
    settle_memory()
    runs = [side.in_blocks(pods) for side in sides]
    for run in runs:
        next(run)
    pairs: list[tuple[int, int]] = []
    order = [0, 1]
    while True:
        took_ns, placed = [0, 0], list[list[tuple[str, str]]]([[], []])
        for side in order:
            began_ns = processor_ns()
            placed[side] = next(runs[side], [])
            took_ns[side] = processor_ns() - began_ns
        assert placed[0] == placed[1], "records change no placement"
        if not placed[0]:
            return Cost(pods, tuple(pairs))
        if len(placed[0]) == pods:
            pairs.append((took_ns[0], took_ns[1]))
        order.reverse()


def main(given: Sequence[str] | None = None) -> int:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description="Measure what records of attempts cost.")
    parser.add_argument("workload", nargs="*", default=_DEFAULT, help="names of workloads")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each workload [3]")
    parser.add_argument("--pods", type=int, help="measured pods, in place of the workload's own")
    asked = parser.parse_args(given)
    for name in asked.workload:
        recipe = WORKLOADS[name]
        size = recipe.size
        if asked.pods is not None:
            size = msgspec.structs.replace(size, pods=asked.pods)
        for _ in range(asked.rounds):
            sys.stdout.write(f"{name:14} {measure(recipe.workload(size)).line}\n")
            sys.stdout.flush()
            gc.unfreeze()  # the clusters of this run are garbage now
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The comparison of throughput with and without records: who takes which turn."""

from __future__ import annotations

import pytest

from moorage.base.clock import SystemClock
from moorage.base.digests import digest
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.catalogue import WORKLOADS, Size
from moorage_lab.bench.engine_run import EngineRun
from tests.records_cost import Cost, main, measure

WORKLOAD = WORKLOADS["hard-spread"].workload(Size(6, 4, 25))


def test_only_whole_turns_are_compared() -> None:
    cost = measure(WORKLOAD, 10)
    assert (cost.pods, len(cost.pairs)) == (10, 2)
    assert all(off > 0 < on for off, on in cost.pairs)


def test_the_figure_is_the_median_of_the_turns() -> None:
    cost = Cost(100, ((90, 100), (99, 100), (1, 1000)))
    assert cost.throughput == 0.9
    assert cost.line.startswith("throughput 0.900 ")


@pytest.mark.slow
def test_every_workload_named_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hard-spread", "basic", "--rounds", "1", "--pods", "300"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["hard-spread", "basic"]


def test_a_run_in_blocks_places_every_pod_as_a_whole_run() -> None:
    def made() -> EngineRun:
        return EngineRun(WORKLOAD, in_tree_registry(), clock=SystemClock(), streams=Streams(1))

    first, *blocks = made().in_blocks(10)
    assert first == []
    assert [len(each) for each in blocks] == [10, 10, 5]
    assert digest([pod for block in blocks for pod in block]) == made().run().digest

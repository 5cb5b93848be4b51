"""A capability saves work and decides nothing: without it, the same pods get the same nodes."""

from __future__ import annotations

import msgspec
import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.framework import profile
from moorage.framework.capabilities import (
    NONE,
    TRAITS,
    Capabilities,
    Reads,
    capabilities_of,
    reads_sums,
)
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.catalogue import WORKLOADS, Size
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.workload import Workload, basic

PLAIN = basic(nodes=20, init_pods=10, pods=50)
PREEMPTION = WORKLOADS["preemption"].workload(Size(nodes=20, init_pods=80, pods=20))

SAVING = (
    "filter_reads",
    "score_reads",
    "shape_parts",
    "rejects_by_shape",
    "skips_spec",
    "filter_sees_pod",
    "filter_room",
    "filter_row",
    "row_scorer",
)


def digest(workload: Workload) -> str:
    engine = EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=Streams(1))
    return engine.run().digest


@pytest.mark.parametrize("workload", [PLAIN, PREEMPTION], ids=["plain pods", "preemption"])
@pytest.mark.parametrize("name", SAVING)
def test_placements_are_the_same_without(
    name: str, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {name, *(other for other, trait in TRAITS.items() if name in trait.beside)}
    taken: list[str] = []

    def fewer(plugin_name: str, plugin: object) -> Capabilities:
        found = capabilities_of(plugin_name, plugin)
        taken.extend(each for each in found.declared() if each in gone)
        return msgspec.structs.replace(found, **{each: getattr(NONE, each) for each in gone})

    expected = digest(workload)
    monkeypatch.setattr(profile, "capabilities_of", fewer)
    assert digest(workload) == expected
    assert name in taken


@pytest.mark.parametrize("workload", [PLAIN, PREEMPTION], ids=["plain pods", "preemption"])
def test_placements_are_the_same_where_filters_read_pods_instead_of_sums(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []

    def wider(plugin_name: str, plugin: object) -> Capabilities:
        found = capabilities_of(plugin_name, plugin)
        if not reads_sums(found.filter_reads):
            return found
        changed.append(plugin_name)
        reads = Reads.NODE | Reads.PODS
        return msgspec.structs.replace(found, filter_reads=reads, filter_room=None)

    expected = digest(workload)
    monkeypatch.setattr(profile, "capabilities_of", wider)
    assert digest(workload) == expected
    assert changed

"""A run leaves nothing in its process that keeps its cluster alive."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from moorage.experiments import run as running
from moorage.experiments.in_python import simulate
from tests.experiments.scenes import nodes, pods


def test_clusters_of_earlier_runs_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = []
    play = running.Simulation.play

    def noted(self: Any) -> None:
        play(self)
        clusters.append(weakref.ref(self.rehearsal.filled.core.snapshot))

    monkeypatch.setattr(running.Simulation, "play", noted)
    simulate({"nodes": [nodes(3)], "pods": [pods("1", count=9)], "seeds": 4})
    gc.collect()
    assert [each() for each in clusters] == [None] * 4

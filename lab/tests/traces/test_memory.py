"""A run leaves nothing in its process that keeps its cluster alive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: what other tests leave in theirs has nothing to do with it.
_RUNS = """
import gc, weakref
from moorage_lab.traces import run as running
from moorage_lab.traces.in_python import simulate
from lab.tests.traces.scenes import nodes, pods

clusters = []
play = running.Simulation.play

def noted(self):
    play(self)
    clusters.append(weakref.ref(self.model.half.core.snapshot))

running.Simulation.play = noted
def simulate_four():
    simulate({"nodes": [nodes(3)], "pods": [pods("1", count=9)], "seeds": 4})
    gc.collect()
    print([each() for each in clusters[-4:]])

simulate_four()
"""
_RUNS_BESIDE_A_SCHEDULER = """
from moorage.base.memory import settle_memory
from lab.tests.traces.truth import Scene, played

played(Scene(3))
settle_memory()  # as a scheduler does in a process of its own
simulate_four()
"""


@pytest.mark.slow
def test_clusters_of_earlier_runs_are_freed() -> None:
    assert _printed(_RUNS) == "[None, None, None, None]\n"


@pytest.mark.slow
def test_clusters_of_earlier_runs_are_freed_in_a_process_that_has_run_a_scheduler() -> None:
    assert _printed(_RUNS + _RUNS_BESIDE_A_SCHEDULER) == "[None, None, None, None]\n" * 2


def _printed(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout

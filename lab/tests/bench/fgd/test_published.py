"""Whole published experiments, where `MOORAGE_OPENB` names the folder of the traces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moorage.base.clock import ManualClock
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.fgd.experiment import Trace, run_experiment
from moorage_lab.bench.fgd.openb import read_nodes, read_pods
from moorage_lab.bench.fgd.published import read_published, summarize

TRACES = ("default", "cpu100", "gpushare40", "multigpu20", "gpuspec33")
FOLDER = os.environ.get("MOORAGE_OPENB", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="MOORAGE_OPENB names no folder of the OpenB traces"),
]


@pytest.mark.parametrize("policy", ["DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"])
@pytest.mark.parametrize("trace", TRACES)
def test_a_published_run_is_repeated_in_every_column(trace, policy):
    folder = Path(FOLDER)
    loaded = Trace(trace, read_nodes(folder), read_pods(folder, trace))
    run = run_experiment(loaded, policy, 42, registry=in_tree_registry(), clock=ManualClock())
    found = summarize([run], read_published(folder))
    assert (found.columns_equal, found.columns) == (8, 8)

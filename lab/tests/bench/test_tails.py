"""``moorage bench tails``: every case runs small, repeats, and is reported by case and size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.cli.main import main
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage_lab.bench import engine_run
from moorage_lab.bench.claims.workloads import claimed
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.report import Latency
from moorage_lab.bench.tails import run
from moorage_lab.bench.tails.cases import CASES
from moorage_lab.bench.tails.report import as_json, as_lines
from moorage_lab.bench.tails.run import Tail, measure
from moorage_lab.bench.workload import Workload

# Nodes: enough for every case. Growth's axes have sizes of their own, and many nodes.
SMALL = 24
OWN = [name for name in CASES if name not in ("shapes", "labels")]


def tail(case: str, size: int, digest: str = "d") -> Tail:
    times = Latency(p50_us=500.0, p90_us=600.0, p95_us=700.0, p99_us=1500.0, max_us=20_000.0)
    return Tail(
        case=case,
        size=size,
        decisions=1000,
        per_second=1234.5,
        decision=times,
        memory_mib=50.0,
        digest=digest,
    )


@pytest.mark.parametrize("name", OWN)
def test_a_case_runs_and_repeats(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_GANGS", 3)
    first, second = measure(name, SMALL, 1), measure(name, SMALL, 1)
    assert first.decisions == second.decisions > 0
    assert first.digest == second.digest


@pytest.mark.parametrize("name", [name for name in OWN if CASES[name].workload is not None])
def test_a_case_decides_the_same_without_reuse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = measure(name, SMALL, 1).digest

    def without_reuse(*args: Any, **kwargs: Any) -> Any:
        return build_core(*args, reuse=False, **kwargs)

    monkeypatch.setattr(engine_run, "build_core", without_reuse)
    assert measure(name, SMALL, 1).digest == expected


def place(workload: Workload) -> int:
    engine = EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=Streams(1))
    return engine.run().scheduled


def test_each_device_serves_one_claim() -> None:
    assert place(claimed(nodes=2, pods=4, devices=2)) == 4
    with pytest.raises(UsageError, match="cannot allocate all claims"):
        place(claimed(nodes=2, pods=5, devices=2))


def test_devices_of_pods_that_went_serve_others() -> None:
    assert place(claimed(nodes=2, pods=9, devices=2, present=3)) == 9


def test_sizes_are_reported_by_case() -> None:
    tails = [tail("claims", 200, "a"), tail("claims", 500, "b"), tail("shapes", 1000, "c")]
    report = as_json(tails)
    assert {name: list(sizes) for name, sizes in report["cases"].items()} == {
        "claims": ["200", "500"],
        "shapes": ["1000"],
    }
    assert report["cases"]["claims"]["500"]["digest"] == "b"
    assert report["digest"] != as_json([*tails[:2], tail("shapes", 1000, "x")])["digest"]
    header, first, _, last = as_lines(tails)
    assert header.split() == [
        *("CASE", "SIZE", "DECISIONS", "PER", "SECOND", "P50", "P99", "MAX", "PLACEMENTS")
    ]
    assert first.split() == [
        *("claims", "200", "nodes", "1,000", "1,234", "0.50", "ms", "1.50", "ms"),
        *("20.00", "ms", "a"),
    ]
    assert "1,000 shapes" in last


def test_the_command_measures_what_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "measured", lambda work, seed: [tail(*each) for each in work])
    done = CliRunner().invoke(
        main,
        ["bench", "tails", "--case", "quota", "--case", "claims", "--size", "large", "-o", "json"],
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["cases"]
    assert {name: list(sizes) for name, sizes in found.items()} == {
        "quota": ["5000"],
        "claims": ["500"],
    }
    assert "quota 5,000 nodes: p99 1.50 ms" in done.stderr

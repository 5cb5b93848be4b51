"""Percentiles, digests and the lines people read."""

from __future__ import annotations

import pytest

from moorage.base.digests import digest
from moorage_lab.bench.report import Latency, Result, latency, make_result
from moorage_lab.bench.workload import basic


@pytest.mark.parametrize(
    ("durations_ns", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([7_000], Latency(7.0, 7.0, 7.0, 7.0, 7.0), id="one"),
        pytest.param(
            [1000 * n for n in reversed(range(1, 101))],
            Latency(50.0, 90.0, 95.0, 99.0, 100.0),
            id="a hundred, in any order",
        ),
    ],
)
def test_latency_percentiles_follow_from_the_durations(
    durations_ns: list[int], expected: Latency | None
) -> None:
    assert latency(durations_ns) == expected


def test_the_digest_covers_pods_nodes_and_their_order() -> None:
    a, b = ("ns/a", "n1"), ("ns/b", "n2")
    digests = {digest(each) for each in ([], [a], [a, b], [b, a], [("ns/a", "n2")])}
    assert len(digests) == 5
    assert digest([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def result(decisions_ns: list[int], seconds: float = 2.0) -> Result:
    return make_result(
        basic(nodes=3, init_pods=0, pods=4),
        "server",
        placements=[("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "n3")],
        seconds=seconds,
        decisions_ns=decisions_ns,
        memory_peak_mib={"server": 100.4},
        seconds_by_part={"decide": 1.234},
    )


def test_the_report_is_printed_in_readable_lines() -> None:
    one = result([50_000])
    assert one.as_lines() == [
        "SchedulingBasic (nodes 3, initPods 0, measurePods 4), mode server",
        "  2 pods/s: 4 pods in 2.00 s",
        "  decision: p50 50 us, p90 50 us, p99 50 us, max 50 us",
        "  time: decide 1.23 s",
        "  peak memory: server 100 MiB",
        f"  placements: sha256 {one.digest}",
    ]


def test_without_decision_times_there_is_no_latency() -> None:
    one = result([])
    assert [line for line in one.as_lines() if "decision" in line] == []
    (throughput,) = one.as_json()["dataItems"]
    assert throughput["data"] == {"Average": 2.0}


def test_a_run_that_took_no_time_has_no_rate() -> None:
    assert result([], seconds=0.0).pods_per_second == 0.0

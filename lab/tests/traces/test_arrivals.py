"""When pods come: each kind of arrivals, and the load that is drawn."""

from __future__ import annotations

from typing import Any

import pytest

from lab.tests.traces.scenes import nodes, once, pods
from moorage_lab.traces.in_python import simulate
from moorage_lab.traces.run import RunResult


def arrived(count: int = 4, **arrivals: Any) -> list[float]:
    """Return when the pods of a source come."""
    found: list[float] = once(
        {"nodes": [nodes()], "pods": [pods("1m", count=count, arrivals=arrivals)]}
    ).pods["arrived"]
    return found


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        pytest.param({}, [0, 0, 0, 0], id="together, where the source says nothing"),
        pytest.param({"kind": "together", "after": "5s"}, [5, 5, 5, 5], id="together, later"),
        pytest.param({"kind": "spaced", "every": "2s"}, [0, 2, 4, 6], id="spaced"),
        pytest.param(
            {"kind": "spaced", "every": "2s", "speed": 2}, [0, 1, 2, 3], id="twice as fast"
        ),
        pytest.param({"kind": "bursts", "size": 3, "every": "1m"}, [0, 0, 0, 60], id="bursts"),
    ],
)
def test_times_of_arrivals(arrivals: dict[str, Any], expected: list[float]) -> None:
    assert arrived(**arrivals) == expected


def test_poisson_arrivals_have_the_mean_that_was_asked_for() -> None:
    times = arrived(500, kind="poisson", every="3s")
    assert times == sorted(times)
    assert len(set(times)) == 500
    # The mean of 500 such gaps is within 10 % for this seed, which is fixed.
    assert times[-1] / 500 == pytest.approx(3.0, rel=0.1)


def load(share: float, count: int = 10) -> RunResult:
    source = pods("1", count=count)
    return once(
        {"nodes": [nodes(5)], "pods": [source], "load": {"resource": "cpu", "share": share}}
    )


def test_a_load_above_the_source_draws_copies() -> None:
    names = load(0.8).pods["name"]
    assert len(names) == 16  # 16 of 20 cores
    assert [name for name in names if "copy" not in name] == [f"pod-{n}" for n in range(1, 11)]
    assert len(set(names)) == 16


def test_a_load_below_the_source_leaves_pods_out() -> None:
    assert len(load(0.25).pods["name"]) == 5


def test_shuffled_pods_differ_by_seed_and_not_by_configuration() -> None:
    source = pods("1", count=8, arrivals={"kind": "spaced", "order": "shuffled"})
    found = simulate(
        {
            "nodes": [nodes(2)],
            "pods": [source],
            "seeds": 2,
            "configurations": [{"name": "a"}, {"name": "b", "weights": {"ImageLocality": 3}}],
        }
    )
    orders = [each.pods["name"] for each in found.of_runs]
    assert orders[0] != orders[1]
    assert orders[:2] == orders[2:]


def test_run_times_are_drawn_from_their_distribution() -> None:
    source = pods("1m", count=300, runTime={"kind": "exponential", "mean": "10m"})
    source["template"]["spec"]["restartPolicy"] = "Never"
    run = once({"nodes": [nodes(9)], "pods": [source]})
    lengths = [e - p - 1 for e, p in zip(run.pods["ended"], run.pods["placed"], strict=True)]
    assert sum(lengths) / 300 == pytest.approx(600, rel=0.2)
    even = pods("1m", count=50, runTime={"kind": "uniform", "least": "1m", "most": "2m"})
    run = once({"nodes": [nodes(9)], "pods": [even]})
    lengths = [e - p - 1 for e, p in zip(run.pods["ended"], run.pods["placed"], strict=True)]
    assert min(lengths) >= 60
    assert max(lengths) <= 120.001

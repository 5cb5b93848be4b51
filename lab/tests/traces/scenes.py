"""Small scenarios for the tests of experiments."""

from __future__ import annotations

from typing import Any

from moorage_lab.traces.in_python import simulate
from moorage_lab.traces.run import RunResult


def pods(cpu: str = "1", *, count: int = 1, name: str = "pod", **more: Any) -> dict[str, Any]:
    """Return a source of copies of a pod; `spec` and other fields of the source by name."""
    requests = {"cpu": cpu, "memory": "1Gi"}
    spec = {"containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}]}
    spec |= more.pop("spec", {})
    return {"template": {"metadata": {"name": name}, "spec": spec}, "count": count, **more}


def nodes(count: int = 1, shape: str = "cpu=4,memory=16Gi") -> dict[str, Any]:
    """Return a source of nodes."""
    return {"shape": shape, "count": count}


def once(scenario: dict[str, Any]) -> RunResult:
    """Return the only run of a scenario."""
    (run,) = simulate(scenario).of_runs
    return run


def column(run: RunResult, *names: str) -> list[tuple[Any, ...]]:
    """Return columns of the table of pods, row by row; times rounded to milliseconds."""
    found = [run.pods[name] for name in names]
    return [
        tuple(round(each, 3) if isinstance(each, float) else each for each in row)
        for row in zip(*found, strict=True)
    ]

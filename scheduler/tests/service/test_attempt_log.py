"""The log of attempts: the lines of each verbosity, and the trace of an attempt that took long."""

from __future__ import annotations

from typing import Any

import pytest

from moorage import plugin
from moorage.base.clock import ManualClock
from moorage.base.verbosity import level_of, verbosity_of
from moorage.observe.attempts import AttemptFacts
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.plugins import with_plugins
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

SMALL, GIANT = 'pod="default/small"', 'pod="default/giant"'
WHY = "0/2 nodes are available: 2 too large."
LINES = [
    (3, f'"Attempting to schedule pod" {SMALL} attempt=1'),
    (10, f'"Plugin scored node for pod" {SMALL} plugin="LastName" node="n1" score=10'),
    (10, f'"Plugin scored node for pod" {SMALL} plugin="LastName" node="n2" score=20'),
    (10, f'"Calculated node\'s final score for pod" {SMALL} node="n1" score=10'),
    (10, f'"Calculated node\'s final score for pod" {SMALL} node="n2" score=20'),
    (5, f'"Found feasible nodes for pod" {SMALL} evaluatedNodes=2 feasibleNodes=2 score=20'),
    (3, f'"Attempting to bind pod to node" {SMALL} node="n2"'),
    (
        2,
        f'"Successfully bound pod to node" {SMALL} node="n2" evaluatedNodes=2 feasibleNodes=2 '
        "attempt=1",
    ),
    (3, f'"Attempting to schedule pod" {GIANT} attempt=1'),
    (5, f'"Found feasible nodes for pod" {GIANT} evaluatedNodes=2 feasibleNodes=0'),
    (2, f'"Unable to schedule pod; no fit; waiting" {GIANT} err="{WHY}" attempt=1'),
]


def played(seconds: float) -> AttemptFacts:
    """Schedule two pods one after the other; the score of a node takes some seconds."""
    clock = ManualClock()

    @plugin.filter(name="Small")
    def small(pod: Any, node: Any) -> Any:
        return pod.name == "small" or "too large"

    @plugin.score(name="LastName")
    def last_name(pod: Any, node: Any) -> int:
        clock.advance(seconds)
        return 10 * int(node.name[1:])

    config, registry = with_plugins([small, last_name], alone=True)

    async def main() -> AttemptFacts:
        nodes = [node_manifest("n1"), node_manifest("n2")]
        async with VirtualCluster(clock, nodes=nodes, config=config, registry=registry) as cluster:
            await cluster.until(lambda: cluster.scheduler.core.snapshot.num_nodes == 2)
            await cluster.create_objects(pod_manifest("small"))
            await cluster.until(lambda: cluster.scheduler.facts.bound == 1)
            await cluster.create_objects(pod_manifest("giant"))
            await cluster.until(lambda: cluster.scheduler.facts.rejected == 1)
            return cluster.scheduler.facts.attempts

    return run_virtual(main(), clock)


def told(caplog: pytest.LogCaptureFixture, verbosity: int, *, seconds: float = 0) -> list[Any]:
    """Return what is told of two pods, with its verbosity."""
    # Over the whole package: which levels are on is read when the parts are built.
    with caplog.at_level(level_of(verbosity), logger="moorage"):
        played(seconds)
    return [
        (verbosity_of(each.levelno), each.getMessage())
        for each in caplog.records
        if each.name
        in ("moorage.service.attempts.attempt_log", "moorage.service.attempts.score_log")
    ]


@pytest.mark.parametrize("verbosity", [0, 1, 2, 3, 4, 5, 9, 10])
def test_each_verbosity_tells_the_lines_of_kube_scheduler_up_to_its_level(
    caplog: pytest.LogCaptureFixture, verbosity: int
) -> None:
    assert told(caplog, verbosity) == [line for line in LINES if line[0] <= verbosity]


def test_an_attempt_over_100_ms_is_told_with_its_parts(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, 0, seconds=0.06) == [
        (
            0,
            f'"Trace: scheduling took long" {SMALL} total="120.0ms" PreFilter="0.0ms" '
            'Filter="0.0ms" PreScore="0.0ms" Score="120.0ms" other="0.0ms"',
        )
    ]


def test_an_attempt_of_100_ms_is_not_traced(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, 0, seconds=0.05) == []


@pytest.mark.parametrize(
    ("seconds", "count", "latest"),
    [
        pytest.param(0.05, 0, None, id="100 ms"),
        pytest.param(0.06, 1, ("default/small", pytest.approx(0.12)), id="more"),
    ],
)
def test_a_decision_over_100_ms_is_counted_with_its_pod(
    seconds: float, count: int, latest: tuple[str, Any] | None
) -> None:
    facts = played(seconds)
    assert (facts.slow_decisions, facts.latest_slow_decision) == (count, latest)

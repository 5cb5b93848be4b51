"""A plugin from outside that breaks at any point: its pod waits, others go on, it is counted.

What each point makes of each answer is in ``scheduler/tests/framework/test_guarded.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from moorage.base.clock import ManualClock
from moorage.framework.containment import RAISED, WRONG_ANSWER
from moorage.plugin import SKIP
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.plugins import with_plugins
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

FIXED = {
    "pre_enqueue": True,
    "pre_filter": True,
    "filter_node": True,
    "filter": None,
    "pre_score": True,
    "score_node": 1,
    "score": np.array([1, 2]),
    "reserve": True,
    "permit": True,
    "pre_bind": True,
    "bind": SKIP,
    "post_bind": None,
}


class OopsError(Exception):
    pass


def breaking(method: str, answer: Any, *, name: str = "Mine", bad: str = "bad") -> type[Any]:
    """A plugin that breaks at a method for one pod, by an answer or by raising it."""

    def pod_of(args: tuple[Any, ...]) -> Any:
        return next(arg for arg in args if hasattr(arg, "name") and hasattr(arg, "namespace"))

    def call(self: object, *args: Any) -> Any:
        if pod_of(args).name != bad:
            return FIXED[method]
        if isinstance(answer, Exception):
            raise answer
        return answer

    members: dict[str, Any] = {"name": name, method: call}
    if method == "reserve":
        members["unreserve"] = lambda self, state, pod, node_name: None
    return type(name, (), members)


@pytest.mark.parametrize(
    ("method", "answer", "point", "message"),
    [
        pytest.param(
            "pre_filter", OopsError("ow"), "PreFilter", 'running PreFilter plugin "Mine": ow'
        ),
        pytest.param(
            "filter_node", OopsError("ow"), "Filter", 'running "Mine" filter plugin: node n1: ow'
        ),
        pytest.param("filter", OopsError("ow"), "Filter", 'running "Mine" filter plugin: ow'),
        pytest.param("filter", np.array([True]), "Filter", 'running "Mine" filter plugin: '),
        pytest.param(
            "pre_score", OopsError("ow"), "PreScore", 'running PreScore plugin "Mine": ow'
        ),
        pytest.param("score_node", math.nan, "Score", 'plugin "Mine" failed with: node n1: '),
        pytest.param("score", [1.0, math.nan], "Score", 'plugin "Mine" failed with: '),
        pytest.param("reserve", OopsError("ow"), "Reserve", 'running Reserve plugin "Mine": ow'),
        pytest.param("reserve", 17, "Reserve", 'running Reserve plugin "Mine": plugin answered 17'),
        pytest.param("permit", OopsError("ow"), "Permit", 'running Permit plugin "Mine": ow'),
        pytest.param(
            "permit", (1, 2, 3), "Permit", 'running Permit plugin "Mine": plugin answered'
        ),
        pytest.param("pre_bind", OopsError("ow"), "PreBind", 'running PreBind plugin "Mine": ow'),
        pytest.param("bind", OopsError("ow"), "Bind", 'running Bind plugin "Mine": ow'),
        pytest.param("bind", 17, "Bind", 'running Bind plugin "Mine": plugin answered 17'),
    ],
)
def test_the_attempt_fails_and_the_scheduler_goes_on(
    method: str, answer: Any, point: str, message: str
) -> None:
    clock = ManualClock()
    config, registry = with_plugins([breaking(method, answer)])
    nodes = [node_manifest("n1"), node_manifest("n2")]

    async def main() -> None:
        async with VirtualCluster(clock, nodes=nodes, config=config, registry=registry) as cluster:
            await cluster.create_objects(pod_manifest("bad"), pod_manifest("good"))
            await cluster.until(lambda: cluster.node_of("good") != "")
            await cluster.until(lambda: message in cluster.condition_of("bad")[2])
            assert cluster.node_of("bad") == ""
            assert cluster.condition_of("bad")[1] == "SchedulerError"
            recorder = cluster.scheduler.core.recorder
            assert recorder is not None
            records = {each.key[1]: each for each in recorder.ring if each.attempt == 1}
            assert {name: each.failure.broken_by for name, each in records.items()} == {
                "bad": "Mine",
                "good": "",
            }

    run_virtual(main(), clock)
    kind = RAISED if isinstance(answer, Exception) else WRONG_ANSWER
    assert set(registry.containment.failures) == {("Mine", point, kind)}


def test_breaking_at_pre_enqueue_keeps_the_pod_out_of_the_queue() -> None:
    clock = ManualClock()
    config, registry = with_plugins([breaking("pre_enqueue", OopsError("ow"))])

    async def main() -> None:
        nodes = [node_manifest("n1")]
        async with VirtualCluster(clock, nodes=nodes, config=config, registry=registry) as cluster:
            await cluster.create_objects(pod_manifest("bad"), pod_manifest("good"))
            await cluster.until(lambda: cluster.node_of("good") != "")
            assert cluster.node_of("bad") == ""

    run_virtual(main(), clock)
    assert set(registry.containment.failures) == {("Mine", "PreEnqueue", RAISED)}


def test_breaking_after_binding_changes_nothing() -> None:
    clock = ManualClock()
    config, registry = with_plugins([breaking("post_bind", OopsError("ow"))])

    async def main() -> None:
        nodes = [node_manifest("n1")]
        async with VirtualCluster(clock, nodes=nodes, config=config, registry=registry) as cluster:
            await cluster.create_objects(pod_manifest("bad"))
            await cluster.until(lambda: cluster.phase_of("bad") == "Running")

    run_virtual(main(), clock)
    assert registry.containment.failures == {("Mine", "PostBind", RAISED): 1}

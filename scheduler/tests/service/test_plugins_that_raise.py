"""Whatever a plugin raises at any point: one pod's attempt fails, the others are decided.

Does not cover: which exception comes out (`scheduler.tests.framework.test_raised`).
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.base.aio import being_cancelled
from moorage.base.clock import ManualClock
from moorage.base.errors import TaskEndedError
from moorage.framework.containment import Containment
from moorage.framework.cycle_state import CycleState
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.plugins import with_plugins
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.framework.raising import KINDS
from scheduler.tests.service.test_plugins_from_outside import breaking

METHODS = (
    "pre_filter",
    "filter_node",
    "filter",
    "pre_score",
    "score_node",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
)
SLOW_TO_SHOW = ("a long chain of causes",)


def raising(method: str, kind: str) -> type[Any]:
    """A plugin of the method's name that raises for the pod called so, and for no other."""

    class Raises(Exception):  # noqa: N818 - stands for what is raised
        pass

    plain = breaking(method, Raises(), name=method, bad=_pod(method))
    inner, raise_it = getattr(plain, method), KINDS[kind][0]

    def call(self: object, *args: Any) -> Any:
        try:
            return inner(self, *args)
        except Raises:
            return raise_it()

    return type(method, (plain,), {"name": method, method: call})


def _pod(method: str) -> str:
    return method.replace("_", "-")


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in SLOW_TO_SHOW])
def test_one_attempt_fails_and_names_the_plugin(kind: str) -> None:
    clock = ManualClock()
    containment = Containment(is_cancelled=being_cancelled)
    plugins = [raising(method, kind) for method in METHODS]
    config, registry = with_plugins(plugins, containment=containment)
    nodes = [node_manifest("n1"), node_manifest("n2")]

    async def main() -> None:
        async with VirtualCluster(clock, nodes=nodes, config=config, registry=registry) as cluster:
            await cluster.create_objects(*(pod_manifest(_pod(each)) for each in METHODS))
            await cluster.create_objects(pod_manifest("good"))
            await cluster.until(lambda: cluster.node_of("good") != "")
            await cluster.until(
                lambda: (
                    {cluster.condition_of(_pod(each))[1] for each in METHODS} == {"SchedulerError"}
                )
            )
            await cluster.create_objects(pod_manifest("later"))
            await cluster.until(lambda: cluster.node_of("later") != "")
            bound = {name for name, node in cluster.placements().items() if node}
            assert bound == {"default/good", "default/later"}
            assert cluster.scheduler.decides
            recorder = cluster.scheduler.core.recorder
            assert recorder is not None
            broken = {each.key[1]: each.failure.broken_by for each in recorder.ring}
            of_methods = {_pod(method): method for method in METHODS}
            assert broken == of_methods | {"good": "", "later": ""}

    run_virtual(main(), clock)
    assert {each[0] for each in containment.failures} == set(METHODS)


class CancelsTheLoop:
    """Cancels the task that calls it, which nothing that is raised does."""

    name = "CancelsTheLoop"

    def pre_filter(self, state: CycleState, pod: Any, snapshot: Any) -> bool:
        own = asyncio.current_task()
        assert own is not None
        own.cancel()
        return True


def test_a_loop_of_decisions_that_is_cancelled_ends_the_scheduler_with_a_message() -> None:
    clock = ManualClock()
    config, registry = with_plugins([CancelsTheLoop])

    async def main() -> None:
        cluster = VirtualCluster(
            clock, nodes=[node_manifest("n1")], config=config, registry=registry
        )
        async with cluster:
            await cluster.create_objects(pod_manifest("bad"))
            await cluster.until(lambda: not cluster.scheduler.decides)
            problem = cluster.scheduler.parts.failure
            with pytest.raises(TaskEndedError, match="task pump was cancelled by something"):
                await problem.raise_first()

    run_virtual(main(), clock)

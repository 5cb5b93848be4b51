"""Questions change nothing: pods go to the same nodes, in the same order, whatever is asked."""

from __future__ import annotations

from typing import Any

from moorage.base.clock import ManualClock
from moorage.service.questions.pages import question_pages
from moorage.service.questions.queue import queue_question
from moorage.service.questions.records import records_question
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

PODS = 60


def course(*, asked: bool, seed: int) -> tuple[Any, ...]:
    """Schedule pods on equal nodes, so that random draws decide; return all that came of it."""
    clock = ManualClock()
    shapes = [node_manifest(f"n{index}", cpu="8") for index in range(12)]

    async def main() -> tuple[Any, ...]:
        async with VirtualCluster(clock, nodes=shapes, seed=seed) as cluster:
            core = cluster.scheduler.core
            asked_about = cluster.scheduler
            pages = question_pages(
                [queue_question(asked_about, clock), records_question(asked_about, clock)]
            )

            async def look() -> None:
                for query in ({}, {"limit": "1"}) if asked else ():
                    page = await pages["/moorage/v1/queue"](query)
                    assert page.status == 200
                for query in ({}, {"pod": "default/p0"}) if asked else ():
                    page = await pages["/moorage/v1/records"](query)
                    assert page.status in {200, 404}

            for index in range(PODS):
                big = index % 7 == 0
                await cluster.create_objects(pod_manifest(f"p{index}", cpu="6" if big else "1"))
                await look()
            await cluster.until(lambda: not core.queue.pending().active)
            await look()
            await cluster.until(lambda: core.cache.counts().assumed_pods == 0)
            histories = [
                (history.key, [(each.what, each.cause) for each in history.entries])
                for history in core.queue.lifecycle.histories
            ]
            facts = cluster.scheduler.facts
            counts = (facts.decisions, facts.rejected, facts.errors, facts.bound)
            return cluster.placements(), histories, core.queue.counts(), counts

    return run_virtual(main(), clock)


def test_placements_and_histories_are_equal_with_questions_in_between() -> None:
    for seed in range(5):
        assert course(asked=True, seed=seed) == course(asked=False, seed=seed)


def test_other_seeds_give_other_placements() -> None:
    assert course(asked=False, seed=1)[0] != course(asked=False, seed=2)[0]

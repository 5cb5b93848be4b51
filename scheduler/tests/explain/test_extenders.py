"""Pods that every plugin lets on a node and an extender does not: the extender is the cause.

The example extender runs as a process, and the scheduler speaks HTTP with it. The answers are those
of the running scheduler's own state: an explanation calls no extender.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from moorage.base import aio
from moorage.config.load import parse_config
from moorage.explain.answer import Explanation, Where
from moorage.explain.explaining import QUICK, explain, explain_by_name
from moorage.state.lifecycle import PodState
from moorage_sandbox.sandbox.example_extender import MAINTENANCE
from moorage_sandbox.testing.builders import node_manifest
from scheduler.tests.explain.clusters import inputs_of, waiting
from tests.scenarios.test_example_extender import HEAD, VERBS, Cluster, cluster, extender

TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
PLANNED = node_manifest("planned", labels={MAINTENANCE: "planned"})
CLOSED = node_manifest("closed", taints=[TAINT])
PODS = [f"p{index}" for index in range(20)]
WAITING = {PodState.BACKOFF, PodState.UNSCHEDULABLE}
SECONDS_MAX = 60.0
NOBODY = "http://127.0.0.1:1"


async def _explained(made: Cluster, name: str) -> Explanation:
    """Explain a pod while it waits for another attempt; it may just be in one."""
    await made.settled(name)
    core = made.scheduler.core
    pod = core.store.get("default", name)
    assert pod is not None
    async with asyncio.timeout(SECONDS_MAX):
        while core.queue.lifecycle.state(pod.uid) not in WAITING:
            await aio.sleep(0.01)
    return explain(core, pod)


def _start(sentence: str) -> str:
    """Return a sentence without the queue's part, whose time differs."""
    return re.sub(r"; it .*", "", sentence)


@pytest.mark.slow
async def test_an_extender_that_rejects_the_only_node_is_the_cause() -> None:
    with extender() as process:
        async with cluster(f"{{urlPrefix: '{process.url}', {VERBS}}}", PLANNED, CLOSED) as made:
            await made.create(*PODS)
            found = [await _explained(made, name) for name in PODS]
            calls = process.stats()["calls"]["filter"]
            assert {each.where for each in found} == {Where.EXTENDERS}
            for each in found:
                assert _start(each.sentence).startswith(
                    "every plugin lets it on 1 node, but its last attempt, in which extenders are "
                    "asked, failed: 0/2 nodes are available: 1 maintenance of planned is planned, "
                    "1 node(s) had untolerated taint(s)."
                ), each.sentence
                assert each.suggestions == ()
                assert [node.node for node in each.nodes] == ["planned", "closed"]
            assert calls >= len(PODS)


@pytest.mark.slow
async def test_an_extender_that_cannot_be_reached_is_the_cause() -> None:
    async with cluster(f"{{urlPrefix: '{NOBODY}', {VERBS}}}", PLANNED, CLOSED) as made:
        await made.create(*PODS)
        for name in PODS:
            found = await _explained(made, name)
            assert found.where is Where.EXTENDERS
            assert NOBODY in found.sentence
            assert found.suggestions == ()


def test_without_a_running_scheduler_extenders_are_said_not_to_be_asked() -> None:
    config = parse_config(f"{HEAD}extenders: [{{urlPrefix: '{NOBODY}', {VERBS}}}]")
    inputs = inputs_of(node_manifest("n"), waiting("p"), config=config)
    found = explain_by_name(inputs, "default", "p", QUICK)
    assert found.sentence == "fits now on 1 node; it is the next in the queue"
    assert found.notes == (
        "The configuration has extenders; computed afresh, they are not asked. Ask the running "
        "scheduler.",
    )

"""Estimates of starts from a running scheduler: intervals, what is not known, and their record.

Left out: the process and its pipes (`test_process.py`).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.config.own import LoadedConfiguration, MoorageConfiguration, StartEstimates
from moorage.estimates.start_observer import StartObserver
from moorage.explain.question import explain_question
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.questions.pages import OPENAPI_PATH, question_pages
from moorage.what_if.answering.messages import First, QuestionFrame, Reply, Update
from moorage.what_if.answering.mirror import Mirror
from moorage.what_if.answering.mirrored_state import MirroredState
from moorage.what_if.answering.starts import StartEstimator, start_answer
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.questions.openapi_check import check
from tests.scenarios.gangs import coscheduling, of_labels

EXPLAIN = "/moorage/v1/explain"


class _InProcess:
    """Answers from a mirror that begins anew each time."""

    def __init__(self, state: MirroredState) -> None:
        self._state = state

    async def ask(self, question: Callable[[], bytes]) -> bytes:
        first = msgspec.msgpack.decode(self._state.first(), type=First)
        mirror = Mirror(pickle.loads(first.config), in_tree_registry(), now_ns=first.now_ns)
        for update in self._state.updates():
            mirror.take_changes(msgspec.msgpack.decode(update, type=Update))
        frame = msgspec.msgpack.decode(question(), type=QuestionFrame)
        return msgspec.msgpack.encode(Reply(200, start_answer(mirror, frame)))


def _with_estimates(
    config: LoadedConfiguration | None = None, **values: Any
) -> LoadedConfiguration:
    own = MoorageConfiguration(start_estimates=StartEstimates(**values))
    return msgspec.structs.replace(config or LoadedConfiguration(), own=own)


def _observer(cluster: VirtualCluster) -> StartObserver:
    observer = cluster.scheduler.parts.start_observer
    assert observer is not None
    return observer


async def _explained(cluster: VirtualCluster, clock: ManualClock, name: str) -> Any:
    """Return the estimate in the explanation of a pod, checked against the OpenAPI document."""
    state = MirroredState(
        cluster.scheduler, clock, config=lambda: cluster.scheduler.parts.reload.config, plugins=()
    )
    estimator = StartEstimator(
        cluster.scheduler,
        clock,
        state=state,
        process=_InProcess(state),
        observer=_observer(cluster),
        seconds=60.0,  # ten roll-outs at least, however slow the machine is
    )
    pages = question_pages([explain_question(cluster.scheduler, clock, estimator)])
    page = await pages[EXPLAIN]({"pod": f"default/{name}"})
    document = json.loads((await pages[OPENAPI_PATH]({})).body)
    body = json.loads(page.body)
    check(body, EXPLAIN, document, status="200")
    return body["explanation"].get("start")


def _batch(name: str, cpu: str, seconds: int | None, **more: Any) -> dict[str, Any]:
    annotations = {} if seconds is None else {"moorage.dev/run-seconds": str(seconds)}
    return pod_manifest(name, cpu=cpu, annotations=annotations, restartPolicy="Never", **more)


def test_declared_run_times_give_the_start_and_what_it_waits_for() -> None:
    clock = ManualClock()
    nodes = [node_manifest("n", cpu="8")]

    async def main() -> tuple[Any, str]:
        async with VirtualCluster(clock, nodes=nodes, config=_with_estimates()) as cluster:
            await cluster.create_objects(_batch("short", "4", 600), _batch("long", "4", 7200))
            await cluster.until(lambda: bool(cluster.node_of("short") and cluster.node_of("long")))
            await cluster.create_objects(_batch("first", "4", 1200))
            await cluster.until(lambda: cluster.condition_of("first")[0] == "False")
            await cluster.create_objects(_batch("second", "4", 60))
            await cluster.until(lambda: cluster.condition_of("second")[0] == "False")
            return await _explained(cluster, clock, "second"), await _sentence(cluster, clock)

    async def _sentence(cluster: VirtualCluster, clock: ManualClock) -> str:
        return str((await _explained(cluster, clock, "first"))["sentence"])

    second, first = run_virtual(main(), clock)
    assert second["position"] == 2
    assert second["waitsFor"] in ("default/first", "default/long")
    assert second["earliest"] <= second["latest"]
    assert "the first thing it waits for is the end of default/short" in first
    assert "No earlier estimate can be judged yet." in first


def test_where_nothing_is_known_the_position_and_what_must_end_are_said() -> None:
    clock = ManualClock()
    nodes = [node_manifest("n", cpu="8")]

    async def main() -> Any:
        async with VirtualCluster(clock, nodes=nodes, config=_with_estimates()) as cluster:
            await cluster.create_objects(_batch("a", "4", None), _batch("b", "4", None))
            await cluster.until(lambda: bool(cluster.node_of("a") and cluster.node_of("b")))
            await cluster.create_objects(_batch("w", "4", None))
            await cluster.until(lambda: cluster.condition_of("w")[0] == "False")
            return await _explained(cluster, clock, "w")

    start = run_virtual(main(), clock)
    assert start["sentence"] == (
        "When it starts is not known: nothing is known about the run times of 2 running pods; it "
        "has place 1 in the queue. One of these has to end: default/a, default/b."
    )
    assert "earliest" not in start
    assert start["unknownRunTimes"] == 2


def test_run_times_are_learned_from_pods_that_end_and_are_there_after_a_restart(
    tmp_path: Path,
) -> None:
    """A pod that is deleted before its end says nothing."""
    clock, file = ManualClock(), tmp_path / "run-times.json"
    nodes = [node_manifest("n", cpu="8")]
    config = _with_estimates(learn=True, keep_in="file", file=str(file))

    async def run(ended: int) -> Any:
        async with VirtualCluster(clock, nodes=nodes, config=config) as cluster:
            await cluster.create_objects(*(_batch(f"p-{n}", "1", None) for n in range(ended)))
            await cluster.until(lambda: all(cluster.node_of(f"p-{n}") for n in range(ended)))
            for number in range(ended):
                await aio.sleep(100)
                await _end(cluster, f"p-{number}")
            await aio.sleep(100)
            await cluster.create_objects(_batch("r", "8", None))
            await cluster.until(lambda: bool(cluster.node_of("r")))
            await cluster.create_objects(_batch("w", "8", None))
            await cluster.until(lambda: cluster.condition_of("w")[0] == "False")
            return await _explained(cluster, clock, "w")

    assert "earliest" not in run_virtual(run(0), clock)
    assert "earliest" in run_virtual(run(6), clock)
    assert file.exists()
    again = run_virtual(run(0), ManualClock(clock.now_ns()))
    assert "earliest" in again, "what was learned is in the file"


async def _end(cluster: VirtualCluster, name: str) -> None:
    from moorage.api.resources import PODS
    from moorage.client.requests import MERGE_PATCH, patch_body

    await cluster.client.patch(
        PODS,
        name,
        patch_body({"status": {"phase": "Succeeded"}}),
        namespace="default",
        subresource="status",
        content_type=MERGE_PATCH,
    )


def test_an_interval_that_held_is_counted_in_the_next_answer() -> None:
    clock = ManualClock()
    nodes = [node_manifest("n", cpu="8")]

    async def main() -> Any:
        async with VirtualCluster(clock, nodes=nodes, config=_with_estimates()) as cluster:
            await cluster.create_objects(_batch("r", "8", 3600))
            await cluster.until(lambda: bool(cluster.node_of("r")))
            await cluster.create_objects(_batch("w", "8", 3600), _batch("v", "8", 3600))
            await cluster.until(lambda: cluster.condition_of("v")[0] == "False")
            await _explained(cluster, clock, "w")
            await _end(cluster, "r")
            await cluster.until(lambda: bool(cluster.node_of("w")))
            return await _explained(cluster, clock, "v")

    start = run_virtual(main(), clock)
    assert (start["outcomes"], start.get("outcomesIn", 0)) == (1, 0), "it ended an hour too soon"
    assert "Of the last interval 0 held." in start["sentence"]


def test_a_member_of_a_group_starts_with_its_group_or_lacks_members() -> None:
    clock = ManualClock()
    nodes = [node_manifest("n", cpu="8")]
    config = _with_estimates(coscheduling())

    async def main() -> tuple[Any, Any]:
        async with VirtualCluster(clock, nodes=nodes, config=config) as cluster:
            await cluster.create_objects(_batch("r", "8", 900))
            await cluster.until(lambda: bool(cluster.node_of("r")))
            members = [of_labels(name, least=2) for name in ("a", "b")]
            await cluster.create_objects(members[0])
            await aio.sleep(30)
            lacking = await _explained(cluster, clock, "a")
            await cluster.create_objects(members[1])
            await cluster.until(lambda: cluster.condition_of("b")[0] == "False")
            return lacking, await _explained(cluster, clock, "b")

    lacking, whole = run_virtual(main(), clock)
    assert "missing members" in lacking["sentence"]
    assert whole["waitsFor"] == "default/r"


def test_without_the_setting_nothing_is_observed() -> None:
    clock = ManualClock()

    async def main() -> Any:
        async with VirtualCluster(clock, nodes=[node_manifest("n")]) as cluster:
            return cluster.scheduler.parts.start_observer

    assert run_virtual(main(), clock) is None

"""``bench start``: the standing cluster in both forms, waits for health, and one small measurement.

Left out: the figures themselves.
"""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.cli.main import main
from moorage.client.transport import Answer, Call, LineStream
from moorage_lab.bench.path.standing import Standing
from moorage_lab.bench.start.run import Health
from moorage_sandbox.testing.virtual_loop import run_virtual

PODS = b"/api/v1/pods"
STANDING = Standing(nodes=4, running=130, waiting=1)


def streamed(standing: Standing, path: bytes) -> list[dict[str, Any]]:
    """Return the objects of a list in the form of a watch, which ends with its bookmark."""
    lines = b"".join(standing.stream(path + b"?watch=true&sendInitialEvents=true")).splitlines()
    *events, last = [json.loads(line) for line in lines]
    assert last["type"] == "BOOKMARK"
    assert {event["type"] for event in events} <= {"ADDED"}
    return [event["object"] for event in events]


def paged(standing: Standing, path: bytes, limit: int) -> list[list[dict[str, Any]]]:
    """Return the objects of each page."""
    pages, rest = [], ""
    while True:
        more = f"&continue={rest}" if rest else ""
        page = json.loads(standing.page(path + f"?limit={limit}{more}".encode()))
        pages.append(page["items"])
        rest = page["metadata"].get("continue", "")
        if not rest:
            return pages


@pytest.mark.parametrize(
    ("path", "count"),
    [
        pytest.param(PODS, 131, id="pods"),
        pytest.param(b"/api/v1/nodes", 4, id="nodes"),
        pytest.param(b"/api/v1/namespaces", 0, id="a kind without objects"),
    ],
)
def test_stream_and_pages_have_the_same_objects(path: bytes, count: int) -> None:
    objects = streamed(STANDING, path)
    pages = paged(STANDING, path, 50)
    assert len(objects) == count
    assert [each for page in pages for each in page] == objects
    assert all(len(page) == 50 for page in pages[:-1])


def test_a_running_pod_has_three_kilobytes_and_times_and_an_annotation_of_its_own() -> None:
    pods = streamed(STANDING, PODS)[:-1]
    sizes = [len(json.dumps(pod, separators=(",", ":"))) for pod in pods]
    assert min(sizes) > 2800
    assert max(sizes) < 3400
    for own in ("name", "uid", "creationTimestamp", "annotations", "resourceVersion"):
        assert len({str(pod["metadata"][own]) for pod in pods}) == len(pods), own


def test_one_pod_waits_and_the_others_are_spread_over_the_nodes() -> None:
    nodes = [pod["spec"].get("nodeName") for pod in streamed(STANDING, PODS)]
    assert nodes[-1] is None
    assert {nodes.count(f"scheduler-perf-{index}") for index in range(4)} == {32, 33}


def test_a_server_of_pages_refuses_streamed_lists_and_no_other_watch() -> None:
    pages = Standing(nodes=1, streams=False)
    refusal = json.loads(pages.refusal(PODS + b"?watch=true&sendInitialEvents=true"))
    assert (refusal["code"], refusal["reason"]) == (422, "Invalid")
    assert pages.refusal(PODS + b"?watch=true") == b""
    assert list(pages.stream(PODS + b"?watch=true")) == []
    assert STANDING.refusal(PODS + b"?watch=true&sendInitialEvents=true") == b""


class _Scheduler:
    """A scheduler whose answers take scripted times; None is a refused connection."""

    def __init__(self, *seconds: float | None) -> None:
        self._seconds = list(seconds)

    async def request(self, call: Call) -> Answer:
        assert call.path == "/livez"
        seconds = self._seconds.pop(0)
        if seconds is None:
            raise TransportError("nobody listens")
        await aio.sleep(seconds)
        return Answer(200, {}, b"ok")

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        raise NotImplementedError(call)

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("answers", "looked_at", "longest", "count"),
    [
        pytest.param((None, None, 0.1, 0.3, 60), 0.5, 0.3, 2, id="the longest answer"),
        pytest.param((0.1, 0.1, 60), 7.24, 7.0, 2, id="an answer that has not come yet"),
        pytest.param((60,), 7.0, 0.0, 0, id="before the first answer nothing counts"),
        pytest.param((None,) * 100, 1.0, 0.0, 0, id="nobody listens yet"),
    ],
)
def test_longest_wait_for_health(
    answers: tuple[float | None, ...], looked_at: float, longest: float, count: int
) -> None:
    clock = ManualClock()

    async def looks() -> tuple[float, int]:
        tasks, health = aio.TaskOwner(), Health(_Scheduler(*answers), clock)
        tasks.spawn(health.ask(), name="health")
        await aio.sleep(looked_at)
        found = health.longest_seconds, health.answers
        await tasks.cancel_all()
        return found

    seconds, answered = run_virtual(looks(), clock)
    assert seconds == pytest.approx(longest)
    assert answered == count


def test_a_scheduler_that_stops_answering_is_a_failure() -> None:
    clock = ManualClock()
    with pytest.raises(TransportError, match="nobody listens"):
        run_virtual(Health(_Scheduler(None, 0.1, None), clock).ask(), clock)


@pytest.mark.slow
@pytest.mark.parametrize("listed", ["stream", "pages"])
def test_a_small_measurement(listed: str) -> None:
    small = ("start", "--nodes", "4", "--pods", "120", "--listed", listed)
    result = CliRunner().invoke(main, ["bench", *small, "-o", "json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["plan"] == {"nodes": 4, "pods": 120, "streamed": listed == "stream"}
    assert found["cpu_seconds"] > 0
    assert found["seconds"] > found["health_seconds_max"] >= 0
    assert found["memory_mib"] > 0


def test_more_pods_than_the_nodes_have_room_for_are_refused() -> None:
    result = CliRunner().invoke(main, ["bench", "start", "--nodes", "2", "--pods", "201"])
    assert result.exit_code == 2
    assert "2 nodes have room for 200" in result.stderr

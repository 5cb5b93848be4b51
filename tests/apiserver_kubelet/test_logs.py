"""``pods/log``: what the lines say, which of them are asked for, and each refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.base import aio
from moorage_sandbox.apiserver.wire.requests import Reply
from sandbox.tests.apiserver.harness import PODS, Cluster
from tests.apiserver_kubelet.pods import BEGAN, ENDED, RUNNING, TERMINATED, report, store_pod

LOG = f"{PODS}/web/log"


def first(run_number: int, container: str = "main") -> str:
    return (
        f"moorage: no process runs here, so there is no output; container {container} (image "
        f"nginx:1) of pod default/web is played on node node-01, run {run_number}\n"
    )


LAST = "moorage: ended with exit code 3\n"
WAITING = {"state": {"waiting": {"reason": "ContainerCreating"}}}
CRASHED = {
    "restartCount": 4,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": TERMINATED,
}
AGAIN = RUNNING | {"restartCount": 5, "lastState": TERMINATED}


@pytest.mark.parametrize(
    ("status", "query", "expected"),
    [
        pytest.param(RUNNING, {}, first(1), id="a running container"),
        pytest.param({"state": TERMINATED}, {}, first(1) + LAST, id="a container that has ended"),
        pytest.param(CRASHED, {}, first(5) + LAST, id="the last run of one that will run again"),
        pytest.param(AGAIN, {}, first(6), id="the present run"),
        pytest.param(AGAIN, {"previous": "true"}, first(5) + LAST, id="the run before"),
        pytest.param(CRASHED, {"previous": "true"}, first(5) + LAST, id="the run that crashed"),
        pytest.param({"state": TERMINATED}, {"tailLines": "1"}, LAST, id="the last line"),
        pytest.param({"state": TERMINATED}, {"tailLines": "0"}, "", id="no line"),
        pytest.param({"state": TERMINATED}, {"limitBytes": "8"}, "moorage:", id="eight bytes"),
        pytest.param(
            {"state": TERMINATED}, {"sinceTime": "2026-01-01T00:00:05Z"}, LAST, id="since a time"
        ),
        pytest.param(
            {"state": TERMINATED},
            {"timestamps": "true"},
            f"{BEGAN} {first(1)}{ENDED} {LAST}",
            id="with timestamps",
        ),
        pytest.param(
            {"state": TERMINATED}, {"follow": "true"}, first(1) + LAST, id="nothing to follow"
        ),
    ],
)
async def test_logs_follow_container_runs_and_query(status, query, expected):
    cluster = Cluster()
    await store_pod(cluster, containers={"main": status})
    reply = await cluster.reply("GET", LOG, query=query)
    assert (reply.status, reply.content_type) == (200, "text/plain")
    assert isinstance(reply.body, bytes)
    assert reply.body.decode() == expected


TWO = {"a": RUNNING, "b": RUNNING}


@pytest.mark.parametrize(
    ("containers", "query", "code", "message"),
    [
        pytest.param(
            {"main": RUNNING},
            {"container": "x"},
            400,
            "container x is not valid for pod web",
            id="a container that is not there",
        ),
        pytest.param(
            TWO,
            {},
            400,
            "a container name must be specified for pod web, choose one of: [a b]",
            id="one of several containers",
        ),
        pytest.param(
            {"main": WAITING},
            {},
            400,
            'container "main" in pod "web" is waiting to start: ContainerCreating',
            id="a container that has not started",
        ),
        pytest.param(
            {"main": None},
            {},
            400,
            'container "main" in pod "web" is not available',
            id="a container without a status",
        ),
        pytest.param(
            {"main": RUNNING},
            {"previous": "true"},
            400,
            'previous terminated container "main" in pod "web" not found',
            id="no run before this one",
        ),
        pytest.param(
            {"main": RUNNING},
            {"tailLines": "-1"},
            422,
            'PodLogOptions "web" is invalid: tailLines: Invalid value: -1: '
            "must be greater than or equal to 0",
            id="a negative number of lines",
        ),
        pytest.param(
            {"main": RUNNING},
            {"limitBytes": "0", "sinceSeconds": "0"},
            422,
            'PodLogOptions "web" is invalid: [limitBytes: Invalid value: 0: must be greater than '
            "0, sinceSeconds: Invalid value: 0: must be greater than 0]",
            id="no bytes since no time",
        ),
        pytest.param(
            {"main": RUNNING},
            {"sinceTime": "yesterday"},
            400,
            "sinceTime: 'yesterday' is no time of RFC 3339",
            id="a time that cannot be read",
        ),
    ],
)
async def test_log_calls_that_cannot_be_answered_are_refused(containers, query, code, message):
    cluster = Cluster()
    await store_pod(cluster, containers=containers)
    found, body = await cluster.call("GET", LOG, query=query)
    assert (found, body["message"]) == (code, message)


async def test_logs_of_unknown_or_unbound_pods_and_other_methods_are_refused():
    cluster = Cluster()
    assert (await cluster.call("GET", LOG))[0] == 404
    await store_pod(cluster, node="", containers={"main": None}, phase="Pending")
    assert (await cluster.reply("GET", LOG)).body == b""
    assert (await cluster.call("POST", LOG, {}))[0] == 405


async def settle() -> None:
    """Let a reader see what has been written."""
    for _ in range(5):
        await aio.sleep(0)


async def followed(cluster: Cluster, **query: str) -> list[str]:
    """The chunks of a followed log until it ends."""
    reply: Reply = await cluster.reply("GET", LOG, query={"follow": "true", **query})
    body: Any = reply.body
    assert isinstance(body, AsyncIterator)
    return [chunk.decode() async for chunk in body]


@pytest.mark.parametrize(
    ("status", "query", "expected"),
    [
        pytest.param({"state": TERMINATED}, {}, [first(1), LAST], id="when it ends"),
        pytest.param(CRASHED | {"restartCount": 0}, {}, [first(1), LAST], id="when it crashes"),
        pytest.param(
            RUNNING | {"restartCount": 1, "lastState": TERMINATED},
            {},
            [first(1), LAST],
            id="when it has been restarted meanwhile",
        ),
        pytest.param({"state": TERMINATED}, {"tailLines": "0"}, ["", LAST], id="new lines only"),
        pytest.param({"state": TERMINATED}, {"limitBytes": "5"}, ["moora"], id="up to a limit"),
        pytest.param(None, {}, [first(1)], id="when the pod is deleted"),
    ],
)
async def test_a_log_is_followed_to_the_end_of_the_run(status, query, expected):
    cluster = Cluster()
    await store_pod(cluster)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(followed(cluster, **query))
        await aio.sleep(0)
        await store_pod(cluster, "other")
        await settle()
        if status is None:
            await cluster.call("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
        else:
            await report(cluster, "web", {"main": status})
    assert reading.result() == expected


async def test_the_end_of_the_server_ends_a_log_that_is_followed():
    cluster = Cluster()
    await store_pod(cluster)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(followed(cluster))
        await settle()
        cluster.server.close()
    assert reading.result() == [first(1)]

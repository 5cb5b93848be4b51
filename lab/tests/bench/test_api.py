"""``moorage bench api``: what it asks of a server and makes of the answers, not how fast."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import msgspec
import pytest
from click.testing import CliRunner

from moorage.base.aio import TaskOwner
from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.cli.main import main
from moorage.client.auth import Credential, FixedCredentials, ServerAccess, bearer
from moorage_lab.bench.api.client import do
from moorage_lab.bench.api.jobs import (
    Listed,
    ListOnce,
    Load,
    Loaded,
    Watch,
    Watched,
    Watching,
    Write,
    Written,
)
from moorage_lab.bench.api.run import ApiPlan, ApiResult
from moorage_lab.bench.api.wire import Connector, connector_of
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.storage.watch_log import Limits

CLOCK = SystemClock()
PLAN = ApiPlan(nodes=1, pods=2, connections=1, watchers=2, rate=5, seconds=1)


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    api = ApiServer(served_kinds(), clock=CLOCK, streams=Streams(1), limits=Limits(changes=60))
    bootstrap(api)
    http = HttpServer(api, Authenticator({"secret": User("somebody")}), None)
    await http.start()
    yield http
    await http.stop()


@pytest.fixture
async def connector(server: HttpServer) -> Connector:
    credentials = FixedCredentials(Credential(headers=(bearer("secret"),)))
    return await connector_of(ServerAccess(f"http://127.0.0.1:{server.port}", credentials))


async def _do(job: Load | ListOnce | Write, connector: Connector) -> msgspec.Struct:
    answers: list[msgspec.Struct] = []
    await do(job, connector, CLOCK, answers.append)
    (answer,) = answers
    return answer


async def test_objects_are_created_listed_and_watched(connector):
    assert isinstance(await _do(Load(nodes=3, pods=25, connections=4), connector), Loaded)
    counts = []
    for job in (
        ListOnce("/api/v1/nodes"),
        ListOnce("/api/v1/pods", "table"),
        ListOnce("/api/v1/pods", "protobuf"),
        ListOnce("/api/v1/pods?labelSelector=group%3D0"),
    ):
        listed = await _do(job, connector)
        assert isinstance(listed, Listed)
        assert listed.size_bytes > 0
        counts.append(listed.count)
    assert counts == [3, 25, 25, 3]


async def test_a_long_list_in_protobuf_comes_in_pieces(connector):
    await _do(Load(nodes=0, pods=150, connections=4), connector)
    listed = await _do(ListOnce("/api/v1/pods", "protobuf"), connector)
    assert isinstance(listed, Listed)
    assert listed.count == 150


async def test_watchers_see_what_is_written(connector):
    await _do(Load(nodes=0, pods=0, connections=4), connector)

    tasks, answers = TaskOwner(), asyncio.Queue[msgspec.Struct]()
    watch = Watch(watchers=3, events=40, silence_seconds=30)
    tasks.spawn(do(watch, connector, CLOCK, answers.put_nowait), name="watch")
    assert await answers.get() == Watching(3)
    assert isinstance(await _do(Write(events=40, rate=1000, connections=4), connector), Written)
    watched = await answers.get()
    assert isinstance(watched, Watched)
    assert (watched.events, len(watched.digests), watched.cut) == ((40, 40, 40), 1, 0)
    assert 0 < watched.lag_p50_ms <= watched.lag_p99_ms
    await tasks.cancel_all()


async def test_a_watch_the_server_ends_is_cut(connector, server):
    tasks, answers = TaskOwner(), asyncio.Queue[msgspec.Struct]()
    watch = Watch(watchers=2, events=5, silence_seconds=30)
    tasks.spawn(do(watch, connector, CLOCK, answers.put_nowait), name="watch")
    await answers.get()
    await server.stop()
    watched = await answers.get()
    assert isinstance(watched, Watched)
    assert (watched.events, watched.cut) == ((0, 0), 2)
    await tasks.cancel_all()


async def test_a_refusal_is_told_with_its_reason(connector):
    job = Load(nodes=0, pods=1, connections=1)
    await _do(job, connector)
    with pytest.raises(
        MoorageError, match=r'^POST /api/.*/pods: 409: .*\\"load-0\\" already exists'
    ):
        await _do(job, connector)


def _result(**changes: object) -> ApiResult:
    listed = Listed(seconds=0.5, size_bytes=1_000_000, count=2)
    watched = Watched(
        seconds=1.0, events=(5, 5), digests=("d",), cut=0, lag_p50_ms=1.0, lag_p99_ms=2.0
    )
    result = ApiResult(
        plan=PLAN,
        loaded=Loaded(nodes_seconds=0.5, pods_seconds=0.5),
        lists={"all": listed},
        written=Written(seconds=1.0),
        watched=watched,
        server_cpu_seconds={"create": 0.25},
        memory_peak_mib={"create": 80.0},
    )
    replaced = {
        name: msgspec.structs.replace(getattr(result, name), **value)
        for name, value in changes.items()
        if isinstance(value, dict) and name != "lists"
    }
    if "lists" in changes:
        replaced["lists"] = changes["lists"]
    return msgspec.structs.replace(result, **replaced)


def test_every_figure_of_the_run_is_reported():
    assert _result().as_lines() == [
        "API server (1 connections, 2 watchers)",
        "  create nodes: 2 a second: 1 in 0.5 s",
        "  create pods: 4 a second: 2 in 0.5 s",
        "  list, all: 2 pods in 0.50 s, 1.0 MB",
        "  writes: 5 in 1.00 s, asked for 5 a second",
        "  watches: 10 events/s delivered, 0 cut off, lag p50 1 ms, p99 2 ms",
        "  server cpu: create 0.25 s",
        "  server peak memory: create 80 MiB",
        f"  seen: sha256 {_result().digest}",
    ]


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        pytest.param({}, [], id="nothing is wrong"),
        pytest.param(
            {"lists": {"all": Listed(0.5, 9, 1)}},
            ["1 of 2 pods were listed"],
            id="a pod is missing",
        ),
        pytest.param(
            {"watched": {"events": (5, 3), "cut": 1}},
            ["1 watches were cut off", "1 watchers saw other than 5 events"],
            id="a watch ended early",
        ),
        pytest.param(
            {"watched": {"digests": ("c", "d")}},
            ["watchers saw different events, or in another order"],
            id="an order differs",
        ),
    ],
)
def test_faults_are_reported_and_change_the_digest(changes, faults):
    result = _result(**changes)
    assert result.faults == faults
    assert (result.digest == _result().digest) == (not faults)


@pytest.mark.slow
def test_a_small_run_with_all_its_processes():
    sizes = ["--nodes", "2", "--pods", "20", "--watchers", "2", "--rate", "50", "--seconds", "1"]
    done = CliRunner().invoke(main, ["bench", "api", *sizes, "-o", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert {name: each["count"] for name, each in found["lists"].items()} == {
        "all": 20,
        "one group of 10": 2,
        "as a Table": 20,
        "in protobuf": 20,
    }
    assert (found["watched"]["events"], found["faults"]) == (100, [])
    assert set(found["server_cpu_seconds"]) == {"create", "list", "watch"}

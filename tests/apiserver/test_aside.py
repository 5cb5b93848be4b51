"""Heavy calls beside the loop: one at a time, while reads go on and writes wait."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from moorage.apiserver.aside import Aside, is_heavy
from moorage.apiserver.requests import Request
from tests.apiserver.harness import (
    ADMIN,
    CONFIG_MAPS,
    JSON_PATCH,
    PODS,
    Cluster,
    config_map,
    namespace,
    pod,
)

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("method", "path", "body", "accept", "heavy"),
    [
        pytest.param("POST", PODS, pod("b"), "", False, id="a small body"),
        pytest.param("POST", PODS, config_map(k="x" * 9000), "", True, id="a large body"),
        pytest.param("PATCH", f"{PODS}/a", {"op": "add"}, "", False, id="a patch"),
        pytest.param("PATCH", f"{PODS}/a", {"op": "copy"}, "", True, id="a patch that copies"),
        pytest.param("PATCH", f"{CONFIG_MAPS}/big", {}, "", True, id="a change of a large object"),
        pytest.param("GET", f"{CONFIG_MAPS}/big", None, "", False, id="a large object"),
        pytest.param(
            "GET", f"{CONFIG_MAPS}/big", None, TABLE, True, id="the table of a large object"
        ),
        pytest.param(
            "GET",
            f"{CONFIG_MAPS}/big",
            None,
            "application/yaml",
            True,
            id="the YAML of a large object",
        ),
        pytest.param("GET", CONFIG_MAPS, None, "", False, id="a long list as stored"),
        pytest.param("GET", CONFIG_MAPS, None, TABLE, True, id="a long list as a table"),
        pytest.param("GET", PODS, None, TABLE, False, id="a short list as a table"),
        pytest.param("DELETE", CONFIG_MAPS, None, "", True, id="a collection to delete"),
        pytest.param("DELETE", f"{PODS}/a", None, "", False, id="an object to delete"),
        pytest.param("DELETE", "/api/v1/namespaces/x", None, "", True, id="a namespace to delete"),
        pytest.param("GET", "/openapi/v2", None, "application/yaml", True, id="a document in YAML"),
        pytest.param("GET", "/openapi/v2", None, "", True, id="the description of all kinds"),
        pytest.param("GET", "/apis", None, "", False, id="a document"),
        pytest.param("GET", "/nosuch", None, "", False, id="a path that is not served"),
    ],
)
async def test_calls_on_large_bodies_or_lists_count_as_heavy(
    method: str, path: str, body: Any, accept: str, heavy: bool
):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    await cluster.ok("POST", CONFIG_MAPS, config_map("big", k="x" * 40_000))
    for n in range(250):
        await cluster.ok("POST", CONFIG_MAPS, config_map(f"m{n}"))
    sent = json.dumps(body).encode() if body is not None else b""
    request = Request(method=method, path=path, body=sent, headers={"accept": accept}, user=ADMIN)
    target = cluster.server._routes.find(path.partition("?")[0])
    assert is_heavy(request, target, cluster.server.store) is heavy


async def test_a_write_waits_for_a_heavy_call_whose_caller_has_gone():
    aside, go = Aside(), threading.Event()
    log: list[object] = []
    aside.start()

    def heavy() -> None:
        go.wait()
        aside.at_home(lambda: log.append(threading.current_thread() is threading.main_thread()))

    caller = asyncio.ensure_future(aside.heavy("a", heavy))  # noqa: TID251
    writer = asyncio.ensure_future(aside.writing(lambda: log.append("written")))  # noqa: TID251
    while not aside.busy:
        await asyncio.wait([caller], timeout=0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (log, aside.busy) == ([], True)
    go.set()
    await writer
    assert log == [True, "written"]
    aside.close()


async def test_an_error_in_the_thread_reaches_the_caller():
    aside = Aside()
    aside.start()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await aside.heavy("a", lambda: aside.at_home(fail))
    assert await aside.heavy("a", lambda: 1) == 1
    aside.close()


async def test_heavy_and_light_calls_keep_one_order_of_versions():
    cluster = Cluster()
    cluster.server.use_thread()
    watch = await cluster.watch(CONFIG_MAPS)
    large = {"k": "x" * 10_000}
    names = [f"m{n}" for n in range(20)]
    made = await asyncio.gather(
        *(
            cluster.ok("POST", CONFIG_MAPS, config_map(name, **(large if n % 3 == 0 else {})))
            for n, name in enumerate(names)
        )
    )
    versions = [int(each["metadata"]["resourceVersion"]) for each in made]
    assert len(set(versions)) == len(names)
    seen = [await watch.event() for _ in names]
    told = [int(each["object"]["metadata"]["resourceVersion"]) for each in seen]
    assert told == sorted(versions)
    patch = [{"op": "copy", "from": "/data/k", "path": "/data/l"}]
    found = await cluster.ok("PATCH", f"{CONFIG_MAPS}/m0", patch, content_type=JSON_PATCH)
    assert found["data"]["l"] == large["k"]
    await watch.close()
    cluster.server.close()


async def test_a_namespace_is_emptied_in_a_thread():
    cluster = Cluster()
    cluster.server.use_thread()
    await cluster.ok("POST", "/api/v1/namespaces", namespace("x"))
    path = "/api/v1/namespaces/x/configmaps"
    for n in range(5):
        await cluster.ok("POST", path, config_map(f"m{n}"))
    await cluster.ok("DELETE", "/api/v1/namespaces/x")
    assert await cluster.names(path) == []
    cluster.server.close()

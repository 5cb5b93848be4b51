"""Long calls in a thread: one at a time, while reads and writes of the loop go on."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.base.aio import sleep
from moorage_sandbox.apiserver.loading import SNAPSHOT_PATH
from moorage_sandbox.apiserver.protobuf import calls
from moorage_sandbox.apiserver.protobuf.rendering import ProtobufRenderer
from moorage_sandbox.apiserver.verbs import writing
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from moorage_sandbox.apiserver.wire.render import Renderer
from moorage_sandbox.apiserver.wire.requests import Request
from moorage_sandbox.apiserver.worker_thread import WorkerThread, takes_long
from moorage_sandbox.apiserver.world import World
from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import (
    ADMIN,
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    PODS,
    Cluster,
    config_map,
    namespace,
    pod,
)

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NAMESPACES = "/api/v1/namespaces"
LARGE = {"k": "x" * 10_000}
SECRETS = "/api/v1/namespaces/default/secrets"
SCALERS_V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
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
        pytest.param("GET", SECRETS, None, "", False, id="a few large objects as stored"),
        pytest.param("GET", SECRETS, None, TABLE, True, id="a few large objects as a table"),
        pytest.param("GET", SCALERS_V1, None, "", True, id="a long list in another version"),
        pytest.param(
            "GET", f"{PODS}/a", None, PROTOBUF, True, id="the first call in protobuf about a kind"
        ),
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
    method: str, path: str, body: Any, accept: str, heavy: bool, monkeypatch: pytest.MonkeyPatch
):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    await cluster.ok("POST", CONFIG_MAPS, config_map("big", k="x" * 40_000))
    for n in range(250):
        await cluster.ok("POST", CONFIG_MAPS, config_map(f"m{n}"))
        await cluster.ok("POST", SCALERS_V1.replace("v1", "v2", 1), scaler(f"s{n}"))
    for n in range(3):
        secret = {"metadata": {"name": f"s{n}"}, "stringData": {"k": "x" * 100_000}}
        await cluster.ok("POST", SECRETS, secret)
    monkeypatch.setattr(calls, "_prepared", set())
    sent = json.dumps(body).encode() if body is not None else b""
    request = Request(method=method, path=path, body=sent, headers={"accept": accept}, user=ADMIN)
    target = cluster.server._chain._routes.find(path.partition("?")[0])
    assert takes_long(request, target, cluster.server.store) is heavy


def scaler(name: str) -> Any:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("accept", "size", "thread"),
    [
        pytest.param(PROTOBUF, 100_000, "rendering", id="a large object in protobuf"),
        pytest.param(TABLE, 100_000, "rendering", id="a large object as a row of a table"),
        pytest.param(TABLE, 10, "MainThread", id="a small object as a row of a table"),
        pytest.param("", 100_000, "MainThread", id="a large object as stored"),
    ],
)
async def test_large_events_of_a_watch_are_written_in_a_thread(
    cluster: Cluster, accept: str, size: int, thread: str, monkeypatch: pytest.MonkeyPatch
):
    threads: list[str] = []
    for kind in (Renderer, ProtobufRenderer):
        monkeypatch.setattr(kind, "event", _noted(kind.event, threads))
    first = config_map("first", k="x" * size)
    await cluster.ok("POST", CONFIG_MAPS, first)
    reply = await cluster.reply("GET", CONFIG_MAPS, query={"watch": "true"}, accept=accept)
    assert not isinstance(reply.body, bytes)
    # The whole stream so far is one chunk, or one for each large object.
    await anext(reply.body)
    await cluster.ok("POST", CONFIG_MAPS, config_map("second", k="x" * size))
    while len(threads) < 3:
        await anext(reply.body)
    await reply.body.aclose()  # type: ignore[attr-defined]
    assert threads == [thread] * 3


def _noted(event: Any, threads: list[str]) -> Any:
    def noted(*given: Any) -> bytes:
        threads.append(threading.current_thread().name.partition("_")[0])
        return bytes(event(*given))

    return noted


async def test_the_interpreter_is_as_before_once_both_threads_have_ended():
    before = gc.isenabled(), sys.getswitchinterval()
    thread, go = WorkerThread(), threading.Event()
    thread.start()
    long = asyncio.ensure_future(thread.run("a", lambda _: go.wait()))  # noqa: TID251
    assert await thread.apart(lambda: (gc.isenabled(), sys.getswitchinterval())) == (False, 0.0005)
    assert (gc.isenabled(), sys.getswitchinterval()) == (False, 0.0005)
    go.set()
    assert await long
    assert (gc.isenabled(), sys.getswitchinterval()) == before
    thread.close()


async def test_an_error_in_the_thread_reaches_the_caller():
    thread = WorkerThread()
    thread.start()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await thread.run("a", lambda _: thread.at_home(fail))
    assert await thread.run("a", lambda _: 1) == 1
    thread.close()


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
    await cluster.ok("POST", NAMESPACES, namespace("x"))
    path = "/api/v1/namespaces/x/configmaps"
    for n in range(5):
        await cluster.ok("POST", path, config_map(f"m{n}"))
    await cluster.ok("DELETE", "/api/v1/namespaces/x")
    assert await cluster.names(path) == []
    cluster.server.close()


class Pause:
    """Stops the long calls that change an object, in the thread, before their write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tries = 0
        self._reached, self._go = threading.Semaphore(0), threading.Semaphore(0)
        self._tracked = writing._tracked
        monkeypatch.setattr(writing, "_tracked", self._stop)

    def _stop(self, *given: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self.tries += 1
            self._reached.release()
            self._go.acquire()
        return self._tracked(*given)

    async def reached(self) -> None:
        """Wait until a long call stands before its write."""
        while not self._reached.acquire(blocking=False):
            await sleep(0)

    def go_on(self, times: int = 1) -> None:
        """Let the long call go on."""
        self._go.release(times)


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Pause:
    return Pause(monkeypatch)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster()
    cluster.server.use_thread()
    await cluster.ok("POST", CONFIG_MAPS, config_map(**LARGE))
    yield cluster
    cluster.server.close()


def _long_patch(cluster: Cluster) -> asyncio.Task[Any]:
    patch = {"metadata": {"labels": {"long": "call"}}}
    call = cluster.call("PATCH", f"{CONFIG_MAPS}/a", patch | {"data": LARGE}, content_type=MERGE)
    return asyncio.ensure_future(call)  # noqa: TID251


async def _label(cluster: Cluster, **labels: str) -> dict[str, Any]:
    patch = {"metadata": {"labels": labels}}
    found: dict[str, Any] = await cluster.ok("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=MERGE)
    return found


async def test_writes_and_leases_go_on_while_a_long_call_is_answered(
    cluster: Cluster, pause: Pause
):
    long = _long_patch(cluster)
    await pause.reached()
    await cluster.ok("POST", PODS, pod())
    await cluster.ok("POST", LEASES, {"metadata": {"name": "a"}})
    pause.go_on()
    status, found = await long
    assert (status, found["metadata"]["labels"], pause.tries) == (200, {"long": "call"}, 1)


async def test_a_long_call_starts_again_after_another_write_to_its_object(
    cluster: Cluster, pause: Pause
):
    long = _long_patch(cluster)
    await pause.reached()
    await _label(cluster, short="call")
    pause.go_on(2)
    status, found = await long
    assert (status, pause.tries) == (200, 2)
    assert found["metadata"]["labels"] == {"long": "call", "short": "call"}


async def test_a_long_call_that_others_outrun_five_times_is_a_conflict(
    cluster: Cluster, pause: Pause
):
    long = _long_patch(cluster)
    for n in range(5):
        await pause.reached()
        await _label(cluster, short=str(n))
        pause.go_on()
    status, found = await long
    assert (status, found["reason"], pause.tries) == (409, "Conflict", 5)
    assert (await cluster.ok("GET", f"{CONFIG_MAPS}/a"))["metadata"]["labels"] == {"short": "4"}


async def test_a_long_call_whose_caller_has_gone_writes_nothing(cluster: Cluster, pause: Pause):
    long = _long_patch(cluster)
    await pause.reached()
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    pause.go_on()
    await cluster.ok("POST", CONFIG_MAPS, config_map("next", **LARGE))  # the thread is free again
    assert "labels" not in (await cluster.ok("GET", f"{CONFIG_MAPS}/a"))["metadata"]


@pytest.mark.parametrize(
    ("meanwhile", "path", "answer"),
    [
        pytest.param(
            ("POST", CONFIG_MAPS, config_map("b")),
            CONFIG_MAPS,
            (409, "AlreadyExists"),
            id="the name is taken",
        ),
        pytest.param(
            ("DELETE", f"{NAMESPACES}/x", None),
            f"{NAMESPACES}/x/configmaps",
            (403, "Forbidden"),
            id="the namespace begins to go",
        ),
        pytest.param(
            ("POST", CONFIG_MAPS, config_map("c")),
            CONFIG_MAPS,
            (403, "Forbidden"),
            id="the quota is used up",
        ),
    ],
)
async def test_what_happens_during_a_long_create_counts(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: tuple[str, str, Any],
    path: str,
    answer: tuple[int, str],
):
    await cluster.ok("POST", NAMESPACES, namespace("x"))
    # A namespace with a finalizer stays for a while.
    patch = {"metadata": {"finalizers": ["example.com/a"]}}
    await cluster.ok("PATCH", f"{NAMESPACES}/x", patch, content_type=MERGE)
    room = "2" if answer[1] == "Forbidden" else "9"
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": room}}}
    await cluster.ok("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    reached, go = threading.Event(), threading.Event()
    step = World.run_in_one_step

    def stopping(self: World, work: Any) -> Any:
        if threading.current_thread() is not threading.main_thread() and not go.is_set():
            reached.set()
            go.wait()
        return step(self, work)

    monkeypatch.setattr(World, "run_in_one_step", stopping)
    create = cluster.call("POST", path, config_map("b", **LARGE))
    long = asyncio.ensure_future(create)  # noqa: TID251
    while not reached.is_set():
        await sleep(0)
    method, other, body = meanwhile
    # Deleting a namespace is a long call, too: its mark is set as a short call would.
    if method == "DELETE":
        record = cluster.server.store.shelf("namespaces").get(("", "x"))
        assert record is not None
        obj = record.decode()
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        cluster.server.store.put("namespaces", obj, record.fields)
    else:
        await cluster.ok(method, other, body)
    go.set()
    status, found = await long
    assert (status, found["reason"]) == answer


def _quota(pods: str) -> Any:
    return {"metadata": {"name": "q"}, "spec": {"hard": {"pods": pods}}}


def _policy(expression: str) -> Any:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    matched = {"resourceRules": [rule | {"resources": ["pods"]}]}
    spec = {"matchConstraints": matched, "validations": [{"expression": expression}]}
    return {"metadata": {"name": "p"}, "spec": spec}


def _labelled(obj: Any) -> Any:
    return obj | {"metadata": obj["metadata"] | {"labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("shelf", "path", "first", "second"),
    [
        pytest.param(
            "resourcequotas",
            "/api/v1/namespaces/default/resourcequotas",
            _quota("1"),
            _quota("2"),
            id="the first count of a quota",
        ),
        pytest.param(
            DEFINITIONS.rpartition("/")[2] + ".apiextensions.k8s.io",
            DEFINITIONS,
            definition(),
            _labelled(definition()),
            id="the kinds of a definition",
        ),
        pytest.param(
            "validatingadmissionpolicies.admissionregistration.k8s.io",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            _policy("true"),
            _policy("false"),
            id="the types of a policy",
        ),
    ],
)
async def test_long_work_that_follows_from_a_write_is_done_in_the_thread(
    cluster: Cluster, shelf: str, path: str, first: Any, second: Any
):
    """Each such listener may take a second; in the loop every other call would wait for it."""
    threads: list[str] = []
    told_apart = cluster.server._world._slow_listeners
    tell = told_apart[shelf]

    def noted(*told: Any) -> None:
        threads.append(threading.current_thread().name.rpartition("_")[0])
        tell(*told)

    told_apart[shelf] = noted
    made = await cluster.ok("POST", path, first)
    name = made["metadata"]["name"]
    now = await cluster.ok("GET", f"{path}/{name}")
    version = {"resourceVersion": now["metadata"]["resourceVersion"]}
    second = second | {"metadata": second["metadata"] | version}
    await cluster.ok("PUT", f"{path}/{name}", second)
    # The listener may write the object once more, with what it has found.
    assert threads[:2] == ["long call"] * 2
    assert set(threads) == {"long call"}


async def test_a_collection_is_deleted_in_small_steps(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    """A step of the loop deletes a few objects, so every other call waits for a few at most."""
    written: list[int] = []
    at_home = cluster.server.store.at_home

    def counted(work: Any) -> Any:
        def step() -> Any:
            before = cluster.server.store.version
            result = work()
            written.append(cluster.server.store.version - before)
            return result

        return at_home(step)

    for n in range(100):
        await cluster.ok("POST", PODS, pod(f"p{n}", node="n1"))
    monkeypatch.setattr(cluster.server.store, "at_home", counted)
    answers = await asyncio.gather(
        cluster.ok("DELETE", PODS, query={"gracePeriodSeconds": "0"}),
        *(cluster.ok("POST", LEASES, {"metadata": {"name": f"l{n}"}}) for n in range(5)),
        *(cluster.call("DELETE", f"{PODS}/p{n}", {"gracePeriodSeconds": 0}) for n in (20, 30, 99)),
    )
    assert len(answers[0]["items"]) in range(97, 101)
    assert await cluster.names(PODS) == []
    assert max(written) <= 16


async def test_the_last_pod_of_a_namespace_takes_the_rest_along_in_the_thread(cluster: Cluster):
    await cluster.ok("POST", NAMESPACES, namespace("x"))
    inside = f"{NAMESPACES}/x"
    await cluster.ok("POST", f"{inside}/pods", pod(node="n1"))
    for n in range(30):
        await cluster.ok("POST", f"{inside}/configmaps", config_map(f"m{n}"))
    await cluster.ok("DELETE", inside)
    deleted = (await cluster.ok("GET", f"{inside}/pods"))["items"][0]["metadata"]
    assert deleted["deletionTimestamp"]
    await cluster.ok("DELETE", f"{inside}/pods/a", {"gracePeriodSeconds": 0})
    while (await cluster.reply("GET", inside)).status == 200:
        await sleep(0)
    assert await cluster.names(f"{inside}/configmaps") == []


async def test_while_a_snapshot_is_stored_all_calls_but_leases_wait(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    reached, go = threading.Event(), threading.Event()
    one_by_one = World.one_by_one

    def stopping(self: World, work: Any) -> Any:
        reached.set()
        go.wait()
        return one_by_one(self, work)

    monkeypatch.setattr(World, "one_by_one", stopping)
    piece = {"begin": True, "store": True, "objects": [config_map("s")]}
    loading = asyncio.ensure_future(cluster.ok("POST", SNAPSHOT_PATH, piece))  # noqa: TID251
    while not reached.is_set():
        await sleep(0)
    other = asyncio.ensure_future(cluster.ok("POST", CONFIG_MAPS, config_map("o")))  # noqa: TID251
    owner = asyncio.ensure_future(cluster.reply("GET", f"{CONFIG_MAPS}/s"))  # noqa: TID251
    await cluster.ok("POST", LEASES, {"metadata": {"name": "a"}})
    assert (await cluster.reply("GET", "/readyz")).status == 200
    assert not other.done()
    assert not owner.done()
    go.set()
    assert (await loading)["stored"] == 1
    await other
    assert (await owner).status == 200
    assert await cluster.names(CONFIG_MAPS) == ["a", "o", "s"]

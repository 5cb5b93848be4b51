"""Headers, encodings and connections as no client sends them."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
import uvloop

from moorage_sandbox.apiserver.wire import connection, fairness, requests
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster, config_map
from tests.attack.wire import OTHER, SECRET, listening, read_answer

JSON = b"Content-Type: application/json"
MAP = json.dumps(config_map()).encode()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param(b"User-Agent: \xff\xfe", 201, id="a client's name that is no UTF-8"),
        pytest.param("User-Agent: \u00e9".encode(), 201, id="a client's name with accents"),
        pytest.param(b"Impersonate-User: \xff", 400, id="a user to act as that is no UTF-8"),
        pytest.param(
            b"Impersonate-User: a\r\nImpersonate-Group: \xff", 400, id="a group that is no UTF-8"
        ),
        pytest.param(b"Impersonate-Extra-\xff: a", 400, id="a header's name that is no UTF-8"),
        pytest.param(b"Accept: \xff, application/json", 201, id="a form that is no UTF-8"),
        pytest.param(b"Accept: \xff", 406, id="only a form that is no UTF-8"),
        pytest.param(b"If-None-Match: \xff", 201, id="a tag that is no UTF-8"),
        pytest.param(b"Authorization: Bearer \xff", 401, id="a token that is no UTF-8"),
    ],
)
async def test_a_header_decides_before_a_write_takes_effect(
    header: bytes, status: int, tmp_path: Path
):
    async with listening(tmp_path) as wire:
        known = () if header.startswith(b"Authorization") else (SECRET,)
        answer = await wire.send(b"POST " + CONFIG_MAPS.encode(), *known, JSON, header, body=MAP)
        assert answer.status == status, answer.body
        stored = await wire.cluster.names(CONFIG_MAPS)
        assert ("a" in stored) == (status == 201)
        if b"Impersonate-Extra" not in header:  # The HTTP library itself refuses that one.
            assert [each["responseStatus"]["code"] for each in wire.audited()][:1] == [status]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(b"/api/v1/namespaces/\xff/configmaps", id="a path"),
        pytest.param(b"/api/v1/namespaces/%ff/configmaps", id="an escaped path"),
        pytest.param(b"/api/v1/configmaps?fieldSelector=metadata.name%3D%ff", id="a selector"),
        pytest.param(b"/api/v1/configmaps?labelSelector=\xff", id="a selector as bytes"),
        pytest.param(b"/api/v1/configmaps?%ff=%fe", id="a parameter"),
        pytest.param(b"/api/v1/configmaps?continue=%ff", id="a token"),
        pytest.param(b"/api/v1/configmaps?resourceVersion=%d9%a1", id="Arabic digits"),
    ],
)
@pytest.mark.parametrize("method", [b"GET", b"POST", b"DELETE"])
async def test_a_path_that_is_no_utf_8_causes_no_internal_error(
    method: bytes, path: bytes, tmp_path: Path
):
    async with listening(tmp_path) as wire:
        body = MAP if method == b"POST" else b""
        answer = await wire.send(method + b" " + path, SECRET, JSON, body=body)
        assert answer.status < 500, answer.body


async def test_warnings_cannot_break_or_flood_the_headers(tmp_path: Path):
    async with listening(tmp_path) as wire:
        for name, fields in {
            "a": ["x\r\nSet-Cookie: a", "\ud800"],
            "b": map(str, range(9999)),
        }.items():
            odd = {**config_map(name), **dict.fromkeys(fields, 1)}
            body = json.dumps(odd).encode()
            answer = await wire.send(b"POST " + CONFIG_MAPS.encode(), SECRET, JSON, body=body)
            assert answer.status in (201, 400), answer.body
            assert "set-cookie" not in answer.headers
            assert sum(map(len, answer.headers.values())) < 8192
            assert (name in await wire.cluster.names(CONFIG_MAPS)) == (answer.status == 201)


async def test_a_write_succeeds_though_its_answer_cannot_be_serialised(monkeypatch: Any):
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    shown = "application/json;as=Table;g=meta.k8s.io;v=v1"

    def fail(*_: Any) -> Any:
        raise RuntimeError("a column that fails")

    monkeypatch.setattr("moorage_sandbox.apiserver.wire.render.to_table", fail)
    made = await cluster.ok("POST", CARS, car(color="red"), accept=shown)
    assert made["metadata"]["name"] == "a"
    await cluster.ok("DELETE", CARS, accept=shown)
    assert (await cluster.call("GET", f"{CARS}/a"))[0] == 404


async def test_a_failing_write_listener_does_not_fail_the_write(caplog: Any):
    cluster = Cluster()

    def fail(*_: Any) -> None:
        raise RuntimeError("a listener that fails")

    cluster.server._world.on_write("configmaps", fail)
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    assert await cluster.names(CONFIG_MAPS) == ["a"]
    assert "what follows from a write to configmaps was not done" in caplog.text


@pytest.fixture(scope="module")
def bomb() -> bytes:
    return gzip.compress(bytes(200 * 1024 * 1024))


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"br", b"zstd", b"GZIP", b"x, gzip"])
@pytest.mark.parametrize(("headers", "status"), [((), 401), ((SECRET,), 415)])
async def test_compressed_bodies_are_refused_without_decompression(
    encoding: bytes, headers: tuple[bytes, ...], status: int, bomb: bytes, tmp_path: Path
):
    async with listening(tmp_path) as wire:
        began = time.process_time()
        answer = await wire.send(
            b"POST " + CONFIG_MAPS.encode(),
            *headers,
            JSON,
            b"Content-Encoding: " + encoding,
            body=bomb,
        )
        assert answer.status == status
        # 200 MB of zeros took 1.5 s to inflate.
        assert time.process_time() - began < 0.5
        if status == 401:
            assert [each["responseStatus"]["code"] for each in wire.audited()] == [401]


async def test_an_unauthenticated_call_is_refused_before_its_body_arrives(tmp_path: Path):
    async with listening(tmp_path) as wire:
        head = b"POST " + CONFIG_MAPS.encode()
        answer = await wire.send(head, b"Content-Length: 3000000")
        assert answer.status == 401


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /api HTTP/1.1\r\nHost: x\r\nA: ", id="half a header"),
    ],
)
@pytest.mark.parametrize(
    "make_loop",
    [
        pytest.param(asyncio.SelectorEventLoop, id="asyncio"),
        pytest.param(uvloop.new_event_loop, id="the loop of a sandbox"),
    ],
)
def test_a_connection_with_incomplete_headers_is_closed(
    sent: bytes, make_loop: Any, tmp_path: Path, monkeypatch: Any
):
    monkeypatch.setattr(connection, "_HEADERS_SECONDS", 0.05)

    async def main() -> None:
        async with listening(tmp_path) as wire:
            reader, writer = await wire.connect()
            writer.write(sent)
            async with asyncio.timeout(30):
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            writer.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())


async def test_a_call_with_an_incomplete_body_is_ended(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(requests, "CALL_SECONDS", 0.05)
    async with listening(tmp_path) as wire:
        head = b"POST " + CONFIG_MAPS.encode()
        async with asyncio.timeout(30):
            answer = await wire.send(head, SECRET, JSON, b"Content-Length: 100", body=b"{")
        assert (answer.status, answer.json["reason"]) == (504, "Timeout")
        assert await wire.cluster.names(CONFIG_MAPS) == []


async def test_every_call_of_a_connection_has_a_time_limit(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(requests, "CALL_SECONDS", 0.3)
    head = b"POST " + CONFIG_MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\n" + SECRET + b"\r\n"
    async with listening(tmp_path) as wire, asyncio.timeout(30):
        reader, writer = await wire.connect()
        # The timer of the first call is still running when the second call begins.
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await read_answer(reader)).body == b"ok"
        writer.write(head + b"Content-Length: 100\r\n\r\n{")
        assert (await read_answer(reader)).status == 504
        writer.close()


async def test_a_caller_may_set_a_shorter_time_limit(tmp_path: Path):
    head = b"POST " + CONFIG_MAPS.encode() + b"?timeout=50ms HTTP/1.1\r\nHost: x\r\n"
    async with listening(tmp_path) as wire, asyncio.timeout(30):
        reader, writer = await wire.connect()
        # The timer of the first call, of a minute, is still running when the second call begins.
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await read_answer(reader)).body == b"ok"
        writer.write(head + SECRET + b"\r\nContent-Length: 100\r\n\r\n{")
        assert (await read_answer(reader)).status == 504
        writer.close()


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        pytest.param((), 60, id="none"),
        pytest.param((("timeout", "5s"),), 5, id="shorter"),
        pytest.param((("timeout", "1m30s"),), 60, id="longer"),
        pytest.param((("timeout", "1h"),), 60, id="much longer"),
        pytest.param((("timeout", "0s"),), 60, id="zero"),
        pytest.param((("timeout", "0"),), 60, id="zero without a unit"),
        pytest.param((("timeout", "-5s"),), 60, id="negative"),
        pytest.param((("timeout", "1.5s500ms"),), 2, id="two units"),
        pytest.param((("timeout", "x"),), 60, id="no duration"),
        pytest.param((("timeout", "5s"), ("watch", "true")), 60, id="a watch"),
    ],
)
def test_the_time_limit_of_a_call(query: tuple[tuple[str, str], ...], seconds: float):
    assert requests.time_limit_seconds(query) == seconds


async def test_a_connection_serves_one_call_after_another(tmp_path: Path):
    async with listening(tmp_path) as wire:
        reader, writer = await wire.connect()
        for _ in range(3):
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await read_answer(reader)).body == b"ok"
        writer.close()


async def test_a_long_answer_is_sent_completely(tmp_path: Path):
    async with listening(tmp_path) as wire:
        for name in ("a", "b", "c"):
            await wire.cluster.ok("POST", CONFIG_MAPS, config_map(name, k="x" * 700_000))
        answer = await wire.send(b"GET " + CONFIG_MAPS.encode(), SECRET)
        assert [len(each.get("data", {}).get("k", "")) for each in answer.json["items"]][:3] == [
            700_000
        ] * 3


async def test_a_write_whose_caller_has_gone_is_in_the_audit_log(tmp_path: Path):
    async with listening(tmp_path) as wire:
        never = asyncio.Event()

        class Disk:
            stopped = None

            async def durable(self) -> None:
                await never.wait()

        wire.cluster.server._durability.persistence = Disk()  # type: ignore[assignment]
        _, writer = await wire.connect()
        head = b"POST %s HTTP/1.1\r\nHost: x" % CONFIG_MAPS.encode()
        length = b"Content-Length: %d" % len(MAP)
        writer.write(b"\r\n".join([head, SECRET, JSON, length, b"", MAP]))
        await writer.drain()
        async with asyncio.timeout(30):
            await wire.cluster.server.store.shelf("configmaps").log.wait_for_change(5)
            writer.close()
            while not wire.audited():
                _, other = await wire.connect()
                other.close()
        noted = [(each["verb"], each["responseStatus"]["code"]) for each in wire.audited()]
        assert noted == [("create", 504)]


async def test_a_user_with_too_many_calls_gets_429_with_retry_after(
    tmp_path: Path, monkeypatch: Any
):
    monkeypatch.setattr(fairness, "CALLS_OF_USER_MAX", 1)
    async with listening(tmp_path) as wire:
        reader, writer = await wire.connect()
        head = b"POST %s HTTP/1.1\r\nHost: x" % CONFIG_MAPS.encode()
        length = b"Content-Length: %d" % len(MAP)
        writer.write(b"\r\n".join([head, SECRET, JSON, length, b"", b""]))
        while (answer := await wire.send(b"GET /api", SECRET)).status == 200:
            pass
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert (await wire.send(b"GET /api", OTHER)).status == 200
        assert (await wire.send(b"GET /readyz", SECRET)).status == 200
        writer.write(MAP)
        assert (await read_answer(reader)).status == 201
        assert (await wire.send(b"GET /api", SECRET)).status == 200
        writer.close()

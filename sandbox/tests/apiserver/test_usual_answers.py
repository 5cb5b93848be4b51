"""Usual answers are sent without the library's response, and are the same bytes."""

from __future__ import annotations

import asyncio
import re
from asyncio import selector_events

import pytest

from moorage.base.clock import SystemClock
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.wire.http import HttpServer
from sandbox.tests.apiserver.harness import ADMIN, CONFIG_MAPS, Cluster

_CREATED = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'


def _call(method: str, path: str, *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: here", "Authorization: Bearer s", *headers]
    if body:
        lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
    return "\r\n".join([*lines, "", ""]).encode() + body


_LAST = _call("GET", "/version", "Connection: close")


async def _answers(*calls: bytes, counted: int | None = None) -> bytes:
    """Return what a new server sends on one connection, with times and uids made equal."""
    cluster = Cluster(clock=SystemClock())
    server = HttpServer(cluster.server, Authenticator({"s": ADMIN}), None)
    port = await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for call in (*calls, _LAST):
            writer.write(call)
        async with asyncio.timeout(20):
            sent = await reader.read()
        writer.close()
    finally:
        await server.stop()
    assert sent.count(b"HTTP/1.") == (len(calls) if counted is None else counted) + 1
    sent = re.sub(rb"Date: [^\r]{29}\r", b"Date:\r", sent)
    return re.sub(rb'"(creationTimestamp|lastTransitionTime|time|uid)":"[^"]*"', b"", sent)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(_call("GET", "/api/v1/namespaces"), id="a list"),
        pytest.param(_call("POST", CONFIG_MAPS, body=_CREATED), id="a created object"),
        pytest.param(_call("GET", f"{CONFIG_MAPS}/none"), id="a refusal"),
        pytest.param(_call("GET", "/healthz"), id="plain text"),
        pytest.param(_call("HEAD", "/version"), id="a head alone"),
        pytest.param(_call("GET", "/version", "Accept: application/yaml"), id="YAML"),
        pytest.param(
            _call("GET", "/version", "Connection: keep-alive", version="1.0"), id="HTTP/1.0"
        ),
    ],
)
async def test_an_answer_has_the_bytes_of_the_librarys_response(call, monkeypatch):
    sent = await _answers(call, call)
    monkeypatch.setattr("moorage_sandbox.apiserver.wire.http._Answer.is_for", lambda *_: False)
    assert sent == await _answers(call, call)


_POD = (
    b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},'
    b'"spec":{"containers":[{"name":"c","image":"i"}]}}'
)
_BINDING = b'{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"name":"n"}}'
_EVENT = (
    b'{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"default"},'
    b'"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Scheduled"}'
)
_PODS = "/api/v1/namespaces/default/pods"
_LIFE = (
    _call("POST", _PODS, body=_POD),
    _call("POST", f"{_PODS}/p/binding", body=_BINDING),
    _call("POST", "/api/v1/namespaces/default/events", body=_EVENT),
    _call("POST", f"{_PODS}/p/binding", body=_BINDING),
)


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(_LIFE, id="the writes of a pod's life, the last one refused"),
        pytest.param((*_LIFE[:2], _call("GET", f"{_PODS}/p"), *_LIFE[2:]), id="a read between"),
        pytest.param(
            (_call("POST", CONFIG_MAPS, body=_CREATED.replace(b'"apiV', b'"x":1,"apiV')),),
            id="an answer with a warning",
        ),
        pytest.param(
            (_call("POST", CONFIG_MAPS, "Content-Encoding: gzip", body=b"x"), *_LIFE),
            id="a body of an encoding that is refused",
        ),
        pytest.param(
            (_call("POST", f"{CONFIG_MAPS}?dryRun=All", body=_CREATED), *_LIFE), id="a dry run"
        ),
        pytest.param((_call("POST", "/nothing/here", body=b"{}"), *_LIFE), id="no such path"),
        pytest.param((_call("POST", CONFIG_MAPS), *_LIFE), id="a write without a body"),
        pytest.param((_call("POST", CONFIG_MAPS, body=b"{"), *_LIFE), id="a body that is no JSON"),
        pytest.param(
            (
                _call("POST", _PODS.replace("default", "de%66ault"), body=_POD),
                _call("POST", f"/{_PODS}", body=_POD),
            ),
            id="paths in another spelling",
        ),
    ],
)
async def test_calls_answered_at_once_get_the_answers_of_calls_in_tasks(calls, monkeypatch):
    sent = await _answers(*calls)
    monkeypatch.setattr(
        "moorage_sandbox.apiserver.wire.connection.Connection._answer_at_once", lambda _: None
    )
    assert sent == await _answers(*calls)


async def test_more_writes_than_the_library_takes_in_at_once_are_all_answered_in_order():
    made = [_CREATED.replace(b'"a"', b'"a%03d"' % number) for number in range(100)]
    sent = await _answers(*(_call("POST", CONFIG_MAPS, body=each) for each in made))
    assert re.findall(rb'"name":"(a\d+)"', sent) == [b"a%03d" % number for number in range(100)]


async def test_answers_to_writes_that_came_together_are_sent_together(monkeypatch):
    pieces: list[bytes] = []
    transport = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    write = transport.write

    def noted(self, data):
        pieces.append(bytes(data))
        write(self, data)

    monkeypatch.setattr(transport, "write", noted)
    await _answers(b"".join(_LIFE[:3]), counted=3)
    assert [each.count(b"HTTP/1.1 201 ") for each in pieces if b"HTTP/1.1 201 " in each] == [3]


async def test_a_usual_answer_is_sent_as_one_piece_with_its_headers():
    sent = await _answers(_call("GET", "/healthz"))
    head, rest = sent.split(b"\r\n\r\n", 1)
    assert head.startswith(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 2\r\nDate:"
    )
    assert rest.startswith(b"okHTTP/1.1 200 OK\r\n")

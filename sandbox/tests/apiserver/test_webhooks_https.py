"""Webhooks over HTTPS: certificates, and programs that answer nonsense or not at all."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import uvloop
from aiohttp import web

from moorage.base.certificates import Authority, server_context
from moorage.base.clock import SystemClock
from moorage_sandbox.apiserver.webhooks.answers import Endpoint, Question
from moorage_sandbox.apiserver.webhooks.https import HttpsSender
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster, config_map
from sandbox.tests.apiserver.webhooks import MUTATING, VALIDATING, add, configuration, hook, patch

MEGABYTE = 1024 * 1024
LONG = b" " * (10 * MEGABYTE)


def reviewed(response: Any, **more: Any) -> bytes:
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps(kind | {"response": response} | more).encode()


class Program:
    """A webhook: answers each review with what a function makes of its request."""

    def __init__(self) -> None:
        self.authority = Authority(SystemClock())
        self.certificate = b""
        self.port = 0
        self.paths: list[str] = []

    def client(self, authority: Authority | None = None, **more: Any) -> dict[str, Any]:
        """Return the client configuration."""
        bundle = base64.b64encode((authority or self.authority).certificate).decode()
        return {"url": f"https://127.0.0.1:{self.port}/review", "caBundle": bundle} | more

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a call by its path: the name of the fault to play."""
        self.paths.append(request.path_qs)
        review = json.loads(await request.read())
        uid = review["request"]["uid"]
        fault = review["request"]["object"]["data"].get("fault", "")
        if fault == "silent":
            await asyncio.Event().wait()
        if fault == "redirect":
            return web.Response(status=307, headers={"Location": "/elsewhere"})
        if fault == "status":
            return web.Response(status=500, text="broken")
        if fault == "compressed":
            return web.Response(body=b"x", headers={"Content-Encoding": "gzip"})
        renamed = {"op": "replace", "path": "/kind", "value": "X"}
        bodies = {
            "": reviewed({"uid": uid} | patch(add("b", "2"))),
            "nonsense": b"<html>",
            "deep": b"[" * 100_000,
            "10 MB": LONG,
            "uid": reviewed({"uid": "other", "allowed": True}),
            "version": reviewed({"uid": uid, "allowed": True}, apiVersion="admission.k8s.io/v9"),
            "absent": reviewed(None),
            "patch type": reviewed({"uid": uid, "allowed": True, "patch": "W10="}),
            "patch": reviewed({"uid": uid} | patch({"op": "remove", "path": "/none"})),
            "kind": reviewed({"uid": uid} | patch(renamed)),
            "type": reviewed({"uid": uid} | patch({"op": "add", "path": "/data", "value": 7})),
        }
        return web.Response(body=bodies[fault], content_type="application/json")


@asynccontextmanager
async def program(name: str = "127.0.0.1") -> AsyncIterator[Program]:
    """Serve a webhook whose certificate has a name."""
    found = Program()
    runner = web.ServerRunner(web.Server(found.answer, handler_cancellation=True))
    await runner.setup()
    pair = found.authority.server_pair([name])
    found.certificate = pair.certificate
    tls = server_context(pair, found.authority.certificate)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    found.port = int(runner.addresses[0][1])
    try:
        yield found
    finally:
        await runner.cleanup()


async def cluster_asking(client: dict[str, Any], **fields: Any) -> Cluster:
    """Return a cluster with one mutating webhook."""
    cluster = Cluster(clock=SystemClock())
    await cluster.ok("POST", MUTATING, configuration(hook(clientConfig=client, **fields)))
    return cluster


async def test_a_webhook_is_asked_over_https_with_its_time_limit():
    async with program() as found:
        cluster = await cluster_asking(found.client(), timeoutSeconds=7)
        made = await cluster.ok("POST", CONFIG_MAPS, config_map(a="1"))
    assert made["data"] == {"a": "1", "b": "2"}
    assert found.paths == ["/review?timeout=7s"]


async def test_a_service_has_the_address_of_its_program_and_its_own_name_in_the_certificate():
    async with program("hooks.default.svc") as found:
        service = {"namespace": "default", "name": "hooks", "path": "/from-service"}
        client = found.client()
        cluster = await cluster_asking({"caBundle": client["caBundle"], "service": service})
        cluster.server.map_services({"default/hooks": f"127.0.0.1:{found.port}"})
        await cluster.ok("POST", CONFIG_MAPS, config_map(a="1"))
    assert found.paths == ["/from-service?timeout=10s"]


FAULTS = {
    "redirect": "the answer has the HTTP status 307",
    "status": "the answer has the HTTP status 500",
    "compressed": "the answer is compressed",
    "nonsense": "the answer is no AdmissionReview",
    "deep": "the answer is no AdmissionReview",
    "10 MB": "the answer is longer than 3145728 bytes",
    "uid": 'expected response.uid="',
    "version": "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview",
    "absent": "webhook response was absent",
    "patch type": "webhook returned response.patch but not response.patchType",
}


async def test_an_answer_that_cannot_be_used_follows_the_failure_policy():
    async with program() as found:
        cluster = await cluster_asking(found.client())
        for fault, words in FAULTS.items():
            body = config_map(fault=fault)
            status, answer = await cluster.call("POST", CONFIG_MAPS, body)
            assert (status, answer["reason"]) == (500, "InternalError"), fault
            assert 'failed calling webhook "a.example.com": ' in answer["message"], fault
            assert words in answer["message"], fault
        assert not [path for path in found.paths if "elsewhere" in path]
        await cluster.ok("DELETE", f"{MUTATING}/hooks")
        ignored = hook(clientConfig=found.client(), failurePolicy="Ignore")
        await cluster.ok("POST", MUTATING, configuration(ignored))
        for at, fault in enumerate(FAULTS):
            await cluster.ok("POST", CONFIG_MAPS, config_map(f"a{at}", fault=fault))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("patch", "does not apply"),
        ("kind", "the version and the kind may not change"),
        ("type", "does not fit"),
    ],
)
async def test_a_patch_that_makes_no_object_is_refused_whatever_the_policy(fault: str, words: str):
    async with program() as found:
        cluster = await cluster_asking(found.client(), failurePolicy="Ignore")
        status, answer = await cluster.call("POST", CONFIG_MAPS, config_map(fault=fault))
    assert (status, words in answer["message"]) == (500, True), answer


async def test_only_a_certificate_of_the_bundle_for_the_name_is_trusted():
    async with program() as found, program("other.example.com") as other:
        for client in (found.client(Authority(SystemClock())), other.client()):
            cluster = await cluster_asking(client)
            status, answer = await cluster.call("POST", CONFIG_MAPS, config_map(a="1"))
            assert (status, "certificate" in answer["message"].lower()) == (500, True), answer
    assert found.paths == other.paths == []


async def test_a_certificate_of_the_bundle_is_trusted_though_it_is_no_root():
    async with program() as found:
        bundle = base64.b64encode(found.certificate).decode()
        cluster = await cluster_asking(found.client() | {"caBundle": bundle})
        made = await cluster.ok("POST", CONFIG_MAPS, config_map(a="1"))
    assert made["data"] == {"a": "1", "b": "2"}


async def test_a_webhook_that_is_not_there_is_named():
    found = Program()
    found.port = 1
    cluster = Cluster(clock=SystemClock())
    await cluster.ok("POST", VALIDATING, configuration(hook(clientConfig=found.client())))
    status, answer = await cluster.call("POST", CONFIG_MAPS, config_map(a="1"))
    assert status == 500
    assert 'failed calling webhook "a.example.com"' in answer["message"]


class Closing(BaseHTTPRequestHandler):
    """Answers with 1 MB, and closes the connection after it."""

    def do_POST(self) -> None:
        """Answer a call."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self) -> None:
        """Answer a call without a body."""
        self.send_response(200)
        self.send_header("Content-Length", str(MEGABYTE))
        self.end_headers()
        self.wfile.write(b" " * MEGABYTE)

    def log_request(self, *values: Any) -> None:
        """Log nothing."""


@contextmanager
def closing_program() -> Iterator[Endpoint]:
    """Serve a program that closes each connection, in threads of its own."""
    authority = Authority(SystemClock())
    tls = server_context(authority.server_pair(["127.0.0.1"]), authority.certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Closing) as server:
        server.block_on_close = False
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield Endpoint(
                host="127.0.0.1",
                port=server.server_port,
                path="/",
                authority="127.0.0.1",
                server_name="127.0.0.1",
                ca_bundle=authority.certificate.decode(),
            )
        finally:
            server.shutdown()


def test_a_long_answer_arrives_whole_though_the_program_closes_the_connection():
    async def lengths(endpoint: Endpoint) -> set[int]:
        asked = Question(about="", endpoint=endpoint, timeout_seconds=20, review={})
        sender, found = HttpsSender(), set()
        for _ in range(15):
            calls = (sender.send_review(asked, b"{}", 20) for _ in range(6))
            found |= set(map(len, await asyncio.gather(*calls)))
        return found

    # The loop of a sandbox drops the end of an answer where reading pauses as the peer closes.
    with (
        closing_program() as endpoint,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        assert runner.run(lengths(endpoint)) == {MEGABYTE}


async def test_an_answer_that_never_comes_ends_with_the_time_limit():
    async with program() as found:
        cluster = await cluster_asking(found.client(), timeoutSeconds=1)
        status, answer = await cluster.call("POST", CONFIG_MAPS, config_map(fault="silent"))
    assert (status, "no answer within 1 s" in answer["message"]) == (500, True), answer

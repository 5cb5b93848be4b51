"""The HTTP transport against a small server on loopback: TLS, credentials, retries, streams."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from moorage.base.clock import ManualClock
from moorage.base.errors import (
    AnswerTooLargeError,
    ApiError,
    KubeconfigError,
    RefusedError,
    TransportError,
)
from moorage.client.auth import Credential, FileCredentials, FixedCredentials, ServerAccess
from moorage.client.auth import token_file as make_token_file
from moorage.client.http_transport import HttpTransport, _environment_proxy, open_transport
from moorage.client.status import refuse_failed
from moorage.client.transport import Call, LineSplitter
from scheduler.tests.client.fakes import instant_sleep

OVER = web.AppKey("over", asyncio.Event)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(
    handler: Handler, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, list[web.Request]]]:
    """Serve every path by one handler; yields base URL and the requests seen."""
    seen: list[web.Request] = []

    async def keep(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        return await handler(request)

    app = web.Application()
    app[OVER] = over = asyncio.Event()
    app.router.add_route("*", "/{path:.*}", keep)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}", seen
    finally:
        over.set()
        await runner.cleanup()


@asynccontextmanager
async def connected(
    server: str, credentials: Any = None, **trust: Any
) -> AsyncIterator[HttpTransport]:
    access = ServerAccess(server=server, credentials=credentials or FixedCredentials(), **trust)
    transport = HttpTransport(access, user_agent="moorage/test")
    try:
        yield transport
    finally:
        await transport.close()


async def echo(request: web.Request) -> web.Response:
    names = ("Accept", "Content-Type", "User-Agent", "Authorization", "Impersonate-Group")
    return web.json_response(
        {
            "line": f"{request.method} {request.raw_path}",
            "headers": {
                name: request.headers.getall(name) for name in names if name in request.headers
            },
            "body": await request.text(),
        }
    )


async def test_a_call_goes_out_as_built():
    headers = (
        ("Authorization", "Bearer t"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    )
    async with (
        serving(echo) as (server, _),
        connected(f"{server}/base", FixedCredentials(Credential(headers))) as transport,
    ):
        call = Call(
            "PATCH",
            "/api/v1/nodes/a%2Fb",
            (("fieldSelector", "spec.nodeName!="), ("labelSelector", "a in (b,c)")),
            body=b"{}",
            content_type="application/merge-patch+json",
        )
        answer = await transport.request(call)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert json.loads(answer.body) == {
        "line": "PATCH /base/api/v1/nodes/a%2Fb"
        "?fieldSelector=spec.nodeName%21%3D&labelSelector=a%20in%20%28b%2Cc%29",
        "headers": {
            "Accept": ["application/json"],
            "Content-Type": ["application/merge-patch+json"],
            "User-Agent": ["moorage/test"],
            "Authorization": ["Bearer t"],
            "Impersonate-Group": ["a", "b"],
        },
        "body": "{}",
    }


def answering(*statuses: tuple[int, dict[str, str]]) -> Handler:
    """Answer with each status in turn, the last one for ever."""
    left = list(statuses)

    async def handler(request: web.Request) -> web.Response:
        status, headers = left.pop(0) if len(left) > 1 else left[0]
        return web.Response(status=status, headers=headers)

    return handler


AFTER = {"Retry-After": "2"}


@pytest.mark.parametrize(
    ("method", "answers", "status", "calls", "pauses"),
    [
        pytest.param("GET", [(429, AFTER), (200, {})], 200, 2, [2.0], id="429 is obeyed"),
        pytest.param("POST", [(503, AFTER), (201, {})], 201, 2, [2.0], id="503 is, for any verb"),
        pytest.param("GET", [(429, {})], 429, 1, [], id="429 without Retry-After is an answer"),
        pytest.param("GET", [(500, {})], 500, 1, [], id="500 without Retry-After is an answer"),
        pytest.param("GET", [(409, AFTER)], 409, 1, [], id="409 is an answer"),
        pytest.param("GET", [(429, AFTER)], 429, 11, [2.0] * 10, id="ten retries are the limit"),
        pytest.param(
            "POST",
            [(429, {"Retry-After": "9" * 40}), (201, {})],
            201,
            2,
            [60.0],
            id="a minute is the longest",
        ),
        pytest.param("GET", [(429, {"Retry-After": "²"})], 429, 1, [], id="a digit that is none"),
    ],
)
async def test_retry_after(method, answers, status, calls, pauses):
    with instant_sleep(ManualClock()) as slept:
        async with (
            serving(answering(*answers)) as (server, seen),
            connected(server) as transport,
        ):
            answer = await transport.request(Call(method, "/x"))
    assert (answer.status, len(seen), slept) == (status, calls, pauses)


async def without_end(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=int(request.query.get("status", "200")))
    if "packed" in request.query:
        response.enable_compression(web.ContentCoding.gzip)
    await response.prepare(request)
    try:
        while not request.app[OVER].is_set():
            await response.write(b"x\n" * 100_000)
    except ConnectionError:
        pass
    return response


@pytest.mark.parametrize(
    "query", [pytest.param((), id="plain"), pytest.param((("packed", "1"),), id="compressed")]
)
async def test_an_answer_without_end_is_given_up(query):
    call = Call("GET", "/x", query, answer_bytes_max=1_000_000)
    async with serving(without_end) as (server, _), connected(server) as transport:
        with pytest.raises(AnswerTooLargeError) as caught:
            await transport.request(call)
    told = f"GET {server}/x: the answer is longer than 1000000 bytes"
    assert str(caught.value) == told


async def test_a_failure_without_end_is_read_no_further_than_it_is_of_use():
    call = Call("GET", "/x", (("status", "503"),))
    async with (
        serving(without_end) as (server, _),
        connected(server) as transport,
        transport.stream(call) as lines,
    ):
        with pytest.raises(ApiError) as caught:
            await refuse_failed(lines)
    assert (caught.value.code, len(caught.value.message)) == (503, 511)


async def test_a_refused_token_is_read_again_and_tried_once_more(tmp_path):
    path = tmp_path / "token"
    path.write_text("old")

    async def handler(request: web.Request) -> web.Response:
        path.write_text("new")
        good = request.headers["Authorization"] == "Bearer new"
        return web.Response(status=200 if good else 401)

    source = FileCredentials(
        Credential(), token_file=make_token_file(path, what="token", clock=ManualClock())
    )
    async with serving(handler) as (server, seen), connected(server, source) as transport:
        assert (await transport.request(Call("POST", "/x"))).status == 200
        assert len(seen) == 2


async def test_a_refused_fixed_token_is_an_answer():
    async with (
        serving(answering((401, {}))) as (server, seen),
        connected(server) as transport,
    ):
        assert (await transport.request(Call("GET", "/x"))).status == 401
        assert len(seen) == 1


async def drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    ("method", "pauses"),
    [
        pytest.param("GET", [1.0] * 10, id="a broken GET is tried again"),
        pytest.param("POST", [], id="a broken POST is not: it may have happened"),
    ],
)
async def test_a_broken_connection(method, pauses):
    with instant_sleep(ManualClock()) as slept:
        async with serving(drop) as (server, _), connected(server) as transport:
            with pytest.raises(TransportError, match=f"{method} http://127.0.0.1"):
                await transport.request(Call(method, "/x"))
    assert slept == pauses


async def test_a_refused_connection_is_told_apart():
    async with serving(echo) as (server, _):
        pass
    async with connected(server) as transport:
        with pytest.raises(RefusedError) as refused:
            await transport.request(Call("POST", "/x"))
    assert str(refused.value) == f"POST {server}/x: no connection: Connection refused"


async def hang(request: web.Request) -> web.StreamResponse:
    await request.app[OVER].wait()
    return web.Response()


async def test_a_silent_server_times_out():
    async with serving(hang) as (server, _), connected(server) as transport:
        with pytest.raises(TransportError, match=r"GET .*/x: silent for 0.05 s"):
            await transport.request(Call("GET", "/x", timeout_seconds=0.05))
        with pytest.raises(TransportError, match=r"silent for 0.05 s"):
            async with transport.stream(Call("GET", "/x", timeout_seconds=0.05)):
                pass


async def test_a_closed_transport_refuses_calls():
    async with serving(echo) as (server, _), connected(server) as transport:
        await transport.close()
        with pytest.raises(TransportError, match="the transport is closed"):
            await transport.request(Call("GET", "/x"))


# --- streams -------------------------------------------------------------------------------------


def streaming(*pieces: bytes, cut: bool = False) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return handler


async def test_a_stream_is_cut_into_lines_of_any_length():
    long = b"x" * 3_000_000
    handler = streaming(b'{"a"', b":1}\n{}\n\n", long, long + b"\nlast")
    async with (
        serving(handler) as (server, _),
        connected(server) as transport,
        transport.stream(Call("GET", "/w")) as stream,
    ):
        assert stream.status == 200
        assert [line async for line in stream] == [b'{"a":1}', b"{}", long + long, b"last"]


async def test_a_stream_that_breaks_says_so():
    async with (
        serving(streaming(b"one\ntw", cut=True)) as (server, _),
        connected(server) as transport,
        transport.stream(Call("GET", "/w")) as stream,
    ):
        with pytest.raises(TransportError):
            assert [line async for line in stream] == [], "the end of a broken stream is no end"


async def test_silence_ends_a_stream():
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await request.app[OVER].wait()
        return response

    async with (
        serving(handler) as (server, _),
        connected(server) as transport,
        transport.stream(Call("GET", "/w", idle_seconds=0.05)) as stream,
    ):
        with pytest.raises(TransportError, match=r"silent for 0\.05 s"):
            [line async for line in stream]


@pytest.mark.parametrize(
    ("pieces", "lines", "rest"),
    [
        pytest.param([b"a\nb\n"], [b"a", b"b"], b"", id="whole lines"),
        pytest.param([b"a", b"b\n", b"c"], [b"ab"], b"c", id="a line in pieces"),
        pytest.param([b"\n", b"\n\na"], [], b"a", id="empty lines are dropped"),
        pytest.param([b"", b"a", b"", b"\n"], [b"a"], b"", id="empty pieces change nothing"),
    ],
)
def test_line_splitter(pieces, lines, rest):
    splitter = LineSplitter()
    assert [line for piece in pieces for line in splitter.feed(piece)] == lines
    assert splitter.rest() == rest


# --- TLS -----------------------------------------------------------------------------------------


class Authority:
    """A certificate authority that lives in a directory.

    It writes no key identifiers, as many a cluster's authority does not: what Python checks
    strictly since 3.13 it would refuse, and kube-scheduler connects.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test CA")])
        self.certificate = self._sign(self._name, self._key.public_key(), [], ca=True)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str) -> tuple[bytes, bytes]:
        """Return certificate and key, PEM, for a host or client name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key.public_key(), [x509.DNSName(name)], ca=False)
        return (
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def server_context(self, name: str) -> ssl.SSLContext:
        certificate, key = self.issue(name)
        path = self._directory / "server.pem"
        path.write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(cadata=self.pem.decode())
        context.load_cert_chain(path)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _sign(
        self, subject: x509.Name, key: Any, names: list[x509.GeneralName], *, ca: bool
    ) -> x509.Certificate:
        start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + datetime.timedelta(days=36_500))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


async def who(request: web.Request) -> web.Response:
    assert request.transport is not None
    peer = request.transport.get_extra_info("peercert")
    name = dict(pair[0] for pair in peer["subject"])["commonName"] if peer else "nobody"
    return web.Response(text=name)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def test_the_server_is_checked_against_authority_and_name(authority, tmp_path):
    context = authority.server_context("kubernetes")
    trusted = {"ca_pem": authority.pem, "tls_server_name": "kubernetes"}
    itself = (tmp_path / "server.pem").read_bytes()
    async with serving(who, tls=context) as (server, _):
        for trust, works in (
            (trusted, True),
            (trusted | {"ca_pem": itself}, True),  # whatever is named is trusted, root or not
            ({"insecure_skip_tls_verify": True}, True),
            ({"ca_pem": authority.pem}, False),
            ({"tls_server_name": "kubernetes"}, False),
        ):
            async with connected(server, **trust) as transport:
                if works:
                    assert (await transport.request(Call("GET", "/x"))).body == b"nobody"
                else:
                    with pytest.raises(TransportError, match=r"(?i)certificate"):
                        await transport.request(Call("GET", "/x"))


class Rotating:
    """Hands out one credential after the other."""

    def __init__(self, *credentials: Credential) -> None:
        self.left = list(credentials)

    async def credential(self) -> Credential:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def reject(self) -> bool:
        return False


async def test_a_renewed_certificate_takes_effect_at_once(authority):
    first, second = (
        Credential(certificate_pem=certificate, key_pem=key)
        for certificate, key in (authority.issue("one"), authority.issue("two"))
    )
    trust = {"ca_pem": authority.pem, "tls_server_name": "kubernetes"}
    async with (
        serving(who, tls=authority.server_context("kubernetes")) as (server, _),
        connected(server, Rotating(first, first, second), **trust) as transport,
    ):
        names = [(await transport.request(Call("GET", "/x"))).body for _ in range(3)]
        assert names == [b"one", b"one", b"two"]
        assert transport._retired == [], "connections of the old certificate are closed"


@pytest.mark.parametrize(
    ("credential", "trust", "message"),
    [
        pytest.param(
            Credential(certificate_pem=b"no", key_pem=b"no"),
            {},
            "client certificate and key cannot be used",
            id="a certificate that is none",
        ),
        pytest.param(
            Credential(), {"ca_pem": b"no"}, "authority is no PEM", id="an authority that is none"
        ),
    ],
)
async def test_unusable_certificates_are_explained(credential, trust, message):
    async with connected("https://127.0.0.1:1", FixedCredentials(credential), **trust) as transport:
        with pytest.raises(KubeconfigError, match=message):
            await transport.request(Call("GET", "/x"))


# --- proxies -------------------------------------------------------------------------------------


async def test_a_proxy_gets_the_calls():
    async with serving(echo) as (proxy, seen):
        async with connected("http://far.example:6443", proxy_url=proxy) as transport:
            assert (await transport.request(Call("GET", "/x"))).status == 200
        assert seen[0].raw_path == "http://far.example:6443/x"


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        pytest.param("https://far.example", "http://proxy:1", id="a far server is proxied"),
        pytest.param("http://far.example", "", id="another scheme is not"),
        pytest.param("https://127.0.0.1:6443", "", id="loopback never is"),
        pytest.param("https://[::1]:6443", "", id="nor its newer form"),
        pytest.param("https://localhost:6443", "", id="nor its name"),
        pytest.param("https://near.example", "", id="nor what NO_PROXY names"),
    ],
)
def test_proxies_of_the_environment(monkeypatch, server, expected):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("https_proxy", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", "near.example")
    monkeypatch.setenv("no_proxy", "near.example")
    assert _environment_proxy(server) == expected


# --- client-side limits --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qps", "burst", "waits"),
    [
        pytest.param(None, None, [], id="unset means no limit"),
        pytest.param(-1.0, 1, [], id="so does a negative rate"),
        pytest.param(4.0, 1, [0.25, 0.25], id="a rate is kept"),
        pytest.param(4.0, None, [], id="an unset burst is large"),
    ],
)
async def test_open_transport(qps, burst, waits):
    clock, told = ManualClock(), Told()
    async with serving(echo) as (server, _):
        access = ServerAccess(server=server, credentials=FixedCredentials())
        transport = open_transport(access, clock=clock, qps=qps, burst=burst, listener=told)
        with instant_sleep(clock) as slept:
            for _ in range(3):
                assert (await transport.request(Call("GET", "/x"))).status == 200
        await transport.close()
    assert slept == waits
    limited = qps is not None and qps > 0
    assert told == [("held", "GET", each) for each in [0.0, *(waits or [0.0, 0.0])] if limited]


class Told(list[tuple[str, str, float | None]]):
    """Writes down what a transport tells."""

    def retried(self, method: str, code: int | None) -> None:
        self.append(("retried", method, code))

    def call_delayed(self, method: str, seconds: float) -> None:
        self.append(("held", method, seconds))


async def test_calls_that_are_sent_again_are_told():
    told = Told()
    with instant_sleep(ManualClock()):
        async with serving(answering((429, AFTER), (503, AFTER), (200, {}))) as (server, _):
            access = ServerAccess(server=server, credentials=FixedCredentials())
            transport = HttpTransport(access, listener=told)
            assert (await transport.request(Call("POST", "/x"))).status == 200
            await transport.close()
    assert told == [("retried", "POST", 429), ("retried", "POST", 503)]

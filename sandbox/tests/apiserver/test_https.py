"""The server behind real TLS on loopback: credentials, streams, shutdown."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from moorage.base import certificates as certs
from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.storage.watch_log import Limits
from sandbox.tests.apiserver.harness import ADMIN, CONFIG_MAPS, Cluster, config_map

TOKEN = {"Authorization": "Bearer secret"}
AUTHORITY = certs.Authority(SystemClock())
SERVER_PAIR = AUTHORITY.server_pair()


class _Running:
    """A listening server and a client that trusts it."""

    def __init__(
        self, cluster: Cluster, server: HttpServer, session: aiohttp.ClientSession, url: str
    ) -> None:
        self.cluster, self.server, self.session, self.url = cluster, server, session, url

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        async with self.session.request(method, self.url + path, **options) as answer:
            return answer.status, json.loads(await answer.read())


def _client_context(pair: certs.KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    if pair is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            path.write_bytes(pair.key + pair.certificate)
            context.load_cert_chain(path)
    return context


@asynccontextmanager
async def running(
    pair: certs.KeyPair | None = None, limits: Limits | None = None
) -> AsyncIterator[_Running]:
    cluster = Cluster(clock=SystemClock(), limits=limits)
    context = certs.server_context(SERVER_PAIR, AUTHORITY.certificate)
    server = HttpServer(cluster.server, Authenticator({"secret": ADMIN}), context)
    port = await server.start()
    connector = aiohttp.TCPConnector(ssl=_client_context(pair))
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            yield _Running(cluster, server, session, f"https://127.0.0.1:{port}")
        finally:
            await server.stop()


async def test_without_credentials_only_health_is_served():
    async with running() as here:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
            status, body = await here.call("GET", "/api/v1/pods", headers=headers)
            assert (status, body["reason"]) == (401, "Unauthorized")
        async with here.session.get(here.url + "/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")


async def test_a_valid_token_is_authorized_for_every_path():
    async with running() as here:
        status, body = await here.call("GET", "/api/v1/namespaces", headers=TOKEN)
        assert (status, len(body["items"])) == (200, 4)


async def test_a_certificate_of_the_clusters_authority_is_accepted():
    async with running(AUTHORITY.client_pair()) as here:
        status, _ = await here.call("POST", CONFIG_MAPS, json=config_map())
        assert status == 201


async def test_a_certificate_of_another_authority_is_refused():
    stranger = certs.Authority(SystemClock()).client_pair()
    async with running(stranger) as here:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, OSError)):
            await here.call("GET", "/api/v1/pods")


async def test_a_watch_streams_and_ends_with_the_server():
    async with running() as here:
        url = f"{here.url}{CONFIG_MAPS}?watch=true"
        async with here.session.get(url, headers=TOKEN) as answer:
            assert answer.status == 200
            await here.call("POST", CONFIG_MAPS, json=config_map("a"), headers=TOKEN)
            event = json.loads(await answer.content.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
            async with asyncio.timeout(10):
                await here.server.stop()
                assert await answer.content.read() == b""


async def test_a_client_that_hangs_up_leaves_nothing_behind():
    async with running() as here:
        url = f"{here.url}{CONFIG_MAPS}?watch=true"
        log = here.cluster.server.store.shelf("configmaps").log
        async with here.session.get(url, headers=TOKEN) as answer:
            assert answer.status == 200
            async with asyncio.timeout(30):
                while not log.readers_asleep:
                    await here.call("GET", "/version", headers=TOKEN)
            answer.close()
        async with asyncio.timeout(30):
            while log.readers_asleep:
                await here.call("GET", "/version", headers=TOKEN)


async def _fill(here: _Running, count: int) -> None:
    """Write more than the buffers between a server and a client that does not read can hold."""
    for n in range(count):
        body = config_map(f"a{n}", big="x" * 500_000)
        await here.cluster.ok("POST", CONFIG_MAPS, body)
        # Lets the server write what it has, as far as the client takes it.
        await here.call("GET", "/version", headers=TOKEN)


async def test_a_client_that_does_not_read_is_cut_off_when_it_comes_back():
    async with running(limits=Limits(changes=5)) as here:
        url = f"{here.url}{CONFIG_MAPS}?watch=true"
        async with here.session.get(url, headers=TOKEN, read_bufsize=2**16) as answer:
            await _fill(here, 40)
            lines = (await answer.content.read()).splitlines()
        assert len(lines) < 40
        last = json.loads(lines[-1])
        assert (last["type"], last["object"]["code"]) == ("ERROR", 410)


async def test_a_client_that_does_not_read_does_not_delay_the_shutdown():
    async with running(limits=Limits(changes=5)) as here:
        url = f"{here.url}{CONFIG_MAPS}?watch=true"
        async with here.session.get(url, headers=TOKEN, read_bufsize=2**16):
            await _fill(here, 40)
            async with asyncio.timeout(10):
                await here.server.stop()


async def test_a_body_too_large_is_refused_without_reading_it_all():
    async with running() as here:
        big = b'"' + b"x" * (4 * 1024 * 1024) + b'"'
        headers = TOKEN | {"Content-Type": "application/json"}
        status, body = await here.call("POST", CONFIG_MAPS, data=io.BytesIO(big), headers=headers)
        assert (status, body["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_port_that_is_taken_is_named_with_a_remedy():
    async with running() as here:
        other = HttpServer(here.cluster.server, Authenticator({}), None)
        with pytest.raises(UsageError, match=f"127.0.0.1:{here.server.port}.*choose another port"):
            await other.start(port=here.server.port)


class TestAuthenticator:
    """Who a request comes from."""

    CERTIFICATE = {  # noqa: RUF012 - as the ssl module shows it
        "subject": (
            (("organizationName", "g1"),),
            (("organizationName", "g2"),),
            (("commonName", "kate"),),
        )
    }

    def test_a_certificate_names_user_and_groups(self):
        found = Authenticator({}).user({}, self.CERTIFICATE)
        assert found == User("kate", ("g1", "g2"))

    def test_a_certificate_without_a_common_name_authenticates_no_user(self):
        assert Authenticator({}).user({}, {"subject": ()}) is None

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            pytest.param("Bearer t1", User("one"), id="the first token"),
            pytest.param("bearer t2", User("two"), id="the second, written small"),
            pytest.param("Bearer t", None, id="half a token"),
            pytest.param("Bearer ", None, id="no token"),
            pytest.param("Bearer \udcff", None, id="bytes that are no text"),
            pytest.param("", None, id="no header"),
        ],
    )
    def test_bearer_tokens_authenticate_their_users(self, header, expected):
        tokens = {"t1": User("one"), "t2": User("two")}
        assert Authenticator(tokens).user({"authorization": header}, None) == expected


def test_the_written_kubeconfig_lets_a_client_connect():
    pair = AUTHORITY.client_pair()
    text = certs.kubeconfig(
        "https://127.0.0.1:1", authority_certificate=AUTHORITY.certificate, client=pair, token="t"
    )
    content = json.loads(text)
    assert content["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert set(content["users"][0]["user"]) == {
        "client-certificate-data",
        "client-key-data",
        "token",
    }
    assert content["current-context"] == content["contexts"][0]["name"]

"""A sandbox that listens elsewhere: reachable there alone, by its names, and for nobody unknown."""

from __future__ import annotations

import json
import ssl
import sys

import aiohttp
import pytest
from click.testing import CliRunner

from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from moorage.cli.main import main
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Call
from moorage_sandbox.sandbox.server import SandboxServer
from moorage_sandbox.sandbox.settings import ServerSettings

ELSEWHERE = "127.0.0.2"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more than one loopback address")
async def test_a_server_is_reached_where_it_listens_and_nowhere_else(tmp_path):
    clock = SystemClock()
    settings = ServerSettings(listen=ELSEWHERE, names=["localhost.example"])
    server = SandboxServer(settings, clock=clock)
    report = await server.start()
    try:
        assert report.url.startswith(f"https://{ELSEWHERE}:")
        (tmp_path / "kubeconfig").write_text(report.kubeconfig)
        cluster = json.loads(report.kubeconfig)["clusters"][0]["cluster"]
        assert cluster["server"] == report.url
        # The certificate is checked for the address: the kubeconfig works as it is.
        access = find_access(str(tmp_path / "kubeconfig"), clock=clock)
        transport = HttpTransport(access, user_agent="test")
        answer = await transport.request(Call("GET", "/api/v1/namespaces/default"))
        await transport.close()
        assert answer.status == 200
        assert access.ca_pem is not None
        trusting = ssl.create_default_context(cadata=access.ca_pem.decode())
        async with aiohttp.ClientSession() as stranger:
            where = f"{report.url}/api/v1/namespaces"
            for name in ("", "localhost.example"):
                call = stranger.get(where, ssl=trusting, server_hostname=name or None)
                async with call as refused:
                    assert refused.status == 401
            with pytest.raises(aiohttp.ClientConnectorError):
                await stranger.get(where.replace(ELSEWHERE, "127.0.0.1"), ssl=trusting)
    finally:
        await server.stop()


async def test_an_address_of_another_machine_is_refused():
    # TEST-NET-1: no machine has it.
    server = SandboxServer(ServerSettings(listen="192.0.2.1"), clock=SystemClock())
    try:
        with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1:0: "):
            await server.start()
    finally:
        await server.stop()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", ""])
def test_an_address_that_means_every_interface_is_refused(tmp_path, address):
    out = str(tmp_path / "kubeconfig")
    done = CliRunner().invoke(main, ["up", "--kubeconfig-out", out, "--listen", address])
    assert (done.exit_code, "name one address or host name" in done.output) == (2, True)

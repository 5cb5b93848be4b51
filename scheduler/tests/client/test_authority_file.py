"""A certificate authority that is replaced while a transport uses it."""

from __future__ import annotations

import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import RefusedError
from moorage.client.auth import AuthorityFile
from moorage.client.transport import Call
from scheduler.tests.client.test_http_transport import Authority, connected, serving, who


async def test_a_renewed_authority_takes_effect_once_its_certificate_is_met(tmp_path, caplog):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    path = tmp_path / "ca.crt"
    path.write_bytes(old.pem)
    file = AuthorityFile(path, what="certificate-authority", clock=ManualClock())
    trust = {"ca_file": file, "tls_server_name": "kubernetes"}
    call = Call("GET", "/x")
    async with (
        serving(who, tls=old.server_context("kubernetes")) as (server, _),
        connected(server, **trust) as transport,
    ):
        assert (await transport.request(call)).body == b"nobody"
        path.write_bytes(b"half written")
        file.expire()
        assert (await transport.request(call)).body == b"nobody"
        assert "no PEM certificate" in caplog.text
    async with (
        serving(who, tls=new.server_context("kubernetes")) as (server, _),
        connected(server, **trust) as transport,
    ):
        with pytest.raises(RefusedError, match=r"(?i)certificate"):
            await transport.request(call)
        path.write_bytes(new.pem)
        assert (await transport.request(call)).body == b"nobody"

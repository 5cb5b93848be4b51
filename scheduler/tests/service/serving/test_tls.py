"""TLS of the port: versions, ciphers, and certificates that are replaced while it serves."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage.base.certificates import Authority, KeyPair
from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from moorage.service.serving.chain import peer_certificate
from moorage.service.serving.tls import FilePair, NamedSource, ServerTls, TlsRules
from moorage.service.serving.trust import BundleFile, Trust, bundle_of
from scheduler.tests.service.serving.cluster import presenting, replace
from scheduler.tests.service.serving.guards import own_pair

AUTHORITY = Authority(SystemClock())
OTHER = Authority(SystemClock())
FIRST, SECOND = AUTHORITY.server_pair(), AUTHORITY.server_pair()


class Files:
    """The files of a certificate."""

    def __init__(self, folder: Path, pair: KeyPair) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.write(pair)
        self.source = FilePair(self.certificate, self.key, flags="--tls-cert-file")

    def write(self, pair: KeyPair) -> None:
        """Replace both."""
        replace(self.certificate, pair.certificate)
        replace(self.key, pair.key)


@asynccontextmanager
async def listening(tls: ServerTls) -> AsyncIterator[int]:
    """Answer each connection with the name in its client's certificate; yield the port."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = peer_certificate(writer.get_extra_info("ssl_object"))
        name = "nobody" if found is None else f"{found.name} of {len(found.chain)}"
        writer.write(f"{name}\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls.context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def meet(
    port: int,
    pair: KeyPair | None = None,
    *,
    context: ssl.SSLContext | None = None,
    name: str = "localhost",
) -> tuple[str, str, bytes]:
    """Connect; return the answer, the cipher and the server's certificate."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context or presenting(pair), server_hostname=name
    )
    try:
        answer = (await reader.read()).decode().strip()
        tls = writer.get_extra_info("ssl_object")
        shown = ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True)).encode()
        return answer, tls.cipher()[0], shown
    finally:
        writer.close()


def older(**settings: str) -> ssl.SSLContext:
    """Return the context of a client that speaks at most TLS 1.2."""
    context = presenting(None)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    if settings:
        context.set_ciphers(settings["ciphers"])
    return context


async def test_a_replaced_certificate_is_presented_from_the_next_connection_on(
    tmp_path: Path,
) -> None:
    files = Files(tmp_path, FIRST)
    async with listening(ServerTls(files.source, TlsRules())) as port:
        assert (await meet(port))[2] == FIRST.certificate
        files.write(SECOND)
        assert (await meet(port))[2] == SECOND.certificate


async def test_a_certificate_without_its_key_leaves_the_last_one_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Files(tmp_path, FIRST)
    async with listening(ServerTls(files.source, TlsRules())) as port:
        replace(files.certificate, SECOND.certificate)
        for _ in range(2):
            assert (await meet(port))[2] == FIRST.certificate
        files.key.unlink()
        for _ in range(2):
            assert (await meet(port))[2] == FIRST.certificate
        told = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert ["stays in force" in each.getMessage() for each in told] == [True, True]
        files.write(SECOND)
        assert (await meet(port))[2] == SECOND.certificate


async def test_a_client_gets_the_certificate_of_the_name_it_asks_for(tmp_path: Path) -> None:
    pairs = {
        "default": FIRST,
        "given": AUTHORITY.server_pair(("other.example",)),
        "wild": AUTHORITY.server_pair(("nothing.example",)),
        "own": AUTHORITY.server_pair(("own.example", "a.example", "given.example")),
    }
    files = {}
    for each, pair in pairs.items():
        (tmp_path / each).mkdir()
        files[each] = Files(tmp_path / each, pair)
    named = [
        NamedSource(files["own"].source),
        NamedSource(files["given"].source, ("given.example",)),
        NamedSource(files["wild"].source, ("*.example",)),
    ]
    shown = {pair.certificate: each for each, pair in pairs.items()}
    wanted = {
        "given.example": "given",
        "GIVEN.example": "given",
        "own.example": "own",
        "b.example": "wild",
        "a.b.example": "default",
        "localhost": "default",
        "127.0.0.1": "default",
    }
    async with listening(
        ServerTls(files["default"].source, TlsRules(), named_sources=named)
    ) as port:
        assert {name: shown[(await meet(port, name=name))[2]] for name in wanted} == wanted
        renewed = AUTHORITY.server_pair(("new.example",))
        files["own"].write(renewed)
        assert (await meet(port, name="new.example"))[2] == renewed.certificate
        assert shown[(await meet(port, name="own.example"))[2]] == "wild"


async def test_replaced_authorities_count_from_the_next_connection_on(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(AUTHORITY.certificate)
    file = BundleFile(path, "client-ca-file")
    tls = ServerTls(own_pair(), TlsRules(), lambda: Trust(file.bundle))
    ours, others = AUTHORITY.client_pair("ours", ()), OTHER.client_pair("others", ())
    async with listening(tls) as port:
        assert (await meet(port, ours))[0] == "ours of 2"
        assert await answers(port, others) is False
        replace(path, OTHER.certificate)
        assert (await meet(port, others))[0] == "others of 2"
        assert await answers(port, ours) is False
        replace(path, b"no certificate")
        assert (await meet(port, others))[0] == "others of 2"
        replace(path, OTHER.certificate + AUTHORITY.certificate)
        assert (await meet(port, ours))[0] == "ours of 2"
        assert (await meet(port))[0] == "nobody"


async def answers(port: int, pair: KeyPair) -> bool:
    """Whether a connection with a client's certificate gets an answer."""
    try:
        return bool((await meet(port, pair))[0])
    except (ssl.SSLError, OSError):
        return False


async def test_a_session_of_tls_12_is_not_resumed() -> None:
    trust = Trust(bundle_of(AUTHORITY.certificate.decode()))
    tls = ServerTls(own_pair(), TlsRules(), lambda: trust)
    context = presenting(AUTHORITY.client_pair("ours", ()))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with listening(tls) as port:
        for _ in range(3):
            assert (await meet(port, context=context))[0] == "ours of 2"


async def test_only_the_named_ciphers_are_spoken() -> None:
    ciphers = ("ECDHE-ECDSA-AES256-GCM-SHA384",)
    async with listening(ServerTls(own_pair(), TlsRules(ciphers=ciphers))) as port:
        assert (await meet(port, context=older()))[1] == ciphers[0]
        assert (await meet(port))[1].startswith("TLS_")
        with pytest.raises((ssl.SSLError, OSError)):
            await meet(port, context=older(ciphers="ECDHE-ECDSA-AES128-GCM-SHA256"))


def test_a_certificate_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    source = FilePair(tmp_path / "a.crt", tmp_path / "a.key", flags="--tls-cert-file")
    with pytest.raises(UsageError, match=r"^--tls-cert-file .*a\.key: No such file"):
        ServerTls(source, TlsRules())


def test_a_key_of_another_certificate_is_told(tmp_path: Path) -> None:
    mixed = KeyPair(FIRST.certificate, SECOND.key)
    with pytest.raises(UsageError, match=r"(?i)^--tls-cert-file .*key.values.mismatch"):
        ServerTls(Files(tmp_path, mixed).source, TlsRules())

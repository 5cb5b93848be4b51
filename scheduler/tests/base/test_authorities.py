"""That the machine's certificate authorities are read late, and then all of them."""

from __future__ import annotations

import ssl

import pytest

from moorage.base.authorities import read_when_used


@pytest.fixture
def whole() -> dict[str, int]:
    return ssl.create_default_context().cert_store_stats()


def _made_as_aiohttp_does() -> list[ssl.SSLContext]:
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    unverified.set_default_verify_paths()
    return [ssl.create_default_context(), unverified]


def test_authorities_come_with_the_first_connection(whole):
    with read_when_used():
        contexts = _made_as_aiohttp_does()
    for context in contexts:
        assert context.cert_store_stats() == {"x509": 0, "crl": 0, "x509_ca": 0}
        for _ in range(2):
            context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.com")
            assert context.cert_store_stats() == whole
        assert not {"wrap_bio", "wrap_socket"} & vars(context).keys()


def test_contexts_made_later_are_as_always(whole):
    with read_when_used():
        pass
    for context in _made_as_aiohttp_does():
        assert context.cert_store_stats() == whole

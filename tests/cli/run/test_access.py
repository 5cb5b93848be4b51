"""The flags of the secure port: certificates, ciphers, authorities, and who is asked about callers.

Left out: what the parts do (``scheduler/tests/service/serving``).
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from moorage.base.certificates import Authority
from moorage.base.clock import ManualClock, SystemClock
from moorage.base.errors import KubeconfigError, UsageError
from moorage.base.rng import Streams
from moorage.cli.run.access import access_of, proxy_names
from moorage.cli.run.tls_flags import named_sources, pair_source, tls_rules
from moorage.observe.access import AccessFacts
from moorage.service.serving.access import Access
from moorage.service.serving.tls import Pair, TlsRules
from moorage.service.serving.trust import ProxyNames

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
AUTHORITY = Authority(SystemClock())
NAMES = ("*.b.example", "b.example")


def made(**flags: Any) -> Access:
    """Return the guard that flags describe; keywords with underscores for hyphens."""
    given = {name.replace("_", "-"): value for name, value in flags.items()}
    return access_of(given, clock=ManualClock(), streams=Streams(1), facts=AccessFacts())


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        pytest.param({}, TlsRules(), id="nothing"),
        pytest.param({"tls-min-version": "VersionTLS13"}, TlsRules(TLS13), id="a version"),
        pytest.param(
            {
                "tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,"
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"
            },
            TlsRules(TLS12, ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305")),
            id="ciphers, by the names of Go",
        ),
        pytest.param(
            {"tls-cipher-suites": "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
            TlsRules(TLS12, ("ECDHE-RSA-AES128-GCM-SHA256",)),
            id="ciphers of TLS 1.3 are spoken anyway",
        ),
        pytest.param(
            {"tls-cipher-suites": "TLS_AES_128_GCM_SHA256"},
            TlsRules(TLS13),
            id="ciphers of TLS 1.3 only: nothing older is spoken",
        ),
    ],
)
def test_flags_choose_versions_and_ciphers(given: dict[str, str], rules: TlsRules) -> None:
    assert tls_rules(given) == rules


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            {"tls-min-version": "VersionTLS10"},
            "--tls-min-version VersionTLS10: write VersionTLS12 or VersionTLS13",
            id="a version that is not spoken",
        ),
        pytest.param(
            {"tls-cipher-suites": "ROT13"},
            "--tls-cipher-suites: Cipher suite ROT13 not supported or doesn't exist; write names "
            "such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            id="a cipher that does not exist",
        ),
        pytest.param(
            {"tls-cipher-suites": "TLS_RSA_WITH_RC4_128_SHA"},
            f"--tls-cipher-suites: TLS_RSA_WITH_RC4_128_SHA: {ssl.OPENSSL_VERSION} does not speak "
            "it; leave it out",
            id="a cipher that is not spoken any more",
        ),
    ],
)
def test_versions_and_ciphers_that_cannot_be_spoken_are_refused(
    given: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        tls_rules(given)
    assert str(caught.value) == message


def test_certificate_and_key_are_given_both_or_not_at_all() -> None:
    with pytest.raises(UsageError, match="both or not at all"):
        pair_source({"tls-cert-file": "x"}, SystemClock())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("", [], id="none"),
        pytest.param(
            "a.crt,a.key;b.crt, b.key:*.b.example,b.example",
            [("--tls-sni-cert-key a.crt, a.key", ()), ("--tls-sni-cert-key b.crt, b.key", NAMES)],
            id="two, the second for given names",
        ),
    ],
)
def test_certificates_for_some_names_are_read(text: str, found: list[Any]) -> None:
    named = named_sources({"tls-sni-cert-key": text})
    assert [(str(each.source), each.patterns) for each in named] == found


@pytest.mark.parametrize("text", ["a.crt", "a.crt,", "a.crt,a.key:", "a,b,c"])
def test_certificates_for_some_names_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        named_sources({"tls-sni-cert-key": text})
    assert str(caught.value) == (
        f"--tls-sni-cert-key {text}: write CERTIFICATE,KEY or CERTIFICATE,KEY:NAME,*.NAME"
    )


def test_an_own_certificate_is_made_and_found_again_in_its_directory(tmp_path: Path) -> None:
    given = {"cert-dir": str(tmp_path / "new"), "bind-address": "10.1.2.3"}
    first = pair_source(given, SystemClock()).pair()
    files = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert files == {"kube-scheduler.crt": first.certificate, "kube-scheduler.key": first.key}
    assert (tmp_path / "new" / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600
    assert first.certificate.count(b"BEGIN CERTIFICATE") == 2, "with its authority"
    assert pair_source(given, SystemClock()).pair() == first


def test_half_a_pair_in_the_directory_is_refused_and_kept(tmp_path: Path) -> None:
    certificate = tmp_path / "kube-scheduler.crt"
    certificate.write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"cannot read kube-scheduler\.key"):
        pair_source({"cert-dir": str(tmp_path)}, SystemClock())
    assert certificate.read_bytes() == b"mine"


def test_without_a_directory_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(pair_source({}, SystemClock()).pair(), Pair)
    assert list(tmp_path.iterdir()) == []


def test_proxies_are_named_by_flags() -> None:
    assert proxy_names({}) == ProxyNames(
        users=("x-remote-user",),
        groups=("x-remote-group",),
        extra_prefixes=("x-remote-extra-",),
    )
    given = {
        "requestheader-username-headers": "x-a, x-b",
        "requestheader-group-headers": "",
        "requestheader-uid-headers": "x-uid",
        "requestheader-allowed-names": "front,back",
    }
    assert proxy_names(given) == ProxyNames(
        users=("x-a", "x-b"),
        groups=(),
        uids=("x-uid",),
        extra_prefixes=("x-remote-extra-",),
        proxies=("front", "back"),
    )
    with pytest.raises(UsageError, match=r"--requestheader-group-headers a,,b: empty value"):
        proxy_names({"requestheader-group-headers": "a,,b"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file or directory", id="a file that is absent"),
        pytest.param(b"", "there is no PEM certificate in it", id="an empty file"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "a certificate in it cannot be read: ",
            id="a certificate that is broken",
        ),
    ],
)
@pytest.mark.parametrize("flag", ["client_ca_file", "requestheader_client_ca_file"])
def test_authorities_that_cannot_be_read_are_refused_at_the_start(
    tmp_path: Path, flag: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        made(**{flag: str(path)})
    name = flag.replace("_", "-")
    assert str(caught.value).startswith(f"--{name} {path}: {message}")


def test_a_kubeconfig_that_is_absent_is_refused_at_the_start(tmp_path: Path) -> None:
    for flag in ("authentication_kubeconfig", "authorization_kubeconfig"):
        with pytest.raises(KubeconfigError):
            made(**{flag: str(tmp_path / "nosuch")})


@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        pytest.param({}, False, id="nothing to check them by"),
        pytest.param({"client_ca_file": "ca.crt"}, True, id="authorities of users"),
        pytest.param({"requestheader_client_ca_file": "ca.crt"}, True, id="authorities of proxies"),
    ],
)
def test_client_certificates_are_asked_for_where_there_are_authorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, str], asked: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ca.crt").write_bytes(AUTHORITY.certificate)
    wanted = ssl.CERT_OPTIONAL if asked else ssl.CERT_NONE
    assert made(**flags).tls.context.verify_mode == wanted

"""The flags about TLS: versions, cipher suites and the certificate to present."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moorage.base.clock import Clock
from moorage.base.errors import UsageError
from moorage.cli.run.flags import SNI
from moorage.service.serving.tls import FilePair, MadePair, NamedSource, Pair, PairSource, TlsRules

_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_OLDER: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "ECDHE-ECDSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "ECDHE-RSA-RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
}
"""Suites up to TLS 1.2: the names that Go's flags take, and OpenSSL's."""
_OF_TLS13: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
)
"""Always spoken with TLS 1.3, as in Go, where the flag does not change them."""
_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_FILE: Final = "kube-scheduler"


def tls_rules(flags: Mapping[str, Any]) -> TlsRules:
    """Return versions and ciphers, from the flags.

    Raises
    ------
    UsageError
        A flag has a value that cannot be used.
    """
    version = flags.get("tls-min-version", "")
    if version not in _VERSIONS:
        raise UsageError(f"--tls-min-version {version}: write VersionTLS12 or VersionTLS13")
    named = [name for name in flags.get("tls-cipher-suites", "").split(",") if name]
    ciphers = tuple(_openssl_name(name) for name in named if name not in _OF_TLS13)
    if named and not ciphers:
        return TlsRules(ssl.TLSVersion.TLSv1_3)
    return TlsRules(_VERSIONS[version], ciphers)


def _openssl_name(name: str) -> str:
    known = _OLDER.get(name)
    if known is None:
        raise UsageError(
            f"--tls-cipher-suites: Cipher suite {name} not supported or doesn't exist; write names "
            "such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(known)
    except ssl.SSLError as error:
        raise UsageError(
            f"--tls-cipher-suites: {name}: {ssl.OPENSSL_VERSION} does not speak it; leave it out"
        ) from error
    return known


def pair_source(values: Mapping[str, Any], clock: Clock) -> PairSource:
    """Return where the certificate to present comes from.

    Raises
    ------
    UsageError
        Only one of two files is given, or the directory cannot be used.

    Notes
    -----
    kubernetes v1.36 ``apiserver/pkg/server/options/serving.go``
    (``MaybeDefaultWithSelfSignedCerts``).
    """
    certificate, key = values.get("tls-cert-file", ""), values.get("tls-private-key-file", "")
    if bool(certificate) != bool(key):
        raise UsageError("--tls-cert-file and --tls-private-key-file are given both or not at all")
    if certificate:
        flags = "--tls-cert-file and --tls-private-key-file"
        return FilePair(Path(certificate), Path(key), flags=flags)
    address, folder = values.get("bind-address", ""), values.get("cert-dir", "")
    if not folder:
        return MadePair(_new_pair(clock, address))
    files = Path(folder) / f"{_FILE}.crt", Path(folder) / f"{_FILE}.key"
    there = [os.access(file, os.R_OK) for file in files]
    if not any(there):
        _write(_new_pair(clock, address), *files)
    elif not all(there):
        absent = files[there.index(False)]
        raise UsageError(
            f"--cert-dir {folder}: cannot read {absent.name}; certificate and key are a pair"
        )
    return FilePair(*files, flags="--cert-dir")


def named_sources(flags: Mapping[str, Any]) -> list[NamedSource]:
    """Return the certificates for certain server names.

    Raises
    ------
    UsageError
        The flag cannot be read.

    Notes
    -----
    kubernetes v1.36 ``component-base/cli/flag/namedcertkey_flag.go``.
    """
    sources = []
    for text in filter(None, flags.get(SNI, "").split(";")):
        files, colon, patterns = text.partition(":")
        names = tuple(name.strip() for name in patterns.split(",")) if colon else ()
        pair = [name.strip() for name in files.split(",")]
        if len(pair) != 2 or "" in pair or "" in names:
            raise UsageError(
                f"--{SNI} {text}: write CERTIFICATE,KEY or CERTIFICATE,KEY:NAME,*.NAME"
            )
        source = FilePair(Path(pair[0]), Path(pair[1]), flags=f"--{SNI}")
        sources.append(NamedSource(source, names))
    return sources


def _write(pair: Pair, certificate: Path, key: Path) -> None:
    try:
        certificate.parent.mkdir(parents=True, exist_ok=True)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        certificate.write_bytes(pair.certificate)
    except OSError as error:
        raise UsageError(f"--cert-dir {certificate.parent}: {error.strerror}") from error


def _new_pair(clock: Clock, address: str) -> Pair:
    """Return a new certificate, followed by that of the authority that signed it."""
    from moorage.base.certificates import Authority

    names = (*_NAMES, address) if address not in ("", "0.0.0.0", "::", *_NAMES) else _NAMES
    authority = Authority(clock)
    made = authority.server_pair(names)
    return Pair(made.certificate + authority.certificate, made.key)

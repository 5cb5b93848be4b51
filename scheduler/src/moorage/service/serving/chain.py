"""The client certificate of a connection, with the chain that OpenSSL verified."""

from __future__ import annotations

import ssl
from typing import Any, Final

from moorage.service.serving.callers import PeerCertificate

_DER: Final = 2  # _ssl.ENCODING_DER


def peer_certificate(connection: Any) -> PeerCertificate | None:
    """Return the certificate of a client; None if it presented none.

    Parameters
    ----------
    connection
        The TLS object of the connection (`ssl.SSLObject`); None for a connection without TLS.
    """
    certificate = None if connection is None else connection.getpeercert()
    if not certificate:
        return None
    name, organizations = "", []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                organizations.append(value)
    return PeerCertificate(
        name,
        tuple(organizations),
        ssl.cert_time_to_seconds(certificate["notAfter"]),
        _verified_chain(connection),
    )


def _verified_chain(connection: Any) -> tuple[bytes, ...]:
    """Return the verified chain, DER; empty for a connection that resumed an older one."""
    public = getattr(connection, "get_verified_chain", None)
    if public is not None:  # Python 3.13 and up
        return tuple(public())
    chain = connection._sslobj.get_verified_chain()  # noqa: SLF001 - there is no other way in 3.11
    return tuple(each.public_bytes(_DER) for each in chain or ())

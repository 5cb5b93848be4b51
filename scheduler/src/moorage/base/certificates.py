"""The cluster's own certificate authority, and the certificates of the server and the clients.

Made for each cluster and kept only in the kubeconfig, so no other copy can leak later. A
cluster with a data directory keeps its authority there. Keys are elliptic, because making an RSA
key takes longer than starting the server.
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moorage.base.clock import NS_PER_SECOND, Clock

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default")
# Long enough for any sandbox, short enough not to be mistaken for a real cluster's.
VALID_DAYS = 365
# As long as kubeadm's authorities: the authority may be kept in a data directory.
AUTHORITY_DAYS = 3650
# Clocks of machines differ; a certificate is valid a little before it was made.
_BACKDATED = timedelta(hours=1)
ADMIN_NAME = "kubernetes-admin"
ADMIN_GROUP = "system:masters"


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority.

    Parameters
    ----------
    clock
        Time at which certificates become valid.
    stored_pair
        Certificate and key of an authority made before.
    name
        Common name of a new authority.

    Raises
    ------
    ValueError
        ``stored_pair`` is not a certificate and key.
    """

    def __init__(
        self, clock: Clock, *, stored_pair: KeyPair | None = None, name: str = "moorage"
    ) -> None:
        self._now = datetime.fromtimestamp(clock.now_ns() // NS_PER_SECOND, UTC)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        if stored_pair is not None:
            key = serialization.load_pem_private_key(stored_pair.key, None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError("the authority's key is not an elliptic one")
            self._key = key
            self._certificate = x509.load_pem_x509_certificate(stored_pair.certificate)
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(self._name, self._key.public_key(), days=AUTHORITY_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        builder = builder.add_extension(_usage(signs_certificates=True), True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, PEM, which clients trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def pair(self) -> KeyPair:
        """Certificate and key, to be kept in a private place."""
        return _pair(self._certificate, self._key)

    def server_pair(self, names: Sequence[str] = LOCAL_NAMES) -> KeyPair:
        """Sign a server certificate for DNS names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        builder = self._signed_builder(subject, key, ExtendedKeyUsageOID.SERVER_AUTH)
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        builder = builder.add_extension(alternatives, False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)

    def client_pair(
        self, name: str = ADMIN_NAME, groups: Sequence[str] = (ADMIN_GROUP,)
    ) -> KeyPair:
        """Sign a client certificate for a user."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._signed_builder(subject, key, ExtendedKeyUsageOID.CLIENT_AUTH)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, days: int = VALID_DAYS
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _BACKDATED)
            .not_valid_after(self._now + timedelta(days=days))
        )

    def _signed_builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, purpose: x509.ObjectIdentifier
    ) -> x509.CertificateBuilder:
        builder = self._builder(subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_usage(signs_certificates=False), True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), False)
        # Newer OpenSSL (Python 3.13 and up, strict mode) requires the identifier of the signer's
        # key.
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(identifier, False)


def server_context(pair: KeyPair, authority_certificate: bytes) -> ssl.SSLContext:
    """Build the TLS context of the server: client certificates are optional."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=authority_certificate.decode())
    # The ssl module reads keys from files only; this file is removed right away.
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        path = Path(folder) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.key + pair.certificate)
        context.load_cert_chain(path)
    return context


def kubeconfig(
    server: str,
    *,
    authority_certificate: bytes,
    client: KeyPair | None = None,
    token: str = "",
    cluster: str = "moorage",
) -> str:
    """Return the text of a kubeconfig file (JSON, which is YAML).

    Parameters
    ----------
    server
        URL of the server.
    authority_certificate
        Certificate to trust, PEM.
    client
        Client certificate, if any.
    token
        Bearer token, if any.
    cluster
        Name of cluster, context and user.
    """
    user = {}
    if client is not None:
        user["client-certificate-data"] = _base64(client.certificate)
        user["client-key-data"] = _base64(client.key)
    if token:
        user["token"] = token
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {
                    "server": server,
                    "certificate-authority-data": _base64(authority_certificate),
                },
            }
        ],
        "users": [{"name": cluster, "user": user}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def server_names(certificate: bytes) -> tuple[str, ...]:
    """Return the server names that a certificate is for, PEM; none if they cannot be read."""
    try:
        found = x509.load_pem_x509_certificate(certificate).extensions
        names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return ()
    return tuple(names.get_values_for_type(x509.DNSName))

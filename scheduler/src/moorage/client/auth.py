"""Identity of a client: sources of credentials, asked before every call.

``kubeconfig`` and ``incluster_access`` produce a `ServerAccess`; ``http_transport`` asks its
source for the credential of the moment, so rotated token files, expiring exec credentials and
renewed certificates take effect without a restart.
"""

from __future__ import annotations

import base64
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import KubeconfigError
from moorage.base.files import read_file

_log = logging.getLogger(__name__)

# Reading periods of kubernetes v1.36 client-go transport/token_source.go and cert_rotation.go.
_TOKEN_FILE_SECONDS = 60
_CERTIFICATE_FILE_SECONDS = 300

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Credential(msgspec.Struct, frozen=True):
    """The credential to present to the server now.

    Parameters
    ----------
    headers
        Header pairs to send with each call (``Authorization``, impersonation).
    certificate_pem, key_pem
        Client certificate chain and its key, both or neither.
    """

    headers: tuple[tuple[str, str], ...] = ()
    certificate_pem: bytes | None = None
    key_pem: bytes | None = None

    def __repr__(self) -> str:
        """Hide the secrets: a credential ends up in logs sooner or later."""
        names = ", ".join(name for name, _ in self.headers)
        return f"Credential(headers=({names}), certificate={self.certificate_pem is not None})"


class CredentialSource(Protocol):
    """Gives the credential of the moment."""

    async def credential(self) -> Credential:
        """Return the credential to use now, renewing it first if it has expired.

        Raises
        ------
        KubeconfigError
            A file or program that the credential depends on cannot be used.
        """
        ...

    def reject(self) -> bool:
        """Note that the server refused the credential (401).

        Returns
        -------
        bool
            Whether the next credential may differ, so that trying again makes sense.
        """
        ...


class ServerAccess(msgspec.Struct, frozen=True):
    """The server's address, the certificates to trust, and our credentials.

    Parameters
    ----------
    server
        Base URL without a trailing slash.
    credentials
        Asked before each call.
    ca_pem
        Certificates to trust; None means the certificates of the operating system.
    ca_file
        File of the certificates to trust, instead of `ca_pem`.
    insecure_skip_tls_verify
        Do not check the server's certificate.
    tls_server_name
        Name to check the certificate against, "" for the host in the URL.
    proxy_url
        HTTP proxy, "" for none.
    namespace
        Namespace of the context, "" if it names none.
    """

    server: str
    credentials: CredentialSource
    ca_pem: bytes | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    namespace: str = ""
    ca_file: AuthorityFile | None = None

    def trusted_pem(self) -> bytes | None:
        """Return the certificates to trust now; None for those of the operating system.

        Raises
        ------
        KubeconfigError
            The file could never be read.
        """
        return self.ca_pem if self.ca_file is None else self.ca_file.certificates()


class CachedFile:
    """A file read again when its last reading is older than a period.

    Parameters
    ----------
    path
        File to read.
    period_seconds
        Longest age of a reading.
    what
        The file's name in messages (``tokenFile of user "dev"``).
    """

    __slots__ = ("_clock", "_content", "_path", "_period_ns", "_read_ns", "_what")

    def __init__(self, path: Path, *, period_seconds: int, what: str, clock: Clock) -> None:
        self._path = path
        self._what = what
        self._clock = clock
        self._period_ns = period_seconds * NS_PER_SECOND
        self._content: bytes | None = None
        self._read_ns = 0

    @property
    def what(self) -> str:
        """The file's name in messages."""
        return self._what

    def content(self) -> bytes:
        """Return the content, at most one period old.

        A file that cannot be read any more keeps its last content: rotation may be under way.

        Raises
        ------
        KubeconfigError
            The file could never be read.
        """
        now = self._clock.monotonic_ns()
        if self._content is None or now - self._read_ns >= self._period_ns:
            try:
                self._content = read_file(self._path)
            except OSError as error:
                if self._content is None:
                    raise KubeconfigError(
                        f"{self._what}: cannot read {self._path}: {error.strerror}; "
                        "check the path and its permissions"
                    ) from error
            self._read_ns = now
        return self._content

    def expire(self) -> None:
        """Make the next `content` look at the file again."""
        self._read_ns = self._clock.monotonic_ns() - self._period_ns


class AuthorityFile:
    """A file of trusted certificates that another program replaces.

    Parameters
    ----------
    path
        PEM file.
    what
        The file's name in messages.

    Notes
    -----
    As kubernetes v1.36 client-go transport/ca_rotation.go (ClientsAllowCARotation): read again
    every five minutes, and a content that is no certificate leaves the one before in place.
    Differs: a server whose certificate is not trusted makes the next call read the file again.
    """

    __slots__ = ("_file", "_refused", "_trusted")

    def __init__(self, path: Path, *, what: str, clock: Clock) -> None:
        self._file = certificate_file(path, what=what, clock=clock)
        self._trusted: bytes | None = None
        self._refused: bytes | None = None

    def certificates(self) -> bytes:
        """Return the newest certificates, at most five minutes old.

        Raises
        ------
        KubeconfigError
            The file could never be read.
        """
        content = self._file.content()
        if self._trusted is None or (content != self._refused and self._usable(content)):
            self._trusted = content
        return self._trusted

    def expire(self) -> None:
        """Make the next `content` look at the file again."""
        self._file.expire()

    def _usable(self, content: bytes) -> bool:
        if content == self._trusted:
            return True
        try:
            ssl.create_default_context(cadata=content.decode("ascii", "replace"))
        except ssl.SSLError as error:
            self._refused = content
            _log.warning(
                "%s is no PEM certificate (%s); the one before stays", self._file.what, error
            )
            return False
        self._refused = None
        return True


class FixedCredentials:
    """A credential that never changes."""

    __slots__ = ("_credential",)

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def credential(self) -> Credential:
        """Return the credential."""
        return self._credential

    def reject(self) -> bool:
        """Return False: there is no other credential."""
        return False


class FileCredentials:
    """Token and client certificate kept in files that another program rotates.

    Parameters
    ----------
    base
        The part that does not come from files.
    token_file
        Bearer token, or None.
    certificate, key
        PEM files of the client certificate, or None.
    """

    __slots__ = ("_base", "_certificate", "_key", "_token_file")

    def __init__(
        self,
        base: Credential,
        *,
        token_file: CachedFile | None = None,
        certificate: CachedFile | None = None,
        key: CachedFile | None = None,
    ) -> None:
        self._base = base
        self._token_file = token_file
        self._certificate = certificate
        self._key = key

    async def credential(self) -> Credential:
        """Return the credential with the files' content of the moment."""
        headers = self._base.headers
        if self._token_file is not None:
            token = self._token_file.content().decode("utf-8", "replace").strip()
            headers = (*_without_authorization(headers), ("Authorization", f"Bearer {token}"))
        return Credential(
            headers=headers,
            certificate_pem=self._certificate.content()
            if self._certificate
            else self._base.certificate_pem,
            key_pem=self._key.content() if self._key else self._base.key_pem,
        )

    def reject(self) -> bool:
        """Read every file again before the next call."""
        for cached in (self._token_file, self._certificate, self._key):
            if cached is not None:
                cached.expire()
        return True


def token_file(path: Path, *, what: str, clock: Clock) -> CachedFile:
    """Return a bearer token file, read again every minute."""
    return CachedFile(path, period_seconds=_TOKEN_FILE_SECONDS, what=what, clock=clock)


def certificate_file(path: Path, *, what: str, clock: Clock) -> CachedFile:
    """Return a certificate or key file, read again every five minutes."""
    return CachedFile(path, period_seconds=_CERTIFICATE_FILE_SECONDS, what=what, clock=clock)


def bearer(token: str) -> tuple[str, str]:
    """Return the header of a bearer token."""
    return "Authorization", f"Bearer {token}"


def basic(username: str, password: str) -> tuple[str, str]:
    """Return the header of HTTP basic authentication."""
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return "Authorization", f"Basic {pair}"


def without_user(url: str) -> str:
    """Return a URL without user and password, as it may stand in logs and messages."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def is_server_url(text: str) -> bool:
    """Whether a text can be the URL of an API server."""
    try:
        parts = urlsplit(text)
        # Reading the port checks it.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def incluster_access(
    environ: Mapping[str, str], *, clock: Clock, directory: Path = SERVICE_ACCOUNT_DIR
) -> ServerAccess | None:
    """Return the access of a pod's service account; None outside a cluster.

    Parameters
    ----------
    environ
        Environment variables; ``KUBERNETES_SERVICE_HOST`` and ``_PORT`` tell of a cluster.
    directory
        Where the service account's token, CA and namespace are mounted.

    Raises
    ------
    KubeconfigError
        The variables are there but the token or the CA is not.

    Notes
    -----
    Mirrors kubernetes v1.36 client-go rest/config.go ``InClusterConfig``, but takes an unreadable
    CA for an error instead of going on without.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        return None
    token = token_file(directory / "token", what="service account token", clock=clock)
    token.content()
    ca = AuthorityFile(directory / "ca.crt", what="service account CA", clock=clock)
    ca.certificates()
    namespace_path = directory / "namespace"
    namespace = namespace_path.read_text().strip() if namespace_path.exists() else ""
    address = f"[{host}]" if ":" in host else host
    return ServerAccess(
        server=f"https://{address}:{port}",
        credentials=FileCredentials(Credential(), token_file=token),
        ca_file=ca,
        namespace=namespace,
    )


def _without_authorization(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in headers if pair[0] != "Authorization")

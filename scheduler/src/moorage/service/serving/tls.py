"""TLS of the secure port: the certificate presented, and the authorities callers are checked by.

The context that the port listens with never changes. When a connection begins, the server name
callback looks at the files again and gives the connection a context of the moment. So changed files
count for the next connection, nothing polls, and connections under way go on.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/server/dynamiccertificates`` watches the files instead.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from moorage.base.errors import UsageError
from moorage.base.files import read_file
from moorage.service.serving.trust import Trust, signature

_log = logging.getLogger(__name__)

_PROTOCOL: Final = "http/1.1"


class Pair(msgspec.Struct, frozen=True):
    """A certificate, with the certificates between it and its authority, and its key; PEM."""

    certificate: bytes
    key: bytes


class PairSource(Protocol):
    """Gives the certificate to present."""

    def changed(self) -> bool:
        """Whether `pair` may differ from the last one that was returned."""
        ...

    def pair(self) -> Pair:
        """Return the present certificate.

        Raises
        ------
        OSError
            It cannot be read.
        """
        ...

    def __str__(self) -> str:
        """Return where it comes from, for messages."""
        ...


class MadePair:
    """A certificate made in memory; never changes."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def changed(self) -> bool:
        """Return False."""
        return False

    def pair(self) -> Pair:
        """Return the certificate."""
        return self._pair

    def __str__(self) -> str:
        """Return where it comes from."""
        return "the certificate made in memory"


class FilePair:
    """A certificate in two files that another program may replace."""

    def __init__(self, certificate: Path, key: Path, *, flags: str) -> None:
        self._certificate = certificate
        self._key = key
        self._flags = flags
        self._last_signatures: tuple[tuple[int, ...], ...] | None = None

    def changed(self) -> bool:
        """Whether one of the files has changed since they were read."""
        return self._last_signatures != self._signatures()

    def pair(self) -> Pair:
        """Return what is in the files now."""
        self._last_signatures = self._signatures()
        return Pair(read_file(self._certificate), read_file(self._key))

    def __str__(self) -> str:
        """Return the flags and the files."""
        return f"{self._flags} {self._certificate}, {self._key}"

    def _signatures(self) -> tuple[tuple[int, ...], ...]:
        return signature(self._certificate), signature(self._key)


class TlsRules(msgspec.Struct, frozen=True):
    """The versions and ciphers of TLS that are spoken.

    Parameters
    ----------
    version_min
        The oldest version of TLS.
    ciphers
        Names of OpenSSL for versions up to 1.2, in order; empty for the usual ones.
    """

    version_min: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: tuple[str, ...] = ()


class _Connection(ssl.SSLObject):
    """The TLS side of one connection."""

    def use_context(self, context: ssl.SSLContext) -> None:
        """Go on with the certificate and the authorities of another context."""
        self.context = context


class NamedSource(msgspec.Struct, frozen=True):
    """A certificate for some server names.

    Parameters
    ----------
    source
        The certificate.
    patterns
        Server names; ``*`` may stand for the first label. Empty: the names in the certificate.
    """

    source: PairSource
    patterns: tuple[str, ...] = ()


class _Offer:
    """A certificate, and the context that presents it."""

    def __init__(
        self, named_source: NamedSource, new_context: Callable[[Pair], ssl.SSLContext]
    ) -> None:
        self.source = named_source.source
        self.patterns = named_source.patterns
        self._pair = self.source.pair()
        self.context = new_context(self._pair)

    @property
    def certificate(self) -> bytes:
        """The certificate, PEM."""
        return self._pair.certificate

    @property
    def names(self) -> tuple[str, ...]:
        """The server names that the certificate is for."""
        from moorage.base.certificates import server_names

        return self.patterns or server_names(self._pair.certificate)

    def renew(self, new_context: Callable[[Pair], ssl.SSLContext], *, anyway: bool) -> bool:
        """Make a new context if the certificate has changed, or anyway; return whether it did."""
        changed = self.source.changed()
        if not (changed or anyway):
            return False
        try:
            pair = self.source.pair() if changed else self._pair
            context = new_context(pair)
        except (OSError, ssl.SSLError) as error:
            # Perhaps only one of the two files has been replaced so far.
            reason = error.strerror or str(error)
            _log.error("%s: %s; the last one stays in force", self.source, reason)
            pair, context = self._pair, new_context(self._pair)
        else:
            if changed:
                _log.info("%s: read again", self.source)
        self._pair, self.context = pair, context
        return True


class ServerTls:
    """The TLS side of the port.

    Parameters
    ----------
    source
        The certificate to present.
    rules
        Versions and ciphers.
    trust
        Returns the authorities of client certificates; None: clients are asked for none.
    named_sources
        Certificates for clients that ask for certain server names.

    Raises
    ------
    UsageError
        A certificate or the ciphers cannot be used.

    Attributes
    ----------
    context
        To listen with.
    """

    def __init__(
        self,
        source: PairSource,
        rules: TlsRules,
        trust: Callable[[], Trust] | None = None,
        *,
        named_sources: Sequence[NamedSource] = (),
    ) -> None:
        self._rules = rules
        self._trust = trust
        self._authorities = self._pem()
        self._offers: list[_Offer] = []
        for each in (NamedSource(source), *named_sources):
            try:
                self._offers.append(_Offer(each, self._new_context))
            except (OSError, ssl.SSLError) as error:
                raise UsageError(f"{each.source}: {error.strerror or error}") from error
        self._by_name = self._sorted()
        self.context = self._new_context(source.pair())

    @property
    def certificate(self) -> bytes:
        """The certificate that is presented to who asks for no other name, PEM."""
        self._refresh()
        return self._offers[0].certificate

    def _greet(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Give a new connection the context of the moment."""
        self._refresh()
        assert isinstance(connection, _Connection), "the context makes connections of this class"
        wanted = (name or "").lower()
        wildcard = f"*.{wanted.partition('.')[2]}"
        default = self._offers[0].context
        connection.use_context(self._by_name.get(wanted) or self._by_name.get(wildcard) or default)

    def _refresh(self) -> None:
        """Make new contexts where certificates or authorities have changed."""
        pem = self._pem()
        anyway, self._authorities = pem != self._authorities, pem
        renewed = [offer.renew(self._new_context, anyway=anyway) for offer in self._offers]
        if any(renewed):
            self._by_name = self._sorted()

    def _sorted(self) -> dict[str, ssl.SSLContext]:
        """Return the contexts by server name: given names go before names in certificates.

        Notes
        -----
        Of two certificates for one name the first counts, as in kubernetes v1.36
        ``apiserver/pkg/server/dynamiccertificates/named_certificates.go``.
        """
        contexts: dict[str, ssl.SSLContext] = {}
        named = self._offers[1:]
        for given in (True, False):
            for offer in (each for each in named if bool(each.patterns) is given):
                for name in offer.names:
                    contexts.setdefault(name.lower(), offer.context)
        return contexts

    def _pem(self) -> str:
        if self._trust is None:
            return ""
        trust = self._trust()
        return trust.clients.pem + trust.front.pem

    def _new_context(self, pair: Pair) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslobject_class = _Connection
        context.sni_callback = self._greet
        context.minimum_version = self._rules.version_min
        if self._rules.ciphers:
            context.set_ciphers(":".join(self._rules.ciphers))
        context.set_alpn_protocols([_PROTOCOL])
        # A resumed connection would bring the identity of an earlier handshake along.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        load_pair(context, pair)
        if self._trust is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            # As Go: an authority in the bundle is trusted, root or not.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self._authorities:
                context.load_verify_locations(cadata=self._authorities)
        return context


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Load a certificate from memory by way of a temporary file: the library reads only files.

    Raises
    ------
    ssl.SSLError
        Certificate and key cannot be used, or do not belong together.
    """
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        path = Path(folder) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.key + b"\n" + pair.certificate)
        # Without a password callback an encrypted key would ask on the terminal.
        context.load_cert_chain(path, password=lambda: "")

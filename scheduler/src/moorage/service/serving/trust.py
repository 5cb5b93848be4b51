"""The authorities of client certificates: which certificates identify users, and which proxies.

An authority comes from a file of a flag, or from the ConfigMap in which kube-apiserver publishes
its own; `ClusterTrust` reads that one and follows its changes.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/server/dynamiccertificates`` and
``pkg/server/options/authentication_dynamic_request_header.go``.
"""

from __future__ import annotations

import binascii
import logging
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from moorage.api.codec import decode
from moorage.api.meta import ApiObject
from moorage.api.resources import CONFIG_MAPS
from moorage.base.clock import Clock
from moorage.base.errors import DecodeError, UsageError
from moorage.base.files import read_file
from moorage.base.rng import Random
from moorage.client import requests
from moorage.client.objects import Key
from moorage.client.reflector import Reflector
from moorage.client.status import error_from_answer
from moorage.client.transport import Transport

_log = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Bundle(msgspec.Struct, frozen=True):
    """Certificates of authorities.

    Parameters
    ----------
    pem
        The certificates as text; "" for none.
    certificates
        The same, DER.
    """

    pem: str = ""
    certificates: frozenset[bytes] = frozenset()

    def signed(self, chain: tuple[bytes, ...]) -> bool:
        """Whether one of the authorities is in a verified chain."""
        return not self.certificates.isdisjoint(chain)


def bundle_of(pem: str) -> Bundle:
    """Read a bundle.

    Raises
    ------
    ValueError
        It has no certificate, or one that cannot be read.
    """
    blocks = _PEM.findall(pem)
    if not blocks:
        raise ValueError("there is no PEM certificate in it")
    try:
        certificates = frozenset(ssl.PEM_cert_to_DER_cert(block) for block in blocks)
        text = "\n".join(blocks) + "\n"
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=text)
    except (ssl.SSLError, binascii.Error, ValueError) as error:
        raise ValueError(f"a certificate in it cannot be read: {error}") from error
    return Bundle(text, certificates)


class ProxyNames(msgspec.Struct, frozen=True):
    """The headers in which a front proxy names its user, and the names of such proxies.

    Parameters
    ----------
    users, groups, uids
        Headers, in order of preference.
    extra_prefixes
        Beginnings of headers with further facts.
    proxies
        Common names of the proxies' certificates; empty for any.
    """

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()


class Trust(msgspec.Struct, frozen=True):
    """The authorities of a moment.

    Parameters
    ----------
    clients
        Their certificates identify users.
    front
        Their certificates identify front proxies.
    names
        How a front proxy names its user.
    """

    clients: Bundle = Bundle()
    front: Bundle = Bundle()
    names: ProxyNames = ProxyNames()


class BundleFile:
    """A bundle in a file, read again when the file changes.

    Parameters
    ----------
    path
        PEM.
    flag
        The flag that names it, for messages.

    Raises
    ------
    UsageError
        The file cannot be used.
    """

    def __init__(self, path: Path, flag: str) -> None:
        self._path = path
        self._flag = flag
        self._signature = signature(path)
        try:
            self._bundle = bundle_of(read_file(path).decode(errors="replace"))
        except (OSError, ValueError) as error:
            raise UsageError(f"--{flag} {path}: {_reason(error)}") from error

    @property
    def bundle(self) -> Bundle:
        """The present bundle; a file that cannot be used any more leaves the last one in force."""
        seen = signature(self._path)
        if seen != self._signature:
            self._signature = seen
            try:
                self._bundle = bundle_of(read_file(self._path).decode(errors="replace"))
            except (OSError, ValueError) as error:
                _log.error(
                    "--%s %s: %s; the last one stays in force",
                    self._flag,
                    self._path,
                    _reason(error),
                )
            else:
                _log.info("--%s %s: read again", self._flag, self._path)
        return self._bundle


def signature(path: Path) -> tuple[int, ...]:
    """Return facts about a file that differ when it has changed; empty if there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


class Published(ApiObject, frozen=True, kw_only=True):
    """The ConfigMap in which kube-apiserver publishes how it knows its callers."""

    data: Mapping[str, str] = {}


class ClusterTrust:
    """The authorities that the cluster publishes.

    Parameters
    ----------
    transport
        Carries the calls.
    clock, rng
        For the waits of the watch.
    """

    def __init__(self, transport: Transport, *, clock: Clock, rng: Random) -> None:
        self._transport = transport
        self._reflector = Reflector(
            transport,
            CONFIG_MAPS,
            Published,
            handler=self,
            clock=clock,
            rng=rng,
            namespace=NAMESPACE,
            field_selector=f"metadata.name={NAME}",
        )
        self.trust = Trust()
        """The authorities published last."""

    async def read_config_map(self) -> None:
        """Read the ConfigMap once.

        Raises
        ------
        MoorageError
            It cannot be read.
        """
        answer = await self._transport.request(requests.get(CONFIG_MAPS, NAME, namespace=NAMESPACE))
        if answer.status >= 400:
            raise error_from_answer(answer)
        self._take_authorities(decode(Published, answer.body))

    async def run(self) -> None:
        """Follow the changes of the ConfigMap until cancelled."""
        await self._reflector.run()

    # --- handler of the reflector -----------------------------------------------------------

    def on_add(self, obj: Published) -> None:
        """Take in the ConfigMap."""
        self._take_authorities(obj)

    def on_update(self, old: Published, new: Published) -> None:
        """Take in its new content."""
        del old
        self._take_authorities(new)

    def on_delete(self, obj: Published, *, missed: bool) -> None:
        """Keep the last authorities, as kube-scheduler does."""
        del obj, missed

    def on_synced(self) -> None:
        """Do nothing: `read_config_map` has looked before."""

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        """Keep the last authorities."""
        _log.error("configmap %s/%s: %s", *key, error)

    def _take_authorities(self, published: Published) -> None:
        data, old = published.data, self.trust
        front = _published(data, "requestheader-client-ca-file", old.front)
        try:
            names = _proxy_names(data)
        except msgspec.DecodeError as error:
            # A list of allowed names that is lost would let every proxy name users.
            _log.error("configmap %s/%s: %s; the last one stays in force", NAMESPACE, NAME, error)
            front, names = old.front, old.names
        clients = _published(data, "client-ca-file", old.clients)
        self.trust = Trust(clients, front, names)


def _published(data: Mapping[str, str], key: str, old: Bundle) -> Bundle:
    pem = data.get(key, "")
    if not pem:
        return Bundle()
    try:
        return bundle_of(pem)
    except ValueError as error:
        _log.error(
            "configmap %s/%s: %s: %s; the last one stays in force", NAMESPACE, NAME, key, error
        )
        return old


def _proxy_names(data: Mapping[str, str]) -> ProxyNames:
    return ProxyNames(
        _names(data, "requestheader-username-headers"),
        _names(data, "requestheader-group-headers"),
        _names(data, "requestheader-uid-headers"),
        _names(data, "requestheader-extra-headers-prefix"),
        _names(data, "requestheader-allowed-names"),
    )


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    text = data.get(key, "")
    try:
        found = msgspec.json.decode(text, type=tuple[str, ...]) if text else ()
    except msgspec.DecodeError as error:
        raise msgspec.DecodeError(f"{key} is no list of names: {error}") from error
    return tuple(name.strip() for name in found if name.strip())

"""The extenders of a configuration, opened: a connection pool for each, and the objects to send.

`scheduler` opens them before it builds the deciding half, and closes them at its end.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from moorage.api.meta import ApiObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.base.errors import ConfigError
from moorage.base.files import read_file
from moorage.client.auth import Credential, FixedCredentials, ServerAccess
from moorage.client.extender import ExtenderSettings, HttpExtender, OneTryTransport
from moorage.client.guard import WriteGuard
from moorage.client.traced import TracedTransport
from moorage.client.transport import Transport
from moorage.client.whole import WholeObjects
from moorage.config.extenders import Extender, ExtenderTLSConfig

Connect = Callable[[Extender, str], Transport]
"""Opens the connection to an extender; gets its part of the configuration and the path there."""


class OpenExtenders:
    """The connections to extenders, open while a scheduler runs.

    Parameters
    ----------
    extenders
        The extenders part of the configuration, already checked.
    guard
        Asked before an extender is told to bind.
    traced_by
        The time of spans; None where nothing is traced.
    connect
        Opens the connection to each extender; over HTTP when not given.

    Attributes
    ----------
    extenders
        In the order configured.
    nodes, pods
        Objects as the API wrote them, for the reflectors to fill; None where no extender needs
        them.

    Raises
    ------
    ConfigError
        A certificate or key cannot be read.
    """

    def __init__(
        self,
        extenders: Sequence[Extender],
        guard: WriteGuard | None = None,
        *,
        traced_by: Clock | None = None,
        connect: Connect | None = None,
    ) -> None:
        self._connect = _over_http if connect is None else connect
        self._traced_by = traced_by
        whole_nodes, whole_victims = _needs(extenders)
        self.nodes = WholeObjects() if whole_nodes else None
        self.pods = WholeObjects(None if whole_victims else _has_no_node) if extenders else None
        self._victims = whole_victims
        self._guard = guard
        self._transports: list[Transport] = []
        self.extenders = self.opened(extenders)

    def opened(self, extenders: Sequence[Extender]) -> list[HttpExtender]:
        """Return the extenders of a configuration, opened; all are closed together at the end.

        Parameters
        ----------
        extenders
            The extenders part of a configuration, already checked. The reflectors must keep the
            objects that they need: see `needs_more`.

        Raises
        ------
        ConfigError
            A certificate or key cannot be read.
        """
        opened: list[HttpExtender] = []
        for index, extender in enumerate(extenders):
            transport = self._transport(extender, f"extenders[{index}]")
            self._transports.append(transport)
            opened.append(
                HttpExtender(
                    settings_of(extender),
                    transport,
                    whole=self._whole,
                    guard=self._guard,
                    listed=None if self.nodes is None else self.nodes.listed,
                )
            )
        return opened

    def _transport(self, extender: Extender, path: str) -> Transport:
        transport = self._connect(extender, path)
        if self._traced_by is None:
            return transport
        host = urlsplit(extender.url_prefix).hostname or ""
        return TracedTransport(
            transport, self._traced_by, name="extender", attributes={"server.address": host}
        )

    def use(self, opened: list[HttpExtender]) -> None:
        """Note the extenders that are in force, as `opened` returned them."""
        self.extenders = opened

    def needs_more(self, extenders: Sequence[Extender]) -> bool:
        """Whether extenders need objects in full that the reflectors do not keep."""
        nodes, victims = _needs(extenders)
        return (
            (bool(extenders) and self.pods is None)
            or (nodes and self.nodes is None)
            or (victims and not self._victims)
        )

    async def close(self) -> None:
        """Close the connections."""
        for transport in self._transports:
            await transport.close()

    def _whole(self, obj: ApiObject) -> bytes:
        kept = self.nodes if isinstance(obj, Node) else self.pods
        return (WholeObjects() if kept is None else kept).whole(obj)


def _over_http(extender: Extender, path: str) -> Transport:
    return OneTryTransport(_access(extender, path))


def _needs(extenders: Sequence[Extender]) -> tuple[bool, bool]:
    """Return whether extenders need nodes in full, and victims in full."""
    nodes = any(not each.node_cache_capable for each in extenders)
    victims = any(each.preempt_verb and not each.node_cache_capable for each in extenders)
    return nodes, victims


def settings_of(extender: Extender) -> ExtenderSettings:
    """Return the client's settings for an extender of the configuration."""
    return ExtenderSettings(
        url=extender.url_prefix,
        filter_verb=extender.filter_verb,
        prioritize_verb=extender.prioritize_verb,
        preempt_verb=extender.preempt_verb,
        bind_verb=extender.bind_verb,
        weight=extender.weight,
        timeout_seconds=extender.timeout_seconds,
        names_only=extender.node_cache_capable,
        resources=frozenset(resource.name for resource in extender.managed_resources),
        ignorable=extender.ignorable,
    )


def _has_no_node(obj: ApiObject) -> bool:
    return isinstance(obj, Pod) and not obj.spec.node_name


def _access(extender: Extender, path: str) -> ServerAccess:
    parts = urlsplit(extender.url_prefix)
    tls = extender.tls_config or ExtenderTLSConfig()
    authority = _pem(tls.ca_data, tls.ca_file, f"{path}.tlsConfig.caFile")
    # kube-scheduler accepts any certificate for https without a configured authority.
    trusting = tls.insecure or (extender.enable_https and authority is None)
    credential = Credential(
        certificate_pem=_pem(tls.cert_data, tls.cert_file, f"{path}.tlsConfig.certFile"),
        key_pem=_pem(tls.key_data, tls.key_file, f"{path}.tlsConfig.keyFile"),
    )
    return ServerAccess(
        f"{parts.scheme}://{parts.netloc}",
        FixedCredentials(credential),
        ca_pem=authority,
        insecure_skip_tls_verify=trusting,
        tls_server_name=tls.server_name,
    )


def _pem(data: str, file: str, path: str) -> bytes | None:
    if data:
        return base64.b64decode(data)
    if not file:
        return None
    try:
        return read_file(Path(file))
    except OSError as error:
        raise ConfigError([f"{path}: cannot read {file}: {error.strerror}"]) from error

"""Fetches the loads of nodes beside the loop of decisions, one source after another.

A call is bounded by its own time limit, and no decision waits for one. If a call fails, the last
loads go on counting, as in scheduler-plugins ``pkg/trimaran/collector.go`` v0.35.
"""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import urlsplit

from moorage.api.quantity import parse_quantity
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.client.auth import Credential, FixedCredentials, ServerAccess, bearer
from moorage.client.extender import OneTryTransport
from moorage.client.loads.sources import (
    loads_of_metrics_server,
    loads_of_prometheus,
    loads_of_watcher,
)
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.config.scheduler_plugins.trimaran import METRICS_SERVER, LoadSource
from moorage.framework.loads.node_loads import LoadReports, NodeLoads
from moorage.snapshot.table import NodeTable

_INTERVAL_SECONDS: Final = 30.0
_NS: Final = 10**9

_log = logging.getLogger(__name__)


class NodeLoadFetcher:
    """Keeps the reports that plugins ask for current.

    Parameters
    ----------
    reports
        The sources and their reports; more may come with a new configuration.
    client
        To the API server, for the metrics API.
    table
        The nodes, with their capacities.
    clock
        Says which time the loads of a source without a time are about.
    """

    def __init__(
        self,
        reports: LoadReports,
        client: Client,
        table: NodeTable,
        clock: Clock,
    ) -> None:
        self._reports = reports
        self._client = client
        self._table = table
        self._clock = clock
        self._transports: dict[LoadSource, Transport] = {}
        self._failing: set[LoadSource] = set()

    async def run(self) -> None:
        """Fetch every half minute, until cancelled."""
        try:
            while True:
                for source in tuple(self._reports.by_source):
                    await self._fetch(source)
                await aio.sleep(_INTERVAL_SECONDS)
        finally:
            for transport in self._transports.values():
                await transport.close()

    async def _fetch(self, source: LoadSource) -> None:
        try:
            loads = await self._loads(source)
        except Exception as problem:
            # Whatever a source sends, pods are placed: by the last loads.
            if source not in self._failing:
                detail = None if isinstance(problem, MoorageError) else problem
                _log.warning(
                    "no new loads of nodes, the last ones count: %s", problem, exc_info=detail
                )
            self._failing.add(source)
            return
        if source in self._failing:
            _log.info("loads of nodes are read again")
            self._failing.discard(source)
        self._reports.by_source[source].renew(loads)

    async def _loads(self, source: LoadSource) -> NodeLoads | None:
        now_seconds = self._clock.now_ns() // _NS
        if source.watcher_address:
            path = urlsplit(source.watcher_address).path.rstrip("/")
            return await loads_of_watcher(self._transport(source), path)
        if source.provider.type == METRICS_SERVER:
            capacities = {node.name: _capacity(node.status.capacity) for node in self._table.nodes}
            return await loads_of_metrics_server(self._client, capacities, now_seconds=now_seconds)
        path = urlsplit(source.provider.address).path.rstrip("/")
        return await loads_of_prometheus(self._transport(source), path, now_seconds=now_seconds)

    def _transport(self, source: LoadSource) -> Transport:
        transport = self._transports.get(source)
        if transport is None:
            transport = self._transports[source] = over_http(source)
        return transport


def over_http(source: LoadSource) -> Transport:
    """Open the connection to a load-watcher or to Prometheus."""
    provider = source.provider
    address = source.watcher_address or provider.address
    parts = urlsplit(address)
    token = "" if source.watcher_address else provider.token
    headers = (bearer(token),) if token else ()
    access = ServerAccess(
        server=f"{parts.scheme}://{parts.netloc}",
        credentials=FixedCredentials(Credential(headers=headers)),
        insecure_skip_tls_verify=not source.watcher_address and provider.insecure_skip_verify,
    )
    return OneTryTransport(access)


def _capacity(capacity: dict[str, str | int | float]) -> dict[str, int]:
    return {name: parse_quantity(capacity[name]) for name in ("cpu", "memory") if name in capacity}

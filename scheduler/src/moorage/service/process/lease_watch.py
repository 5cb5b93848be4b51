"""Follows the Lease while another replica holds it, so that a release is seen at once.

A replica that only looks once in a retry period starts up to 4.4 s after the release. The watch is
a help, no more: where it is not allowed, or is silent, `leader` still looks once in a period.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moorage.api.resources import LEASES
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.base.rng import Random
from moorage.client.backoff import Backoff, BackoffRule
from moorage.client.requests import Selection
from moorage.client.writes import Client, JsonObject

_log = logging.getLogger(__name__)


class LeaseWatch:
    """Watches one Lease.

    Parameters
    ----------
    client
        Verbs of the server.
    namespace, name
        Of the Lease object. The watch selects it by name, as a role that names it demands.
    clock, rng
        Time, and the stream for the backoff after failures.
    on_change
        Called with the newest version of the lease; empty where it was deleted.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        clock: Clock,
        rng: Random,
        on_change: Callable[[JsonObject], None],
    ) -> None:
        self._client = client
        self._selection = Selection(namespace, field_selector=f"metadata.name={name}")
        self._backoff = Backoff(BackoffRule(), clock=clock, rng=rng)
        self._on_change = on_change

    async def run(self) -> None:
        """Watch until cancelled; a failure is logged, and the watch is opened again later."""
        while True:
            try:
                async for event in self._client.watch(LEASES, self._selection):
                    lease = event.get("object")
                    if event.get("type") == "DELETED":
                        self._on_change({})
                    elif event.get("type") != "BOOKMARK" and isinstance(lease, dict):
                        self._on_change(lease)
            except MoorageError as problem:
                _log.info("lease is not watched: %s", problem)
            await aio.sleep(self._backoff.next_seconds())

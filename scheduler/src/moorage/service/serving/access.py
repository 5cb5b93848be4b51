"""Everything that guards the port, with the work that keeps it current."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moorage.base.aio import TaskOwner
from moorage.base.errors import MoorageError, UsageError
from moorage.client.transport import Transport
from moorage.service.serving.gate import Gate
from moorage.service.serving.tls import ServerTls
from moorage.service.serving.trust import NAME, NAMESPACE, ClusterTrust

_log = logging.getLogger(__name__)


class Access:
    """The certificate, the gate, and the watch of the authorities that the cluster publishes.

    Parameters
    ----------
    tls
        The certificate to present.
    gate
        Judges every call.
    cluster
        The published authorities; None where they are not looked up.
    tolerant
        Whether the port serves although they cannot be looked up.
    transports
        Closed at the end.
    """

    def __init__(
        self,
        tls: ServerTls,
        gate: Gate,
        *,
        cluster: ClusterTrust | None = None,
        tolerant: bool = True,
        transports: Sequence[Transport] = (),
    ) -> None:
        self.tls = tls
        self.gate = gate
        self._cluster = cluster
        self._tolerant = tolerant
        self._transports = transports
        self._tasks = TaskOwner()

    async def start(self) -> None:
        """Look up the published authorities, and follow them from then on.

        Raises
        ------
        UsageError
            They cannot be looked up, and that is not tolerated.
        """
        if self._cluster is None:
            return
        try:
            await self._cluster.read_config_map()
        except MoorageError as error:
            text = f"configmap {NAMESPACE}/{NAME} cannot be read: {error}"
            if not self._tolerant:
                raise UsageError(
                    f"{text}; --authentication-tolerate-lookup-failure=true serves without it"
                ) from error
            _log.warning("%s; client certificates identify nobody until it can", text)
        self._tasks.spawn(self._cluster.run(), name="watch the authorities of callers")

    async def close(self) -> None:
        """End the watch and the connections; idempotent."""
        await self._tasks.cancel_all()
        for transport in self._transports:
            await transport.close()

"""The controllers of a cluster, over one set of watches, as in kube-controller-manager.

``sandbox`` runs this next to its server; it works against any API server that has no
kube-controller-manager of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.events import EventRecorder
from moorage.client.writes import Client
from moorage.controllers.controller import ControllerInputs
from moorage.controllers.views import Views
from moorage_sandbox.controllers import names
from moorage_sandbox.controllers.disruption import DisruptionController
from moorage_sandbox.controllers.volumes import VolumeControllers
from moorage_sandbox.controllers.workloads import WorkloadControllers


class Part(Protocol):
    """Some of the controllers.

    Attributes
    ----------
    ready
        Set once they work.
    """

    ready: asyncio.Event

    async def run(self) -> None:
        """Run until cancelled."""
        ...


MakePart: TypeAlias = Callable[[ControllerInputs], Part]


def parts_without(without: Collection[str]) -> Sequence[MakePart]:
    """Return the parts of a cluster in which another program plays some of the controllers.

    Parameters
    ----------
    without
        Names of these controllers, of ``names``.
    """
    own: dict[str, MakePart] = {
        names.VOLUMES: VolumeControllers,
        names.DISRUPTION: DisruptionController,
    }
    parts = [make for name, make in own.items() if name not in without]
    return (*parts, partial(WorkloadControllers, without=without))


ALL: Final = parts_without(())
"""The parts of a cluster that has nobody else to play its controllers."""


class ClusterControllers:
    """Runs controllers that share one watch of each kind.

    Parameters
    ----------
    client
        Verbs of the server.
    clock, streams
        Time and randomness.
    authority
        Certificate of the server's authority, PEM, published in every namespace; "" for none.
    parts
        The controllers to run.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        streams: Streams,
        authority: str = "",
        parts: Sequence[MakePart] = ALL,
    ) -> None:
        self._views = Views(client.transport, clock=clock, streams=streams)
        rng = streams.stream("controllers/events")
        self._recorder = EventRecorder(client, host="moorage", clock=clock, rng=rng)
        around = ControllerInputs(client, self._views, self._recorder, clock, streams, authority)
        self._parts = [make(around) for make in parts]

    async def run(self) -> None:
        """Run until cancelled.

        Raises
        ------
        ApiError
            The server refused the default storage class (credentials).
        Exception
            A task failed; the others are stopped, too.
        """
        parts = (each.run() for each in self._parts)
        await aio.together(self._views.run(), self._recorder.run(), *parts)

    async def ready(self) -> None:
        """Wait until all the controllers work."""
        for each in self._parts:
            await each.ready.wait()

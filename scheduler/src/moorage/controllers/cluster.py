"""Controllers over one set of watches, as in kube-controller-manager.

The controllers of one program come in parts. It works against any API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.events import EventRecorder
from moorage.client.writes import Client
from moorage.controllers.controller import ControllerInputs
from moorage.controllers.views import Views


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
        parts: Sequence[MakePart],
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

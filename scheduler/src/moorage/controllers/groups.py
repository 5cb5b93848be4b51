"""The controllers of scheduler-plugins' kinds as a program of their own.

kube-scheduler's plugins never write this status. scheduler-plugins has a second program for it
(``cmd/controller``); a cluster with moorage in place of scheduler-plugins needs one, too.
"""

from __future__ import annotations

import asyncio

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.events import EventRecorder
from moorage.client.writes import Client
from moorage.controllers.controller import ControllerInputs
from moorage.controllers.elastic_quotas import ElasticQuotaController
from moorage.controllers.pod_groups import PodGroupController
from moorage.controllers.views import Views


class GroupControllers:
    """Keeps the status of PodGroups and ElasticQuotas of scheduling.x-k8s.io.

    Every write names the version of the object that it rests on, so two such programs next to each
    other do no harm.

    Parameters
    ----------
    client
        Verbs of the server.
    clock, streams
        Time and randomness.

    Attributes
    ----------
    ready
        Set once everything has been listed. A kind that the server does not serve counts as
        listed, and is watched once it is served.
    """

    def __init__(self, client: Client, *, clock: Clock, streams: Streams) -> None:
        self._views = Views(client.transport, clock=clock, streams=streams)
        rng = streams.stream("controllers/events")
        self._recorder = EventRecorder(client, host="moorage", clock=clock, rng=rng)
        around = ControllerInputs(client, self._views, self._recorder, clock, streams)
        self._controllers = (PodGroupController(around), ElasticQuotaController(around))
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled.

        Raises
        ------
        Exception
            A task failed; the others are stopped, too.
        """
        await aio.together(self._views.run(), self._recorder.run(), self._work())

    async def _work(self) -> None:
        await self._views.synced()
        self.ready.set()
        await aio.together(*(each.run() for each in self._controllers))

"""The controllers of scheduler-plugins' kinds, for a program of their own.

kube-scheduler's plugins never write this status. scheduler-plugins has a second program for it
(``cmd/controller``); a cluster with moorage in place of scheduler-plugins needs one, too.
"""

from __future__ import annotations

import asyncio

from moorage.base import aio
from moorage.controllers.controller import ControllerInputs
from moorage.controllers.elastic_quotas import ElasticQuotaController
from moorage.controllers.pod_groups import PodGroupController


class GroupControllers:
    """The part that keeps the status of PodGroups and ElasticQuotas of scheduling.x-k8s.io.

    Every write names the version of the object that it rests on, so two such programs next to each
    other do no harm.

    Parameters
    ----------
    around
        The surroundings.

    Attributes
    ----------
    ready
        Set once everything has been listed. A kind that the server does not serve counts as
        listed, and is watched once it is served.
    """

    def __init__(self, around: ControllerInputs) -> None:
        self._views = around.views
        self._controllers = (PodGroupController(around), ElasticQuotaController(around))
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled.

        Raises
        ------
        Exception
            A task failed; the other is stopped, too.
        """
        await self._views.synced()
        self.ready.set()
        await aio.together(*(each.run() for each in self._controllers))

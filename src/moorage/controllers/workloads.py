"""All the controllers of workloads together, over one set of watches.

``sandbox`` runs this beside its server; it works against any API server that has no
kube-controller-manager of its own.
"""

from __future__ import annotations

import asyncio

from moorage.api.pod import Pod
from moorage.api.resources import PODS, REPLICATION_CONTROLLERS
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.events import EventRecorder
from moorage.client.writes import Client
from moorage.controllers.accounts import NamespaceContents
from moorage.controllers.autoscaler import AutoscalerController
from moorage.controllers.controller import Controller, Surroundings
from moorage.controllers.cron_job import CronJobController
from moorage.controllers.daemon_set import DaemonSetController
from moorage.controllers.deployment import DeploymentController
from moorage.controllers.elastic_quotas import ElasticQuotaController
from moorage.controllers.garbage import GarbageCollector
from moorage.controllers.job import JobController
from moorage.controllers.node_life import NodeLifecycle, PodCollector, PodsByNode, TaintEviction
from moorage.controllers.pod_groups import PodGroupController
from moorage.controllers.replica_set import ReplicaSetController
from moorage.controllers.resource_claims import ClaimMaker, ClaimReleaser
from moorage.controllers.stateful_set import StatefulSetController
from moorage.controllers.views import Views


class WorkloadControllers:
    """The part of kube-controller-manager for workloads, nodes and namespaces.

    Parameters
    ----------
    client
        Verbs of the server.
    clock, streams
        Time and randomness.
    authority
        Certificate of the server's authority, PEM, published in every namespace; "" for none.

    Attributes
    ----------
    ready
        Set once everything has been listed.
    """

    def __init__(
        self, client: Client, *, clock: Clock, streams: Streams, authority: str = ""
    ) -> None:
        self._views = Views(client.transport, clock=clock, streams=streams)
        self._recorder = EventRecorder(
            client, host="moorage", clock=clock, rng=streams.stream("controllers/events")
        )
        around = Surroundings(client, self._views, self._recorder, clock, streams)
        by_node = PodsByNode(self._views.of(PODS, Pod))
        self._controllers: list[Controller] = [
            DeploymentController(around),
            ReplicaSetController(around),
            ReplicaSetController(around, REPLICATION_CONTROLLERS),
            JobController(around),
            CronJobController(around),
            StatefulSetController(around),
            DaemonSetController(around),
            AutoscalerController(around),
            PodGroupController(around),
            ElasticQuotaController(around),
            ClaimMaker(around),
            ClaimReleaser(around),
            NodeLifecycle(around),
            TaintEviction(around, by_node),
            PodCollector(around, by_node),
            NamespaceContents(around, authority=authority),
        ]
        self._garbage = GarbageCollector(around)
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled.

        Raises
        ------
        Exception
            A task failed; the others are stopped, too.
        """
        await aio.together(
            self._views.run(), self._recorder.run(), self._garbage.run(), self._work()
        )

    async def _work(self) -> None:
        await self._views.synced()
        await self._garbage.ready.wait()
        self.ready.set()
        await aio.together(*(each.run() for each in self._controllers))

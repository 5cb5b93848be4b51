"""All the controllers of workloads, nodes and namespaces together."""

from __future__ import annotations

import asyncio

from moorage.api.resources import PODS, REPLICATION_CONTROLLERS
from moorage.base import aio
from moorage.controllers.accounts import NamespaceContents
from moorage.controllers.autoscaler import AutoscalerController
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.cron_job import CronJobController
from moorage.controllers.daemon_set import DaemonSetController
from moorage.controllers.deployment import DeploymentController
from moorage.controllers.elastic_quotas import ElasticQuotaController
from moorage.controllers.endpoints import EndpointsController, EndpointsMirror
from moorage.controllers.garbage import GarbageCollector
from moorage.controllers.job import JobController
from moorage.controllers.node_life import NodeLifecycle, PodCollector, PodsByNode, TaintEviction
from moorage.controllers.pod_groups import PodGroupController
from moorage.controllers.replica_set import ReplicaSetController
from moorage.controllers.resource_claims import ClaimMaker, ClaimReleaser
from moorage.controllers.stateful_set import StatefulSetController
from moorage.workloads.objects import ViewedPod


class WorkloadControllers:
    """The part of kube-controller-manager for workloads, nodes and namespaces.

    Parameters
    ----------
    around
        The surroundings.

    Attributes
    ----------
    ready
        Set once everything has been listed.
    """

    def __init__(self, around: ControllerInputs) -> None:
        self._views = around.views
        by_node = PodsByNode(self._views.view_of(PODS, ViewedPod))
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
            EndpointsController(around),
            EndpointsMirror(around),
            ClaimMaker(around),
            ClaimReleaser(around),
            NodeLifecycle(around),
            TaintEviction(around, by_node),
            PodCollector(around, by_node),
            NamespaceContents(around),
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
        await aio.together(self._garbage.run(), self._work())

    async def _work(self) -> None:
        await self._views.synced()
        await self._garbage.ready.wait()
        self.ready.set()
        await aio.together(*(each.run() for each in self._controllers))

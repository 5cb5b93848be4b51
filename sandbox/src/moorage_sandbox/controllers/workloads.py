"""All the controllers of workloads, nodes and namespaces together."""

from __future__ import annotations

import asyncio

from moorage.api.resources import PODS, REPLICATION_CONTROLLERS
from moorage.base import aio
from moorage.workloads.objects import ViewedPod
from moorage_sandbox.controllers.accounts import NamespaceContents
from moorage_sandbox.controllers.autoscaler import AutoscalerController
from moorage_sandbox.controllers.controller import Controller, ControllerInputs
from moorage_sandbox.controllers.cron_job import CronJobController
from moorage_sandbox.controllers.daemon_set import DaemonSetController
from moorage_sandbox.controllers.deployment import DeploymentController
from moorage_sandbox.controllers.elastic_quotas import ElasticQuotaController
from moorage_sandbox.controllers.endpoints import EndpointsController, EndpointsMirror
from moorage_sandbox.controllers.garbage import GarbageCollector
from moorage_sandbox.controllers.job import JobController
from moorage_sandbox.controllers.node_life import (
    NodeLifecycle,
    PodCollector,
    PodsByNode,
    TaintEviction,
)
from moorage_sandbox.controllers.pod_groups import PodGroupController
from moorage_sandbox.controllers.replica_set import ReplicaSetController
from moorage_sandbox.controllers.resource_claims import ClaimMaker, ClaimReleaser
from moorage_sandbox.controllers.stateful_set import StatefulSetController


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

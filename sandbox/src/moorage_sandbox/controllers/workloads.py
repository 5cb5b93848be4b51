"""All the controllers of workloads, nodes and namespaces together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import cache, partial

from moorage.api.resources import PODS, REPLICATION_CONTROLLERS
from moorage.base import aio
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.elastic_quotas import ElasticQuotaController
from moorage.controllers.pod_groups import PodGroupController
from moorage.controllers.views import Views
from moorage.workloads.objects import ViewedPod
from moorage_sandbox.controllers import names
from moorage_sandbox.controllers.accounts import CertificatePublisher, DefaultAccounts, TokenSecrets
from moorage_sandbox.controllers.autoscaler import AutoscalerController
from moorage_sandbox.controllers.cron_job import CronJobController
from moorage_sandbox.controllers.daemon_set import DaemonSetController
from moorage_sandbox.controllers.deployment import DeploymentController
from moorage_sandbox.controllers.endpoints import EndpointsController, EndpointsMirror
from moorage_sandbox.controllers.garbage import GarbageCollector
from moorage_sandbox.controllers.job import JobController
from moorage_sandbox.controllers.node_life import (
    NodeLifecycle,
    PodCollector,
    PodsByNode,
    TaintEviction,
)
from moorage_sandbox.controllers.replica_set import ReplicaSetController
from moorage_sandbox.controllers.resource_claims import ClaimMaker, ClaimReleaser
from moorage_sandbox.controllers.stateful_set import StatefulSetController


class WorkloadControllers:
    """The part of kube-controller-manager for workloads, nodes and namespaces.

    Parameters
    ----------
    around
        The surroundings.
    without
        Names of controllers that another program plays.

    Attributes
    ----------
    ready
        Set once everything has been listed.
    """

    def __init__(self, around: ControllerInputs, without: Collection[str] = ()) -> None:
        self._views = around.views
        self._controllers = [make(around) for name, make in _makers() if name not in without]
        self._garbage = None if names.GARBAGE in without else GarbageCollector(around)
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled.

        Raises
        ------
        Exception
            A task failed; the others are stopped, too.
        """
        collecting = () if self._garbage is None else (self._garbage.run(),)
        await aio.together(*collecting, self._work())

    async def _work(self) -> None:
        await self._views.synced()
        if self._garbage is not None:
            await self._garbage.ready.wait()
        self.ready.set()
        await aio.together(*(each.run() for each in self._controllers))


def _makers() -> list[tuple[str, Callable[[ControllerInputs], Controller]]]:
    """Return the name and the maker of every controller, in the order of their start."""

    @cache
    def by_node(views: Views) -> PodsByNode:
        return PodsByNode(views.view_of(PODS, ViewedPod))

    return [
        (names.DEPLOYMENTS, DeploymentController),
        (names.REPLICA_SETS, ReplicaSetController),
        (
            names.REPLICATION_CONTROLLERS,
            partial(ReplicaSetController, resource=REPLICATION_CONTROLLERS),
        ),
        (names.JOBS, JobController),
        (names.CRON_JOBS, CronJobController),
        (names.STATEFUL_SETS, StatefulSetController),
        (names.DAEMON_SETS, DaemonSetController),
        (names.POD_AUTOSCALERS, AutoscalerController),
        (names.POD_GROUPS, PodGroupController),
        (names.ELASTIC_QUOTAS, ElasticQuotaController),
        (names.ENDPOINTS, EndpointsController),
        (names.ENDPOINTS_MIRROR, EndpointsMirror),
        (names.RESOURCE_CLAIMS, ClaimMaker),
        (names.RESOURCE_CLAIMS, ClaimReleaser),
        (names.NODE_LIFECYCLE, NodeLifecycle),
        (names.TAINT_EVICTION, lambda around: TaintEviction(around, by_node(around.views))),
        (names.POD_COLLECTOR, lambda around: PodCollector(around, by_node(around.views))),
        (names.SERVICE_ACCOUNTS, DefaultAccounts),
        (names.ACCOUNT_TOKENS, TokenSecrets),
        (names.ROOT_CERTIFICATES, CertificatePublisher),
    ]

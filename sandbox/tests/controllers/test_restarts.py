"""Controllers that are stopped anywhere and started again end where one run would have."""

from __future__ import annotations

import pytest

from moorage.api.resources import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.controllers.cluster import ClusterControllers
from moorage_sandbox.controllers.workloads import WorkloadControllers
from moorage_sandbox.testing.builders import node_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from sandbox.tests.controllers.cluster import every, stored, workload
from sandbox.tests.controllers.test_job import job


def settled(cluster: VirtualCluster) -> bool:
    """Whether all three workloads are what they should be."""
    deployment = stored(cluster, DEPLOYMENTS, "web").get("status", {})
    stateful = stored(cluster, STATEFUL_SETS, "db").get("status", {})
    work = stored(cluster, JOBS, "work").get("status", {})
    complete = any(each["type"] == "Complete" for each in work.get("conditions") or [])
    return complete and (deployment.get("availableReplicas"), stateful.get("readyReplicas")) == (
        6,
        3,
    )


@pytest.mark.parametrize("seed", range(6))
def test_stopped_and_started_again_and_again(seed):
    clock = ManualClock()
    rng = Streams(seed).stream("stops")

    async def main() -> None:
        async with VirtualCluster(
            clock, nodes=[node_manifest("n1"), node_manifest("n2")]
        ) as cluster:
            await cluster.create_objects(
                workload("Deployment", replicas=6),
                workload("StatefulSet", "db", replicas=3),
                job(seconds=1, completions=20, parallelism=5),
            )
            for round_ in range(40):
                if settled(cluster):
                    break
                tasks = TaskOwner()
                made = ClusterControllers(
                    cluster.client,
                    clock=clock,
                    streams=Streams(round_),
                    parts=(WorkloadControllers,),
                )
                tasks.spawn(made.run(), name="controllers")
                # From before the views are listed to the midst of some batch of writes.
                await aio.sleep(rng.choice((0.004, 0.01, 0.02, 0.05, 1.5, 3)))
                await tasks.cancel_all()
            assert settled(cluster)
            assert len(every(cluster, REPLICA_SETS)) == 1
            status = stored(cluster, JOBS, "work")["status"]
            assert (status["succeeded"], status.get("failed", 0)) == (20, 0)
            jobs = [
                each
                for each in every(cluster, PODS)
                if each["metadata"]["labels"].get("job-name") == "work"
            ]
            assert len(jobs) == 20
            assert len(every(cluster, PODS)) == 29

    run_virtual(main(), clock)

"""What scenarios about preemption in company share: slow victims, and owners that remake them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage.plugins.in_tree import in_tree_registry
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.controllers.cluster import ALL
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests.scenarios.test_preemption import Seen, priority, watched

Scenario = Callable[["Company"], Awaitable[None]]

HIGH = 1000


class Company:
    """A cluster with controllers, and the pods that were evicted in it.

    Attributes
    ----------
    cluster
        The cluster.
    seen
        What a watch showed of its pods.
    """

    def __init__(self, cluster: VirtualCluster, seen: Seen) -> None:
        self.cluster = cluster
        self.seen = seen

    @property
    def evicted(self) -> list[str]:
        """Names of the pods that were evicted for others, sorted."""
        marked = self.seen.marked.items()
        return sorted(name for name, reason in marked if reason == "PreemptionByScheduler")

    def placed(self, prefix: str) -> list[str]:
        """Return the nodes of the pods whose names begin so, sorted; "" for each without one."""
        found = self.cluster.placements().items()
        return sorted(node for key, node in found if key.partition("/")[2].startswith(prefix))

    async def create(self, *objects: Manifest) -> None:
        """Create objects, one after the other."""
        await self.cluster.create_objects(*objects)

    async def run(self, prefix: str, count: int = 1, *, seconds: float = 30.0) -> float:
        """Wait until so many pods whose names begin so run; return the seconds."""
        began = self.cluster.seconds

        def running() -> int:
            # Fields that selectors know: all pods are looked at each time `until` looks.
            return sum(
                record.fields.get("status.phase") == "Running"
                for record in pods.records()
                if record.key[1].startswith(prefix)
            )

        pods = self.cluster.server.store.shelf("pods")
        await self.cluster.until(lambda: running() == count, seconds=seconds)
        return self.cluster.seconds - began

    async def nominate(self, name: str, node: str) -> None:
        """Wait until a pod is nominated to a node."""
        await self.cluster.until(lambda: self.seen.nominated.get(name, [])[-1:] == [node])

    async def restart(self, config: LoadedConfiguration | None = None) -> None:
        """End the scheduler, and start another one that knows nothing but what the server has."""
        (running,) = [task for task in asyncio.all_tasks() if task.get_name() == "scheduler"]
        running.cancel()
        await asyncio.wait([running])
        cluster = self.cluster
        cluster.scheduler = scheduler_over(
            InProcessTransport(cluster.server),
            config or LoadedConfiguration(),
            in_tree_registry(),
            clock=cluster.clock,
            streams=Streams(9),
            host="second",
        )
        cluster.parts.spawn(cluster.scheduler.run(), name="scheduler")
        await cluster.scheduler.ready.wait()

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await aio.sleep(seconds)


def play(
    scenario: Scenario, *, nodes: Sequence[Manifest], config: LoadedConfiguration | None = None
) -> None:
    """Run a scenario in virtual time, with controllers and the class `high`."""
    clock = ManualClock()

    async def main() -> None:
        async with (
            VirtualCluster(clock, nodes=nodes, config=config, controllers=ALL) as cluster,
            watched(cluster) as seen,
        ):
            await cluster.create_objects(priority("high", HIGH))
            await scenario(Company(cluster, seen))
            cluster.scheduler.core.queue.validate()
            cluster.scheduler.core.cache.validate()

    run_virtual(main(), clock)


def made(name: str, *, stops: float = 0, high: bool = False, **fields: Any) -> Manifest:
    """Return a pod that stops after some seconds when it is evicted."""
    annotations = {**fields.pop("annotations", {}), STOP_SECONDS: str(stops)}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 60, **fields}
    if high:
        spec["priorityClassName"] = "high"
    return pod_manifest(name, annotations=annotations, **spec)


def replicas(count: int, pod: Manifest, *, namespace: str = "default") -> Manifest:
    """Return a ReplicaSet of a pod's name with pods like it."""
    name = pod["metadata"]["name"]
    labels = {**pod["metadata"].get("labels", {}), "set": name}
    metadata = {"labels": labels, "annotations": pod["metadata"].get("annotations", {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"set": name}},
            "template": {"metadata": metadata, "spec": pod["spec"]},
        },
    }

"""The load of a measurement of hand-overs: pods that come and go on nodes that are nearly full.

A cluster with little free room shows at once if two schedulers give the same room away. The load
looks at every change of every pod, in the server's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from moorage.api.meta import ObjectReference
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.client.follow import Follower
from moorage.client.reflectors import Reflectors
from moorage.client.writes import Client
from moorage.nodeshapes.templates import default_nodes
from moorage_lab.bench.handover.plan import POD_CPU, HandoverPlan
from moorage_lab.bench.timing import Stopwatch
from moorage_sandbox.nodeagent.agents import NodeAgents

NAMESPACE = "default"
_IN_FLIGHT = 16  # concurrent creations while the cluster is filled
_LEASE_SECONDS = 60  # no node controller needs faster renewals, which would only add load
_LOOK_SECONDS = 0.1


class HandoverLoad:
    """The load, and what it has seen.

    Parameters
    ----------
    client
        Verbs of the API server.
    plan
        The nodes and the rate of pods.
    clock, streams
        Time and randomness.

    Attributes
    ----------
    created
        Number of pods created.
    overcommitted, refused
        Nodes that had more requests than allocatable, and pods that a kubelet refused.
    """

    def __init__(
        self, client: Client, plan: HandoverPlan, *, clock: Clock, streams: Streams
    ) -> None:
        self._client = client
        self._plan = plan
        self._clock = clock
        self._streams = streams
        self._failures: list[BaseException] = []
        self._tasks = TaskOwner(lambda _name, error: self._failures.append(error))
        self._coming = TaskOwner(lambda _name, error: self._failures.append(error))
        self._pods_expected: dict[str, Pod | None] = {}
        self._nodes_of: dict[str, str] = {}
        self._taken: Counter[str] = Counter()
        self.created = 0
        self.overcommitted: dict[str, None] = {}
        self.refused: dict[str, None] = {}

    async def start(self) -> None:
        """Start the nodes and the watch, and fill the cluster."""
        resources = {"cpu": str(self._plan.node_cpu), "memory": "64Gi", "pods": "110"}
        agents = NodeAgents(
            self._client,
            default_nodes(self._plan.nodes, resources=resources),
            clock=self._clock,
            streams=self._streams,
            renew_seconds=_LEASE_SECONDS,
        )
        self._tasks.spawn(agents.run(), name="nodes")
        await agents.registered.wait()
        made = Reflectors(
            self._client.transport, clock=self._clock, streams=self._streams, prefix="handover"
        )
        watch = made.reflector_of(PODS, Pod, Follower(self._observe, self._gone))
        self._tasks.spawn(watch.run(), name="watch pods")
        await watch.synced.wait()
        filling = [
            self._coming.spawn(self._fill(), name=f"fill {number}") for number in range(_IN_FLIGHT)
        ]
        for task in filling:
            await task

    def come_and_go(self) -> None:
        """Let pods come and go from now on."""
        self._coming.spawn(self._come_and_go(), name="pods come and go")

    async def end_arrivals(
        self, *, seconds: float, meanwhile: Callable[[], Awaitable[None]]
    ) -> list[str]:
        """Let no further pod come; return the pods that have no node in the end.

        Parameters
        ----------
        seconds
            Longest wait for the last pods to be bound.
        meanwhile
            Called again and again during the wait.
        """
        await self._coming.cancel_all()
        watch = Stopwatch(self._clock.monotonic_ns)
        while self._without_node() and watch.seconds < seconds:
            self.raise_failure()
            await meanwhile()
            await aio.sleep(_LOOK_SECONDS)
        return self._without_node()

    async def stop(self) -> None:
        """End nodes, watches and pods to come."""
        await self._coming.cancel_all()
        await self._tasks.cancel_all()

    def raise_failure(self) -> None:
        """Raise the failure of a part of the load, if there is one."""
        if self._failures:
            raise self._failures[0]

    def _without_node(self) -> list[str]:
        return [
            name
            for name, pod in self._pods_expected.items()
            if pod is None or not pod.spec.node_name
        ]

    async def _fill(self) -> None:
        while self.created < self._plan.pod_count:
            await self._create()

    async def _come_and_go(self) -> None:
        pause = 1 / self._plan.pods_per_second
        next_ns = self._clock.monotonic_ns()
        while True:
            next_ns += int(pause * NS_PER_SECOND)
            await aio.sleep(max(0.0, (next_ns - self._clock.monotonic_ns()) / NS_PER_SECOND))
            if len(self._pods_expected) >= self._plan.pod_count:
                await self._delete_oldest()
            await self._create()

    async def _create(self) -> None:
        self.created += 1
        name = f"p-{self.created}"
        self._pods_expected[name] = None
        await self._client.create(PODS, _pod(name), namespace=NAMESPACE)

    async def _delete_oldest(self) -> None:
        """Delete the oldest pod that is bound; a pod that waits is wanted on."""
        for name, pod in self._pods_expected.items():
            if pod is not None and pod.spec.node_name:
                del self._pods_expected[name]
                target = ObjectReference(namespace=NAMESPACE, name=name, uid=pod.uid)
                await self._client.delete_pod(target, grace_seconds=0)
                return

    def _observe(self, pod: Pod) -> None:
        if pod.name in self._pods_expected:
            self._pods_expected[pod.name] = pod
        if pod.status.phase == "Failed":
            self.refused[f"{pod.name} on {pod.spec.node_name}: {pod.status.reason}"] = None
        node_name = pod.spec.node_name
        if not node_name or pod.uid in self._nodes_of:
            return
        self._nodes_of[pod.uid] = node_name
        self._taken[node_name] += POD_CPU
        if self._taken[node_name] > self._plan.node_cpu:
            self.overcommitted[f"{node_name} with pod {pod.name}"] = None

    def _gone(self, pod: Pod) -> None:
        node_name = self._nodes_of.pop(pod.uid, "")
        if node_name:
            self._taken[node_name] -= POD_CPU
        if pod.name in self._pods_expected:
            self._failures.append(MoorageError(f"pod {pod.name} vanished"))


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/handover:1"}
    requests = {"cpu": str(POD_CPU), "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [{**container, "resources": {"requests": requests}}]},
    }

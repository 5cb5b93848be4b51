"""What scenarios about gangs share: groups of each source, profiles, and a cluster to look at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import PODS
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.transport import Transport
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.controllers.cluster import ClusterControllers
from moorage.framework.registry import Registry
from moorage_sandbox.controllers.workloads import WorkloadControllers
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from tests.scenarios.over_https import OverHttps, run_scenario

_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
{profiles}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
profiles:
{own}
"""
_PROFILE = """
- schedulerName: {name}
  plugins:
    multiPoint:
      enabled: [{{name: Coscheduling}}{extra}]
      disabled: [{{name: PrioritySort}}{without}]
  pluginConfig:
  - name: Coscheduling
    args: {args}
"""


def coscheduling(
    mode: str = "trial",
    *,
    args: str = "{}",
    names: Sequence[str] = ("default-scheduler",),
    extra: str = "",
    without: str = "",
) -> LoadedConfiguration:
    """Return a configuration whose profiles have Coscheduling, and one plugin more or less."""
    more, less = (f", {{name: {plugin}}}" if plugin else "" for plugin in (extra, without))
    profiles = "".join(
        _PROFILE.format(name=name, args=args, extra=more, without=less) for name in names
    )
    own = "\n".join(f"- {{schedulerName: {name}, groupMode: {mode}}}" for name in names)
    return parse_config(_CONFIG.format(profiles=profiles, own=own))


def pod_group(name: str = "g", *, least: int, **spec: Any) -> Manifest:
    """Return a PodGroup of scheduling.x-k8s.io."""
    return {
        "apiVersion": COSCHEDULING_POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": least, **spec},
    }


def of_object(name: str, *, of: str = "g", least: int = 0, **fields: Any) -> Manifest:
    """Return a pod that names a PodGroup by the label of today."""
    del least
    return pod_manifest(name, labels={"scheduling.x-k8s.io/pod-group": of}, **_plain(fields))


def of_object_as_before(name: str, *, of: str = "g", least: int = 0, **fields: Any) -> Manifest:
    """Return a pod that names a PodGroup by the label in use until 2022."""
    del least
    return pod_manifest(name, labels={"pod-group.scheduling.sigs.k8s.io": of}, **_plain(fields))


def of_labels(name: str, *, of: str = "g", least: int | str, **fields: Any) -> Manifest:
    """Return a pod that names a group and its minimum, as in 2020."""
    prefix = "pod-group.scheduling.sigs.k8s.io"
    labels = {f"{prefix}/name": of, f"{prefix}/min-available": str(least)}
    return pod_manifest(name, labels=labels, **_plain(fields))


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {"cpu": "1", **fields}


class Cluster(VirtualCluster):
    """A cluster with groups."""

    async def create_objects(self, *objects: Manifest) -> None:
        """Create objects, PodGroups of coscheduling among them."""
        for obj in objects:
            if obj["apiVersion"] == COSCHEDULING_POD_GROUPS.api_version:
                await self.client.create(COSCHEDULING_POD_GROUPS, obj, namespace="default")
            else:
                await super().create_objects(obj)

    async def delete(self, *names: str) -> None:
        """Delete pods."""
        for name in names:
            await self.client.delete(PODS, name, namespace="default")

    def bound(self, *names: str) -> int:
        """Count those of some pods that have a node."""
        return sum(bool(self.node_of(name)) for name in names)

    def message_of(self, name: str) -> str:
        """Return what the condition of a pod says."""
        return self.condition_of(name)[2]

    def settled(self) -> None:
        """Check the books."""
        core = self.scheduler.core
        core.snapshot.groups.validate()
        core.queue.validate()
        core.cache.validate()


def nodes(count: int, *, cpu: str = "1") -> list[Manifest]:
    """Return nodes with room for one member each, unless told otherwise."""
    return [node_manifest(f"n{index}", cpu=cpu, memory="8Gi") for index in range(count)]


class ClusterOverHttps(OverHttps, Cluster):
    """The same, over HTTPS."""


class Play(Protocol):
    """Runs a scenario and checks the books at its end."""

    def __call__(
        self,
        scenario: Callable[[Cluster], Awaitable[None]],
        *,
        cluster: Sequence[Manifest],
        config: LoadedConfiguration,
        registry: Registry | None = None,
        around: Callable[[Transport], Transport] | None = None,
    ) -> None:
        """Run it on a cluster of these nodes; the rest is for `VirtualCluster`."""


def play(scenario: Callable[[Cluster], Awaitable[None]], **settings: Any) -> None:
    """Run a scenario in virtual time (see `Play`)."""
    _play(scenario, settings, https=False)


def play_over_https(scenario: Callable[[Cluster], Awaitable[None]], **settings: Any) -> None:
    """Run a scenario over HTTPS (see `Play`)."""
    _play(scenario, settings, https=True)


def _play(
    scenario: Callable[[Cluster], Awaitable[None]],
    settings: dict[str, Any],
    *,
    https: bool,
) -> None:
    made_by = ClusterOverHttps if https else Cluster
    nodes_of_it = settings.pop("cluster")

    async def main(clock: Clock) -> None:
        async with made_by(clock, nodes=nodes_of_it, **settings) as live:
            await scenario(live)
            live.settled()

    run_scenario(main, https=https)


@asynccontextmanager
async def controllers(live: Cluster | VirtualCluster) -> AsyncIterator[None]:
    """Run the controllers of workloads and claims beside a cluster."""
    tasks = TaskOwner(lambda _name, _error: None)
    made = ClusterControllers(
        live.client, clock=live.clock, streams=Streams(5), parts=(WorkloadControllers,)
    )
    try:
        tasks.spawn(made.run(), name="controllers")
        await made.ready()
        yield
    finally:
        await tasks.cancel_all()

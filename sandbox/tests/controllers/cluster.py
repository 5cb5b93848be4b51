"""A cluster in virtual time with the controllers of workloads beside it, and manifests for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moorage.api.resources import PODS, ResourceType
from moorage.base.clock import ManualClock
from moorage.client.transport import Transport
from moorage.controllers.cluster import MakePart
from moorage_sandbox.cluster.assembly import CONTROLLERS, in_process
from moorage_sandbox.cluster.in_process import Handling
from moorage_sandbox.controllers.volumes import VolumeControllers
from moorage_sandbox.controllers.workloads import WorkloadControllers
from moorage_sandbox.testing.builders import node_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

Scenario = Callable[[VirtualCluster], Awaitable[None]]


def play(
    scenario: Scenario,
    *,
    nodes: Sequence[dict[str, Any]] | None = None,
    volumes: bool = False,
    authority: str = "",
    around: Callable[[Transport], Transport] | None = None,
) -> None:
    """Run a scenario in a cluster of three nodes, or of those given, with controllers.

    `around` wraps the transport of the controllers.
    """
    clock = ManualClock()
    controllers: list[MakePart] = [WorkloadControllers, *([VolumeControllers] if volumes else [])]
    given = [node_manifest(f"n{i}") for i in (1, 2, 3)] if nodes is None else nodes

    def connect(server: Handling, program: str) -> Transport:
        transport = in_process(server, program)
        return transport if around is None or program != CONTROLLERS else around(transport)

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=given,
            controllers=controllers,
            connect=connect,
            authority=authority.encode(),
        ) as cluster:
            await scenario(cluster)

    run_virtual(main(), clock)


def template(app: str = "web", *, image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    """Return a pod template with the label ``app``."""
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "10m"}}}
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [container], **spec},
    }


def workload(kind: str, name: str = "web", *, image: str = "nginx:1", **spec: Any) -> Any:
    """Return an ``apps/v1`` object that selects its pods by ``app: <name>``."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, image=image),
            **spec,
        },
    }


def stored(cluster: VirtualCluster, resource: ResourceType, name: str) -> Any:
    """Return an object of the namespace ``default`` as the server has it, {} if it is not there."""
    record = cluster.server.store.shelf(resource.qualified).get(
        ("default" if resource.namespaced else "", name)
    )
    return {} if record is None else record.decode()


def every(cluster: VirtualCluster, resource: ResourceType, namespace: str = "default") -> list[Any]:
    """Return all objects of a namespace, by name."""
    found = cluster.server.store.shelf(resource.qualified).records(
        namespace if resource.namespaced else ""
    )
    return sorted((each.decode() for each in found), key=lambda obj: obj["metadata"]["name"])


def pods(cluster: VirtualCluster) -> list[Any]:
    """Return the pods of the namespace ``default`` that are not being deleted, by name."""
    return [each for each in every(cluster, PODS) if "deletionTimestamp" not in each["metadata"]]


def running(cluster: VirtualCluster) -> list[str]:
    """Return the names of the pods that run and are not being deleted."""
    return [
        each["metadata"]["name"]
        for each in pods(cluster)
        if each.get("status", {}).get("phase") == "Running"
    ]

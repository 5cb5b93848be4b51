"""A server that is upgraded to 1.37, or back to 1.36, under a running scheduler.

The next server has the objects of the last one, as from a data directory. Covered: the scheduler
reads groups in the version that is served now, and no pod is lost. Left out: the journal.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.kinds.built_in import resource_type
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.requests import Request
from moorage_sandbox.cluster.assembly import in_process
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

GROUPS = {"1.36": "scheduling.k8s.io/v1alpha2", "1.37": "scheduling.k8s.io/v1beta1"}
GATES = {"1.36": ("GenericWorkload", "GangScheduling"), "1.37": ("GenericWorkload",)}
CONDITION = {"1.36": "PodGroupScheduled", "1.37": "PodGroupInitiallyScheduled"}
MODE = {"1.36": "PodGroup", "1.37": {"all": {}}}


class Restored:
    """The content of a store, as a journal gives it back."""

    def __init__(self, server: ApiServer) -> None:
        self._store = server.store

    def version(self) -> int:
        return self._store.version

    def records(self) -> Any:
        return list(self._store.all_records())


class Upgradable:
    """Answers as the server of now."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.now: ApiServer | None = None

    def play(self, version: str) -> ApiServer:
        """Begin the next server, which plays a version, with the objects of the last one."""
        before = self.now
        assert before is not None
        kinds = served_kinds(of_1_37=version == "1.37")
        self.now = ApiServer(kinds, clock=self._clock, streams=Streams(2))
        self.now.restore(Restored(before))  # type: ignore[arg-type]
        before.close()
        return self.now

    async def handle(self, request: Request) -> Any:
        assert self.now is not None
        return await self.now.handle(request)


async def make(cluster: VirtualCluster, name: str, version: str) -> None:
    """Create a group of two members in the API version of a server."""
    group = {
        "apiVersion": GROUPS[version],
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": MODE[version]},
    }
    resource = resource_type(GROUPS[version], "podgroups")
    await cluster.client.create(resource, group, namespace="default")
    for number in range(2):
        member: Any = {"schedulingGroup": {"podGroupName": name}}
        await cluster.create_objects(pod_manifest(f"{name}-{number}", cpu="2", **member))


@pytest.mark.parametrize(("before", "after"), [("1.36", "1.37"), ("1.37", "1.36")])
def test_groups_are_read_on_and_no_pod_is_lost(before: str, after: str) -> None:
    clock = ManualClock()
    served = Upgradable(clock)
    gates = feature_gates(dict.fromkeys(GATES[before], True), before)

    def connect(server: Any, program: str) -> Any:
        served.now = served.now or server
        return in_process(served, program)

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=[node_manifest("n1", cpu="3")],
            config=LoadedConfiguration(gates=gates),
            connect=connect,
        ) as cluster:
            await make(cluster, "early", before)
            await aio.sleep(5)
            assert not cluster.node_of("early-0")
            cluster.server = served.play(after)
            await aio.sleep(60)
            groups = cluster.scheduler.core.snapshot.listers.pod_groups
            kept = groups.get("early", namespace="default")
            assert kept is not None
            assert kept.spec.disrupted_whole
            await make(cluster, "late", after)
            await cluster.play([node_manifest(f"n{n}", cpu="3") for n in (2, 3, 4)])
            names = [f"{name}-{number}" for name in ("early", "late") for number in range(2)]
            await cluster.until(lambda: all(map(cluster.node_of, names)), seconds=120)
            await aio.sleep(5)
            for name in ("early", "late"):
                resource = resource_type(GROUPS[after], "podgroups")
                shown: Any = await cluster.client.get(resource, name, namespace="default")
                [condition] = shown["status"]["conditions"]
                assert (condition["type"], condition["status"]) == (CONDITION[before], "True")

    run_virtual(main(), clock)

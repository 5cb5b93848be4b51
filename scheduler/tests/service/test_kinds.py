"""The kinds watched besides nodes and pods: the table, and a server that lacks one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.service.intake.kinds import WATCHED
from moorage.snapshot.listers import Listers
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import ScriptedTransport, Stream, failure

# Watched only where a feature gate, a plugin or a setting asks for it.
GATED = {
    "pod_groups",
    "composite_pod_groups",
    "device_taint_rules",
    "elastic_quotas",
    "coscheduling_groups",
    "node_topologies",
    "jobs",
}


def test_every_lister_has_its_kind():
    listers = {name for name, value in vars(Listers()).items() if hasattr(value, "put")}
    assert sorted(kind.lister for kind in WATCHED) == sorted(listers - GATED)


def test_no_kind_is_watched_twice():
    watched = [kind.resource.qualified for kind in WATCHED]
    assert len(watched) == len(set(watched))


def test_the_oldest_supported_server_serves_all_kinds_but_devices():
    """1.28; a kind that comes later needs a row in the reference of what works without it."""
    later = [kind.lister for kind in WATCHED if tuple(map(int, kind.since.split("."))) > (1, 28)]
    assert later == ["device_classes", "resource_slices", "resource_claims"]


class Lacking:
    """A server without some resource types, until it is upgraded."""

    def __init__(self, inner: Transport, *plurals: str) -> None:
        self.inner = inner
        self.plurals = plurals

    def _lacks(self, call: Call) -> bool:
        return call.path.endswith(self.plurals)

    async def request(self, call: Call) -> Answer:
        if self._lacks(call):
            return Answer(404, {}, msgspec.json.encode(failure(404, "NotFound")))
        return await self.inner.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        refusing = ScriptedTransport(Stream(failure(404, "NotFound"), status=404))
        async with (refusing if self._lacks(call) else self.inner).stream(call) as lines:
            yield lines

    async def close(self) -> None:
        await self.inner.close()


def test_scheduling_works_with_a_server_that_lacks_kinds(caplog: pytest.LogCaptureFixture):
    clock = ManualClock()
    servers: list[Lacking] = []

    def old_server(inner: Transport) -> Transport:
        servers.append(Lacking(inner, "/csistoragecapacities", "/poddisruptionbudgets"))
        return servers[0]

    async def main() -> None:
        nodes = [node_manifest("n1")]
        async with VirtualCluster(clock, nodes=nodes, around=old_server) as cluster:
            await cluster.create_objects(pod_manifest("p"))
            await aio.sleep(2)
            assert cluster.node_of("p") == "n1"
            budget = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "b", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
            }
            await cluster.create_objects(budget)
            found = cluster.scheduler.core.snapshot.listers.pod_disruption_budgets
            await aio.sleep(100)
            assert list(found.all()) == []
            servers[0].plurals = ("/nothing",)  # the server was upgraded
            await aio.sleep(61)
            assert [each.name for each in found.all()] == ["b"]

    run_virtual(main(), clock)
    lacking = [
        each.getMessage() for each in caplog.records if "does not serve" in each.getMessage()
    ]
    assert lacking == [
        f"the API server does not serve {name}: going on without, and asking again every 60 seconds"
        for name in (
            "csistoragecapacities of storage.k8s.io/v1",
            "poddisruptionbudgets of policy/v1",
        )
    ]


@pytest.mark.parametrize("plural", ["/nodes", "/pods"])
def test_without_nodes_and_pods_nothing_is_scheduled(plural: str):
    clock = ManualClock()

    async def main() -> bool:
        cluster = VirtualCluster(clock, around=lambda inner: Lacking(inner, plural))
        tasks = aio.TaskOwner()
        tasks.spawn(cluster.scheduler.run(), name="scheduler")
        await aio.sleep(300)
        ready = cluster.scheduler.ready.is_set()
        await tasks.cancel_all()
        return ready

    assert run_virtual(main(), clock) is False

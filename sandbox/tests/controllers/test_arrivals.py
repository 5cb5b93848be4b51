"""Owners that appear together with their pods, as from a snapshot, keep these pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from moorage.api.resources import DAEMON_SETS, JOBS, PODS, REPLICA_SETS, ResourceType
from moorage.base import aio
from moorage.client.transport import Call, LineStream, Transport
from moorage_sandbox.apiserver.loading import SNAPSHOT_PATH
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, running, workload
from sandbox.tests.controllers.test_job import job

OWNERS = {
    "replica set": (REPLICA_SETS, workload("ReplicaSet", replicas=4), 4),
    "daemon set": (DAEMON_SETS, workload("DaemonSet"), 3),
    "job": (JOBS, job(seconds=9000, completions=3, parallelism=3), 3),
}


class LatePods:
    """A transport whose watch of pods is a second late for each change."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.request = transport.request
        self.close = transport.close

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with self._transport.stream(call) as lines:
            yield _LateLines(lines) if call.path.endswith("/pods") else lines


class _LateLines:
    def __init__(self, lines: LineStream) -> None:
        self._lines = lines
        self.status = lines.status
        self.headers = lines.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._lines:
            await aio.sleep(1)
            yield line


@pytest.mark.parametrize("first", ["the owner", "its pods"])
@pytest.mark.parametrize(("resource", "manifest", "count"), OWNERS.values(), ids=OWNERS.keys())
def test_a_loaded_owner_keeps_its_pods_and_makes_no_others(resource, manifest, count, first):
    objects = _running_objects(resource, manifest, count)
    if first == "its pods":
        objects.reverse()

    async def loaded(cluster: VirtualCluster) -> None:
        piece = {"begin": True, "store": True, "objects": objects}
        answer = await cluster.transport.request(
            Call("POST", SNAPSHOT_PATH, body=msgspec.json.encode(piece))
        )
        assert msgspec.json.decode(answer.body)["stored"] == count + 1
        before = {each["metadata"]["uid"] for each in objects if each["kind"] == "Pod"}
        for _ in range(30):
            await aio.sleep(1)
            assert {each["metadata"]["uid"] for each in every(cluster, PODS)} == before

    play(loaded, around=LatePods)


def _running_objects(resource: ResourceType, manifest: Any, count: int) -> list[Any]:
    """Return an owner with a status, and its pods, from a cluster where they run."""
    objects: list[Any] = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(manifest)
        await cluster.until(lambda: len(running(cluster)) == count)
        await aio.sleep(5)
        for each in (resource, PODS):
            head = {"apiVersion": each.api_version, "kind": each.kind}
            objects.extend(head | obj for obj in every(cluster, each))

    play(scenario)
    return objects

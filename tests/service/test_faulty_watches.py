"""A whole scheduler on watches that repeat, lose and break: in the end it believes what is so.

Nodes and pods come, change and go, also under the same name, while the streams of every kind are
broken off, told twice, refused, or lose events. When the faults stop and each kind has been listed
once more, cache and queue agree with the server, and every pod is bound or has been told why not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.base.rng import Random, Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.testing.builders import node_manifest, pod_manifest
from moorage.testing.virtual_cluster import VirtualCluster
from moorage.testing.virtual_loop import run_virtual
from tests.client.fakes import failure

STEPS = 60


class Faulty:
    """Hands on calls; what a watch says may be said twice, be lost, or be its last word."""

    def __init__(self, inner: Transport, rng: Random) -> None:
        self.inner = inner
        self.rng = rng
        self.faults: dict[str, int] = {}
        self.broken = True

    async def request(self, call: Call) -> Answer:
        return await self.inner.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with self.inner.stream(call) as lines:
            yield _Lines(self, lines)

    async def close(self) -> None:
        await self.inner.close()

    def count(self, fault: str) -> None:
        self.faults[fault] = self.faults.get(fault, 0) + 1


class _Lines:
    def __init__(self, faulty: Faulty, inner: LineStream) -> None:
        self._faulty = faulty
        self._inner = inner
        self.status = inner.status
        self.headers: Mapping[str, str] = inner.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        faulty, born_broken = self._faulty, self._faulty.broken
        async for line in self._inner:
            # A list in the form of a watch is told whole; what follows it may go wrong.
            listing = b"initial-events-end" in line or not born_broken
            fault = faulty.rng.random() if not listing else 1.0
            if born_broken and not faulty.broken:
                # Faults have stopped: whoever may have lost something is made to list anew.
                yield msgspec.json.encode({"type": "ERROR", "object": failure(410, "Expired")})
                return
            if fault < 0.1:
                faulty.count("twice")
                yield line
            elif fault < 0.15:
                faulty.count("lost")
                continue
            elif fault < 0.2:
                faulty.count("reset")
                raise TransportError("connection reset")
            elif fault < 0.25:
                faulty.count("expired")
                yield msgspec.json.encode({"type": "ERROR", "object": failure(410, "Expired")})
                return
            yield line


async def shake(cluster: VirtualCluster, rng: Random) -> None:
    """Change the cluster at random, nodes and pods under few names."""
    for _ in range(STEPS):
        name = rng.choice("abcdef")
        draw = rng.random()
        if draw < 0.45:
            if cluster.pod(name) is None:
                await cluster.create(pod_manifest(name, cpu=rng.choice(["1", "2", "64"])))
            else:
                await cluster.client.delete(PODS, name, namespace="default")
        elif draw < 0.6 and cluster.pod(name) is not None:
            labels = {"metadata": {"labels": {"n": str(rng.randrange(9))}}}
            await cluster.patch(PODS, name, labels, namespace="default")
        elif draw < 0.8:
            node = rng.choice(["n1", "n2"])
            labels = {"metadata": {"labels": {"n": str(rng.randrange(9))}}}
            await cluster.patch(NODES, node, labels)
        await aio.sleep(rng.random() * 2)


@pytest.mark.parametrize("seed", range(3))
def test_belief_is_mended_when_the_faults_stop(seed: int) -> None:
    clock, rng = ManualClock(), Streams(seed).stream("faults")
    made: list[Faulty] = []

    def around(inner: Transport) -> Transport:
        made.append(Faulty(inner, rng))
        return made[0]

    async def main() -> None:
        nodes = [node_manifest(name, cpu="8") for name in ("n1", "n2")]
        async with VirtualCluster(clock, nodes=nodes, around=around, seed=seed) as cluster:
            await shake(cluster, Streams(seed).stream("changes"))
            made[0].broken = False
            for node in ("n1", "n2"):  # something to say on every stream, so that each ends
                await cluster.patch(NODES, node, {"metadata": {"labels": {"last": "word"}}})
            await cluster.create(pod_manifest("last"))
            await aio.sleep(400)
            core = cluster.scheduler.core
            core.cache.validate()
            core.queue.validate()
            mismatch = cluster.scheduler.compare()
            assert mismatch.empty, mismatch
            for key, node in cluster.placements().items():
                status, reason, _ = cluster.condition_of(key.split("/")[1])
                assert (status, bool(node)) == ("True", True) or reason == "Unschedulable"

    run_virtual(main(), clock)
    assert sorted(made[0].faults) == ["expired", "lost", "reset", "twice"]

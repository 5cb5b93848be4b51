"""A whole scheduler on watches that repeat, lose and break: in the end it believes what is so.

Nodes and pods come, change and go, also under the same name, while the streams of every kind are
broken off, told twice, refused, or lose events. When the faults stop and each kind has been listed
once more, cache and queue agree with the server, and every pod is bound or has been told why not.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.rng import Random, Streams
from moorage.client.transport import Answer, Transport
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.faults import Fate, FaultyTransport
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import failure

STEPS = 60
EXPIRED = Answer(410, {}, msgspec.json.encode(failure(410, "Expired")))


FATES: tuple[tuple[float, Fate], ...] = (
    (0.1, "twice"),
    (0.15, "lost"),
    (0.2, "cut"),
    (0.25, "expired"),
)


class Fates:
    """Draws what happens to each line, and counts it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.counts: Counter[Fate] = Counter()

    def draw(self, line: bytes) -> Fate:
        # The line that ends a list in the form of a watch is always told.
        if b"initial-events-end" in line:
            return "told"
        drawn = self._rng.random()
        fate: Fate = next((fate for most, fate in FATES if drawn < most), "told")
        self.counts[fate] += 1
        return fate


async def stop_faults(faulty: FaultyTransport) -> None:
    """Let the wire work again, after a time in which every stream ends and no watch goes on."""
    faulty.end_faults()
    faulty.faults.answers["WATCH"] = EXPIRED
    faulty.cut()
    await aio.sleep(5)
    faulty.end_faults()


async def shake(cluster: VirtualCluster, rng: Random) -> None:
    """Change the cluster at random, nodes and pods under few names."""
    for _ in range(STEPS):
        name = rng.choice("abcdef")
        draw = rng.random()
        if draw < 0.45:
            if cluster.stored_pod(name) is None:
                await cluster.create_objects(pod_manifest(name, cpu=rng.choice(["1", "2", "64"])))
            else:
                await cluster.client.delete(PODS, name, namespace="default")
        elif draw < 0.6 and cluster.stored_pod(name) is not None:
            labels = {"metadata": {"labels": {"n": str(rng.randrange(9))}}}
            await cluster.patch_object(PODS, name, labels, namespace="default")
        elif draw < 0.8:
            node = rng.choice(["n1", "n2"])
            labels = {"metadata": {"labels": {"n": str(rng.randrange(9))}}}
            await cluster.patch_object(NODES, node, labels)
        await aio.sleep(rng.random() * 2)


@pytest.mark.parametrize("seed", range(3))
def test_belief_is_mended_when_the_faults_stop(seed: int) -> None:
    clock, rng = ManualClock(), Streams(seed).stream("faults")
    fates = Fates(rng)
    made: list[FaultyTransport] = []

    def around(inner: Transport) -> Transport:
        made.append(FaultyTransport(inner))
        made[0].faults.fate = fates.draw
        return made[0]

    async def main() -> None:
        nodes = [node_manifest(name, cpu="8") for name in ("n1", "n2")]
        async with VirtualCluster(clock, nodes=nodes, around=around, seed=seed) as cluster:
            await shake(cluster, Streams(seed).stream("changes"))
            await stop_faults(made[0])
            await cluster.create_objects(pod_manifest("last"))
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
    assert sorted(fates.counts) == ["cut", "expired", "lost", "told", "twice"]

"""Groups and single pods come and go at random; no group waits for long while it fits.

After the last event of a random minute, a group that waits although it would fit beside the pods
that are bound may do so for its backoff only. The running pods are then deleted, one group or pod
after another, until all have run. Members of a group are alike, so that their number and the free
room of each node tell whether the group fits.
"""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.resources import NODES, POD_GROUPS
from moorage.base import aio
from moorage.base.rng import Random, Streams
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    of_labels,
    of_object,
    play,
    pod_group,
)

NODE_CPU = (4, 6, 8)
QUIET_SECONDS = 12.5
"""The longest backoff and its rounding."""
TIMEOUT_SECONDS = 60
"""The default at Permit: no group may wait for the timeout of another group."""


class Batch(msgspec.Struct, frozen=True):
    """A group of like pods, or a single pod (size 0)."""

    name: str
    size: int
    cpu: int

    @property
    def pods(self) -> list[str]:
        return [f"{self.name}-{i}" for i in range(self.size)] or [self.name]


class Coming:
    """A cluster on which batches come and go.

    Attributes
    ----------
    here
        Batches that were created and not deleted.
    """

    def __init__(self, live: Cluster, rng: Random, source: str, *, largest: int = 4) -> None:
        self._live = live
        self._rng = rng
        self._source = source
        self._largest = largest
        self._number = 0
        self._cordoned: set[int] = set()
        self.here: dict[str, Batch] = {}

    async def step(self) -> None:
        """Let one thing happen: a group or a pod comes or goes, or a node is closed or opened."""
        what = self._rng.random()
        if what < 0.45:
            await self.create(self._rng.randint(1, self._largest))
        elif what < 0.65:
            await self.create(0)
        elif what < 0.9 and self.here:
            names = sorted(self.here)
            await self.delete(names[self._rng.randint(0, len(names) - 1)])
        else:
            index = self._rng.randint(0, len(NODE_CPU) - 1)
            await self._close(index, closed=index not in self._cordoned)

    async def create(self, size: int) -> None:
        self._number += 1
        batch = Batch(f"b{self._number}", size, self._rng.randint(1, 3))
        self.here[batch.name] = batch
        if size and self._source != "labels":
            await self._live.create_objects(self._group(batch))
        for name in batch.pods:
            await self._live.create_objects(self._pod(batch, name))

    async def delete(self, name: str) -> None:
        await self._live.delete(*self.here.pop(name).pods)

    async def open_nodes(self) -> None:
        for index in sorted(self._cordoned):
            await self._close(index, closed=False)

    async def _close(self, index: int, *, closed: bool) -> None:
        (self._cordoned.add if closed else self._cordoned.remove)(index)
        await self._live.patch_object(NODES, f"n{index}", {"spec": {"unschedulable": closed}})

    def waiting(self) -> list[Batch]:
        return [b for b in self.here.values() if self._live.bound(*b.pods) < len(b.pods)]

    def that_fit(self) -> list[str]:
        """Return the waiting batches that fit beside the bound pods."""
        free = dict(enumerate(NODE_CPU))
        for batch in self.here.values():
            for name in batch.pods:
                node = self._live.node_of(name)
                if node:
                    free[int(node[1:])] -= batch.cpu
        for index in self._cordoned:
            free[index] = 0
        return [
            each.name
            for each in self.waiting()
            if sum(room // each.cpu for room in free.values()) >= len(each.pods)
        ]

    def _group(self, batch: Batch) -> Manifest:
        if self._source == "coscheduling":
            return pod_group(batch.name, least=batch.size)
        return {
            "apiVersion": POD_GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": batch.name, "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": batch.size}}},
        }

    def _pod(self, batch: Batch, name: str) -> Manifest:
        cpu = str(batch.cpu)
        if not batch.size:
            return pod_manifest(name, cpu=cpu)
        if self._source == "labels":
            return of_labels(name, of=batch.name, least=batch.size, cpu=cpu)
        if self._source == "coscheduling":
            return of_object(name, of=batch.name, cpu=cpu)
        return pod_manifest(name, cpu=cpu, schedulingGroup={"podGroupName": batch.name})


def config_of(source: str, mode: str, *, percent: int = 10) -> LoadedConfiguration:
    if source != "api":
        args = (
            f"{{permitWaitingTimeSeconds: {TIMEOUT_SECONDS}, podGroupRejectPercentage: {percent}}}"
        )
        return coscheduling(mode, args=args)
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
    return msgspec.structs.replace(LoadedConfiguration(), gates=gates)


WAYS = [
    pytest.param("api", "trial", id="groups of Kubernetes"),
    pytest.param("coscheduling", "trial", id="coscheduling in one attempt"),
    pytest.param("coscheduling", "permit", id="coscheduling at Permit"),
    pytest.param("labels", "trial", id="labels in one attempt"),
    pytest.param("labels", "permit", id="labels at Permit"),
]


def _slow(*seeds: int) -> list[object]:
    """Return seeds that are played with the slow tests only; a seed takes a second."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds]


@pytest.mark.parametrize("seed", [1, *_slow(5, 6, 15), 31])
@pytest.mark.parametrize(("source", "mode"), WAYS)
def test_no_group_that_fits_waits_longer_than_its_backoff(source: str, mode: str, seed: int):
    come_and_go(source, mode, seed)


@pytest.mark.large
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("source", "mode"), WAYS)
def test_the_same_with_two_hundred_seeds(source: str, mode: str):
    for seed in range(1, 201):
        come_and_go(source, mode, seed)


@pytest.mark.parametrize("seed", [1, 2, *_slow(3, 4)])
@pytest.mark.parametrize("source", ["coscheduling", "labels"])
def test_the_same_at_permit_with_groups_of_up_to_twelve(source: str, seed: int):
    """By default a group of twelve that misses one member keeps its room until the timeout."""
    come_and_go(source, "permit", seed, largest=12, percent=0)


def come_and_go(source: str, mode: str, seed: int, *, largest: int = 4, percent: int = 10) -> None:
    async def scenario(live: Cluster) -> None:
        rng = Streams(seed).stream("groups come and go")
        coming = Coming(live, rng, source, largest=largest)
        await minute(live, coming, rng)
        while coming.here:
            await settled(live, coming, QUIET_SECONDS)
            bound = [each.name for each in coming.here.values() if each not in coming.waiting()]
            if not bound:
                break  # the other groups do not fit on the empty cluster
            await coming.delete(bound[rng.randint(0, len(bound) - 1)])
        assert not coming.that_fit()

    config = config_of(source, mode, percent=percent)
    try:
        play(scenario, cluster=nodes(), config=config)
    except AssertionError as fault:
        fault.add_note(f"{source}, {mode}, seed {seed}")
        raise


@pytest.mark.parametrize("seed", [1, 2, *_slow(3, 4)])
@pytest.mark.parametrize("source", ["coscheduling", "labels"])
def test_at_permit_a_group_that_is_left_alone_starts_within_its_backoff(source: str, seed: int):
    async def scenario(live: Cluster) -> None:
        rng = Streams(seed).stream("groups come and go")
        coming = Coming(live, rng, source)
        await minute(live, coming, rng)
        groups = [each for each in coming.waiting() if each.size]
        left = groups[rng.randint(0, len(groups) - 1)]
        for name in sorted(coming.here):
            if name != left.name:
                await coming.delete(name)
        await settled(live, coming, QUIET_SECONDS)
        assert not coming.waiting()

    play(scenario, cluster=nodes(), config=config_of(source, "permit"))


def nodes() -> list[Manifest]:
    return [node_manifest(f"n{i}", cpu=str(cpu), memory="64Gi") for i, cpu in enumerate(NODE_CPU)]


async def minute(live: Cluster, coming: Coming, rng: Random) -> None:
    """Let random things happen for a minute, then open all nodes."""
    end = live.seconds + 60
    while live.seconds < end:
        await coming.step()
        await aio.sleep(rng.uniform(0, 4))
    await coming.open_nodes()


async def settled(live: Cluster, coming: Coming, seconds: float) -> None:
    """Wait until no waiting group fits; the wait is bounded anew after each group that starts."""
    running, since = -1, live.seconds
    while True:
        now_running = len(coming.here) - len(coming.waiting())
        if now_running != running:
            running, since = now_running, live.seconds
        fitting = coming.that_fit()
        if not fitting:
            return
        assert live.seconds - since < seconds, f"{fitting} fit, {live.placements()}"
        await aio.sleep(0.25)

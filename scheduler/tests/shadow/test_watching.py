"""The watches of a shadow: rights that are missing, limits, and that no write can go out."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import MoorageError, api_error
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.plugins.in_tree import in_tree_registry
from moorage.shadow.feed import Feed
from moorage.shadow.watching import Limits, Watch
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import ClusterObjects
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual


class Forbidding:
    """A transport whose server forbids one kind."""

    def __init__(self, inner: Transport, plural: str) -> None:
        self._inner = inner
        self._plural = plural

    async def request(self, call: Call) -> Answer:
        """Send a call that is allowed."""
        self._check(call)
        return await self._inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream that is allowed."""
        self._check(call)
        return self._inner.stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()

    def _check(self, call: Call) -> None:
        if call.path.endswith(f"/{self._plural}"):
            raise api_error(403, "Forbidden", f"{self._plural} is forbidden")


def watch_of(cluster: VirtualCluster, clock: ManualClock, *, forbidden: str = "") -> Watch:
    inputs = ClusterInputs(
        objects=ClusterObjects(), registry=in_tree_registry(), now_ns=clock.now_ns()
    )
    feed = Feed(inputs, clock, configuration="test")
    transport: Transport = InProcessTransport(cluster.server)
    if forbidden:
        transport = Forbidding(transport, forbidden)
    return Watch(transport, feed, clock=clock, streams=Streams(1))


def test_a_forbidden_kind_is_named_with_the_rights_that_are_needed() -> None:
    clock = ManualClock()

    async def main() -> str:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            watch = watch_of(cluster, clock, forbidden="resourceclaims")
            try:
                with pytest.raises(MoorageError) as raised:
                    await watch.start()
            finally:
                await watch.close()
            return str(raised.value)

    assert run_virtual(main(), clock) == (
        "the server forbids to read resourceclaims: shadow needs get, list and watch on them, "
        "and no other right"
    )


@pytest.mark.parametrize(
    ("limits", "seconds", "decisions"),
    [
        pytest.param(Limits(seconds=5.0), 5, 5, id="a time"),
        pytest.param(Limits(decisions=3), 3, 3, id="a number of decisions"),
        pytest.param(Limits(seconds=2.0, decisions=9), 2, 2, id="whichever comes first"),
    ],
)
def test_it_ends_at_a_limit(limits: Limits, seconds: int, decisions: int) -> None:
    clock = ManualClock()

    async def main() -> tuple[int, int]:
        async with VirtualCluster(clock, nodes=[node_manifest("n1", cpu="32")]) as cluster:
            watch = watch_of(cluster, clock)
            await watch.start()
            owner, began_ns = TaskOwner(), clock.now_ns()

            async def create() -> None:
                for number in range(20):
                    await aio.sleep(0.9)
                    await cluster.create_objects(pod_manifest(f"p{number}"))
                    await aio.sleep(0.1)

            owner.spawn(create(), name="create")
            await watch.follow(limits)
            await owner.cancel_all()
            await watch.close()
            return round((clock.now_ns() - began_ns) / 1e9), watch.feed.tally.outcomes.total()

    assert run_virtual(main(), clock) == (seconds, decisions)


def test_a_write_is_refused_before_it_is_sent() -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock) as cluster:
            watch = watch_of(cluster, clock)
            with pytest.raises(AssertionError, match="nothing is written"):
                await watch.transport.request(Call("DELETE", f"/api/v1/{PODS.plural}"))

    run_virtual(main(), clock)

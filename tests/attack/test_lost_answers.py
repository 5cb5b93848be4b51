"""Bindings through a network that loses calls and answers: each pod ends on one node, none assumed.

A real scheduler speaks HTTP to the embedded server through a proxy that does harm. The times that a
client waits are shortened; nothing here waits for a time, only for what is to happen.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.client.auth import Credential, FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.defaults import default_config
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.scheduler import Scheduler
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from sandbox.tests.apiserver.harness import NODES, PODS
from tests.attack.fuzz import SEED
from tests.attack.proxy import HARMS, LossyProxy
from tests.attack.wire import Wire, listening

ANSWER_SECONDS = 0.5
LATE_SECONDS = 0.8
TEST_SECONDS = 60


class Impatient:
    """A transport that waits for an answer for a short time only."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(self, call: Call) -> Answer:
        """Send a call."""
        binding = call.path.endswith("/binding")
        seconds = ANSWER_SECONDS if binding else call.timeout_seconds
        return await self._inner.request(msgspec.structs.replace(call, timeout_seconds=seconds))

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream."""
        return self._inner.stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()


class Town:
    """A server, a proxy before it, and a scheduler that knows the proxy only."""

    def __init__(self, wire: Wire, proxy: LossyProxy, scheduler: Scheduler) -> None:
        self.wire, self.proxy, self.scheduler = wire, proxy, scheduler

    async def create(self, *names: str) -> None:
        for name in names:
            await self.wire.cluster.ok("POST", PODS, pod_manifest(name, cpu="10m"))

    async def placed(self, *names: str) -> dict[str, str]:
        """Wait until each pod is on a node and confirmed; return the node of each."""
        async with asyncio.timeout(TEST_SECONDS):
            while not all(await asyncio.gather(*map(self._settled, names))):
                await aio.sleep(0.02)
        return {name: await self._node(name) for name in names}

    async def _node(self, name: str) -> str:
        found = await self.wire.cluster.ok("GET", f"{PODS}/{name}")
        return str(found["spec"].get("nodeName", ""))

    async def _settled(self, name: str) -> bool:
        pod = self.scheduler.core.store.get("default", name)
        if pod is None or not pod.spec.node_name:
            return False
        cache = self.scheduler.core.cache
        return not cache.is_assumed(pod.uid) and self.scheduler.bindings == 0


@asynccontextmanager
async def town(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    monkeypatch.setattr("moorage.service.binding.confirmations._PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr("moorage.service.binding.confirmations._ROUND_SECONDS", 0.1)
    monkeypatch.setattr("moorage.service.binding.api_binding._WAIT_SECONDS", 0.05)
    failures: list[BaseException] = []
    tasks = TaskOwner(lambda _name, error: failures.append(error))
    async with listening(folder) as wire:
        for name in ("n1", "n2"):
            await wire.cluster.ok("POST", NODES, node_manifest(name, cpu="64"))
        proxy = LossyProxy(wire.port, late_seconds=LATE_SECONDS)
        async with proxy.listening() as port:
            secret = Credential((("Authorization", "Bearer secret"),))
            access = ServerAccess(f"http://127.0.0.1:{port}", FixedCredentials(secret))
            transport = HttpTransport(access)
            settings = msgspec.structs.replace(
                default_config(), pod_initial_backoff_seconds=1, pod_max_backoff_seconds=1
            )
            scheduler = scheduler_over(
                Impatient(transport),
                LoadedConfiguration(settings),
                in_tree_registry(),
                clock=SystemClock(),
                streams=Streams(SEED),
                host="here",
            )
            tasks.spawn(scheduler.run(), name="scheduler")
            async with asyncio.timeout(TEST_SECONDS):
                await scheduler.ready.wait()
            yield Town(wire, proxy, scheduler)
            assert not failures
            mismatch = scheduler.compare()
            scheduler.core.cache.validate()
            scheduler.core.queue.validate()
            await tasks.cancel_all()
            await transport.close()
            assert mismatch.empty, mismatch


def once(harm: str) -> Callable[[str], str]:
    """Return a choice of one harm for the first binding of each pod."""
    met: dict[str, bool] = {}

    def choose(name: str) -> str:
        first = name not in met
        met[name] = True
        return harm if first else ""

    return choose


TRIED_AGAIN = ("never sent", "only answered", "sent late")


@pytest.mark.parametrize("harm", [pytest.param(key, id=text) for key, text in HARMS.items()])
async def test_a_pod_whose_binding_is_disturbed_ends_on_a_node(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with town(tmp_path, monkeypatch) as world:
        world.proxy.choose = once(harm)
        await world.create("p")
        nodes = await world.placed("p")
        assert nodes["p"] in ("n1", "n2")
    first, *others = [each for name, each in world.proxy.done if name == "p"]
    assert first == harm
    if harm != "sent late":  # then the first call may be in time before the second
        assert others == ([""] if harm in TRIED_AGAIN else [])


async def test_of_many_disturbed_bindings_none_is_lost_and_none_stays_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    draw = [*HARMS, *[""] * 4]
    Streams(SEED).stream("lossy").shuffle(draw)
    harms = itertools.cycle(draw)
    async with town(tmp_path, monkeypatch) as world:
        world.proxy.choose = lambda _name: next(harms)
        names = [f"p{n}" for n in range(40)]
        await world.create(*names)
        nodes = await world.placed(*names)
        world.proxy.choose = lambda _name: ""
        assert set(nodes.values()) <= {"n1", "n2"}
    assert {harm for _, harm in world.proxy.done} == {*HARMS, ""}

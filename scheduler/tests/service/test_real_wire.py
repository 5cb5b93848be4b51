"""A whole scheduler behind a wire of real sockets that misbehaves: one scenario for each fault.

The scheduler speaks HTTP over TLS to a proxy, which carries its calls to the API server or does
not. Afterwards every pod is bound and told of once, and cache and queue agree with the server. The
time of the loop runs faster than real time. Time limits of calls are real, so they are made shorter
by the same factor. ``test_wire_faults`` plays other faults in virtual time.
"""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pytest

from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.certificates import Authority, server_context
from moorage.base.clock import Clock, SystemClock
from moorage.base.rng import Streams
from moorage.client.auth import AuthorityFile, Credential, FileCredentials, ServerAccess, token_file
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.load import parse_config
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.cluster.assembly import NODE_AGENTS, SCHEDULER, USER
from moorage_sandbox.cluster.in_process import Handling, InProcessTransport
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.fault_proxy import FaultProxy
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from scheduler.tests.client.fakes import failure
from scheduler.tests.service.test_wire_faults import ALONE
from tests.scenarios.over_https import run_scaled

pytestmark = pytest.mark.slow

SPEED = 10.0
PATIENCE_SECONDS = 900.0  # a minute and a half in real time


class Way:
    """A transport whose destination can be replaced, and whose calls have shorter time limits."""

    inner: Transport
    faster = 1.0

    def hurried(self, call: Call) -> Call:
        return msgspec.structs.replace(
            call,
            timeout_seconds=call.timeout_seconds and call.timeout_seconds / self.faster,
            idle_seconds=call.idle_seconds and call.idle_seconds / self.faster,
        )

    async def request(self, call: Call) -> Answer:
        return await self.inner.request(self.hurried(call))

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        return self.inner.stream(self.hurried(call))

    async def close(self) -> None:
        await self.inner.close()


class Cluster(VirtualCluster):
    """A cluster whose scheduler reaches its server through a proxy; everybody else is beside it."""

    def __init__(self, clock: Clock, folder: Path) -> None:
        self.ways: dict[str, Way] = {}
        self.tokens = {"first": User("kubernetes-admin", ("system:masters",))}
        self.folder = folder
        self.created = 0
        nodes = [node_manifest(name, cpu="8") for name in ("n1", "n2")]
        config = parse_config(ALONE)
        super().__init__(clock, nodes=nodes, config=config, connect=self._connect)

    def _connect(self, server: Handling, program: str) -> Transport:
        way = self.ways[program] = Way()
        way.inner = InProcessTransport(server)
        return way

    async def __aenter__(self) -> Self:
        authenticator = Authenticator({}, self.tokens.get)
        self.http = HttpServer(self.server, authenticator, None)
        self.token = self.folder / "token"
        self.token.write_text("first")
        self.authority = self.folder / "ca.crt"
        self.proxy = FaultProxy(self.certified(), await self.http.start())
        await self.proxy.start()
        scheduler = self.ways[SCHEDULER]
        scheduler.faster = SPEED
        scheduler.inner = HttpTransport(
            ServerAccess(
                f"https://127.0.0.1:{self.proxy.port}",
                FileCredentials(
                    Credential(), token_file=token_file(self.token, what="token", clock=self.clock)
                ),
                ca_file=AuthorityFile(self.authority, what="CA", clock=self.clock),
            )
        )
        return await super().__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            await self.ways[SCHEDULER].close()
            await self.proxy.stop()
            await self.http.stop()

    def certified(self, *, trusted: bool = True) -> ssl.SSLContext:
        """Return the context of a server with a new authority."""
        authority = Authority(SystemClock())
        self.newest_authority = authority.certificate
        if trusted:
            self.authority.write_bytes(authority.certificate)
        return server_context(authority.server_pair(), authority.certificate)

    async def pods(self, count: int, **fields: Any) -> None:
        """Create pods, one in a tenth of a second."""
        for _ in range(count):
            self.created += 1
            await self.create_objects(pod_manifest(f"p{self.created}", cpu="100m", **fields))
            await aio.sleep(0.1)

    async def restored(self, records: list[Any], version: int) -> None:
        """Put a server with older content in the place of the present one."""
        old = self.http
        self.server = ApiServer(served_kinds(), clock=self.clock, streams=Streams(2))
        self.server.store.restore(records, version)
        self.server.reload()
        for program in (NODE_AGENTS, USER):
            self.ways[program].inner = InProcessTransport(self.server)
        self.http = HttpServer(self.server, Authenticator({}, self.tokens.get), None)
        self.proxy.server_port = await self.http.start()
        await old.stop()

    async def told(self, name: str, reason: str) -> int:
        """Wait until a pod has an Event of this reason; return how many it has."""
        for _ in range(int(PATIENCE_SECONDS)):
            found = await self.events(name, reason=reason)
            if found:
                return len(found)
            await aio.sleep(1)
        return 0

    def all_bound(self) -> bool:
        return all(self.placements().values())


def answer(status: int, reason: str, **headers: str) -> Answer:
    return Answer(status, headers, msgspec.json.encode(failure(status, reason)))


Scenario = Callable[[Cluster], Awaitable[None]]


async def server_is_away(cluster: Cluster) -> None:
    """No connection is accepted for thirty seconds."""
    await cluster.proxy.fail()
    await cluster.pods(5)
    await aio.sleep(30)
    await cluster.proxy.end_faults()


async def server_restarts(cluster: Cluster) -> None:
    """Three restarts, half a second each."""
    for _ in range(3):
        await cluster.proxy.fail()
        await cluster.pods(5)
        await cluster.proxy.end_faults()
        await cluster.pods(5)


async def connections_are_half_open(cluster: Cluster) -> None:
    """Every connection stays open for a minute, and nothing comes through."""
    cluster.proxy.faults.half_open = True
    await cluster.pods(5)
    await aio.sleep(60)
    # Not broken here: the scheduler has to give the silent connections up by itself.
    cluster.proxy.faults.half_open = False


async def watches_have_expired(cluster: Cluster) -> None:
    """Every watch is answered 410 for thirty seconds."""
    cluster.proxy.faults.answers["WATCH"] = answer(410, "Expired")
    cluster.proxy.cut()
    await cluster.pods(5)
    await aio.sleep(30)
    await cluster.proxy.end_faults()


async def server_asks_for_patience(cluster: Cluster) -> None:
    """Every write is answered 429 for thirty seconds, with Retry-After: 5."""
    busy = answer(429, "TooManyRequests", **{"retry-after": "5"})
    cluster.proxy.faults.answers.update(dict.fromkeys(("POST", "PATCH", "DELETE"), busy))
    began = len(cluster.proxy.calls)
    await cluster.pods(5)
    await aio.sleep(30)
    bindings: dict[str, list[float]] = {}
    for each in cluster.proxy.calls[began:]:
        if each.path.endswith("/binding"):
            bindings.setdefault(each.path, []).append(each.seconds)
    assert len(bindings) == 5
    for times in bindings.values():
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert gaps
        assert all(gap >= 5 for gap in gaps), gaps
    await cluster.proxy.end_faults()


async def server_has_errors(cluster: Cluster) -> None:
    """Every write is answered 500 for thirty seconds."""
    broken = answer(500, "InternalError")
    cluster.proxy.faults.answers.update(dict.fromkeys(("POST", "PATCH", "DELETE"), broken))
    await cluster.pods(5)
    await aio.sleep(30)
    await cluster.proxy.end_faults()


async def bytes_come_slowly(cluster: Cluster) -> None:
    """Each connection brings a thousand bytes a second for thirty seconds."""
    cluster.proxy.faults.bytes_per_second = 1000
    await cluster.pods(5)
    await aio.sleep(30)
    await cluster.proxy.end_faults()


async def streams_are_cut(cluster: Cluster) -> None:
    """Each stream breaks after 3000 bytes, in the middle of a line, for thirty seconds."""
    cluster.proxy.faults.bytes_most = 3000
    cluster.proxy.cut()
    await cluster.pods(10)
    await aio.sleep(30)
    await cluster.proxy.end_faults()


async def server_is_restored(cluster: Cluster) -> None:
    """The server is restored from a backup: pods are gone, bindings undone, versions go back."""
    await cluster.pods(5)
    kept, version = list(cluster.server.store.all_records()), cluster.server.store.version
    before = set(cluster.placements())
    await cluster.pods(10)
    await cluster.until(cluster.all_bound, seconds=PATIENCE_SECONDS)
    await cluster.client.delete(PODS, "p1", namespace="default")
    await cluster.until(lambda: cluster.stored_pod("p1") is None, seconds=PATIENCE_SECONDS)
    await cluster.proxy.fail()
    await cluster.restored(kept, version)
    assert set(cluster.placements()) == before
    cluster.created = len(before)
    await cluster.proxy.end_faults()


async def token_is_rotated(cluster: Cluster) -> None:
    """The token ends, and twenty seconds later the file has the next one."""
    user = cluster.tokens.pop("first")
    cluster.tokens["second"] = user
    cluster.proxy.cut()
    await cluster.pods(5)
    await aio.sleep(20)
    cluster.token.write_text("second")


async def authority_is_rotated(cluster: Cluster) -> None:
    """The server has a certificate of another authority; twenty seconds later the file has it."""
    await cluster.proxy.show(cluster.certified(trusted=False))
    await cluster.pods(5)
    await aio.sleep(20)
    cluster.authority.write_bytes(cluster.newest_authority)


async def answers_to_bindings_are_lost(cluster: Cluster) -> None:
    """The server binds five pods, and its answers are lost."""
    cluster.proxy.faults.lost["/binding"] = 5
    await cluster.pods(10)
    await cluster.until(lambda: not cluster.proxy.faults.lost["/binding"], seconds=60)
    await aio.sleep(15)


async def answers_to_events_are_lost(cluster: Cluster) -> None:
    """The server takes five Events, and its answers are lost."""
    cluster.proxy.faults.lost["/events"] = 5
    await cluster.pods(10)
    await cluster.until(lambda: not cluster.proxy.faults.lost["/events"], seconds=60)


async def answers_to_evictions_are_lost(cluster: Cluster) -> None:
    """Two pods are preempted, and the answers to their deletions are lost."""
    lost = cluster.proxy.faults.lost
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 10}
    victims, preemptors = ("low1", "low2"), ("high1", "high2")
    await cluster.create_objects(high | {"metadata": {"name": "high"}})
    await cluster.create_objects(*(pod_manifest(name, cpu="7") for name in victims))
    await cluster.until(cluster.all_bound, seconds=PATIENCE_SECONDS)
    lost.update(dict.fromkeys(("/pods/low1", "/pods/low2"), 1))
    await cluster.create_objects(
        *(pod_manifest(name, cpu="7", priorityClassName="high") for name in preemptors)
    )
    await cluster.until(lambda: all(map(cluster.node_of, preemptors)), seconds=PATIENCE_SECONDS)
    assert not lost.total()
    for name in victims:
        assert await cluster.told(name, "Preempted") == 1
        assert cluster.stored_pod(name) is None
    for name in preemptors:
        await cluster.client.delete(PODS, name, namespace="default")


SCENARIOS: tuple[Scenario, ...] = (
    server_is_away,
    server_restarts,
    connections_are_half_open,
    watches_have_expired,
    server_asks_for_patience,
    server_has_errors,
    bytes_come_slowly,
    streams_are_cut,
    server_is_restored,
    token_is_rotated,
    authority_is_rotated,
    answers_to_bindings_are_lost,
    answers_to_events_are_lost,
    answers_to_evictions_are_lost,
)


def play(scenario: Scenario, folder: Path) -> dict[str, float]:
    """Play a scenario, check what has to hold afterwards, and return figures of it."""
    figures: dict[str, float] = {}

    async def main(clock: Clock) -> None:
        async with Cluster(clock, folder) as cluster:
            await cluster.pods(5)
            await cluster.until(cluster.all_bound, seconds=PATIENCE_SECONDS)
            await aio.sleep(5)  # their Events are sent; an Event that is refused is not sent again
            began, calls = cluster.seconds, len(cluster.proxy.calls)
            await scenario(cluster)
            fixed = cluster.seconds
            figures["calls"] = len(cluster.proxy.calls) - calls
            figures["fault_seconds"] = fixed - began
            await cluster.until(cluster.all_bound, seconds=PATIENCE_SECONDS)
            figures["seconds"] = cluster.seconds - fixed
            await cluster.pods(3)
            await cluster.until(cluster.all_bound, seconds=PATIENCE_SECONDS)
            await cluster.until(lambda: cluster.scheduler.compare().empty, seconds=PATIENCE_SECONDS)
            assert len([key for key in cluster.placements() if "/p" in key]) == cluster.created
            cluster.scheduler.core.cache.validate()
            cluster.scheduler.core.queue.validate()
            await cluster.until(lambda: cluster.scheduler.bindings == 0, seconds=PATIENCE_SECONDS)
            for number in range(5):
                assert await cluster.told(f"p{number + 1}", "Scheduled") == 1

    run_scaled(main, speed=SPEED)
    return figures


@pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=lambda scenario: str(scenario.__doc__).rstrip(".")
)
def test_all_pods_are_bound_and_belief_is_right_after(scenario: Scenario, tmp_path: Path) -> None:
    play(scenario, tmp_path)

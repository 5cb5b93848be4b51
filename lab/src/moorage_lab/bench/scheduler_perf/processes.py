"""Clusters with a scheduler in a process of its own: our server over HTTPS, or any API server.

`over_https` starts ``moorage up --no-scheduler`` and ``moorage run``. `at_kubeconfig` uses the API
server of a kubeconfig; it is given back as it was found.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.api.resources import NODES
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, TransportError, UsageError
from moorage.base.rng import Streams
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.requests import Selection
from moorage.client.transport import Call, Transport
from moorage.client.writes import Client
from moorage.config.feature_gates import FeatureGates
from moorage_lab.bench.processes import Child, free_port, open_harness
from moorage_lab.bench.scheduler_perf.clusters import Cluster
from moorage_lab.bench.timing import Stopwatch

Failed = Callable[[str, BaseException], None]

_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_OPEN_PATHS: Final = "/healthz,/readyz,/livez,/metrics"


class SchedulerProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The way in which a scheduler is started.

    Parameters
    ----------
    config
        Its configuration file; None for the defaults.
    gates
        Its feature gates.
    seed
        Seed of its ties.
    clock
        Time of the waits for it.
    """

    config: Path | None
    gates: FeatureGates
    seed: int
    clock: Clock


@asynccontextmanager
async def over_https(process: SchedulerProcess, failed: Failed) -> AsyncIterator[Cluster]:
    """Run an API server of ours and a scheduler, each in a process of its own.

    Parameters
    ----------
    failed
        Called with the name and the exception of a process that ends.

    Raises
    ------
    MoorageError
        A process does not start.
    """
    async with open_harness(process.clock) as harness:
        tasks = TaskOwner(failed)
        tasks.spawn(_watched(harness.server), name="server")
        kubeconfig = str(harness.kubeconfig)
        try:
            async with _scheduled(
                process, harness.access, kubeconfig, harness.folder, failed
            ) as cluster:
                yield cluster
        finally:
            await tasks.cancel_all()


@asynccontextmanager
async def at_kubeconfig(
    kubeconfig: str,
    process: SchedulerProcess | None,
    failed: Failed,
    *,
    clock: Clock,
    with_nodes: bool = False,
) -> AsyncIterator[Cluster]:
    """Use the API server of a kubeconfig.

    Parameters
    ----------
    kubeconfig
        The file, "" for where kubectl looks.
    process
        The scheduler to start; None leaves the pods to the scheduler that runs there.
    with_nodes
        Whether the cluster may have nodes.

    Raises
    ------
    UsageError
        The cluster has nodes, so that pods of workloads would run on them.
    """
    access = find_access(kubeconfig, clock=clock)
    transport = HttpTransport(access, user_agent="moorage-bench")
    client = Client(transport, rng=Streams(1).stream("bench/client"))
    try:
        listed: Any = await client.list(NODES, Selection())
        if listed["items"] and not with_nodes:
            raise UsageError(
                f"{access.server} has {len(listed['items'])} nodes, and pods would run on them; "
                "give --with-nodes if that is wanted"
            )
        if process is None:
            yield Cluster(transport, client, None, shared=True)
            return
        with tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder:
            async with _scheduled(process, access, kubeconfig, Path(folder), failed) as cluster:
                yield msgspec.structs.replace(cluster, shared=True)
    finally:
        await transport.close()


@asynccontextmanager
async def _scheduled(
    process: SchedulerProcess, access: ServerAccess, kubeconfig: str, place: Path, failed: Failed
) -> AsyncIterator[Cluster]:
    """Run a scheduler against a server, and wait until it schedules."""
    port = free_port()
    flags = ["run", "--seed", str(process.seed), "--bind-address", "127.0.0.1"]
    flags += ["--secure-port", str(port), f"--authorization-always-allow-paths={_OPEN_PATHS}"]
    flags += ["--kubeconfig", kubeconfig] if kubeconfig else []
    flags += ["--config", str(process.config)] if process.config else []
    flags += ["--feature-gates", process.gates.as_text()] if process.gates.switched else []
    scheduler = Child("scheduler", flags, log=place / "scheduler.log")
    own = ServerAccess(
        f"https://127.0.0.1:{port}", FixedCredentials(), insecure_skip_tls_verify=True
    )
    page = HttpTransport(own, user_agent="moorage-bench")
    transport = HttpTransport(access, user_agent="moorage-bench")
    tasks = TaskOwner(failed)

    async def metrics() -> str:
        answer = await page.request(Call("GET", "/metrics"))
        if answer.status != 200:
            raise MoorageError(f"the scheduler's metrics: HTTP {answer.status}")
        return answer.body.decode()

    try:
        await scheduler.start()
        await _ready(page, scheduler, process.clock)
        tasks.spawn(_watched(scheduler), name="scheduler")
        client = Client(transport, rng=Streams(process.seed).stream("bench/client"))
        yield Cluster(transport, client, metrics)
    finally:
        await tasks.cancel_all()
        await transport.close()
        await page.close()
        await scheduler.stop()


async def _ready(page: Transport, scheduler: Child, clock: Clock) -> None:
    """Wait until a scheduler says that it schedules.

    Raises
    ------
    MoorageError
        It ended, or is not ready in time; another scheduler may hold the lease.
    """
    watch = Stopwatch(clock.monotonic_ns)
    while watch.seconds < _START_SECONDS:
        scheduler.raise_if_ended()
        try:
            answer = await page.request(Call("GET", "/readyz"))
        except TransportError:
            await aio.sleep(_LOOK_SECONDS)
            continue
        if answer.status == 200:
            return
        await aio.sleep(_LOOK_SECONDS)
    raise MoorageError(
        f"the scheduler is not ready after {_START_SECONDS:.0f} s; another scheduler may hold the "
        "lease: give --no-scheduler to measure that one"
    )


async def _watched(child: Child) -> None:
    """Fail when a process ends."""
    while True:
        child.raise_if_ended()
        await aio.sleep(_LOOK_SECONDS)

"""A client process of ``moorage bench api``: ``python -m moorage_lab.bench.api.client``.

Reads its settings and then one `Job` a line from standard input, and answers each job with a line
on standard output. The measurement is of the server, so its clients are separate processes that do
as little as possible.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from array import array
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from typing import Any

import msgspec

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock, SystemClock
from moorage.base.errors import MoorageError
from moorage.base.process import run_loop
from moorage.cli.render import error_text, show_error
from moorage.client.kubeconfig import find_access
from moorage_lab.bench.api.jobs import (
    ClientSettings,
    Job,
    Listed,
    ListOnce,
    Load,
    Loaded,
    Watch,
    Watched,
    Watching,
    Write,
    Written,
)
from moorage_lab.bench.api.wire import Connector, Wire, connector_of
from moorage_lab.bench.timing import NS_PER_MS, Stopwatch, percentile
from moorage_lab.bench.workload import default_node, default_pod
from moorage_sandbox.apiserver.protobuf.envelope import count_items
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from moorage_sandbox.sandbox.processes.child_process import EXIT_FAILED, decode_settings

Answer = Callable[[msgspec.Struct], None]

PODS = "/api/v1/namespaces/default/pods"
WRITTEN = "/api/v1/namespaces/default/configmaps"
GROUPS = 10
"""Number of different values of the label ``group`` on the pods."""

_ACCEPTED = {
    "json": "application/json",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "protobuf": PROTOBUF,
}
# Number of objects written in turn, each of about the size of a pod.
_OBJECTS = 100
_PADDING = "x" * 800
_SENT = re.compile(rb'"sent":"([0-9]+)"')
_VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')


async def do(job: Job, connector: Connector, clock: Clock, answer: Answer) -> None:
    """Carry out a job and return its answer.

    Raises
    ------
    MoorageError
        The server refused the call, or closed the connection.
    """
    match job:
        case Load():
            answer(await _load(job, connector, clock))
        case ListOnce():
            answer(await _list(job, connector, clock))
        case Write():
            answer(await _write(job, connector, clock))
        case Watch():
            await _watch(job, connector, clock, answer)


async def _load(job: Load, connector: Connector, clock: Clock) -> Loaded:
    nodes = (("/api/v1/nodes", default_node(index)) for index in range(job.nodes))
    plain = default_pod("load")

    def pod(index: int) -> dict[str, Any]:
        manifest = plain(index)
        manifest["metadata"]["labels"]["group"] = str(index % GROUPS)
        return manifest

    pods = ((PODS, pod(index)) for index in range(job.pods))
    loaded = Loaded(
        await _create(nodes, connector, clock, connections=job.connections),
        await _create(pods, connector, clock, connections=job.connections),
    )
    written = (_written(index, 0) for index in range(_OBJECTS))
    await _create(written, connector, clock, connections=job.connections)
    return loaded


async def _create(
    objects: Iterator[tuple[str, dict[str, Any]]],
    connector: Connector,
    clock: Clock,
    *,
    connections: int,
) -> float:
    """Create objects one by one over each connection; return the seconds it took."""

    async def creator(wire: Wire) -> None:
        for target, obj in objects:
            await wire.call("POST", target, msgspec.json.encode(obj))

    return await _on_each(connector, clock, creator, connections)


async def _on_each(
    connector: Connector,
    clock: Clock,
    work: Callable[[Wire], Coroutine[Any, Any, None]],
    connections: int,
) -> float:
    """Do work on several connections; return the seconds from the opening of the last one."""
    wires = [await connector.open_connection() for _ in range(connections)]
    watch = Stopwatch(clock.monotonic_ns)
    try:
        await asyncio.gather(*(work(wire) for wire in wires))
    finally:
        for wire in wires:
            wire.close()
    return watch.seconds


async def _list(job: ListOnce, connector: Connector, clock: Clock) -> Listed:
    with closing(await connector.open_connection()) as wire:
        watch = Stopwatch(clock.monotonic_ns)
        body = await wire.call("GET", job.target, accept=_ACCEPTED[job.form])
        seconds = watch.seconds
    if job.form == "protobuf":
        return Listed(seconds, len(body), count_items(body))
    found = msgspec.json.decode(body)
    return Listed(seconds, len(body), len(found["rows" if job.form == "table" else "items"]))


async def _write(job: Write, connector: Connector, clock: Clock) -> Written:
    indexes = iter(range(job.events))
    watch = Stopwatch(clock.monotonic_ns)

    async def writer(wire: Wire) -> None:
        for index in indexes:
            late = watch.seconds - index / job.rate
            if late < 0:
                await aio.sleep(-late)
            target, obj = _written(index % _OBJECTS, clock.monotonic_ns())
            await wire.call("PUT", f"{target}/{obj['metadata']['name']}", msgspec.json.encode(obj))

    return Written(await _on_each(connector, clock, writer, job.connections))


def _written(index: int, sent_ns: int) -> tuple[str, dict[str, Any]]:
    data = {"sent": str(sent_ns), "padding": _PADDING}
    return WRITTEN, {"metadata": {"name": f"written-{index}"}, "data": data}


class _Watcher:
    """One watch: counts events, and keeps the times at which each was sent and seen."""

    def __init__(self, job: Watch, clock: Clock) -> None:
        self._job = job
        self._clock = clock
        self._digest = hashlib.sha256()
        self.events = 0
        self.cut = False
        self.first_ns = 0
        self.last_ns = 0
        self.lags_ns = array("q")

    @property
    def digest(self) -> str:
        """SHA-256 of the resourceVersions seen."""
        return self._digest.hexdigest()

    async def run(self, wire: Wire, target: str, ready: Callable[[], None]) -> None:
        """Watch until every event was seen, or the server ends the watch."""
        pieces = await wire.stream(target)
        ready()
        rest = b""
        try:
            while self.events < self._job.events:
                async with asyncio.timeout(self._job.silence_seconds):
                    piece = await anext(pieces, b"")
                if not piece:
                    self.cut = True
                    return
                whole, newline, rest = (rest + piece).rpartition(b"\n")
                self._observe(whole + newline)
        except TimeoutError:
            return
        except (OSError, EOFError):
            self.cut = True
        finally:
            wire.close()

    def _observe(self, lines: bytes) -> None:
        now = self.last_ns = self._clock.monotonic_ns()
        self.first_ns = self.first_ns or now
        self.events += lines.count(b"\n")
        self.cut = self.cut or b'{"type":"ERROR"' in lines
        for version in _VERSION.findall(lines):
            self._digest.update(version)
        self.lags_ns.extend(now - sent for each in _SENT.findall(lines) if (sent := int(each)))


async def _watch(job: Watch, connector: Connector, clock: Clock, answer: Answer) -> None:
    watchers = [_Watcher(job, clock) for _ in range(job.watchers)]
    opened = 0

    def ready() -> None:
        nonlocal opened
        opened += 1
        if opened == job.watchers:
            answer(Watching(opened))

    wires = [await connector.open_connection() for _ in watchers]
    target = f"{WRITTEN}?watch=1&resourceVersion={await _version(connector)}"
    runs = (watcher.run(wire, target, ready) for watcher, wire in zip(watchers, wires, strict=True))
    await asyncio.gather(*runs)
    lags = [lag for watcher in watchers for lag in watcher.lags_ns]
    first = min(watcher.first_ns for watcher in watchers)
    answer(
        Watched(
            seconds=(max(watcher.last_ns for watcher in watchers) - first) / NS_PER_SECOND,
            events=tuple(watcher.events for watcher in watchers),
            digests=tuple(sorted({watcher.digest for watcher in watchers})),
            cut=sum(watcher.cut for watcher in watchers),
            lag_p50_ms=percentile(lags, 50) / NS_PER_MS,
            lag_p99_ms=percentile(lags, 99) / NS_PER_MS,
        )
    )


async def _version(connector: Connector) -> str:
    """Return the newest resourceVersion."""
    with closing(await connector.open_connection()) as wire:
        found = msgspec.json.decode(await wire.call("GET", f"{WRITTEN}?limit=1"))
    return str(found["metadata"]["resourceVersion"])


def _tell(answer: msgspec.Struct) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


async def _serve(settings: ClientSettings, clock: Clock) -> None:
    """Do the jobs on standard input, one after the other, until it ends.

    Raises
    ------
    MoorageError
        The server cannot be reached, refused a call, or closed a connection.
    """
    connector = await connector_of(find_access(settings.kubeconfig, clock=clock))
    # Nothing else runs between two jobs, so reading may block the loop.
    while line := sys.stdin.buffer.readline():
        await do(msgspec.json.decode(line, type=Job), connector, clock, _tell)


def main() -> int:
    """Do the jobs; return the exit code. A failure is reported on standard error."""
    settings = decode_settings(sys.stdin.buffer.readline(), ClientSettings)
    try:
        run_loop(_serve(settings, SystemClock()))
    except MoorageError as error:
        show_error(error_text(error))
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())

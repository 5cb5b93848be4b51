"""Measures the API server from its clients: creating, listing, and sending events to many watchers.

The server is ``moorage up --no-scheduler`` with its controllers; its clients are two processes
(`client`), one that calls and one that watches, so processor time of the server is its own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage_lab.bench.api.client import GROUPS
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
from moorage_lab.bench.processes import Child, open_harness
from moorage_sandbox.sandbox.processes.child_process import program_of

Progress = Callable[[str], None]
T = TypeVar("T")

# A watcher that sees no event for this long gives up.
_SILENCE_SECONDS = 30.0
_LISTS: Mapping[str, ListOnce] = {
    "all": ListOnce("/api/v1/pods"),
    f"one group of {GROUPS}": ListOnce("/api/v1/pods?labelSelector=group%3D0"),
    "as a Table": ListOnce("/api/v1/pods", "table"),
    "in protobuf": ListOnce("/api/v1/pods", "protobuf"),
}


class ApiPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The load on a server: objects, rates and watchers.

    Parameters
    ----------
    nodes, pods, connections
        Number of nodes and pods created, and of connections that create them.
    watchers, rate, seconds
        Number of open watches, writes in a second, and duration of the writes.
    """

    nodes: int
    pods: int
    connections: int
    watchers: int
    rate: int
    seconds: int


class ApiResult(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one run.

    Parameters
    ----------
    plan
        The load.
    loaded
        Time for creating nodes and pods.
    lists
        Lists of all pods, of some pods, as kubectl prints them, and as Go programs read them.
    written, watched
        The writes, and the events that watchers saw.
    server_cpu_seconds
        Processor time of the server and of its parent in each part; 0 where unknown.
    memory_peak_mib
        Peak memory of the server after each part.
    """

    plan: ApiPlan
    loaded: Loaded
    lists: Mapping[str, Listed]
    written: Written
    watched: Watched
    server_cpu_seconds: Mapping[str, float]
    memory_peak_mib: Mapping[str, float]

    @property
    def digest(self) -> str:
        """SHA-256 over the objects listed and the events of each watcher."""
        seen: list[object] = [[name, listed.count] for name, listed in self.lists.items()]
        seen += [list(self.watched.events), len(self.watched.digests), self.watched.cut]
        return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()

    @property
    def faults(self) -> list[str]:
        """Faults that a client found, other than slowness."""
        expected = self.plan.rate * self.plan.seconds
        short = [count for count in self.watched.events if count != expected]
        faults = []
        if self.lists["all"].count != self.plan.pods:
            faults.append(f"{self.lists['all'].count} of {self.plan.pods} pods were listed")
        if self.watched.cut:
            faults.append(f"{self.watched.cut} watches were cut off")
        if short:
            faults.append(f"{len(short)} watchers saw other than {expected} events")
        elif len(self.watched.digests) > 1:
            faults.append("watchers saw different events, or in another order")
        return faults

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        plain["watched"]["events"] = sum(self.watched.events)
        return {**plain, "digest": self.digest, "faults": self.faults}

    def as_lines(self) -> list[str]:
        """Return the result for people."""
        plan, loaded, watched = self.plan, self.loaded, self.watched
        delivered = sum(watched.events) / watched.seconds if watched.seconds else 0.0
        writes = plan.rate * plan.seconds
        return [
            f"API server ({plan.connections} connections, {plan.watchers} watchers)",
            _created("nodes", plan.nodes, loaded.nodes_seconds),
            _created("pods", plan.pods, loaded.pods_seconds),
            *(
                f"  list, {name}: {listed.count:,} pods in {listed.seconds:.2f} s, "
                f"{listed.size_bytes / 1e6:.1f} MB"
                for name, listed in self.lists.items()
            ),
            f"  writes: {writes:,} in {self.written.seconds:.2f} s, asked for {plan.rate:,} a "
            "second",
            f"  watches: {delivered:,.0f} events/s delivered, {watched.cut} cut off, lag p50 "
            f"{watched.lag_p50_ms:.0f} ms, p99 {watched.lag_p99_ms:.0f} ms",
            "  server cpu: "
            + ", ".join(f"{name} {s:.2f} s" for name, s in self.server_cpu_seconds.items()),
            "  server peak memory: "
            + ", ".join(f"{name} {mib:.0f} MiB" for name, mib in self.memory_peak_mib.items()),
            f"  seen: sha256 {self.digest}",
            *(f"  FAULT: {fault}" for fault in self.faults),
        ]


def _created(what: str, count: int, seconds: float) -> str:
    rate = count / seconds if seconds else 0.0
    return f"  create {what}: {rate:,.0f} a second: {count:,} in {seconds:.1f} s"


class _Client:
    """A client process, which does one job after the other."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; its standard error is shown."""
        settings = ClientSettings(str(self._kubeconfig))
        program = program_of("moorage_lab.bench.api.client", settings)
        self._process = await asyncio.create_subprocess_exec(
            *program.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdin is not None, "standard input is a pipe"
        self._process.stdin.write(program.first_input)

    async def ask(self, job: Job, answer: type[T]) -> T:
        """Hand out a job and wait for its first answer."""
        assert self._process is not None, "started"
        assert self._process.stdin is not None, "standard input is a pipe"
        self._process.stdin.write(msgspec.json.encode(job) + b"\n")
        await self._process.stdin.drain()
        return await self.await_answer(answer)

    async def await_answer(self, answer: type[T]) -> T:
        """Wait for an answer.

        Raises
        ------
        MoorageError
            The process has ended.
        """
        assert self._process is not None, "started"
        assert self._process.stdout is not None, "standard output is a pipe"
        line = await self._process.stdout.readline()
        if not line:
            raise MoorageError("a client process of the benchmark failed, see above")
        return msgspec.json.decode(line, type=answer)

    async def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class ApiRun:
    """One measurement, with an API server started for it.

    Parameters
    ----------
    plan
        The load on the server.
    clock
        Time of the credentials.
    progress
        Called with a message at every step.
    """

    def __init__(
        self, plan: ApiPlan, *, clock: Clock, progress: Progress = lambda line: None
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._progress = progress
        self._cpu: dict[str, float] = {}
        self._memory: dict[str, float] = {}

    async def run(self) -> ApiResult:
        """Start the processes, measure, end the processes.

        Raises
        ------
        MoorageError
            A process ended early, or the server refused a call.
        """
        async with open_harness(self._clock) as harness:
            caller, watching = _Client(harness.kubeconfig), _Client(harness.kubeconfig)
            try:
                await caller.start()
                await watching.start()
                return await self._measure(harness.server, caller, watching)
            finally:
                await watching.stop()
                await caller.stop()

    async def _measure(self, server: Child, caller: _Client, watching: _Client) -> ApiResult:
        plan = self._plan
        self._progress(f"create {plan.nodes} nodes and {plan.pods} pods")
        used = server.processor_seconds()
        load = Load(nodes=plan.nodes, pods=plan.pods, connections=plan.connections)
        loaded = await caller.ask(load, Loaded)
        used = self._note("create", server, used)
        lists = {}
        for name, job in _LISTS.items():
            self._progress(f"list, {name}")
            lists[name] = await caller.ask(job, Listed)
        used = self._note("list", server, used)
        self._progress(f"{plan.rate} writes a second for {plan.seconds} s, {plan.watchers} watch")
        events = plan.rate * plan.seconds
        watch = Watch(watchers=plan.watchers, events=events, silence_seconds=_SILENCE_SECONDS)
        await watching.ask(watch, Watching)
        write = Write(events=events, rate=plan.rate, connections=plan.connections)
        written = await caller.ask(write, Written)
        watched = await watching.await_answer(Watched)
        self._note("watch", server, used)
        return ApiResult(
            plan=plan,
            loaded=loaded,
            lists=lists,
            written=written,
            watched=watched,
            server_cpu_seconds=self._cpu,
            memory_peak_mib=self._memory,
        )

    def _note(self, part: str, server: Child, used: float) -> float:
        """Record the processor time and memory of the server in a part; return its total so far."""
        now = server.processor_seconds()
        self._cpu[part] = now - used
        self._memory[part] = server.peak_memory_mib()
        return now

"""One measurement: a backlog of pods, and a scheduler that is started to place them."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import shlex
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.resources import NAMESPACES, NODES, PODS, ResourceType
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import (
    ConflictError,
    MoorageError,
    NotFoundError,
    UsageError,
)
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage_lab.bench.server_run import BoundPods, create_all, some_at_once, watch_pods
from moorage_lab.bench.workload import CreateNodes, CreatePods, Workload

_FLAGS: Final = (
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=5000",
    "--kube-api-burst=5000",
)
"""The limits of calls are those of scheduler_perf; by default kube-scheduler makes 50 a second."""
_STALL_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_END_SECONDS: Final = 30.0


class Drained(msgspec.Struct, frozen=True):
    """What was measured.

    Parameters
    ----------
    scheduler
        Name of the scheduler.
    placed, pods
        How many pods got a node, of how many.
    seconds
        From the first binding to the last, as a watch of the pods sees them.
    start_seconds
        From the start of the process to the first binding.
    cpu_seconds
        Processor time of the process and its children, from start to end.
    """

    scheduler: str
    placed: int
    pods: int
    seconds: float
    start_seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Pods a second between the first binding and the last."""
        return (self.placed - 1) / self.seconds if self.seconds else 0.0


class Backlog:
    """The pods of a workload, which wait for a scheduler again and again.

    Parameters
    ----------
    workload
        Its nodes are made once, its pods for each scheduler anew, all before it starts.
    client
        The verbs of the API server.
    clock, streams
        Time and randomness.
    """

    def __init__(
        self, workload: Workload, client: Client, *, clock: Clock, streams: Streams
    ) -> None:
        self._nodes = [op for op in workload.ops if isinstance(op, CreateNodes)]
        self._pods = [op for op in workload.ops if isinstance(op, CreatePods)]
        self._client = client
        self._clock = clock
        self._streams = streams

    async def prepare(self) -> None:
        """Create the nodes.

        Raises
        ------
        UsageError
            The server has nodes or pods already: it would be measured with them, and pods of
            somebody would be deleted.
        """
        for kind in (NODES, PODS):
            if names := await self._names(kind):
                raise UsageError(
                    f"the API server has {len(names)} {kind.plural} already, such as "
                    f"{names[0][1]}: compare on a server without nodes and pods"
                )
        for op in self._nodes:
            await create_all(self._client, NODES, op)
        for name in sorted({op.template(0)["metadata"]["namespace"] for op in self._pods}):
            with contextlib.suppress(ConflictError):
                await self._client.create(NAMESPACES, {"metadata": {"name": name}})

    async def remove(self) -> None:
        """Delete all pods and nodes, which are ours."""
        for kind in (PODS, NODES):
            await self._delete_all(kind)

    async def drain(self, name: str, command: str, kubeconfig: Path) -> Drained:
        """Create the pods, start a scheduler, wait until all have a node, and end it.

        Parameters
        ----------
        name
            Name of the scheduler.
        command
            Its command line, to which flags of kube-scheduler are added.
        kubeconfig
            How it reaches the server.

        Raises
        ------
        MoorageError
            The process ended by itself.
        """
        await self._delete_all(PODS)
        for op in self._pods:
            await create_all(self._client, PODS, op)
        words = [*shlex.split(command), f"--kubeconfig={kubeconfig}", *_FLAGS]
        before = _cpu_of_children()
        bound, clock = _TimedPods(self._clock), self._clock
        async with watch_pods(self._client.transport, bound, clock=clock, streams=self._streams):
            started_ns = clock.monotonic_ns()
            async with _process(name, words) as process:
                await self._all_placed(bound, name, process)
        count = sum(op.count for op in self._pods)
        first_ns, last_ns = bound.first_ns or started_ns, bound.last_ns or started_ns
        return Drained(
            scheduler=name,
            placed=len(bound.nodes),
            pods=count,
            seconds=(last_ns - first_ns) / NS_PER_SECOND,
            start_seconds=(first_ns - started_ns) / NS_PER_SECOND,
            cpu_seconds=_cpu_of_children() - before,
        )

    async def _all_placed(
        self, bound: BoundPods, name: str, process: asyncio.subprocess.Process
    ) -> None:
        """Return once all pods have a node, or none has got one for a minute."""
        count, placed, quiet = sum(op.count for op in self._pods), 0, 0.0
        while len(bound.nodes) < count and quiet < _STALL_SECONDS:
            if process.returncode is not None:
                raise MoorageError(f"{name} ended with {process.returncode}; its output is above")
            await aio.sleep(_LOOK_SECONDS)
            quiet = quiet + _LOOK_SECONDS if len(bound.nodes) == placed else 0.0
            placed = len(bound.nodes)

    async def _names(self, kind: ResourceType) -> list[tuple[str, str]]:
        listed: Any = await self._client.list(kind)
        metadata = [each["metadata"] for each in listed["items"]]
        return [(each.get("namespace", ""), each["name"]) for each in metadata]

    async def _delete_all(self, kind: ResourceType) -> None:
        async def delete(key: tuple[str, str]) -> None:
            namespace, name = key
            with contextlib.suppress(NotFoundError):
                await self._client.delete(kind, name, namespace=namespace, grace_seconds=0)

        await some_at_once(await self._names(kind), delete)


class _TimedPods(BoundPods):
    """The pods that have a node, and when the first and the last got it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.first_ns = 0
        self.last_ns = 0

    def on_add(self, pod: Pod) -> None:
        count = len(self.nodes)
        super().on_add(pod)
        if len(self.nodes) > count:
            self.last_ns = self._clock.monotonic_ns()
            self.first_ns = self.first_ns or self.last_ns


@asynccontextmanager
async def _process(name: str, words: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program that inherits standard error, and end it as Ctrl-C would."""
    try:
        process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.DEVNULL)
    except OSError as error:
        raise UsageError(f"{name}: cannot start {words[0]}: {error.strerror}") from error
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(_END_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


def _cpu_of_children() -> float:
    """Return the processor time of all children that have ended, seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

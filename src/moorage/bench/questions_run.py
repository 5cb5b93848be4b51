"""Measures what a running scheduler loses while what-if is asked again and again.

The basic workload runs through an API server (`server_run`), in turn without and with questions.
Questions come one after another, so one is always being answered.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from statistics import median
from typing import Final

import msgspec

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import MoorageError, TransportError
from moorage.base.rng import Streams
from moorage.bench.server_run import ServerRun
from moorage.bench.workload import Workload
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call
from moorage.service.questions.question import PREFIX

Progress = Callable[[str], None]

_BODY: Final = msgspec.json.encode(
    {
        "changes": [
            {
                "change": "apply",
                "manifest": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "asked"},
                    "spec": {
                        "containers": [
                            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
                        ]
                    },
                },
            }
        ]
    }
)
_TRY_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.2


class QuestionsResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Throughput without and with questions.

    Parameters
    ----------
    nodes, pods
        Size of the cluster, and the number of measured pods of one run.
    without, asked
        Pods a second of each run, in the order of the runs.
    loss_percent
        Loss of the median with questions, percent of the median without; below 0 is a gain.
    answers
        Number of answers while pods were scheduled.
    first_ms, median_ms
        Time of the first answer, for which the state is copied, and of the others in the median,
        milliseconds.
    """

    nodes: int
    pods: int
    without: tuple[float, ...]
    asked: tuple[float, ...]
    loss_percent: float
    answers: int
    first_ms: float
    median_ms: float


class _Asking:
    """Asks a scheduler one question after another."""

    def __init__(self, clock: Clock) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._clock = clock
        self.took_ms: list[float] = []

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the scheduler that is asked."""
        return (
            *("--bind-address", "127.0.0.1", "--secure-port", str(self._port)),
            f"--authorization-always-allow-paths={PREFIX}/*",
        )

    async def before(self) -> None:
        """Ask until the scheduler answers, so that its state has been copied once."""
        async with self._transport() as transport:
            while not await self._ask(transport):
                await aio.sleep(_LOOK_SECONDS)

    async def during(self) -> None:
        """Ask until cancelled."""
        async with self._transport() as transport:
            while True:
                if not await self._ask(transport):
                    raise MoorageError("the scheduler did not answer")

    def _transport(self) -> _Closing:
        access = ServerAccess(
            f"https://127.0.0.1:{self._port}", FixedCredentials(), insecure_skip_tls_verify=True
        )
        return _Closing(HttpTransport(access, user_agent="moorage-bench"))

    async def _ask(self, transport: HttpTransport) -> bool:
        call = Call("POST", f"{PREFIX}/what-if", body=_BODY, timeout_seconds=_TRY_SECONDS)
        began_ns = self._clock.monotonic_ns()
        try:
            answer = await transport.request(call)
        except TransportError:
            return False
        if answer.status != 200:
            raise MoorageError(f"what-if was refused: {answer.body[:500].decode()}")
        self.took_ms.append((self._clock.monotonic_ns() - began_ns) * 1e3 / NS_PER_SECOND)
        return True


class _Closing:
    """A transport that is closed at the end of its context."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def __aenter__(self) -> HttpTransport:
        return self._transport

    async def __aexit__(self, *error: object) -> None:
        await self._transport.close()


async def measure_questions(
    workload: Workload,
    *,
    nodes: int,
    pods: int,
    rounds: int,
    clock: Clock,
    streams: Streams,
    progress: Progress,
) -> QuestionsResult:
    """Run a workload in turn without and with questions.

    Parameters
    ----------
    workload
        The operations of one run.
    nodes, pods
        Its size, for the report.
    rounds
        Number of runs without, and of runs with questions.
    """
    without, asked = list[float](), list[float]()
    first, others = list[float](), list[float]()
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}: no questions")
        quiet = ServerRun(workload, clock=clock, streams=streams, progress=progress)
        without.append((await quiet.run()).pods_per_second)
        progress(f"round {number + 1} of {rounds}: questions")
        asking = _Asking(clock)
        run = ServerRun(workload, clock=clock, streams=streams, progress=progress, beside=asking)
        asked.append((await run.run()).pods_per_second)
        first.append(asking.took_ms[0])
        others += asking.took_ms[1:]
    loss = 100 * (1 - median(asked) / median(without))
    return QuestionsResult(
        nodes=nodes,
        pods=pods,
        without=tuple(round(each, 1) for each in without),
        asked=tuple(round(each, 1) for each in asked),
        loss_percent=round(loss, 1),
        answers=len(others),
        first_ms=round(median(first), 1),
        median_ms=round(median(others), 1),
    )

"""Measures what a running scheduler loses while what-if is asked again and again.

The basic workload runs through an API server (`server_run`), in turn without and with questions.
Questions come one after another, so one is always being answered. Before that, while no pod comes,
a few questions are asked about one pod and about a gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from moorage.api.resources import POD_GROUPS
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, TransportError
from moorage.base.rng import Streams
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call
from moorage.config.feature_gates import group_flag
from moorage.service.questions.question import PREFIX
from moorage_lab.bench.processes import Child, free_port
from moorage_lab.bench.report import Result
from moorage_lab.bench.server_run import OWN_CPU, ServerRun
from moorage_lab.bench.timing import Stopwatch, median
from moorage_lab.bench.workload import Workload

Progress = Callable[[str], None]

_GANG: Final = 500
_GATES: Final = group_flag()


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "change": "apply",
        "manifest": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [container], **spec},
        },
    }


def _body(*changes: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"changes": changes})


ONE_POD: Final = _body(_pod("asked"))
"""The question about one more pod."""
GANG: Final = _body(
    {
        "change": "apply",
        "manifest": {
            "apiVersion": POD_GROUPS.api_version,
            "kind": POD_GROUPS.kind,
            "metadata": {"name": "asked"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": _GANG}}},
        },
    },
    *(_pod(f"asked-{n}", schedulingGroup={"podGroupName": "asked"}) for n in range(_GANG)),
)
"""The question about the pods of a gang."""
_QUIET: Final = 20
_QUIET_GANGS: Final = 3
_TRY_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.2


class QuestionsResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Throughput without and with questions.

    Parameters
    ----------
    nodes, pods
        Size of the cluster, and the number of measured pods of one run.
    without, with_questions
        Pods a second of each run, in the order of the runs.
    loss_percent
        Loss of the median with questions, percent of the median without; below 0 is a gain.
    cpu_without, cpu_with_questions
        Processor time of the scheduler's process for each measured pod, milliseconds, of each run.
        The process that answers is not counted.
    answers
        Number of answers while pods were scheduled.
    median_ms
        Time of an answer while pods were scheduled, in the median, milliseconds.
    first_ms
        Time of the first answer, for which the state is copied.
    quiet_ms, gang_ms
        Time of an answer about one pod, and about a gang of 500, while no pod comes; medians.
    loop_ms
        Processor time of the scheduler's process for one question about one pod; the median.
    """

    nodes: int
    pods: int
    without: tuple[float, ...]
    with_questions: tuple[float, ...]
    loss_percent: float
    cpu_without: tuple[float, ...]
    cpu_with_questions: tuple[float, ...]
    answers: int
    median_ms: float
    first_ms: float
    quiet_ms: float
    gang_ms: float
    loop_ms: float


class _Asking:
    """Asks a scheduler one question after another."""

    def __init__(self, clock: Clock) -> None:
        self._port = free_port()
        self._clock = clock
        self.took_ms: list[float] = []
        self.first_ms = 0.0
        self.quiet_ms: list[float] = []
        self.gang_ms: list[float] = []
        self.loop_ms = 0.0

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the scheduler that is asked."""
        return (
            _GATES,
            *("--bind-address", "127.0.0.1", "--secure-port", str(self._port)),
            f"--authorization-always-allow-paths={PREFIX}/*",
        )

    async def before(self, scheduler: Child) -> None:
        """Ask until the scheduler answers, so that its state has been copied once, and then more.

        Parameters
        ----------
        scheduler
            Its process.
        """
        async with self._transport() as transport:
            while (found := await self._time_question(transport, ONE_POD)) is None:
                await aio.sleep(_LOOK_SECONDS)
            self.first_ms = found
            began = scheduler.own_processor_seconds()
            self.quiet_ms = [await self._answered(transport, ONE_POD) for _ in range(_QUIET)]
            self.loop_ms = 1e3 * (scheduler.own_processor_seconds() - began) / _QUIET
            self.gang_ms = [await self._answered(transport, GANG) for _ in range(_QUIET_GANGS)]

    async def during(self) -> None:
        """Ask until cancelled."""
        async with self._transport() as transport:
            while True:
                self.took_ms.append(await self._answered(transport, ONE_POD))

    def _transport(self) -> _Closing:
        access = ServerAccess(
            f"https://127.0.0.1:{self._port}", FixedCredentials(), insecure_skip_tls_verify=True
        )
        return _Closing(HttpTransport(access, user_agent="moorage-bench"))

    async def _answered(self, transport: HttpTransport, body: bytes) -> float:
        found = await self._time_question(transport, body)
        if found is None:
            raise MoorageError("the scheduler did not answer")
        return found

    async def _time_question(self, transport: HttpTransport, body: bytes) -> float | None:
        """Return how long the answer took, milliseconds; None if nobody listens yet."""
        call = Call("POST", f"{PREFIX}/what-if", body=body, timeout_seconds=_TRY_SECONDS)
        watch = Stopwatch(self._clock.monotonic_ns)
        try:
            answer = await transport.request(call)
        except TransportError:
            return None
        if answer.status != 200:
            raise MoorageError(f"what-if was refused: {answer.body[:500].decode()}")
        return watch.milliseconds


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
    without, with_questions, asking = list[Result](), list[Result](), list[_Asking]()
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}: no questions")
        quiet = ServerRun(
            workload, clock=clock, streams=streams, progress=progress, flags=(_GATES,)
        )
        without.append(await quiet.run())
        progress(f"round {number + 1} of {rounds}: questions")
        asking.append(_Asking(clock))
        run = ServerRun(
            workload, clock=clock, streams=streams, progress=progress, companion=asking[-1]
        )
        with_questions.append(await run.run())
    loss = 1 - median([*map(_speed, with_questions)]) / median([*map(_speed, without)])
    return QuestionsResult(
        nodes=nodes,
        pods=pods,
        without=tuple(map(_speed, without)),
        with_questions=tuple(map(_speed, with_questions)),
        loss_percent=round(100 * loss, 1),
        cpu_without=tuple(_cpu_ms(each, pods) for each in without),
        cpu_with_questions=tuple(_cpu_ms(each, pods) for each in with_questions),
        answers=sum(len(each.took_ms) for each in asking),
        median_ms=_middle(ms for each in asking for ms in each.took_ms),
        first_ms=_middle(each.first_ms for each in asking),
        quiet_ms=_middle(ms for each in asking for ms in each.quiet_ms),
        gang_ms=_middle(ms for each in asking for ms in each.gang_ms),
        loop_ms=_middle(each.loop_ms for each in asking),
    )


def _speed(result: Result) -> float:
    return round(result.pods_per_second, 1)


def _cpu_ms(result: Result, pods: int) -> float:
    return round(1e3 * result.seconds_by_part[OWN_CPU] / pods, 3)


def _middle(figures: Iterable[float]) -> float:
    return round(median(list(figures)), 1)

"""Measures hand-overs with processes: a server, several replicas of one scheduler, and signals.

Each replica calls the server as a user of its own, so that the server's audit log tells who wrote
what, and when. A replica that ended is replaced by a new process with a new name.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage_lab.bench.handover.load import HandoverLoad
from moorage_lab.bench.handover.plan import ACTS, HandoverPlan, HandoverReport, Round
from moorage_lab.bench.handover.replicas import LOOK_SECONDS, PATIENCE_SECONDS, Replicas
from moorage_lab.bench.processes import Harness, open_harness, server_flags
from moorage_lab.bench.timing import Stopwatch

_REST_SECONDS = 2.0


class HandoverRun:
    """One measurement, with processes of its own.

    Parameters
    ----------
    plan
        The replicas, their load, and the number of rounds.
    clock, streams
        Time and randomness. The seed decides the acts, the replicas and the times between.
    progress
        Called with a message at every step.
    """

    def __init__(
        self,
        plan: HandoverPlan,
        *,
        clock: Clock,
        streams: Streams,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._streams = streams
        self._rng = streams.stream("handover")
        self._progress = progress

    async def run(self) -> HandoverReport:
        """Start the processes, act, check the result, end the processes.

        Raises
        ------
        MoorageError
            A process ended without being told to, or nobody took over.
        """
        async with open_harness(self._clock, server_program=_server_flags) as harness:
            replicas = Replicas(self._plan, harness.folder)
            try:
                return await self._measure(harness, replicas)
            finally:
                await replicas.stop()

    async def _measure(self, harness: Harness, replicas: Replicas) -> HandoverReport:
        transport = harness.open_transport(user_agent="moorage-handover")
        client = Client(transport, rng=self._streams.stream("handover/client"))
        load = HandoverLoad(client, self._plan, clock=self._clock, streams=self._streams)
        try:
            await load.start()
            self._progress(f"{self._plan.nodes} nodes are up, {load.created} pods are created")
            await replicas.complete()
            load.come_and_go()
            self._progress(f"{self._plan.replicas} replicas run")
            watch = Stopwatch(self._clock.monotonic_ns)
            rounds = []
            for number in range(self._plan.rounds):
                await aio.sleep(self._rng.uniform(0, _REST_SECONDS))
                rounds.append(await self._round(replicas))
                load.raise_failure()
                self._progress(f"{number + 1}/{self._plan.rounds} {_round_text(rounds[-1])}")
            seconds = watch.seconds
            lost = await load.end_arrivals(seconds=PATIENCE_SECONDS, meanwhile=replicas.replace)
            book = replicas.look()
            return HandoverReport(
                plan=self._plan,
                rounds=tuple(rounds),
                seconds=seconds,
                created=load.created,
                bound=len(book.binds),
                bound_twice=tuple(book.bound_twice()),
                overcommitted=tuple(load.overcommitted),
                old_writes=tuple(book.old_writes()),
                lost=tuple(lost),
                refused=tuple(load.refused),
                ended=replicas.ended,
            )
        finally:
            await load.stop()

    # --- one round --------------------------------------------------------------------------

    async def _round(self, replicas: Replicas) -> Round:
        """Act against one replica, wait until pods are bound again, and replace what ended."""
        act, leader = self._rng.choice(ACTS), await replicas.leader()
        others = sorted(set(replicas.running) - {leader})
        name = leader if self._rng.random() < self._plan.leader_share else self._rng.choice(others)
        stopped = 0.0
        began = self._now()
        replicas.excused.add(name)
        replicas.running[name].signal(signal.Signals[act])
        if act == "SIGSTOP":
            stopped = self._rng.uniform(0, self._plan.stop_seconds)
            await aio.sleep(stopped)
            replicas.running[name].signal(signal.SIGCONT)
            await self._bound(replicas, self._now(), not_by="")
        elif name == leader:
            await self._bound(replicas, began, not_by=name)
        book = replicas.look()
        taken = book.first_bind(after=began, not_by=name) if name == leader else None
        seconds = gap = None
        if taken is not None:
            seconds = taken.answered - began
            last = book.last_bind(name, before=taken.answered)
            gap = None if last is None else taken.answered - last
        if taken is not None or act != "SIGSTOP":
            await replicas.ends(name)
        await replicas.complete()
        return Round(
            act=act,
            leader=name == leader,
            stopped_seconds=stopped,
            seconds=seconds,
            gap_seconds=gap,
        )

    def _now(self) -> float:
        return self._clock.now_ns() / NS_PER_SECOND

    async def _bound(self, replicas: Replicas, after: float, *, not_by: str) -> None:
        """Wait until a replica, other than one, binds a pod."""
        patience = self._plan.lease_seconds + PATIENCE_SECONDS
        watch = Stopwatch(self._clock.monotonic_ns)
        while replicas.look().first_bind(after=after, not_by=not_by) is None:
            if watch.seconds > patience:
                raise MoorageError(f"no pod was bound for {patience:.0f} s; {replicas.tails()}")
            await replicas.replace(later=not_by)
            await aio.sleep(LOOK_SECONDS)


def _server_flags(kubeconfig: Path) -> tuple[str, ...]:
    audit_log = kubeconfig.with_name("audit.jsonl")
    return server_flags(kubeconfig, "--no-dashboard", "--audit-log", str(audit_log))


def _round_text(each: Round) -> str:
    who = "leader" if each.leader else "standby"
    stopped = f" for {each.stopped_seconds:.1f} s" if each.act == "SIGSTOP" else ""
    if each.seconds is None:
        return f"{each.act} {who}{stopped}: nobody else took over"
    gap = "" if each.gap_seconds is None else f", {each.gap_seconds:.2f} s between two bindings"
    return f"{each.act} {who}{stopped}: {each.seconds:.2f} s to the first binding{gap}"

"""One run of a script, from the start of its cluster to what did not hold.

The acts are carried out at their moments. Then a rest ends every fault, and gives every timer its
time. At last the whole cluster is looked at. Meanwhile each write of a scheduler is judged when it
comes to the server, and the schedulers themselves are looked into after each write.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.memory import unsettle_memory
from moorage.snapshot.pod_info import forget_shared_parts
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import AnyAct, Script
from moorage_lab.fault_sim.administrator import Autoscaler, drain
from moorage_lab.fault_sim.cluster import OnStep, SimCluster
from moorage_lab.fault_sim.delayed_step import SLOW
from moorage_lab.fault_sim.fault_injector import FaultInjector
from moorage_lab.fault_sim.history import (
    Obj,
    Write,
    group_of,
    name_of,
    node_of,
    nominated_of,
    rejects,
)
from moorage_lab.fault_sim.invariants.at_rest import broken_at_rest
from moorage_lab.fault_sim.invariants.at_writes import broken_by, broken_by_server
from moorage_lab.fault_sim.invariants.derived import DERIVED
from moorage_lab.fault_sim.invariants.inside import INSIDE, leaders, synced
from moorage_lab.fault_sim.invariants.invariant import Breach, Invariant
from moorage_lab.fault_sim.invariants.waiting import PLACED
from moorage_lab.fault_sim.invariants.write_case import WriteCase, is_leaving
from moorage_lab.fault_sim.log_watch import watched_log
from moorage_lab.fault_sim.loop import run_simulated
from moorage_lab.fault_sim.replica import Replica
from moorage_lab.fault_sim.user_calls import UserAct, call
from moorage_sandbox.testing.builders import pod_manifest

# Within this time a watch without faults tells everything.
_FRESH_SECONDS = 8.0
# The same where a script has no faults at all, and nothing holds a decision up.
_CALM_SECONDS = 1.5
# Schedulers are looked into no more once so many breaches are known: the first ones tell the most.
_BREACHES_MOST = 20

# Pods made so shortly before the end of the rest may still be tried; then the rest is longer.
_JUST_NOW_NS = 5 * NS_PER_SECOND
_MORE_REST_SECONDS = 20.0
_MORE_RESTS_MAX = 5

# Set-ups in which a decision is carried out at once, in which plugins hold pods without a mistake,
# and in which something misbehaves.
_PROMPT = frozenset({"default", "coscheduling", "quotas", "unscored"})
_HOLDING = frozenset({"delayed step", "gangs at permit", "teams at permit"})
_MISBEHAVING = frozenset({"broken plugin", "extender", "extenders"})

_BY_USERS = acts.Create | acts.Delete | acts.Patch | acts.Bind | acts.Join | acts.Look
_LASTING = acts.Stop | acts.Kill | acts.Outage | acts.Disturb | acts.Drain | acts.Autoscale


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run.

    Parameters
    ----------
    seed
        The seed of its script.
    breaches
        What did not hold, in the order of time.
    digest
        SHA-256 of the trace.
    lines
        The trace.
    seconds
        Virtual time that passed.
    bound, evicted
        Pods that schedulers bound and evicted.
    fault_counts
        How often each fault struck.
    steps
        Steps of all programs: a task runs in one step from one await to the next.
    covered
        What the run led through: pairs of states that followed each other in the life of a pod,
        with the event that led there, and the faults that struck.
    """

    seed: int
    breaches: tuple[Breach, ...]
    digest: str
    lines: tuple[str, ...]
    seconds: float
    bound: int
    evicted: int
    fault_counts: dict[str, int]
    steps: int = 0
    covered: frozenset[str] = frozenset()


def play(script: Script, *, on_step: OnStep | None = None) -> Outcome:
    """Play a script to its end; the same script gives the same outcome.

    Parameters
    ----------
    script
        What is played.
    on_step
        Told of each step of the schedulers, until the rest; None for nobody.
    """
    clock = ManualClock()
    try:
        return run_simulated(FaultRun(script, clock, on_step).run(), clock)
    finally:
        # A scheduler that starts freezes what it finds. What plugins compiled of pods leads back to
        # the scheduler, also where a pod of somebody else shares it.
        unsettle_memory()
        forget_shared_parts()


class _RestlessError(Exception):
    """The schedulers try pods again and again."""


class FaultRun:
    """A run under way."""

    def __init__(self, script: Script, clock: ManualClock, on_step: OnStep | None) -> None:
        self._script = script
        self._clock = clock
        self._breaches: list[Breach] = []
        self._bound = 0
        self._evicted = 0
        self._cluster = SimCluster(
            script.seed,
            clock,
            on_write=self._judge_write,
            on_try=self._judge_binding,
            setup=script.setup,
            on_disk=script.on_disk,
            on_step=on_step,
        )
        self._injector = FaultInjector(self._cluster)
        calm = all(isinstance(act, _BY_USERS) for act in script.acts)
        reloads = any(isinstance(act, acts.Reload) for act in script.acts)
        self._cluster.faultless = calm and script.setup in _PROMPT | _HOLDING
        self._cluster.undisturbed = calm and script.setup in _PROMPT
        # Whether something of the script misbehaves until the rest.
        self._misbehaves = reloads or script.setup in _MISBEHAVING

    async def run(self) -> Outcome:
        """Play the script to its end."""
        cluster = self._cluster
        with watched_log(cluster.failures.append):
            asyncio.get_running_loop().set_exception_handler(self._note_loop_error)
            try:
                await cluster.start(self._script.nodes, self._script.replicas)
                try:
                    await self._play_acts()  # 1. what users do, and faults
                    await self._rest()  # 2. no more acts, and faults end
                    self._add_breaches(broken_at_rest(cluster))  # 3. the cluster as a whole
                except _RestlessError:
                    self._add_breaches(cluster.observations[:_BREACHES_MOST])
                outcome = self._outcome()
            finally:
                await cluster.close()
            # 4. Nothing runs any more. What programs do while they end was not judged.
            left = [Breach("no-failure", self._seconds, text) for text in _tasks_left()]
            return msgspec.structs.replace(outcome, breaches=(*outcome.breaches, *left))

    @property
    def _seconds(self) -> float:
        return self._clock.monotonic_ns() / NS_PER_SECOND

    def _add_breaches(self, broken: Iterable[tuple[str, str]], by: str = "") -> None:
        """Note what did not hold: the names of invariants, each with a text."""
        for name, text in broken:
            self._breaches.append(Breach(name, self._seconds, by + text))

    async def _sleep(self, seconds: float) -> None:
        """Sleep; the virtual time may hardly move where pods are tried without a pause.

        Raises
        ------
        _RestlessError
            Pods are tried again and again.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._cluster.restless.wait()
        if self._cluster.restless.is_set():
            raise _RestlessError

    async def _wait_until(self, at: float) -> None:
        if at > self._seconds:
            await self._sleep(at - self._seconds)

    def _note_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note a failure that nobody asked for, or a task that was dropped."""
        del loop
        self._cluster.failures.append(f"{context['message']}: {context.get('exception')!r}")

    def _outcome(self) -> Outcome:
        cluster = self._cluster
        struck: Counter[str] = Counter()
        for faults in cluster.network_faults.values():
            struck.update(faults.fault_counts)
        fault_counts = (
            dict(struck) | self._injector.fault_counts | cluster.plugin_faults.fault_counts
        )
        return Outcome(
            seed=self._script.seed,
            breaches=tuple(self._breaches),
            digest=cluster.trace.digest,
            lines=tuple(cluster.trace.lines),
            seconds=self._seconds,
            bound=self._bound,
            evicted=self._evicted,
            fault_counts=fault_counts,
            steps=cluster.steps,
            covered=frozenset(_covered(cluster, fault_counts)),
        )

    # --- acts -------------------------------------------------------------------------------------

    async def _play_acts(self) -> None:
        for act in sorted(self._script.acts, key=lambda each: each.at):
            await self._wait_until(act.at)
            await self._carry_out(act)

    async def _carry_out(self, act: AnyAct) -> None:
        cluster = self._cluster
        match act:
            case acts.Delete() if act.process:
                later = partial(self._delete_after_steps, act)
                self._injector.after_steps(act.process, act.steps, later)
            case acts.Create() | acts.Delete() | acts.Patch() | acts.Bind():
                await self._call_as_user(act)
            case acts.Look():
                self._look_for_lost_wakeups()
            case acts.Join():
                await cluster.join([act.node])
            case acts.Drain() | acts.Autoscale():
                self._start_administrator(act)
            case _:
                cluster.trace.add_line("fault", msgspec.json.encode(act).decode())
                self._injector.inject(act)

    async def _call_as_user(self, act: UserAct) -> None:
        if refused := await call(self._cluster.user, act):
            self._cluster.trace.add_line("user", f"is refused: {refused}")

    def _delete_after_steps(self, act: acts.Delete, replica: Replica) -> None:
        text = f"has run {replica.process.steps} steps when {act.name} goes"
        self._cluster.trace.add_line(replica.identity, text)
        self._cluster.start_task(self._call_as_user(act))

    def _start_administrator(self, act: acts.Drain | acts.Autoscale) -> None:
        """Start a tool of an administrator, which works for a while."""
        cluster = self._cluster
        cluster.trace.add_line("administrator", msgspec.json.encode(act).decode())
        if isinstance(act, acts.Drain):
            end_ns = self._clock.monotonic_ns() + round(act.seconds * NS_PER_SECOND)
            cluster.start_task(drain(cluster.user, cluster.history, act.node, end_ns=end_ns))
            return
        scaler = Autoscaler(cluster.user, cluster.history, self._clock, join=cluster.join)
        cluster.start_task(scaler.run(act.seconds))

    def _look_for_lost_wakeups(self) -> None:
        """Look for pods that wait although they could be placed.

        Nothing can be said while something is still to happen by itself: a plugin misbehaves, a pod
        has a promise or ends, or a connection hides something. A pod in its backoff is tried at the
        end of it, also after an error of a plugin.
        """
        cluster, now_ns = self._cluster, self._clock.monotonic_ns()
        pods = cluster.history.pods.values()
        if self._breaches or self._misbehaves:
            return
        if any(nominated_of(pod) or is_leaving(pod) for pod in pods):
            return
        if any(
            each.spells(now_ns) or each.blind_ns(now_ns) for each in cluster.network_faults.values()
        ):
            return
        queues = [each.core.queue for each in leaders(cluster)]
        backing_off = {each.pod.full_name for queue in queues for each in queue.pending().backoff}
        for invariant in PLACED:
            texts = invariant.broken(cluster)
            waiting = [text for text in texts if text.partition(" ")[0] not in backing_off]
            self._add_breaches((invariant.name, text) for text in waiting)

    # --- rest -------------------------------------------------------------------------------------

    async def _rest(self) -> None:
        """End every fault, let every scheduler run, and wait."""
        cluster = self._cluster
        for faults in cluster.network_faults.values():
            faults.clear(self._clock.monotonic_ns())
        # A stopped or killed scheduler comes back by itself within its own time.
        lasting = [act for act in self._script.acts if isinstance(act, _LASTING)]
        longest = max((act.at + act.seconds for act in lasting), default=0.0)
        await self._wait_until(max(longest, self._injector.end_faults()) + 1)
        cluster.cut()
        await self._end_plugin_faults()
        await self._end_slow_steps()
        cluster.trace.add_line("simulation", "rests")
        await self._sleep(self._script.rest_seconds)
        for _ in range(_MORE_RESTS_MAX):
            if not self._has_new_pods():
                break
            await self._sleep(_MORE_REST_SECONDS)

    def _has_new_pods(self) -> bool:
        """Return whether a controller made pods a moment ago, a Job at the end of its backoff."""
        history = self._cluster.history
        latest_ns = max(history.created_ns.values(), default=0)
        return history.history_now_ns - latest_ns < _JUST_NOW_NS

    async def _end_plugin_faults(self) -> None:
        """End the faults of plugins and extenders, with the event that they wait for."""
        cluster = self._cluster
        cluster.plugin_faults.end_faults()
        if not cluster.history.nodes or not self._misbehaves:
            return
        node = next(iter(cluster.history.nodes))
        news = pod_manifest("news", node_name=node, schedulerName="other")
        await call(cluster.user, acts.Create(at=self._seconds, object=news))
        await aio.sleep(1.0)
        await call(cluster.user, acts.Delete(at=self._seconds, kind="Pod", name="news"))

    async def _end_slow_steps(self) -> None:
        """Delete the pods whose delayed step outlasts the rest; in most scripts a user does so."""
        for pod in list(self._cluster.history.pods.values()):
            meta = pod["metadata"]
            if SLOW in meta.get("labels", {}) and not node_of(pod) and not is_leaving(pod):
                gone = acts.Delete(at=self._seconds, kind="Pod", name=meta["name"])
                await call(self._cluster.user, gone)

    # --- writes -----------------------------------------------------------------------------------

    def _judge_write(self, write: Write) -> None:
        """Judge a write of anybody by what the server must do, and a scheduler's by all rules."""
        self._add_breaches(broken_by_server(write), by=f"{write.by}: ")
        for scheduler in synced(self._cluster):
            self._cluster.oracles[scheduler].look_for_sleepers()
        self._look_inside(DERIVED)
        by_scheduler = "." in write.by
        if by_scheduler:
            case = self._case_of(write)
            self._note_case(case)
            self._add_breaches(broken_by(case), by=f"{write.by}: ")
            self._look_inside(INSIDE)
        elif write.by == "nodes" and rejects(write):
            self._injector.count("agent-rejects")

    def _case_of(self, write: Write) -> WriteCase:
        cluster = self._cluster
        return WriteCase(
            write=write,
            history=cluster.history,
            horizon_ns=self._horizon_ns(write.by) + self._plugin_hold_ns(write),
            undisturbed=cluster.undisturbed,
            faultless=cluster.faultless,
            unscored=self._script.setup == "unscored",
        )

    def _note_case(self, case: WriteCase) -> None:
        """Count bindings and evictions, and note what they excuse later."""
        history, write = self._cluster.history, case.write
        self._bound += case.binds
        group = group_of(case.pod) if case.binds else ""
        gone_ns = history.member_gone_ns.get(group) if group else None
        if gone_ns is not None and not case.settled(gone_ns):
            history.excused_groups.add(group)
        if case.evicts:
            self._evicted += 1
            victim = write.before or {}
            history.evicted.add(victim["metadata"]["uid"])
            history.evicted_on_ns[node_of(victim)] = write.at_ns

    def _judge_binding(self, by: str, pod: Obj) -> None:
        """Judge a binding when it is sent, whatever becomes of it."""
        left_ns = self._cluster.history.left_ns.get(pod["metadata"]["uid"])
        if left_ns is None or self._clock.monotonic_ns() - left_ns <= self._horizon_ns(by):
            return
        text = f"{by}: {name_of(pod)} is sent to a node, and it is being deleted"
        self._cluster.observations.append(("leaving-tried", text))

    def _look_inside(self, invariants: Iterable[Invariant[SimCluster]]) -> None:
        """Look into every scheduler."""
        if len(self._breaches) < _BREACHES_MOST:
            for invariant in invariants:
                self._add_breaches(
                    (invariant.name, text) for text in invariant.broken(self._cluster)
                )

    def _plugin_hold_ns(self, write: Write) -> int:
        """Return how long a plugin that hangs may have held a pod since its node was chosen."""
        uid = (write.now or write.before or {})["metadata"].get("uid", "")
        popped_ns = self._cluster.history.popped_ns.get(uid) if self._misbehaves else None
        return 0 if popped_ns is None else write.at_ns - popped_ns

    def _horizon_ns(self, by: str) -> int:
        """Return the age from which a scheduler must know what others wrote."""
        faults = self._cluster.replicas[by.partition(".")[0]].faults
        seconds = _CALM_SECONDS if self._cluster.undisturbed else _FRESH_SECONDS
        return faults.blind_ns(self._clock.monotonic_ns()) + round(seconds * NS_PER_SECOND)


def _tasks_left() -> list[str]:
    """Return the tasks that are left when every program has ended."""
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    return sorted(f"task {task.get_name()} is left: {task.get_coro()}" for task in left)


def _covered(cluster: SimCluster, faults: Iterable[str]) -> Iterator[str]:
    for scheduler in cluster.schedulers:
        for history in scheduler.core.cache.lifecycle.histories:
            for first, second in pairwise(history.entries):
                edge = f"{first.what} > {second.what}"
                yield edge
                yield f"{edge} by {_without_names(second.cause)}"
                for fault in faults:
                    yield f"{edge} under {fault}"


def _without_names(cause: str) -> str:
    """Return a cause without the names of nodes in it."""
    return " ".join(word for word in cause.split() if not any(map(str.isdigit, word)))

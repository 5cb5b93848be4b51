"""One run of a script: acts and faults at their moments, a rest, and a look at the whole."""

from __future__ import annotations

import asyncio
import contextlib
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


_BY_USERS = acts.Create | acts.Delete | acts.Patch | acts.Bind | acts.Join | acts.Look

# The set-ups in which a decision is carried out at once.
_PROMPT = frozenset({"default", "coscheduling", "quotas", "unscored"})

# The set-ups with plugins that hold pods, and do nothing wrong.
_HOLDING = frozenset({"delayed step", "gangs at permit", "teams at permit"})

# The set-ups with something that misbehaves.
_MISBEHAVING = frozenset({"broken plugin", "extender", "extenders"})


# Pods made so shortly before the end of the rest may still be tried; then the rest is longer.
_JUST_NOW_NS = 5 * NS_PER_SECOND
_MORE_REST_SECONDS = 20.0
_MORE_RESTS_MAX = 5


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
            on_write=self._written,
            on_try=self._tried,
            setup=script.setup,
            on_disk=script.on_disk,
            on_step=on_step,
        )
        self._injector = FaultInjector(self._cluster)

    async def run(self) -> Outcome:
        """Play the script to its end."""
        script, cluster = self._script, self._cluster
        cluster.undisturbed = self._undisturbed
        cluster.faultless = self._faultless
        with watched_log(cluster.failures.append):
            asyncio.get_running_loop().set_exception_handler(self._unheard)
            try:
                await cluster.start(script.nodes, script.replicas)
                await self._play_acts()
                outcome = self._outcome()
            finally:
                await cluster.close()
            return self._looked_behind(outcome)

    async def _play_acts(self) -> None:
        """Play the acts and rest; end at once where pods are tried without a pause."""
        try:
            for act in sorted(self._script.acts, key=lambda each: each.at):
                await self._wait_until(act.at)
                await self._do(act)
            await self._rest()
        except _RestlessError:
            observed = self._cluster.observations[:_BREACHES_MOST]
            self._breaches += [Breach(name, self._seconds, text) for name, text in observed]
        else:
            self._look()

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

    @property
    def _seconds(self) -> float:
        return self._clock.monotonic_ns() / NS_PER_SECOND

    async def _wait_until(self, at: float) -> None:
        if at > self._seconds:
            await self._sleep(at - self._seconds)

    async def _rest(self) -> None:
        """End every fault, let every scheduler run, and wait."""
        cluster = self._cluster
        for faults in cluster.network_faults.values():
            faults.clear(self._clock.monotonic_ns())
        # A stopped or killed scheduler comes back by itself within its own time.
        longest = max(
            (act.at + act.seconds for act in self._script.acts if isinstance(act, _LASTING)),
            default=0.0,
        )
        await self._wait_until(max(longest, self._injector.end_faults()) + 1)
        cluster.cut()
        await self._end_plugin_faults()
        await self._end_slow_steps()
        self._cluster.trace.add_line("simulation", "rests")
        await self._sleep(self._script.rest_seconds)
        for _ in range(_MORE_RESTS_MAX):
            if not self._pods_just_made():
                break
            await self._sleep(_MORE_REST_SECONDS)

    def _pods_just_made(self) -> bool:
        """Return whether a controller made pods a moment ago, a Job at the end of its backoff."""
        latest_ns = max(self._cluster.history.created_ns.values(), default=0)
        return self._cluster.history.history_now_ns - latest_ns < _JUST_NOW_NS

    @property
    def _undisturbed(self) -> bool:
        """Whether nothing of this script delays, breaks or misbehaves."""
        return self._faultless and self._script.setup in _PROMPT

    @property
    def _faultless(self) -> bool:
        """Whether all connections and programs of this script work, but for plugins that wait."""
        calm = all(isinstance(act, _BY_USERS) for act in self._script.acts)
        return calm and self._script.setup in _PROMPT | _HOLDING

    @property
    def _misbehaves(self) -> bool:
        """Whether something of this script misbehaves until the rest."""
        reloads = any(isinstance(act, acts.Reload) for act in self._script.acts)
        return reloads or self._script.setup in _MISBEHAVING

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

    def _look_between(self) -> None:
        """Look for lost wake-ups, unless something is still to happen by itself.

        A pod in its backoff is tried at the end of it, also after an error of a plugin.
        """
        pods = self._cluster.history.pods.values()
        nominated = any(map(nominated_of, pods))
        if self._breaches or self._misbehaves or nominated or any(map(is_leaving, pods)):
            return
        now_ns = self._clock.monotonic_ns()
        network_faults = self._cluster.network_faults.values()
        if any(each.spells(now_ns) or each.blind_ns(now_ns) for each in network_faults):
            return
        for invariant in PLACED:
            for text in invariant.broken(self._cluster):
                if text.partition(" ")[0] not in self._backing_off():
                    self._breaches.append(Breach(invariant.name, self._seconds, text))

    def _backing_off(self) -> list[str]:
        """Return the names of the pods in the backoff queues of leaders."""
        queues = [each.core.queue for each in leaders(self._cluster)]
        return [each.pod.full_name for queue in queues for each in queue.pending().backoff]

    def _look(self) -> None:
        for name, text in broken_at_rest(self._cluster):
            self._breaches.append(Breach(name, self._seconds, text))

    def _looked_behind(self, outcome: Outcome) -> Outcome:
        """Add the tasks that are left when every program has ended."""
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        texts = [f"task {task.get_name()} is left: {task.get_coro()}" for task in left]
        breaches = [Breach("no-failure", self._seconds, text) for text in sorted(texts)]
        return msgspec.structs.replace(outcome, breaches=(*outcome.breaches, *breaches))

    def _unheard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note what a loop tells of: a failure that nobody asked for, a task that was dropped."""
        del loop
        self._cluster.failures.append(f"{context['message']}: {context.get('exception')!r}")

    def _outcome(self) -> Outcome:
        cluster = self._cluster
        fault_counts: dict[str, int] = {}
        for faults in cluster.network_faults.values():
            for fault, count in faults.fault_counts.items():
                fault_counts[fault] = fault_counts.get(fault, 0) + count
        fault_counts |= self._injector.fault_counts | cluster.plugin_faults.fault_counts
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

    # --- writes -----------------------------------------------------------------------------------

    def _written(self, write: Write) -> None:
        for broken, text in broken_by_server(write):
            self._breaches.append(Breach(broken, self._seconds, f"{write.by}: {text}"))
        for scheduler in synced(self._cluster):
            self._cluster.oracles[scheduler].look_for_sleepers()
        self._look_inside(DERIVED)
        if "." not in write.by:
            if write.by == "nodes" and rejects(write):
                self._injector.count("agent-rejects")
            return
        cluster = self._cluster
        case = WriteCase(
            write=write,
            history=cluster.history,
            horizon_ns=self._horizon_ns(write.by) + self._held_ns(write),
            undisturbed=self._undisturbed,
            faultless=self._faultless,
            unscored=self._script.setup == "unscored",
        )
        self._bound += case.binds
        group = group_of(case.pod) if case.binds else ""
        gone_ns = cluster.history.member_gone_ns.get(group) if group else None
        if gone_ns is not None and not case.settled(gone_ns):
            cluster.history.excused_groups.add(group)
        if case.evicts:
            self._evicted += 1
            victim = write.before or {}
            cluster.history.evicted.add(victim["metadata"]["uid"])
            cluster.history.evicted_on_ns[node_of(victim)] = write.at_ns
        for broken, text in broken_by(case):
            self._breaches.append(Breach(broken, self._seconds, f"{write.by}: {text}"))
        self._look_inside(INSIDE)

    def _look_inside(self, invariants: Iterable[Invariant[SimCluster]]) -> None:
        """Look into every scheduler."""
        if len(self._breaches) < _BREACHES_MOST:
            for invariant in invariants:
                for text in invariant.broken(self._cluster):
                    self._breaches.append(Breach(invariant.name, self._seconds, text))

    def _tried(self, by: str, pod: Obj) -> None:
        """Judge a binding when it is sent, whatever becomes of it."""
        left_ns = self._cluster.history.left_ns.get(pod["metadata"]["uid"])
        if left_ns is None or self._clock.monotonic_ns() - left_ns <= self._horizon_ns(by):
            return
        text = f"{by}: {name_of(pod)} is sent to a node, and it is being deleted"
        self._cluster.observations.append(("leaving-tried", text))

    def _held_ns(self, write: Write) -> int:
        """Return how long a plugin that hangs may have held a pod since its node was chosen."""
        uid = (write.now or write.before or {})["metadata"].get("uid", "")
        popped_ns = self._cluster.history.popped_ns.get(uid) if self._misbehaves else None
        return 0 if popped_ns is None else write.at_ns - popped_ns

    def _horizon_ns(self, by: str) -> int:
        """Return the age from which a scheduler must know what others wrote."""
        faults = self._cluster.replicas[by.partition(".")[0]].faults
        seconds = _CALM_SECONDS if self._undisturbed else _FRESH_SECONDS
        return faults.blind_ns(self._clock.monotonic_ns()) + round(seconds * NS_PER_SECOND)

    # --- acts -------------------------------------------------------------------------------------

    async def _do(self, act: AnyAct) -> None:
        cluster = self._cluster
        match act:
            case acts.Delete() if act.process:
                later = partial(self._deleted_late, act)
                self._injector.after_steps(act.process, act.steps, later)
            case acts.Create() | acts.Delete() | acts.Patch() | acts.Bind():
                await self._called(act)
            case acts.Look():
                self._look_between()
            case acts.Join():
                await cluster.join([act.node])
            case acts.Drain() | acts.Autoscale():
                self._administer(act)
            case _:
                cluster.trace.add_line("fault", msgspec.json.encode(act).decode())
                self._injector.inject(act)

    async def _called(self, act: UserAct) -> None:
        if refused := await call(self._cluster.user, act):
            self._cluster.trace.add_line("user", f"is refused: {refused}")

    def _deleted_late(self, act: acts.Delete, replica: Replica) -> None:
        steps = replica.process.steps
        self._cluster.trace.add_line(
            replica.identity, f"has run {steps} steps when {act.name} goes"
        )
        self._cluster.start_task(self._called(act))

    def _administer(self, act: acts.Drain | acts.Autoscale) -> None:
        """Start a tool of an administrator, which works for a while."""
        cluster = self._cluster
        cluster.trace.add_line("administrator", msgspec.json.encode(act).decode())
        if isinstance(act, acts.Drain):
            end_ns = self._clock.monotonic_ns() + round(act.seconds * NS_PER_SECOND)
            cluster.start_task(drain(cluster.user, cluster.history, act.node, end_ns=end_ns))
            return
        scaler = Autoscaler(cluster.user, cluster.history, self._clock, join=cluster.join)
        cluster.start_task(scaler.run(act.seconds))


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


_LASTING = acts.Stop | acts.Kill | acts.Outage | acts.Disturb | acts.Drain | acts.Autoscale

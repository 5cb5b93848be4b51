"""The cluster of a simulation: the real parts on one virtual loop, each scheduler a process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from moorage.api.codec import decode_untyped
from moorage.api.resources import LEASES
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError, LeaseLostError, MoorageError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call
from moorage.config.extenders import Extender
from moorage.nodeshapes.templates import complete
from moorage.service.scheduler import Scheduler
from moorage_lab.fault_sim.auditor import Auditor
from moorage_lab.fault_sim.broken_plugin import PluginFaults, registry
from moorage_lab.fault_sim.extender import SimExtender
from moorage_lab.fault_sim.handover import Handovers
from moorage_lab.fault_sim.history import History, Obj, Write
from moorage_lab.fault_sim.invariants.attempts import AttemptOracle
from moorage_lab.fault_sim.lease_check import LeaseCheck
from moorage_lab.fault_sim.loop import Process
from moorage_lab.fault_sim.network_faults import NetworkFaults
from moorage_lab.fault_sim.probe import Probe
from moorage_lab.fault_sim.replica import Replica
from moorage_lab.fault_sim.served import Served
from moorage_lab.fault_sim.setups import configuration
from moorage_lab.fault_sim.trace import Trace
from moorage_lab.fault_sim.turns import InTurn
from moorage_lab.fault_sim.wire import Server, Wire
from moorage_sandbox.cluster.assembly import NODE_AGENTS, USER, ClusterSettings, EmbeddedCluster
from moorage_sandbox.cluster.in_process import Handling, InProcessTransport
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.nodeagent.agents import NodeAgents

OnWrite = Callable[[Write], None]
OnTry = Callable[[str, Obj], None]
OnStep = Callable[[str, Callable[..., object]], None]
"""Gets the name of a life of a scheduler, and the callback that it ran."""


_TRIES_MOST = 20
"""Breaches of the rule about tries after which a run ends; a guess."""

# A node whose agents live and whose server answers is there within this time.
_JOINED_SECONDS = 60.0

_LEASE = ("kube-system", "kube-scheduler")
"""Namespace and name of the lease of the schedulers, by default."""

_LEASE_EVENTS = "/api/v1/namespaces/kube-system/events"
"""Events of leader election: a scheduler that ends tells there that it no longer leads."""


class SimCluster:
    """API server, controllers, node agents and schedulers.

    Parameters
    ----------
    seed
        Decides every draw.
    clock
        Time of the loop.
    on_write
        Told of each change of a pod or node when the server makes it.
    on_try
        Told of the scheduler and the pod when a binding is sent.
    setup
        Name of the schedulers' configuration, a key of `moorage_lab.fault_sim.setups.SETUPS`.
    on_disk
        Whether the API server keeps its objects on a disk.
    on_step
        Told of each step of the schedulers; None for nobody.
    """

    def __init__(
        self,
        seed: int,
        clock: ManualClock,
        *,
        on_write: OnWrite,
        on_try: OnTry,
        setup: str = "default",
        on_disk: bool = False,
        on_step: OnStep | None = None,
    ) -> None:
        self.seed, self.setup, self.clock = seed, setup, clock
        self._on_step = on_step
        self.trace = Trace(clock)
        self._on_write, self._on_try = on_write, on_try
        self._streams = Streams(seed)
        form = ClusterSettings(clock=clock, streams=self._streams, connect=self._connect)
        self.served = Served(form, on_disk=on_disk, on_death=self.crash)
        self._programs = EmbeddedCluster(form, self.served, self._spawn_program)
        self.history = History(self.served, clock)
        self._processes: list[Process] = []
        self.server = Server(self._process("server"))
        self.network_faults: dict[str, NetworkFaults] = {}
        self._extenders: dict[str, dict[str, SimExtender]] = {}
        # Of each scheduler, by its identity: its extenders by their address.
        self.replicas: dict[str, Replica] = {}
        self.failures: list[str] = []
        """Tasks that failed, and errors that were logged."""
        self.writes_without_lease: list[str] = []
        """Writes of a scheduler that were sent without the right to write."""
        self._lease_check = LeaseCheck()
        self._handovers = self._judged_handovers()
        self.observations: list[tuple[str, str]] = []
        """Breaches seen while the schedulers ran: name of the invariant, and how."""
        self.restless = asyncio.Event()  # pods are tried so often that time may stand still
        self.probes: dict[str, Probe] = {}
        """The probes of the schedulers, by the name of their life."""
        self.oracles: dict[Scheduler, AttemptOracle] = {}  # of every scheduler
        self.auditor = Auditor(self.served)
        self._auditing: asyncio.Task[None] | None = None
        self.plugin_faults = PluginFaults()
        self.undisturbed = False
        """Whether nothing delays a decision: no fault, no extender, no plugin that holds pods."""
        self.faultless = False
        """Whether all connections and programs work; a plugin may hold pods."""
        self.schedulers: list[Scheduler] = []
        """Every scheduler that was ever started, killed ones included."""
        self.identities: list[str] = []  # their names
        self._dead: list[Process] = []
        self._closing = False
        self.on_crash: Callable[[], None] = lambda: None
        """Called when the server has died."""
        self._tasks = TaskOwner(self._failed)
        self.user = self._programs.client(USER)
        self._parts = self._process("parts")
        self.agents = self._process("nodes")
        """The life of now of the node agents."""
        self.played: dict[str, dict[str, Any]] = {}
        """The nodes that agents play, by name, as they joined; those that are gone included."""
        self._joining: set[str] = set()  # the nodes that an agent is about to register

    # --- start and end ----------------------------------------------------------------------------

    async def start(self, nodes: list[dict[str, Any]], replicas: int) -> None:
        """Start every part; returns when the nodes are registered."""
        self.server.start_task(self._watch_disk(), name="disk")
        self._auditing = self._spawn("auditor", self.auditor.run())
        controllers = self._programs.start_controllers()
        await self.join(nodes)
        await controllers.ready()
        for number in range(replicas):
            name = f"scheduler-{number}"
            faults = self._faults_of(name)
            self.replicas[name] = Replica(name, self.clock, faults)
            self.start_replica(name)

    async def join(self, nodes: list[dict[str, Any]]) -> None:
        """Add nodes that an agent plays; returns when they are registered, or never will be.

        An agent that dies before that never registers its nodes. A node that is there, or on its
        way, does not join again: two agents would play it.
        """
        known = self._joining | self.history.nodes.keys()
        added = {each["metadata"]["name"]: each for each in nodes}
        added = {name: each for name, each in added.items() if name not in known}
        if not added:
            return
        self.played |= added
        self._joining |= added.keys()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_JOINED_SECONDS):
                await self._play(list(added.values())).registered.wait()
                self._joining -= added.keys()

    def _play(self, nodes: list[dict[str, Any]]) -> NodeAgents:
        return self._programs.start_agents([complete(each) for each in nodes])

    def kill_agents(self) -> None:
        """Kill the node agents as by SIGKILL."""
        self.agents.kill()
        self._dead.append(self.agents)

    def revive_agents(self) -> None:
        """Start agents for every node that is still there."""
        self.agents = self._process("nodes")
        present = [node for name, node in self.played.items() if name in self.history.nodes]
        self._play(present)

    async def close(self) -> None:
        """End every part."""
        self._closing = True
        self.server.down = True
        self.server.cut()
        for process in self._dead:
            process.revive()
        for replica in self.replicas.values():
            replica.process.go_on()
        self.agents.go_on()
        await self._tasks.cancel_all()
        await self.server.close()
        self.served.close()

    @property
    def steps(self) -> int:
        """Number of steps that all programs together have run."""
        return sum(each.steps for each in self._processes)

    def _process(self, name: str) -> Process:
        process = Process(name)
        self._processes.append(process)
        return process

    def start_task(self, work: Any) -> None:
        """Start a task of an administrator."""
        self._spawn("administrator", work)

    def _spawn_program(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        process = self.agents if name == NODE_AGENTS else self._parts
        return process.run(lambda: self._tasks.spawn(work, name=name))

    def _spawn(self, name: str, work: Any) -> asyncio.Task[None]:
        return self._parts.run(lambda: self._tasks.spawn(work, name=name))

    def _failed(self, name: str, error: BaseException) -> None:
        self.failures.append(f"{name}: {type(error).__name__}: {error}")
        logging.getLogger(__name__).debug("a part failed", exc_info=error)

    # --- schedulers -------------------------------------------------------------------------------

    def start_replica(self, name: str) -> None:
        """Start a scheduler that does not run."""
        replica = self.replicas[name]
        replica.life += 1
        replica.clock.wake()
        replica.started_ns = self.clock.monotonic_ns()
        replica.process = self._process(replica.identity)
        if self._on_step is not None:
            replica.process.on_step = partial(self._on_step, replica.identity)
        self.trace.add_line(replica.identity, "starts")
        replica.process.run(self._start_replica, replica)

    def _start_replica(self, replica: Replica) -> None:
        identity = replica.identity
        replica.scheduler = scheduler_over(
            InTurn(
                self._wire(identity, replica.faults, replica),
                lambda text: self.observations.append(("in-turn", f"{identity}: {text}")),
                self.history.reused,
            ),
            configuration(self.setup),
            registry(self.plugin_faults),
            clock=replica.clock,
            streams=Streams(self._streams.stream(f"seed/{replica.name}").getrandbits(63)),
            host=identity,
            connect=partial(self._extender, identity),
        )
        self.probes[identity] = Probe(
            replica.scheduler,
            replica.clock,
            by_priority=self.setup not in ("coscheduling", "teams at permit"),
            history=self.history,
            on_breach=partial(self._observe_tries, identity),
        )
        self.oracles[replica.scheduler] = AttemptOracle(
            replica.scheduler,
            self.history,
            lambda name, text: self.observations.append((name, f"{identity}: {text}")),
        )
        self.schedulers.append(replica.scheduler)
        self.identities.append(identity)
        replica.task = self._tasks.spawn(self._run(replica, replica.scheduler), name=identity)

    async def _run(self, replica: Replica, scheduler: Scheduler) -> None:
        identity = replica.identity
        try:
            await scheduler.run()
        except LeaseLostError:
            self.trace.add_line(identity, "lost the lease and ends")
            asyncio.get_running_loop().call_later(2.0, self._again, replica, replica.life)
        finally:
            self._lease_check.end_holder(identity)

    def _observe_tries(self, identity: str, name: str, text: str) -> None:
        """Note a breach that the probe of a scheduler saw."""
        self.observations.append((name, f"{identity}: {text}"))
        if sum(seen == "tries" for seen, _ in self.observations) >= _TRIES_MOST:
            self.restless.set()

    def _again(self, replica: Replica, life: int) -> None:
        if replica.life == life and not self._closing:
            self._parts.run(self.start_replica, replica.name)

    def kill(self, name: str) -> None:
        """Kill a scheduler as by SIGKILL; its connections break."""
        replica = self.replicas[name]
        replica.process.kill()
        self._dead.append(replica.process)

    def end_scheduler(self, name: str) -> None:
        """Ask a scheduler to end, as by SIGTERM; one that ends already is not told again."""
        replica = self.replicas[name]
        if replica.task is not None and not replica.task.cancelling():
            if replica.leading and not replica.faults.spells(self.clock.monotonic_ns()):
                ends = partial(self._look_at_lease, replica, replica.identity)
                replica.task.add_done_callback(ends)
            replica.task.cancel()

    def _look_at_lease(self, replica: Replica, identity: str, task: asyncio.Task[None]) -> None:
        """Look whether a leader that ended left the lease to the next one."""
        del task
        if not self._answers or replica.faults.spells(self.clock.monotonic_ns()):
            return
        holder = self._holder
        if holder == identity or holder.startswith(f"{identity}_"):
            self.observations.append(
                ("lease-released", f"{identity} has ended and holds the lease")
            )

    def _judged_handovers(self) -> Handovers:
        return Handovers(
            self.replicas.values(),
            now_ns=self.clock.monotonic_ns,
            answers=lambda: self._answers,
            holder=lambda: self._holder,
            on_breach=lambda text: self.observations.append(("lease-passed-on", text)),
        )

    @property
    def _holder(self) -> str:
        """The holder of the schedulers' lease by the server's word, "" for nobody."""
        leases = self.history.server_objects(LEASES.qualified)
        lease = leases.get(_LEASE)
        return str(lease["spec"].get("holderIdentity") or "") if lease else ""

    def cut(self) -> None:
        """Break every open stream, the watches of the lease included."""
        self.server.cut()
        self._handovers.cut()

    @property
    def _answers(self) -> bool:
        """Whether the server takes calls, and has room for what they write."""
        disk = self.served.disk
        full = disk is not None and disk.room_bytes is not None
        return not (self.server.down or self.server.dead or full)

    def reload(self, name: str, setup: str) -> None:
        """Give a scheduler another configuration, as at SIGHUP."""
        scheduler = self.replicas[name].scheduler
        if scheduler is None or scheduler.ending:
            return
        reload, known = scheduler.parts.reload, registry(self.plugin_faults)
        try:
            prepared = reload.prepare(configuration(setup), known)
        except ConfigError as error:
            self.trace.add_line(name, f"refuses the configuration {setup}: {error}")
            reload.refused(error.faults)
        else:
            reload.put_in_force(prepared, known)

    def _extender(self, identity: str, extender: Extender, path: str) -> SimExtender:
        sim_extender = SimExtender(self._streams.stream(f"extender/{path}"), self.plugin_faults)
        self._extenders.setdefault(identity, {})[path] = sim_extender
        return sim_extender

    # --- connections ------------------------------------------------------------------------------

    def _connect(self, _server: Handling, program: str) -> Wire:
        return self._wire(program, self._faults_of(program), None)

    def _faults_of(self, name: str) -> NetworkFaults:
        if name not in self.network_faults:
            self.network_faults[name] = NetworkFaults(self._streams.stream(f"weather/{name}"))
        return self.network_faults[name]

    def _wire(self, name: str, faults: NetworkFaults, replica: Replica | None) -> Wire:
        def note_sending(call: Call) -> None:
            if replica is not None and "/leases" not in call.path:
                self._judge_sending(replica, name, call)

        def note_answer(call: Call, answer: Answer | None) -> None:
            now_ns = self.clock.monotonic_ns()
            if replica is not None and self._lease_check.observe_write(name, call, answer, now_ns):
                self._handovers.begins()
            if "/leases" not in call.path and "/events" not in call.path:
                self.trace.note_call(name, call, answer)
            self._catch_up(name, call.path)

        return Wire(
            InProcessTransport(self.served, latency_seconds=0, user_agent=name.partition(".")[0]),
            self.server,
            faults,
            clock=self.clock,
            name=name,
            version=lambda: self.served.store.published_version,
            on_send=note_sending,
            on_answer=note_answer,
        )

    def _judge_sending(self, replica: Replica, identity: str, call: Call) -> None:
        """Note a binding, and a write that is sent without the right to write."""
        if call.path.endswith("/binding"):
            pod = self.history.note_try(identity, call.path)
            if pod is not None:
                self._on_try(identity, pod)
                self._look_at_extenders(identity, pod["metadata"]["uid"], call)
        if call.path == _LEASE_EVENTS:
            return
        if missing := self._lease_check.missing(identity, self.clock.monotonic_ns()):
            self.writes_without_lease.append(
                f"{identity} sends {call.method} {call.path}, but {missing}"
            )
        for other in self.replicas.values():
            if other is not replica and other.leading:
                self.writes_without_lease.append(
                    f"{identity} sends {call.method} {call.path} while {other.identity} leads"
                )

    def _look_at_extenders(self, identity: str, uid: str, call: Call) -> None:
        """Note a binding to a node that the last answer of an extender refused to the pod."""
        extenders = self._extenders.get(identity)
        if not extenders:
            return
        node = decode_untyped(call.whole_body)["target"]["name"]
        for extender in extenders.values():
            if node in extender.refused.get(uid, ()):
                text = f"{identity}: {call.path} goes to {node}, which an extender refused"
                self.observations.append(("extenders", text))

    def _catch_up(self, name: str, path: str) -> None:
        for write in self.history.catch_up(name, path):
            self._on_write(write)

    # --- faults of the server ---------------------------------------------------------------------

    async def _watch_disk(self) -> None:
        """Let the server end when its disk has failed, as a server of production does."""
        persistence = self.served.persistence
        try:
            if persistence is not None:
                await persistence.failed()
        except MoorageError:
            self.crash()

    def crash(self) -> None:
        """Let the server die, in the midst of whatever it does; another is started later."""
        server = self.server
        if server.dead or self._closing:
            return
        self.trace.add_line("server", "dies")
        self._catch_up("server", "")
        self._dead.append(server.process)
        server.die()
        self.served.api.close()
        self.on_crash()

    def restart_server(self, *, power_cut: bool) -> None:
        """Start another server with what is on the disk."""
        lost = self.served.restart(power_cut=power_cut)
        self.trace.add_line("server", f"begins anew at version {self.served.store.version}")
        self.observations += [("acknowledged", text) for text in lost]
        revived = self.served.revived
        written = [(each.write.resource, each.write.change, each.by, each.path) for each in revived]
        for write in self.history.begin_anew(written):
            self._on_write(write)
        self.server.begin_anew(self._process("server"))
        if self._auditing is not None:
            self._auditing.cancel()  # it may wait for an answer of the last server
            self._auditing = self._spawn("auditor", self.auditor.run())
        self.server.start_task(self._watch_disk(), name="disk")

    def forget_history(self) -> None:
        """Let every watch that reaches back get a 410."""
        store = self.served.store
        self._catch_up("server", "")
        for shelf in store.shelves().values():
            shelf.log.compact(store.published_version)
        self.history.forget_log()

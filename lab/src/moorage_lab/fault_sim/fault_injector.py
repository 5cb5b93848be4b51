"""The faults of programs and of the server, carried out on a cluster."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from functools import partial

from moorage.base.clock import NS_PER_SECOND
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import FaultAct
from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.network_faults import Spell
from moorage_lab.fault_sim.replica import Replica
from moorage_lab.fault_sim.user_calls import call
from moorage_sandbox.testing.disk import Fault

# So long after an outage or a stop of a scheduler, new tries may still wait: a reflector waits up
# to 60 s after a refused watch, and as long again where the next one finds its version forgotten.
_BLIND_SECONDS = 125.0

_AN_HOUR = 3600.0
_LEASE_SECONDS = 15


class FaultInjector:
    """Lets faults begin, and end in their time.

    Parameters
    ----------
    cluster
        The cluster that is struck.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._clock = cluster.clock
        self._away_until_ns = -(10**18)
        # When the last program that was stopped or killed is back.
        self._back_ns = 0
        # The crash that is under way, or was last.
        self._crashes: acts.Crash | None = None
        self.fault_counts: dict[str, int] = {}
        """How often each fault of a program struck."""
        cluster.on_crash = self._crashed

    def end_faults(self) -> float:
        """Let no fault begin any more; return when the last program is back, seconds."""
        for replica in self._cluster.replicas.values():
            replica.process.forget_due()
        disk = self._cluster.served.disk
        if disk is not None:
            disk.fault = Fault()
            disk.room_bytes = None
        return self._back_ns / NS_PER_SECOND

    def inject(self, act: FaultAct) -> None:
        """Let a fault begin."""
        cluster = self._cluster
        match act:
            case acts.Disturb():
                until_ns = self._end_ns(act.seconds)
                if act.process in cluster.network_faults:
                    spell = Spell(act.fault, act.rate, until_ns)
                    cluster.network_faults[act.process].add(spell)
            case acts.Stop():
                self._stop(act)
            case acts.Kill():
                self._kill(act)
            case acts.Misbehave():
                cluster.plugin_faults.rate = act.rate
                _later(act.seconds, self._usual_rate)
            case acts.Depose():
                self.after_steps(act.process, act.steps, self._depose)
            case acts.Reload():
                self._reload(act)
            case acts.Jump():
                replica = cluster.replicas.get(act.process)
                if replica is not None and replica.clock.jump(act.seconds):
                    self.count("clock-jump")
            case acts.Outage():
                self._outage(act)
            case acts.Crash():
                self._crash(act)
            case acts.FullDisk():
                self._fill_disk(act)

    def after_steps(self, process: str, steps: int, act: Callable[[Replica], None]) -> None:
        """Do something once a scheduler has run so many more steps, if it runs then."""
        replica = self._cluster.replicas.get(process)
        if replica is None or not replica.runs:
            return

        def due() -> None:
            if replica.runs:
                act(replica)

        replica.process.after_steps(steps, due)

    def count(self, fault: str) -> None:
        """Note that a fault has struck."""
        self.fault_counts[fault] = self.fault_counts.get(fault, 0) + 1

    def _end_ns(self, seconds: float) -> int:
        return self._clock.monotonic_ns() + round(seconds * NS_PER_SECOND)

    def _reload(self, act: acts.Reload) -> None:
        replica = self._cluster.replicas.get(act.process)
        if replica is not None and replica.runs:
            replica.process.run(self._cluster.reload, act.process, act.setup)

    def _crash(self, act: acts.Crash) -> None:
        disk = self._cluster.served.disk
        if disk is None or self._cluster.server.dead:
            return
        self._crashes = act
        kind = {"kill": "kill", "torn": "short", "broken": "fail"}[act.how]
        disk.fault = Fault(disk.step + 1 + act.calls, kind)

    def _crashed(self) -> None:
        """Bring the server back, after whatever let it die."""
        act = self._crashes
        cluster = self._cluster
        if act is not None:
            self.count(f"server-{act.how}{'-power' * act.power}")
        seconds = act.seconds if act is not None else 1.0
        self._blind_all(seconds)
        restart = partial(cluster.restart_server, power_cut=act is not None and act.power)
        contextvars.Context().run(self._comes_back, seconds, restart)

    def _fill_disk(self, act: acts.FullDisk) -> None:
        disk = self._cluster.served.disk
        if disk is not None:
            self.count("disk-full")
            disk.room_bytes = sum(disk.contents().values()) + act.room_bytes
            self._comes_back(act.seconds, self._make_room)

    def _make_room(self) -> None:
        disk = self._cluster.served.disk
        if disk is not None:
            disk.room_bytes = None

    def _blind_all(self, seconds: float) -> None:
        for faults in self._cluster.network_faults.values():
            faults.blind(self._clock.monotonic_ns(), seconds + _BLIND_SECONDS)

    def _stop(self, act: acts.Stop) -> None:
        if act.process == "nodes":
            self._stop_agents(act.seconds)
            return
        self.after_steps(act.process, act.steps, partial(self._stop_replica, act))

    def _stop_replica(self, act: acts.Stop, replica: Replica) -> None:
        process = replica.process
        asleep = act.asleep and replica.clock.sleep()
        self.count("scheduler-asleep" if asleep else "scheduler-stopped")
        how = "falls asleep" if asleep else "is stopped"
        self._cluster.trace.add_line(replica.identity, f"{how} after {process.steps} steps")
        process.stop(asleep=asleep)
        replica.faults.blind(self._clock.monotonic_ns(), act.seconds + _BLIND_SECONDS)

        def back() -> None:
            if replica.process is process:
                replica.clock.wake()
            process.go_on()

        self._comes_back(act.seconds, back)

    def _stop_agents(self, seconds: float) -> None:
        agents = self._cluster.agents
        if agents.running and not agents.dead:
            agents.stop()
            self.count("agents-stopped")
            _later(seconds, agents.go_on)

    def _kill(self, act: acts.Kill) -> None:
        cluster = self._cluster
        if act.process == "nodes":
            if cluster.agents.running and not cluster.agents.dead:
                cluster.kill_agents()
                _later(act.seconds, cluster.revive_agents)
                self.count("agents-killed")
            return
        self.after_steps(act.process, act.steps, partial(self._kill_replica, act))

    def _kill_replica(self, act: acts.Kill, replica: Replica) -> None:
        cluster, life = self._cluster, replica.life
        self.count("scheduler-killed" if act.signal == "KILL" else "scheduler-ended")
        steps = replica.process.steps
        cluster.trace.add_line(replica.identity, f"gets SIG{act.signal} after {steps} steps")
        if act.signal == "KILL":
            cluster.kill(act.process)
        else:
            cluster.end_scheduler(act.process)

        def again() -> None:
            if replica.life == life:
                cluster.start_replica(act.process)

        self._comes_back(act.seconds, again)

    def _usual_rate(self) -> None:
        self._cluster.plugin_faults.rate = 1.0

    def _depose(self, replica: Replica) -> None:
        """Let a leader's time be over, and another program take the Lease by force."""
        cluster = self._cluster
        elector = replica.scheduler.elector if replica.scheduler else None
        if elector is None or not elector.leading:
            return
        cluster.trace.add_line(replica.identity, f"is deposed after {replica.process.steps} steps")
        self.count("lease-taken")
        replica.clock.jump(_AN_HOUR)
        namespace, _, name = elector.lease.partition("/")
        holder = {"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": _LEASE_SECONDS}}
        theft = acts.Patch(at=0.0, kind="Lease", name=name, namespace=namespace, changes=holder)
        cluster.start_task(self._steal(theft))

    async def _steal(self, theft: acts.Patch) -> None:
        if refused := await call(self._cluster.user, theft):
            self._cluster.trace.add_line("usurper", f"is refused: {refused}")

    def _comes_back(self, seconds: float, back: Callable[[], object]) -> None:
        """Bring a program back after a while; the rest waits for it."""
        self._back_ns = max(self._back_ns, self._end_ns(seconds))
        _later(seconds, back)

    def _outage(self, act: acts.Outage) -> None:
        cluster, clock = self._cluster, self._clock
        self.count("server-forgets" if act.forgets else "server-away")
        until_ns = self._end_ns(act.seconds)
        self._away_until_ns = max(self._away_until_ns, until_ns)
        self._blind_all(act.seconds)
        cluster.server.down = True
        cluster.cut()

        def back() -> None:
            cluster.server.down = clock.monotonic_ns() < self._away_until_ns

        if act.forgets:
            cluster.forget_history()
        # A timer may be early by the rounding of seconds.
        _later(act.seconds + 0.001, back)


def _later(seconds: float, act: Callable[[], object]) -> None:
    asyncio.get_running_loop().call_later(seconds, act)

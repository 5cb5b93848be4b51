"""The scheduler as a process part: wires the rooms, starts the tasks, ends them.

reflectors -> ingest -> cache, queue -> pump -> engine -> binding cycle -> API -> (watch) -> ...
"""

from __future__ import annotations

import asyncio
import gc
import logging
from functools import partial
from typing import Any

from moorage.api import resources
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import ResourceType
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import LeaseLostError
from moorage.base.ids import new_uid
from moorage.base.rng import Streams
from moorage.client.events import EventRecorder
from moorage.client.guard import GuardedTransport, WriteGuard
from moorage.client.reflector import Reflector
from moorage.client.transport import Transport
from moorage.client.whole import WholeObjects
from moorage.client.writes import Client
from moorage.config.feature_gates import GANG_SCHEDULING, GENERIC_WORKLOAD
from moorage.config.own import LoadedConfiguration
from moorage.config.types import KubeSchedulerConfiguration
from moorage.framework.group import COSCHEDULING
from moorage.framework.registry import Registry
from moorage.service.api_binding import ApiBinding
from moorage.service.binding_cycle import BindingCycles
from moorage.service.core import Core, Surroundings, build_core
from moorage.service.evictions import Evictor
from moorage.service.extenders import OpenExtenders
from moorage.service.facts import Facts
from moorage.service.failure import FailureHandler
from moorage.service.flushes import flush_backoff, flush_leftover
from moorage.service.group_attempt import GroupAttempts
from moorage.service.group_status import GroupReports
from moorage.service.ingest import ListerIngest, NodeIngest, PodIngest, PodStore
from moorage.service.kinds import watched
from moorage.service.leader import Candidacy, Elector, lease_rule
from moorage.service.outcomes import Outcomes
from moorage.service.pod_writes import PodWrites
from moorage.service.pump import Pump
from moorage.service.skipping import Skipping
from moorage.service.slots import BindingSlots
from moorage.service.waiting import call_off
from moorage.state.compare import Mismatch, compare

_log = logging.getLogger(__name__)

# Finished pods count for nothing; leaving the selection looks like a deletion.
POD_FIELDS = "status.phase!=Succeeded,status.phase!=Failed"


def settle_memory() -> None:
    """Keep the garbage collector from walking what stays; call it once the cluster is loaded.

    What the first lists brought lives as long as the process, so it is taken out of collection.
    And collections of what is not young are made rarer: at 5000 nodes and 10000 pods the longest
    decision took 60 ms, a full collection, with Python's own thresholds, and 5 to 7 ms with these,
    at the same throughput. Young ones of 50000 objects took up to 28 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 100, 100)


class Scheduler:
    """One scheduler process, from configuration to clean end.

    Parameters
    ----------
    config
        Loaded and checked.
    registry
        Every known plugin.
    transport
        Carries the calls; closed by its owner.
    clock, streams
        Time and randomness.
    host
        Host name, for the Events' reporting instance and the holder of the lease.
    candidacy
        How to take part in leader election, if it is configured. None: with an identity drawn from
        `streams`, which is for tests only, as two runs with one seed draw the same.
    """

    def __init__(
        self,
        config: LoadedConfiguration,
        registry: Registry,
        transport: Transport,
        *,
        clock: Clock,
        streams: Streams,
        host: str,
        candidacy: Candidacy | None = None,
    ) -> None:
        self._config, self._gates = config.scheduler, config.gates
        self.elector: Elector | None = None
        """Holds the lease that allows to write; None without leader election."""
        guard = WriteGuard() if candidacy is None else candidacy.guard
        if config.scheduler.leader_election.leader_elect:
            candidacy = candidacy or Candidacy(
                identity=f"{host}_{new_uid(streams.stream('identity'))}",
                guard=guard,
                transport=transport,
            )
            self.elector = _elector(config.scheduler, candidacy, clock, streams)
            guard.check = self.elector.check
            transport = GuardedTransport(transport, guard)
        self._transport, self._clock, self._streams = transport, clock, streams
        self._failed: asyncio.Future[None] | None = None
        self._tasks = TaskOwner(self._task_failed)
        self._client = client = Client(transport, rng=streams.stream("client"))
        self.facts = Facts(clock)
        self.plugin_failures = registry.containment.failures
        """What plugins from outside did wrong: (plugin, extension point, kind) to how often."""
        store = PodStore()
        self._extenders = OpenExtenders(config.scheduler.extenders, guard)
        self._wake = asyncio.Event()
        self._slots = BindingSlots(self._wake)
        self.core: Core = build_core(
            config,
            registry,
            clock=clock,
            streams=streams,
            surroundings=Surroundings(
                store=store,
                client=ApiBinding(client, store.get),
                extenders=self._extenders.extenders,
                on_wake=self._wake.set,
            ),
        )
        self._recorder = EventRecorder(client, host=host, clock=clock, rng=streams.stream("events"))
        self._writes = PodWrites(client, clock=clock, tasks=self._tasks)
        self._node_reflector: Reflector[Node] | None = None
        self.synced = False
        """Whether every first list is in."""
        self.ending = False
        """Whether `run` is about to return."""
        self.ready = asyncio.Event()
        """Set when the first lists are in and scheduling has started."""

    async def run(self) -> None:
        """Schedule until cancelled.

        Raises
        ------
        LeaseLostError
            The lease could not be renewed; another replica may be scheduling.
        Exception
            Whatever ended one of the scheduler's own tasks; it cannot go on without it.
        """
        self._failed = asyncio.get_running_loop().create_future()
        try:
            self._tasks.spawn(self._start(self._reflectors()), name="start")
            await self._failed
        finally:
            self.ending = True
            await self._tasks.cancel_all()
            await self._extenders.close()
            if self.elector is not None:
                # Only now, when nothing is left that could write.
                await self.elector.release()

    @property
    def bindings(self) -> int:
        """Number of bindings on their way to the API server."""
        return self._slots.used

    def compare(self) -> Mismatch:
        """Compare what is believed with what the watches last showed, and log the result.

        A difference need not be a fault: what is on its way differs, too. One that stays is.
        """
        core = self.core
        mismatch = compare(
            core.cache,
            core.queue,
            core.store.all(),
            () if self._node_reflector is None else self._node_reflector.objects.values(),
            responsible=lambda pod: pod.spec.scheduler_name in core.profiles,
        )
        counts, pending = core.cache.counts(), core.queue.pending().text
        if mismatch.empty:
            _log.warning("cache and API agree: %s; %s", counts, pending)
        else:
            _log.warning("cache and API differ: %s; %s; %s", mismatch, counts, pending)
        return mismatch

    async def _start(self, reflectors: list[Reflector[Any]]) -> None:
        """Watch, wait for the lease, schedule; with delayCacheUntilActive watch after the wait."""
        delayed = self._config.delay_cache_until_active
        if delayed:
            await self._lead()
        for reflector in reflectors:
            self._tasks.spawn(reflector.run(), name=f"reflector {reflector!r}")
        for reflector in reflectors:
            await reflector.synced.wait()
        self.synced = True
        settle_memory()
        if not delayed:
            await self._lead()
        self._start_scheduling()

    async def _lead(self) -> None:
        """Wait until we hold the lease, and keep it from then on."""
        if self.elector is None:
            return
        await self.elector.acquire()
        self._tasks.spawn(self.elector.keep(), name="lease")
        self._tasks.spawn(self.elector.tell("became leader"), name="lease event")

    def _start_scheduling(self) -> None:
        pump = self._make_pump()
        spawn = self._tasks.spawn
        spawn(self._recorder.run(), name="events")
        spawn(flush_backoff(self.core.queue, self._clock), name="flush backoff")
        spawn(flush_leftover(self.core.queue), name="flush leftover")
        spawn(pump.run(), name="pump")
        _log.info(
            "scheduling started: %d nodes, %d pods",
            self.core.snapshot.num_nodes,
            len(self.core.store.all()),
        )
        self.ready.set()

    def _make_pump(self) -> Pump:
        core = self.core
        failures = FailureHandler(
            core.queue,
            core.store.get,
            recorder=self._recorder,
            writes=self._writes,
            attempts=self.facts.attempts,
        )
        core.effects.record = self._recorder.record
        core.effects.spawn = self._tasks.spawn
        binding_cycles = BindingCycles(
            core,
            failures=failures,
            tasks=self._tasks,
            recorder=self._recorder,
            writes=self._writes,
            facts=self.facts,
            slots=self._slots,
        )
        evictor = Evictor(
            core.evictions,
            core.queue,
            call_off=partial(call_off, core.waiting, core.pre_binding),
            client=self._client,
            writes=self._writes,
            recorder=self._recorder,
            tasks=self._tasks,
            clock=self._clock,
        )
        skipping = Skipping(core.queue, core.cache, recorder=self._recorder, facts=self.facts)
        groups = None
        if self._groups:
            groups = GroupAttempts(
                core,
                binding_cycles=binding_cycles,
                failures=failures,
                evictor=evictor,
                reports=self._group_reports(),
                facts=self.facts,
                skipping=skipping,
            )
        return Pump(
            cycles=core.cycles,
            queue=core.queue,
            wake=self._wake,
            slots=self._slots,
            skipping=skipping,
            groups=groups,
            outcomes=Outcomes(
                binding_cycles=binding_cycles, failures=failures, evictor=evictor, facts=self.facts
            ),
            facts=self.facts,
        )

    @property
    def _coscheduled(self) -> bool:
        """Whether the pods of some profile may name groups by labels."""
        return any(COSCHEDULING in profile.plugins for profile in self.core.profiles.values())

    @property
    def _groups(self) -> bool:
        """Whether pods may be in groups at all."""
        return self._gates(GENERIC_WORKLOAD) or self._coscheduled

    def _group_reports(self) -> GroupReports:
        listers = self.core.snapshot.listers
        return GroupReports(
            listers.pod_groups,
            listers.coscheduling_groups,
            self._client,
            writes=self._writes,
            recorder=self._recorder,
            clock=self._clock,
        )

    def _reflectors(self) -> list[Reflector[Any]]:
        core, facts = self.core, self.facts
        nodes = NodeIngest(core.cache, core.queue, facts)
        pods = PodIngest(
            core.cache,
            core.queue,
            core.store,
            profiles=core.profiles.keys(),
            writes=self._writes,
            facts=facts,
            waiting=core.waiting,
            announce=self._gates(GANG_SCHEDULING) or self._coscheduled,
        )
        self._node_reflector = self._reflector(
            resources.NODES, Node, nodes, whole=self._extenders.nodes
        )
        made: list[Reflector[Any]] = [
            self._node_reflector,
            self._reflector(
                resources.PODS, Pod, pods, fields=POD_FIELDS, whole=self._extenders.pods
            ),
        ]
        groups = self._gates(GENERIC_WORKLOAD)
        for kind in watched(core.profiles.values(), pod_groups=groups):
            lister = getattr(core.snapshot.listers, kind.lister)
            handler: ListerIngest[Any] = ListerIngest(
                kind.resource.kind, lister, resource=kind.event, queue=core.queue, facts=facts
            )
            made.append(self._reflector(kind.resource, kind.type_, handler, optional=True))
        return made

    def _reflector(
        self,
        resource: ResourceType,
        kind: type[Any],
        handler: Any,
        *,
        fields: str = "",
        whole: WholeObjects | None = None,
        optional: bool = False,
    ) -> Reflector[Any]:
        return Reflector(
            self._transport,
            resource,
            kind,
            handler=handler,
            clock=self._clock,
            rng=self._streams.stream(f"reflector/{resource.plural}"),
            field_selector=fields,
            whole=whole,
            optional=optional,
        )

    def _task_failed(self, name: str, problem: BaseException) -> None:
        if isinstance(problem, LeaseLostError):
            _log.error("Leaderelection lost")
        else:
            _log.error("task %s failed", name, exc_info=problem)
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(problem)


def _elector(
    config: KubeSchedulerConfiguration, candidacy: Candidacy, clock: Clock, streams: Streams
) -> Elector:
    """Return what takes part in the election for a scheduler."""
    return Elector(
        Client(candidacy.transport, rng=streams.stream("lease")),
        lease_rule(config.leader_election),
        identity=candidacy.identity,
        component=config.profiles[0].scheduler_name,
        clock=clock,
        rng=streams.stream("lease"),
    )

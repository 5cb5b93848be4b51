"""The list of a scheduler's parts: each part is built once, complete, in this order.

A part is given its needs by name. Nothing is set from outside afterwards, and no two parts hold
each other. A thing that two parts need (the wake-up, the slots, the pod store) is a part of its
own, built before both.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.api import resources
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.events import EventRecorder
from moorage.client.guard import GuardedTransport, WriteGuard
from moorage.client.reflector import Reflector
from moorage.client.reflectors import Reflectors
from moorage.client.served_version import ServedVersion
from moorage.client.traced import TracedTransport
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.config.feature_gates import FeatureGates
from moorage.config.gate_table import (
    COMPOSITE_POD_GROUP,
    DEVICE_TAINT_RULES,
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
)
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.observe.records.recorder import Recorder
from moorage.observe.traces.attempts import Traces
from moorage.service.attempts.extended_attempts import ExtendedAttempts
from moorage.service.attempts.extenders import Connect, OpenExtenders
from moorage.service.attempts.failure import FailureHandler
from moorage.service.attempts.first_failure import FirstFailure
from moorage.service.attempts.outcomes import Outcomes
from moorage.service.attempts.plugin_effects import ApiEffects
from moorage.service.attempts.pump import Pump
from moorage.service.attempts.skipping import Skipping
from moorage.service.binding.api_binding import ApiBinding
from moorage.service.binding.binding_cycle import BindingCycles
from moorage.service.binding.confirmations import Confirmations
from moorage.service.binding.evictions import Evictor
from moorage.service.binding.permit_reasons import PermitReasons, holders_at_permit
from moorage.service.binding.pod_writes import PodWrites
from moorage.service.binding.slots import BindingSlots
from moorage.service.binding.waiting import CallOff
from moorage.service.core import Core, CoreInputs, build_core
from moorage.service.groups.backfill import Backfill
from moorage.service.groups.disabled_groups.objects import GroupObjects
from moorage.service.groups.disabled_groups.reports import DisabledGroupReports
from moorage.service.groups.group_attempt import GroupAttempts
from moorage.service.groups.group_status import GroupReports
from moorage.service.groups.incomplete_groups import IncompleteGroups
from moorage.service.groups.releases import node_changed
from moorage.service.intake.catching_up import CatchUp
from moorage.service.intake.ingest import NodeIngest, PodIngest, SucceededIngest
from moorage.service.intake.kinds import lister_ingest, watched
from moorage.service.intake.lean_pods import LeanPods, trim_succeeded
from moorage.service.intake.observed_pods import ObservedPods
from moorage.service.intake.pod_store import PodStore
from moorage.service.loads.fetcher import NodeLoadFetcher
from moorage.service.process.facts import Facts
from moorage.service.process.leader import Elector
from moorage.service.process.reload import Reload
from moorage.service.scheduler import Parts, Scheduler

if TYPE_CHECKING:
    from moorage.estimates.start_observer import StartObserver

POD_FIELDS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Finished pods are not watched: a pod that finishes leaves the selection, and looks deleted."""

SUCCEEDED_FIELDS: Final = "status.phase=Succeeded"
"""Members of groups count after they have succeeded."""


class _Edge(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that speak to the API server, and the parts that all others share."""

    clock: Clock
    streams: Streams
    tasks: TaskOwner
    facts: Facts
    wake: asyncio.Event
    slots: BindingSlots
    transport: Transport
    client: Client
    recorder: EventRecorder
    writes: PodWrites
    extenders: OpenExtenders
    traces: Traces | None
    start_observer: StartObserver | None = None
    hold: aio.Hold = msgspec.field(default_factory=aio.Hold)


def assemble(  # noqa: PLR0913 - one keyword for each part it is given
    config: LoadedConfiguration,
    registry: Registry,
    transport: Transport,
    *,
    clock: Clock,
    streams: Streams,
    host: str,
    elector: Elector | None,
    facts: Facts | None = None,
    recorder: Recorder | None = None,
    connect: Connect | None = None,
    watches_group_objects: bool = False,
) -> Scheduler:
    """Return a scheduler, ready to run.

    Parameters
    ----------
    config, registry
        The configuration, loaded and checked, and every known plugin.
    transport
        Carries the calls; closed by its owner.
    clock, streams, host
        Time, randomness, and the host name for the Events' reporting instance.
    elector
        Holds the lease that allows to write; None without leader election.
    facts, recorder
        Running totals, and the keeper of records; None for new totals, and for no records.
    connect
        Opens the connection to each extender; over HTTP when not given.
    watches_group_objects
        Whether groups are reported that nothing schedules and that no pod names yet.

    Raises
    ------
    ConfigError
        A profile cannot be built, or an extender's certificate cannot be read.
    """
    failure, ready, store = FirstFailure(), asyncio.Event(), PodStore()
    edge = _edge(
        config,
        ServedVersion(transport),
        clock=clock,
        streams=streams,
        host=host,
        elector=elector,
        tasks=TaskOwner(failure.note_failure),
        facts=Facts(clock) if facts is None else facts,
        traces=None if recorder is None else recorder.traces,
        connect=connect,
    )
    around = _surroundings(edge, store, ready, recorder)
    core = build_core(config, registry, clock=clock, streams=streams, surroundings=around)
    (nodes, others), reports = (
        _reflectors(core, edge, config.gates),
        _group_reports(core, edge, config.gates),
    )
    pump = _pump(core, edge, reports)
    return Scheduler(
        Parts(
            clock=clock,
            tasks=edge.tasks,
            failure=failure,
            ready=ready,
            facts=edge.facts,
            elector=elector,
            waits_to_watch=config.scheduler.delay_cache_until_active,
            client=edge.client,
            recorder=edge.recorder,
            writes=edge.writes,
            catch_up=CatchUp(edge.transport, others[0]),
            extenders=edge.extenders,
            core=core,
            nodes=nodes,
            others=others,
            slots=edge.slots,
            reload=_reload(core, config, edge, pump, reports),
            incomplete_groups=_incomplete_groups(core, reports),
            disabled_groups=_disabled_groups(core, edge, config.gates.version),
            node_loads=NodeLoadFetcher(core.loads, edge.client, core.snapshot.table, clock),
            group_objects=_group_objects(core, edge) if watches_group_objects else None,
            start_observer=edge.start_observer,
        )
    )


def _surroundings(
    edge: _Edge, store: PodStore, ready: asyncio.Event, recorder: Recorder | None
) -> CoreInputs:
    """Return what surrounds the deciding half."""
    return CoreInputs(
        store=store,
        client=ApiBinding(edge.client, store.get, edge.slots),
        extenders=edge.extenders.extenders,
        api=ApiEffects(
            record=edge.recorder.record_event, spawn=edge.tasks.spawn, ready=ready.is_set
        ),
        on_wake=edge.wake.set,
        recorder=recorder,
    )


def _reload(
    core: Core, config: LoadedConfiguration, edge: _Edge, pump: Pump, reports: GroupReports
) -> Reload:
    return Reload(
        core,
        config,
        extenders=edge.extenders,
        pump=pump,
        build_pump=partial(_pump, core, edge, reports),
        facts=edge.facts,
        recorder=edge.recorder,
    )


def _edge(  # noqa: PLR0913 - one keyword for each part it is given
    config: LoadedConfiguration,
    transport: Transport,
    *,
    clock: Clock,
    streams: Streams,
    host: str,
    elector: Elector | None,
    tasks: TaskOwner,
    facts: Facts,
    traces: Traces | None,
    connect: Connect | None,
) -> _Edge:
    """Return the parts that speak to the API server; no write goes out without the lease."""
    guard = WriteGuard() if elector is None else WriteGuard(elector.check_lease)
    guarded = transport if elector is None else GuardedTransport(transport, guard)
    # Reflectors read for everybody, so the transport without spans is theirs.
    spoken = guarded if traces is None else TracedTransport(guarded, clock, name="API")
    client = Client(spoken, rng=streams.stream("client"))
    wake = asyncio.Event()
    return _Edge(
        clock=clock,
        streams=streams,
        tasks=tasks,
        facts=facts,
        wake=wake,
        slots=BindingSlots(wake),
        transport=guarded,
        client=client,
        recorder=EventRecorder(client, host=host, clock=clock, rng=streams.stream("events")),
        writes=PodWrites(client, clock=clock, tasks=tasks),
        extenders=OpenExtenders(
            config.scheduler.extenders,
            guard,
            traced_by=None if traces is None else clock,
            connect=connect,
        ),
        traces=traces,
        start_observer=_start_observer(config, clock),
    )


def _pump(core: Core, edge: _Edge, reports: GroupReports) -> Pump:
    """Return the pump, with the parts that carry decisions out."""
    failures = FailureHandler(
        core.queue,
        core.store.get,
        recorder=edge.recorder,
        writes=edge.writes,
        attempts=edge.facts.attempts,
        group_reasons=_group_reasons(core, reports),
    )
    binding_cycles = BindingCycles(
        core,
        failures=failures,
        tasks=edge.tasks,
        recorder=edge.recorder,
        writes=edge.writes,
        facts=edge.facts,
        slots=edge.slots,
        confirmations=Confirmations(core.cache, edge.client, edge.clock, edge.tasks),
    )
    evictor = _evictor(core, edge)
    skipping = Skipping(core.queue, core.cache, recorder=edge.recorder, facts=edge.facts)
    backfill = _backfill(core, edge)
    groups = GroupAttempts(
        core,
        binding_cycles=binding_cycles,
        failures=failures,
        evictor=evictor,
        reports=reports,
        facts=edge.facts,
        skipping=skipping,
        backfill=backfill,
        hold=edge.hold,
    )
    outcomes = Outcomes(
        binding_cycles=binding_cycles,
        failures=failures,
        evictor=evictor,
        facts=edge.facts,
        core=core,
        plugin_facts=core.plugin_facts,
    )
    extended = None
    if core.extended_cycles:
        extended = ExtendedAttempts(
            core.extended_cycles, skipping=skipping, outcomes=outcomes, traces=edge.traces
        )
    return Pump(
        cycles=core.cycles,
        queue=core.queue,
        wake=edge.wake,
        slots=edge.slots,
        waiting=core.waiting,
        skipping=skipping,
        groups=groups if core.snapshot.groups.has_source else None,
        extended=extended,
        outcomes=outcomes,
        facts=edge.facts,
        clock=edge.clock,
        backfill=backfill,
    )


def _backfill(core: Core, edge: _Edge) -> Backfill | None:
    """Return the part that holds room back for a group; None where no profile asks for that."""
    seconds = core.hold_back_after_seconds
    return Backfill(core, after_seconds=seconds, clock=edge.clock) if seconds else None


def _evictor(core: Core, edge: _Edge) -> Evictor:
    """Return the part that evicts the victims of decisions."""
    return Evictor(
        core.evictions,
        core.queue,
        call_off=CallOff(core.waiting, core.pre_binding, _preempting(core)),
        client=edge.client,
        writes=edge.writes,
        recorder=edge.recorder,
        tasks=edge.tasks,
        clock=edge.clock,
    )


def _group_reports(core: Core, edge: _Edge, gates: FeatureGates) -> GroupReports:
    """Return the writer of pod groups' conditions and Events."""
    return GroupReports(
        core.snapshot,
        edge.client,
        writes=edge.writes,
        recorder=edge.recorder,
        clock=edge.clock,
        version=gates.version,
    )


def _incomplete_groups(core: Core, reports: GroupReports) -> IncompleteGroups | None:
    """Return what looks for incomplete groups; None where no pod can be in a group."""
    if not core.snapshot.groups.has_source:
        return None
    return IncompleteGroups(core, reports, one_by_one=holders_at_permit(core.profiles))


def _disabled_groups(core: Core, edge: _Edge, version: str) -> DisabledGroupReports:
    """Return what reports the groups that no plugin schedules."""
    return DisabledGroupReports(
        core.disabled_groups,
        edge.client,
        writes=edge.writes,
        recorder=edge.recorder,
        clock=edge.clock,
        tasks=edge.tasks,
        version=version,
    )


def _group_objects(core: Core, edge: _Edge) -> GroupObjects:
    """Return the watches of the objects of groups that no plugin schedules."""
    return GroupObjects(
        edge.transport,
        clock=edge.clock,
        streams=edge.streams,
        is_scheduled=lambda source: any(
            source in profile.group_holders for profile in core.profiles.values()
        ),
    )


def _group_reasons(core: Core, reports: GroupReports) -> PermitReasons | None:
    """Return the reasons of groups; None where members are always tried together."""
    holders = holders_at_permit(core.profiles)
    return PermitReasons(core.snapshot.groups, reports, holders) if holders else None


def _start_observer(config: LoadedConfiguration, clock: Clock) -> StartObserver | None:
    """Return what estimates of starts rest on; None where no estimates are asked for."""
    estimates = config.own.start_estimates
    if estimates is None:
        return None
    # Imported here: a scheduler without estimates does not pay for it.
    from moorage.estimates.run_time_file import load_run_times
    from moorage.estimates.start_observer import StartObserver

    file = Path(estimates.file) if estimates.keep_in == "file" else None
    observer = StartObserver(clock, learns=estimates.learn, file=file)
    if file is not None:
        load_run_times(file, observer.book)
    return observer


def _reflectors(
    core: Core, edge: _Edge, gates: FeatureGates
) -> tuple[Reflector[Node], tuple[Reflector[Any], ...]]:
    """Return the reflector of nodes, and those of every other watched kind, pods first."""
    facts, observer = edge.facts, edge.start_observer
    reflectors = Reflectors(edge.transport, clock=edge.clock, streams=edge.streams, hold=edge.hold)
    nodes = reflectors.reflector_of(
        resources.NODES,
        Node,
        NodeIngest(core.cache, core.queue, facts, changed=partial(node_changed, core)),
        whole=edge.extenders.nodes,
    )
    pod_ingest = PodIngest(
        core.cache,
        core.queue,
        core.store,
        profiles=core.profiles,
        writes=edge.writes,
        facts=facts,
        waiting=core.waiting,
        announce=gates(GANG_SCHEDULING) or _holds_groups(core),
    )
    pods = reflectors.reflector_of(
        resources.PODS,
        Pod,
        pod_ingest if observer is None else ObservedPods(pod_ingest, observer),
        fields=POD_FIELDS,
        whole=edge.extenders.pods,
        trim=LeanPods().trim,
    )
    others: list[Reflector[Any]] = [pods]
    if core.snapshot.groups.has_source:
        others.append(
            reflectors.reflector_of(
                resources.PODS,
                Pod,
                SucceededIngest(core.snapshot.groups, core.queue, facts),
                fields=SUCCEEDED_FIELDS,
                trim=trim_succeeded,
            )
        )
    kinds = watched(
        core.profiles.values(),
        pod_groups=gates(GENERIC_WORKLOAD),
        composite_groups=gates(COMPOSITE_POD_GROUP),
        taint_rules=gates(DEVICE_TAINT_RULES),
        jobs=bool(core.hold_back_after_seconds) or observer is not None,
    )
    for kind in kinds:
        handler = lister_ingest(kind, core.snapshot, queue=core.queue, facts=facts)
        others.append(reflectors.reflector_of(kind.resource, kind.type_, handler, optional=True))
    return nodes, tuple(others)


def _preempting(core: Core) -> dict[str, str]:
    """Return the name of each profile's first plugin that preempts."""
    profiles = core.profiles.values()
    return {each.name: each.preempting[0] for each in profiles if each.preempting}


def _holds_groups(core: Core) -> bool:
    """Whether a plugin of some profile holds the members of pod groups."""
    return any(profile.group_holders for profile in core.profiles.values())

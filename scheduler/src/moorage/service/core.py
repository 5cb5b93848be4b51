"""The deciding half put together, without any I/O: state, snapshot, profiles, cycles.

`scheduler` surrounds this half with reflectors and writes; benchmarks and what-if use no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.config.feature_gates import FeatureGates
from moorage.config.gate_table import COMPOSITE_POD_GROUP, GENERIC_WORKLOAD, V1_36
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.engine.cycle import Cycle
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.notes.attempt_note import NoteWriter
from moorage.engine.sampling import Rotation
from moorage.engine.select_node import TieBreak, seeded
from moorage.framework.extender import Extender
from moorage.framework.handle import BindingClient, Handle
from moorage.framework.loads.node_loads import LoadReports
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.status import ReasonTable
from moorage.observe.plugin_facts import PluginFacts
from moorage.observe.queue_facts import EntityFacts, QueueFacts
from moorage.observe.records.recorder import Recorder
from moorage.service.attempts.plugin_effects import ApiEffects, LivePluginEffects
from moorage.service.attempts.queue_of_profiles import build_queue
from moorage.service.attempts.score_log import scores_are_logged, tell_scores
from moorage.service.binding.evictions import EvictionLedger
from moorage.service.binding.nominations import Nominations
from moorage.service.binding.waiting import PreBinding, WaitingPods
from moorage.service.groups.disabled_groups.index import DisabledGroups
from moorage.service.intake.pod_store import PodStore
from moorage.snapshot.group_labels import (
    CUSTOM_SOURCE,
    LABEL_SOURCE,
    CustomGroups,
    LabelledGroups,
    SeveralSources,
)
from moorage.snapshot.group_sources import API_SOURCE, ApiGroups
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_groups import GroupSource, MembersByGroup, PodGroups, SucceededMembers
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.sub_groups.composite import CompositeGroups
from moorage.state.activations import Activations
from moorage.state.cache import Cache
from moorage.state.nominations import Nominator
from moorage.state.queue import SchedulingQueue


class Deciding(msgspec.Struct, frozen=True):
    """Everything that is made from a configuration, complete and not yet in force.

    Parameters
    ----------
    profiles, cycles
        By schedulerName.
    """

    profiles: dict[str, Profile]
    cycles: dict[str, Cycle]


class Maker(msgspec.Struct, frozen=True, kw_only=True):
    """Makes profiles and their cycles over one snapshot, at the start and at each reload.

    Parameters
    ----------
    shared
        The handle of all profiles, without the fields of a single profile.
    draw
        Chooses one of several best nodes.
    facts
        The numbers of plugins.
    rotation
        The start of partial searches, which all cycles share.
    reuse
        Whether answers are reused for replicas. New cycles begin without any answers.
    noted
        Whether attempts are recorded.
    """

    shared: Handle
    draw: TieBreak
    facts: PluginFacts
    rotation: Rotation
    reuse: bool
    noted: bool

    def make(
        self,
        config: LoadedConfiguration,
        specs: Sequence[ProfileSpec],
        *,
        registry: Registry,
        extenders: Sequence[Extender],
        before: Mapping[str, Profile] | None = None,
    ) -> Deciding:
        """Return the profiles of a configuration and their cycles.

        Parameters
        ----------
        config, specs
            The configuration, and its profiles as `expand_profiles` gives them.
        registry, extenders
            The known plugins, and the opened extenders.
        before
            The profiles in force, whose unchanged plugins are kept; None at the start.

        Raises
        ------
        ConfigError
            A profile cannot be built; every fault is listed.
        """
        profiles: dict[str, Profile] = {}
        for spec in specs:
            name = spec.scheduler_name
            own = config.own.profile(name)
            handle = msgspec.structs.replace(
                self.shared,
                profile_name=name,
                group_mode=own.group_mode,
                group_orders=own.group_orders,
                complete_groups=own.complete_groups,
            )
            kept = None if before is None else before.get(name)
            profiles[name] = Profile(spec, registry, handle, extenders=extenders, before=kept)
        return Deciding(profiles, self._cycles(profiles))

    def _cycles(self, profiles: Mapping[str, Profile]) -> dict[str, Cycle]:
        cycles = dict[str, Cycle]()
        on_scored = tell_scores if scores_are_logged() else None
        for name, profile in profiles.items():
            kind = AskingCycle if profile.extenders else Cycle
            cycles[name] = kind(
                profile,
                profile.handle.snapshot,
                self.draw,
                reuse=self.reuse,
                rotation=self.rotation,
                meter=self.facts.meter(name),
                notes=NoteWriter(profile, profile.handle.snapshot) if self.noted else None,
                on_scored=on_scored,
            )
        return cycles


class Core(msgspec.Struct, frozen=True):
    """The rooms of the deciding half, wired.

    Parameters
    ----------
    profiles, cycles
        By schedulerName. These two dictionaries stay the same objects; `take_over` changes their
        content, so that every part that holds them sees a reload.
    maker
        Makes the profiles and cycles of another configuration.
    hold_back_after_seconds
        Wait of a group before room is held back for it, by profile with this setting.
    disabled_groups
        The groups that pods name and that no plugin schedules.
    recorder
        Keeps the records of attempts; None where none are kept.
    """

    snapshot: Snapshot
    profiles: dict[str, Profile]
    cycles: dict[str, Cycle]
    maker: Maker
    cache: Cache
    queue: SchedulingQueue
    store: PodStore
    evictions: EvictionLedger
    waiting: WaitingPods
    pre_binding: PreBinding
    effects: LivePluginEffects
    queue_facts: QueueFacts
    plugin_facts: PluginFacts
    disabled_groups: DisabledGroups
    hold_back_after_seconds: Mapping[str, float] = {}
    recorder: Recorder | None = None

    @property
    def loads(self) -> LoadReports:
        """The sources of loads of nodes that plugins ask for."""
        return self.maker.shared.loads

    def take_over(self, new: Deciding) -> None:
        """Decide by other profiles from now on; no attempt may be under way."""
        self.profiles.clear()
        self.profiles.update(new.profiles)
        self.cycles.clear()
        self.cycles.update(new.cycles)

    @property
    def extended_cycles(self) -> dict[str, ExtendedCycle]:
        """The cycles of the profiles with extenders."""
        found = self.cycles.items()
        return {name: cycle for name, cycle in found if isinstance(cycle, ExtendedCycle)}


class CoreInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that a running scheduler gives its deciding half; benchmarks give none.

    Parameters
    ----------
    store
        The newest version of every pod.
    client
        The verbs of the binding cycle; None where nothing can be written.
    extenders
        The configuration's extenders, opened; every profile has them.
    api
        The way of plugins' effects to the API server; None where nothing is written.
    on_wake
        Called when the queue may have a pod to try; None where no pump waits for one.
    waiting
        The pods held at Permit; None for a map that times out by the event loop.
    recorder
        Keeps the records of attempts; None where none are kept.
    """

    store: PodStore = msgspec.field(default_factory=PodStore)
    client: BindingClient | None = None
    extenders: Sequence[Extender] = ()
    api: ApiEffects | None = None
    on_wake: Callable[[], None] | None = None
    waiting: WaitingPods | None = None
    recorder: Recorder | None = None


def build_core(
    config: LoadedConfiguration,
    registry: Registry,
    *,
    clock: Clock,
    streams: Streams,
    surroundings: CoreInputs | None = None,
    tie_break: TieBreak | None = None,
    reuse: bool = True,
) -> Core:
    """Construct the deciding half from a configuration.

    Parameters
    ----------
    config
        Loaded and checked.
    registry
        Every known plugin.
    clock, streams
        Time and randomness.
    surroundings
        The parts around the deciding half; None where a decision has no effect.
    tie_break
        Chooses one of several best nodes; seeded draws when None.
    reuse
        Whether answers are reused for replicas.

    Raises
    ------
    ConfigError
        A profile cannot be built; every fault is listed.
    """
    around = CoreInputs() if surroundings is None else surroundings
    specs = expand_profiles(config.scheduler, registry, gates=config.gates)
    nominator = Nominator(around.store.get)
    snapshot = empty_snapshot(nominator, config.gates, specs, registry)
    evictions = EvictionLedger(around.store.get, snapshot.table.node_of_pod, clock=clock)
    waiting = WaitingPods() if around.waiting is None else around.waiting
    activations = Activations(around.on_wake)
    effects = LivePluginEffects(waiting, activations, around.api)
    shared = Handle(
        profile_name="",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=clock,
        streams=streams,
        client=around.client,
        evictions=evictions,
        effects=effects,
        gates=config.gates,
    )
    maker = _maker(shared, tie_break, reuse=reuse, noted=around.recorder is not None)
    deciding = maker.make(config, specs, registry=registry, extenders=around.extenders)
    plugin_facts, queue_facts = maker.facts, _queue_facts(config.gates, maker.facts, snapshot)
    queue = build_queue(
        config,
        deciding.profiles,
        clock=clock,
        nominator=nominator,
        activations=activations,
        snapshot=snapshot,
        facts=queue_facts,
        on_wake=around.on_wake,
    )
    return Core(
        snapshot=snapshot,
        profiles=deciding.profiles,
        cycles=deciding.cycles,
        maker=maker,
        cache=Cache(snapshot.table, clock, lifecycle=queue.lifecycle, groups=snapshot.groups),
        queue=queue,
        store=around.store,
        evictions=evictions,
        waiting=waiting,
        pre_binding=PreBinding(),
        effects=effects,
        queue_facts=queue_facts,
        plugin_facts=plugin_facts,
        disabled_groups=DisabledGroups(around.store, snapshot.groups, deciding.profiles),
        hold_back_after_seconds=_is_delayed(config, deciding.profiles),
        recorder=around.recorder,
    )


def _queue_facts(gates: FeatureGates, facts: PluginFacts, snapshot: Snapshot) -> QueueFacts:
    """Return what counts for the queue's metrics; groups are entities since 1.37."""
    if gates(GENERIC_WORKLOAD) and gates.version != V1_36:
        return EntityFacts(facts, snapshot)
    return QueueFacts(facts)


def _maker(shared: Handle, tie_break: TieBreak | None, *, reuse: bool, noted: bool) -> Maker:
    draw_sample = shared.streams.stream("plugin-metrics").random
    return Maker(
        shared=shared,
        draw=tie_break or seeded(shared.streams.stream("tie-break")),
        facts=PluginFacts(shared.clock.monotonic_ns, draw_sample),
        rotation=Rotation(),
        reuse=reuse,
        noted=noted,
    )


def _is_delayed(config: LoadedConfiguration, names: Iterable[str]) -> dict[str, float]:
    """Return ``holdBackAfterSeconds`` of the profiles that set it."""
    found = {name: config.own.profile(name).hold_back_after_seconds for name in names}
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def empty_snapshot(
    nominator: Nominator, gates: FeatureGates, specs: Sequence[ProfileSpec], registry: Registry
) -> Snapshot:
    """Return an empty cluster, with the group sources that feature gates and plugins add."""
    listers, members = Listers(), MembersByGroup()
    succeeded = SucceededMembers(members)
    sources: dict[str, GroupSource] = {}
    composites = None
    if gates(COMPOSITE_POD_GROUP):
        composites = CompositeGroups(listers.pod_groups, listers.composite_pod_groups)
    if gates(GENERIC_WORKLOAD):
        sources[API_SOURCE] = ApiGroups(listers.pod_groups, composites)
    open_to = {source: opening(source, specs, registry) for source in (CUSTOM_SOURCE, LABEL_SOURCE)}
    if open_to[CUSTOM_SOURCE]:
        sources[CUSTOM_SOURCE] = CustomGroups(listers.coscheduling_groups, members.members_of)
    if open_to[LABEL_SOURCE]:
        sources[LABEL_SOURCE] = LabelledGroups(members.members_of)
    snapshot = Snapshot(
        listers=listers,
        nominations=Nominations(nominator),
        nominations_log=nominator.log,
        only_nominated=nominator.only_one,
        victims_of=nominator.victims_of,
        groups=PodGroups(
            SeveralSources(sources, open_to, succeeded) if sources else None, members, succeeded
        ),
    )
    snapshot.composites = composites
    snapshot.may_repel = nominator.may_repel
    snapshot.may_spread = nominator.may_spread
    return snapshot


def opening(source: str, specs: Sequence[ProfileSpec], registry: Registry) -> list[str]:
    """Return the profiles with a Permit plugin that opens a group source."""
    return [
        spec.scheduler_name
        for spec in specs
        if any(source in registry.group_sources(name) for name in spec.points["permit"])
    ]


class AskingCycle(ExtendedCycle):
    """The cycle of profiles with extenders, on the event loop."""

    async def together(self, calls: Sequence[Awaitable[None]]) -> None:
        """Await several calls at once."""
        await asyncio.gather(*calls)

"""The deciding half put together, without any I/O: state, snapshot, profiles, cycles.

`scheduler` surrounds this half with reflectors and writes; benchmarks and what-if use no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.config.feature_gates import GENERIC_WORKLOAD, FeatureGates
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.engine.cycle import Cycle
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.notes.attempt_note import NoteWriter
from moorage.engine.sampling import Rotation
from moorage.engine.select_node import TieBreak, seeded
from moorage.framework.extender import Extender
from moorage.framework.handle import BindingClient, Handle
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.status import ReasonTable
from moorage.observe.plugin_facts import PluginFacts
from moorage.observe.queue_facts import QueueFacts
from moorage.observe.records.recorder import Recorder
from moorage.service.evictions import EvictionLedger
from moorage.service.nominations import Nominations
from moorage.service.plugin_effects import ApiEffects, LivePluginEffects
from moorage.service.pod_store import PodStore
from moorage.service.queue_of_profiles import build_queue
from moorage.service.score_log import scores_are_told, tell_scores
from moorage.service.waiting import PreBinding, WaitingPods
from moorage.snapshot.group_labels import (
    CUSTOM_SOURCE,
    LABEL_SOURCE,
    CustomGroups,
    LabelledGroups,
    SeveralSources,
)
from moorage.snapshot.group_sources import API_SOURCE, ApiGroups
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_groups import GroupSource, MembersByGroup, PodGroups
from moorage.snapshot.snapshot import Snapshot
from moorage.state.activations import Activations
from moorage.state.cache import Cache
from moorage.state.nominations import Nominator
from moorage.state.queue import SchedulingQueue


class Core(msgspec.Struct, frozen=True):
    """The rooms of the deciding half, wired.

    Parameters
    ----------
    hold_back_after_seconds
        Wait of a group before room is held back for it, by profile with this setting.
    recorder
        Keeps the records of attempts; None where none are kept.
    """

    snapshot: Snapshot
    profiles: Mapping[str, Profile]
    cycles: Mapping[str, Cycle]
    cache: Cache
    queue: SchedulingQueue
    store: PodStore
    evictions: EvictionLedger
    waiting: WaitingPods
    pre_binding: PreBinding
    effects: LivePluginEffects
    queue_facts: QueueFacts
    plugin_facts: PluginFacts
    hold_back_after_seconds: Mapping[str, float] = {}
    recorder: Recorder | None = None

    @property
    def extended_cycles(self) -> dict[str, ExtendedCycle]:
        """The cycles of the profiles with extenders."""
        found = self.cycles.items()
        return {name: cycle for name, cycle in found if isinstance(cycle, ExtendedCycle)}


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
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
    surroundings: Surroundings | None = None,
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
    around = Surroundings() if surroundings is None else surroundings
    specs = expand_profiles(config.scheduler, registry, gates=config.gates)
    nominator = Nominator(around.store.get)
    snapshot = empty_snapshot(nominator, config.gates, specs, registry)
    evictions = EvictionLedger(around.store.get)
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
    profiles = _profiles(specs, registry, shared, config=config, extenders=around.extenders)
    draw, noted = tie_break or seeded(streams.stream("tie-break")), around.recorder is not None
    plugin_facts = PluginFacts(clock.monotonic_ns, streams.stream("plugin-metrics").random)
    queue_facts = QueueFacts(plugin_facts)
    queue = build_queue(
        config,
        profiles,
        clock=clock,
        nominator=nominator,
        activations=activations,
        snapshot=snapshot,
        facts=queue_facts,
        on_wake=around.on_wake,
    )
    return Core(
        snapshot=snapshot,
        profiles=profiles,
        cycles=_cycles(profiles, draw, plugin_facts, reuse=reuse, noted=noted),
        cache=Cache(snapshot.table, clock, lifecycle=queue.lifecycle, groups=snapshot.groups),
        queue=queue,
        store=around.store,
        evictions=evictions,
        waiting=waiting,
        pre_binding=PreBinding(),
        effects=effects,
        queue_facts=queue_facts,
        plugin_facts=plugin_facts,
        hold_back_after_seconds=_held_back(config, profiles),
        recorder=around.recorder,
    )


def _held_back(config: LoadedConfiguration, names: Iterable[str]) -> dict[str, float]:
    """Return ``holdBackAfterSeconds`` of the profiles that set it."""
    found = {name: config.own.profile(name).hold_back_after_seconds for name in names}
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def _profiles(
    specs: Sequence[ProfileSpec],
    registry: Registry,
    shared: Handle,
    *,
    config: LoadedConfiguration,
    extenders: Sequence[Extender],
) -> dict[str, Profile]:
    """Return the profiles by name; each handle is `shared` with the profile's own fields."""
    profiles: dict[str, Profile] = {}
    for spec in specs:
        name = spec.scheduler_name
        own = config.own.profile(name)
        handle = msgspec.structs.replace(
            shared, profile_name=name, group_mode=own.group_mode, group_orders=own.group_orders
        )
        profiles[name] = Profile(spec, registry, handle, extenders=extenders)
    return profiles


def empty_snapshot(
    nominator: Nominator, gates: FeatureGates, specs: Sequence[ProfileSpec], registry: Registry
) -> Snapshot:
    """Return an empty cluster, with the group sources that feature gates and plugins add."""
    listers, members = Listers(), MembersByGroup()
    sources: dict[str, GroupSource] = {}
    if gates(GENERIC_WORKLOAD):
        sources[API_SOURCE] = ApiGroups(listers.pod_groups)
    open_to = {
        CUSTOM_SOURCE: _opening(CUSTOM_SOURCE, specs, registry),
        LABEL_SOURCE: _opening(LABEL_SOURCE, specs, registry),
    }
    if open_to[CUSTOM_SOURCE]:
        sources[CUSTOM_SOURCE] = CustomGroups(listers.coscheduling_groups, members.of)
    if open_to[LABEL_SOURCE]:
        sources[LABEL_SOURCE] = LabelledGroups(members.of)
    return Snapshot(
        listers=listers,
        nominations=Nominations(nominator),
        nominations_log=nominator.log,
        only_nominated=nominator.only_one,
        groups=PodGroups(SeveralSources(sources, open_to) if sources else None, members),
    )


def _opening(source: str, specs: Sequence[ProfileSpec], registry: Registry) -> list[str]:
    """Return the profiles with a Permit plugin that opens a group source."""
    return [
        spec.scheduler_name
        for spec in specs
        if any(source in registry.group_sources(name) for name in spec.points["permit"])
    ]


def _cycles(
    profiles: Mapping[str, Profile],
    draw: TieBreak,
    facts: PluginFacts,
    *,
    reuse: bool,
    noted: bool,
) -> dict[str, Cycle]:
    """Return the cycle of each profile; all cycles share the start of partial searches."""
    rotation, cycles = Rotation(), dict[str, Cycle]()
    on_scored = tell_scores if scores_are_told() else None
    for name, profile in profiles.items():
        kind = AskingCycle if profile.extenders else Cycle
        cycles[name] = kind(
            profile,
            profile.handle.snapshot,
            draw,
            reuse=reuse,
            rotation=rotation,
            meter=facts.meter(name),
            notes=NoteWriter(profile, profile.handle.snapshot) if noted else None,
            on_scored=on_scored,
        )
    return cycles


class AskingCycle(ExtendedCycle):
    """The cycle of profiles with extenders, on the event loop."""

    async def together(self, calls: Sequence[Awaitable[None]]) -> None:
        """Await several calls at once."""
        await asyncio.gather(*calls)

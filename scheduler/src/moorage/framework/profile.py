"""A profile: the constructed plugins of one ``schedulerName``, by extension point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

from moorage.base.errors import ConfigError
from moorage.base.no_names import NO_NAMES
from moorage.config.gate_table import V1_36
from moorage.config.merge import ProfileSpec
from moorage.framework.capabilities import Capabilities, capabilities_of, is_reused
from moorage.framework.containment import Containment, harmless
from moorage.framework.extender import EVERY_EVENT, EXTENDER, Extender, in_order
from moorage.framework.forms import FilterForms, ScoreForms, filter_forms, score_forms
from moorage.framework.group import (
    GroupGatePlugin,
    GroupPostFilterPlugin,
    PlacementFeasiblePlugin,
)
from moorage.framework.guarded import Guarded
from moorage.framework.handle import Handle
from moorage.framework.pods_seen import PodsSeen, pods_seen
from moorage.framework.points import (
    BindPlugin,
    EventRegistration,
    EventsToRegister,
    FilterPlugin,
    NormalizePlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreBindPreFlightPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from moorage.framework.raised import is_signal, safe_text_of
from moorage.framework.registry import POINT_METHODS, PluginEntry, Registry
from moorage.framework.roles import Role, roles_of
from moorage.snapshot.shape import PartKind


class Profile:
    """The plugins of one profile, constructed once and sorted by point.

    Parameters
    ----------
    spec
        Names, order, weights, arguments; already checked by the configuration.
    registry
        The registry in which names are looked up.
    handle
        Given to every plugin.
    extenders
        The extenders, in the order they are asked.
    before
        The profile of this name before a reload; in-tree plugins whose arguments are unchanged are
        taken from it, with what they keep of pods on their way. None at the start.
    """

    def __init__(
        self,
        spec: ProfileSpec,
        registry: Registry,
        handle: Handle,
        *,
        extenders: Sequence[Extender] = (),
        before: Profile | None = None,
    ) -> None:
        self.name = spec.scheduler_name
        self.spec = spec
        self.extenders = in_order(extenders)
        self.handle = handle
        self.plugins = _construct(spec, registry, handle, before)
        self.points: dict[str, tuple[object, ...]] = {
            point: tuple(self.plugins[name] for name in spec.points.get(point, ()))
            for point in POINT_METHODS
        }
        self.weights = dict(spec.score_weights)
        self.percentage_of_nodes_to_score = spec.percentage_of_nodes_to_score
        self.capabilities: dict[str, Capabilities] = {
            name: capabilities_of(name, plugin) for name, plugin in self.plugins.items()
        }
        """The capabilities of each plugin, by name."""
        self.roles = {name: roles_of(name, plugin) for name, plugin in self.plugins.items()}
        """The roles of each plugin, by name."""
        self.filter_forms = tuple(self._filter_forms())
        """Filter plugins in every form, in order."""
        self.score_forms = tuple(self._score_forms())
        """Score plugins in every form, in order."""
        self.filters: tuple[FilterPlugin, ...] = tuple(each.plugin for each in self.filter_forms)
        self.scores: tuple[ScorePlugin, ...] = tuple(each.plugin for each in self.score_forms)
        self._normalizers = {each.name: each.normalizer for each in self.score_forms}
        self.extensions: tuple[PreFilterExtensions, ...] = tuple(
            plugin for plugin in self.points["preFilter"] if isinstance(plugin, PreFilterExtensions)
        )
        """PreFilter plugins that follow pods added or removed in a trial, in order."""
        self.pre_flights: tuple[PreBindPreFlightPlugin, ...] = tuple(
            plugin for plugin in self.pre_binds if isinstance(plugin, PreBindPreFlightPlugin)
        )
        """PreBind plugins that say beforehand whether they have work, in order."""
        self.group_gates: tuple[GroupGatePlugin, ...] = tuple(
            plugin for plugin in self.plugins.values() if isinstance(plugin, GroupGatePlugin)
        )
        """Plugins that may turn members of a group away before the group is tried, in order."""
        self.group_holders: dict[str, str] = _group_holders(spec, registry)
        """Name of a group source -> the plugin whose Permit holds the members of its groups."""
        self.group_post_filters = cast(
            "tuple[GroupPostFilterPlugin, ...]", self.points["podGroupPostFilter"]
        )
        """Plugins that can make room for a whole group, in order."""
        self.asked_afresh: frozenset[str] = frozenset(
            name
            for name, plugin in self.plugins.items()
            if not is_reused(plugin, self.capabilities[name])
        )
        """Names of the plugins whose answers are never reused."""
        self._pods_seen: dict[frozenset[str], PodsSeen | None] = {}

    def _filter_forms(self) -> Iterator[FilterForms]:
        for index, each in enumerate(cast("Sequence[Plugin]", self.points["filter"])):
            found, roles = self.capabilities[each.name], self.roles[each.name]
            yield filter_forms(index, each, found, roles, self.handle)

    def _score_forms(self) -> Iterator[ScoreForms]:
        for each in cast("Sequence[Plugin]", self.points["score"]):
            found, weight = self.capabilities[each.name], self.weights[each.name]
            yield score_forms(each, found, self.handle.snapshot, weight=weight)

    @property
    def preempting(self) -> tuple[str, ...]:
        """Names of the PostFilter plugins that propose pods to evict, in order."""
        names = [plugin.name for plugin in self.post_filters]
        return tuple(name for name in names if Role.PREEMPTS in self.roles[name])

    @cached_property
    def group_feasibility(self) -> tuple[PlacementFeasiblePlugin, ...]:
        """Plugins that say after each member whether a group may be placed, in order; in 1.37."""
        if self.handle.gates.version == V1_36:
            return ()
        plugins = self.plugins.values()
        return tuple(each for each in plugins if isinstance(each, PlacementFeasiblePlugin))

    @cached_property
    def evicts_whole_gangs(self) -> bool:
        """Whether evicting one member of a gang evicts the other members too."""
        return any(Role.EVICTS_WHOLE_GANGS in each for each in self.roles.values())

    @cached_property
    def count_nominated(self) -> frozenset[str]:
        """Names of the plugins whose PreFilter counts nominated pods on every node."""
        if not self.handle.snapshot.nominated_everywhere:
            return NO_NAMES
        found = self.capabilities.items()
        return frozenset(name for name, each in found if each.counts_nominated)

    @property
    def pre_enqueue(self) -> Sequence[PreEnqueuePlugin]:
        """PreEnqueue plugins, in order."""
        return cast("Sequence[PreEnqueuePlugin]", self.points["preEnqueue"])

    @property
    def queue_sort(self) -> QueueSortPlugin:
        """The one QueueSort plugin."""
        return cast("QueueSortPlugin", self.points["queueSort"][0])

    @property
    def pre_filters(self) -> Sequence[PreFilterPlugin]:
        """PreFilter plugins, in order."""
        return cast("Sequence[PreFilterPlugin]", self.points["preFilter"])

    @cached_property
    def post_filters(self) -> Sequence[PostFilterPlugin]:
        """PostFilter plugins, in order; in group mode ``permit`` those last that hold members.

        Coscheduling takes the members off their nodes unless one of them awaits victims, so it is
        asked after those that preempt, wherever the user lists it.
        """
        plugins = cast("Sequence[PostFilterPlugin]", self.points["postFilter"])
        if self.handle.group_mode != "permit":
            return plugins
        holders = {*self.group_holders.values()}
        return sorted(plugins, key=lambda plugin: plugin.name in holders)

    @property
    def pre_scores(self) -> Sequence[PreScorePlugin]:
        """PreScore plugins, in order."""
        return cast("Sequence[PreScorePlugin]", self.points["preScore"])

    @property
    def reserves(self) -> Sequence[ReservePlugin]:
        """Reserve plugins, in order."""
        return cast("Sequence[ReservePlugin]", self.points["reserve"])

    @property
    def permits(self) -> Sequence[PermitPlugin]:
        """Permit plugins, in order."""
        return cast("Sequence[PermitPlugin]", self.points["permit"])

    @property
    def pre_binds(self) -> Sequence[PreBindPlugin]:
        """PreBind plugins, in order."""
        return cast("Sequence[PreBindPlugin]", self.points["preBind"])

    @property
    def binds(self) -> Sequence[BindPlugin]:
        """Bind plugins, in order."""
        return cast("Sequence[BindPlugin]", self.points["bind"])

    @property
    def post_binds(self) -> Sequence[PostBindPlugin]:
        """PostBind plugins, in order."""
        return cast("Sequence[PostBindPlugin]", self.points["postBind"])

    def filters_by_sums(self, skipped: frozenset[str]) -> tuple[int, ...] | None:
        """Return which Filters read the pods of a row as sums; None if one Filter reads more.

        A Filter that reads its row's node alone answers the same whatever pods are there.

        Parameters
        ----------
        skipped
            Names of the plugins that take no part in an attempt.
        """
        found = self.pods_seen(skipped)
        return None if found is None or not found.only_sums else found.by_sums

    def pods_seen(self, skipped: frozenset[str]) -> PodsSeen | None:
        """Return how the Filters see the pods of a row; None where one does not say.

        Parameters
        ----------
        skipped
            Names of the plugins that take no part in an attempt.
        """
        if skipped not in self._pods_seen:
            names = [plugin.name for plugin in self.extensions if plugin.name not in skipped]
            followers = {name: self.capabilities[name] for name in names}
            table = self.handle.snapshot.table
            self._pods_seen[skipped] = pods_seen(
                table, self.filter_forms, followers, skipped, self.count_nominated
            )
        return self._pods_seen[skipped]

    def normalizer(self, score: ScorePlugin) -> NormalizePlugin | None:
        """Return the normaliser of a Score plugin, or None when its raw scores are final."""
        return self._normalizers.get(score.name)

    def registrations(self) -> dict[str, Sequence[EventRegistration]]:
        """Return the events of every plugin that may reject a pod, by plugin name.

        Only plugins at PreEnqueue, PreFilter, Filter, Reserve or Permit take part
        (scheduling spec, framework section 4).
        """
        rejecting = ("preEnqueue", "preFilter", "filter", "reserve", "permit")
        by_plugin: dict[str, Sequence[EventRegistration]] = {}
        for point in rejecting:
            for plugin in self.points[point]:
                if isinstance(plugin, EventsToRegister) and plugin.name not in by_plugin:
                    by_plugin[plugin.name] = plugin.events_to_register()
        if self.extenders:
            by_plugin[EXTENDER] = EVERY_EVENT
        return by_plugin

    @property
    def shape_kinds(self) -> tuple[PartKind[Any], ...]:
        """The parts of a pod that any reusable plugin of the profile reads, each once."""
        found: dict[PartKind[Any], None] = {}
        for name, each in self.capabilities.items():
            if name not in self.asked_afresh:
                found.update(dict.fromkeys(each.shape_parts or ()))
        return tuple(found)


def _group_holders(spec: ProfileSpec, registry: Registry) -> dict[str, str]:
    """Return, by group source, the first enabled Permit plugin that holds members of its groups."""
    holders: dict[str, str] = {}
    for name in spec.points.get("permit", ()):
        for source in registry.group_sources(name):
            holders.setdefault(source, name)
    return holders


def _construct(
    spec: ProfileSpec, registry: Registry, handle: Handle, before: Profile | None
) -> dict[str, Any]:
    names = dict.fromkeys(name for names in spec.points.values() for name in names)
    kept = {} if before is None else _unchanged_plugins(spec, list(names), registry, before)
    return {
        name: kept[name]
        if name in kept
        else construct_plugin(name, spec.plugin_args.get(name), registry, handle)
        for name in names
    }


def _unchanged_plugins(
    spec: ProfileSpec, names: Sequence[str], registry: Registry, before: Profile
) -> dict[str, Any]:
    """Return the plugins that a reload keeps: in-tree, unchanged, and so is their family."""

    def family(name: str) -> str:
        entry = registry.find(name)
        return "" if entry is None else entry.family

    unchanged = {
        name: plugin
        for name, plugin in before.plugins.items()
        if name in names
        and not isinstance(plugin, Guarded)
        and before.spec.plugin_args.get(name) == spec.plugin_args.get(name)
    }
    changed = {family(name) for name in (*names, *before.plugins) if name not in unchanged}
    return {
        name: plugin
        for name, plugin in unchanged.items()
        if not family(name) or family(name) not in changed
    }


def construct_plugin(name: str, args: object, registry: Registry, handle: Handle) -> Any:
    """Return a plugin of a profile; one from outside is called through a guard.

    Raises
    ------
    ConfigError
        The plugin cannot be constructed.
    """
    entry = registry.find(name)
    assert entry is not None, f"plugin {name} was not checked against the registry"
    if entry.origin:
        return _from_outside(entry, args, handle, registry.containment)
    return entry.make(args, handle)


def _from_outside(
    entry: PluginEntry, args: object, handle: Handle, containment: Containment
) -> Guarded:
    try:
        plugin = entry.make(args, handle)
    except BaseException as problem:
        raise _unusable(entry, handle, problem) from _shown(problem)
    try:
        return Guarded(entry.name, plugin, handle, containment)
    except ConfigError:
        raise
    except BaseException as problem:  # attributes, too, may be code of the plugin
        raise _unusable(entry, handle, problem) from _shown(problem)


def _unusable(entry: PluginEntry, handle: Handle, problem: BaseException) -> BaseException:
    """Return the error of a plugin that could not be made; a signal stays a signal."""
    if is_signal(problem):
        return problem
    return ConfigError(
        [
            f"creating profile for scheduler name {handle.profile_name}: "
            f'initializing plugin "{entry.name}": {safe_text_of(problem)}'
        ]
    )


def _shown(problem: BaseException) -> BaseException | None:
    return None if is_signal(problem) else harmless(problem, safe_text_of(problem))

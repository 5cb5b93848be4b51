"""A user's plugin lists merged with the default ones and expanded: what each profile runs.

Last stop of the configuration: `expand_profiles` makes one `ProfileSpec` a profile, from which the
framework constructs the plugins. `KnownPlugins` tells which plugin extends which point. Rules:
kubernetes v1.36 ``pkg/scheduler/apis/config/v1/default_plugins.go`` (merge) and
``pkg/scheduler/framework/runtime/framework.go`` (expansion, weights, start-up errors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from moorage.base.errors import ConfigError
from moorage.config.args import args_type, default_args, read_foreign_args
from moorage.config.defaults import default_multi_point
from moorage.config.extenders import ignored_resources
from moorage.config.feature_gates import DEFAULT_GATES, FeatureGates
from moorage.config.gate_table import V1_36
from moorage.config.past import instead_of
from moorage.config.plugin_args import NodeResourcesFitArgs
from moorage.config.types import KubeSchedulerConfiguration, PluginRef, Plugins, PluginSet, Profile
from moorage.config.validation import GROUP_POST_FILTER, by_point, version_faults

# Points in the order in which kube-scheduler fills them; its first error names the first point.
POINTS: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
    GROUP_POST_FILTER,
)
_QUEUE_SORT: Final = "PrioritySort"
_MAX_NODE_SCORE: Final = 100
_MAX_TOTAL_SCORE: Final = 2**63 - 1


class KnownPlugin(Protocol):
    """The part of a registry entry that concerns a plugin's arguments."""

    @property
    def args_type(self) -> type[Any] | None:
        """Type of the plugin's arguments; None for a plugin without arguments."""
        ...


class KnownPlugins(Protocol):
    """The registry as this room sees it."""

    def find(self, name: str) -> KnownPlugin | None:
        """Return the plugin of a name, or None."""
        ...

    def extends(self, name: str, point: str) -> bool:
        """Whether a known plugin extends an extension point."""
        ...


class ProfileSpec(msgspec.Struct, frozen=True):
    """A profile, ready to be built.

    Parameters
    ----------
    scheduler_name
        The ``spec.schedulerName`` it serves.
    points
        Every extension point to the names of its plugins, in execution order.
    score_weights
        Weight of each plugin at the point score.
    plugin_args
        Arguments by plugin name, defaulted; plugins without arguments are absent.
    percentage_of_nodes_to_score
        How many of the nodes are searched for feasible ones: 1 to 100, or 0 for a share that
        falls as the cluster grows. Unset means 100 (kube-scheduler: 0).
    placement_weights
        Weight of each plugin at the point placementScore.
    percentage_of_placements_to_score
        In how many of its placements a pod group has to fit before the best one is taken, as
        `percentage_of_nodes_to_score`. Unset means 100 (kube-scheduler 1.37: 0).
    """

    scheduler_name: str
    points: Mapping[str, tuple[str, ...]]
    score_weights: Mapping[str, int]
    plugin_args: Mapping[str, Any]
    percentage_of_nodes_to_score: int = 100
    placement_weights: Mapping[str, int] = {}
    percentage_of_placements_to_score: int = 100


def merge_plugins(user: Plugins, gates: FeatureGates = DEFAULT_GATES) -> Plugins:
    """Return a user's lists merged with the default ones.

    Notes
    -----
    Only multiPoint has defaults. A default plugin that the user enables too keeps its place and
    takes the user's entry, so a weight left out becomes 1, not the default weight.
    """
    merged = _merge_set(default_multi_point(gates), user.multi_point)
    return msgspec.structs.replace(user, multi_point=merged)


def _merge_set(defaults: Sequence[PluginRef], user: PluginSet) -> PluginSet:
    disabled = {ref.name for ref in user.disabled}
    # The last entry of a name replaces the default.
    last = {ref.name: index for index, ref in enumerate(user.enabled)}
    replaced: set[int] = set()
    enabled: list[PluginRef] = []
    if "*" not in disabled:
        for ref in defaults:
            if ref.name in disabled:
                continue
            index = last.get(ref.name)
            if index is not None:
                replaced.add(index)
            enabled.append(ref if index is None else user.enabled[index])
    enabled += [ref for index, ref in enumerate(user.enabled) if index not in replaced]
    return PluginSet(enabled=enabled, disabled=user.disabled)


def expand_profiles(
    config: KubeSchedulerConfiguration,
    known: KnownPlugins,
    *,
    gates: FeatureGates = DEFAULT_GATES,
) -> tuple[ProfileSpec, ...]:
    """Return what every profile of a loaded configuration runs.

    Parameters
    ----------
    config
        As `load` returns it.
    known
        The registry of plugins.
    gates
        The feature gates; some add to the default plugins.

    Raises
    ------
    ConfigError
        Every start-up error of every profile.
    """
    specs, faults = read_profiles(config, known, gates=gates)
    if faults:
        raise ConfigError(faults)
    return specs


def read_profiles(
    config: KubeSchedulerConfiguration,
    known: KnownPlugins,
    *,
    gates: FeatureGates = DEFAULT_GATES,
) -> tuple[tuple[ProfileSpec, ...], list[str]]:
    """Return the plugins of every profile, as far as they are known, and every start-up error.

    Parameters
    ----------
    config, known, gates
        As `expand_profiles` takes them.
    """
    faults = list(version_faults(config, gates))
    specs = [
        _Expansion(profile, config, known, faults, gates=gates).spec()
        for profile in config.profiles
    ]
    faults += _shared_queue_faults(specs)
    return tuple(specs), faults


class _Expansion:
    """Expands one profile; faults go to the shared list, signed with the profile's name."""

    def __init__(
        self,
        profile: Profile,
        config: KubeSchedulerConfiguration,
        known: KnownPlugins,
        faults: list[str],
        *,
        gates: FeatureGates,
    ) -> None:
        self._profile = profile
        self._config = config
        self._known = known
        self._faults = faults
        self._plugins = merge_plugins(profile.plugins, gates)
        self._group_post_filters_of_post_filter = gates.version == V1_36

    def spec(self) -> ProfileSpec:
        """Return the profile's spec; meaningful only if no fault was added."""
        sets = dict(by_point(self._plugins))
        multi = self._existing_multi_point()
        points = {
            point: self._expand(point, sets.get(point, PluginSet()), multi) for point in POINTS
        }
        if self._group_post_filters_of_post_filter:
            points[GROUP_POST_FILTER] = tuple(
                name
                for name in points["postFilter"]
                if self._known.extends(name, GROUP_POST_FILTER)
            )
        self._check_counts(points)
        names = dict.fromkeys(name for order in points.values() for name in order)
        own, shared = self._profile, self._config
        return ProfileSpec(
            scheduler_name=self._profile.scheduler_name,
            points=points,
            score_weights=self._weights("score", points, self._plugins.score),
            plugin_args=self._args(names),
            percentage_of_nodes_to_score=_percentage(
                own.percentage_of_nodes_to_score, shared.percentage_of_nodes_to_score
            ),
            placement_weights=self._weights(
                "placementScore", points, self._plugins.placement_score
            ),
            percentage_of_placements_to_score=_percentage(
                own.percentage_of_placements_to_score, shared.percentage_of_placements_to_score
            ),
        )

    def _fault(self, text: str) -> None:
        self._faults.append(
            f"creating profile for scheduler name {self._profile.scheduler_name}: {text}"
        )

    def _existing_multi_point(self) -> list[str]:
        names = []
        for ref in self._plugins.multi_point.enabled:
            if self._known.find(ref.name) is None:
                self._fault(
                    f'{point_type(POINTS[0])} "{ref.name}" does not exist{instead_of(ref.name)}'
                )
            else:
                names.append(ref.name)
        return names

    def _specific(self, point: str, enabled: Iterable[PluginRef]) -> list[str]:
        names: list[str] = []
        kind = point_type(point)
        for ref in enabled:
            if self._known.find(ref.name) is None:
                self._fault(f'{kind} "{ref.name}" does not exist{instead_of(ref.name)}')
            elif not self._known.extends(ref.name, point):
                self._fault(f'plugin "{ref.name}" does not extend {kind} plugin')
            elif ref.name in names:
                self._fault(f'plugin "{ref.name}" already registered as "{kind}"')
            else:
                names.append(ref.name)
        return names

    def _expand(self, point: str, lists: PluginSet, multi_point: list[str]) -> tuple[str, ...]:
        specific = self._specific(point, lists.enabled)
        disabled = {ref.name for ref in lists.disabled}
        if "*" in disabled:
            return tuple(specific)
        overrides: set[str] = set()
        multi: list[str] = []
        for name in multi_point:
            if not self._known.extends(name, point) or name in disabled:
                continue
            if name in specific:
                overrides.add(name)
            elif name in multi:
                self._fault(f'plugin "{name}" already registered as "{point_type(point)}"')
            else:
                multi.append(name)
        first = [name for name in specific if name in overrides]
        last = [name for name in specific if name not in overrides]
        return (*first, *multi, *last)

    def _check_counts(self, points: Mapping[str, tuple[str, ...]]) -> None:
        name, sorts = self._profile.scheduler_name, len(points["queueSort"])
        if sorts != 1:
            self._fault(
                "only one queue sort plugin required for profile with scheduler name "
                f'"{name}", but got {sorts}{_one_queue_sort(points["queueSort"])}'
            )
        if not points["bind"]:
            self._fault(
                f'at least one bind plugin is needed for profile with scheduler name "{name}"'
            )

    def _weights(
        self, point: str, points: Mapping[str, tuple[str, ...]], lists: PluginSet
    ) -> dict[str, int]:
        # Upstream adds up the weights of all plugins that can score, also of multiPoint plugins
        # that the point disables.
        weights: dict[str, int] = {}
        for ref in (*lists.enabled, *self._plugins.multi_point.enabled):
            if self._known.find(ref.name) is not None and self._known.extends(ref.name, point):
                weights.setdefault(ref.name, ref.weight or 1)
        if _overflows(weights.values()):
            self._fault("score plugins: total score of Score plugins could overflow")
        return {name: weights[name] for name in points[point]}

    def _args(self, names: Iterable[str]) -> dict[str, Any]:
        configured = {entry.name: entry.args for entry in self._profile.plugin_config}
        result: dict[str, Any] = {}
        for name in names:
            args = configured.get(name)
            if args is None:
                args = default_args(name)
            plugin = self._known.find(name)
            wanted = plugin.args_type if plugin is not None else None
            if wanted is not None and not isinstance(args, wanted):
                if name in configured and args is None and args_type(name) is not None:
                    continue  # The entry of an in-tree plugin is a fault of its own already.
                args, faults = read_foreign_args(wanted, args or {}, path="args")
                advice = "" if name in configured else "; pluginConfig has no entry for the plugin"
                for fault in faults:
                    self._fault(f'initializing plugin "{name}": {fault}{advice}')
            ignored = ignored_resources(self._config.extenders)
            if ignored and isinstance(args, NodeResourcesFitArgs):
                args = msgspec.structs.replace(args, ignored_resources=ignored)
            if args is not None:
                result[name] = args
        return result


def _percentage(own: int | None, shared: int | None) -> int:
    """Return the percentage of a profile; 100 where neither the profile nor the file has one."""
    percentage = shared if own is None else own
    return 100 if percentage is None else percentage


def _one_queue_sort(names: Sequence[str]) -> str:
    """Return advice where a queue sort plugin was added and the default one left on."""
    if len(names) != 2 or _QUEUE_SORT not in names:
        return ""
    return f": disable {_QUEUE_SORT} at queueSort of the profile"


def point_type(point: str) -> str:
    """Return the name of the Go interface of a point, as start-up errors print it."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def _shared_queue_faults(specs: Sequence[ProfileSpec]) -> list[str]:
    """All profiles share one queue: its order and the arguments of its plugin must agree."""
    orders = [(spec, spec.points["queueSort"]) for spec in specs]
    valid = [(spec, order[0]) for spec, order in orders if len(order) == 1]
    if not valid:
        return []
    first_spec, first = valid[0]
    faults = []
    for spec, plugin in valid[1:]:
        name = spec.scheduler_name
        if plugin != first:
            faults.append(
                f'different queue sort plugins for profile "{name}": "{plugin}", first: "{first}"'
            )
        elif spec.plugin_args.get(plugin) != first_spec.plugin_args.get(plugin):
            faults.append(f'different queue sort plugin args for profile "{name}"')
    return faults


def _overflows(weights: Iterable[int]) -> bool:
    """Whether kube-scheduler refuses the weights, in the order of the lists.

    It compares with the room that is left in 64 bits. Where the sum so far is negative, because a
    weight is, this room overflows itself, and any further plugin is refused.
    """
    total = 0
    for weight in weights:
        if total < 0 or weight * _MAX_NODE_SCORE > _MAX_TOTAL_SCORE - total:
            return True
        total += weight * _MAX_NODE_SCORE
    return False

"""Checks of a configuration that was read: every fault as a Kubernetes field error.

Last half of `load`. Rules: kubernetes v1.36 ``pkg/scheduler/apis/config/validation``. Settings
that are valid but not built yet are faults too, marked with `NOT_BUILT`; nothing is ignored
silently.

A file is read before the emulated version is known, because a flag may name the version. So the
reader takes the fields of every version, and `merge` asks for `version_faults` once the version is
known. Source of the fields that 1.36 lacks: kubernetes v1.37
``staging/src/k8s.io/kube-scheduler/config/v1/types.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.schedules.durations import parse_duration
from moorage.base.clock import NS_PER_SECOND
from moorage.config.extenders import extender_faults
from moorage.config.feature_gates import FeatureGates
from moorage.config.gate_table import TOPOLOGY_AWARE, V1_36, V1_37
from moorage.config.strict import invalid, join, quoted
from moorage.config.types import (
    API_VERSION,
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugins,
    PluginSet,
    Profile,
)

NOT_BUILT: Final = "not built yet"
"""Part of every fault about a Kubernetes setting that moorage does not have yet."""

PERCENTAGE: Final = "percentageOfPlacementsToScore"
FEASIBLE: Final = "placementFeasible"
GROUP_POST_FILTER: Final = "podGroupPostFilter"
EFFECTS: Final = {
    PERCENTAGE: "how many placements of a pod group are tried",
    FEASIBLE: "which plugins say that a pod group has its minimum",
    GROUP_POST_FILTER: "which plugins make room for a whole pod group",
}
"""The effect of each field that 1.36 lacks."""
_GANGS: Final = "GangScheduling"

_REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})


def is_not_built(fault: str) -> bool:
    """Whether a fault is about a feature that is missing here, not about a mistake."""
    return NOT_BUILT in fault


def validate(config: KubeSchedulerConfiguration) -> list[str]:
    """Return every fault of a configuration with its defaults filled in."""
    return [
        *_general(config),
        *_leader_election(config.leader_election),
        *_client_connection(config.client_connection),
        *_profiles(config.profiles),
        *_queue_sort(config.profiles),
        *extender_faults(config.extenders),
    ]


def _general(config: KubeSchedulerConfiguration) -> Iterator[str]:
    if config.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        yield invalid("parallelism", config.parallelism, detail)
    yield from _int32("parallelism", config.parallelism)
    yield from _percentages("", config)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", longest, detail)


def _int32(path: str, value: int | None) -> Iterator[str]:
    """Refuse what kube-scheduler cannot decode: the field has 32 bits there."""
    if value is not None and not -(2**31) <= value < 2**31:
        yield invalid(path, value, "does not fit in 32 bits")


def _percentages(path: str, config: KubeSchedulerConfiguration | Profile) -> Iterator[str]:
    for name, value in (
        ("percentageOfNodesToScore", config.percentage_of_nodes_to_score),
        ("percentageOfPlacementsToScore", config.percentage_of_placements_to_score),
    ):
        if value is not None and not 0 <= value <= 100:
            yield invalid(join(path, name), value, "not in valid range [0-100]")


def _leader_election(value: LeaderElection) -> Iterator[str]:
    path = "leaderElection"
    durations: dict[str, int] = {}
    for name, text in (
        ("leaseDuration", value.lease_duration),
        ("renewDeadline", value.renew_deadline),
        ("retryPeriod", value.retry_period),
    ):
        try:
            durations[name] = parse_duration(text)
        except ValueError as error:
            yield invalid(join(path, name), text, str(error))
    if not value.leader_elect:
        return
    for name, duration_ns in durations.items():
        if duration_ns <= 0:
            yield invalid(join(path, name), _written(value, name), "must be greater than zero")
    if len(durations) == 3:
        yield from _lease_times(path, value, durations)
    if value.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        yield invalid(f"{path}.resourceLock", value.resource_lock, detail)


def _lease_times(path: str, value: LeaderElection, ns: dict[str, int]) -> Iterator[str]:
    """Check the times against each other.

    Notes
    -----
    kube-scheduler reports the second fault only when it runs (client-go v1.36
    ``NewLeaderElector``), and the third not at all: its replicas depose each other.
    """
    if ns["leaseDuration"] <= ns["renewDeadline"]:
        detail = "LeaseDuration must be greater than RenewDeadline"
        yield invalid(f"{path}.leaseDuration", value.lease_duration, detail)
    if ns["renewDeadline"] * 10 <= ns["retryPeriod"] * 12:
        detail = "renewDeadline must be greater than retryPeriod*JitterFactor (1.2)"
        yield invalid(f"{path}.renewDeadline", value.renew_deadline, detail)
    if 0 < ns["leaseDuration"] < NS_PER_SECOND:
        detail = "must be at least 1s, because a Lease counts whole seconds"
        yield invalid(f"{path}.leaseDuration", value.lease_duration, detail)


def _written(value: LeaderElection, name: str) -> str:
    """Return a duration of the leader election as it was written."""
    return {
        "leaseDuration": value.lease_duration,
        "renewDeadline": value.renew_deadline,
        "retryPeriod": value.retry_period,
    }[name]


def _client_connection(value: ClientConnection) -> Iterator[str]:
    if value.burst is not None and value.burst < 0:
        yield invalid("clientConnection.burst", value.burst, "must be non-negative")
    yield from _int32("clientConnection.burst", value.burst)


def _profiles(profiles: list[Profile]) -> Iterator[str]:
    names: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        name = profile.scheduler_name
        if not name:
            yield f"{path}.schedulerName: Required value"
        elif name in names:
            yield f"{path}.schedulerName: Duplicate value: {quoted(name)}"
        names.add(name)
        yield from _percentages(path, profile)
        yield from _plugin_sets(path, profile.plugins)
        yield from _plugin_config(path, profile)


def _plugin_sets(path: str, plugins: Plugins) -> Iterator[str]:
    for point, plugin_set in by_point(plugins):
        where = f"{path}.plugins.{point}"
        for position, ref in enumerate(plugin_set.enabled):
            yield from _int32(f"{where}.enabled[{position}].weight", ref.weight)
            if not ref.name:
                yield f"{where}.enabled[{position}].name: Required value"
            elif point != "multiPoint" and ref.name in _REMOVED_PLUGINS:
                yield invalid(f"{where}.enabled[{position}]", ref.name, _REMOVED)


_REMOVED: Final = (
    f"was invalid in version {quoted(API_VERSION)} "
    f"(KubeSchedulerConfiguration is version {quoted(API_VERSION)})"
)


def by_point(plugins: Plugins) -> Iterator[tuple[str, PluginSet]]:
    """Yield every extension point as the file spells it, with its lists; multiPoint last."""
    for attribute, point in _POINTS:
        yield point, getattr(plugins, attribute) or PluginSet()


_POINTS: Final = tuple(
    zip(Plugins.__struct_fields__, Plugins.__struct_encode_fields__, strict=True)
)


def _plugin_config(path: str, profile: Profile) -> Iterator[str]:
    names: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        where = f"{path}.pluginConfig[{index}]"
        if not entry.name:
            yield f"{where}.name: Required value"
        elif entry.name in names:
            yield f"{where}: Duplicate value: {quoted(entry.name)}"
        elif entry.name in _REMOVED_PLUGINS:
            yield invalid(where, entry.name, _REMOVED)
        names.add(entry.name)


def _queue_sort(profiles: list[Profile]) -> Iterator[str]:
    """All profiles share one queue, so they must agree on its order."""
    if not profiles:
        return
    first = profiles[0]
    enabled = first.plugins.queue_sort.enabled
    if len(enabled) > 1:
        where = "profiles[0].plugins.queueSort.Enabled"
        yield invalid(where, len(enabled), "only one queue sort plugin can be enabled")
    name = enabled[0].name if enabled else ""
    for index, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != first.plugins.queue_sort:
            where = f"profiles[{index}].plugins.queueSort"
            detail = "must be the same for all profiles"
            yield invalid(where, profile.plugins.queue_sort, detail)
        if name and _args_of(profile, name) != _args_of(first, name):
            where = f"profiles[{index}].pluginConfig.args"
            detail = "queueSort must be the same for all profiles"
            yield invalid(where, _args_of(profile, name), detail)


def _args_of(profile: Profile, plugin: str) -> object:
    return next((entry.args for entry in profile.plugin_config if entry.name == plugin), None)


def version_faults(config: KubeSchedulerConfiguration, gates: FeatureGates) -> Iterator[str]:
    """Yield the faults of fields that the emulated version, or moorage, does not have.

    Parameters
    ----------
    config
        As `load` returns it.
    gates
        The feature gates, which have the emulated version.
    """
    if gates.version == V1_36:
        for path in new_fields(config):
            yield f"unknown field {quoted(path)}: {V1_36} does not have it, {V1_37} has"
        return
    if not gates(TOPOLOGY_AWARE):
        for path in new_fields(config):
            if path.endswith(PERCENTAGE):
                yield f"{path}: Forbidden: needs the feature gate {TOPOLOGY_AWARE}"
    for index, profile in enumerate(config.profiles):
        yield from _feasible(f"profiles[{index}].plugins.{FEASIBLE}", profile.plugins)


def _feasible(path: str, plugins: Plugins) -> Iterator[str]:
    """Yield the faults of a point at which only GangScheduling is asked, and always."""
    lists = plugins.placement_feasible or PluginSet()
    for position, ref in enumerate(lists.enabled):
        if ref.name != _GANGS:
            detail = f"only {_GANGS} is asked there; another plugin is {NOT_BUILT}"
            yield f"{path}.enabled[{position}]: Forbidden: {detail}"
    if lists.disabled:
        detail = f"a group without its minimum is {NOT_BUILT}: disable {_GANGS} at multiPoint"
        yield f"{path}.disabled: Forbidden: {detail}"


def new_fields(config: KubeSchedulerConfiguration) -> Iterator[str]:
    """Yield the paths of the fields of 1.37 that a configuration sets, in the order of the file."""
    if config.percentage_of_placements_to_score is not None:
        yield PERCENTAGE
    for index, profile in enumerate(config.profiles):
        for name in _of_profile(profile):
            yield join(f"profiles[{index}]", name)


def _of_profile(profile: Profile) -> Iterator[str]:
    if profile.percentage_of_placements_to_score is not None:
        yield PERCENTAGE
    if profile.plugins.placement_feasible is not None:
        yield f"plugins.{FEASIBLE}"
    if profile.plugins.pod_group_post_filter is not None:
        yield f"plugins.{GROUP_POST_FILTER}"

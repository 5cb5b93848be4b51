"""moorage's own settings: a second document, ``MoorageConfiguration``, next to kube-scheduler's.

`KubeSchedulerConfiguration` stays exactly Kubernetes' own, so that a file can go back and forth;
moorage's own settings are in a second document of the same file. `load` reads both, the scheduler
is given both as one `LoadedConfiguration`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Final, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

import msgspec

from moorage.api.naming import json_name
from moorage.base.errors import ConfigError
from moorage.config.defaults import default_config
from moorage.config.emulation import DEFAULT_VERSION, emulation_faults, version_of
from moorage.config.feature_gates import (
    DEFAULT_GATES,
    FeatureGates,
    feature_gates,
    group_gates,
    parse_feature_gates,
)
from moorage.config.strict import invalid, quoted
from moorage.config.types import KubeSchedulerConfiguration, PluginRef, PluginSet, Profile

OWN_API_VERSION: Final = "moorage.dev/v1alpha1"
OWN_KIND: Final = "MoorageConfiguration"

_ORDERS_MAX: Final = 100
"""A guess: after a few orders almost none is found that fits."""

_COSCHEDULING: Final = "Coscheduling"
_PRIORITY_SORT: Final = "PrioritySort"
_MILLION: Final = 1_000_000

QueueCompat: TypeAlias = Literal["v1.36", "v1.20"]
"""The Kubernetes version of the scheduling queue that is followed."""

GroupMode: TypeAlias = Literal["trial", "permit"]
"""The way in which the pods of a group get their nodes."""


RunTimeKeeping: TypeAlias = Literal["memory", "file", "configMap"]
"""Where learned run times are between two runs of the scheduler."""

_ANSWER_LEAST: Final = 10.0
_ANSWER_MOST: Final = 5000.0


class OwnProfile(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """Settings of a profile that only moorage has; an entry never makes a profile."""

    scheduler_name: str = ""
    """The profile: a name from KubeSchedulerConfiguration, or ``default-scheduler``."""
    group_mode: GroupMode = "trial"
    """trial: the members of a pod group are placed in one attempt, all or none. permit: each is
    placed by itself and waits at Permit until enough of its group have a node."""
    group_orders: int | None = None
    """Other orders in which the members of a group are tried before the group is rejected, 0 to
    100. None: 4 for groups that pods name by labels; 0 for groups of Kubernetes, as in
    kube-scheduler."""
    complete_groups: bool | None = None
    """Whether places for the unlike members of a group are searched completely, after one order did
    not fit. None: where other orders are tried."""
    hold_back_after_seconds: float | None = None
    """Seconds from the first rejected attempt of a pod group until room is held back for the group;
    None holds nothing back. From then on, later work of equal or lower priority starts only where
    it does not delay the group. The scheduler watches Jobs as well."""


class Tracing(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """Traces of attempts, sent to a collector; the fields of Kubernetes' TracingConfiguration.

    Notes
    -----
    kubernetes v1.36 staging/src/k8s.io/component-base/tracing/api/v1/types.go. There spans go out
    over gRPC, here over HTTP, so the usual port is 4318 instead of 4317.
    """

    endpoint: str = ""
    """The collector, as ``HOST:PORT`` or a URL; "" for ``OTEL_EXPORTER_OTLP_ENDPOINT`` of the
    environment, or ``localhost:4318``."""
    sampling_rate_per_million: int | None = None
    """How many of a million attempts are traced; required."""


class StartEstimates(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """Estimates of when waiting pods start, in the answers about them; run times they rest on."""

    learn: bool = False
    """Whether run times are learned from pods that end, by owner, image and requests. Run times
    that pods and Jobs declare count in any case."""
    keep_in: RunTimeKeeping = "memory"
    """Where learned run times are between two runs of the scheduler: memory (they are lost), or
    file. configMap is not built yet."""
    file: str = ""
    """The file of learned run times; required with ``keepIn: file``."""
    answer_milliseconds: float = 150.0
    """Time for the roll-outs of one answer, 10 to 5000. They run in a process next to the
    scheduler. More of it makes an interval steadier."""


class MoorageConfiguration(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """The whole document; a document without any field means the defaults."""

    api_version: str = OWN_API_VERSION
    kind: str = OWN_KIND
    emulated_version: str = DEFAULT_VERSION
    """The version of Kubernetes whose defaults and decisions are followed: 1.36 or 1.37, in quotes;
    ``--emulated-version`` overrides it. The reference of API server versions lists what differs."""
    min_compatibility_version: str = ""
    """The oldest version in the cluster, 1.35 to the emulated one. Some gates are off by default
    for an older one. Empty: the emulated version."""
    queue_compat: QueueCompat = "v1.36"
    """The version whose scheduling queue is played: v1.36 with requeue hints, or the simpler v1.20.
    The reference of this document lists the differences of the older queue."""
    plugin_budget_seconds: float = 1.0
    """Seconds one call of a plugin from outside the package may take; greater than 0."""
    tracing: Tracing | None = None
    """Traces of attempts; None makes none."""
    start_estimates: StartEstimates | None = None
    """Estimates of when waiting pods start; None makes none."""
    profiles: list[OwnProfile] = []
    """Settings of single profiles; a profile without an entry has the defaults."""

    def profile(self, scheduler_name: str) -> OwnProfile:
        """Return the settings of a profile; the defaults where none are given."""
        for profile in self.profiles:
            if profile.scheduler_name == scheduler_name:
                return profile
        return OwnProfile(scheduler_name=scheduler_name)


class LoadedConfiguration(msgspec.Struct, frozen=True):
    """The complete configuration of a scheduler; without arguments, the defaults.

    Parameters
    ----------
    scheduler
        Kubernetes' own part, with defaults filled in.
    own
        moorage's part.
    gates
        The feature gates; set on the command line, not in the file. They have the version that is
        emulated, which the file may name.
    unschedulable_ns_max
        How long a pod waits for an event before it is tried again anyway, nanoseconds; also set on
        the command line. None: the time of the queue version that is followed.
    """

    scheduler: KubeSchedulerConfiguration = msgspec.field(default_factory=default_config)
    own: MoorageConfiguration = MoorageConfiguration()
    gates: FeatureGates = DEFAULT_GATES
    unschedulable_ns_max: int | None = None


def emulating(
    config: LoadedConfiguration, *, version: str = "", oldest: str = "", gates: str = ""
) -> LoadedConfiguration:
    """Return a configuration under the versions and feature gates that flags name.

    Parameters
    ----------
    config
        As read from a file, or the defaults.
    version
        The version to emulate, in any spelling; "" for that of the file.
    oldest
        The minimal compatibility version; "" for that of the file.
    gates
        The gates to switch, as the flag spells them.

    Raises
    ------
    ConfigError
        A version is not supported, or a gate cannot be switched in this version.
    """
    emulated = version or config.own.emulated_version
    compatible = oldest or config.own.min_compatibility_version
    faults = list(
        emulation_faults(
            emulated, compatible, names=("--emulated-version", "--min-compatibility-version")
        )
    )
    if faults:
        raise ConfigError(faults)
    emulated, compatible = version_of(emulated), version_of(compatible)
    return msgspec.structs.replace(
        config,
        own=msgspec.structs.replace(
            config.own, emulated_version=emulated, min_compatibility_version=compatible
        ),
        gates=parse_feature_gates(gates, emulated, compatible),
    )


def with_groups(config: LoadedConfiguration) -> LoadedConfiguration:
    """Return the configuration with pod groups of every form switched on.

    Coscheduling orders the queue of every profile, in place of PrioritySort. Gates that the user
    switched stay as they are.

    Raises
    ------
    ConfigError
        A gate needs another one that the user switched off.
    """
    profiles = [_with_coscheduling(each) for each in config.scheduler.profiles]
    gates, version = config.gates, config.gates.version
    return msgspec.structs.replace(
        config,
        scheduler=msgspec.structs.replace(config.scheduler, profiles=profiles),
        gates=feature_gates(
            {**group_gates(version), **gates.switched}, version, gates.min_compatibility
        ),
    )


def _with_coscheduling(profile: Profile) -> Profile:
    plugins = profile.plugins
    both = plugins.multi_point
    named = {each.name for each in (*both.enabled, *both.disabled, *plugins.permit.enabled)}
    if _COSCHEDULING in named:
        return profile
    multi_point = PluginSet(
        enabled=[*both.enabled, PluginRef(name=_COSCHEDULING)],
        disabled=[*both.disabled, PluginRef(name=_PRIORITY_SORT)],
    )
    plugins = msgspec.structs.replace(plugins, multi_point=multi_point)
    return msgspec.structs.replace(profile, plugins=plugins)


def own_faults(
    config: MoorageConfiguration, scheduler_names: Collection[str], *, extenders: bool = False
) -> list[str]:
    """Return every fault of a document that was read, as Kubernetes field errors.

    Parameters
    ----------
    config
        The document.
    scheduler_names
        The profiles there are.
    extenders
        Whether profiles have HTTP extenders.
    """
    return [
        *emulation_faults(config.emulated_version, config.min_compatibility_version),
        *_budget(config),
        *_tracing(config.tracing),
        *_start_estimates(config.start_estimates),
        *_profiles(config, scheduler_names),
        *_holding(config, extenders=extenders),
    ]


def _budget(config: MoorageConfiguration) -> Iterator[str]:
    seconds = config.plugin_budget_seconds
    if not (seconds > 0 and math.isfinite(seconds)):
        yield invalid("pluginBudgetSeconds", seconds, "must be a number greater than 0")


def _tracing(tracing: Tracing | None) -> Iterator[str]:
    if tracing is None:
        return
    rate = tracing.sampling_rate_per_million
    if rate is None:
        yield "tracing.samplingRatePerMillion: Required value: 1000000 traces every attempt"
    elif not 0 <= rate <= _MILLION:
        yield invalid("tracing.samplingRatePerMillion", rate, f"must be from 0 to {_MILLION}")
    endpoint = tracing.endpoint
    if endpoint and (fault := _endpoint_fault(endpoint)):
        yield f"tracing.endpoint: Invalid value: {fault}"


def _start_estimates(estimates: StartEstimates | None) -> Iterator[str]:
    if estimates is None:
        return
    path, keep_in = "startEstimates", estimates.keep_in
    if keep_in == "configMap":
        text = "is not built yet: use file, on a volume that outlives the pod"
        yield invalid(f"{path}.keepIn", keep_in, text)
    if keep_in == "file" and not estimates.file:
        yield f"{path}.file: Required value: with keepIn file"
    if keep_in != "file" and estimates.file:
        yield invalid(f"{path}.file", estimates.file, "needs keepIn file")
    if keep_in != "memory" and not estimates.learn:
        yield invalid(f"{path}.keepIn", keep_in, "needs learn true: nothing is learned")
    milliseconds = estimates.answer_milliseconds
    if not _ANSWER_LEAST <= milliseconds <= _ANSWER_MOST:  # false for NaN
        text = f"must be from {_ANSWER_LEAST:.0f} to {_ANSWER_MOST:.0f}"
        yield invalid(f"{path}.answerMilliseconds", milliseconds, text)


def endpoint_parts(endpoint: str) -> SplitResult:
    """Return the parts of an endpoint of spans: ``HOST:PORT``, or a URL of http or https."""
    return urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")


def _endpoint_fault(endpoint: str) -> str:
    """Return why an endpoint cannot be used, without quoting a password; "" where it can."""
    parts = endpoint_parts(endpoint)
    if "@" in parts.netloc:
        return "no user or password: set OTEL_EXPORTER_OTLP_HEADERS in the environment"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        return f"{quoted(endpoint)}: must be HOST:PORT, or a URL of http or https"
    return ""


def _profiles(config: MoorageConfiguration, scheduler_names: Collection[str]) -> Iterator[str]:
    names: set[str] = set()
    for index, profile in enumerate(config.profiles):
        path = f"profiles[{index}]"
        name = profile.scheduler_name
        if not name:
            yield f"{path}.schedulerName: Required value"
        elif name in names:
            yield f"{path}.schedulerName: Duplicate value: {quoted(name)}"
        elif name not in scheduler_names:
            known = ", ".join(map(quoted, scheduler_names))
            yield f"{path}.schedulerName: Not found: {quoted(name)}: the profiles are {known}"
        names.add(name)
        orders = profile.group_orders
        if orders is not None and not 0 <= orders <= _ORDERS_MAX:
            text = f"must be from 0 to {_ORDERS_MAX}"
            yield invalid(f"{path}.groupOrders", orders, text)


def _holding(config: MoorageConfiguration, *, extenders: bool) -> Iterator[str]:
    for index, profile in enumerate(config.profiles):
        seconds, path = profile.hold_back_after_seconds, f"profiles[{index}].holdBackAfterSeconds"
        if seconds is None:
            continue
        if not (seconds >= 0 and math.isfinite(seconds)):
            yield invalid(path, seconds, "must be a number of at least 0")
        if profile.group_mode == "permit":
            yield invalid(path, seconds, "needs groupMode trial: members at Permit hold room")
        if extenders:
            yield invalid(path, seconds, "cannot be combined with extenders")

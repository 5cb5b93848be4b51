"""Default plugin lists, and the values of settings left unset; runs after reading, before checks.

Source: kubernetes v1.36 ``pkg/scheduler/apis/config/v1/default_plugins.go`` and ``defaults.go``,
and the plugins that feature gates add.
"""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec

from moorage.api.schedules.durations import parse_duration
from moorage.config.feature_gates import DEFAULT_GATES, FeatureGates
from moorage.config.gate_table import GANG_SCHEDULING, NODE_DECLARED_FEATURES, TOPOLOGY_AWARE
from moorage.config.types import (
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginRef,
    Profile,
)

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

DEFAULT_MULTI_POINT: Final[tuple[PluginRef, ...]] = (
    PluginRef(name="SchedulingGates"),
    PluginRef(name="PrioritySort"),
    PluginRef(name="NodeUnschedulable"),
    PluginRef(name="NodeName"),
    PluginRef(name="TaintToleration", weight=3),
    PluginRef(name="NodeAffinity", weight=2),
    PluginRef(name="NodePorts"),
    PluginRef(name="NodeResourcesFit", weight=1),
    PluginRef(name="VolumeRestrictions"),
    PluginRef(name="NodeVolumeLimits"),
    PluginRef(name="VolumeBinding"),
    PluginRef(name="VolumeZone"),
    PluginRef(name="PodTopologySpread", weight=2),
    PluginRef(name="InterPodAffinity", weight=2),
    PluginRef(name="DynamicResources", weight=2),
    PluginRef(name="DefaultPreemption"),
    PluginRef(name="NodeResourcesBalancedAllocation", weight=1),
    PluginRef(name="ImageLocality", weight=1),
    PluginRef(name="DefaultBinder"),
    PluginRef(name="NodeDeclaredFeatures"),  # left out without the gate of that name
)
"""Only multiPoint has defaults; every point gets its plugins by expansion."""

_BY_GATE: Final[tuple[tuple[str, tuple[PluginRef, ...]], ...]] = (
    (GANG_SCHEDULING, (PluginRef(name="GangScheduling"),)),
    (
        TOPOLOGY_AWARE,
        (
            PluginRef(name="TopologyPlacementGenerator"),
            PluginRef(name="PodGroupPodsCount", weight=1),
        ),
    ),
)
"""The plugins that alpha gates add at the end, in order."""


def default_multi_point(gates: FeatureGates = DEFAULT_GATES) -> tuple[PluginRef, ...]:
    """Return the default plugins with these gates."""
    defaults = [
        ref
        for ref in DEFAULT_MULTI_POINT
        if ref.name != NODE_DECLARED_FEATURES or gates(NODE_DECLARED_FEATURES)
    ]
    added = [ref for gate, refs in _BY_GATE if gates(gate) for ref in refs]
    return (*defaults, *added)


def with_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Return the configuration with every unset setting at its default.

    Notes
    -----
    Knowing departure from kubernetes v1.36: ``percentageOfNodesToScore`` unset stays None, which
    means every node.
    """
    profiles = config.profiles or [Profile()]
    if len(profiles) == 1 and not profiles[0].scheduler_name:
        profiles = [msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME)]
    contention = config.enable_contention_profiling
    return msgspec.structs.replace(
        config,
        profiles=profiles,
        leader_election=_elected(config.leader_election),
        enable_contention_profiling=(config.enable_profiling if contention is None else contention),
    )


def _elected(value: LeaderElection) -> LeaderElection:
    """Return leader election with durations of zero and empty names at their defaults.

    Notes
    -----
    Mirrors kubernetes v1.36 ``staging/src/k8s.io/component-base/config/v1alpha1/defaults.go``
    ``RecommendedDefaultLeaderElectionConfiguration``.
    """
    default = LeaderElection()
    unset = {
        field: getattr(default, field)
        for field in LeaderElection.__struct_fields__
        if field.startswith("resource_") and not getattr(value, field)
    }
    for field in ("lease_duration", "renew_deadline", "retry_period"):
        with contextlib.suppress(ValueError):  # a fault of validation
            if parse_duration(getattr(value, field)) == 0:
                unset[field] = getattr(default, field)
    return msgspec.structs.replace(value, **unset)


def default_config() -> KubeSchedulerConfiguration:
    """Return the configuration of a scheduler started without a file."""
    return with_defaults(KubeSchedulerConfiguration())

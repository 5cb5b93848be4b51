"""Whether a recorded case can be run: what it needs that moorage does not have yet.

Second stop of the conformance runner. The test is by need, not by family: a mode, a feature gate,
a kind of object, or a plugin that only guards so far. When a plugin is built (its registry entry
says so and it leaves `plugins.unbuilt`), the cases open up; when a mode is built, it joins
`BUILT_MODES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from moorage.api.pod import Pod
from moorage.base.errors import ConfigError
from moorage.config.feature_gates import feature_gates
from moorage.config.merge import ProfileSpec
from moorage.framework.registry import Registry
from moorage.plugins.node_resources_fit import IMPLICIT_CLASS_PREFIX
from moorage.plugins.unbuilt import NEEDED_BY, unbuilt_needs
from moorage.testing.conformance_format import Scenario

BUILT_MODES: Final = frozenset(
    {"evaluate", "sequence", "preempt", "sequence-sampled", "hint", "extender", "podgroup"}
)

UNCOMPARED: Final[Mapping[str, str]] = {
    "event": "DefaultPreemption",
    "preemption": "DefaultPreemption",
    "allocations": "DynamicResources",
    "allocation": "DynamicResources",
}
"""Fields of a recording that come from one plugin: not compared while that plugin is not built."""


def uncompared_fields(registry: Registry) -> frozenset[str]:
    """Return the fields not compared because the plugin they come from is not built."""
    return frozenset(field for field, name in UNCOMPARED.items() if not is_built(registry, name))


def is_built(registry: Registry, plugin: str) -> bool:
    """Whether a plugin is there as a whole: no guard, and nothing left that it cannot judge."""
    entry = registry.find(plugin)
    return entry is not None and entry.built and plugin not in NEEDED_BY


def unbuilt_plugins(registry: Registry) -> frozenset[str]:
    """Return the plugins of which not everything is built."""
    return frozenset(entry.name for entry in registry if not is_built(registry, entry.name))


def mode_needs(scenario: Scenario) -> list[str]:
    """Return what a scenario needs that no plugin can change: its mode and feature gates."""
    needs = []
    if scenario.mode not in BUILT_MODES:
        needs.append(f"mode {scenario.mode}")
    try:
        feature_gates(scenario.feature_gates)
    except ConfigError:
        needs += [f"feature gate {gate}" for gate in sorted(scenario.feature_gates)]
    return needs


def plugin_needs(
    scenario: Scenario, specs: Mapping[str, ProfileSpec], registry: Registry
) -> list[str]:
    """Return the plugins not built that would have a say in a scenario, sorted.

    Parameters
    ----------
    scenario
        The case.
    specs
        Its profiles by scheduler name.
    registry
        Tells which plugins only guard.
    """
    if scenario.mode == "hint":  # plugins are asked one by one, so each is left out by itself
        return [name for name in _hint_needs(scenario) if not is_built(registry, name)]
    missing = set()
    by_cluster = set(_cluster_needs(scenario))
    for pod in scenario.pending:
        spec = specs.get(pod.spec.scheduler_name)
        if spec is None or not _is_evaluated(pod):
            continue
        needs = set(by_cluster)
        needs.update(unbuilt_needs(pod))
        missing |= {name for name in needs if _enabled(spec, name) and not is_built(registry, name)}
    return sorted(missing)


def _is_evaluated(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and not pod.spec.scheduling_gates


def _enabled(spec: ProfileSpec, plugin: str) -> bool:
    return any(plugin in names for names in spec.points.values())


def _cluster_needs(scenario: Scenario) -> Iterator[str]:
    """Plugins whose answer about any pod depends on what else is there."""
    objects = scenario.objects
    if objects.device_classes or objects.resource_claims or objects.resource_slices:
        yield "DynamicResources"
    if objects.pod_groups:
        yield "GangScheduling"


def _hint_needs(scenario: Scenario) -> Iterator[str]:
    """Plugins that change what another one answers about an event."""
    classes = {one["spec"].get("extendedResourceName") for one in scenario.objects.device_classes}
    asks_for_devices = any(
        name in classes or name.startswith(IMPLICIT_CLASS_PREFIX)
        for pod in scenario.pending
        for container in pod.spec.containers
        for name in container.resources.requests
    )
    if asks_for_devices and any(event.resource == "Node" for event in scenario.events):
        yield "DynamicResources"

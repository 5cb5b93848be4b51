"""Whether a recorded case can be run: what it needs that moorage does not have yet.

Second stop of the conformance runner. The test is by need, not by family: a mode, a feature gate,
a kind of object, or a plugin that only guards so far. When a plugin is built (its registry entry
says so and it leaves `plugins.unbuilt`), the cases open up; when a mode is built, it joins
`BUILT_MODES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from moorage.api.pod import Pod
from moorage.config.merge import ProfileSpec
from moorage.config.plugin_args import PodTopologySpreadArgs
from moorage.framework.registry import Registry
from moorage.plugins.unbuilt import NEEDED_BY, unbuilt_needs
from moorage.testing.conformance_format import RecordedObjects, Scenario

BUILT_MODES: Final = frozenset({"evaluate", "sequence", "preempt"})

UNCOMPARED: Final[Mapping[str, str]] = {
    "event": "DefaultPreemption",
    "preemption": "DefaultPreemption",
    "allocations": "DynamicResources",
    "allocation": "DynamicResources",
}
"""Fields of a recording that come from one plugin: not compared while that plugin is not built."""

_OWNERS: Final = {
    ("v1", "ReplicationController"): lambda objects: objects.replication_controllers,
    ("apps/v1", "ReplicaSet"): lambda objects: objects.replica_sets,
    ("apps/v1", "StatefulSet"): lambda objects: objects.stateful_sets,
}


def uncompared_fields(registry: Registry) -> frozenset[str]:
    """Return the fields not compared because the plugin they come from is not built."""
    return frozenset(field for field, name in UNCOMPARED.items() if not is_built(registry, name))


def is_built(registry: Registry, plugin: str) -> bool:
    """Whether a plugin is there as a whole: no guard, and nothing left that it cannot judge."""
    entry = registry.find(plugin)
    return entry is not None and entry.built and plugin not in NEEDED_BY


def mode_needs(scenario: Scenario) -> list[str]:
    """Return what a scenario needs that no plugin can change: its mode and feature gates."""
    needs = []
    if scenario.mode not in BUILT_MODES:
        needs.append(f"mode {scenario.mode}")
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
    missing = set()
    objects = scenario.objects
    by_cluster = set(_cluster_needs(scenario))
    for pod in scenario.pending:
        spec = specs.get(pod.spec.scheduler_name)
        if spec is None or not _is_evaluated(pod):
            continue
        needs = set(by_cluster)
        needs.update(unbuilt_needs(pod))
        if _has_default_spread(pod, objects, spec):
            needs.add("PodTopologySpread")
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


def _has_default_spread(pod: Pod, objects: RecordedObjects, spec: ProfileSpec) -> bool:
    """Whether default constraints apply: a service or an owner gives the pod a selector."""
    args = spec.plugin_args.get("PodTopologySpread")
    if pod.spec.topology_spread_constraints or not isinstance(args, PodTopologySpreadArgs):
        return False
    if args.defaulting_type == "List" and not args.default_constraints:
        return False
    return _is_served(pod, objects) or _is_owned(pod, objects)


def _is_served(pod: Pod, objects: RecordedObjects) -> bool:
    labels = pod.metadata.labels
    return any(
        service.metadata.namespace == pod.metadata.namespace
        and service.spec.selector
        and service.spec.selector.items() <= labels.items()
        for service in objects.services
    )


def _is_owned(pod: Pod, objects: RecordedObjects) -> bool:
    for owner in pod.metadata.owner_references:
        find: Callable[[RecordedObjects], Iterable[object]] | None = _OWNERS.get(
            (owner.api_version, owner.kind)
        )
        if owner.controller and find is not None and _exists(owner.name, pod, find(objects)):
            return True
    return False


def _exists(name: str, pod: Pod, owners: Iterable[object]) -> bool:
    return any(
        owner.metadata.name == name and owner.metadata.namespace == pod.metadata.namespace  # type: ignore[attr-defined]
        for owner in owners
    )

"""The scheduling queue of a configuration: the plugins it asks, the Kubernetes version it follows.

The queue itself (`moorage.state.queue`) knows no plugin. Here the QueueSort, PreEnqueue and hint
functions of the profiles become the callables that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.workloads import Namespace
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.config.own import LoadedConfiguration, QueueCompat
from moorage.framework.meter import Meter
from moorage.framework.points import PreEnqueuePlugin
from moorage.framework.profile import Profile
from moorage.framework.roles import Role
from moorage.framework.status import SUCCESS
from moorage.observe.plugin_facts import PluginFacts
from moorage.observe.queue_facts import QueueFacts
from moorage.service.intake.hint_map import build_hints
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import GroupKey, PodGroups
from moorage.snapshot.snapshot import Snapshot
from moorage.state.activations import Activations
from moorage.state.companions import GroupOf
from moorage.state.contracts import (
    HintMap,
    PreEnqueueFn,
    PreEnqueueMap,
    QueueSettings,
    SortKey,
)
from moorage.state.lifecycle import Lifecycle
from moorage.state.nominations import Nominator
from moorage.state.queue import SchedulingQueue
from moorage.state.queue_version import V1_36, QueueVersion, v1_20
from moorage.state.queued_pod import QueuedPod

# One PreEnqueue call in ten is timed: timing every call would cost more than most calls take.
_TIMED_EVERY: Final = 10


def build_queue(
    config: LoadedConfiguration,
    profiles: Mapping[str, Profile],
    *,
    clock: Clock,
    nominator: Nominator,
    activations: Activations,
    snapshot: Snapshot,
    facts: QueueFacts,
    on_wake: Callable[[], None] | None,
) -> SchedulingQueue:
    """Return the empty queue that all profiles share.

    Parameters
    ----------
    config
        Chooses the version and the times.
    profiles
        The profiles whose plugins are asked; the QueueSort of the first profile orders the queue.
    clock
        Source of the current time.
    nominator
        The nominations, which the snapshot reads as well.
    activations
        The pods that plugins want tried again.
    snapshot
        Tells the group of a pod, and the namespaces' labels for the queue of v1.20.
    facts
        Counts for the metrics.
    on_wake
        Called when there may be a pod to try; None where no pump waits for one.
    """
    version = _version(config.own.queue_compat, snapshot.listers.namespaces)
    return SchedulingQueue(
        clock=clock,
        sort_key=_sort_key(next(iter(profiles.values()))),
        pre_enqueue=pre_enqueue_of(profiles, facts.plugins),
        hints=hints_of(profiles),
        nominator=nominator,
        activations=activations,
        version=version,
        settings=_settings(config, version),
        observer=facts,
        lifecycle=Lifecycle(clock),
        on_wake=on_wake,
        group_of=_tried_together(profiles, snapshot.groups),
    )


def pre_enqueue_of(profiles: Mapping[str, Profile], facts: PluginFacts) -> PreEnqueueMap:
    """Return the PreEnqueue plugins of each profile, as the queue asks them."""
    return {name: _pre_enqueue(profile, facts) for name, profile in profiles.items()}


def hints_of(profiles: Mapping[str, Profile]) -> HintMap:
    """Return the requeue hints of each profile, as the queue asks them."""
    return {name: build_hints(profile) for name, profile in profiles.items()}


def _tried_together(profiles: Mapping[str, Profile], groups: PodGroups) -> GroupOf:
    """Return what is equal for pods of one group that are tried in one attempt.

    The profiles are looked up at each call: a reload may add some.
    """

    def group_of(pod: Pod) -> tuple[str, GroupKey] | None:
        name = pod.spec.scheduler_name
        profile = profiles.get(name)
        if profile is None or profile.handle.group_mode == "permit":
            return None
        key = groups.key_of(pod)
        return None if key is None else (name, key)

    return group_of


def _settings(config: LoadedConfiguration, version: QueueVersion) -> QueueSettings:
    scheduler, unschedulable_ns = config.scheduler, config.unschedulable_ns_max
    if unschedulable_ns is None:
        unschedulable_ns = version.settings.unschedulable_max_ns
    return msgspec.structs.replace(
        version.settings,
        backoff_initial_ns=scheduler.pod_initial_backoff_seconds * NS_PER_SECOND,
        backoff_max_ns=scheduler.pod_max_backoff_seconds * NS_PER_SECOND,
        unschedulable_max_ns=unschedulable_ns,
    )


def _version(name: QueueCompat, namespaces: Lister[Namespace]) -> QueueVersion:
    """Return the parts of the queue of the configured Kubernetes version."""

    def labels(namespace: str) -> Mapping[str, str]:
        found = namespaces.get(namespace)
        return {} if found is None else found.metadata.labels

    by_name = {"v1.36": V1_36, "v1.20": v1_20(labels)}
    return by_name[name]


def _sort_key(profile: Profile) -> SortKey:
    plugin = profile.queue_sort

    def key(queued: QueuedPod) -> tuple[object, ...]:
        return plugin.sort_key(queued.priority, queued.timestamp_ns, queued.pod)

    def key_by_first_attempt(queued: QueuedPod) -> tuple[object, ...]:
        first_ns = queued.initial_attempt_ns or queued.timestamp_ns
        return plugin.sort_key(queued.priority, first_ns, queued.pod)

    first = Role.SORTS_BY_FIRST_ATTEMPT in profile.roles[plugin.name]
    return key_by_first_attempt if first else key


def _pre_enqueue(profile: Profile, facts: PluginFacts) -> list[tuple[str, PreEnqueueFn]]:
    meter = facts.meter(profile.name)
    return [(plugin.name, _gate(plugin, meter)) for plugin in profile.pre_enqueue]


def _gate(plugin: PreEnqueuePlugin, meter: Meter) -> PreEnqueueFn:
    calls = 0

    def gate(pod: Pod) -> tuple[str, tuple[str, ...]] | None:
        nonlocal calls
        calls += 1
        if calls % _TIMED_EVERY:
            status = plugin.pre_enqueue(pod)  # the queue contains its exceptions, as those of hints
            if status is SUCCESS:
                return None
        else:
            began_ns = meter.meter_ns()
            status = plugin.pre_enqueue(pod)
            meter.took(plugin.name, "PreEnqueue", status.code, since_ns=began_ns)
        return None if status.ok else (status.code.text, status.reasons)

    return gate

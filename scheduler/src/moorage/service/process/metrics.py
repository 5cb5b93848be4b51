"""The sources of the numbers of `moorage.observe.catalogue` in a running scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, Literal

from moorage.base.version import __version__
from moorage.config.emulation import minor_of
from moorage.config.feature_gates import FeatureGates
from moorage.config.gate_table import V1_36, V1_37, Gate, gates_of_version
from moorage.framework.containment import Containment
from moorage.framework.plugin_metrics import Labels, PluginMetrics
from moorage.framework.profile import Profile
from moorage.observe.access import AccessFacts
from moorage.observe.attempts import AttemptFacts
from moorage.observe.calls import CallFacts
from moorage.observe.catalogue import BUCKETS, METRICS
from moorage.observe.event_names import event_names
from moorage.observe.exposition import Exposition, Sample, Source
from moorage.observe.group_attempts import GroupAttemptFacts
from moorage.observe.plugin_facts import EVALUATED
from moorage.observe.queue_facts import QueueFacts
from moorage.observe.records.recorder import Recorder
from moorage.observe.records.ring import RecordRing
from moorage.observe.series import Histogram, Histograms
from moorage.service.scheduler import Scheduler
from moorage.state.lifecycle import PodState

_S = "scheduler_"
PLAYED: Final = {V1_36: "v1.36.2", V1_37: "v1.37.0"}
"""The kube-scheduler release that moorage plays, by emulated version, as metrics report it."""


def exposition_of(
    scheduler: Scheduler,
    *,
    calls: CallFacts,
    access: AccessFacts,
    containment: Containment,
    gates: FeatureGates,
    disabled: Collection[str] = (),
) -> Exposition:
    """Return the metrics of a scheduler; numbers are read at each request.

    Parameters
    ----------
    calls
        The reports of the scheduler's transport.
    access
        The numbers about callers of the secure port.
    containment
        The failures of plugins from outside.
    gates
        The feature gates in force.
    disabled
        Names of metrics to leave out.
    """
    attempts, core = scheduler.facts.attempts, scheduler.core
    sources: dict[str, Source] = {
        f"{_S}schedule_attempts_total": attempts.results.items,
        f"{_S}scheduling_attempt_duration_seconds": attempts.durations.items,
        f"{_S}scheduling_algorithm_duration_seconds": lambda: [((), attempts.algorithm)],
        f"{_S}pod_scheduling_attempts": lambda: [((), attempts.attempts)],
        f"{_S}pod_scheduling_sli_duration_seconds": lambda: _one_label(attempts.sli.items()),
        f"{_S}pod_scheduled_after_flush_total": lambda: [((), 0.0)],
        **_queue_sources(core.queue_facts, core.queue.lifecycle.state, gates.version),
        **_plugin_sources(scheduler, gates.version),
        f"{_S}preemption_victims": lambda: [((), attempts.victims)],
        f"{_S}preemption_goroutines_duration_seconds": lambda: _one_label(
            core.evictions.durations.items()
        ),
        f"{_S}preemption_goroutines_execution_total": lambda: _one_label(
            (result, float(histogram.count))
            for result, histogram in core.evictions.durations.items()
        ),
        f"{_S}preemption_execution_duration_seconds": core.evictions.executions.items,
        f"{_S}cache_size": lambda: _cache_size(scheduler),
        f"{_S}goroutines": lambda: [(("binding",), float(scheduler.bindings))],
        "leader_election_master_status": lambda: _of_elector(scheduler, "leading"),
        "leader_election_slowpath_total": lambda: _of_elector(scheduler, "slow_paths"),
        **_call_sources(calls),
        **_access_sources(access),
        **_group_sources(scheduler.facts.group_attempts),
        "moorage_event_loop_stall_seconds": lambda: [((), scheduler.facts.loop_stalls)],
        **sources_of_plugins(core.profiles.values()),
        "kubernetes_build_info": lambda: [(_build_of(gates.version), 1.0)],
        "kubernetes_feature_enabled": lambda: [
            ((gate.name, _stage(gate, gates.version)), float(gates(gate.name)))
            for gate in gates_of_version(gates.version)
        ],
        "moorage_failed_attempts_total": attempts.failures.items,
        **_slow_decision_sources(attempts),
        "moorage_plugin_failures_total": containment.failures.items,
        "moorage_pod_groups_waiting": lambda: [((), float(len(_group_waits(scheduler))))],
        "moorage_pod_group_longest_wait_seconds": lambda: [
            ((), max(_group_waits(scheduler), default=0.0))
        ],
        "moorage_configuration_reloads_total": lambda: _one_label(
            (result, float(count)) for result, count in scheduler.facts.reloads.items()
        ),
        "moorage_events_lost_total": lambda: _one_label(
            (reason, float(count)) for reason, count in scheduler.parts.recorder.lost.items()
        ),
        **_record_sources(core.recorder),
        "moorage_build_info": lambda: [((__version__,), 1.0)],
    }
    return Exposition(sources, disabled=[*disabled, *_absent(gates)])


def _build_of(version: str) -> tuple[str, ...]:
    return (*version.split("."), PLAYED[version])


def _absent(gates: FeatureGates) -> list[str]:
    """Return the names of the metrics that kube-scheduler of this version does not declare."""
    minor = minor_of(gates.version)
    return [
        metric.name
        for metric in METRICS
        if (metric.gate and not gates(metric.gate))
        or (metric.since and minor < minor_of(metric.since))
    ]


def _stage(gate: Gate, version: str) -> str:
    """Return the stage of a gate as kube-scheduler's metric has it."""
    stage = gate.states[version].stage
    return "" if stage == "GA" else stage


def _queue_sources(
    queue: QueueFacts, state_of: Callable[[str], PodState], version: str
) -> dict[str, Source]:
    name = event_names(version)
    return {
        f"{_S}pending_pods": lambda: _one_label(queue.pods_by_queue(state_of).items()),
        f"{_S}queued_entities": lambda: queue.queued_entities(state_of).items(),
        f"{_S}queue_incoming_entities_total": lambda: [
            ((sub_queue, name(event), type_), float(count))
            for (sub_queue, event, type_), count in queue.incoming_entities()
        ],
        f"{_S}queue_incoming_pods_total": lambda: [
            ((sub_queue, name(event)), float(count))
            for (sub_queue, event), count in queue.incoming_pods.items()
        ],
        f"{_S}unschedulable_pods": queue.rejected_pods.items,
        f"{_S}inflight_events": lambda: _one_label(
            (name(event), float(count)) for event, count in queue.events_in_flight.items()
        ),
        f"{_S}queueing_hint_execution_duration_seconds": lambda: [
            ((plugin, name(event), answer), durations)
            for (plugin, event, answer), durations in queue.hints.items()
        ],
    }


def _plugin_sources(scheduler: Scheduler, version: str) -> dict[str, Source]:
    plugins, facts = scheduler.core.plugin_facts, scheduler.facts
    name = event_names(version)
    return {
        f"{_S}event_handling_duration_seconds": lambda: _one_label(
            (name(event), durations) for event, durations in facts.events.durations.items()
        ),
        f"{_S}plugin_execution_duration_seconds": plugins.executions.items,
        f"{_S}plugin_evaluation_total": lambda: [
            item for item in plugins.calls.items() if item[0][1] in EVALUATED
        ],
        f"{_S}preemption_attempts_total": lambda: [((), float(_preemption_attempts(scheduler)))],
        f"{_S}framework_extension_point_duration_seconds": lambda: [
            *plugins.durations.items(),
            *facts.points.durations.items(),
        ],
        f"{_S}permit_wait_duration_seconds": facts.points.waits.items,
    }


def _slow_decision_sources(attempts: AttemptFacts) -> dict[str, Source]:
    return {
        "moorage_slow_decisions_total": lambda: [((), float(attempts.slow_decisions))],
        "moorage_latest_slow_decision_seconds": lambda: (
            [] if (latest := attempts.latest_slow_decision) is None else [(latest[:1], latest[1])]
        ),
    }


def _call_sources(calls: CallFacts) -> dict[str, Source]:
    def by_verb(histograms: Mapping[str, Histogram]) -> Source:
        return lambda: [((verb, calls.host), told) for verb, told in histograms.items()]

    return {
        "rest_client_requests_total": lambda: [
            ((code, method, calls.host), float(count))
            for (code, method), count in calls.answers.items()
        ],
        "rest_client_request_duration_seconds": by_verb(calls.durations),
        "rest_client_rate_limiter_duration_seconds": by_verb(calls.waits),
        "rest_client_request_retries_total": lambda: [
            ((code, method, calls.host), float(count))
            for (code, method), count in calls.retries.items()
        ],
        "rest_client_request_size_bytes": by_verb(calls.sent),
        "rest_client_response_size_bytes": by_verb(calls.received),
    }


def _access_sources(access: AccessFacts) -> dict[str, Source]:
    sources: dict[str, Source] = {
        "authentication_token_cache_request_total": _labelled(access.token_cache),
        "authentication_token_cache_fetch_total": _labelled(access.token_fetches),
        "authentication_duration_seconds": _labelled(access.authentications),
        "authorization_attempts_total": lambda: _one_label(
            (result, float(told.count)) for result, told in access.authorizations.items()
        ),
        "authorization_duration_seconds": _labelled(access.authorizations),
    }
    for name, reviews in (("authn", access.token_reviews), ("authz", access.access_reviews)):
        sources[f"apiserver_delegated_{name}_request_total"] = _labelled(reviews.answers)
        sources[f"apiserver_delegated_{name}_request_duration_seconds"] = _labelled(
            reviews.durations
        )
    return sources


def _labelled(numbers: Mapping[str, float | Histogram]) -> Source:
    return lambda: _one_label(numbers.items())


def _group_sources(groups: GroupAttemptFacts) -> dict[str, Source]:
    return {
        f"{_S}podgroup_schedule_attempts_total": groups.results.items,
        f"{_S}podgroup_scheduling_attempt_duration_seconds": groups.durations.items,
        f"{_S}podgroup_scheduling_algorithm_duration_seconds": lambda: [((), groups.algorithm)],
    }


def _record_sources(recorder: Recorder | None) -> dict[str, Source]:
    """Return the numbers of records; without samples where none are kept."""

    def of(number: Callable[[RecordRing], int]) -> Source:
        return lambda: [] if recorder is None else [((), float(number(recorder.ring)))]

    traces = None if recorder is None else recorder.traces
    return {
        "moorage_trace_spans_total": lambda: _one_label(
            (result, float(count)) for result, count in (traces.counts() if traces else {}).items()
        ),
        "moorage_attempt_records": of(len),
        "moorage_attempt_records_bytes": of(lambda ring: ring.nbytes),
        "moorage_attempt_records_dropped_total": of(lambda ring: ring.dropped),
    }


def sources_of_plugins(profiles: Collection[Profile]) -> dict[str, Source]:
    """Return the metrics that plugins keep themselves, by their capability `own_metrics`.

    The plugins are looked up for each sample, because a reload may replace them.
    """

    def own_metrics() -> list[PluginMetrics]:
        return [
            found.own_metrics
            for profile in profiles
            for found in profile.capabilities.values()
            if found.own_metrics is not None
        ]

    counters = {
        name: _counter(name, own_metrics) for each in own_metrics() for name in each.counters
    }
    histograms = {
        name: _histogram(name, own_metrics) for each in own_metrics() for name in each.observations
    }
    return {**counters, **histograms}


def _counter(name: str, metrics_of_plugins: Callable[[], list[PluginMetrics]]) -> Source:
    def samples() -> Iterable[Sample]:
        total: Counter[Labels] = Counter()
        for each in metrics_of_plugins():
            total.update(each.counters.get(name, {}))
        return total.items()

    return samples


def _histogram(name: str, metrics_of_plugins: Callable[[], list[PluginMetrics]]) -> Source:
    histograms: Histograms[Labels] = Histograms(BUCKETS[name])

    def samples() -> Iterable[Sample]:
        for each in metrics_of_plugins():
            observed = each.observations.get(name)
            while observed:
                labels, value = observed.popleft()
                histograms[labels].observe(value)
        return histograms.items()

    return samples


def _one_label(items: Iterable[tuple[str, float | Histogram]]) -> Iterator[Sample]:
    for label, value in items:
        yield (label,), value


def _preemption_attempts(scheduler: Scheduler) -> int:
    """Return how often a plugin that preempts was asked, whatever the profile."""
    core = scheduler.core
    names = {name for profile in core.profiles.values() for name in profile.preempting}
    return sum(core.plugin_facts.called_at(name, "PostFilter") for name in sorted(names))


def _cache_size(scheduler: Scheduler) -> Iterator[Sample]:
    counts = scheduler.core.cache.counts()
    yield ("assumed_pods",), float(counts.assumed_pods)
    yield ("nodes",), float(counts.nodes)
    yield ("pods",), float(counts.pods)


def _group_waits(scheduler: Scheduler) -> list[float]:
    return scheduler.facts.groups.waits(scheduler.core.snapshot.groups.all_groups().keys())


def _of_elector(scheduler: Scheduler, fact: Literal["leading", "slow_paths"]) -> Iterator[Sample]:
    elector = scheduler.elector
    if elector is not None:
        yield (elector.lease_name,), float(getattr(elector, fact))

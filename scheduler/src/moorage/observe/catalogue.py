"""Every metric by name, type, labels and buckets, for the program, its page and its tests.

Source: kubernetes v1.36 ``pkg/scheduler/metrics``, client-go and component-base; names, labels and
buckets are Kubernetes' own, because dashboards depend on them. The help texts are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from moorage.config.gate_table import V1_37
from moorage.observe.series import exponential

Kind = Literal["counter", "gauge", "histogram"]


class Metric(msgspec.Struct, frozen=True):
    """A metric.

    Parameters
    ----------
    name
        Whole, as it is written; counters end in ``_total``.
    kind
        The metric's type.
    help
        Its meaning, a sentence without full stop.
    labels
        Names of the labels, in order.
    buckets
        Upper bounds, for histograms.
    unused
        Why there is nothing to tell; such a metric is declared, and has no samples.
    gate
        Feature gate without which the metric is not declared, as in kube-scheduler.
    since
        The first version of kube-scheduler that has the metric; empty: each version.
    own
        Whether only moorage has the metric.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    unused: str = ""
    gate: str = ""
    since: str = ""
    own: bool = False


_MS: Final = exponential(0.001, 2, 15)
_TEN_MS: Final = exponential(0.01, 2, 20)
_PREEMPTION: Final = exponential(0.001, 2, 16)
_MANY: Final = exponential(1, 2, 11)
_TENTH_MS: Final = exponential(0.0001, 2, 12)
_TEN_US: Final = exponential(0.00001, 1.5, 20)
_CALL: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_REVIEW: Final = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_SIZE: Final = tuple(
    float(bound)
    for bound in (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
)
_P: Final = "scheduler_"
_NO_BATCHES: Final = "not applicable: replicas are recognised by shape, no list of nodes is kept"

METRICS: Final[tuple[Metric, ...]] = (
    # --- attempts ---------------------------------------------------------------------------
    Metric(
        f"{_P}schedule_attempts_total",
        "counter",
        "Attempts by how they ended: scheduled, unschedulable, error",
        ("result", "profile"),
    ),
    Metric(
        f"{_P}scheduling_attempt_duration_seconds",
        "histogram",
        "An attempt from its beginning to its end, binding included",
        ("result", "profile"),
        _MS,
    ),
    Metric(
        f"{_P}scheduling_algorithm_duration_seconds",
        "histogram",
        "The deciding part of an attempt",
        (),
        _MS,
    ),
    Metric(
        f"{_P}pod_scheduling_attempts",
        "histogram",
        "How many attempts a pod took until it was bound",
        (),
        exponential(1, 2, 5),
    ),
    Metric(
        f"{_P}pod_scheduling_sli_duration_seconds",
        "histogram",
        "From a pod's first attempt to its binding, by the number of attempts",
        ("attempts",),
        _TEN_MS,
    ),
    Metric(
        f"{_P}pod_scheduled_after_flush_total",
        "counter",
        "Pods bound after the periodic flush brought them back; stays 0, as in kube-scheduler",
    ),
    # --- queue ------------------------------------------------------------------------------
    Metric(f"{_P}pending_pods", "gauge", "Pods in each part of the queue", ("queue",)),
    Metric(
        f"{_P}queue_incoming_pods_total",
        "counter",
        "Pods that entered a part of the queue, by what brought them",
        ("queue", "event"),
    ),
    Metric(
        f"{_P}queued_entities",
        "gauge",
        "Pod groups, and pods of no group, in each part of the queue",
        ("queue", "type"),
        since=V1_37,
    ),
    Metric(
        f"{_P}queue_incoming_entities_total",
        "counter",
        "Pod groups, and pods of no group, that entered a part of the queue, by what brought them",
        ("queue", "event", "type"),
        since=V1_37,
    ),
    Metric(
        f"{_P}unschedulable_pods",
        "gauge",
        "Queued pods by the plugin that rejected them last",
        ("plugin", "profile"),
    ),
    Metric(f"{_P}inflight_events", "gauge", "Events kept for pods in flight", ("event",)),
    Metric(
        f"{_P}queueing_hint_execution_duration_seconds",
        "histogram",
        "One call of a requeue hint",
        ("plugin", "event", "hint"),
        _TEN_US,
    ),
    Metric(
        f"{_P}event_handling_duration_seconds",
        "histogram",
        "Handling of watch events, by the cluster event that each one means",
        ("event",),
        _TENTH_MS,
    ),
    # --- framework --------------------------------------------------------------------------
    Metric(
        f"{_P}framework_extension_point_duration_seconds",
        "histogram",
        "All plugins of an extension point in one attempt",
        ("extension_point", "status", "profile"),
        _TENTH_MS,
    ),
    Metric(
        f"{_P}plugin_execution_duration_seconds",
        "histogram",
        "One call of a plugin, in a tenth of the attempts; Filter and Score judge all nodes in one",
        ("plugin", "extension_point", "status"),
        _TEN_US,
    ),
    Metric(
        f"{_P}plugin_evaluation_total",
        "counter",
        "Calls of plugins; one judges all nodes, and an answer reused for a replica is none",
        ("plugin", "extension_point", "profile"),
    ),
    # --- preemption, permit -----------------------------------------------------------------
    Metric(f"{_P}preemption_attempts_total", "counter", "Attempts that looked for victims"),
    Metric(
        f"{_P}preemption_victims",
        "histogram",
        "Victims of an attempt that found some",
        (),
        exponential(1, 2, 7),
    ),
    Metric(
        f"{_P}preemption_goroutines_duration_seconds",
        "histogram",
        "Evicting the victims of one preemptor, from beginning to end",
        ("result",),
        _TEN_MS,
    ),
    Metric(
        f"{_P}preemption_goroutines_execution_total",
        "counter",
        "Evictions for one preemptor by how they ended: success, error",
        ("result",),
    ),
    Metric(
        f"{_P}permit_wait_duration_seconds",
        "histogram",
        "How long pods waited at Permit",
        ("result",),
        _MS,
    ),
    # --- cache, tasks -----------------------------------------------------------------------
    Metric(f"{_P}cache_size", "gauge", "What the cache holds", ("type",)),
    Metric(f"{_P}goroutines", "gauge", "Tasks under way: bindings", ("operation",)),
    # --- batching ---------------------------------------------------------------------------
    Metric(
        f"{_P}batch_attempts_total",
        "counter",
        "Attempts that could reuse a list of nodes",
        ("profile", "result"),
        unused=_NO_BATCHES,
    ),
    Metric(
        f"{_P}batch_cache_flushed_total",
        "counter",
        "Lists of nodes dropped",
        ("profile", "reason"),
        unused=_NO_BATCHES,
    ),
    Metric(
        f"{_P}get_node_hint_duration_seconds",
        "histogram",
        "Looking for a node in a list kept",
        ("hinted", "profile"),
        exponential(0.00001, 2, 12),
        unused=_NO_BATCHES,
    ),
    Metric(
        f"{_P}store_schedule_results_duration_seconds",
        "histogram",
        "Keeping a list of nodes",
        ("profile",),
        exponential(0.00001, 2, 12),
        unused=_NO_BATCHES,
    ),
    # --- pod groups -------------------------------------------------------------------------
    Metric(
        f"{_P}podgroup_schedule_attempts_total",
        "counter",
        "Attempts of pod groups: scheduled, unschedulable, waiting_on_preemption, error",
        ("result", "profile"),
        gate="GenericWorkload",
    ),
    Metric(
        f"{_P}podgroup_scheduling_attempt_duration_seconds",
        "histogram",
        "An attempt of a pod group, until its members are on their way or back in the queue",
        ("result", "profile"),
        _MS,
        gate="GenericWorkload",
    ),
    Metric(
        f"{_P}podgroup_scheduling_algorithm_duration_seconds",
        "histogram",
        "The deciding part of an attempt of a pod group",
        (),
        _MS,
        gate="GenericWorkload",
    ),
    Metric(
        f"{_P}workload_preemption_attempts_total",
        "counter",
        "Attempts to preempt for a pod group, by the status code of their outcome",
        ("result",),
        gate="GenericWorkload",
        since=V1_37,
    ),
    Metric(
        f"{_P}workload_preemption_victims",
        "histogram",
        "Pods that are evicted for a pod group as a whole",
        (),
        _MANY,
        gate="GenericWorkload",
        since=V1_37,
    ),
    Metric(
        f"{_P}preemption_workload_disruptions",
        "histogram",
        "Pod groups evicted as a whole in one preemption that evicts some; by what preempts",
        ("preemptor",),
        _MANY,
        gate="GenericWorkload",
        since=V1_37,
    ),
    Metric(
        f"{_P}preemption_evaluation_duration_seconds",
        "histogram",
        "The search for victims, extenders included, by what preempts and status code",
        ("preemptor", "result"),
        _PREEMPTION,
        gate="GenericWorkload",
        since=V1_37,
    ),
    Metric(
        f"{_P}preemption_execution_duration_seconds",
        "histogram",
        "Evicting the victims of one preemptor, by what preempts and success or error",
        ("preemptor", "result"),
        _PREEMPTION,
        gate="GenericWorkload",
        since=V1_37,
    ),
    Metric(
        f"{_P}preemption_pdb_violations_total",
        "counter",
        "Chosen victims that a PodDisruptionBudget protects, by what preempts: pod, podgroup",
        ("preemptor",),
        gate="GenericWorkload",
        since=V1_37,
    ),
    # --- volumes, devices -------------------------------------------------------------------
    Metric(
        f"{_P}volume_binder_cache_requests_total",
        "counter",
        "Uses of a cache of volume bindings",
        ("operation",),
        unused="nor in kube-scheduler, which has given that cache up",
    ),
    Metric(
        f"{_P}volume_scheduling_stage_error_total",
        "counter",
        "Errors of VolumeBinding: predicate (once for all nodes), assume, bind",
        ("operation",),
    ),
    Metric(
        f"{_P}resourceclaim_creates_total",
        "counter",
        "Claims made for extended resources",
        ("status",),
        gate="DRAExtendedResource",
    ),
    Metric(
        f"{_P}dra_bindingconditions_allocations_total",
        "counter",
        "Allocations whose devices had to be waited for",
        ("profile", "driver", "status"),
        gate="DRADeviceBindingConditions",
    ),
    Metric(
        f"{_P}dra_bindingconditions_wait_duration_seconds",
        "histogram",
        "How long devices were waited for before binding",
        ("profile", "driver", "status"),
        exponential(0.1, 2, 14),
        gate="DRADeviceBindingConditions",
    ),
    # --- shared by Kubernetes' components -----------------------------------------------------
    Metric("leader_election_master_status", "gauge", "1 while holding the Lease", ("name",)),
    Metric(
        "leader_election_slowpath_total",
        "counter",
        "Renewals of the Lease that had to look first who holds it",
        ("name",),
    ),
    Metric(
        "rest_client_requests_total",
        "counter",
        "Calls to the API server; code is <error> where no answer came",
        ("code", "method", "host"),
    ),
    Metric(
        "rest_client_request_duration_seconds",
        "histogram",
        "Calls to the API server, until the whole answer is there",
        ("verb", "host"),
        _CALL,
    ),
    Metric(
        "rest_client_rate_limiter_duration_seconds",
        "histogram",
        "How long calls waited for their turn, where clientConnection.qps sets a limit",
        ("verb", "host"),
        _CALL,
    ),
    Metric(
        "rest_client_request_retries_total",
        "counter",
        "Calls sent again, by the answer before; code is <error> where there was none",
        ("code", "verb", "host"),
    ),
    Metric(
        "rest_client_request_size_bytes",
        "histogram",
        "Bodies sent to the API server",
        ("verb", "host"),
        _SIZE,
    ),
    Metric(
        "rest_client_response_size_bytes",
        "histogram",
        "Bodies the API server answered with, watches left out",
        ("verb", "host"),
        _SIZE,
    ),
    Metric(
        "apiserver_delegated_authn_request_total",
        "counter",
        "TokenReviews sent to the API server; code is <error> where no answer came",
        ("code",),
    ),
    Metric(
        "apiserver_delegated_authn_request_duration_seconds",
        "histogram",
        "TokenReviews, until the whole answer is there",
        ("code",),
        _REVIEW,
    ),
    Metric(
        "apiserver_delegated_authz_request_total",
        "counter",
        "SubjectAccessReviews sent to the API server; code is <error> where no answer came",
        ("code",),
    ),
    Metric(
        "apiserver_delegated_authz_request_duration_seconds",
        "histogram",
        "SubjectAccessReviews, until the whole answer is there",
        ("code",),
        _REVIEW,
    ),
    Metric(
        "authentication_token_cache_request_total",
        "counter",
        "Bearer tokens looked up among the answers kept: hit, miss",
        ("status",),
    ),
    Metric(
        "authentication_token_cache_fetch_total",
        "counter",
        "Bearer tokens that had to be reviewed, by how that ended: ok, error",
        ("status",),
    ),
    Metric(
        "authentication_duration_seconds",
        "histogram",
        "Finding out who makes a call to the secure port, by result: success, error",
        ("result",),
        _MS,
    ),
    Metric(
        "authorization_attempts_total",
        "counter",
        "Calls to the secure port by the decision: allowed, denied, no-opinion, error",
        ("result",),
    ),
    Metric(
        "authorization_duration_seconds",
        "histogram",
        "Deciding whether a caller of the secure port may, by the decision",
        ("result",),
        _MS,
    ),
    Metric(
        "kubernetes_build_info",
        "gauge",
        "Always 1; the labels tell the version of Kubernetes that is played",
        ("major", "minor", "git_version"),
    ),
    Metric("kubernetes_feature_enabled", "gauge", "Feature gates, 1 where on", ("name", "stage")),
    # --- moorage's own ------------------------------------------------------------------------
    Metric(
        "moorage_plugin_failures_total",
        "counter",
        "Failures of plugins from outside that were contained",
        ("plugin", "extension_point", "kind"),
        own=True,
    ),
    Metric(
        "moorage_failed_attempts_total",
        "counter",
        "Attempts that came to no binding, by the code of the reason",
        ("reason", "profile"),
        own=True,
    ),
    Metric(
        "moorage_slow_decisions_total",
        "counter",
        "Decisions that took more than 100 ms, during which nothing else was decided",
        own=True,
    ),
    Metric(
        "moorage_latest_slow_decision_seconds",
        "gauge",
        "How long the latest of them took, and about which pod it was (namespace/name)",
        ("object",),
        own=True,
    ),
    Metric(
        "moorage_pod_groups_waiting",
        "gauge",
        "Pod groups that were tried and have no place",
        own=True,
    ),
    Metric(
        "moorage_pod_group_longest_wait_seconds",
        "gauge",
        "How long the one among them waits that was first refused the longest ago",
        own=True,
    ),
    Metric("moorage_attempt_records", "gauge", "Records of attempts that are kept", own=True),
    Metric(
        "moorage_attempt_records_bytes",
        "gauge",
        "Memory of the records of attempts; the bound is that of --records-bytes",
        own=True,
    ),
    Metric(
        "moorage_attempt_records_dropped_total",
        "counter",
        "Records of attempts that were dropped to stay within the bound",
        own=True,
    ),
    Metric(
        "moorage_events_lost_total",
        "counter",
        "Events that were not written, by reason: buffer_full, refused, no_answer, error",
        ("reason",),
        own=True,
    ),
    Metric(
        "moorage_configuration_reloads_total",
        "counter",
        "Reloads of the configuration, by result: taken over, refused",
        ("result",),
        own=True,
    ),
    Metric(
        "moorage_event_loop_stall_seconds",
        "histogram",
        "How late the timers of the event loop run, looked at every 20 ms",
        buckets=exponential(0.001, 2, 13),
        own=True,
    ),
    Metric(
        "moorage_trace_spans_total",
        "counter",
        "Spans of traced attempts, by result: sent, refused by the collector, dropped unsent",
        ("result",),
        own=True,
    ),
    Metric(
        "moorage_build_info",
        "gauge",
        "Always 1; the label tells the version",
        ("version",),
        own=True,
    ),
)
"""In the order they are written."""

BUCKETS: Final[Mapping[str, tuple[float, ...]]] = {each.name: each.buckets for each in METRICS}
"""Upper bounds of the buckets of each histogram, by its name; empty for other metrics."""

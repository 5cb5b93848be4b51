"""Metrics: names, labels and buckets are kube-scheduler's, and the numbers are what happened.

Left out: the port they are served on (``scheduler/tests/service/test_health``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from moorage.api.codec import decode
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.config.feature_gates import DEFAULT_GATES, parse_feature_gates
from moorage.framework.containment import Containment
from moorage.observe.access import AccessFacts
from moorage.observe.attempts import AttemptFacts
from moorage.observe.calls import CallFacts
from moorage.observe.catalogue import METRICS
from moorage.observe.exposition import Exposition
from moorage.observe.group_attempts import GroupAttemptFacts
from moorage.observe.points import PointFacts
from moorage.observe.resources import resources_page
from moorage.observe.series import Durations, Histogram, exponential
from moorage.observe.slis import HealthFacts
from moorage.service.process.metrics import exposition_of
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

SPEC = """
schedule_attempts_total counter result,profile
scheduling_attempt_duration_seconds histogram result,profile exp(0.001,2,15)
scheduling_algorithm_duration_seconds histogram - exp(0.001,2,15)
pod_scheduling_attempts histogram - exp(1,2,5)
pod_scheduling_sli_duration_seconds histogram attempts exp(0.01,2,20)
pod_scheduled_after_flush_total counter -
pending_pods gauge queue
queue_incoming_pods_total counter queue,event
queued_entities gauge queue,type
queue_incoming_entities_total counter queue,event,type
unschedulable_pods gauge plugin,profile
inflight_events gauge event
queueing_hint_execution_duration_seconds histogram plugin,event,hint exp(0.00001,1.5,20)
event_handling_duration_seconds histogram event exp(0.0001,2,12)
framework_extension_point_duration_seconds histogram extension_point,status,profile exp(0.0001,2,12)
plugin_execution_duration_seconds histogram plugin,extension_point,status exp(0.00001,1.5,20)
plugin_evaluation_total counter plugin,extension_point,profile
preemption_attempts_total counter -
preemption_victims histogram - exp(1,2,7)
preemption_goroutines_duration_seconds histogram result exp(0.01,2,20)
preemption_goroutines_execution_total counter result
permit_wait_duration_seconds histogram result exp(0.001,2,15)
cache_size gauge type
goroutines gauge operation
batch_attempts_total counter profile,result
batch_cache_flushed_total counter profile,reason
get_node_hint_duration_seconds histogram hinted,profile exp(0.00001,2,12)
store_schedule_results_duration_seconds histogram profile exp(0.00001,2,12)
podgroup_schedule_attempts_total counter result,profile
podgroup_scheduling_attempt_duration_seconds histogram result,profile exp(0.001,2,15)
podgroup_scheduling_algorithm_duration_seconds histogram - exp(0.001,2,15)
workload_preemption_attempts_total counter result
workload_preemption_victims histogram - exp(1,2,11)
preemption_workload_disruptions histogram preemptor exp(1,2,11)
preemption_evaluation_duration_seconds histogram preemptor,result exp(0.001,2,16)
preemption_execution_duration_seconds histogram preemptor,result exp(0.001,2,16)
preemption_pdb_violations_total counter preemptor
volume_binder_cache_requests_total counter operation
volume_scheduling_stage_error_total counter operation
resourceclaim_creates_total counter status
dra_bindingconditions_allocations_total counter profile,driver,status
dra_bindingconditions_wait_duration_seconds histogram profile,driver,status exp(0.1,2,14)
"""
"""Scheduling spec, metrics section 1, in its words: the core metrics of v1.36, those of gates that
can be on, and the volume binder's; of v1.37 the metrics of entities and of preemption.
SchedulerAsyncAPICalls cannot be on, so its own are left out."""

SHARED = {
    "leader_election_master_status": ("name",),
    "leader_election_slowpath_total": ("name",),
    "rest_client_requests_total": ("code", "method", "host"),
    "rest_client_request_duration_seconds": ("verb", "host"),
    "rest_client_rate_limiter_duration_seconds": ("verb", "host"),
    "rest_client_request_retries_total": ("code", "verb", "host"),
    "rest_client_request_size_bytes": ("verb", "host"),
    "rest_client_response_size_bytes": ("verb", "host"),
    "apiserver_delegated_authn_request_total": ("code",),
    "apiserver_delegated_authn_request_duration_seconds": ("code",),
    "apiserver_delegated_authz_request_total": ("code",),
    "apiserver_delegated_authz_request_duration_seconds": ("code",),
    "authentication_token_cache_request_total": ("status",),
    "authentication_token_cache_fetch_total": ("status",),
    "authentication_duration_seconds": ("result",),
    "authorization_attempts_total": ("result",),
    "authorization_duration_seconds": ("result",),
    "kubernetes_build_info": ("major", "minor", "git_version"),
    "kubernetes_feature_enabled": ("name", "stage"),
}
"""Section 4, without what has no counterpart: work queues, informers, Go, metrics about metrics.
The metrics of authentication and authorization are those of the module apiserver in v1.36."""


def buckets(text: str) -> tuple[float, ...]:
    start, factor, count = text.removeprefix("exp(").removesuffix(")").split(",")
    return exponential(float(start), float(factor), int(count))


def test_the_scheduler_metrics_are_those_of_the_specification() -> None:
    wanted = []
    for line in SPEC.split("\n")[1:-1]:
        name, kind, labels, *rest = line.split()
        wanted.append(
            (
                f"scheduler_{name}",
                kind,
                () if labels == "-" else tuple(labels.split(",")),
                buckets(rest[0]) if rest else (),
            )
        )
    assert [
        (metric.name, metric.kind, metric.labels, metric.buckets)
        for metric in METRICS
        if metric.name.startswith("scheduler_")
    ] == wanted


def test_the_shared_metrics_are_those_of_the_specification() -> None:
    shared = {
        metric.name: metric.labels
        for metric in METRICS
        if not metric.own and not metric.name.startswith("scheduler_")
    }
    assert shared == SHARED


def test_buckets_are_prometheus_own() -> None:
    assert exponential(0.001, 2, 4) == (0.001, 0.002, 0.004, 0.008)


@given(st.lists(st.floats(0, 10)), st.lists(st.floats(0, 10), unique=True, max_size=8))
def test_a_histogram_counts_what_is_at_most_the_bound(
    values: list[float], bounds: list[float]
) -> None:
    histogram = Histogram(sorted(bounds))
    for value in values:
        histogram.observe(value)
    wanted = [sum(value <= bound for value in values) for bound in sorted(bounds)]
    assert [count for _, count in histogram.cumulated()] == [*wanted, len(values)]
    assert histogram.count == len(values)
    assert math.isclose(histogram.total, math.fsum(values), abs_tol=1e-9)


@given(st.lists(st.integers(0, 10**10)), st.integers(0, 1500))
def test_durations_sorted_in_many_at_once_are_as_if_observed_one_by_one(
    given_ns: list[int], repeated: int
) -> None:
    bounds = exponential(0.001, 2, 12)
    one_by_one, together = Histogram(bounds), Durations(bounds)
    for duration_ns in given_ns + [1_000_000] * repeated:
        one_by_one.observe(duration_ns / NS_PER_SECOND)
        together.add(duration_ns)
    assert together.histogram.counts == one_by_one.counts
    assert math.isclose(together.histogram.total, one_by_one.total, abs_tol=1e-6)


def test_an_attempt_is_counted_by_its_end_and_its_duration() -> None:
    clock = ManualClock()
    facts = AttemptFacts(clock)
    first = clock.now_ns()
    facts.began("a")
    clock.advance(0.003)
    facts.decided("a")
    facts.returned("a", "p", rejected=True, message="no nodes available to schedule pods")
    facts.began("a")
    clock.advance(1)
    facts.decided("a")
    clock.advance(1)
    facts.scheduled("a", "p", attempts=20, first_attempt_ns=first)
    facts.began("b")
    facts.returned("b", "p", rejected=False, message='running Reserve plugin "B": x')
    facts.began("c")
    facts.dropped("c")
    assert dict(facts.results) == {
        ("unschedulable", "p"): 1,
        ("scheduled", "p"): 1,
        ("error", "p"): 1,
    }
    assert facts.durations["scheduled", "p"].total == pytest.approx(2)
    assert facts.durations["unschedulable", "p"].total == pytest.approx(0.003)
    assert facts.algorithm.count == 2
    assert facts.algorithm.total == pytest.approx(1.003)
    assert {told: h.total for told, h in facts.sli.items()} == {"15+": pytest.approx(2.003)}
    assert facts.attempts.total == 20
    assert facts.under_way == 0


def test_disabled_metrics_are_left_out_and_unknown_names_are_mistakes() -> None:
    text, _ = Exposition({}, disabled=["scheduler_cache_size"]).page_text("")
    assert b"scheduler_pending_pods" in text
    assert b"scheduler_cache_size" not in text
    with pytest.raises(LookupError, match="no such metrics: scheduler_wombats"):
        Exposition({"scheduler_wombats": list})


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "text/plain", id="plain text by default"),
        pytest.param(
            "application/openmetrics-text; version=1.0.0",
            "application/openmetrics-text",
            id="OpenMetrics where it is asked for",
        ),
    ],
)
def test_the_format_is_what_the_reader_takes(accept: str, content_type: str) -> None:
    assert Exposition({}).page_text(accept)[1].startswith(content_type)


Numbers = dict[tuple[str, ...], float]


def numbers(text: bytes) -> Numbers:
    """Return every sample by its name and the values of its labels, these by their names."""
    found: Numbers = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found[(sample.name, *(value for _, value in sorted(sample.labels.items())))] = (
                sample.value
            )
    return found


def chosen(found: Numbers, names: Iterable[str]) -> Numbers:
    return {key: value for key, value in found.items() if key[0] in set(names)}


P = "default-scheduler"
TOLD: dict[str, dict[tuple[str, ...], float]] = {
    "scheduler_schedule_attempts_total": {(P, "scheduled"): 2, (P, "unschedulable"): 1},
    "scheduler_pending_pods": {
        ("active",): 0,
        ("backoff",): 0,
        ("unschedulable",): 1,
        ("gated",): 0,
    },
    "scheduler_unschedulable_pods": {("NodeResourcesFit", P): 1},
    # One node: nothing to score, and nothing to prepare before binding.
    "scheduler_framework_extension_point_duration_seconds_count": {
        ("PreEnqueue", P, "Success"): 3,
        ("PreFilter", P, "Success"): 3,
        ("Filter", P, "Success"): 3,
        ("PostFilter", P, "Unschedulable"): 1,
        ("Reserve", P, "Success"): 2,
        ("Permit", P, "Success"): 2,
        ("PreBindPreFlight", P, "Skip"): 2,
        ("Bind", P, "Success"): 2,
        ("PostBind", P, "Success"): 2,
    },
    "scheduler_queue_incoming_pods_total": {
        ("UnschedulablePodAdd", "active"): 3,
        ("ScheduleAttemptFailure", "unschedulable"): 1,
    },
    "scheduler_event_handling_duration_seconds_count": {
        ("NodeAdd",): 1,
        ("NamespaceAdd",): 4,
        ("UnschedulablePodAdd",): 3,
        ("UnschedulablePodUpdate",): 1,
        ("AssignedPodAdd",): 2,
        ("AssignedPodUpdate",): 2,
    },
    "scheduler_cache_size": {("assumed_pods",): 0, ("nodes",): 1, ("pods",): 2},
    "scheduler_preemption_attempts_total": {(): 1},
    "scheduler_pod_scheduling_attempts_count": {(): 2},
    "leader_election_master_status": {("kube-scheduler",): 1},
    "rest_client_requests_total": {
        ("201", "server", "POST"): 1,
        ("<error>", "server", "POST"): 1,
    },
    "rest_client_request_retries_total": {
        ("429", "server", "POST"): 2,
        ("<error>", "server", "GET"): 1,
    },
    "rest_client_rate_limiter_duration_seconds_sum": {("server", "GET"): 0.5},
    "rest_client_request_size_bytes_sum": {("server", "POST"): 100},
    "rest_client_response_size_bytes_sum": {("server", "POST"): 5000},
    "leader_election_slowpath_total": {("kube-scheduler",): 0},
    "kubernetes_build_info": {("v1.36.2", "1", "36"): 1},
    "scheduler_podgroup_schedule_attempts_total": {},
}
"""Two pods bound to the only node, and one for which there is no room: by values of the labels."""


def test_the_metrics_of_a_scheduler_tell_what_happened() -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1", cpu="2")]) as cluster:
            await cluster.create_objects(*(pod_manifest(name, cpu="1") for name in ("a", "b", "c")))
            await cluster.until(lambda: cluster.condition_of("c")[1] == "Unschedulable")
            await cluster.until(lambda: cluster.scheduler.facts.bound == 2)
            await cluster.until(lambda: cluster.scheduler.core.cache.counts().assumed_pods == 0)
            calls = CallFacts("server")
            calls.answered("POST", 201, 0.01, sent=100, received=5000)
            calls.answered("POST", None, 2.0)
            for method, code in (("POST", 429), ("POST", 429), ("GET", None)):
                calls.retried(method, code)
            calls.call_delayed("GET", 0.5)
            metrics = exposition_of(
                cluster.scheduler,
                calls=calls,
                access=AccessFacts(),
                containment=Containment(),
                gates=DEFAULT_GATES,
            )
            found = numbers(metrics.page_text("")[0])
            for name, told in TOLD.items():
                assert chosen(found, [name]) == {
                    (name, *labels): value for labels, value in told.items()
                }
            assert found["kubernetes_feature_enabled", "OpportunisticBatching", "BETA"] == 1
            assert cluster.scheduler.facts.attempts.under_way == 0

    run_virtual(main(), clock)


def test_every_metric_said_to_be_observed_has_a_source() -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            metrics = exposition_of(
                cluster.scheduler,
                calls=CallFacts("server"),
                access=AccessFacts(),
                containment=Containment(),
                gates=DEFAULT_GATES,
            )
            wanted = {metric.name for metric in METRICS if not metric.unused}
            assert metrics.sources == wanted

    run_virtual(main(), clock)


def pod(text: str) -> Pod:
    return decode(Pod, text)


def test_the_resources_of_pods_are_told_by_pod_resource_and_unit() -> None:
    running = pod(
        '{"metadata": {"namespace": "ns", "name": "a"}, "status": {"phase": "Running"},'
        ' "spec": {"nodeName": "n", "schedulerName": "s", "priority": 7,'
        ' "overhead": {"cpu": "50m", "memory": "1Mi"}, "containers": ['
        '{"name": "x", "resources": {"requests": {"cpu": "250m", "memory": "1Gi", "x.io/gpu": "2"},'
        ' "limits": {"cpu": "1", "x.io/gpu": "2"}}}]}}'
    )
    over = pod(
        '{"metadata": {"namespace": "ns", "name": "b"}, "status": {"phase": "Succeeded"},'
        ' "spec": {"nodeName": "n", "containers": [{"name": "x", "resources":'
        ' {"requests": {"cpu": "1"}}}]}}'
    )
    text, _ = resources_page([over, running], "")
    request, limit = "kube_pod_resource_request", "kube_pod_resource_limit"
    # namespace, node, pod, priority, resource, scheduler, unit
    who = ("ns", "n", "a", "7")
    assert numbers(text) == {
        (request, *who, "cpu", "s", "cores"): 0.3,
        (request, *who, "memory", "s", "bytes"): 2**30 + 2**20,
        (request, *who, "x.io/gpu", "s", ""): 2,
        (limit, *who, "cpu", "s", "cores"): 1.05,
        (limit, *who, "x.io/gpu", "s", ""): 2,
    }


def test_points_are_told_by_status_and_waits_at_permit_by_their_end() -> None:
    clock = ManualClock()
    facts = PointFacts(clock)
    began_ns = facts.now_ns()
    clock.advance(2)
    facts.ran("Bind", "Error", "p", since_ns=began_ns)
    facts.waited("Unschedulable", since_ns=began_ns)
    clock.advance(1)
    facts.ran("Bind", "Error", "p", since_ns=began_ns)
    assert {key: (h.count, h.total) for key, h in facts.durations.items()} == {
        ("Bind", "Error", "p"): (2, 5.0)
    }
    assert {key: (h.count, h.total) for key, h in facts.waits.items()} == {
        ("Unschedulable",): (1, 2.0)
    }


def test_metrics_of_a_gate_are_declared_only_while_it_is_on() -> None:
    gated = [metric for metric in METRICS if metric.gate]
    gated = [metric for metric in gated if not metric.gate.startswith("DRA")]  # always on
    gated = [metric for metric in gated if not metric.since]  # those of 1.37: in another file
    assert [metric.gate for metric in gated] == ["GenericWorkload"] * 3
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            for gates in (DEFAULT_GATES, parse_feature_gates("GenericWorkload=true")):
                page, _ = exposition_of(
                    cluster.scheduler,
                    calls=CallFacts("server"),
                    access=AccessFacts(),
                    containment=Containment(),
                    gates=gates,
                ).page_text("")
                on = gates("GenericWorkload")
                assert [metric.name in page.decode() for metric in gated] == [on] * 3

    run_virtual(main(), clock)


def test_attempts_of_groups_are_counted_by_their_end() -> None:
    clock = ManualClock()
    facts = GroupAttemptFacts(clock)
    began_ns = facts.meter_ns()
    clock.advance(1)
    facts.decided(since_ns=began_ns)
    clock.advance(1)
    facts.ended("waiting_on_preemption", "p", since_ns=began_ns)
    assert facts.results == {("waiting_on_preemption", "p"): 1}
    assert facts.durations["waiting_on_preemption", "p"].total == 2
    assert (facts.algorithm.count, facts.algorithm.total) == (1, 1)


def test_health_checks_are_told_as_they_last_went_and_how_often() -> None:
    facts = HealthFacts()
    assert numbers(facts.page_text("")[0]) == {}
    facts.checked("ping", "livez", passed=True)
    facts.checked("sync", "readyz", passed=False)
    facts.checked("sync", "readyz", passed=True)
    # the labels by their names: name, type; name, status, type
    assert numbers(facts.page_text("")[0]) == {
        ("kubernetes_healthcheck", "ping", "livez"): 1,
        ("kubernetes_healthcheck", "sync", "readyz"): 1,
        ("kubernetes_healthchecks_total", "ping", "success", "livez"): 1,
        ("kubernetes_healthchecks_total", "sync", "error", "readyz"): 1,
        ("kubernetes_healthchecks_total", "sync", "success", "readyz"): 1,
    }

"""The dashboards of Grafana: panels as data, and the JSON that Grafana imports."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from tools.watching.promql import JOB, quantile, rate, series, total

_WIDTH: Final = 8
_HEIGHT: Final = 7
_COLUMNS: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}


class Panel(NamedTuple):
    """A chart.

    Parameters
    ----------
    title
        Its heading.
    unit
        Grafana's name of the unit.
    lines
        Each query with the form of its legend.
    told
        What to see in it, a sentence.
    """

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]
    told: str = ""


class Dashboard(NamedTuple):
    """A page of panels."""

    name: str
    title: str
    panels: tuple[Panel, ...]


def _quantiles(name: str, *by: str, **labels: str) -> tuple[tuple[str, str], ...]:
    legend = " ".join(f"{{{{{label}}}}}" for label in by)
    return tuple(
        (quantile(share, name, JOB, by=by, **labels), f"{legend} p{share * 100:g}".strip())
        for share in (0.5, 0.99)
    )


def _sums(name: str, *by: str, **labels: str) -> tuple[tuple[str, str], ...]:
    legend = " ".join(f"{{{{{label}}}}}" for label in by) or name
    return ((total(rate(name, JOB, **labels), *by), legend),)


def _gauges(name: str, *by: str) -> tuple[tuple[str, str], ...]:
    legend = " ".join(f"{{{{{label}}}}}" for label in by) or name
    return ((total(series(name, JOB), *by), legend),)


SCHEDULER: Final = Dashboard(
    "scheduler",
    "Moorage: the scheduler",
    (
        Panel("Attempts", "ops", _sums("scheduler_schedule_attempts_total", "result")),
        Panel(
            "From the first attempt to the node",
            "s",
            _quantiles("scheduler_pod_scheduling_sli_duration_seconds"),
            "Waiting for room counts as well.",
        ),
        Panel(
            "Attempts until a pod was bound",
            "short",
            _quantiles("scheduler_pod_scheduling_attempts"),
        ),
        Panel("Pods in the queue", "short", _gauges("scheduler_pending_pods", "queue")),
        Panel(
            "Rejected by plugin",
            "short",
            _gauges("scheduler_unschedulable_pods", "plugin"),
            "Why pods wait: the plugin that rejected each last.",
        ),
        Panel(
            "What brings pods into the queue",
            "ops",
            _sums("scheduler_queue_incoming_pods_total", "event"),
        ),
        Panel("Preemption: attempts", "ops", _sums("scheduler_preemption_attempts_total")),
        Panel("Preemption: victims", "short", _quantiles("scheduler_preemption_victims")),
        Panel(
            "Preemption: evictions",
            "ops",
            _sums("scheduler_preemption_goroutines_execution_total", "result"),
        ),
        Panel("Groups that wait", "short", _gauges("moorage_pod_groups_waiting")),
        Panel(
            "The longest wait of a group", "s", _gauges("moorage_pod_group_longest_wait_seconds")
        ),
        Panel(
            "Attempts of groups",
            "ops",
            _sums("scheduler_podgroup_schedule_attempts_total", "result"),
        ),
        Panel(
            "Who leads",
            "short",
            _gauges("leader_election_master_status", "name", "instance"),
            "One line at 1 for each Lease.",
        ),
        Panel("Cache", "short", _gauges("scheduler_cache_size", "type")),
        Panel(
            "Versions", "short", _gauges("moorage_build_info", "version"), "Replicas by version."
        ),
    ),
)
LATENCY: Final = Dashboard(
    "latency",
    "Moorage: where time goes",
    (
        Panel(
            "Whole attempts",
            "s",
            _quantiles("scheduler_scheduling_attempt_duration_seconds", "result"),
        ),
        Panel("Deciding", "s", _quantiles("scheduler_scheduling_algorithm_duration_seconds")),
        Panel(
            "Waiting at Permit", "s", _quantiles("scheduler_permit_wait_duration_seconds", "result")
        ),
        Panel(
            "Extension points",
            "s",
            _quantiles("scheduler_framework_extension_point_duration_seconds", "extension_point"),
        ),
        Panel(
            "Plugins",
            "s",
            _quantiles("scheduler_plugin_execution_duration_seconds", "plugin"),
            "Timed in a tenth of the attempts.",
        ),
        Panel("Calls of plugins", "ops", _sums("scheduler_plugin_evaluation_total", "plugin")),
        Panel(
            "Failures of plugins", "ops", _sums("moorage_plugin_failures_total", "plugin", "kind")
        ),
        Panel(
            "Requeue hints",
            "s",
            _quantiles("scheduler_queueing_hint_execution_duration_seconds", "plugin"),
        ),
        Panel(
            "Taking in events",
            "s",
            _quantiles("scheduler_event_handling_duration_seconds", "event"),
        ),
        Panel(
            "Evicting victims",
            "s",
            _quantiles("scheduler_preemption_goroutines_duration_seconds", "result"),
        ),
        Panel(
            "Groups",
            "s",
            _quantiles("scheduler_podgroup_scheduling_attempt_duration_seconds", "result"),
        ),
        Panel(
            "Errors of volumes",
            "ops",
            _sums("scheduler_volume_scheduling_stage_error_total", "operation"),
        ),
    ),
)
SERVER: Final = Dashboard(
    "server",
    "Moorage: the API server and callers",
    (
        Panel("Calls by code", "ops", _sums("rest_client_requests_total", "code")),
        Panel("Calls", "s", _quantiles("rest_client_request_duration_seconds", "verb")),
        Panel("Repeated calls", "ops", _sums("rest_client_request_retries_total", "code")),
        Panel(
            "Waiting for the rate limit",
            "s",
            _quantiles("rest_client_rate_limiter_duration_seconds", "verb"),
        ),
        Panel("Bodies sent", "bytes", _quantiles("rest_client_request_size_bytes", "verb")),
        Panel("Answers", "bytes", _quantiles("rest_client_response_size_bytes", "verb")),
        Panel("Callers of the port", "ops", _sums("authorization_attempts_total", "result")),
        Panel("Reviews of tokens", "ops", _sums("apiserver_delegated_authn_request_total", "code")),
        Panel("Reviews of rights", "ops", _sums("apiserver_delegated_authz_request_total", "code")),
    ),
)
DASHBOARDS: Final = (SCHEDULER, LATENCY, SERVER)


def dashboard_files() -> dict[str, str]:
    """Return the JSON of each dashboard by the name of its file."""
    return {
        f"{each.name}.json": json.dumps(grafana(each), indent=1, sort_keys=True) + "\n"
        for each in DASHBOARDS
    }


def grafana(dashboard: Dashboard) -> dict[str, Any]:
    """Return a dashboard in the form that Grafana imports."""
    return {
        "uid": f"moorage-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["moorage", "kubernetes"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _job()]},
        "panels": [_panel(number, panel) for number, panel in enumerate(dashboard.panels)],
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _job() -> dict[str, Any]:
    query = f"label_values({series('moorage_build_info')}, job)"
    return {
        "name": "job",
        "label": "Scheduler",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "job"},
        "definition": query,
        "includeAll": True,
        "multi": True,
        "refresh": 2,
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    across = _COLUMNS // _WIDTH
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.told,
        "datasource": _SOURCE,
        "gridPos": {
            "x": number % across * _WIDTH,
            "y": number // across * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(panel.lines)
        ],
    }

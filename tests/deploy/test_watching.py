"""Alerts, recording rules and dashboards: their names are those of the catalogue, and alerts fire.

The names are read off the written files, not off the code that writes them. promtool checks the
rules and plays series to them. Not covered: Grafana, the operator of Prometheus.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.observe.catalogue import METRICS
from tests.browser.install import NoBrowserError
from tests.deploy.chart import CHART, ROOT, objects, rendered
from tests.deploy.promtool import promtool_path
from tools.watching import promql

WATCHING = CHART / "watching"
RULES: dict[str, Any] = yaml.safe_load((WATCHING / "rules.yaml").read_text())
RECORDED, ALERTS = (group["rules"] for group in RULES["groups"])
DASHBOARDS = sorted((WATCHING / "dashboards").glob("*.json"))

# What Prometheus adds: to each target, to each series, to a histogram.
_ADDED = {"job", "instance", "pod", "namespace", "le"}
_NAME = re.compile(r"([a-zA-Z_:][\w:]*)(\s*\()?(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
_WORDS = {"by", "on", "unless", "and", "or"}


def known() -> dict[str, set[str]]:
    """Return the labels of every series that there can be, by its name."""
    found: dict[str, set[str]] = {"up": set()}
    for metric in METRICS:
        if metric.unused:
            continue
        parts = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        found |= {metric.name + part: set(metric.labels) for part in parts}
    return found


def faults(query: str, series: dict[str, set[str]]) -> list[str]:
    """Return the names of a query that do not exist."""
    wrong, labels = [], set[str]()
    text = re.sub(r"\[[^]]*\]", "", query)
    grouped = [name.strip() for part in _GROUPED.findall(text) for name in part.split(",")]
    for name, call, matchers in _NAME.findall(_GROUPED.sub("", text)):
        if call or name in _WORDS:
            continue
        if name not in series:
            wrong.append(name)
            continue
        labels |= series[name]
        given = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)
        wrong += [f"{name}{{{each}}}" for each in given if each not in series[name] | _ADDED]
    return wrong + [f"by {each}" for each in grouped if each not in labels | _ADDED]


def recorded() -> dict[str, set[str]]:
    """Return the labels of the recorded series by name."""
    return {
        rule["record"]: {
            name.strip() for part in _GROUPED.findall(rule["expr"]) for name in part.split(",")
        }
        for rule in RECORDED
    }


@pytest.mark.parametrize("rule", RECORDED, ids=lambda rule: rule["record"])
def test_a_recording_rule_reads_what_the_scheduler_tells(rule: dict[str, Any]) -> None:
    assert faults(rule["expr"], known()) == []


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_reads_what_is_told_or_recorded_and_links_to_its_runbook(
    rule: dict[str, Any],
) -> None:
    assert faults(rule["expr"], known() | recorded()) == []
    labels = {name for _, names in sorted((known() | recorded()).items()) for name in names}
    told = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
    assert told <= labels
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert f"\n## {rule['alert']}\n" in (ROOT / page).read_text()
    assert anchor == rule["alert"].lower()


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_the_panels_of_a_dashboard_read_what_the_scheduler_tells(path: Path) -> None:
    board = json.loads(path.read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(queries) >= 9
    assert {query: faults(query, known()) for query in queries if faults(query, known())} == {}
    assert {name for query in queries for name in re.findall(r"\$(\w+)", query)} == {"job"}
    assert [each["name"] for each in board["templating"]["list"]] == ["source", "job"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_dashboards_and_alerts_read_every_subject_that_was_promised() -> None:
    text = "".join(path.read_text() for path in DASHBOARDS)
    for name in (
        "scheduler_schedule_attempts_total",
        "scheduler_framework_extension_point_duration_seconds",
        "scheduler_pending_pods",
        "scheduler_unschedulable_pods",
        "scheduler_preemption_victims",
        "moorage_pod_groups_waiting",
        "rest_client_requests_total",
        "leader_election_master_status",
    ):
        assert name in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param('sum by (queue) (scheduler_pending_pods{queue="active"})', [], id="right"),
        pytest.param("scheduler_pending_pod", ["scheduler_pending_pod"], id="no such metric"),
        pytest.param(
            'scheduler_pending_pods{q="a"}', ["scheduler_pending_pods{q}"], id="no such label"
        ),
        pytest.param("sum by (plugin) (scheduler_pending_pods)", ["by plugin"], id="not told by"),
        pytest.param(
            "rate(scheduler_preemption_victims[5m])",
            ["scheduler_preemption_victims"],
            id="a histogram has parts",
        ),
        pytest.param(
            "scheduler_batch_attempts_total",
            ["scheduler_batch_attempts_total"],
            id="a metric without samples",
        ),
    ],
)
def test_a_name_that_does_not_exist_is_found(query: str, found: list[str]) -> None:
    assert faults(query, known()) == found


@pytest.mark.parametrize(
    ("name", "of", "labels", "told"),
    [
        pytest.param("nothing", "", {}, "no metric nothing", id="no such metric"),
        pytest.param("scheduler_pending_pods", "", {"a": "b"}, "no label a", id="no such label"),
        pytest.param("scheduler_pending_pods", "sum", {}, "is a gauge", id="no histogram"),
        pytest.param("scheduler_batch_attempts_total", "", {}, "no samples", id="never told"),
    ],
)
def test_a_query_of_something_else_cannot_be_built(
    name: str, of: str, labels: dict[str, str], told: str
) -> None:
    with pytest.raises(LookupError, match=told):
        promql.series(name, of=of, **labels)


# --- with Helm --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.kubectl
def test_the_chart_brings_rules_and_dashboards_along() -> None:
    words = [
        "--set",
        "metrics.prometheusRule.enabled=true",
        "--set",
        "metrics.dashboards.enabled=true",
    ]
    words += ["--set", "metrics.prometheusRule.runbooks=https://docs.example/"]
    found = {each["kind"] + each["metadata"]["name"]: each for each in objects(rendered(*words))}
    spec = found["PrometheusRulemoorage"]["spec"]
    (first, *_) = spec["groups"][1]["rules"]
    assert first["annotations"]["runbook_url"] == (
        "https://docs.example/docs/reference/alerts.md#mooragedown"
    )
    text = json.dumps(spec).replace("https://docs.example/", "")
    assert json.loads(text) == RULES
    boards = found["ConfigMapmoorage-dashboards"]["data"]
    assert {name: json.loads(board) for name, board in boards.items()} == {
        f"moorage-{path.name}": json.loads(path.read_text()) for path in DASHBOARDS
    }


# --- with promtool ----------------------------------------------------------------------------

_IN = 'job="moorage", instance="a"'
_CALLS = f'{_IN}, method="GET", host="h"'


def _histogram(name: str, value: str) -> dict[str, str]:
    """Return series of a histogram whose samples all lie in the bucket of a value."""
    return {
        f'{name}_bucket{{{_IN}, le="0.001"}}': "0+0x60",
        f'{name}_bucket{{{_IN}, le="{value}"}}': "0+60x60",
        f'{name}_bucket{{{_IN}, le="+Inf"}}': "0+60x60",
    }


_ATTEMPTS = f'scheduler_schedule_attempts_total{{{_IN}, profile="p", result="%s"}}'
_PENDING = f'scheduler_pending_pods{{{_IN}, queue="%s"}}'
_LEADS = 'leader_election_master_status{job="moorage", instance="%s", name="l"}'
# What makes each alert fire, and what does not.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "MoorageDown": ({f"up{{{_IN}}}": "0x60"}, {f"up{{{_IN}}}": "1x60"}),
    "MoorageNoLeader": (
        {_LEADS % "a": "0x60", _LEADS % "b": "0x60"},
        {_LEADS % "a": "0x60", _LEADS % "b": "1x60"},
    ),
    "MoorageTwoLeaders": (
        {_LEADS % "a": "1x60", _LEADS % "b": "1x60"},
        {_LEADS % "a": "1x60", _LEADS % "b": "0x60"},
    ),
    "MoorageStuck": (
        {_PENDING % "active": "7x60", _ATTEMPTS % "scheduled": "5x60"},
        {_PENDING % "active": "7x60", _ATTEMPTS % "scheduled": "0+60x60"},
    ),
    "MooragePendingTooLong": (
        {_PENDING % "unschedulable": "3x60"},
        {_PENDING % "unschedulable": "3x20 0x40", _PENDING % "gated": "3x60"},
    ),
    "MoorageSlow": (
        _histogram("scheduler_pod_scheduling_sli_duration_seconds", "163.84"),
        _histogram("scheduler_pod_scheduling_sli_duration_seconds", "10.24"),
    ),
    "MoorageDecidesSlowly": (
        _histogram("scheduler_scheduling_algorithm_duration_seconds", "4.096"),
        _histogram("scheduler_scheduling_algorithm_duration_seconds", "0.128"),
    ),
    "MoorageSlowDecision": (
        {
            f"moorage_slow_decisions_total{{{_IN}}}": "0+1x60",
            f'moorage_latest_slow_decision_seconds{{{_IN}, object="default/a"}}': "0.2x60",
        },
        {
            f"moorage_slow_decisions_total{{{_IN}}}": "0x5 1x55",
            f'moorage_latest_slow_decision_seconds{{{_IN}, object="default/a"}}': "0.2x60",
        },
    ),
    "MoorageErrors": (
        {_ATTEMPTS % "error": "0+6x60", _ATTEMPTS % "scheduled": "0+60x60"},
        {_ATTEMPTS % "error": "0+1x60", _ATTEMPTS % "scheduled": "0+60x60"},
    ),
    "MooragePluginFails": (
        {
            f'moorage_plugin_failures_total{{{_IN}, plugin="P", extension_point="Filter", '
            'kind="raised"}': "0+1x60"
        },
        {
            f'moorage_plugin_failures_total{{{_IN}, plugin="P", extension_point="Filter", '
            'kind="raised"}': "5x60"
        },
    ),
    "MoorageApiErrors": (
        {
            f'rest_client_requests_total{{{_CALLS}, code="200"}}': "0+60x60",
            f'rest_client_requests_total{{{_CALLS}, code="<error>"}}': "0+6x60",
        },
        {
            f'rest_client_requests_total{{{_CALLS}, code="200"}}': "0+60x60",
            f'rest_client_requests_total{{{_CALLS}, code="409"}}': "0+6x60",
        },
    ),
    "MoorageGroupWaits": (
        {f"moorage_pod_group_longest_wait_seconds{{{_IN}}}": "0+60x60"},
        {f"moorage_pod_group_longest_wait_seconds{{{_IN}}}": "900x60"},
    ),
    "MooragePreemptsMuch": (
        {f"scheduler_preemption_victims_sum{{{_IN}}}": "0+120x60"},
        {f"scheduler_preemption_victims_sum{{{_IN}}}": "0+30x60"},
    ),
}


def test_each_alert_has_a_case() -> None:
    assert sorted(CASES) == sorted(rule["alert"] for rule in ALERTS)


@pytest.fixture
def promtool() -> Path:
    try:
        return promtool_path()
    except NoBrowserError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_every_alert_fires_when_it_should_and_only_then(promtool: Path, tmp_path: Path) -> None:
    """Play an hour of series to the rules: the alert fires at its end, and its twin does not."""
    tests = []
    for name, cases in CASES.items():
        for case, fires in zip(cases, (True, False), strict=True):
            query = {
                "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}})',
                "eval_time": "59m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
            series = [{"series": each, "values": values} for each, values in case.items()]
            tests.append({"interval": "1m", "input_series": series, "promql_expr_test": [query]})
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(WATCHING / "rules.yaml")], "tests": tests}))
    for words in (["check", "rules", str(WATCHING / "rules.yaml")], ["test", "rules", str(file)]):
        done = subprocess.run(
            [str(promtool), *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

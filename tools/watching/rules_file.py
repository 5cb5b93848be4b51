"""The rules as Prometheus reads them, and the page that is their runbook."""

from __future__ import annotations

from typing import Any, Final

import yaml

from tools.watching.alerts import ALERTS, RECORDINGS, Alert

RUNBOOK: Final = "docs/reference/alerts.md"
_HEAD: Final = "# Written by `make docs` from tools/watching/alerts.py. Do not edit.\n"
_PAGE: Final = """# Alerts

<!-- Written by `make docs` from tools/watching/alerts.py. Do not edit. -->

These are the alerts of `deploy/chart/watching/rules.yaml`, each with what it means, where to look
and what helps. `critical` is meant to wake somebody up. The thresholds are starting points: change
them to what is usual in your cluster.

[Watch the scheduler](../how-to/watch-the-scheduler.md) says how the rules get into Prometheus.

| Alert | Severity | After |
|---|---|---|
"""


def rules() -> dict[str, Any]:
    """Return the groups of rules."""
    kept = [{"record": each.name, "expr": each.query} for each in RECORDINGS]
    return {
        "groups": [
            {"name": "moorage.recorded", "rules": kept},
            {"name": "moorage.alerts", "rules": [_rule(alert) for alert in ALERTS]},
        ]
    }


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.query,
        "for": f"{alert.minutes}m",
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.means,
            "runbook_url": f"{RUNBOOK}#{alert.name.lower()}",
        },
    }


def rules_file() -> str:
    """Return the text of the file of rules."""
    return _HEAD + yaml.safe_dump(rules(), sort_keys=False, width=1000, allow_unicode=True)


def alerts_page() -> str:
    """Return the page of alerts."""
    rows = "".join(
        f"| [{each.name}](#{each.name.lower()}) | {each.severity} | {each.minutes} min |\n"
        for each in ALERTS
    )
    return _PAGE + rows + "".join(_section(alert) for alert in ALERTS)


def _section(alert: Alert) -> str:
    return (
        f"\n## {alert.name}\n\n```promql\n{alert.query}\n```\n\n"
        f"{alert.means}\n\n**Look.** {alert.look}\n\n**Fix.** {alert.fix}\n"
    )

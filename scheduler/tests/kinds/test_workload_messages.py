"""Scope: the messages about workloads that are refused, in kube-apiserver's words.

A table of objects and messages, read from the rules and table tests of kube-apiserver 1.36.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.tests.kinds.builders import create_errors

ROWS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("workload_messages.yaml").read_text()
)


def workload(row: dict[str, Any]) -> dict[str, Any]:
    """Return the object of a row."""
    pods = {"containers": [{"name": "c", "image": "x"}], **row.get("pods", {})}
    spec: dict[str, Any] = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": pods}}
    if row["kind"] == "Job":
        pods.setdefault("restartPolicy", "Never")
        spec |= {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}
    elif row["kind"] != "ReplicationController":
        spec["selector"] = {"matchLabels": {"a": "b"}}
    if "rule" in row:
        spec |= {"completionMode": "Indexed", "completions": 5}
        spec["successPolicy"] = {"rules": [row["rule"]]}
    return {
        "apiVersion": {"Job": "batch/v1", "ReplicationController": "v1"}.get(
            row["kind"], "apps/v1"
        ),
        "kind": row["kind"],
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {**spec, **row.get("spec", {})},
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['kind']}: {row['message']}"[:90])
def test_a_workload_is_refused_in_the_words_of_kube_apiserver(row: dict[str, Any]) -> None:
    assert create_errors(row["kind"].lower() + "s", workload(row)) == [row["message"]]

"""Traces of a real sandbox at a collector: joined to the server's calls, and in nobody's way."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from scheduler.tests.observe.traces.test_otlp import Collector, collecting
from tests.scenarios.test_example_extender import extender

pytestmark = pytest.mark.slow

CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: "%s", filterVerb: filter, prioritizeVerb: prioritize, weight: 1}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
tracing: {endpoint: "%s", samplingRatePerMillion: 1000000}
"""
SECONDS_MAX = 60.0


def traces(collector: Collector) -> dict[str, list[Any]]:
    """The spans of each trace whose attempt bound a pod, by the name of the pod."""
    found: dict[bytes, list[Any]] = {}
    names: dict[str, bytes] = {}
    for span in collector.spans:
        found.setdefault(span.trace_id, []).append(span)
        told = {each.key: each.value.string_value for each in span.attributes}
        if told.get("moorage.end") == "bound":
            names[told["k8s.pod.name"]] = span.trace_id
    return {name: found[trace] for name, trace in names.items()}


def moorage(up: Up, *words: str) -> str:
    command = [sys.executable, "-m", "moorage", *words, "--kubeconfig", str(up.kubeconfig)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def bound(up: Up, count: int) -> None:
    """Create pods and wait until all have a node."""
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"d{count}"}}
    labels = {"app": f"d{count}"}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": pod}
    path = up.directory / "deployment.json"
    path.write_text(json.dumps({**body, "spec": spec}))
    moorage(up, "apply", "-f", str(path))
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        listed = json.loads(moorage(up, "get", "pods", "-l", f"app=d{count}", "-o", "json"))
        nodes = [each["spec"].get("nodeName") for each in listed["items"]]
        if len(nodes) == count and all(nodes):
            return
    raise AssertionError(f"not all bound: {nodes}")


def test_a_pods_trace_is_whole_and_a_collector_that_goes_away_holds_up_no_pod(
    tmp_path: Path,
) -> None:
    audit = tmp_path / "audit.log"
    with extender() as asked, collecting() as collector:
        config = tmp_path / "scheduler.yaml"
        config.write_text(CONFIG % (asked.url, collector.endpoint))
        words = ["--nodes", "3", "--empty", "--config", str(config), "--audit-log", str(audit)]
        with Up(tmp_path, *words) as up:
            metrics = up.started().until("scheduler metrics at").split()[3]
            bound(up, 3)
            end = time.monotonic() + SECONDS_MAX
            while len(traces(collector)) < 3 and time.monotonic() < end:
                moorage(up, "get", "nodes")
            parents = {
                event["objectRef"]["name"]: event["annotations"]["moorage.dev/traceparent"]
                for event in map(json.loads, audit.read_text().splitlines())
                if event.get("objectRef", {}).get("subresource") == "binding"
            }
            found = traces(collector)
            assert len(found) == 3
            for name, spans in found.items():
                by_id = {span.span_id: span for span in spans}
                roots = [span for span in spans if span.parent_span_id not in by_id]
                assert [span.name for span in roots] == ["schedule pod"]
                above = {
                    span.name: by_id[span.parent_span_id].name for span in spans if span != roots[0]
                }
                assert above["extender POST"] == "decide"
                assert above["Filter"] == "decide"
                assert above["API POST"] == "Bind"
                (call,) = [span for span in spans if span.name == "API POST"]
                assert parents[name] == f"00-{call.trace_id.hex()}-{call.span_id.hex()}-01"
                extender_calls = [span for span in spans if span.name == "extender POST"]
                assert len(extender_calls) == 2
            # The collector ends: pods go on being bound, and the spans are counted.
            collector.shutdown()
            collector.server_close()
            bound(up, 20)
            insecure = ssl._create_unverified_context()
            while time.monotonic() < end + SECONDS_MAX:
                with urllib.request.urlopen(metrics, context=insecure) as page:
                    told = page.read().decode()
                if 'moorage_trace_spans_total{result="refused"} 0.0' not in told:
                    break
            assert 'moorage_trace_spans_total{result="refused"}' in told
            assert 'moorage_trace_spans_total{result="dropped"} 0.0' in told

"""A scheduler that tells everything: no secret in log lines, conditions, Events, metrics, spans."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from moorage import Sandbox
from sandbox.tests.sandbox.test_scraping import CONFIG, ROLES, read, scheduler, token_of
from scheduler.tests.observe.traces.test_otlp import collecting

pytestmark = pytest.mark.slow

MORE = """
extenders:
- {urlPrefix: "http://me:extenders-password@127.0.0.1:1/x", filterVerb: filter}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
tracing: {endpoint: "%s", samplingRatePerMillion: 1000000}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  schedulerName: second
  containers: [{name: c, image: x}]
"""
SECONDS_MAX = 60.0


def test_no_secret_leaves_a_scheduler_that_tells_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=collectors-password")
    with collecting() as collector, Sandbox(arguments=["--rbac"]) as sandbox:
        sandbox.apply(ROLES)
        token = token_of("prometheus", sandbox.kubeconfig)
        own = sandbox.kubeconfig.with_name(f"{sandbox.kubeconfig.name}-scheduler")
        (user,) = yaml.safe_load(own.read_text())["users"]
        key = user["user"]["client-key-data"]
        get = [sys.executable, "-m", "moorage", "get", "-o", "json"]
        get += ["--kubeconfig", str(sandbox.kubeconfig)]

        def got(*words: str) -> str:
            done = subprocess.run([*get, *words], check=True, capture_output=True, text=True)
            return done.stdout

        with scheduler(tmp_path, own, CONFIG + MORE % collector.endpoint) as address:
            sandbox.apply(POD)
            end = time.monotonic() + SECONDS_MAX
            told = ""
            while ("FailedScheduling" not in told or not collector.bodies) and (
                time.monotonic() < end
            ):
                told = got("pods", "p") + got("events")
            trusting = tmp_path / "certs" / "kube-scheduler.crt"
            status, metrics = read(f"{address}/metrics", trusting=trusting, token=token)
            assert status == 200
    log = (tmp_path / "log").read_text()
    # What must be told, so that the search below is not one in empty texts.
    assert "POST http://127.0.0.1:1/x/filter: no connection" in log
    assert "POST http://127.0.0.1:1/x/filter: no connection" in told
    assert b"schedule pod" in b"".join(collector.bodies)
    everything = [log, told, metrics, *(body.decode("latin-1") for body in collector.bodies)]
    for secret in ("extenders-password", "collectors-password", token, key):
        assert [text for text in everything if secret in text] == []

"""``moorage group-controller``: its whole way against a sandbox without these controllers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type
from tests.scenarios.gangs import of_object, pod_group

SECONDS_MAX = 60.0


@pytest.mark.slow
def test_it_keeps_the_status_of_a_group_until_sigterm(
    bare: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = "--no-controllers=podgroup-controller,elasticquota-controller"
    with Up(tmp_path, "--nodes", "1", "--empty", "--groups", left_out) as up:
        up.started()
        monkeypatch.setenv("KUBECONFIG", str(up.kubeconfig))
        for obj in (pod_group(least=2), of_object("a"), of_object("b")):
            assert bare("apply", "-f", "-", stdin=json.dumps(obj)).exit_code == 0
        command = [sys.executable, "-m", "moorage.cli.main", "group-controller"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            end, phase = time.monotonic() + SECONDS_MAX, None
            while phase != "Running" and time.monotonic() < end:
                shown = bare("get", "podgroups.scheduling.x-k8s.io", "g", "-o", "json")
                phase = json.loads(shown.stdout).get("status", {}).get("phase")
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=SECONDS_MAX)
        finally:
            process.kill()
            process.wait()
    assert (phase, process.returncode) == ("Running", 0)
    assert out.startswith("keeping the status of PodGroups and ElasticQuotas of https://127.0.0.1:")

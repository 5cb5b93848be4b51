"""A real kubectl drains a node of a real ``moorage up``: budgets are asked, and obeyed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.tests.sandbox.process import Up
from tests.kubectl.test_transcript import Kubectl

PODS = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, labels: {app: web}, annotations: {moorage.dev/stop-seconds: "0.1"}}
spec: {nodeName: node-01, containers: [{name: main, image: "nginx:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}, annotations: {moorage.dev/stop-seconds: "0.1"}}
spec: {nodeName: node-01, containers: [{name: main, image: "nginx:1"}]}
"""
DRAIN = ("drain", "node-01", "--force", "--timeout=30s")


@pytest.mark.slow
def test_a_drain_goes_as_far_as_the_budget_allows(tmp_path: Path, kubectl: Path) -> None:
    with Up(tmp_path, "--nodes", "2", "--empty", "--seed", "1") as up:
        (tmp_path / "pods.yaml").write_text(PODS)
        shell = Kubectl(kubectl, tmp_path, up.started().kubeconfig)
        shell.run("apply", "-f", "pods.yaml")
        shell.run("wait", "--for=condition=Ready", "pod", "--all", "--timeout=20s")
        shell.run("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/web")
        dry = shell.run(*DRAIN, "--dry-run=server")
        assert dry.endswith("node/node-01 drained (server dry run)\n"), dry
        assert shell.run("get", "pods", "-o", "name") == "pod/web-0\npod/web-1\n"
        stuck = _refused(shell)
        assert "Cannot evict pod as it would violate the pod's disruption budget." in stuck
        gone, left = ("web-0", "web-1") if 'pods/"web-1"' in stuck else ("web-1", "web-0")
        shell.run("wait", "--for=delete", f"pod/{gone}", "--timeout=20s")  # it stops in its time
        assert shell.run("get", "pods", "-o", "name") == f"pod/{left}\n"
        shell.run("delete", "pdb", "web")
        done = shell.run(*DRAIN)
        assert done.endswith("node/node-01 drained\n"), done
        assert shell.run("get", "pods", "-o", "name") == ""


def _refused(shell: Kubectl) -> str:
    """Drain until the last pod is refused, and stop there: kubectl tries again for ever."""
    draining = shell.watch(*DRAIN)
    assert draining.stdout is not None
    said = ""
    try:
        for line in draining.stdout:
            said += line
            if "will retry after 5s" in line:
                break
    finally:
        draining.kill()
        draining.wait(timeout=10)
        draining.stdout.close()
    return said

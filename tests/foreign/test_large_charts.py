"""A chart as large as Kueue's, JobSet's and LeaderWorkerSet's installs by kubectl and by Helm."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from sandbox.tests.sandbox.process import Up
from tests.foreign.managers.large_chart import large_chart
from tests.foreign.managers.webhooks import serving_webhooks
from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

CHART = Path(__file__).parent / "managers" / "chart.yaml"
SMALLEST = 300_000
OLD = {"apiVersion": "sets.example.com/v1alpha1", "kind": "JobSet", "spec": {"jobs": 2}}
OF_ONE_VERSION = {"apiVersion": "sets.example.com/v1", "kind": "LeaderSet", "spec": {"replicas": 2}}


@pytest.mark.slow
@pytest.mark.kubectl
def test_a_chart_with_large_definitions_installs(tmp_path):
    try:
        programs = {name: kubectl_path(RELEASES[0], program=name) for name in ("kubectl", "helm")}
    except NoKubectlError as error:
        pytest.skip(str(error))

    def run(name: str, *words: str) -> str:
        done = subprocess.run(
            [str(programs[name]), *words],
            env={"KUBECONFIG": str(up.kubeconfig), "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def play() -> None:
        """Store an old version, which is converted, and an object of a kind with one version."""
        for body in (OLD, OF_ONE_VERSION):
            file = tmp_path / f"{body['kind']}.json"
            file.write_text(json.dumps(body | {"metadata": {"name": "a"}}))
            run("kubectl", "apply", "--server-side", "-f", str(file))
        found = json.loads(run("kubectl", "get", "jobsets.v1.sets.example.com", "a", "-o", "json"))
        assert (found["apiVersion"], found["spec"]["replicas"]) == ("sets.example.com/v1", 2)
        assert run("kubectl", "get", "leadersets", "-o", "name").strip().endswith("/a")

    chart = tmp_path / "chart"
    manifests = chart / "templates" / "all.json"
    manifests.parent.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: sets, version: 0.1.0}")
    with serving_webhooks() as (port, bundle):
        address = f"sets-system/sets-webhook-service=127.0.0.1:{port}"
        with Up(tmp_path, "--empty", "--nodes", "1", "--rbac", "--webhook", address) as up:
            up.started()
            definitions = json.loads(run("kubectl", "get", "--raw", "/openapi/v2"))["definitions"]
            objects = large_chart(CHART.read_text().replace("CA_BUNDLE", bundle), definitions)
            sizes = [len(json.dumps(each)) for each in objects]
            assert sum(size >= SMALLEST for size in sizes) == 2
            listed = {"apiVersion": "v1", "kind": "List", "items": objects}
            manifests.write_text(json.dumps(listed))
            for _ in range(2):
                lines = run("kubectl", "apply", "--server-side", "-f", str(manifests)).splitlines()
                assert len(lines) == len(objects)
                assert all(line.endswith("serverside-applied") for line in lines)
            play()
            run("kubectl", "delete", "--ignore-not-found", "-f", str(manifests))
            manifests.write_text("\n---\n".join(map(json.dumps, objects)))
            assert "STATUS: deployed" in run("helm", "install", "sets", str(chart), "--wait")
            play()
            run("helm", "uninstall", "sets", "--wait")
            assert run("kubectl", "get", "customresourcedefinitions", "-o", "name") == ""

"""A small operator in each client library does against ``moorage up`` what managers do at start.

The chart is of the shape of JobSet's: a definition of two versions that a webhook converts, an
account with its rights, a lease, and webhooks whose Service stands for a program on this machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import yaml

from sandbox.tests.sandbox.process import Up
from tests.foreign.managers import plan
from tests.foreign.managers.webhooks import serving_webhooks
from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

# Untyped, as its users see it.
kube: Any = kubernetes
CHART = Path(__file__).parent / "managers" / "chart.yaml"
SECONDS_MAX = 40
PROGRAMS = {
    "lightkube": ["-m", "tests.foreign.managers.by_lightkube"],
    "kr8s": ["-m", "tests.foreign.managers.by_kr8s"],
    "kubernetes": ["-m", "tests.foreign.managers.by_kubernetes"],
    "kopf": ["-m", "kopf", "run", "--standalone", "-m", "tests.foreign.managers.by_kopf", "-n"],
}


class Platform:
    """A cluster with the chart, and what its administrator and its manager need."""

    def __init__(self, up: Up, bundle: str) -> None:
        self.up = up
        self.api = kube.config.new_client_from_config(str(up.kubeconfig))
        self.custom = kube.client.CustomObjectsApi(self.api)
        self.core = kube.client.CoreV1Api(self.api)
        text = CHART.read_text().replace("CA_BUNDLE", bundle)
        for obj in yaml.safe_load_all(text):
            kube.utils.create_from_dict(self.api, obj)

    def manager_kubeconfig(self, directory: Path) -> Path:
        """Write the kubeconfig of the manager, which has a token of its service account."""
        token = self.core.create_namespaced_service_account_token(
            "sets-controller-manager", "sets-system", {"spec": {"audiences": []}}
        ).status.token
        config = json.loads(self.up.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": token}
        path = directory / "kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def job_set(self, name: str, namespace: str, **spec: Any) -> dict[str, Any]:
        """Create a job set."""
        body = {
            "apiVersion": f"{plan.GROUP}/v1",
            "kind": plan.KIND,
            "metadata": {"name": name},
            "spec": {"replicas": 2} | spec,
        }
        made = self.custom.create_namespaced_custom_object(
            plan.GROUP, "v1", namespace, plan.PLURAL, body
        )
        assert isinstance(made, dict)
        return made


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with serving_webhooks() as (port, bundle):
        address = f"sets-system/sets-webhook-service=127.0.0.1:{port}"
        words = ("--rbac", "--nodes", "3", "--empty", "--seed", "1", "--webhook", address)
        with Up(tmp_path_factory.mktemp("managers"), *words) as up:
            platform = Platform(up.started(), bundle)
            yield platform
            platform.api.close()
            platform.api.rest_client.pool_manager.clear()


@pytest.mark.slow
@pytest.mark.parametrize("library", PROGRAMS)
def test_a_manager_runs_a_job_set_to_its_end(platform, library, tmp_path):
    platform.core.create_namespace({"metadata": {"name": library}})
    kubeconfig = str(platform.manager_kubeconfig(tmp_path))
    command = [sys.executable, *PROGRAMS[library], library]
    with subprocess.Popen(
        command,
        env={"KUBECONFIG": kubeconfig, "PATH": "", "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as manager:
        output: Any = manager.stdout
        # What it writes to stderr is shown where the test fails, and must not fill the pipe.
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(manager.stderr or ()), daemon=True)
        reader.start()
        watchdog = threading.Timer(SECONDS_MAX, manager.kill)
        watchdog.start()
        try:
            assert json.loads(output.readline() or "[]") == ["leads"], errors
            made = platform.job_set("train", library)
            assert made["spec"]["successPolicy"] == {"operator": "All"}
            assert json.loads(output.readline() or "[]") == ["completed", "train"], errors
        finally:
            watchdog.cancel()
            manager.terminate()
            manager.communicate()
    found = platform.custom.get_namespaced_custom_object(
        plan.GROUP, "v1alpha1", library, plan.PLURAL, "train"
    )
    assert (found["spec"]["jobs"], "replicas" in found["spec"]) == (2, False)
    assert found["status"]["succeeded"] == 2
    assert found["status"]["conditions"][0]["type"] == "Completed"


@pytest.mark.slow
def test_a_webhook_of_the_flag_refuses_a_write(platform):
    with pytest.raises(kube.client.ApiException) as refused:
        platform.job_set("none", "default", replicas=0)
    message = json.loads(refused.value.body)["message"]
    assert message == (
        'admission webhook "vjobset.kb.io" denied the request: replicas must be positive'
    )


@pytest.mark.slow
def test_the_job_of_a_job_set_goes_with_it(platform):
    job_set = platform.job_set("short", "default")
    batch = kube.client.BatchV1Api(platform.api)
    made = batch.create_namespaced_job("default", plan.job_of(job_set))
    platform.custom.delete_namespaced_custom_object(
        plan.GROUP, "v1alpha1", "default", plan.PLURAL, "short"
    )
    events = kube.watch.Watch().stream(
        batch.list_namespaced_job,
        "default",
        resource_version=made.metadata.resource_version,
        timeout_seconds=SECONDS_MAX,
    )
    assert "DELETED" in (event["type"] for event in events)


@pytest.mark.slow
@pytest.mark.kubectl
def test_kubectl_and_helm_install_the_chart(tmp_path):
    """Server-side, and once more without a change; helm as a release of its own."""
    try:
        programs = {name: kubectl_path(RELEASES[0], program=name) for name in ("kubectl", "helm")}
    except NoKubectlError as error:
        pytest.skip(str(error))
    chart = tmp_path / "chart"
    manifests = chart / "templates" / "all.yaml"
    manifests.parent.mkdir(parents=True)
    with serving_webhooks() as (_, bundle), Up(tmp_path, "--empty", "--nodes", "1") as up:
        manifests.write_text(CHART.read_text().replace("CA_BUNDLE", bundle))
        (chart / "Chart.yaml").write_text("{apiVersion: v2, name: sets, version: 0.1.0}")
        up.started()
        environment = {"KUBECONFIG": str(up.kubeconfig), "HOME": str(tmp_path)}

        def run(name: str, *words: str) -> list[str]:
            done = subprocess.run(
                [str(programs[name]), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout.splitlines()

        apply = ("apply", "--server-side", "-f", str(manifests))
        for _ in range(2):
            lines = run("kubectl", *apply)
            assert len(lines) == 10
            assert all(line.endswith("serverside-applied") for line in lines)
        run("kubectl", "delete", "--ignore-not-found", "-f", str(manifests))
        assert "STATUS: deployed" in run("helm", "install", "sets", str(chart))

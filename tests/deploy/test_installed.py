"""What deploy/ holds, applied by a real kubectl to a sandbox under roles, and a scheduler in it.

The sandbox runs no containers: the scheduler runs beside it, with the configuration of the chart
and a token of the chart's service account. Not covered: a kubelet, an image, a real network.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage import Sandbox
from sandbox.tests.sandbox.test_scraping import read, scheduler, token_of
from tests.deploy.chart import CHART, MANIFESTS, PLAIN, ROOT, helm, kept, objects
from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]

READERS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: moorage}
"""
Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(nodes=3, arguments=["--rbac"]) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(sandbox: Sandbox) -> Kubectl:
    """Run kubectl as the administrator, and return what it prints."""
    try:
        program = kubectl_path(RELEASES[0])
    except NoKubectlError as error:
        pytest.skip(str(error))

    def run(*words: str) -> str:
        command = [str(program), "--kubeconfig", str(sandbox.kubeconfig), *words]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def installed(kubectl: Kubectl) -> None:
    """Apply the manifest of a second scheduler."""
    kubectl("apply", "-f", str(MANIFESTS / "second-scheduler.yaml"))


def kubeconfig_of(token: str, sandbox: Sandbox, folder: Path) -> Path:
    """Return a kubeconfig of a user with a token."""
    whole: Any = json.loads(sandbox.kubeconfig.read_text())
    for user in whole["users"]:
        user["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(whole))
    return path


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_kubectl_applies_a_manifest_and_a_second_time_changes_nothing(
    name: str, kubectl: Kubectl, installed: None
) -> None:
    file = str(MANIFESTS / name)
    kubectl("apply", "-f", file)
    lines = kubectl("apply", "-f", file).splitlines()
    assert len(lines) == len(objects(kept(name)))
    # kubectl always sends selectors in lists and those of budgets; nothing comes of it.
    changed = {line.partition("/")[0] for line in lines if not line.endswith("unchanged")}
    assert changed <= {"poddisruptionbudget.policy", "deployment.apps"}
    words = ("get", "-f", file, "-o", "jsonpath={.items[*].metadata.generation}")
    before = kubectl(*words)
    kubectl("apply", "-f", file)
    assert kubectl(*words) == before


def test_the_static_pod_is_one_that_a_server_takes(kubectl: Kubectl) -> None:
    file = str(ROOT / "deploy/static-pod/kube-scheduler.yaml")
    assert kubectl("apply", "--dry-run=server", "-f", file) == (
        "pod/kube-scheduler created (server dry run)\n"
    )


def test_the_replicas_come_up_apart_and_one_of_them_may_be_drained(
    kubectl: Kubectl, installed: None
) -> None:
    kubectl("rollout", "status", "deployment/moorage", "-n", "moorage", "--timeout=50s")
    found = json.loads(kubectl("get", "pods", "-n", "moorage", "-o", "json"))["items"]
    assert len({each["spec"]["nodeName"] for each in found}) == 2
    waited = "--for=jsonpath={.status.disruptionsAllowed}=1"
    kubectl("wait", "pdb/moorage", "-n", "moorage", waited, "--timeout=50s")


def test_the_scheduler_works_with_the_rights_of_its_service_account(
    sandbox: Sandbox, kubectl: Kubectl, installed: None, tmp_path: Path
) -> None:
    (config,) = [
        each["data"]["scheduler.yaml"]
        for each in objects(kept("second-scheduler.yaml"))
        if each["kind"] == "ConfigMap"
    ]
    sandbox.apply(READERS)
    own = token_of("moorage", sandbox.kubeconfig, namespace="moorage")
    reader = token_of("prometheus", sandbox.kubeconfig, namespace="moorage")
    with scheduler(tmp_path, kubeconfig_of(own, sandbox, tmp_path), config) as address:
        trusting = tmp_path / "certs" / "kube-scheduler.crt"
        page = f"{address}/metrics"
        for path in ("livez", "healthz", "readyz"):
            assert read(f"{address}/{path}", trusting=trusting) == (200, "ok")
        kubectl("run", "p", "--image=a:1", '--overrides={"spec":{"schedulerName":"moorage"}}')
        kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=50s")
        assert read(page, trusting=trusting, token=reader)[0] == 403
        metrics = ["--set", "metrics.readers[0].kind=ServiceAccount"]
        metrics += ["--set", "metrics.readers[0].name=prometheus"]
        metrics += ["--set", "metrics.readers[0].namespace=moorage"]
        made = helm("template", "reader", str(CHART), "--namespace", "moorage", *metrics)
        sandbox.apply(made.stdout)
        # A refusal is kept for ten seconds: another token asks anew.
        reader = token_of("prometheus", sandbox.kubeconfig, namespace="moorage")
        assert read(f"{page}/slis", trusting=trusting, token=reader)[0] == 200
        # Without the roles about callers, nobody is known or has a right.
        kubectl("delete", "clusterrolebinding", "moorage-callers")
        stranger = token_of("default", sandbox.kubeconfig, namespace="moorage")
        assert read(page, trusting=trusting, token=stranger)[0] == 401
        assert read(f"{address}/configz", trusting=trusting, token=reader)[0] == 500
    log = (tmp_path / "log").read_text()
    assert 'Successfully bound pod to node" pod="default/p"' in log
    keys = [token.rpartition(".")[2] for token in (own, reader, stranger)]
    assert [key for key in keys if key in log] == []


def test_callers_are_looked_up_only_with_the_role_about_authorities(
    sandbox: Sandbox, kubectl: Kubectl, installed: None
) -> None:
    reading = ["auth", "can-i", "get", "configmaps/extension-apiserver-authentication"]
    reading += ["-n", "kube-system", "--as", "system:serviceaccount:moorage:moorage"]
    assert kubectl(*reading) == "yes\n"
    kubectl("delete", "rolebinding", "moorage-callers", "-n", "kube-system")
    with pytest.raises(AssertionError, match=r"^no\n"):
        kubectl(*reading)

"""A release of the chart by a real Helm: its plugin decides, its readers ask, and its test passes.

The sandbox runs no containers: the scheduler runs next to it, with the arguments that the chart
gives its container, the files of the chart's ConfigMaps, and the rights of its service account.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage import Sandbox
from moorage.base.clock import SystemClock
from sandbox.tests.sandbox.test_scraping import read, token_of
from tests.deploy.chart import CHART, ROOT, helm
from tests.deploy.test_installed import kubeconfig_of
from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

pytestmark = [pytest.mark.slow, pytest.mark.kubectl, pytest.mark.timeout(240)]

VALUES = {
    "profiles": [
        {
            "schedulerName": "acme",
            "plugins": {"multiPoint": {"enabled": [{"name": "KeepHeadroom"}]}},
            "pluginConfig": [{"name": "KeepHeadroom", "args": {"cpuPercent": 25}}],
        }
    ],
    "plugins": {"load": ["headroom.py:KeepHeadroom"]},
    "questions": {"readers": [{"kind": "ServiceAccount", "name": "reader", "namespace": "acme"}]},
    "rights": {
        "rules": [
            {"apiGroups": ["example.com"], "resources": ["racks"], "verbs": ["list", "watch"]}
        ]
    },
}
ACCOUNTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: acme}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: acme}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader-views}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: ServiceAccount, name: reader, namespace: acme}
"""


def pod(name: str, scheduler: str, cpu: str) -> str:
    """Return a pod that asks for cpu, and for a scheduler."""
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: acme}}
spec:
  schedulerName: {scheduler}
  containers:
  - {{name: a, image: "a:1", resources: {{requests: {{cpu: "{cpu}"}}}}}}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(nodes=1, arguments=["--rbac"]) as running:
        yield running


@pytest.fixture(scope="module")
def release(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Install the release, and return the arguments of Helm that name its cluster and namespace."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "values.yaml").write_text(json.dumps(VALUES))
    where = ["--kubeconfig", str(sandbox.kubeconfig), "--namespace", "acme"]
    plugin = ROOT / "examples" / "plugins" / "keep_headroom.py"
    words = ["install", "acme", str(CHART), *where, "--create-namespace"]
    words += ["--values", str(folder / "values.yaml")]
    done = helm(*words, "--set-file", rf"plugins.files.headroom\.py={plugin}")
    assert done.returncode == 0, done.stderr
    assert "helm test acme -n acme" in done.stdout
    assert "schedulerName: acme" in done.stdout
    sandbox.apply(ACCOUNTS)
    return where


def got(sandbox: Sandbox, *words: str) -> Any:
    """Return what kubectl gets."""
    try:
        program = kubectl_path(RELEASES[0])
    except NoKubectlError as error:
        pytest.skip(str(error))
    command = [str(program), "--kubeconfig", str(sandbox.kubeconfig), "-n", "acme", "get", *words]
    done = subprocess.run(
        [*command, "-o", "json"], capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def command_of(sandbox: Sandbox, folder: Path) -> list[str]:
    """Return what the container of the release runs, with its files and its service account."""
    spec = got(sandbox, "deployment", "acme-moorage")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    sources = {each["name"]: each["configMap"]["name"] for each in spec["volumes"]}
    arguments = list(container["args"])
    for mount in container["volumeMounts"]:
        target = folder / mount["name"]
        target.mkdir()
        for name, text in got(sandbox, "configmap", sources[mount["name"]])["data"].items():
            (target / name).write_text(text)
        path = f"{mount['mountPath']}/"
        arguments = [each.replace(path, f"{target}/") for each in arguments]
    own = token_of(spec["serviceAccountName"], sandbox.kubeconfig, namespace="acme")
    kubeconfig = kubeconfig_of(own, sandbox, folder)
    arguments += ["--bind-address=127.0.0.1", f"--cert-dir={folder / 'certs'}"]
    for flag in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"):
        arguments.append(f"--{flag}={kubeconfig}")
    return [sys.executable, "-m", "moorage", *arguments]


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[str]:
    """Run the scheduler on a free port; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [each.replace("--secure-port=10259", f"--secure-port={port}") for each in command]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            yield f"https://127.0.0.1:{port}"
        finally:
            process.terminate()


def test_a_release_places_decides_and_answers(
    sandbox: Sandbox, release: list[str], tmp_path: Path
) -> None:
    with running(command_of(sandbox, tmp_path), tmp_path) as address:
        # The test's pod is one that only this scheduler places.
        tested = helm("test", "acme", *release, "--timeout", "90s")
        assert tested.returncode == 0, tested.stdout + tested.stderr
        assert "Phase:          Succeeded" in tested.stdout

        free = got(sandbox, "nodes")["items"][0]["status"]["allocatable"]["cpu"]
        sandbox.apply(pod("filler", "default-scheduler", str(int(free) - 1)))
        sandbox.wait_settled()
        sandbox.apply(pod("small", "acme", "100m"))
        clock = SystemClock()
        end = clock.monotonic_ns() + 60 * 10**9
        message = ""
        while "cpu is free" not in message and clock.monotonic_ns() < end:
            conditions = got(sandbox, "pod", "small")["status"].get("conditions", [])
            message = " ".join(each.get("message", "") for each in conditions)
        assert "less than 25 % of the cpu is free" in message

        trusting = tmp_path / "certs" / "kube-scheduler.crt"
        question = f"{address}/moorage/v1/queue"
        reader, stranger = (
            token_of(name, sandbox.kubeconfig, namespace="acme") for name in ("reader", "stranger")
        )
        status, text = read(question, trusting=trusting, token=reader)
        assert (status, "small" in text) == (200, True)
        assert read(question, trusting=trusting, token=stranger)[0] == 403


def test_a_plugin_that_cannot_be_loaded_keeps_the_container_from_starting(
    sandbox: Sandbox, release: list[str], tmp_path: Path
) -> None:
    words = ["upgrade", "acme", str(CHART), *release, "--reset-then-reuse-values"]
    broken = tmp_path / "broken.py"
    broken.write_text("raise LookupError('no racks')\n")
    done = helm(*words, "--set-file", rf"plugins.files.headroom\.py={broken}")
    assert done.returncode == 0, done.stderr
    ended = subprocess.run(
        command_of(sandbox, tmp_path), capture_output=True, text=True, timeout=60, check=False
    )
    # It ends before it serves anything, so no replica becomes ready.
    assert ended.returncode == 2
    assert "LookupError: no racks" in ended.stderr

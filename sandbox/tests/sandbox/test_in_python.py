"""``moorage.Sandbox`` and the fixtures of pytest, used as a program and a test use them."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

import moorage
from moorage import Sandbox
from moorage.base.errors import MoorageError, UsageError
from moorage_sandbox.sandbox.in_python import PodRecord

pytestmark = pytest.mark.slow

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: small}
spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: large, namespace: kube-system}
  spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: "100"}}}]}
"""
TESTS = """
import pytest

def test_a(moorage_session_sandbox):
    moorage_session_sandbox.apply({"apiVersion": "v1", "kind": "Namespace",
                                   "metadata": {"name": "shared"}})

def test_b(moorage_session_sandbox, moorage_sandbox):
    assert moorage_session_sandbox.url != moorage_sandbox.url

@pytest.mark.moorage_sandbox(nodes=1, samples=True)
def test_c(moorage_sandbox):
    moorage_sandbox.wait_settled()
    assert {pod.node for pod in moorage_sandbox.pods()} == {"node-01", ""}
"""


def children() -> set[int]:
    """Return the processes below this one; other tests in this process may have some."""
    return {each.pid for each in psutil.Process().children(recursive=True)}


def test_a_program_applies_waits_and_reads() -> None:
    before = children()
    with Sandbox(nodes=2) as sandbox:
        assert sandbox.url.startswith("https://127.0.0.1:")
        assert sandbox.kubeconfig.is_file()
        sandbox.apply(PODS)
        sandbox.wait_settled()
        large, small = sorted(sandbox.pods(), key=lambda pod: pod.name)
        assert (small.namespace, small.state, small.node[:5]) == ("default", "running", "node-")
        assert large == PodRecord(
            namespace="kube-system",
            name="large",
            phase="Pending",
            state="unschedulable",
            message=large.message,
            scheduler="default-scheduler",
        )
        assert large.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert sandbox.pods("kube-system") == [large]
        with pytest.raises(UsageError, match="v1 Nothing: no built-in kind"):
            sandbox.apply({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "n"}})
        kubeconfig = sandbox.kubeconfig
    assert not kubeconfig.exists()
    assert children() == before
    with pytest.raises(UsageError, match="this sandbox does not run"):
        sandbox.pods()


async def test_a_coroutine_applies_waits_and_reads() -> None:
    async with Sandbox(nodes=1) as sandbox:
        await sandbox.apply(PODS)
        more = {
            "metadata": {"name": "third"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await sandbox.apply({"apiVersion": "v1", "kind": "PodList", "items": [more]})
        await sandbox.wait_settled()
        states = {pod.name: pod.state for pod in await sandbox.pods()}
        assert states == {"small": "running", "large": "unschedulable", "third": "running"}


def test_a_failed_start_raises_with_the_reason() -> None:
    before = children()
    with (
        pytest.raises(MoorageError, match=r"error: .*nowhere\.py"),
        Sandbox(plugins=["nowhere.py:p"]),
    ):
        pass
    assert children() == before


def test_importing_moorage_imports_nothing_but_its_version() -> None:
    code = "import sys, moorage; print([m for m in sys.modules if m.startswith('moorage.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['moorage.base', 'moorage.base.version']\n"
    assert "Sandbox" in dir(moorage)


def test_the_fixtures_give_a_cluster_to_a_session_and_to_a_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    names = {each.name for each in metadata.entry_points(group="pytest11")}
    plugin = [] if "moorage" in names else ["-p", "moorage_sandbox.sandbox.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr

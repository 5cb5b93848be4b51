"""A question that asks for too much is refused at once, with a limit that it says."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from moorage.base.clock import SystemClock
from moorage.cli.main import main
from moorage.what_if.answering.forks import forked
from moorage.what_if.answering.messages import Reply
from moorage.what_if.limits import Limits

NODE = """apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
"""
OWNER = """apiVersion: %s
kind: %s
metadata: {name: web, namespace: default}
spec:
  %s: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {restartPolicy: %s, containers: [{name: c, image: x}]}
"""


def asked(folder: Path, *words: str) -> str:
    (folder / "nodes.yaml").write_text(NODE)
    command = ["what-if", *words, "--from", str(folder / "nodes.yaml")]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 2, found.output
    return found.output


@pytest.mark.parametrize("count", ["20001", "2000000000"])
@pytest.mark.parametrize(
    ("version", "kind", "field"),
    [
        ("apps/v1", "Deployment", "replicas"),
        ("apps/v1", "ReplicaSet", "replicas"),
        ("apps/v1", "StatefulSet", "replicas"),
        ("batch/v1", "Job", "parallelism"),
    ],
)
def test_owners_of_too_many_pods(
    version: str, kind: str, field: str, count: str, tmp_path: Path
) -> None:
    restarts = "Never" if kind == "Job" else "Always"
    owner = tmp_path / "owner.yaml"
    text = OWNER % (version, kind, field, int(count), restarts)
    if kind == "Job":
        text = text.replace("  selector: {matchLabels: {app: web}}\n", "")
    owner.write_text(text)
    assert "makes at most 20000" in asked(tmp_path, "--apply", str(owner))


def test_owners_that_make_too_many_pods_together(tmp_path: Path) -> None:
    words = []
    for number, count in enumerate((500, 20_000)):
        owner = tmp_path / f"owner-{number}.yaml"
        text = OWNER % ("apps/v1", "Deployment", "replicas", count, "Always")
        owner.write_text(text.replace("name: web", f"name: web-{number}"))
        words += ["--apply", str(owner)]
    assert "the changes make 20500 pods (web-1" in asked(tmp_path, *words)


@pytest.mark.parametrize("count", ["2001", "1000000000", "9" * 5000])
def test_too_many_nodes(count: str, tmp_path: Path) -> None:
    assert "at most 2000 nodes" in asked(tmp_path, "--add", f"{count}xcpu=1")


IN_1_MIB = """
from moorage.cli.main import main
from moorage.what_if.limits import Limits

Limits.__init__.__kwdefaults__["memory_bytes"] = 1024 * 1024
main()
"""


def test_the_bound_of_memory_ends_an_answer_and_is_named(tmp_path: Path) -> None:
    """With 1 MiB in place of 2 GiB: 5,000 pods take more.

    In a process of its own, because this one may have memory left that earlier tests freed.
    """
    (tmp_path / "nodes.yaml").write_text(NODE)
    owner = tmp_path / "owner.yaml"
    owner.write_text(OWNER % ("apps/v1", "Deployment", "replicas", 5000, "Always"))
    words = ["what-if", "--apply", str(owner), "--from", str(tmp_path / "nodes.yaml")]
    result = subprocess.run(
        [sys.executable, "-c", IN_1_MIB, *words], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert "the limit of 1 MiB was reached" in result.stderr


def test_the_bound_of_memory_ends_the_process_of_an_answer_over_http() -> None:
    def work() -> bytes:
        # Pages of the system, as the allocator may have memory left that earlier tests freed.
        limits, taken = Limits(SystemClock(), memory_bytes=32 * 1024 * 1024), []
        for _ in range(20_000):
            page = mmap.mmap(-1, mmap.PAGESIZE)
            page[0] = 1
            taken.append(page)
            limits.check_limits()
        return b"the bound did not strike"

    assert forked(work, seconds_most=24) == Reply(503, b"the limit of 32 MiB was reached")

"""A question that asks for too much is refused at once, with a limit that it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from moorage.cli.main import main

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
    for number in range(3):
        owner = tmp_path / f"owner-{number}.yaml"
        text = OWNER % ("apps/v1", "Deployment", "replicas", 7000, "Always")
        owner.write_text(text.replace("name: web", f"name: web-{number}"))
        words += ["--apply", str(owner)]
    assert "the changes make 21000 pods (web-2" in asked(tmp_path, *words)


@pytest.mark.parametrize("count", ["2001", "1000000000", "9" * 5000])
def test_too_many_nodes(count: str, tmp_path: Path) -> None:
    assert "at most 2000 nodes" in asked(tmp_path, "--add", f"{count}xcpu=1")

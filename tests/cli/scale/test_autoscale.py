"""``moorage up --autoscale`` with all its processes, over HTTPS."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type

pytestmark = pytest.mark.slow

PODS = "\n---\n".join(
    f"""
apiVersion: v1
kind: Pod
metadata: {{name: p{number}}}
spec:
  containers:
  - {{name: main, image: app, resources: {{requests: {{cpu: "3"}}}}}}
"""
    for number in range(3)
)


def until(look: Callable[[], Any], wanted: Any, *, tries: int = 300) -> None:
    timer = threading.Event()
    for _ in range(tries):
        if (seen := look()) == wanted:
            return
        timer.wait(0.1)
    raise AssertionError(f"saw {seen}, not {wanted}")


def test_nodes_come_for_pods_and_go_after_them(
    bare: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--autoscale", "1:3", "--autoscale-idle", "5s", "--shape", "cpu=4", "--empty")
    with Up(tmp_path, *options, "--speed", "5") as up:
        monkeypatch.setenv("KUBECONFIG", str(up.started().kubeconfig))

        def named(kind: str) -> list[str]:
            found = json.loads(bare("get", kind, "-o", "json").stdout)["items"]
            return [each["metadata"]["name"] for each in found]

        def placed() -> int:
            found = json.loads(bare("get", "pods", "-o", "json").stdout)["items"]
            return sum("nodeName" in each["spec"] for each in found)

        assert named("nodes") == ["node-01"]
        assert bare("apply", "-f", "-", stdin=PODS).exit_code == 0
        until(placed, 3)
        assert named("nodes") == ["node-01", "node-02", "node-03"]
        status = [sys.executable, "-m", "moorage", "status"]
        shown = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "nodes:      3, autoscaled 1:3\n" in shown.stdout
        assert bare("top").stdout.startswith("nodes: 3, autoscaled 1:3\n")
        told = json.loads(bare("top", "-o", "json").stdout)
        assert (told["nodes"], told["autoscale"]) == (3, "1:3")
        assert bare("delete", "pods", "--all").exit_code == 0
        # Which node stays depends on the pod that ends first: nodes are due after one real second.
        until(lambda: len(named("nodes")), 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(["--autoscale", "5"], "5: write MIN:MAX", id="no bounds"),
        pytest.param(
            ["--autoscale", "1:3", "--nodes", "4"],
            "--nodes 4 is more than --autoscale 1:3 allows",
            id="more nodes than allowed",
        ),
        pytest.param(
            ["--autoscale", "1:3", "--autoscale-idle", "x"], "x: ", id="an idle time that is none"
        ),
        pytest.param(
            ["--autoscale", "1:3", "--single-process"],
            "--autoscale needs a process of its own",
            id="in a single process",
        ),
    ],
)
def test_options_that_do_not_agree(bare: Type, words: list[str], told: str) -> None:
    result = bare("up", "--no-scheduler", "--empty", *words)
    assert result.exit_code == 2
    assert told in result.stderr

"""The life of a sandbox as a person leads it: in the background, by name, waited for, ended."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sandbox.tests.sandbox.process import Up

pytestmark = pytest.mark.slow


class Shell:
    """Types commands in a directory, with a home of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.env = {**os.environ, "HOME": str(directory)}

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "moorage", *words],
            cwd=self.directory,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    yield found
    found("down", "--all")


def test_a_sandbox_in_the_background_is_waited_for_looked_at_and_ended(shell: Shell) -> None:
    started = shell("up", "-d", "--nodes", "2", "--seed", "1").stdout.splitlines()
    assert started[0].startswith("API server at https://127.0.0.1:")
    assert started[2] == f"    export KUBECONFIG={shell.directory}/.moorage/kubeconfig"
    told = [line.partition(" at ")[0] for line in started]
    assert {"scheduler metrics", "page"} <= {*told}
    settled = shell("wait", "--for=settled").stdout
    assert settled.startswith("settled: 30 pods: ")
    assert "pending" not in settled

    (found,) = json.loads(shell("status", "-o", "json").stdout)["sandboxes"]
    assert (found["state"], found["nodes"], found["served"]) == ("ready", 2, ["default-scheduler"])
    assert "default/giant" in [each["pod"] for each in found["waiting"]]
    text = shell("status").stdout
    assert f"url:        {found['url']}\n" in text
    row, why = text.partition(" default/pod/giant ")[2].splitlines()[:2]
    assert row.split() == ["unschedulable", "InsufficientCPU"]
    assert why.strip().startswith("0/2 nodes are available: ")

    assert shell("wait", "--for=ready").stdout == f"ready: {found['url']}\n"
    assert shell("down").stdout == f"ended: sandbox at {found['url']}\n"
    assert "no sandbox runs in this directory" in shell("status", code=1).stderr
    assert (shell.directory / ".moorage" / "kubeconfig-log").read_text() == "stopped\n"


def test_metrics_and_health_are_served_on_a_free_port(shell: Shell) -> None:
    shell("up", "-d", "--nodes", "1", "--empty", "-o", "quiet")
    (found,) = json.loads(shell("status", "-o", "json").stdout)["sandboxes"]
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def read(path: str) -> str:
        url = found["health"] + path
        with urllib.request.urlopen(url, context=context, timeout=5) as answer:
            return str(answer.read().decode())

    assert read("/readyz") == "ok"
    assert "scheduler_schedule_attempts_total" in read("/metrics")


def test_a_second_sandbox_in_the_same_folder_is_refused(shell: Shell) -> None:
    shell("up", "-d", "--nodes", "1", "--empty", "-o", "quiet")
    before = (shell.directory / ".moorage" / "kubeconfig").read_text()
    for words in (["up"], ["up", "-d"]):
        told = shell(*words, "--nodes", "1", code=2).stderr
        assert told.startswith("error: the sandbox of this folder runs already (process ")
    assert (shell.directory / ".moorage" / "kubeconfig").read_text() == before
    shell("up", "-d", "--nodes", "1", "--empty", "-o", "quiet", "--name", "blue")
    found = json.loads(shell("status", "-o", "json").stdout)["sandboxes"]
    assert [each["name"] for each in found] == ["", "blue"]
    assert shell("down", "--name", "blue").stdout == f"ended: sandbox blue at {found[1]['url']}\n"
    assert len(json.loads(shell("status", "-o", "json").stdout)["sandboxes"]) == 1


def test_the_users_kubeconfig_has_a_context_while_the_sandbox_runs(shell: Shell) -> None:
    own = shell.directory / ".kube" / "config"
    started = shell("up", "-d", "--nodes", "1", "--empty", "--merge-kubeconfig", "--name", "blue")
    assert "    kubectl --context moorage-blue get nodes" in started.stdout.splitlines()
    assert yaml.safe_load(own.read_text())["current-context"] == "moorage-blue"
    assert shell("get", "nodes").stdout.splitlines()[1].startswith("node-01 ")
    shell("down", "--all")
    assert yaml.safe_load(own.read_text())["contexts"] == []


def test_a_failed_background_start_is_reported_by_the_command(shell: Shell) -> None:
    told = shell("up", "-d", "--plugin", "nowhere.py:p", code=2).stderr
    assert told.startswith("error: ")
    assert "nowhere.py" in told
    assert "no sandbox runs" in shell("wait", "--for=ready", "--timeout", "0", code=1).stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(
            ["up", "-d", "--exit-when-settled"],
            2,
            "--detach returns once pods are scheduled; `moorage wait --for=settled` waits further",
            id="two ways to wait",
        ),
        pytest.param(
            ["up", "--name", "A b"],
            2,
            "--name A b: write lower case letters, digits and dashes",
            id="a name that is none",
        ),
        pytest.param(
            ["up", "-d", "--name", "X", "--kubeconfig-out", "F"],
            2,
            "--name X: write lower case letters, digits and dashes",
            id="a name that is none, with a kubeconfig elsewhere",
        ),
        pytest.param(["down"], 0, "no sandbox to end", id="nothing to end"),
        pytest.param(
            ["down", "--name", "red"],
            1,
            "no sandbox red runs in this directory; `moorage up -d --name red` starts one",
            id="nothing of this name to end",
        ),
    ],
)
def test_faulty_options_are_reported(
    shell: Shell, words: list[str], code: int, message: str
) -> None:
    assert message in shell(*words, code=code).stderr


def test_waiting_for_decisions_without_a_scheduler_is_refused(shell: Shell, tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "1", "--empty", "--no-scheduler") as up:
        up.started()
        told = shell("wait", "--for=settled", code=1).stderr
        assert told == "error: the sandbox has no scheduler, so that no pod is decided\n"

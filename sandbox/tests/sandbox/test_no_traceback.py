"""What a newcomer does to a sandbox that starts: interrupts it, stops reading, breaks a plugin."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.tests.sandbox.process import START_SECONDS_MAX, Up, alive

pytestmark = pytest.mark.slow

BROKEN = """
from moorage import plugin

@plugin.score
def broken(pod, node):
    raise ValueError("nothing fits together")
"""


@pytest.mark.parametrize(
    "when",
    [
        pytest.param("server_process", id="the server was just started"),
        pytest.param("API server at", id="the nodes are there"),
        pytest.param("ready in", id="pods are scheduled"),
    ],
)
def test_ctrl_c_ends_a_start_in_order(tmp_path: Path, when: str) -> None:
    with Up(tmp_path, "--nodes", "2") as up:
        if " " in when:
            up.until(when)
        else:
            up.member("moorage_sandbox.sandbox.processes.server_process")
        code = up.stop(signal.SIGINT)
        # Before the loop runs there is nothing to end: then the code says that it was interrupted.
        assert code in {0, 130}
        assert alive(up.family, within=20) == []
    assert [line for line in up.output if "Traceback" in line or "Error" in line] == []


@pytest.mark.parametrize("output", ["lines", "json", "quiet"])
def test_a_closed_output_pipe_ends_the_sandbox_silently(tmp_path: Path, output: str) -> None:
    command = f"{sys.executable} -m moorage up --nodes 2 -o {output} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1)


def test_a_closed_output_pipe_fails_the_wait_for_decisions(tmp_path: Path) -> None:
    command = f"{sys.executable} -m moorage up --nodes 2 --exit-when-settled | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "error: nobody reads the output any more, and pods are undecided\n",
    )


def test_a_plugin_that_raises_for_every_pod_is_told_once_with_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    with Up(tmp_path, "--nodes", "2", "--plugin", "broken.py:broken", "--exit-when-settled") as up:
        assert up.wait() == 0
    told = [line for line in up.output if line.startswith("ERROR ")]
    assert len(told) == 1
    assert "plugin Broken failed at Score, for pod default/" in told[0]
    assert sum("raise ValueError" in line for line in up.output) == 1

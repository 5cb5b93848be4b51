"""The live view on a terminal: drawn by a job in front, never by one in the background."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from sandbox.tests.sandbox.terminal import Terminal

pytestmark = pytest.mark.slow

UP = [sys.executable, "-m", "moorage", "up", "--nodes", "1"]
HIDE_CURSOR = "\x1b[?25l"


def test_a_foreground_job_draws_the_screen(tmp_path: Path) -> None:
    with Terminal(tmp_path, UP) as terminal:
        drawn = terminal.until("Ctrl-C ends the cluster")
        assert HIDE_CURSOR in drawn
        terminal.interrupt()
        assert terminal.ended() == 0
        assert "stopped: 30 pods: " in terminal.text


@pytest.mark.parametrize(
    "options", [pytest.param("-mc", id="job control"), pytest.param("-c", id="no job control")]
)
def test_a_background_job_prints_its_address_only(tmp_path: Path, options: str) -> None:
    job = f"{shlex.join(UP)} & {sys.executable} -m moorage wait --for=settled; kill $!; wait $!"
    with Terminal(tmp_path, ["bash", "--norc", options, job]) as terminal:
        terminal.until("settled: 30 pods: ")
        assert terminal.ended() == 0
        lines = terminal.text.split("\r\n")
    assert HIDE_CURSOR not in terminal.text
    assert [line for line in lines if "default/" in line] == []
    assert f"    export KUBECONFIG={tmp_path}/.moorage/kubeconfig" in lines

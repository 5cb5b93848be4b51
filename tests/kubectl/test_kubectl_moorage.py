"""``kubectl moorage``: a real kubectl finds the installed program and passes arguments on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import moorage


def test_kubectl_runs_the_installed_program_with_its_arguments(any_kubectl: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        [any_kubectl, "moorage", "version"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    told = f"moorage {moorage.__version__}"
    assert (result.returncode, told in result.stdout, result.stderr) == (0, True, "")


def test_kubectl_passes_the_exit_code_on(kubectl: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        [kubectl, "moorage", "config", "check", str(tmp_path / "absent.yaml")],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "cannot read the file" in result.stderr

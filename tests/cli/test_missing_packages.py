"""Commands and names of a package that is not installed: the message says which package it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

import moorage
from moorage.cli import main
from tests import packages

# As where the package `moorage-scheduler` alone is installed: no entry point is found.
ALONE = "import moorage.base.entry_points as e; e._points = lambda *_: {}; "


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ALONE + code, *words]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)


@pytest.mark.parametrize(
    ("command", "package"),
    [
        pytest.param("up", "moorage-sandbox", id="a command of the sandbox"),
        pytest.param("example-extender", "moorage-sandbox", id="a command with a dash"),
        pytest.param("fault-sim", "moorage-lab", id="a command of the laboratory"),
    ],
)
def test_a_command_names_its_package(command: str, package: str):
    done = run("from moorage.cli.main import main; main()", command, "--help")
    message = f"error: {command} comes with {package}, which is not installed: "
    folder = package.removeprefix("moorage-")
    advice = f"pip install {package}, or in a checkout pip install ./{folder}\n"
    assert (done.returncode, done.stderr) == (2, f"{message}{advice}")


def test_an_unknown_command_names_no_package():
    done = run("from moorage.cli.main import main; main()", "upp")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no such command 'upp'")


def test_the_help_has_the_commands_that_are_installed():
    done = run("from moorage.cli.main import main; main()", "--help")
    section = done.stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in section.splitlines() if line[2:3].strip()]
    assert done.returncode == 0
    assert names == sorted(main._OWN)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        pytest.param("Sandbox", "moorage-sandbox", id="a cluster of its own"),
        pytest.param("Cluster", "moorage-lab", id="a cluster in memory"),
        pytest.param("simulate", "moorage-lab", id="recorded pods"),
    ],
)
def test_a_name_of_the_package_names_its_package(name: str, package: str):
    done = run(f"from moorage import {name}")
    message = f"ImportError: moorage.{name} comes with {package}, which is not installed: "
    assert done.stderr.splitlines()[-1] == f"{message}pip install {package}"


def test_the_messages_know_every_command_and_name():
    points = packages.entry_points()
    assert _packages(points["moorage.commands"]) == main._BROUGHT_BY
    assert _packages(points["moorage.exports"]) == vars(moorage)["_BROUGHT_BY"]


def _packages(points: dict[str, str]) -> dict[str, str]:
    return {name: packages.package_of(target).replace("_", "-") for name, target in points.items()}


def test_neither_help_reads_the_metadata_of_all_distributions():
    code = (
        "import sys; from moorage.cli.main import main; main(standalone_mode=False); "
        "print('importlib.metadata' in sys.modules)"
    )
    for words in (["--help"], ["run", "--help"]):
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, capture_output=True, timeout=60, check=True, text=True)
        assert done.stdout.splitlines()[-1] == "False", words

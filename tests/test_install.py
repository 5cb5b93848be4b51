"""Wheel and sdist, installed with pip into clean environments with an empty home, and used there.

Asked for with ``-m install`` (``make test-install``): pip fetches the dependencies from an index.
Left out: other platforms and Pythons than the one of the tests.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import moorage
from sandbox.tests.sandbox.process import Up
from tests import packages
from tools.release.build import PARTS, build

ROOT = Path(__file__).resolve().parents[1]
FAMILY = ROOT / "lab" / "tests" / "conformance" / "data" / "public" / "declaredfeatures.jsonl.gz"
PLUGIN = """from moorage import plugin

@plugin.filter
def only_the_second(pod, node):
    return node.name == "node-02" or "not the second"
"""
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PIP_SECONDS_MAX = 600

pytestmark = [pytest.mark.install, pytest.mark.timeout(1200)]


class Installed:
    """A clean environment with moorage in it.

    Parameters
    ----------
    directory
        Holds the environment, an empty home, and a directory to work in.
    """

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "venv" / "bin"
        self.work = directory / "work"
        home = directory / "home"
        subprocess.run([sys.executable, "-m", "venv", self.bin.parent], check=True)
        for each in (self.work, home):
            each.mkdir()
        # Of our own environment only what pip needs to find an index.
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.env = {**kept, "HOME": str(home), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call pip."""
        return self.run("pip", "--disable-pip-version-check", *arguments, code=None)

    def run(self, *command: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, and check its exit code unless None is expected."""
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.work,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=PIP_SECONDS_MAX,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    def up(self, *arguments: str) -> Up:
        """Return a sandbox of this installation."""
        return Up(self.work, *arguments, python=str(self.bin / "python"), env=self.env)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the sdist of this checkout, by kind, and those of its parts, by folder."""
    target = tmp_path_factory.mktemp("dist")
    paths = [target / name for name in build(ROOT, target)]
    wheels = {path.name.partition("-")[0]: path for path in paths if path.suffix == ".whl"}
    sdists = {path.name.partition("-")[0]: path for path in paths if path.suffix != ".whl"}
    parts = {part: wheels[f"moorage_{part}"] for part in PARTS}
    sources = {f"{part} sdist": sdists[f"moorage_{part}"] for part in PARTS}
    return {"wheel": wheels["moorage"], "sdist": sdists["moorage"], **parts, **sources}


def test_a_second_build_has_the_same_bytes(built: dict[str, Path], tmp_path: Path) -> None:
    digests = build(ROOT, tmp_path / "dist")
    assert digests == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built.values()
    }


@pytest.mark.parametrize("part", PARTS)
def test_the_sdist_of_a_part_builds_the_same_wheel(
    part: str, built: dict[str, Path], tmp_path: Path
) -> None:
    with tarfile.open(built[f"{part} sdist"]) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    hatchling = str(Path(sys.executable).with_name("hatchling"))
    command = [hatchling, "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.read_bytes() == built[part].read_bytes()


@pytest.fixture(scope="session", params=["wheel", "sdist"])
def installed(
    request: pytest.FixtureRequest,
    built: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Installed:
    """An environment into which the wheel, or the sdist, was installed without extras."""
    found = Installed(tmp_path_factory.mktemp(request.param))
    probe = found.pip("download", "--no-deps", "-d", str(found.work / "probe"), "click")
    if probe.returncode:
        pytest.skip(f"no package index is reached: {probe.stderr.strip().splitlines()[-1]}")
    done = found.pip("install", str(built[request.param]))
    assert done.returncode == 0, done.stdout + done.stderr
    return found


@pytest.fixture(scope="session")
def with_lab(installed: Installed, built: dict[str, Path]) -> Installed:
    """The environment, into which the laboratory was installed too."""
    done = installed.pip("install", str(built["lab"]))
    assert done.returncode == 0, done.stdout + done.stderr
    return installed


@pytest.fixture(scope="session")
def alone(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with the scheduler alone."""
    found = Installed(tmp_path_factory.mktemp("alone"))
    done = found.pip("install", str(built["scheduler"]))
    assert done.returncode == 0, done.stdout + done.stderr
    return found


@pytest.mark.parametrize(
    ("wheel", "sources"),
    [
        ("wheel", packages.SOURCES[:2]),
        *((part, [source]) for part, source in zip(PARTS, packages.SOURCES, strict=True)),
    ],
)
def test_a_wheel_holds_its_packages_and_their_data_and_nothing_else(
    wheel: str, sources: Sequence[Path], built: dict[str, Path]
) -> None:
    held = set(zipfile.ZipFile(built[wheel]).namelist())
    wanted = {
        each.relative_to(package).as_posix()
        for package in sources
        for each in package.rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    }
    assert {name for name in held if ".dist-info/" not in name} == wanted


def test_both_names_of_the_command_tell_the_version(installed: Installed) -> None:
    for command in (["moorage"], ["python", "-m", "moorage"]):
        assert f"moorage {moorage.__version__}\n" in installed.run(*command, "version").stdout
    said = installed.run("python", "-c", "import moorage; print(moorage.__version__)").stdout
    assert said == f"{moorage.__version__}\n"


def test_up_needs_no_extra(installed: Installed) -> None:
    done = installed.run("moorage", "up", "--exit-when-settled")
    assert done.stdout.splitlines()[-1].startswith("settled: 30 pods: 1 unschedulable, ")


def test_a_plugin_in_a_file_decides(installed: Installed) -> None:
    (installed.work / "mine.py").write_text(PLUGIN)
    arguments = ("--nodes", "3", "--plugin", "mine.py:only_the_second", "--exit-when-settled")
    lines = installed.run("moorage", "up", *arguments).stdout.splitlines()
    places = {line.rpartition(" bound to ")[2] for line in lines if " bound to " in line}
    assert places == {"node-02"}


def test_run_schedules_for_a_server_it_is_pointed_at(installed: Installed) -> None:
    with installed.up("--no-scheduler", "--nodes", "3") as up:
        up.started()
        arguments = ("run", "--kubeconfig", str(up.kubeconfig), "--secure-port", "0")
        command = [str(installed.bin / "moorage"), *arguments]
        with subprocess.Popen(command, env=installed.env, cwd=installed.work) as scheduler:
            try:
                up.until("bound to")
            finally:
                scheduler.terminate()
        assert scheduler.returncode == 0


def test_the_scheduler_alone_runs_and_answers_for_a_sandbox_of_another_environment(
    installed: Installed, alone: Installed
) -> None:
    with installed.up("--no-scheduler", "--nodes", "3") as up:
        up.started()
        server = ("--kubeconfig", str(up.kubeconfig))
        config = alone.work / "config.yaml"
        config.write_text(CONFIG)
        run = ("run", *server, "--config", str(config), "--secure-port", "0")
        asked = (*server, "--running-config", str(config))
        explain = (*server, "--config", str(config))
        command = [str(alone.bin / "moorage"), *run]
        with subprocess.Popen(command, env=alone.env, cwd=alone.work) as scheduler:
            try:
                up.until("bound to")
                drained = alone.run("moorage", "what-if", "--drain", "node-01", *asked, code=None)
                assert "node-01" in drained.stdout, drained.stderr
                giant = alone.run("moorage", "explain", "pod", "giant", *explain, code=None)
                assert "never fits here" in giant.stdout, giant.stderr
            finally:
                scheduler.terminate()
        assert scheduler.returncode == 0


@pytest.mark.parametrize(
    ("command", "package"), [("up", "moorage-sandbox"), ("bench", "moorage-lab")]
)
def test_a_command_of_a_missing_package_names_it(
    command: str, package: str, alone: Installed
) -> None:
    told = alone.run("moorage", command, code=2).stderr
    assert f"pip install {package}" in told


def test_bench_measures(with_lab: Installed) -> None:
    arguments = ("basic", "--nodes", "50", "--init-pods", "0", "--pods", "100", "-o", "json")
    report = json.loads(with_lab.run("moorage", "bench", *arguments).stdout)
    assert (report["scheduled"], report["mode"]) == (100, "engine")


def test_decisions_are_compared_with_the_recordings(with_lab: Installed) -> None:
    done = with_lab.run("moorage", "conformance", str(FAMILY), "-o", "json")
    counts = {"cases": 15, "equal": 15, "faulty": 0, "different": 0, "unsupported": 0}
    assert json.loads(done.stdout) == {"families": {"declaredfeatures": counts}}


def test_a_missing_extra_is_told_in_one_line_whose_command_installs_it(
    installed: Installed,
) -> None:
    (installed.work / "one.json").write_text(
        '{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"},'
        '"status":{"allocatable":{"cpu":"1","memory":"1Gi","pods":"9"}}}'
    )
    plot = ("moorage", "plot", "one.json", "--to", "one.svg")
    told = installed.run(*plot, code=2).stderr
    assert told == "error: a picture needs matplotlib: pip install 'moorage[plot]'\n"
    done = installed.pip("install", "moorage[plot]")
    assert done.returncode == 0, done.stderr
    installed.run(*plot)
    assert (installed.work / "one.svg").stat().st_size

"""The workflows: their schema, what their steps run, and the steps, as far as they run here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from moorage.base.version import __version__
from tools.pages.generate import root_command
from tools.release.build import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
KIND = ROOT / ".github/scripts/chart-on-kind.sh"
RELEASE = ROOT / ".github/scripts/build-release.sh"
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.github-issue-forms": [
        ROOT / ".github/ISSUE_TEMPLATE" / name for name in ("fault.yml", "proposal.yml")
    ],
    "vendor.github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}
# Programs of the runner that a step may call besides those of this repository.
OF_THE_RUNNER = {"cosign", "echo", "gh", "helm", "mkdir", "tar"}
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
case "$*" in "$FAIL"*) [ -z "$FAIL" ] || exit 3 ;; esac
"""


def checked(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("check-jsonschema")
    command = [str(program), "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def steps(path: Path) -> list[str]:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


STEPS = sorted({step for path in WORKFLOWS for step in steps(path)})


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_each_file_has_the_form_of_its_schema(schema: str) -> None:
    done = checked(schema, *SCHEMAS[schema])
    assert done.returncode == 0, done.stdout


def commands_of_the_forms() -> list[str]:
    forms = (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")
    return sorted(
        {each for path in forms for each in re.findall(r"`moorage ([^`]+)`", path.read_text())}
    )


@pytest.mark.parametrize("command", commands_of_the_forms())
def test_a_command_that_a_form_asks_for_is_taken(command: str) -> None:
    done = CliRunner().invoke(root_command(), [*command.split(), "--help"])
    assert done.exit_code == 0, done.output


def test_the_schema_refuses_a_step_of_another_form(tmp_path: Path) -> None:
    wrong = (FOLDER / "ci.yml").read_text().replace("- run: make test", "- runs: make test")
    (tmp_path / "ci.yml").write_text(wrong)
    assert checked("vendor.github-workflows", tmp_path / "ci.yml").returncode == 1


@pytest.mark.parametrize("step", STEPS)
def test_each_step_runs_something_that_there_is(step: str) -> None:
    subprocess.run(["bash", "-n"], input=step, text=True, check=True)
    for command in step.split(" && "):
        program, *arguments = command.split()
        if "/" in program:
            assert os.access(ROOT / program, os.X_OK), program
        elif program == "make":
            assert re.search(rf"(?m)^{arguments[0]}:", (ROOT / "Makefile").read_text())
        else:
            assert program in OF_THE_RUNNER | {"cp"}, program


def test_a_release_waits_for_the_tests_and_is_published_with_all_its_files() -> None:
    jobs = yaml.safe_load((FOLDER / "release.yml").read_text())["jobs"]
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "test": None,
        "build": "test",
        "pypi": "build",
        "image-and-chart": "build",
        "github": ["pypi", "image-and-chart"],
    }


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The calls of programs that a cluster in containers needs, none of which does anything."""
    for name in ("docker", "helm", "kind", "kubectl"):
        stub = tmp_path / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(STUB)
        stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("FAIL", "")
    return tmp_path / "calls"


def on_kind(mode: str) -> tuple[int, str]:
    done = subprocess.run([KIND, mode], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def programs(calls: Path) -> list[str]:
    """The calls without what every mode does, each by its first words."""
    lines = [" ".join(line.split()[:3]) for line in calls.read_text().splitlines()]
    begin = ["docker build --file", "kind create cluster", "kind load docker-image"]
    assert lines[:3] == begin
    assert lines[-1] == "kind delete cluster"
    return lines[3:-1]


POD = ["kubectl run {}", "kubectl wait --for=condition=Ready"]
IN_ORDER = {
    "second": ["helm upgrade --install", *POD, *POD],
    "only": [
        "docker exec moorage-only-control-plane",
        "kubectl wait --for=delete",
        "docker cp deploy/static-pod/kube-scheduler.yaml",
        *POD,
    ],
    "take-over": [
        *POD,
        "helm upgrade --install",
        "docker exec moorage-take-over-control-plane",
        "kubectl wait --for=delete",
        *POD,
        "docker exec moorage-take-over-control-plane",
        "helm uninstall moorage",
        *POD,
    ],
}
NAMES = {"second": ["ours", "theirs"], "only": ["ours"], "take-over": ["before", "taken", "back"]}


@pytest.mark.parametrize("mode", list(IN_ORDER))
def test_the_steps_of_a_chart_in_a_cluster_come_in_order(mode: str, calls: Path) -> None:
    names = iter(NAMES[mode])
    wanted = [call.format(next(names)) if "{}" in call else call for call in IN_ORDER[mode]]
    assert on_kind(mode) == (0, f"{mode}: as expected\n")
    assert programs(calls) == wanted


def test_a_pod_that_does_not_run_is_explained_and_the_cluster_deleted(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "wait --for=condition=Ready pod/theirs")
    assert on_kind("second")[0] == 3
    assert programs(calls)[-2:] == ["kubectl describe pods", "kubectl logs --all-containers"]


def test_another_mode_is_refused_before_anything_is_made(calls: Path) -> None:
    assert on_kind("third") == (2, "")
    assert not calls.exists()


@pytest.mark.install
def test_the_files_of_a_release_are_built_and_checked_by_the_script_of_the_workflow(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [RELEASE, __version__, tmp_path / "dist"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "dist").iterdir())) == 8 + 3 + 2 + 1
    # What the steps of publishing take from these files.
    for step in steps(FOLDER / "release.yml"):
        if step.startswith("mkdir "):
            subprocess.run(["bash", "-euc", step], cwd=tmp_path, check=True)
    assert len(list((tmp_path / "packages").iterdir())) == 8
    assert (tmp_path / "context/deploy/Containerfile").is_file()


@pytest.mark.install
def test_a_tag_of_another_version_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [RELEASE, "9.9.9", tmp_path / "dist"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        f"the tag is for 9.9.9, and the checkout is {__version__}",
    )


def test_the_scripts_are_bash_that_every_machine_has() -> None:
    assert shutil.which("bash")
    for path in (KIND, RELEASE):
        assert path.read_text().startswith("#!/usr/bin/env bash\n")

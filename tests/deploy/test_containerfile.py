"""The container build file: pinned, without root, and its steps in a clean environment.

No registry is needed: the RUN steps run here, with the folders of the image below a folder of the
test. Not covered: the base image, a container runtime.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import moorage
from tests.deploy.chart import ROOT

FILE = ROOT / "deploy" / "Containerfile"
LOCKS = ("build.lock", "requirements.lock")
STEP_SECONDS_MAX = 300


class Step(NamedTuple):
    """An instruction of the file, and its words."""

    kind: str
    words: str


def stages() -> list[list[Step]]:
    """Return the instructions of each stage."""
    found: list[list[Step]] = []
    for line in FILE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, _, words = line.partition(" ")
        if kind == "FROM":
            found.append([])
        found[-1].append(Step(kind, words))
    return found


def words_of(stage: list[Step], kind: str) -> list[str]:
    return [step.words for step in stage if step.kind == kind]


def test_the_base_of_each_stage_is_pinned_by_its_digest() -> None:
    bases = {words_of(stage, "FROM")[0].removesuffix(" AS build") for stage in stages()}
    (base,) = bases
    assert re.fullmatch(r"docker\.io/library/python:[\w.-]+@sha256:[0-9a-f]{64}", base)


def test_a_comment_says_where_and_when_the_digest_was_read() -> None:
    comment = FILE.read_text().partition("\nFROM ")[0]
    assert re.search(r"\b20\d\d-\d\d-\d\d\b", comment)
    assert "digest" in comment


def test_the_image_runs_the_scheduler_without_root() -> None:
    last = stages()[-1]
    assert [words_of(last, kind) for kind in ("USER", "ENTRYPOINT", "CMD")] == [
        ["65532:65532"],
        ['["moorage"]'],
        ['["run"]'],
    ]
    # Nothing is fetched or built in the image that is kept.
    assert words_of(last, "RUN") == []


def test_what_is_copied_is_what_the_build_sends() -> None:
    copied = {
        word
        for stage in stages()
        for line in words_of(stage, "COPY")
        if not line.startswith("--from")
        for word in line.split()[:-1]
    }
    ignored = (ROOT / "deploy/Containerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def blocks(text: str) -> set[str]:
    """Return the packages of a lock, each with its hashes."""
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    return {block.strip() for block in re.split(r"\n(?=\w)", lines)}


@pytest.mark.parametrize("name", LOCKS)
def test_the_image_has_what_was_tested(name: str) -> None:
    tested = blocks((ROOT / "requirements.lock").read_text())
    packages = blocks((ROOT / "deploy" / name).read_text())
    # Markers differ where an extra brings a package on more platforms.
    unmarked = {re.sub(r" ; .*?(?= \\)", "", each) for each in tested}
    assert {re.sub(r" ; .*?(?= \\)", "", each) for each in packages} - unmarked == set()


class Built(NamedTuple):
    """The steps of the file, after they ran."""

    root: Path
    env: dict[str, str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    root = tmp_path_factory.mktemp("image")
    source = root / "src"
    source.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    env = {**kept, "HOME": str(root), "PATH": "/usr/bin:/bin", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for kind, words in stages()[0]:
        if kind == "COPY":
            *names, into = words.split()
            for name in names:
                _copy(ROOT / name, source / into / (Path(name).name if into == "./" else ""))
        elif kind == "RUN":
            _run(words, root, env)
    return Built(root, env)


def _copy(what: Path, where: Path) -> None:
    if what.is_dir():
        shutil.copytree(what, where, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(what, where)


def _run(words: str, root: Path, env: dict[str, str]) -> None:
    base = str(Path(sys.base_prefix) / "bin" / "python3")
    line = words.replace("/opt/", f"{root}/opt/")
    line = re.sub(r"^python ", f"{shlex.quote(base)} ", line)
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=root / "src",
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=STEP_SECONDS_MAX,
        check=False,
    )
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, f"{words}\n{done.stderr}"


@pytest.mark.install
@pytest.mark.timeout(1200)
class TestSteps:
    """The steps of the file, run where nothing is installed."""

    def test_everybody_may_read_the_program_which_runs_and_writes_nothing(
        self, built: Built
    ) -> None:
        program = built.root / "opt" / "moorage"
        before = _all(program)
        env = {"PATH": f"{program}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}

        def run(*words: str) -> str:
            done = subprocess.run(
                [str(program / "bin" / "moorage"), *words],
                cwd="/",
                env=env,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert run("run", "--version") == f"moorage {moorage.__version__}\n"
        assert "--leader-elect" in run("run", "--help")
        assert _all(program) == before
        assert [path for path in before if not os.stat(path).st_mode & stat.S_IROTH] == []  # noqa: PTH116

    def test_the_image_has_no_tools_of_the_build(self, built: Built) -> None:
        names = {path.name for path in (built.root / "opt/moorage/bin").iterdir()}
        assert not {"pip", "hatchling", "pytest", "uv"} & names

    def test_every_package_is_ready_made_for_both_architectures(self, tmp_path: Path) -> None:
        for architecture in ("x86_64", "aarch64"):
            command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet"]
            command += ["--report", str(tmp_path / architecture)]
            command += ["--ignore-installed", "--no-deps", "--require-hashes"]
            command += ["--only-binary=:all:", "--python-version=3.13", "--target=unused"]
            for tag in ("manylinux_2_17", "manylinux2014", "manylinux_2_28", "manylinux_2_34"):
                command += ["--platform", f"{tag}_{architecture}"]
            command += ["-r", str(ROOT / "deploy/requirements.lock")]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=STEP_SECONDS_MAX, check=False
            )
            assert done.returncode == 0, done.stderr
            report = json.loads((tmp_path / architecture).read_text())
            assert len(report["install"]) > 20


def _all(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}

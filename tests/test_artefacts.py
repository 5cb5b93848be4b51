"""The files of a release besides wheels and sdists: what is in them, and that they are the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from moorage.base.version import __version__
from tools.release.artefacts import (
    CHECKSUMS,
    digests,
    write_artefacts,
    write_checksums,
    write_provenance,
)
from tools.release.repository import ROOT, address

CHART = f"moorage-{__version__}.tgz"
CONTEXT = f"moorage-{__version__}-image-context.tar.gz"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    write_artefacts(ROOT, __version__, folder)
    return folder


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as content:
        return content.getnames()


def test_there_are_a_chart_a_build_context_and_the_licences(target: Path) -> None:
    assert sorted(path.name for path in target.iterdir()) == [
        CONTEXT,
        f"moorage-{__version__}-licences.md",
        CHART,
    ]


def test_the_chart_is_a_folder_of_its_name(target: Path) -> None:
    names = names_in(target / CHART)
    assert {"moorage/Chart.yaml", "moorage/values.yaml", "moorage/values.schema.json"} <= {*names}
    assert all(name.startswith("moorage/") for name in names)


def test_the_chart_of_a_release_names_the_image_that_the_workflow_publishes(
    target: Path, tmp_path: Path
) -> None:
    with tarfile.open(target / CHART) as content:
        files = {
            name: content.extractfile(f"moorage/{name}") for name in ("values.yaml", "Chart.yaml")
        }
        values, chart = (yaml.safe_load(file.read()) for file in files.values() if file)
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = workflow["jobs"]["image-and-chart"]["steps"]
    (first,) = [step["run"] for step in steps if "GITHUB_ENV" in step.get("run", "")]
    (tag,) = [step["with"]["tags"] for step in steps if step.get("id") == "image"]
    owner = address().split("/")[-2]
    env = {**os.environ, "GITHUB_REPOSITORY_OWNER": owner, "GITHUB_REF_NAME": f"v{__version__}"}
    variables = tmp_path / "env"
    subprocess.run(
        ["bash", "-euc", first], env={**env, "GITHUB_ENV": str(variables)}, check=True, timeout=60
    )
    for line in variables.read_text().splitlines():
        name, _, value = line.partition("=")
        tag = tag.replace(f"${{{{ env.{name} }}}}", value)
    assert values["image"]["tag"] == ""
    assert tag == f"{values['image']['repository']}:{chart['appVersion']}"


def test_the_build_context_has_all_that_the_containerfile_copies(target: Path) -> None:
    copied = re.findall(
        r"(?m)^COPY (?!--from)(.+) \S+$", (ROOT / "deploy/Containerfile").read_text()
    )
    wanted = [name for line in copied for name in line.split()]
    names = names_in(target / CONTEXT)
    assert wanted
    assert [w for w in wanted if not any(n == w or n.startswith(f"{w}/") for n in names)] == []
    assert "deploy/Containerfile" in names


def test_a_second_build_has_the_same_bytes(target: Path, tmp_path: Path) -> None:
    names = write_artefacts(ROOT, __version__, tmp_path)
    assert digests(tmp_path, names) == digests(target, names)


def test_the_checksums_are_those_that_sha256sum_checks(target: Path, tmp_path: Path) -> None:
    files = digests(target, [CHART, CONTEXT])
    write_checksums(tmp_path, files)
    for name in files:
        (tmp_path / name).write_bytes((target / name).read_bytes())
    done = subprocess.run(
        ["shasum", "-a", "256", "--check", CHECKSUMS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{CONTEXT}: OK\n{CHART}: OK\n")


def test_the_provenance_names_files_commit_and_locks(target: Path, tmp_path: Path) -> None:
    files = digests(target, [CHART])
    name = write_provenance(ROOT, __version__, tmp_path, files)
    statement = json.loads((tmp_path / name).read_text())
    assert statement["subject"] == [{"name": CHART, "digest": {"sha256": files[CHART]}}]
    source, *locks = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert re.fullmatch(r"git\+https://github\.com/.+@refs/tags/v[\d.]+", source["uri"])
    assert re.fullmatch(r"[0-9a-f]{40}", source["digest"]["gitCommit"])
    assert [each["name"] for each in locks] == [
        "deploy/build.lock",
        "deploy/requirements.lock",
        "requirements.lock",
    ]


@pytest.mark.parametrize("part", ["scheduler", "sandbox", "lab"])
def test_each_distribution_has_the_licence_as_a_file(part: str) -> None:
    path = ROOT / part / "LICENSE"
    assert not path.is_symlink()
    assert path.read_text() == (ROOT / "LICENSE").read_text()

"""The CI recipes of the how-to, run as written: a clean environment, an empty home, a checkout.

Asked for with ``-m install``, as `test_install`. Left out: the actions that check out and set up
Python, and the services themselves.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path
from tests.test_install import ROOT, Installed, built

__all__ = ["built"]  # a fixture of this module, too

PAGE = ROOT / "docs" / "how-to" / "use-in-tests.md"
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: tested}
spec: {containers: [{name: main, image: "nginx:1"}]}
"""


def recipes() -> dict[str, Any]:
    """Return the recipes of the page, by the heading they stand under."""
    found = re.findall(
        r"^## ([^\n]*)$(?:(?!^## ).)*?^```yaml\n(.*?)^```$", PAGE.read_text(), _FLAGS
    )
    return {heading: yaml.safe_load(text) for heading, text in found}


_FLAGS = re.MULTILINE | re.DOTALL


def lines_of(recipe: Any) -> list[str]:
    """Return the commands of a recipe in their order: GitHub's steps, or GitLab's script."""
    job: Any
    if "jobs" in recipe:
        (job,) = recipe["jobs"].values()
        return [step["run"] for step in job["steps"] if "run" in step]
    (job,) = recipe.values()
    return [*job["script"], *job["after_script"]]


def test_both_recipes_are_on_the_page() -> None:
    assert {name: len(lines_of(recipe)) for name, recipe in recipes().items()} == {
        "GitHub Actions": 6,
        "GitLab CI": 6,
    }


@pytest.mark.install
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["GitHub Actions", "GitLab CI"])
def test_a_recipe_works_as_written(name: str, built: dict[str, Path], tmp_path: Path) -> None:
    clean = Installed(tmp_path)
    probe = clean.pip("download", "--no-deps", "-d", str(tmp_path / "probe"), "click")
    if probe.returncode:
        pytest.skip(f"no package index is reached: {probe.stderr.strip().splitlines()[-1]}")
    try:
        (clean.bin / "kubectl").symlink_to(kubectl_path(RELEASES[0]))
    except NoKubectlError as error:
        pytest.skip(str(error))
    (clean.bin / "bash").symlink_to("/bin/bash")
    for folder in ("wheels", "manifests"):
        (clean.work / folder).mkdir()
    shutil.copy(built["wheel"], clean.work / "wheels")
    (clean.work / "manifests" / "pod.yaml").write_text(MANIFEST)
    told = {line: clean.run("bash", "-ec", line).stdout for line in lines_of(recipes()[name])}
    assert "settled: 1 pods: 1 " in told["moorage wait --for=settled --timeout 2m"]
    assert "default-scheduler" in told["moorage status"]
    assert told["moorage down"].startswith("ended: sandbox at https://")
    assert clean.run("moorage", "status", code=1).stdout == ""

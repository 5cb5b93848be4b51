"""A release is cut in a checkout: version, changelog, commit, tag; the build is in test_install."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from moorage.base.version import __version__
from tools.release import cut as release
from tools.release.build import PARTS, ReleaseError
from tools.release.cut import cut, with_version
from tools.release.repository import (
    PLACEHOLDER,
    ROOT,
    address,
    files_with_address,
    set_address,
)

CHART = 'name: moorage\nversion: 0.1.0\nappVersion: "0.1.0"\n'
MODULE = '__version__ = "0.1.0"\n'
CITATION = "cff-version: 1.2.0\nversion: 0.1.0\n"
URLS = '[project.urls]\nRepository = "{}"\n'
NAMED = re.compile(r"https://github\.com/[\w-]+/moorage(?![\w.-])")
PROJECT = 'dependencies = ["moorage-scheduler==0.1.0", "rich==0.1.0"]\n'


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.com")
    # The checkout has no pages to generate.
    monkeypatch.setattr("sys.executable", "true")
    files = {
        release.VERSION_FILE: MODULE,
        release.CHART_FILE: CHART,
        release.CITATION_FILE: CITATION,
        Path("pyproject.toml"): URLS.format("https://github.com/acme/moorage"),
        Path("sandbox/pyproject.toml"): PROJECT,
        Path("docs/changelog.md"): "# Changelog\n\nIntro.\n",
        Path("changelog.d/1.fix.md"): "Fixed.\n",
        Path("changelog.d/README.md"): "Rules.\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "-qm", "begin: make the checkout")
    return tmp_path


def test_a_release_has_its_version_changelog_commit_and_tag(checkout: Path) -> None:
    cut(checkout, "0.2.0", "2026-11-30")
    assert (checkout / release.VERSION_FILE).read_text() == '__version__ = "0.2.0"\n'
    assert (checkout / release.CHART_FILE).read_text() == CHART.replace("0.1.0", "0.2.0")
    assert (checkout / release.CITATION_FILE).read_text() == CITATION.replace("0.1.0", "0.2.0")
    assert (checkout / "sandbox/pyproject.toml").read_text() == (
        'dependencies = ["moorage-scheduler==0.2.0", "rich==0.1.0"]\n'
    )
    assert (checkout / "docs/changelog.md").read_text().splitlines()[4:8] == [
        "## 0.2.0 (2026-11-30)",
        "",
        "### Fixed",
        "",
    ]
    assert [path.name for path in (checkout / "changelog.d").iterdir()] == ["README.md"]
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "log", "-1", "--format=%s", "v0.2.0") == "release: 0.2.0"


@pytest.mark.parametrize(
    ("version", "date", "reason"),
    [
        pytest.param("0.2", "2026-11-30", "usage", id="a version of two numbers"),
        pytest.param("0.2.0", "today", "usage", id="a date in words"),
        pytest.param("0.0.9", "2026-11-30", "0.0.9 is not newer than 0.1.0", id="an older version"),
    ],
)
def test_a_release_that_is_refused_changes_nothing(
    version: str, date: str, reason: str, checkout: Path
) -> None:
    with pytest.raises(ReleaseError, match=reason):
        cut(checkout, version, date)
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "tag") == ""


def test_a_first_release_may_have_the_version_of_the_checkout(checkout: Path) -> None:
    cut(checkout, "0.1.0", "2026-11-30")
    assert (checkout / release.CHART_FILE).read_text() == CHART
    assert git(checkout, "log", "-1", "--format=%s", "v0.1.0") == "release: 0.1.0"
    with pytest.raises(ReleaseError, match=r"there is a tag v0\.1\.0 already"):
        cut(checkout, "0.1.0", "2026-11-30")


def test_a_repository_without_an_address_is_not_released(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text(URLS.format(PLACEHOLDER))
    git(checkout, "commit", "-aqm", "begin: forget the address")
    with pytest.raises(ReleaseError, match=r"tools\.release\.repository"):
        cut(checkout, "0.2.0", "2026-11-30")
    assert git(checkout, "tag") == ""


def test_the_address_is_written_in_every_file_that_names_it(checkout: Path) -> None:
    assert set_address(checkout, "https://github.com/other/name/") == [checkout / "pyproject.toml"]
    assert address(checkout) == "https://github.com/other/name"


@pytest.mark.parametrize("text", ["github.com/a/b", "https://github.com/a", "https://a.com/b/c"])
def test_another_text_is_no_address_of_a_repository(text: str, checkout: Path) -> None:
    with pytest.raises(ValueError, match="is no address"):
        set_address(checkout, text)
    assert git(checkout, "status", "--porcelain") == ""


def test_every_address_of_the_project_is_the_one_of_its_metadata() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in files_with_address(ROOT)}
    assert files >= {
        ".github/ISSUE_TEMPLATE/config.yml",
        "CITATION.cff",
        "README.md",
        "deploy/chart/Chart.yaml",
        *(f"{part}/pyproject.toml".removeprefix("/") for part in ("", *PARTS)),
    }
    named = {found for name in files for found in NAMED.findall((ROOT / name).read_text())}
    assert named == {address()}


def test_a_checkout_with_changes_is_not_released(checkout: Path) -> None:
    (checkout / "new").write_text("x")
    with pytest.raises(ReleaseError, match="not committed"):
        cut(checkout, "0.2.0", "2026-11-30")


def test_only_the_lines_of_the_project_version_change() -> None:
    text = CHART + "kubeVersion: 0.1.0\n"
    assert with_version(text, "1.0.0").endswith('appVersion: "1.0.0"\nkubeVersion: 0.1.0\n')


def test_no_how_to_names_the_version_because_a_release_would_leave_it_behind() -> None:
    pages = sorted((release.ROOT / "docs/how-to").glob("*.md"))
    assert pages
    assert [page.name for page in pages if re.search(rf"\b{__version__}\b", page.read_text())] == []

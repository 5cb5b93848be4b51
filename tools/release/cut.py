"""Cuts a release in this checkout: ``python -m tools.release.cut VERSION DATE``; no upload.

It sets the version, moves the changelog's fragments into the changelog, writes the generated pages,
commits, tags, and builds wheels, sdists, chart and the image's context twice. The builds must have
equal bytes. Next to them it writes the bill of materials, the provenance and the checksums.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.release.build import PARTS, ReleaseError, build_release, print_digests
from tools.release.release_notes import release as move_fragments
from tools.release.repository import git, is_placeholder

ROOT = Path(__file__).resolve().parents[2]
VERSION_FILE = Path("scheduler/src/moorage/base/version.py")
CHART_FILE = Path("deploy/chart/Chart.yaml")
CITATION_FILE = Path("CITATION.cff")
_PIN = re.compile(r"\b(moorage[a-z-]*==)\d+\.\d+\.\d+\b")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def with_version(text: str, version: str) -> str:
    """Return a file's text with the project's version in place of the older one.

    Parameters
    ----------
    text
        The module of the version, the chart's description or the citation.
    version
        ``MAJOR.MINOR.PATCH``; that of the text for a first release.

    Raises
    ------
    ReleaseError
        The text names no version, or a newer one.
    """
    match = re.search(r'(?m)^(?:__version__ = |appVersion: |version: )"?(\d+\.\d+\.\d+)"?$', text)
    if match is None:
        raise ReleaseError("no version was found to replace")
    before = match[1]
    if _number(version) < _number(before):
        raise ReleaseError(f"{version} is not newer than {before}")
    lines = re.compile(rf'(?m)^((?:__version__ = |appVersion: |version: )"?){re.escape(before)}\b')
    return lines.sub(rf"\g<1>{version}", text)


def with_pins(text: str, version: str) -> str:
    """Return a pyproject whose requirements of the other distributions name a version.

    Parameters
    ----------
    text
        The file.
    version
        ``MAJOR.MINOR.PATCH``.
    """
    return _PIN.sub(rf"\g<1>{version}", text)


def cut(root: Path, version: str, date: str) -> None:
    """Set the version, move the fragments, write the pages, commit and tag.

    Parameters
    ----------
    root
        The checkout; without changes that are not committed.
    version
        ``MAJOR.MINOR.PATCH``, newer than the version before.
    date
        ``YYYY-MM-DD``.

    Raises
    ------
    ReleaseError
        The arguments or the checkout do not allow a release. Nothing was changed.
    """
    if not _VERSION.fullmatch(version) or not _DATE.fullmatch(date):
        raise ReleaseError("usage: make release VERSION=1.2.3 [DATE=2026-11-30]")
    if git(root, "status", "--porcelain"):
        raise ReleaseError("the checkout has changes that are not committed: commit them first")
    if is_placeholder(root):
        raise ReleaseError(
            "the repository has no address yet, and the release would name none: write it with "
            "`python -m tools.release.repository https://github.com/OWNER/NAME`, and commit"
        )
    if git(root, "tag", "--list", f"v{version}"):
        raise ReleaseError(f"there is a tag v{version} already")
    named = (VERSION_FILE, CHART_FILE, CITATION_FILE)
    files = [root / each for each in named if (root / each).exists()]
    texts = {path: with_version(path.read_text(), version) for path in files}
    projects = [root / part / "pyproject.toml" for part in ("", *PARTS)]
    texts |= {path: with_pins(path.read_text(), version) for path in projects if path.exists()}
    try:
        move_fragments(root, version, date)
    except ValueError as error:
        raise ReleaseError(str(error)) from error
    for path, text in texts.items():
        path.write_text(text)
    subprocess.run([sys.executable, "-m", "tools.pages.generate"], cwd=root, check=True)
    git(root, "add", "--all", "docs", "changelog.d", *map(str, texts))
    # A first release may have neither a fragment nor another version.
    git(root, "commit", "--quiet", "--allow-empty", "-m", f"release: {version}")
    git(root, "tag", "--annotate", f"v{version}", "-m", f"moorage {version}")


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main(arguments: list[str]) -> int:
    """Cut the release, build it into ``dist``, and print the digests."""
    try:
        version, date = arguments if len(arguments) == 2 else ("", "")
        cut(ROOT, version, date)
        files = build_release(ROOT, ROOT / "dist", version)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print_digests(files)
    print("not uploaded; push the commit and its tag when you have looked at both")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

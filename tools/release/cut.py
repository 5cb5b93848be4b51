"""Cuts a release in this checkout: ``python -m tools.release.cut VERSION DATE``; no upload.

It sets the version, moves the changelog's fragments into the changelog, writes the generated pages,
commits, tags, and builds wheel and sdist twice. The builds must have equal bytes. Beside them it
writes the bill of materials.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tools.release.bill_of_materials import bill
from tools.release.release_notes import release as move_fragments

ROOT = Path(__file__).resolve().parents[2]
VERSION_FILE = Path("scheduler/src/moorage/base/version.py")
CHART_FILE = Path("deploy/chart/Chart.yaml")
PARTS = ("scheduler", "sandbox", "lab")
"""The folders of the distributions besides the top's."""
_PIN = re.compile(r"\b(moorage[a-z-]*==)\d+\.\d+\.\d+\b")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class ReleaseError(Exception):
    """A release cannot be cut; the text says why and what to do."""


def with_version(text: str, version: str) -> str:
    """Return a file's text with the project's version in place of the older one.

    Parameters
    ----------
    text
        The module of the version, or the chart's description.
    version
        ``MAJOR.MINOR.PATCH``.

    Raises
    ------
    ReleaseError
        The text names no version, or one that is not older.
    """
    found = re.search(r'(?m)^(?:__version__ = |appVersion: )"(\d+\.\d+\.\d+)"$', text)
    if found is None:
        raise ReleaseError("no version was found to replace")
    before = found[1]
    if _number(version) <= _number(before):
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
    if _git(root, "status", "--porcelain"):
        raise ReleaseError("the checkout has changes that are not committed: commit them first")
    if _git(root, "tag", "--list", f"v{version}"):
        raise ReleaseError(f"there is a tag v{version} already")
    files = [root / each for each in (VERSION_FILE, CHART_FILE) if (root / each).exists()]
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
    _git(root, "add", "--all", "docs", "changelog.d", *map(str, texts))
    _git(root, "commit", "--quiet", "-m", f"release: {version}")
    _git(root, "tag", "--annotate", f"v{version}", "-m", f"moorage {version}")


def build(root: Path, target: Path) -> Mapping[str, str]:
    """Write the wheel of each distribution and the sdist, and return the SHA-256 of each by name.

    The sdist of the top has the sources of all packages.

    Raises
    ------
    ReleaseError
        A second build has other bytes.
    """
    first = _built(root, target)
    with tempfile.TemporaryDirectory() as folder:
        second = _built(root, Path(folder))
    if first != second:
        raise ReleaseError(f"two builds differ: {first} and {second}")
    return first


def bill_of_materials(target: Path, version: str, date: str, files: Mapping[str, str]) -> str:
    """Write the bill of materials of a release, and return its name.

    Parameters
    ----------
    target
        The folder.
    version, date
        As of `cut`.
    files
        The SHA-256 of each released file, by name.
    """
    path = target / f"moorage-{version}.cdx.json"
    path.write_text(bill(version, date, files))
    return path.name


def _built(root: Path, target: Path) -> dict[str, str]:
    hatchling = Path(sys.executable).with_name("hatchling")
    run = partial(subprocess.run, check=True, capture_output=True)
    run([hatchling, "build", "-d", target], cwd=root)
    for part in PARTS:
        run([hatchling, "build", "-t", "wheel", "-d", target], cwd=root / part)
    made = [*target.glob("*.whl"), *target.glob("*.tar.gz")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(made)}


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """Cut the release, build it into ``dist``, and print the digests."""
    try:
        version, date = arguments if len(arguments) == 2 else ("", "")
        cut(ROOT, version, date)
        found = dict(build(ROOT, ROOT / "dist"))
        name = bill_of_materials(ROOT / "dist", version, date, found)
        found[name] = hashlib.sha256((ROOT / "dist" / name).read_bytes()).hexdigest()
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    for name, digest in found.items():
        print(f"{digest}  {name}")
    print("not uploaded; push the commit and its tag when you have looked at both")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

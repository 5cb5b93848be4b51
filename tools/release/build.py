"""Builds the files of a release: ``python -m tools.release.build [TARGET]``, at the release's tag.

Wheels and sdists are built twice and must have equal bytes. Next to them are the chart, the build
context of the image, the licences, the bill of materials, the provenance and the checksums.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from moorage.base.version import __version__
from tools.release.artefacts import digests, write_artefacts, write_checksums, write_provenance
from tools.release.bill_of_materials import bill
from tools.release.repository import git

ROOT: Final = Path(__file__).resolve().parents[2]
PARTS: Final = ("scheduler", "sandbox", "lab")
"""The folders of the distributions besides the top's."""


class ReleaseError(Exception):
    """A release cannot be made; the text says why and what to do."""


def build_release(root: Path, target: Path, version: str) -> dict[str, str]:
    """Write all files of the release of this checkout, and return the SHA-256 of each by name.

    Parameters
    ----------
    root
        The checkout; its commit is the release's.
    target
        The folder; it is made.
    version
        ``MAJOR.MINOR.PATCH`` of the checkout; a program that has just written it imported another.

    Raises
    ------
    ReleaseError
        A second build has other bytes.
    """
    target.mkdir(parents=True, exist_ok=True)
    files = dict(build(root, target))
    files |= digests(target, write_artefacts(root, version, target))
    date = git(root, "log", "-1", "--format=%cs")
    names = [
        bill_of_materials(target, version, date, files),
        write_provenance(root, version, target, files),
    ]
    files |= digests(target, names)
    write_checksums(target, files)
    return files


def build(root: Path, target: Path) -> Mapping[str, str]:
    """Write wheel and sdist of each distribution, and return the SHA-256 of each by name.

    The sdist of the top has the sources of scheduler, sandbox and laboratory.

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
        run([hatchling, "build", "-d", target], cwd=root / part)
    return digests(
        target, [each.name for form in ("*.whl", "*.tar.gz") for each in target.glob(form)]
    )


def print_digests(files: Mapping[str, str]) -> None:
    """Print the digests of files, one line each."""
    for name, digest in files.items():
        print(f"{digest}  {name}")


def main(arguments: list[str]) -> int:
    """Build into the folder that is named, or into ``dist``."""
    try:
        target = Path(arguments[0]) if arguments else ROOT / "dist"
        files = build_release(ROOT, target, __version__)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print_digests(files)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

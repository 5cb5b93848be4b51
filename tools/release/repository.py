"""The repository's address: one placeholder, which the owner replaces once, in all files.

``python -m tools.release.repository https://github.com/acme/moorage`` writes the address.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from moorage.base.version import __version__

ROOT: Final = Path(__file__).resolve().parents[2]
PLACEHOLDER: Final = "https://github.com/OWNER/" + "moorage"
"""The address while the project has no repository that others can read."""
_ADDRESS: Final = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")


def git(root: Path, *arguments: str) -> str:
    """Return the output of a command of git in a checkout.

    Raises
    ------
    subprocess.CalledProcessError
        The command failed.
    """
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def address(root: Path = ROOT) -> str:
    """Return the address that the project's metadata name, without a slash at the end."""
    text = (root / "pyproject.toml").read_text()
    return str(tomllib.loads(text)["project"]["urls"]["Repository"])


def is_placeholder(root: Path = ROOT) -> bool:
    """Say whether the owner has still to name the repository."""
    return address(root) == PLACEHOLDER


def image_repository(root: Path = ROOT) -> str:
    """Return the name of the image in the host's registry, which has no capital letters."""
    owner = address(root).split("/")[-2].lower()
    return f"ghcr.io/{owner}/moorage"


def at_version(root: Path = ROOT) -> str:
    """Return where the files of this version are read."""
    return f"{address(root)}/blob/v{__version__}"


def files_with_address(root: Path) -> list[Path]:
    """Return the files of the repository that name its address, by path."""
    return [root / line for line in git(root, "grep", "-lF", address(root)).splitlines()]


def set_address(root: Path, new: str) -> list[Path]:
    """Write another address in place of that of now, and return the files that were written.

    Raises
    ------
    ValueError
        It is no address of a repository.
    """
    new = new.removesuffix("/").removesuffix(".git")
    if not _ADDRESS.fullmatch(new):
        raise ValueError(f"{new!r} is no address: write https://github.com/OWNER/NAME")
    before, files = address(root), files_with_address(root)
    for path in files:
        path.write_text(path.read_text().replace(before, new))
    return files


def main(arguments: list[str]) -> int:
    """Print the address, or write another one."""
    if not arguments:
        print(address())
        return 0
    try:
        files = set_address(ROOT, arguments[0])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(*(path.relative_to(ROOT) for path in files), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Commands, and names of the package `moorage`, that the installed packages bring.

`importlib.metadata` would read every distribution, and its import alone takes 33 ms, a third of
``moorage --help``. The format of these files is the one of the Python packaging specifications
("Entry points specification"); the few that concern us are read here in less than a millisecond.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from typing import Final

PACKAGES: Final = ("moorage", "moorage_sandbox", "moorage_lab")
"""The packages of this project."""
_FILE = "entry_points.txt"


def is_own_module(name: str) -> bool:
    """Whether a module is one of this project, by its dotted name."""
    return name.partition(".")[0] in PACKAGES


def entry_points(group: str) -> dict[str, str]:
    """Return the entry points of a group, from all installed distributions of moorage.

    Our distributions are directories: NumPy cannot be imported from an archive.

    Returns
    -------
    dict
        Name to ``module:attribute``. Of two distributions the first on ``sys.path`` counts.
    """
    return _points(group, tuple(sys.path))


def load(target: str) -> object:
    """Import what an entry point names.

    Parameters
    ----------
    target
        ``module:attribute``.
    """
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


@cache  # the help asks once for each command
def _points(group: str, folders: tuple[str, ...]) -> dict[str, str]:
    points: dict[str, str] = {}
    for folder in folders:
        for file in _files(folder):
            for name, target in _read(file, group):
                points.setdefault(name, target)
    return points


def _files(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder or "."))  # noqa: PTH208 - pathlib takes time to import
    except OSError:  # sys.path may name archives and what is absent
        return []
    return [
        f"{folder or '.'}/{name}/{_FILE}"
        for name in names
        if name.startswith("moorage") and name.endswith(".dist-info")
    ]


def _read(file: str, group: str) -> list[tuple[str, str]]:
    """Return the entry points of a group in one file; none if the file is absent."""
    try:
        with open(file, encoding="utf-8") as lines:  # noqa: PTH123 - as above
            text = lines.read()
    except OSError:
        return []
    points = []
    section = ""
    for line in text.splitlines():
        name, separator, target = (part.strip() for part in line.partition("="))
        if name.startswith("["):
            section = name[1:-1]
        elif section == group and separator:
            points.append((name, target))
    return points

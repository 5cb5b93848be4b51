"""Which package each module belongs to, and what each imports: also lazily, also by a text.

import-linter does not see ``import_module("moorage.x")``, and it sees no command of ``cli`` as part
of a package. ``python -m tests.packages`` prints the lines that ``moorage run`` reaches, by room.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests import tidy

ROOT = Path(__file__).resolve().parents[1]
RUN = "moorage.cli.run.command"
FOLDERS = ("scheduler/src", "sandbox/src", "lab/src")
"""The folders that Python imports from."""
TESTS = ("scheduler/tests", "sandbox/tests", "lab/tests", "tests")
SOURCES = tuple(ROOT / folder for folder in FOLDERS)
# The name of a module, or of something in it: "moorage_sandbox.cli.up.command:up".
_NAMED = re.compile(r"moorage(?:_sandbox|_lab)?(\.\w+)+(:\w+)?")
_ORDER = ("moorage", "moorage_sandbox", "moorage_lab")


class Import(NamedTuple):
    """One module names another."""

    importer: str
    imported: str
    is_text: bool


@cache
def plan() -> dict[str, Any]:
    """Return the plan of the packages."""
    return tomllib.loads((ROOT / "tests/packages.toml").read_text())


@cache
def entry_points() -> dict[str, dict[str, str]]:
    """Return the entry points of `moorage` and of `moorage-lab` by group."""
    points: dict[str, dict[str, str]] = {}
    for file in ("pyproject.toml", "lab/pyproject.toml"):
        project = tomllib.loads((ROOT / file).read_text())["project"]
        for group, targets in project["entry-points"].items():
            points.setdefault(group, {}).update(targets)
    return points


@cache
def modules() -> dict[str, Path]:
    """Return the modules under ``src`` by name."""
    found = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def package_of(module: str) -> str:
    """Return the package that a module belongs to."""
    return module.partition(".")[0]


def is_upward(each: Import) -> bool:
    """Whether an import is of a package above."""
    return _ORDER.index(package_of(each.importer)) < _ORDER.index(package_of(each.imported))


def imports_of(module: str, text: str) -> Iterator[Import]:
    """Yield what a module imports or names, wherever in its text."""
    for node in tidy.nodes(text):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Constant) and _NAMED.fullmatch(str(node.value)):
            names = [str(node.value).partition(":")[0]]
        else:
            continue
        is_text = isinstance(node, ast.Constant)
        yield from (
            Import(module, found, is_text)
            for name in names
            if (found := _module_of(name)) not in ("", *_ORDER, module)
        )


def _module_of(name: str) -> str:
    """Return the module that a dotted name is or is in; empty if it is none of ours."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


@cache
def imports() -> tuple[Import, ...]:
    """Return every import under ``src``."""
    return tuple(
        each for name, path in modules().items() for each in imports_of(name, path.read_text())
    )


def reached(start: str) -> set[str]:
    """Return the modules that a module imports, lazily or not, with all that they import."""
    below = defaultdict(set)
    for each in imports():
        if not each.is_text:
            below[each.importer].add(each.imported)
    found: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module and module not in found:
            found.add(module)
            waiting += [*sorted(below[module]), module.rpartition(".")[0]]
    return found


def _print_reached() -> None:
    lines: Counter[str] = Counter()
    for module in sorted(reached(RUN)):
        room = ".".join(module.split(".")[:2])
        lines[f"{package_of(module)} {room}"] += len(modules()[module].read_text().splitlines())
    for name, count in sorted(lines.items()):
        print(f"{count:7} {name}")  # noqa: T201
    print(f"{lines.total():7} in all")  # noqa: T201


if __name__ == "__main__":
    _print_reached()

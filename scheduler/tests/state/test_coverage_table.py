"""The table of what proves the queue names tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TABLE = HERE / "README.md"


def named() -> list[tuple[Path, str]]:
    found = re.findall(r"([\w/]+\.py)::([\w:]+)", TABLE.read_text())
    return [((ROOT if "/" in file else HERE) / file, test) for file, test in found]


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            inner = (node.name for node in each.body if isinstance(node, ast.FunctionDef))
            names |= {f"{each.name}::{name}" for name in inner}
    return names


def test_every_test_named_exists():
    missing = [f"{path.name}::{test}" for path, test in named() if test not in functions_of(path)]
    assert not missing, "rename them in the table, too"


def test_every_row_is_proved_or_says_why_not():
    rows = [line.split("|") for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    bare = [row[2].strip() for row in rows[1:] if "::" not in row[3] and "not here: " not in row[3]]
    assert not bare

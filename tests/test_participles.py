"""A participle is the name of nothing that lives longer than five lines.

``found``, ``told`` and their like say what happened to a thing, not what the thing is. Looked at:
functions, classes, parameters, attributes, constants, and locals of the modules under ``src``.
A parameter of a lambda, and a local of five lines at most, may have such a name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests import packages, tidy

PARTICIPLES = frozenset(
    ["asked", "counted", "found", "given", "held", "kept", "made", "named", "seen", "told"]
)
LINES_MOST = 5

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def participles(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that is named by a participle and lives long."""
    for node in tidy.nodes(text):
        if isinstance(node, _Function | ast.ClassDef):
            yield node.lineno, node.name
        if isinstance(node, _Function):
            yield from ((each.lineno, each.arg) for each in _parameters(node.args))
            yield from _long_locals(node)
        if isinstance(node, ast.ClassDef | ast.Module):
            yield from _names_bound(node.body)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def _parameters(args: ast.arguments) -> list[ast.arg]:
    more = [each for each in (args.vararg, args.kwarg) if each is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *more]


def _names_bound(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((each.lineno, each.id) for each in targets if isinstance(each, ast.Name))


def _long_locals(function: _Function) -> Iterator[tuple[int, str]]:
    """Yield the locals that are in use for more lines than a participle may live."""
    bound: set[str] = set()
    lines: dict[str, list[int]] = {}
    for node in tidy.within(function):
        if isinstance(node, ast.Name):
            lines.setdefault(node.id, []).append(node.lineno)
            if isinstance(node.ctx, ast.Store):
                bound.add(node.id)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            lines.setdefault(node.name, []).append(node.lineno)
            bound.add(node.name)
    for name in sorted(bound):
        if max(lines[name]) - min(lines[name]) >= LINES_MOST:
            yield min(lines[name]), name


def _found_in(text: str) -> list[str]:
    return [
        f"{line}: {name}"
        for line, name in participles(text)
        if name.lstrip("_").lower() in PARTICIPLES
    ]


def test_names_are_nouns() -> None:
    assert [
        f"{path.relative_to(packages.ROOT)}:{each}"
        for path in packages.modules().values()
        for each in _found_in(path.read_text())
    ] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("def told(): pass\n", ["1: told"], id="a function"),
        pytest.param("class Asked:\n kept: int\n", ["1: Asked", "2: kept"], id="class, field"),
        pytest.param("_HELD = 5\n", ["1: _HELD"], id="a constant"),
        pytest.param(
            "def f(self, seen): self._seen = 5\n", ["1: seen", "1: _seen"], id="attribute"
        ),
        pytest.param("def f():\n found = 1\n\n\n\n\n g(found)\n", ["2: found"], id="six lines"),
        pytest.param("def f():\n found = 1\n\n\n\n g(found)\n", [], id="a local of five lines"),
        pytest.param("f = lambda found: found\n", [], id="a parameter of a lambda"),
        pytest.param("not_found = names_seen = 1\n", [], id="a noun with a participle"),
    ],
)
def test_participles_are_seen(text: str, names: list[str]) -> None:
    assert _found_in(text) == names

"""Figures of the house that may only get better: names with one meaning, and modules in a room.

A figure that got better is written here in the same commit; one that got worse fails.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests import packages

AMBIGUOUS_MOST = 0.25
"""Share of calls of own methods whose name has five definitions or more. It was 0.40."""

MODULES_MOST = 15
"""Modules that lie side by side in one room."""

# Rooms with more modules side by side. Only ever made smaller.
LARGE_ROOMS = {
    "moorage/api": 31,
    "moorage/base": 21,
    "moorage/cli": 24,
    "moorage/client": 28,
    "moorage/config": 18,
    "moorage/explain": 24,
    "moorage/framework": 33,
    "moorage/plugins/gpu_share": 19,
    "moorage/plugins/volumes": 16,
    "moorage/service": 51,
    "moorage/service/questions": 17,
    "moorage/snapshot": 31,
    "moorage/state": 27,
    "moorage/what_if": 37,
    "moorage_lab/bench": 18,
    "moorage_lab/bench/scheduler_perf": 28,
    "moorage_lab/cli/bench": 16,
    "moorage_lab/fault_sim": 28,
    "moorage_lab/fault_sim/invariants": 18,
    "moorage_lab/traces": 27,
    "moorage_sandbox/controllers": 31,
}

_BUILT_IN = frozenset(
    name for type_ in (str, list, dict, set, bytes, int, tuple, frozenset) for name in dir(type_)
)


def _methods(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield each.name


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


def ambiguous_share(sources: Iterator[str]) -> float:
    """Return the share of calls of own methods whose name five or more methods have.

    A call counts if some class here has a method of its name, and no built-in type has.
    """
    definitions: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for text in sources:
        tree = ast.parse(text)
        definitions.update(name for name in _methods(tree) if not name.startswith("__"))
        calls.update(_calls(tree))
    own = {name: count for name, count in calls.items() if name in definitions.keys() - _BUILT_IN}
    many = sum(count for name, count in own.items() if definitions[name] >= 5)
    return many / max(1, sum(own.values()))


def test_a_name_of_a_method_has_one_meaning() -> None:
    share = ambiguous_share(path.read_text() for path in packages.modules().values())
    assert share <= AMBIGUOUS_MOST, f"{share:.1%} of the calls go to an ambiguous name"


def test_the_share_counts_calls_to_names_with_five_definitions() -> None:
    classes = "".join(f"class C{at}:\n def many(self): pass\n" for at in range(5))
    text = f"{classes}class D:\n def one(self): pass\n def get(self): pass\n"
    calls = "x.many()\nx.one()\nx.one()\nx.one()\nx.get()\nx.unknown()\n"
    assert ambiguous_share(iter([text, calls])) == 0.25


def test_no_room_gets_more_modules_side_by_side() -> None:
    modules = Counter(
        path.parent.relative_to(source).as_posix()
        for source in packages.SOURCES
        for path in source.rglob("*.py")
        if path.name != "__init__.py"
    )
    large = {room: count for room, count in modules.items() if count > MODULES_MOST}
    assert large == LARGE_ROOMS

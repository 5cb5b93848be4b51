"""Figures of the house that may only get better: names with one meaning, and modules in a room.

A figure that got better is written here in the same commit; one that got worse fails.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter

from tests import packages, tidy

AMBIGUOUS_MOST = 0.25
"""Share of calls of own methods whose name has five definitions or more. It was 0.40."""

MODULES_MOST = 15
"""Modules that lie side by side in one room."""

LONGEST_CHAINS = {"moorage": 44, "moorage_sandbox": 18, "moorage_lab": 13}
"""Modules in the longest chain of imports at the head of modules, by package. Only ever shorter."""

# Rooms with more modules side by side. Only ever made smaller.
LARGE_ROOMS = {
    "moorage/api": 31,
    "moorage/base": 21,
    "moorage/cli": 24,
    "moorage/client": 28,
    "moorage/config": 18,
    "moorage/explain": 24,
    "moorage/framework": 32,
    "moorage/plugins/gpu_share": 19,
    "moorage/plugins/volumes": 16,
    "moorage/service/questions": 17,
    "moorage/snapshot": 31,
    "moorage/state": 27,
    "moorage_lab/bench": 18,
    "moorage_lab/bench/scheduler_perf": 28,
    "moorage_lab/fault_sim": 28,
    "moorage_lab/fault_sim/invariants": 18,
    "moorage_lab/traces": 27,
    "moorage_sandbox/controllers": 25,
}

_BUILT_IN = frozenset(
    name for type_ in (str, list, dict, set, bytes, int, tuple, frozenset) for name in dir(type_)
)


def _methods(text: str) -> Iterator[str]:
    for node in tidy.nodes(text):
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield each.name


def _calls(text: str) -> Iterator[str]:
    for node in tidy.nodes(text):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


def ambiguous_share(sources: Iterator[str]) -> float:
    """Return the share of calls of own methods whose name five or more methods have.

    A call counts if some class here has a method of its name, and no built-in type has.
    """
    definitions: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for text in sources:
        definitions.update(name for name in _methods(text) if not name.startswith("__"))
        calls.update(_calls(text))
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


def longest_chain(imports: Mapping[str, Sequence[str]]) -> int:
    """Return the number of modules in the longest chain of imports."""
    lengths: dict[str, int] = {}
    for module in TopologicalSorter(imports).static_order():
        lengths[module] = 1 + max((lengths[each] for each in imports.get(module, ())), default=0)
    return max(lengths.values(), default=0)


def _imports(text: str, modules: Container[str]) -> Iterator[str]:
    """Yield the modules that a module imports at its head."""
    for node in ast.parse(text).body:
        for each in node.body if isinstance(node, ast.With) else [node]:
            if isinstance(each, ast.ImportFrom) and each.module:
                for alias in each.names:
                    # The imported name is a module itself, or one that a module defines.
                    name = f"{each.module}.{alias.name}"
                    module = name if name in modules else each.module
                    if module in modules:
                        yield module


def test_no_chain_of_imports_gets_longer() -> None:
    modules = packages.modules()
    for package, most in LONGEST_CHAINS.items():
        own = {name: path for name, path in modules.items() if name.split(".")[0] == package}
        imports = {name: [*_imports(path.read_text(), own)] for name, path in own.items()}
        assert longest_chain(imports) <= most, package


def test_a_chain_counts_every_module_from_its_head_to_its_end() -> None:
    assert longest_chain({"a": ["b", "c"], "b": ["c"], "c": [], "d": ["c"]}) == 3

"""The project keeps its own limits: sizes, banned calls, orphans, left-over work, machine paths.

The rules are in ``tests/tidy.py`` and are themselves tested at the end. An exception goes to
`ALLOWED`, with its reason; an entry that is no longer needed fails the test, so the list shrinks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from moorage.framework.capabilities import TRAITS
from moorage.plugins.in_tree import IN_TREE, OPTIONAL
from tests import packages, tidy

ROOT = Path(__file__).resolve().parents[1]

# "rule path name": reason. Only ever made shorter.
ALLOWED: dict[str, str] = {
    "banned scheduler/src/moorage/base/clock.py time.monotonic_ns": (
        "the one place where time enters"
    ),
    "public-methods scheduler/tests/state/machine.py QueueAndCache": (
        "the model has one method for each verb of queue and cache, so that a rule reads like the "
        "call it mirrors"
    ),
}

# Rooms that know plugins only by their capabilities.
_KNOW_NO_PLUGIN = tuple(
    f"{room.relative_to(ROOT).as_posix()}/"
    for source in packages.SOURCES
    for room in sorted(source.glob("*/*"))
    # Measurements, recordings and test profiles name single plugins; a kubelet's reasons for not
    # admitting a pod have the names of plugins.
    if room.name not in ("plugins", "config", "bench", "conformance", "testing", "nodeagent")
)
# The scalar references of the simulation are the plugins' rules, written a second time.
_REFERENCES = "lab/src/moorage_lab/fault_sim/reference/"
# Where every object is complete when its constructor returns.
_BUILT_AT_ONCE = (
    *(f"scheduler/src/moorage/{room}/" for room in ("service", "cli/run")),
    *(f"sandbox/src/moorage_sandbox/{room}/" for room in ("sandbox", "testing")),
    "lab/src/moorage_lab/bench/",
)
_PLUGIN_NAMES = frozenset(entry.name for entry in (*IN_TREE, *OPTIONAL))
# What plugins declare.
_DECLARED = frozenset({*TRAITS, "roles"})
# What reads plugins when a profile is built.
_READ_PLUGINS = frozenset(
    f"scheduler/src/moorage/framework/{name}.py"
    for name in ("capabilities", "roles", "forms", "profile", "adapt")
)

_TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".html", ".js", ".css", ""}
_SKIPPED = {".venv", ".git", ".cache", ".coverage", "__pycache__", "build", "dist", "data"}


def _files(*folders: str, suffixes: frozenset[str] = frozenset({".py"})) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            inside = path.relative_to(ROOT).parts
            if path.is_file() and path.suffix in suffixes and not _SKIPPED & set(inside):
                yield path


def _modules() -> dict[str, str]:
    modules = {}
    for name, path in packages.modules().items():
        modules[name] = path.read_text()
    return modules


def _entry_points() -> frozenset[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    scripts = {target.partition(":")[0] for target in project["scripts"].values()}
    points = packages.entry_points().values()
    named = {target.partition(":")[0] for group in points for target in group.values()}
    # Public, for the authors of plugins: what one imports, and what its tests import.
    return frozenset(scripts | named | {"moorage.plugin", "moorage_sandbox.testing"})


@cache
def _breaches() -> list[tidy.Breach]:
    return list(_found())


def _found() -> Iterator[tidy.Breach]:
    for path in _files(*packages.FOLDERS, *packages.TESTS, "tools", "examples"):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text()
        yield from tidy.size_breaches(name, text)
        yield from tidy.remark_breaches(name, text)
        if name.startswith(packages.FOLDERS):
            yield from tidy.parameter_breaches(name, text)
            yield from tidy.banned_breaches(name, text)
            yield from tidy.capability_breaches(name, text, _DECLARED, _READ_PLUGINS)
            tidy.references(text)  # kept for `orphan_breaches` while the text is taken apart
        if name.startswith(_BUILT_AT_ONCE):
            yield from tidy.outside_breaches(name, text)
        if name.startswith(_KNOW_NO_PLUGIN) and not name.startswith(_REFERENCES):
            yield from tidy.plugin_name_breaches(name, text, _PLUGIN_NAMES)
    here = [p for p in sorted(ROOT.iterdir()) if p.name not in _SKIPPED]
    top = [p for p in here if p.is_file() and p.suffix in _TEXT]
    for path in [
        *top,
        *_files(
            *packages.FOLDERS,
            "tests",
            "docs",
            "tools",
            "examples",
            "deploy",
            suffixes=frozenset(_TEXT),
        ),
    ]:
        yield from tidy.path_breaches(path.relative_to(ROOT).as_posix(), path.read_text())
    modules = _modules()
    yield from tidy.orphan_breaches(modules, _entry_points())
    yield from tidy.plugin_breaches(modules, "moorage.plugins", "moorage.plugins.in_tree")


def test_nothing_breaks_a_rule_that_is_not_on_the_list() -> None:
    new = [breach.message for breach in _breaches() if breach.key not in ALLOWED]
    assert not new, "\n" + "\n".join(new)


def test_the_list_holds_no_exception_that_is_no_longer_needed() -> None:
    assert sorted(ALLOWED.keys() - {breach.key for breach in _breaches()}) == []


def _body(lines: int) -> str:
    return "".join(f"    a{i} = {i}\n" for i in range(lines))


_METHODS = "".join(f"    def m{i}(self): ...\n" for i in range(15))


@pytest.mark.parametrize(
    ("rule", "text", "found"),
    [
        pytest.param(tidy.size_breaches, "a = 1\n" * 600, [], id="600 lines are enough"),
        pytest.param(tidy.size_breaches, "a = 1\n" * 601, [""], id="601 lines are too many"),
        pytest.param(
            tidy.size_breaches, f"def f():\n{_body(59)}", [], id="a function may have 60 lines"
        ),
        pytest.param(
            tidy.size_breaches,
            f"class C:\n  def f(self):\n{_body(60)}",
            ["C.f"],
            id="a method of 61 lines is named with its class",
        ),
        pytest.param(
            tidy.size_breaches,
            f'def f():\n    """Say.\n\n    More.\n    """\n{_body(59)}',
            [],
            id="a docstring does not make a function long",
        ),
        pytest.param(
            tidy.size_breaches, f"class C:\n{_METHODS}", [], id="15 public methods are enough"
        ),
        pytest.param(
            tidy.size_breaches,
            f"class C:\n{_METHODS}    def _p(self): ...\n    def m15(self): ...\n",
            ["C"],
            id="the sixteenth public method is too many",
        ),
        pytest.param(
            tidy.size_breaches,
            f"class C:\n{_METHODS}    @property\n    def m15(self): ...\n",
            [],
            id="a property is not a method",
        ),
        pytest.param(
            tidy.parameter_breaches,
            "class C:\n    def f(self, a, b, c, d, e, *, g): ...\n",
            [],
            id="five arguments by position, self not counted",
        ),
        pytest.param(
            tidy.parameter_breaches,
            "async def f(a, b, /, c, d, e, g): ...\n",
            ["f"],
            id="six arguments by position",
        ),
        pytest.param(
            tidy.banned_breaches,
            "from time import monotonic as now\nnow()\n",
            ["time.monotonic"],
            id="a banned call under another name",
        ),
        pytest.param(
            tidy.banned_breaches,
            "import numpy as np\nnp.random.default_rng()\n",
            ["numpy.random"],
            id="anything below a banned module",
        ),
        pytest.param(
            tidy.banned_breaches, "hash('a')\n", ["hash"], id="the builtin that varies by process"
        ),
        pytest.param(
            tidy.banned_breaches,
            "import time\nclock.monotonic()\nself.hash()\ntime.strftime\n",
            [],
            id="methods of the same name are somebody else's",
        ),
        pytest.param(
            tidy.outside_breaches,
            "def f(queue):\n    queue.on_wake = wake\n",
            ["queue.on_wake"],
            id="an attribute of a parameter is set",
        ),
        pytest.param(
            tidy.outside_breaches,
            "class C:\n  def f(self):\n    self.a.b, self.c = 1, 2\n    self.d.e += 1\n",
            ["self.a.b", "self.d.e"],
            id="an attribute of a part is set, beside one of the object itself",
        ),
        pytest.param(
            tidy.outside_breaches,
            "def f():\n    pump = make_pump()\n    pump.groups = 1\n    setattr(pump, 'a', 2)\n",
            ["pump.groups", "setattr(pump, 'a', 2)"],
            id="an attribute of what another function made is set",
        ),
        pytest.param(
            tidy.outside_breaches,
            "def f():\n    context = ssl.SSLContext(1)\n    context.minimum_version = 2\n",
            [],
            id="an object is completed by the function that makes it",
        ),
        pytest.param(
            tidy.outside_breaches,
            "def f():\n    part = Part()\n    def g(part):\n        part.a = 1\n",
            ["part.a"],
            id="a function inside sees the parameter, not the object made outside",
        ),
        pytest.param(
            tidy.remark_breaches,
            "# " + "TODO: later\n",
            ["TODO"],
            id="left-over work without an issue",
        ),
        pytest.param(
            tidy.remark_breaches, "# " + "TODO(#12): later\n", [], id="left-over work with an issue"
        ),
        pytest.param(
            tidy.remark_breaches,
            'def f():\n    """' + "FIX" + 'ME."""\n',
            ["FIX" + "ME"],
            id="a known fault left in a docstring",
        ),
        pytest.param(
            tidy.path_breaches,
            "see " + "/ho" + "me/somebody/notes\n",
            ["/ho" + "me/somebody"],
            id="a path of one machine",
        ),
        pytest.param(
            tidy.path_breaches, "GET /api/v1/namespaces/home/pods\n", [], id="an API path is fine"
        ),
    ],
)
def test_a_rule_finds(
    rule: Callable[[str, str], Iterator[tidy.Breach]], text: str, found: list[str]
) -> None:
    assert [breach.name for breach in rule("file.py", text)] == found


def test_a_module_nobody_imports_is_an_orphan() -> None:
    sources = {
        "m": "",
        "m.main": "from m.used import thing\nLAZY = 'm.lazy:command'\n",
        "m.used": "",
        "m.lazy": "",
        "m.alone": "import m.alone\n",
        "m.public": "",
        "m.public.part": "",
    }
    found = tidy.orphan_breaches(sources, frozenset({"m.main", "m.public"}))
    assert [breach.path for breach in found] == ["m.alone"]


def test_a_plugin_may_share_modules_but_not_reach_another_plugin() -> None:
    sources = {
        "p.in_tree": "from p import a, b\nfrom p.c import C\nimport other\n",
        "p.a": "from p.shared import thing\n",
        "p.b": "from p.leak import thing\n",
        "p.c": "from p.c import C\n",
        "p.shared": "",
        "p.leak": "import p.c\n",
        "other": "import p.a\n",
    }
    found = tidy.plugin_breaches(sources, "p", "p.in_tree")
    assert [(breach.path, breach.name) for breach in found] == [("p.b", "p.c")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param('getattr(plugin, "epoch", None)\n', ["epoch"], id="getattr of a capability"),
        pytest.param('hasattr(each, "epoch")\n', ["epoch"], id="hasattr of a capability"),
        pytest.param("isinstance(p, BindPlugin)\n", ["BindPlugin"], id="asking for a Protocol"),
        pytest.param('getattr(plugin, "name", "")\n', [], id="another attribute is fine"),
        pytest.param("each.epoch\n", [], id="a table of the profile is fine"),
    ],
)
def test_capabilities_are_read_from_the_profile_only(text: str, found: list[str]) -> None:
    names = frozenset({"epoch"})
    breaches = tidy.capability_breaches("file.py", text, names, frozenset())
    assert [breach.name for breach in breaches] == found
    assert not [*tidy.capability_breaches("file.py", text, names, frozenset({"file.py"}))]


def test_no_plugin_is_known_by_its_name() -> None:
    text = '"""About DefaultBinder."""\nNAME = "DefaultBinder"\nOTHER = "DefaultBinders"\n'
    found = tidy.plugin_name_breaches("file.py", text, frozenset({"DefaultBinder"}))
    assert [breach.key for breach in found] == ["plugin-name file.py DefaultBinder"]

"""Plugins from outside: which references are understood, what is a plugin, who is enabled where."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage import plugin
from moorage.base.errors import ConfigError, UsageError
from moorage.config.load import config_from_values
from moorage.config.merge import expand_profiles
from moorage.framework.enabling import enable_unnamed
from moorage.framework.loading import (
    entry_of,
    load_plugin,
    register_installed,
    register_plugins,
)
from moorage.framework.registry import POINT_METHODS, PluginEntry, Registry
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import pod
from scheduler.tests.framework.builders import handle

SOURCE = """
from moorage import plugin

@plugin.filter
def no_spot(pod, node):
    return node.labels.get("spot") != "true"

class Gate:
    def pre_enqueue(self, pod):
        return True

def undecorated(pod, node):
    return True

NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with plugins in it; what is imported from it is forgotten."""
    (tmp_path / "house_rules.py").write_text(SOURCE)
    (tmp_path / "broken_rules.py").write_text("import no_such_module_of_mine\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        pytest.param("house_rules.py:no_spot", "NoSpot", id="a function of a file"),
        pytest.param("./house_rules.py:Gate", "Gate", id="a class of a file"),
        pytest.param("house_rules:no_spot", "NoSpot", id="a module of the current folder"),
    ],
)
def test_a_reference_is_followed(folder: Path, reference: str, name: str) -> None:
    entry = load_plugin(reference)
    assert (entry.name, entry.origin) == (name, reference)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        pytest.param(
            "house_rules.py",
            "plugin 'house_rules.py': expected module:attribute or path/to/file.py:attribute",
            id="no attribute",
        ),
        pytest.param(
            "nowhere.py:x", "plugin nowhere.py:x: there is no file nowhere.py", id="no file"
        ),
        pytest.param(
            "nowhere:x",
            "plugin nowhere:x: ModuleNotFoundError: No module named 'nowhere'",
            id="no module",
        ),
        pytest.param(
            "house_rules:Nobody",
            "plugin house_rules:Nobody: AttributeError: module 'house_rules' has no attribute "
            "'Nobody'",
            id="no such attribute",
        ),
        pytest.param(
            "broken_rules.py:x",
            "plugin broken_rules.py:x: ModuleNotFoundError: No module named "
            "'no_such_module_of_mine'",
            id="a file that cannot be imported",
        ),
        pytest.param(
            "house_rules:undecorated",
            "house_rules:undecorated: a function without a decorator is no plugin: use a class, or "
            "decorate a function (@plugin.filter, ...)",
            id="a function without a decorator",
        ),
        pytest.param(
            "house_rules:NUMBER",
            "house_rules:NUMBER: a value of type int is no plugin: use a class, or decorate a "
            "function (@plugin.filter, ...)",
            id="a number",
        ),
    ],
)
def test_a_reference_that_leads_nowhere(folder: Path, reference: str, message: str) -> None:
    with pytest.raises(UsageError) as problem:
        load_plugin(reference)
    assert str(problem.value) == message


# -- what is a plugin ------------------------------------------------------------------------------


def fault_of(value: object) -> str:
    with pytest.raises(ConfigError) as problem:
        entry_of(value, origin="here")
    return " | ".join(problem.value.faults)


def named(**members: Any) -> type[Any]:
    return type("Mine", (), members)


def suits(self, state, pod, node_name):
    return None


async def _waits(self, state, pod, node):
    return True


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        pytest.param(
            {"filter_node": lambda self, state, pod: True},
            'plugin "Mine": Filter: filter_node takes no `node`: it is called as '
            "filter_node(state, pod, node)",
            id="an argument too few",
        ),
        pytest.param(
            {"filter_node": lambda self, state, pod, node, extra: True},
            'plugin "Mine": Filter: filter_node asks for `extra`, which it is not given: it is '
            "called as filter_node(state, pod, node)",
            id="an argument too many",
        ),
        pytest.param(
            {"reserve": lambda self, state, node_name, pod: True, "unreserve": suits},
            'plugin "Mine": Reserve: reserve takes `node_name` where it is given `pod`: it is '
            "called as reserve(state, pod, node_name)",
            id="arguments in the wrong order",
        ),
        pytest.param(
            {"filter_node": lambda self, state, pod, node, *, zone: True},
            'plugin "Mine": Filter: filter_node asks for `zone`, which it is not given: it is '
            "called as filter_node(state, pod, node)",
            id="a keyword argument that is not given",
        ),
        pytest.param(
            {"filter_node": _waits},
            'plugin "Mine": Filter: filter_node is async, but only bind, post_bind, pre_bind may '
            "wait",
            id="an async method at a point that may not wait",
        ),
        pytest.param(
            {"pre_enqueue": 5},
            'plugin "Mine": PreEnqueue: pre_enqueue is no method',
            id="no method",
        ),
        pytest.param(
            {"reserve": lambda self, state, pod, node_name: True},
            'plugin "Mine": Reserve: reserve needs unreserve beside it',
            id="one method of a pair",
        ),
        pytest.param(
            {"preFilter": lambda self: True},
            'plugin "Mine": it extends no point: it has none of the methods '
            + ", ".join(method for several in POINT_METHODS.values() for method in several),
            id="no extension point",
        ),
        pytest.param(
            {"pre_enqueue": lambda self, pod: True, "args_type": dict},
            'plugin "Mine": its args_type is no msgspec.Struct',
            id="arguments of another kind",
        ),
        pytest.param(
            {"pre_enqueue": lambda self, pod: True, "__init__": lambda self, size: None},
            'plugin "Mine": __init__ asks for `size`: it is given `args`, `handle`, or both',
            id="a constructor with a further argument",
        ),
        pytest.param(
            {"pre_enqueue": lambda self, pod: True, "name": 3},
            'plugin "3": its name is no text',
            id="an invalid name",
        ),
    ],
)
def test_a_class_that_is_no_plugin(members: dict[str, Any], fault: str) -> None:
    assert fault_of(named(**members)) == fault


def test_a_decorated_function_that_is_no_plugin() -> None:
    @plugin.filter
    def spotless(node, pod):
        return True

    async def slow(pod, node):
        return 1

    decorate: Any = plugin.score
    decorate(slow)

    assert fault_of(spotless) == (
        'plugin "Spotless": filter: takes `node` where it is given `pod`: it is called as '
        "spotless(pod, node)"
    )
    assert fault_of(slow) == (
        'plugin "Slow": score: is async, but only pre_bind, post_bind may wait'
    )


def points(entry: PluginEntry) -> list[str]:
    return [method for method in dir(entry.plugin_class) if not method.startswith("_")]


def test_a_decorated_function_is_a_plugin_and_stays_a_function() -> None:
    @plugin.filter
    def no_spot_nodes(pod, node):
        """Keep off."""
        return False

    @plugin.pre_enqueue(name="Office")
    def at_work(pod):
        return f"{pod.name} waits for the morning"

    @plugin.post_bind
    async def tell(pod, node_name):
        """Tell."""

    entries = [entry_of(each, origin="x") for each in (no_spot_nodes, at_work, tell)]
    assert [entry.name for entry in entries] == ["NoSpotNodes", "Office", "Tell"]
    assert [points(entry) for entry in entries] == [
        ["filter_node", "name"],
        ["name", "pre_enqueue"],
        ["name", "post_bind"],
    ]
    anything: Any = None
    assert no_spot_nodes(anything, anything) is False
    assert at_work(PodInfo(pod("p"))) == "p waits for the morning"
    gate: Any = entries[1].make(None, handle())
    assert gate.pre_enqueue(pod("p")) == "p waits for the morning"


class Sized(msgspec.Struct, frozen=True):
    size: int
    colour: str = "blue"


class Plain:
    def pre_enqueue(self, pod):
        return True


class WithNothing(Plain):
    def __init__(self):
        self.seen = "nothing"


class WithArgs(Plain):
    def __init__(self, args):
        self.seen = args


class WithHandle(Plain):
    def __init__(self, handle):
        self.seen = handle


class WithBoth(Plain):
    def __init__(self, args, handle):
        self.seen = (args, handle)


@pytest.mark.parametrize(
    ("plugin_class", "seen"),
    [
        pytest.param(Plain, None, id="no constructor"),
        pytest.param(WithNothing, "nothing", id="nothing"),
        pytest.param(WithArgs, 1, id="arguments"),
        pytest.param(WithHandle, 2, id="handle"),
        pytest.param(WithBoth, (1, 2), id="both"),
    ],
)
def test_a_constructor_is_given_what_it_names(plugin_class: type[Any], seen: object) -> None:
    handle_: Any = 2
    made = entry_of(plugin_class, origin="here").make(1, handle_)
    assert getattr(made, "seen", None) == seen


# -- configuration ---------------------------------------------------------------------------------


def config(*profiles: dict[str, Any]) -> Any:
    return config_from_values(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": list(profiles),
        }
    )


def with_args(args: dict[str, Any]) -> Any:
    mine = named(pre_enqueue=lambda self, pod: True, args_type=Sized)
    registry = in_tree_registry()
    registry.register(entry_of(mine, origin="here"))
    profile = {
        "plugins": {"preEnqueue": {"enabled": [{"name": "Mine"}]}},
        "pluginConfig": [{"name": "Mine", "args": args}],
    }
    return expand_profiles(config(profile), registry)[0].plugin_args["Mine"]


def test_arguments_are_read_as_the_plugins_own_type() -> None:
    assert with_args({"size": 3}) == Sized(3, "blue")


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        pytest.param({"size": "3"}, "args.size", id="a wrong type"),
        pytest.param({"size": 3, "sice": 4}, "sice", id="an unknown field"),
        pytest.param({}, "args.size", id="a field that is missing"),
    ],
)
def test_arguments_are_read_strictly(args: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as problem:
        with_args(args)
    assert 'initializing plugin "Mine": ' in str(problem.value)
    assert fault in str(problem.value)


FILTER = entry_of(named(filter_node=lambda self, state, pod, node: True), origin="here")
SORT = entry_of(named(sort_key=lambda self, priority, timestamp_ns, pod: ()), origin="here")
BIND = entry_of(named(bind=lambda self, state, pod, node_name: True), origin="here")


def order(entry: PluginEntry, point: str, *profiles: dict[str, Any]) -> list[tuple[str, ...]]:
    registry = in_tree_registry()
    registry.register(entry)
    changed, _ = enable_unnamed(config(*profiles), [entry])
    return [spec.points[point] for spec in expand_profiles(changed, registry)]


ENABLED = {"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}
DISABLED = {"plugins": {"multiPoint": {"disabled": [{"name": "Mine"}]}}}


@pytest.mark.parametrize(
    ("profiles", "enabled"),
    [
        pytest.param([{}], [True], id="no profile names the plugin: enabled"),
        pytest.param(
            [{"schedulerName": "x"}, {"schedulerName": "y"}], [True, True], id="in every profile"
        ),
        pytest.param(
            [{"schedulerName": "x", **ENABLED}, {"schedulerName": "y"}],
            [True, False],
            id="one profile enables the plugin: enabled only there",
        ),
        pytest.param(
            [{"schedulerName": "x", **DISABLED}, {"schedulerName": "y"}],
            [False, False],
            id="one profile disables the plugin: enabled nowhere",
        ),
    ],
)
def test_a_plugin_given_is_enabled_unless_it_is_named(
    profiles: list[dict[str, Any]], enabled: list[bool]
) -> None:
    assert ["Mine" in names for names in order(FILTER, "filter", *profiles)] == enabled


def test_an_enabled_plugin_comes_after_the_default_plugins() -> None:
    (names,) = order(FILTER, "filter", {})
    assert names.index("Mine") == len(names) - 1


def test_a_plugin_for_the_order_of_the_queue_takes_the_place_of_the_default() -> None:
    assert order(SORT, "queueSort", {}) == [("Mine",)]


def test_a_plugin_that_binds_comes_before_the_default_binder() -> None:
    assert order(BIND, "bind", {}) == [("Mine", "DefaultBinder")]


# -- entry points ----------------------------------------------------------------------------------


def installed(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "moorage.plugins")


def test_an_installed_plugin_is_known_and_loaded_only_when_named(folder: Path) -> None:
    registry = Registry()
    found = [installed("NoSpot", "house_rules:no_spot"), installed("Bad", "broken_rules:x")]
    sys.path.append(str(folder))
    register_installed(registry, found)
    assert "house_rules" not in sys.modules
    entry = registry.find("NoSpot")
    assert entry is not None
    assert entry.origin == "entry point NoSpot = house_rules:no_spot of an unknown distribution"
    assert registry.extends("NoSpot", "filter")
    assert registry.find("Nobody") is None


@pytest.mark.parametrize(
    ("point", "message"),
    [
        pytest.param(
            installed("Bad", "broken_rules:x"),
            "entry point Bad = broken_rules:x of an unknown distribution: ModuleNotFoundError: No "
            "module named 'no_such_module_of_mine'",
            id="an entry point that cannot be imported",
        ),
        pytest.param(
            installed("Bad", "house_rules:no_spot"),
            "entry point Bad = house_rules:no_spot of an unknown distribution: the entry point is "
            'called "Bad", its plugin "NoSpot"',
            id="an entry point whose plugin has another name",
        ),
    ],
)
def test_a_broken_entry_point_stops_whoever_uses_it(
    folder: Path, point: EntryPoint, message: str
) -> None:
    sys.path.append(str(folder))
    registry = in_tree_registry()
    register_installed(registry, [point])
    assert len(expand_profiles(config({}), registry)) == 1
    profile = {"plugins": {"filter": {"enabled": [{"name": "Bad"}]}}}
    with pytest.raises(ConfigError) as problem:
        expand_profiles(config(profile), registry)
    assert str(problem.value) == message


def test_the_distribution_is_named() -> None:
    registry = Registry()

    class Point(EntryPoint):
        @property
        def dist(self) -> Any:  # type: ignore[override]
            return type("Distribution", (), {"name": "acme-rules"})()

    register_installed(registry, [Point("Bad", "nowhere_at_all:x", "moorage.plugins")])
    with pytest.raises(ConfigError, match="entry point Bad = nowhere_at_all:x of acme-rules: "):
        registry.find("Bad")


def test_two_plugins_of_one_name_are_refused(folder: Path) -> None:
    registry = in_tree_registry()
    with pytest.raises(UsageError) as problem:
        register_plugins(registry, ["house_rules.py:Gate", "house_rules:Gate"])
    assert str(problem.value) == "plugin house_rules:Gate: a plugin named Gate already exists"
    with pytest.raises(UsageError) as problem:
        register_installed(registry, [installed("NodeName", "house_rules:Gate")])
    assert str(problem.value) == (
        "plugin entry point NodeName = house_rules:Gate of an unknown distribution: a plugin named "
        "NodeName already exists"
    )

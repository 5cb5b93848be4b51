"""Plugin pages say what the program does, and every message of a plugin has a remedy.

Messages are found in the source: string literals of ``moorage.plugins`` that hold a space and a
letter, f-strings with their values left open, without docstrings and assertions. Left out: whether
a remedy helps, and messages made elsewhere (`api`, extenders) or put together from many parts
(`plugins.claims.devices`, of what is wrong with a claim, a class or a slice).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import moorage.plugins
from moorage.config import plugin_args
from moorage.config.plugin_args import (
    DefaultPreemptionArgs,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from moorage.framework.registry import PluginEntry
from moorage.plugins.in_tree import IN_TREE, OPTIONAL
from tools.pages.plugin_messages import HINTS, REMEDIES, VOLUME_MESSAGES
from tools.pages.plugin_pages import (
    Costs,
    events,
    field_texts,
    nested,
    page,
    plugin_pages,
    read_costs,
    type_name,
)

_ROOM = Path(moorage.plugins.__path__[0])
MODULES = sorted(
    ".".join(path.relative_to(_ROOM).with_suffix("").parts)
    for path in _ROOM.rglob("*.py")
    if path.parent.name != "devices"
)
NO_MESSAGES = {
    **dict.fromkeys(
        (
            "by name among candidates equal by every other rule",
            "fewest victims",
            "fewest victims, counting those that leave anyway",
            "fewest violations of PodDisruptionBudgets",
            "latest start of the most important victim",
            "lowest priority of the most important victim",
            "lowest sum of the victims' priorities",
            "the only candidate",
        ),
        "a rule of preemption, told in a record",
    ),
    **dict.fromkeys(
        (
            "a whole GPU",
            "admit GPUs of model <> too",
            "ask for <> GPU<> instead of <>",
            "ask for <> thousandths of a GPU instead of <>",
        ),
        "a remedy itself, tried by explain",
    ),
    **dict.fromkeys(
        (
            "enabled in every profile",
            "where the configuration enables it",
            "plugin <> (<>) extends <>: <>",
        ),
        "part of a line at start",
    ),
    "preemption: ": "a prefix",
    "obtaining pod's soft topology spread constraints": "part of a longer message",
    "bindTimeoutSeconds: must not be negative": "stops the program at start",
    "profile {} has groupMode permit, which cannot keep a group in one topology domain: use "
    "groupMode trial, or set feature gate TopologyAwareWorkloadScheduling to false": (
        "stops the program at start"
    ),
    "<> of group <>": "part of a longer message",
    "PodGroup <>": "part of a longer message",
    "topology spread": "the name of a part of a pod's shape",
    "NUMA requests": "the name of a part of a pod's shape",
    "elastic quotas": "the name of a key of the cycle state",
    '<>: Invalid value: "<>": needs <>=true': "stops the program at start",
    "shares of devices": "the name of a stream of random numbers",
    "resources that may be devices": "the name of what a part of a pod's shape remembers",
    "device binding failed": "part of a longer message",
    "device binding timeout": "part of a longer message",
    "add allocation and reservation to": "part of a longer message",
    "add finalizer to": "part of a longer message",
    "add reservation to": "part of a longer message",
    "backoff of podGroup <>": "the name of a task, for the log",
    "deallocation of ResourceClaim <>": "the name of a task, for the log",
    "deletion of ResourceClaim <>": "the name of a task, for the log",
    "reservation of ResourceClaim <> for pod <>": "the name of a task, for the log",
}


def bare(text: str) -> str:
    """Return a message without the names of what varies."""
    return re.sub(r"<[^<>]*>", "<>", text)


class _Literals(ast.NodeVisitor):
    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.found: set[str] = set()

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.add(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.found.add("".join(self._part(each) for each in node.values))

    def _part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.FormattedValue)
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        constant = getattr(self.module, name, None) if name else None
        return constant if isinstance(constant, str) else "<>"


def literals(name: str) -> set[str]:
    """Return the texts of a module of ``moorage.plugins``, values left open."""
    module = importlib.import_module(f"moorage.plugins.{name}")
    reader = _Literals(module)
    reader.visit(ast.parse(Path(str(module.__file__)).read_text()))
    return {text for text in reader.found if " " in text and re.search("[A-Za-z]", text)}


def messages(name: str) -> set[str]:
    """Return the texts of a module that people are shown."""
    return literals(name) - set(NO_MESSAGES)


def modules_of(entry: PluginEntry) -> Iterator[str]:
    """Yield the plugin's module and those of the package it imports, each once."""
    room = "moorage.plugins."
    waiting, seen = [entry.plugin_class.__module__.removeprefix(room)], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        module = importlib.import_module(f"moorage.plugins.{name}")
        waiting += [
            str(node.module).removeprefix(room)
            for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text()))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(room)
        ]


@pytest.mark.parametrize("name", MODULES)
def test_every_message_of_a_module_has_a_remedy(name):
    known = {bare(text) for remedies in REMEDIES.values() for text in remedies}
    assert sorted(messages(name) - known) == []


@pytest.mark.parametrize("entry", [*IN_TREE, *OPTIONAL], ids=lambda entry: entry.name)
def test_a_plugin_lists_all_that_its_own_module_says_and_nothing_that_nobody_says(entry):
    listed = {bare(text) for text in REMEDIES.get(entry.name, {})}
    own, *helpers = modules_of(entry)
    said = messages(own).union(*(messages(name) for name in helpers))
    assert (sorted(messages(own) - listed), sorted(listed - said)) == ([], [])


def test_remedies_are_of_plugins_that_exist_and_are_sentences():
    assert set(REMEDIES) <= {entry.name for entry in (*IN_TREE, *OPTIONAL)}
    remedies = [text for table in REMEDIES.values() for text in table.values()]
    assert [text for text in remedies if not re.fullmatch(r"[A-Z`].*\.", text)] == []
    assert VOLUME_MESSAGES.keys() <= REMEDIES["VolumeZone"].keys()


def test_pages_keep_text_that_is_no_message():
    found = set[str]().union(*(literals(name) for name in MODULES))
    assert sorted(set(NO_MESSAGES) - found) == []


def test_messages_are_found_in_the_source():
    assert messages("resources.node_resources_fit") == {"Too many pods", "Insufficient <>"}
    assert messages("volumes.assumed") == {'"<>" is gone', '"<>" has changed since the decision'}


def test_there_is_a_page_for_each_plugin_and_an_index_that_links_them():
    found = plugin_pages(Costs())
    names = [entry.name for entry in (*IN_TREE, *OPTIONAL)]
    assert list(found) == [*(f"{name}.md" for name in names), "index.md"]
    assert re.findall(r"^\| \[(\w+)\]\(\1\.md\)", found["index.md"], flags=re.MULTILINE) == names


def entry_of(name: str) -> PluginEntry:
    return next(entry for entry in IN_TREE if entry.name == name)


def test_a_page_has_points_weight_arguments_messages_and_events():
    text = page(entry_of("TaintToleration"), Costs())
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == [
        "Arguments",
        "Messages",
        "Events that wake its pods",
    ]
    assert "- Extension points: `filter`, `preScore`, `score`\n" in text
    assert "- In the default profile: yes, weight 3\n" in text
    assert "## Arguments\n\nNone.\n" in text
    assert "| `node(s) had untolerated taint(s)` | Remove the taint" in text
    assert "| Node | Add, UpdateNodeTaint | " in text


def test_arguments_are_shown_with_type_default_and_text_and_what_they_hold():
    text = page(entry_of("NodeResourcesFit"), Costs())
    assert "| `ignoredResources` | list of string | `[]` | Extended resources Filter does" in text
    assert re.findall(r"^### (.+)$", text, flags=re.MULTILINE) == [
        "ScoringStrategy",
        "ResourceSpec",
        "RequestedToCapacityRatioParam",
        "UtilizationShapePoint",
    ]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        pytest.param(int, "integer", id="a number"),
        pytest.param(tuple[str, ...], "list of string", id="a list of texts"),
        pytest.param(ScoringStrategy | None, "`ScoringStrategy`", id="an optional field"),
        pytest.param(
            tuple[ScoringStrategy, ...] | None, "list of `ScoringStrategy`", id="a list of structs"
        ),
    ],
)
def test_types_are_named_in_the_words_of_a_file(type_: Any, expected: str):
    assert type_name(type_) == expected


def test_docstrings_below_fields_are_found():
    assert field_texts(DefaultPreemptionArgs) == {
        "min_candidate_nodes_percentage": (
            "Percent of all nodes, 0 to 100; not 0 together with the other."
        ),
        "min_candidate_nodes_absolute": (
            "Number of nodes; the greater of both counts, up to all nodes."
        ),
    }
    assert field_texts(plugin_args.Args) == {}
    assert set(field_texts(NodeResourcesFitArgs)) == {
        "ignored_resources",
        "ignored_resource_groups",
        "scoring_strategy",
    }


@pytest.mark.parametrize("entry", [*IN_TREE, *OPTIONAL], ids=lambda entry: entry.name)
def test_every_argument_has_a_type_a_default_and_a_text(entry):
    structs = [] if entry.args_type is None else [entry.args_type, *nested(entry.args_type)]
    silent = [
        f"{struct.__name__}.{field.name}"
        for struct in structs
        for field in msgspec.structs.fields(struct)
        if not field_texts(struct).get(field.name, "").endswith(".")
    ]
    assert silent == []


def test_events_are_what_the_plugin_registers():
    assert [str(each.event.resource) for each in events(entry_of("NodePorts"))] == ["Pod", "Node"]
    assert events(entry_of("DefaultBinder")) == []


def test_each_hint_says_when_it_wakes_in_its_docstring_or_in_the_table():
    bare_hints = [
        (entry.name, each.event.resource)
        for entry in (*IN_TREE, *OPTIONAL)
        for each in events(entry)
        if each.hint is not None and not inspect.getdoc(each.hint)
    ]
    assert sorted(bare_hints) == sorted(HINTS)


def test_fields_are_called_as_a_file_spells_them():
    assert "List: `defaultConstraints`." in page(entry_of("PodTopologySpread"), Costs())


def test_costs_are_shown_by_number_of_nodes_or_not_at_all():
    costs = read_costs(
        b'{"NodeName": {"5000": 1012.5, "100": 3}, "machine": "a machine","measured": "2026-01-31"}'
    )
    text = page(entry_of("NodeName"), costs)
    assert "`moorage bench plugins`, on a machine, measured 2026-01-31." in text
    assert text.endswith("| 100 | 3.0 |\n| 5,000 | 1,012.5 |\n")
    found = plugin_pages(costs)
    assert [name for name, text in found.items() if "## Measured cost" in text] == ["NodeName.md"]
    assert "Measured cost" not in "".join(plugin_pages(Costs()).values())


def test_costs_of_another_form_are_refused():
    with pytest.raises(msgspec.ValidationError):
        read_costs(b'{"NodeName": 3}')


def test_the_index_says_how_to_measure():
    assert "`moorage bench plugins`" in plugin_pages(Costs())["index.md"]

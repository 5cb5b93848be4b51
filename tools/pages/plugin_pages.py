"""One reference page for each in-tree plugin, and their index: pure functions from the program.

Called by ``tools.pages.generate``. What a plugin does is its module's docstring, arguments are its
struct in ``moorage.config.plugin_args``, events are what a plugin made with default arguments
registers, messages come from ``tools.pages.plugin_messages`` and costs from a file a benchmark
wrote, if there is one.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from moorage.api.changes import Action, action_name
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config import plugin_args
from moorage.config.args import example_args
from moorage.config.defaults import DEFAULT_MULTI_POINT, default_multi_point
from moorage.config.feature_gates import DEFAULT_GATES, FeatureGates
from moorage.config.gate_table import GATES
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.registry import POINT_METHODS, PluginEntry
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import IN_TREE, OPTIONAL
from moorage.snapshot.snapshot import Snapshot
from tools.pages.plugin_messages import HINTS, REMEDIES


class Costs(msgspec.Struct, frozen=True):
    """What was measured, and where; empty when nothing was.

    Parameters
    ----------
    plugins
        By plugin: number of nodes to microseconds.
    machine
        Processor and Python, for people.
    measured
        The day, such as 2026-01-31.
    """

    plugins: Mapping[str, Mapping[str, float]] = {}
    machine: str = ""
    measured: str = ""


_MARK = "<!-- Written by `make docs` from the program. Do not edit. -->"
_SCALARS = {str: "string", int: "integer", bool: "boolean", float: "number"}
_ACTION_ORDER = [a for a in Action if a not in (Action.UPDATE, Action.ALL)]


def read_costs(text: bytes) -> Costs:
    """Return measured costs from the JSON that ``moorage bench plugins -o json`` wrote.

    Raises
    ------
    msgspec.ValidationError
        It has another form.
    """
    found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    machine, measured = (
        msgspec.json.decode(found.pop(name, b'""'), type=str) for name in ("machine", "measured")
    )
    plugins = {name: msgspec.json.decode(raw, type=dict[str, float]) for name, raw in found.items()}
    return Costs(plugins, machine, measured)


def plugin_pages(costs: Costs) -> dict[str, str]:
    """Return every page by file name; without costs pages have no section for them."""
    found = {f"{entry.name}.md": page(entry, costs) for entry in (*IN_TREE, *OPTIONAL)}
    return {**found, "index.md": index(costs)}


def index(costs: Costs) -> str:
    """Return the page that links the others, in the order the default profile runs them."""
    rows = [
        f"| [{entry.name}]({entry.name}.md) | {', '.join(points(entry))} | {_weight(entry)} |\n"
        for entry in (*IN_TREE, *OPTIONAL)
    ]
    measured = "Pages end with a cost measured once; m" if costs.plugins else "M"
    return (
        f"# Plugins\n\n{_MARK}\n\nThe plugins of the default profile, in their order, those "
        "that feature gates add, and last those that a\nconfiguration may enable. Each page says "
        "what the plugin does, its arguments, its messages and what to do\nabout them, and the "
        f"events that wake pods it refused. {measured}easure their cost on\nyour machine with "
        "`moorage bench plugins`. [Your own](../plugin-points.md) are as good.\n\n"
        "| Plugin | Extension points | Weight |\n|---|---|---:|\n" + "".join(rows)
    )


def page(entry: PluginEntry, costs: Costs) -> str:
    """Return the page of one plugin."""
    sections = [
        f"# {entry.name}\n\n{_MARK}\n",
        _what(entry),
        _points(entry),
        _arguments(entry.args_type),
        _messages(entry.name),
        _events(entry.name, events(entry)),
    ]
    cost = costs.plugins.get(entry.name)
    if cost:
        sections.append(_cost(cost, costs))
    return "\n".join(sections)


def points(entry: PluginEntry) -> list[str]:
    """Return the extension points of a plugin, as the configuration spells them."""
    return [point for point in POINT_METHODS if entry.extends(point)]


def made(entry: PluginEntry) -> Any:
    """Return the plugin, made with its default arguments, or with those of its example."""
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=Snapshot(),
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        client=None,
    )
    return entry.make(example_args(entry.name), handle)


def events(entry: PluginEntry) -> list[EventRegistration]:
    """Return what the plugin registers with default arguments."""
    register = getattr(made(entry), "events_to_register", None)
    return [] if register is None else list(register())


def type_name(type_: Any) -> str:
    """Return a field's type in the words of the configuration file."""
    if type_ in _SCALARS:
        return _SCALARS[type_]
    origin, inner = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        return " or ".join(type_name(each) for each in inner if each is not NoneType)
    if origin in (tuple, list):
        return f"list of {type_name(inner[0])}"
    return f"`{type_.__name__}`"


def field_texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstrings below the fields of a struct and of its bases, by attribute name."""
    texts: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        if each is not msgspec.Struct and issubclass(each, msgspec.Struct):
            texts |= _own_field_texts(each)
    return texts


def _own_field_texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    body = ast.parse(inspect.getsource(struct)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            found[field.target.id] = _prose(str(text.value.value))
    return found


# -- sections --------------------------------------------------------------------------------------


def _what(entry: PluginEntry) -> str:
    module = sys.modules[entry.plugin_class.__module__]
    return _prose(inspect.getdoc(module) or "", paragraphs=True) + "\n"


def _points(entry: PluginEntry) -> str:
    weight = _weight(entry)
    lines = [
        f"- Extension points: {', '.join(f'`{point}`' for point in points(entry))}",
        f"- In the default profile: {_enabled(entry.name)}"
        + (f", weight {weight}" if weight else ""),
    ]
    return "\n".join(lines) + "\n"


def _enabled(name: str) -> str:
    for gate in GATES:  # switched on alone, whatever it requires: only its own plugins are asked
        if True in gate.built and name in _defaults(FeatureGates({gate.name: True})):
            return "yes" if name in _defaults(DEFAULT_GATES) else f"with feature gate {gate.name}"
    return "yes" if name in _defaults(DEFAULT_GATES) else "no"


def _defaults(gates: FeatureGates) -> list[str]:
    return [ref.name for ref in default_multi_point(gates)]


def _weight(entry: PluginEntry) -> str:
    """Return the default weight; "" for a plugin that does not score or is not enabled."""
    if not entry.extends("score"):
        return ""
    refs = (ref for ref in DEFAULT_MULTI_POINT if ref.name == entry.name)
    return next((str(ref.weight or 1) for ref in refs), "")  # unset means 1


def _arguments(args: type[msgspec.Struct] | None) -> str:
    if args is None:
        return "## Arguments\n\nNone.\n"
    lines = [f"## Arguments\n\n`{args.__name__}`: {_doc(args)}\n", _fields(args)]
    for struct in nested(args):
        lines += [f"### {struct.__name__}\n\n{_doc(struct)}\n", _fields(struct)]
    return "\n".join(lines)


def _fields(struct: type[msgspec.Struct]) -> str:
    fields = msgspec.structs.fields(struct)
    texts = field_texts(struct)
    for field, each in itertools.product(fields, texts):  # other fields as a file spells them
        texts[each] = texts[each].replace(f"`{field.name}`", f"`{field.encode_name}`")
    rows = [
        f"| `{field.encode_name}` | {type_name(field.type)} "
        f"| {_default(field)} | {texts.get(field.name, '')} |\n"
        for field in fields
    ]
    return "| Field | Type | Default | Meaning |\n|---|---|---|---|\n" + "".join(rows)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    made = field.default is msgspec.NODEFAULT
    return f"`{_json(field.default_factory() if made else field.default)}`"


def nested(struct: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """Return the structs of the configuration's own that a struct's fields hold, each once."""
    found: dict[str, type[msgspec.Struct]] = {}
    for field in msgspec.structs.fields(struct):
        for type_ in _leaves(field.type):
            if getattr(type_, "__module__", "").startswith(plugin_args.__name__):
                for each in (type_, *nested(type_)):
                    found.setdefault(each.__name__, each)
    return list(found.values())


def _leaves(type_: Any) -> Iterator[Any]:
    inner = get_args(type_)
    if not inner:
        yield type_
    for each in inner:
        yield from _leaves(each)


def _messages(name: str) -> str:
    known = REMEDIES.get(name, {})
    if not known:
        return "## Messages\n\nNone of its own: it refuses no pod.\n"
    rows = [f"| `{text}` | {remedy} |\n" for text, remedy in known.items()]
    return (
        "## Messages\n\n`<...>` stands for what varies.\n\n"
        "| Message | What to do |\n|---|---|\n" + "".join(rows)
    )


def _events(name: str, registered: list[EventRegistration]) -> str:
    if not registered:
        return "## Events that wake its pods\n\nNone.\n"
    rows = []
    for each in registered:
        when = _when(name, each)
        rows.append(f"| {each.event.resource} | {_actions(each.event.action)} | {when} |\n")
    return (
        "## Events that wake its pods\n\n| Resource | Actions | When |\n|---|---|---|\n"
        + "".join(rows)
    )


def _when(name: str, registered: EventRegistration) -> str:
    if registered.hint is None:
        return "Always."
    text = inspect.getdoc(registered.hint)
    return HINTS[name, registered.event.resource] if text is None else _first(text)


def _actions(action: int) -> str:
    if action_name(action):
        return action_name(action)
    names = []
    if action & Action.UPDATE == Action.UPDATE:
        names, action = ["Update"], action & ~Action.UPDATE
    return ", ".join([action_name(one) for one in _ACTION_ORDER if action & one] + names)


def _cost(cost: Mapping[str, float], costs: Costs) -> str:
    rows = [f"| {int(n):,} | {cost[n]:,.1f} |\n" for n in sorted(cost, key=int)]
    where = f", on {costs.machine}" if costs.machine else ""
    when = f", measured {costs.measured}" if costs.measured else ""
    return (
        "## Measured cost\n\nFilter over all nodes and Score over those that fit, each with what "
        "precedes and follows it, for one\npod that gives the plugin work, nothing reused: median "
        f"of\n`moorage bench plugins`{where}{when}.\n\n"
        "| Nodes | Microseconds |\n|---:|---:|\n" + "".join(rows)
    )


# -- text ------------------------------------------------------------------------------------------


def _doc(struct: type[msgspec.Struct]) -> str:
    return _prose(inspect.getdoc(struct) or "")


def _first(text: str) -> str:
    """Return the first paragraph."""
    return _prose(text.split("\n\n", maxsplit=1)[0])


def _prose(text: str, *, paragraphs: bool = False) -> str:
    """Return a docstring as Markdown; in one line unless its paragraphs are kept."""
    text = text.replace("``", "`").strip()
    return text if paragraphs else re.sub(r"\s+", " ", text)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()

"""The rules behind ``tests/test_tidy.py``: each takes source text and returns what breaks the rule.

Place in the flow: none; this is how the project keeps its own limits (CONTRIBUTING, "Sizes").
What ruff can check is left to ruff; what import-linter can check is left to import-linter.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
POSITIONAL_MAX = 5  # ruff holds all parameters together to eight
PUBLIC_METHODS_MAX = 15

# Hidden inputs that ruff's banned-api table in pyproject.toml does not list, and what to use.
BANNED = {
    "time.monotonic": "a base.clock.Clock",
    "time.monotonic_ns": "a base.clock.Clock",
    "time.perf_counter": "a base.clock.Clock",
    "time.perf_counter_ns": "a base.clock.Clock",
    "time.localtime": "a base.clock.Clock",
    "time.gmtime": "a base.clock.Clock",
    "datetime.datetime.today": "a base.clock.Clock",
    "datetime.date.today": "a base.clock.Clock",
    "numpy.random": "a named stream of base.rng.Streams",
    "os.urandom": "a named stream of base.rng.Streams, or secrets for credentials",
    "uuid.uuid1": "base.ids.new_uid",
    "asyncio.get_event_loop": "base.aio.TaskOwner",
    "hash": "a stable key: hashes of strings differ from process to process",
    "eval": "a parser",
    "exec": "a function",
    "breakpoint": "nothing: it stops a server",
    "input": "an option or an argument: nothing waits for a person",
}

_BANNED_WORD = re.compile(rf"\b(?:{'|'.join(name.rpartition('.')[2] for name in BANNED)})\b")
_MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|home|Users|root)/[\w.-]+")
_TODO = re.compile(r"\bTODO\b(?!\(#\d+\))")
_NEVER = re.compile(r"\b(?:FIXME|XXX|HACK)\b")


@lru_cache(maxsize=2)
def _tree(text: str) -> ast.Module:
    """Return a text taken apart; kept, for several rules ask about one text in turn."""
    return ast.parse(text)


@lru_cache(maxsize=2)
def nodes(text: str) -> tuple[ast.AST, ...]:
    """Return all there is in a text, outer nodes before inner ones.

    What a name is for (`ast.Load`, `ast.Store`) stands in the name and is left out.
    """
    return tuple(within(_tree(text)))


def within(top: ast.AST) -> list[ast.AST]:
    """Return a node with all that is in it, outer nodes before inner ones."""
    found = [top]
    for node in found:  # grows; `ast.walk` takes three times as long
        for value in vars(node).values():
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append(value)
    return found


class Breach(NamedTuple):
    """One broken rule: the key that the allow-list uses, and the sentence a person reads."""

    rule: str
    path: str
    name: str
    message: str

    @property
    def key(self) -> str:
        return f"{self.rule} {self.path} {self.name}".rstrip()


def size_breaches(path: str, text: str) -> Iterator[Breach]:
    """Yield the module, functions and classes of one file that are too large.

    A function's docstring does not count towards its length; blank lines and comments do.
    """
    lines = len(text.splitlines())
    if lines > MODULE_LINES_MAX:
        message = f"{path} has {lines} lines, at most {MODULE_LINES_MAX}: split it by question"
        yield Breach("module-lines", path, "", message)
    for name, node in _definitions(_tree(text)):
        if isinstance(node, ast.ClassDef):
            yield from _class_breaches(path, name, node)
        else:
            yield from _function_breaches(path, name, node)


def parameter_breaches(path: str, text: str) -> Iterator[Breach]:
    """Yield the functions that can be called with too many unnamed arguments."""
    for name, node in _definitions(_tree(text)):
        if isinstance(node, ast.ClassDef):
            continue
        given = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
        count = len([arg for arg in given if arg not in ("self", "cls")])
        if count > POSITIONAL_MAX:
            where = f"{path}:{node.lineno} {name}"
            message = f"{where} takes {count} positional arguments, at most {POSITIONAL_MAX}"
            yield Breach("parameters", path, name, message)


def banned_breaches(path: str, text: str) -> Iterator[Breach]:
    """Yield every use of a name in `BANNED`, however it was imported."""
    if not _BANNED_WORD.search(text):
        return  # most files have none of the words, and taking a text apart is slow
    origin = _imported_names(nodes(text))
    for node in nodes(text):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        dotted = _dotted(node, origin)
        if dotted in BANNED:
            message = f"{path}:{node.lineno} uses {dotted}; take {BANNED[dotted]}"
            yield Breach("banned", path, dotted, message)


def outside_breaches(path: str, text: str) -> Iterator[Breach]:
    """Yield the places that set an attribute of an object that is complete already.

    An object is still in the making where it is `self` or `cls`, and in the function that made it:
    a name that is bound there to the call of a class, or of a class in a module.
    """
    for function in nodes(text):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            continue
        fresh = {"self", "cls"} | set(_made_here(function))
        for node in _own_nodes(function):
            target = _set_from_outside(node, fresh)
            if target is not None:
                where, shown = f"{path}:{target.lineno}", ast.unparse(target)
                message = f"{where} sets {shown}: give it to the object when it is made"
                yield Breach("outside", path, shown, message)


def _set_from_outside(node: ast.AST, fresh: set[str]) -> ast.expr | None:
    """Return the attribute, or the call of setattr, by which a node changes a complete object."""
    if isinstance(node, ast.Call) and _is_name(node.func, "setattr"):
        return node
    if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
        return None
    whole = not (isinstance(node.value, ast.Name) and node.value.id in fresh)
    return node if whole else None


def _made_here(function: ast.AST) -> Iterator[str]:
    """Yield the names that a function binds to the call of a class."""
    for node in _own_nodes(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = node.value.func
            name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
            if name.lstrip("_")[:1].isupper():
                yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, those of functions inside it left out."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _own_nodes(child)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def remark_breaches(path: str, text: str) -> Iterator[Breach]:
    """Yield comments and docstrings that leave work behind without an issue number."""
    for line, remark in _remarks(text):
        for pattern, advice in (
            (_TODO, "write TODO(#issue)"),
            (_NEVER, "fix it or open an issue"),
        ):
            if match := pattern.search(remark):
                message = f"{path}:{line} says {match.group()}: {advice}"
                yield Breach("remark", path, match.group(), message)


def path_breaches(path: str, text: str) -> Iterator[Breach]:
    """Yield places that name a directory of somebody's machine."""
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _MACHINE_PATH.finditer(line):
            message = f"{path}:{number} names {match.group()}, a path of one machine"
            yield Breach("machine-path", path, match.group(), message)


def orphan_breaches(sources: Mapping[str, str], entry_points: frozenset[str]) -> Iterator[Breach]:
    """Yield the modules that no other module imports and that nobody starts from outside.

    Parameters
    ----------
    sources
        Text by dotted module name; a package stands under its own name.
    entry_points
        Dotted names reached from outside: console scripts, and packages published as a whole.
    """
    wanted: set[str] = set()
    for module, text in sources.items():
        wanted |= references(text) - {module}
    packages = {name.rpartition(".")[0] for name in sources}
    for module in sorted(sources):
        published = any(module == e or module.startswith(f"{e}.") for e in entry_points)
        if module in wanted or module in packages or published or module.endswith("__main__"):
            continue
        message = f"nothing imports {module}: use it, remove it or make it an entry point"
        yield Breach("orphan", module, "", message)


def plugin_breaches(sources: Mapping[str, str], room: str, registry: str) -> Iterator[Breach]:
    """Yield the plugins that reach another plugin, directly or through what they share.

    Parameters
    ----------
    sources
        Text by dotted module name.
    room
        The package the plugins live in.
    registry
        The module that names all plugins: what it imports from the room is a plugin, the rest of
        the room is what several plugins are written with.
    """
    inside = {m: _imports(text) for m, text in sources.items() if m.startswith(f"{room}.")}
    plugins = inside.get(registry, frozenset()) & inside.keys() - {registry}
    for plugin in sorted(plugins):
        reached, waiting = {plugin}, [plugin]
        while waiting:
            new = inside[waiting.pop()] & inside.keys() - reached
            reached |= new
            waiting += sorted(new)
        for other in sorted(reached & (plugins | {registry}) - {plugin}):
            message = f"{plugin} reaches the plugin {other}: share a module that is no plugin"
            yield Breach("plugin", plugin, other, message)


def capability_breaches(
    path: str, text: str, capabilities: frozenset[str], allowed: frozenset[str]
) -> Iterator[Breach]:
    """Yield the places that find out by themselves what a plugin can do.

    Parameters
    ----------
    path, text
        One file.
    capabilities
        Names of the capabilities: nobody asks a plugin for an attribute of that name.
    allowed
        The files that read plugins when a profile is built.
    """
    if path in allowed:
        return
    for node in nodes(text):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        second = node.args[1] if len(node.args) > 1 else None
        if node.func.id in ("getattr", "hasattr"):
            found = str(second.value) if isinstance(second, ast.Constant) else ""
            wrong = found in capabilities
        elif node.func.id == "isinstance":
            found = second.id if isinstance(second, ast.Name) else ""
            wrong = found.endswith(("Plugin", "Extensions"))
        else:
            continue
        if wrong:
            message = f"{path}:{node.lineno} asks a plugin for {found}: read the profile's tables"
            yield Breach("capability", path, found, message)


def plugin_name_breaches(path: str, text: str, names: frozenset[str]) -> Iterator[Breach]:
    """Yield the places that know a plugin by its name.

    Parameters
    ----------
    path, text
        One file.
    names
        Names of the in-tree plugins.
    """
    docstrings = {id(node.value) for node in nodes(text) if isinstance(node, ast.Expr)}
    for node in nodes(text):
        if isinstance(node, ast.Constant) and node.value in names and id(node) not in docstrings:
            message = f"{path}:{node.lineno} knows the plugin {node.value}: make it a capability"
            yield Breach("plugin-name", path, str(node.value), message)


def _function_breaches(
    path: str, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Breach]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    if lines > FUNCTION_LINES_MAX:
        message = f"{path}:{node.lineno} {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"
        yield Breach("function-lines", path, name, message)


def _class_breaches(path: str, name: str, node: ast.ClassDef) -> Iterator[Breach]:
    functions = (n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    methods = {n.name for n in functions if not n.name.startswith("_") and not _is_property(n)}
    if len(methods) > PUBLIC_METHODS_MAX:
        message = f"{path}:{node.lineno} {name} has {len(methods)} public methods"
        yield Breach("public-methods", path, name, f"{message}: {sorted(methods)}")


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    return bool(names & {"property", "cached_property"})


_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Definition]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", node
            yield from _definitions(node, f"{prefix}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from _definitions(node, prefix)


def _imported_names(all_nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Map each name bound by an import to what it stands for."""
    names: dict[str, str] = {}
    for node in all_nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, origin: Mapping[str, str]) -> str:
    """Return what a name or attribute chain stands for; empty if it starts at a local value."""
    if isinstance(node, ast.Name):
        builtin = node.id if "." not in node.id and node.id in BANNED else ""
        return origin.get(node.id, builtin)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, origin)
        return f"{base}.{node.attr}" if base else ""
    return ""


def _remarks(text: str) -> Iterator[tuple[int, str]]:
    if not (_TODO.search(text) or _NEVER.search(text)):
        return  # taking a text apart is slow, and nearly none has such a word anywhere
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in nodes(text):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                yield node.body[0].lineno, docstring


@cache
def _imports(text: str) -> frozenset[str]:
    """Return the modules a text imports, and what it takes from them as if it were modules."""
    found: set[str] = set()
    for node in nodes(text):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


@cache
def references(text: str) -> frozenset[str]:
    """Return the modules a text may load: by import, or as ``package.module[:attribute]``."""
    constants = (n.value for n in nodes(text) if isinstance(n, ast.Constant))
    return _imports(text) | {v.partition(":")[0] for v in constants if isinstance(v, str)}

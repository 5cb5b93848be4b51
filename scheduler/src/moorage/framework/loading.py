"""Finds plugins outside the package: by reference (``--plugin``) and by entry point.

A reference is ``module:attribute`` or ``path/to/file.py:attribute``. Entry points are those of the
group `GROUP`; one is loaded only when a configuration names it, so that a broken or slow package
does no harm to profiles that do not use it.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import msgspec

from moorage.base.errors import ConfigError, UsageError
from moorage.framework.declaring import declared, function_faults, plugin_class_of
from moorage.framework.handle import Handle
from moorage.framework.raised import is_signal, safe_text_of
from moorage.framework.registry import POINT_METHODS, PluginEntry, Registry, class_faults

GROUP: Final = "moorage.plugins"
"""Entry-point group; the name of an entry point is the name of its plugin."""


class OutsideEntry(PluginEntry, frozen=True):
    """A plugin from outside; its constructor names ``args``, ``handle`` or both."""

    def make(self, args: object, handle: Handle) -> object:
        """Construct the plugin for one profile."""
        given: dict[str, object] = {"args": args, "handle": handle}
        wanted = _constructor(self.plugin_class)
        return self.plugin_class(**{name: given[name] for name in given if name in wanted})


def entry_of(value: object, *, origin: str) -> PluginEntry:
    """Return the registry entry of a plugin: a class, or a decorated function.

    Parameters
    ----------
    value
        The object that was found.
    origin
        The place of the object, for people.

    Raises
    ------
    ConfigError
        The object is no plugin, or cannot be called as one. Every fault is listed, with the
        extension point and the argument.
    """
    mark = declared(value)
    if mark is not None and callable(value):
        name, faults = mark.name, function_faults(value, mark)
        plugin_class: type[Any] = plugin_class_of(value, mark)
    elif isinstance(value, type):
        plugin_class = value
        name = getattr(value, "name", value.__name__)
        faults = _faults_of_class(value)
        if not isinstance(name, str) or not name:
            faults.append("its name is no text")
    else:
        kind = f"a value of type {type(value).__name__}"
        if callable(value):
            kind = "a function without a decorator"
        raise ConfigError(
            [f"{kind} is no plugin: use a class, or decorate a function (@plugin.filter, ...)"],
            source=origin,
        )
    if faults:
        raise ConfigError([f'plugin "{name}": {fault}' for fault in faults], source=origin)
    args_type = getattr(plugin_class, "args_type", None)
    return OutsideEntry(name, plugin_class, args_type, origin=origin)


def load_plugin(reference: str) -> PluginEntry:
    """Return the plugin a reference names.

    Parameters
    ----------
    reference
        ``module:attribute``, looked for where Python looks and in the current folder, or
        ``path/to/file.py:attribute``.

    Raises
    ------
    UsageError
        There is no such module, file or attribute, or importing it failed.
    ConfigError
        The object is no plugin.
    """
    place, _, attribute = reference.rpartition(":")
    if not place or not attribute:
        raise UsageError(
            f"plugin {reference!r}: expected module:attribute or path/to/file.py:attribute"
        )
    try:
        value: Any = _import_file(Path(place)) if place.endswith(".py") else _import_module(place)
        for part in attribute.split("."):
            value = getattr(value, part)
    except BaseException as problem:
        raise _unusable(f"plugin {reference}", problem) from problem
    return entry_of(value, origin=reference)


def references_in(path: Path) -> list[str]:
    """Return a reference to every plugin that a file defines, in the order of the file.

    Raises
    ------
    UsageError
        The file cannot be imported, or defines no plugin.
    """
    try:
        module = _import_file(path)
    except BaseException as problem:
        raise _unusable(f"plugin {path}", problem) from problem
    methods = {method for each in POINT_METHODS.values() for method in each}
    references = [
        f"{path}:{name}"
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
        and (
            declared(value) is not None
            or (isinstance(value, type) and any(hasattr(value, each) for each in methods))
        )
    ]
    if not references:
        raise UsageError(f"{path} defines no plugin: neither a decorated function nor a class")
    return references


def register_installed(
    registry: Registry, entry_points: Iterable[importlib.metadata.EntryPoint] | None = None
) -> None:
    """Make the plugins of installed packages known; none is loaded or enabled by this.

    Parameters
    ----------
    registry
        The registry that they are added to.
    entry_points
        Entry points; those of the group `GROUP` when None.

    Raises
    ------
    UsageError
        Two plugins have one name.
    """
    points = importlib.metadata.entry_points(group=GROUP) if entry_points is None else entry_points
    for point in sorted(points, key=lambda each: (each.name, each.value)):
        load = partial(_load_entry_point, point)
        _register(partial(registry.register_unloaded, point.name, load), _origin(point))


def register_plugins(registry: Registry, references: Iterable[str]) -> tuple[str, ...]:
    """Load the plugins that references name and make them known; return their names, in order.

    Raises
    ------
    UsageError
        A plugin cannot be loaded, is no plugin, or has the name of another plugin.
    """
    names = []
    for reference in references:
        entry = load_plugin(reference)
        _register(partial(registry.register, entry), reference)
        names.append(entry.name)
    return tuple(names)


def _register(register: Callable[[], None], origin: str) -> None:
    try:
        register()
    except ValueError as problem:
        raise UsageError(f"plugin {origin}: {problem}") from problem


def _load_entry_point(point: importlib.metadata.EntryPoint) -> PluginEntry:
    origin = _origin(point)
    try:
        value = point.load()
    except BaseException as problem:
        if is_signal(problem):
            raise
        raise ConfigError([_problem_text(problem)], source=origin) from problem
    entry = entry_of(value, origin=origin)
    if entry.name != point.name:
        fault = f'the entry point is called "{point.name}", its plugin "{entry.name}"'
        raise ConfigError([fault], source=origin)
    return entry


def _origin(point: importlib.metadata.EntryPoint) -> str:
    distribution = "an unknown distribution" if point.dist is None else point.dist.name
    return f"entry point {point.name} = {point.value} of {distribution}"


def _import_module(name: str) -> ModuleType:
    # Last, so that no file in the current folder takes the place of an installed module.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


class _TextLoader(importlib.machinery.SourceFileLoader):
    """Compiles a file from its text each time.

    Python's cached bytecode counts as fresh for the rest of the second in which the file was saved,
    and a reload may come sooner.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the module."""
        del fullname
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    name = f"moorage_plugin_file_{path.stem}"
    loader = _TextLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None, f"{path} ends in .py"
    assert spec.loader is not None, f"{path} ends in .py"
    module = importlib.util.module_from_spec(spec)
    # The module is known while it runs, because annotations of structs are looked up there.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _faults_of_class(plugin_class: type[Any]) -> list[str]:
    faults = list(class_faults(plugin_class))
    methods = [method for several in POINT_METHODS.values() for method in several]
    if not any(hasattr(plugin_class, method) for method in methods):
        faults.append(f"it extends no point: it has none of the methods {', '.join(methods)}")
    args_type = getattr(plugin_class, "args_type", None)
    if args_type is not None and not (
        isinstance(args_type, type) and issubclass(args_type, msgspec.Struct)
    ):
        faults.append("its args_type is no msgspec.Struct")
    for name, parameter in _constructor(plugin_class).items():
        if name not in ("args", "handle") and parameter.default is parameter.empty:
            faults.append(f"__init__ asks for `{name}`: it is given `args`, `handle`, or both")
    return faults


def _constructor(plugin_class: type[Any]) -> dict[str, inspect.Parameter]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(plugin_class).parameters
    return {name: p for name, p in parameters.items() if p.kind not in variable}


def _unusable(what: str, problem: BaseException) -> BaseException:
    """Return the error of a file that cannot be imported; a signal stays a signal."""
    return problem if is_signal(problem) else UsageError(f"{what}: {_problem_text(problem)}")


def _problem_text(problem: BaseException) -> str:
    if isinstance(problem, UsageError):
        return str(problem)
    if isinstance(problem, Exception):
        return f"{type(problem).__name__}: {safe_text_of(problem)}"
    return safe_text_of(problem)

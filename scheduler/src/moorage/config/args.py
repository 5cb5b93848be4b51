"""Arguments of in-tree plugins: found by kind, read strictly, checked, defaulted.

Called by `load` for every ``pluginConfig`` entry and by `merge` for plugins configured without
one. The types themselves are in `plugin_args`, `plugin_args_optional`, `plugin_args_gpu` and the
folder `scheduler_plugins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from moorage.config.past import is_past, with_advice
from moorage.config.plugin_args import API_VERSION, ARGS_KINDS, Args, ArgsKind, with_defaults
from moorage.config.plugin_args_gpu import GPU_ARGS_KINDS
from moorage.config.plugin_args_optional import OPTIONAL_ARGS_KINDS, with_optional_defaults
from moorage.config.scheduler_plugins.numa import NUMA_ARGS_KINDS, with_numa_defaults
from moorage.config.scheduler_plugins.trimaran import (
    TRIMARAN_ARGS_KINDS,
    with_trimaran_defaults,
)
from moorage.config.strict import Reader, invalid

_KINDS: Final[Mapping[str, ArgsKind]] = {
    **ARGS_KINDS,
    **OPTIONAL_ARGS_KINDS,
    **GPU_ARGS_KINDS,
    **NUMA_ARGS_KINDS,
    **TRIMARAN_ARGS_KINDS,
}


def args_type(plugin: str) -> type[Args] | None:
    """Return the type of an in-tree plugin's arguments; None for a plugin without arguments."""
    kind = _KINDS.get(plugin)
    return None if kind is None else kind.type


def default_args(plugin: str) -> Args | None:
    """Return a plugin's arguments when none are configured.

    None for a plugin without arguments, and for one with an argument that has no default.
    """
    kind = _KINDS.get(plugin)
    return None if kind is None or _requires_some(kind.type) else _with_defaults(kind.type())


@cache
def _requires_some(args: type[Args]) -> bool:
    """Whether an argument has no default; kept, as each profile asks about every plugin."""
    return any(field.required for field in msgspec.structs.fields(args))


def example_args(plugin: str) -> Args | None:
    """Return arguments with which a plugin can be made: the defaults, or its kind's example.

    For pages and tests that make every plugin. None for a plugin without arguments.

    Raises
    ------
    ValueError
        An argument is required, and the kind's example lacks it or has a fault.
    """
    kind = _KINDS.get(plugin)
    args = default_args(plugin)
    if kind is None or args is not None:
        return args
    faults: list[str] = []
    example: Args = read_args(plugin, kind.example, path=f"{plugin} example", faults=faults)
    if faults:
        raise ValueError("; ".join(faults))
    return example


def read_args(plugin: str, raw: object, *, path: str, faults: list[str]) -> Any:
    """Return configured arguments as the plugin's struct, recording every fault.

    Parameters
    ----------
    plugin
        Name of the plugin.
    raw
        Plain values, or None for an entry without arguments.
    path
        Path of the arguments, e.g. ``profiles[0].pluginConfig[1].args``.
    faults
        Appended to.

    Returns
    -------
    object
        The struct; `raw` unchanged for plugins whose kind is not part of the API; the defaults,
        or None, where `raw` cannot be read.
    """
    kind = _KINDS.get(plugin)
    if kind is None:
        return raw
    default = default_args(plugin)
    if raw is None and default is not None:
        return default
    raw = {} if raw is None else raw
    if not isinstance(raw, Mapping) or not _kind_matches(plugin, raw):
        faults.append(invalid(path, _kind_only(raw), "has to match plugin args"))
        if not isinstance(raw, Mapping) or not is_past(raw.get("apiVersion")):
            return default
    reader = Reader()
    args = reader.convert_value(kind.type, _body(raw), path=path)
    faults += [with_advice(fault) for fault in reader.faults]
    if args is None:
        return default
    args = _with_defaults(args)
    if not reader.faults:
        faults += kind.validate(args, path)
    return args


def read_foreign_args(
    type_: type[msgspec.Struct], raw: object, *, path: str
) -> tuple[Any, list[str]]:
    """Return the arguments of a plugin defined elsewhere as its own struct, and the faults."""
    reader = Reader()
    args = reader.convert_value(type_, _body(raw) if isinstance(raw, Mapping) else raw, path=path)
    return args, reader.faults


def _with_defaults(args: Args) -> Args:
    for fill in (with_defaults, with_optional_defaults, with_numa_defaults, with_trimaran_defaults):
        args = fill(args)
    return args


def _kind_matches(plugin: str, raw: Mapping[str, Any]) -> bool:
    kind, version = raw.get("kind"), raw.get("apiVersion")
    return kind in (None, f"{plugin}Args") and version in (None, API_VERSION)


def _kind_only(raw: object) -> object:
    """Return the kind of arguments, as a fault shows it."""
    if not isinstance(raw, Mapping):
        return raw
    return {key: raw[key] for key in ("apiVersion", "kind") if key in raw}


def _body(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}

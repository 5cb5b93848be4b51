"""A configuration written as an equivalent file, with every default spelled out.

The reverse of `load`, for ``moorage config defaults`` and ``--write-config-to``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.config.args import default_args
from moorage.config.merge import merge_plugins
from moorage.config.own import LoadedConfiguration
from moorage.config.plugin_args import API_VERSION as ARGS_VERSION
from moorage.config.types import PluginConfig, Profile


def documents(config: LoadedConfiguration) -> list[dict[str, Any]]:
    """Return both documents of a configuration as plain values.

    Settings with an "unset" that no value can express (``percentageOfNodesToScore``,
    ``clientConnection.qps``) are left out.
    """
    profiles = [_with_defaults(profile) for profile in config.scheduler.profiles]
    scheduler = msgspec.structs.replace(config.scheduler, profiles=profiles)
    return [_plain(scheduler), _plain(config.own)]


def _with_defaults(profile: Profile) -> Profile:
    plugins = merge_plugins(profile.plugins)
    given = {entry.name: entry for entry in profile.plugin_config}
    names = dict.fromkeys([*(ref.name for ref in plugins.multi_point.enabled), *given])
    entries = []
    for name in names:
        args = given[name].args if name in given else default_args(name)
        if args is not None:
            entries.append(PluginConfig(name=name, args=_args(name, args)))
    return msgspec.structs.replace(profile, plugins=plugins, plugin_config=entries)


def _args(name: str, args: Any) -> Any:
    if not isinstance(args, msgspec.Struct):
        return args
    return {"apiVersion": ARGS_VERSION, "kind": f"{name}Args", **_plain(args)}


def _plain(struct: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = _without_nothing(msgspec.to_builtins(struct))
    return found


def _without_nothing(value: Any) -> Any:
    """Drop null values and empty lists of plugins; both read the same when absent."""
    if isinstance(value, dict):
        kept = {key: _without_nothing(item) for key, item in value.items() if item is not None}
        return {key: item for key, item in kept.items() if not _says_nothing(key, item)}
    if isinstance(value, list | tuple):
        return [_without_nothing(item) for item in value]
    return value


def _says_nothing(key: str, value: Any) -> bool:
    return value == {} or (value == [] and key in ("enabled", "disabled"))

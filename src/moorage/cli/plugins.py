"""Brings a configuration together with plugins from outside: installed ones, and ``--plugin``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.config.own import LoadedConfiguration
from moorage.framework.containment import Containment
from moorage.framework.enabling import enable_unnamed, points_of
from moorage.framework.loading import register_installed, register_plugins
from moorage.framework.registry import PluginEntry, Registry
from moorage.plugins.in_tree import in_tree_registry


class WithPlugins(msgspec.Struct, frozen=True):
    """A configuration together with the plugins from outside.

    Parameters
    ----------
    config
        With the plugins enabled that it did not name.
    registry
        Every plugin there is.
    notes
        A line for each plugin given, for people.
    """

    config: LoadedConfiguration
    registry: Registry
    notes: tuple[str, ...] = ()


def with_plugins(
    config: LoadedConfiguration,
    references: Sequence[str] = (),
    *,
    containment: Containment | None = None,
) -> WithPlugins:
    """Make the plugins of installed packages and the given ones known, and enable the latter.

    Parameters
    ----------
    config
        As the file has it.
    references
        What ``--plugin`` was given.
    containment
        How plugins from outside are called.

    Raises
    ------
    UsageError
        A plugin cannot be loaded, or is none.
    """
    registry = in_tree_registry(containment)
    register_installed(registry)
    names = register_plugins(registry, references)
    entries = [entry for name in names if (entry := registry.find(name)) is not None]
    scheduler, enabled = enable_unnamed(config.scheduler, entries)
    notes = tuple(_note(entry, enabled=entry in enabled) for entry in entries)
    loaded = msgspec.structs.replace(config, scheduler=scheduler)
    return WithPlugins(loaded, registry, notes)


def _note(entry: PluginEntry, *, enabled: bool) -> str:
    where = ", ".join(points_of(entry))
    how = "enabled in every profile" if enabled else "where the configuration enables it"
    return f"plugin {entry.name} ({entry.origin}) extends {where}: {how}"

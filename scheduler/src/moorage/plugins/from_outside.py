"""Adds plugins from outside to a configuration: plugins of packages, and of ``--plugin``."""

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
        The configuration, with the given plugins enabled.
    registry
        All known plugins.
    notes
        A line for each given plugin, for people.
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
    """Register the plugins of installed packages and the given plugins, and enable the latter.

    Parameters
    ----------
    config
        The configuration of the file.
    references
        Values of ``--plugin``.
    containment
        How plugins from outside are called.

    Raises
    ------
    UsageError
        A plugin cannot be loaded, or a value is not a plugin.
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

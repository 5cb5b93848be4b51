"""Enables plugins given by ``--plugin`` that the configuration does not mention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from moorage.config.types import KubeSchedulerConfiguration, PluginRef, Plugins, PluginSet
from moorage.config.validation import by_point
from moorage.framework.registry import POINT_METHODS, PluginEntry


def enable_unnamed(
    config: KubeSchedulerConfiguration, entries: Sequence[PluginEntry]
) -> tuple[KubeSchedulerConfiguration, tuple[PluginEntry, ...]]:
    """Enable plugins in every profile, unless a profile names them.

    A plugin that any profile enables or disables anywhere is left to the configuration. Any other
    plugin is enabled through MultiPoint, with weight 1, after the default plugins. At Bind the
    plugin comes before the default binder, which never passes a pod on. At QueueSort the plugin
    takes the place of the default, because a profile has only one.

    Returns
    -------
    tuple
        The configuration, and the entries this enabled.
    """
    named = set(_plugin_names(config))
    added = tuple(entry for entry in entries if entry.name not in named)
    profiles = []
    for profile in config.profiles:
        plugins = profile.plugins
        for entry in added:
            plugins = _with(plugins, entry)
        profiles.append(msgspec.structs.replace(profile, plugins=plugins))
    return msgspec.structs.replace(config, profiles=profiles), added


def points_of(entry: PluginEntry) -> tuple[str, ...]:
    """Return the extension points of a plugin, as the configuration spells them."""
    return tuple(point for point in POINT_METHODS if entry.extends(point))


def _plugin_names(config: KubeSchedulerConfiguration) -> Iterator[str]:
    for profile in config.profiles:
        for _, plugin_set in by_point(profile.plugins):
            for ref in (*plugin_set.enabled, *plugin_set.disabled):
                yield ref.name


def _with(plugins: Plugins, entry: PluginEntry) -> Plugins:
    ref = PluginRef(name=entry.name)
    changes = {"multi_point": _and(plugins.multi_point, ref)}
    if entry.extends("bind"):
        changes["bind"] = _and(plugins.bind, ref)
    if entry.extends("queueSort"):
        changes["queue_sort"] = PluginSet(enabled=[ref], disabled=[PluginRef(name="*")])
    return msgspec.structs.replace(plugins, **changes)


def _and(plugin_set: PluginSet, ref: PluginRef) -> PluginSet:
    return msgspec.structs.replace(plugin_set, enabled=[*plugin_set.enabled, ref])

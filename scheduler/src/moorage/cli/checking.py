"""Checks a configuration as `moorage run` would use it: its text, its plugins and its profiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError, UsageError
from moorage.base.rng import Streams
from moorage.config.load import Reading, file_text, read_config
from moorage.config.own import LoadedConfiguration
from moorage.config.types import KubeSchedulerConfiguration
from moorage.plugins.from_outside import with_plugins
from moorage.service.core import Core, build_core
from moorage.service.process.start_faults import start_faults

_ARGS = re.compile(r"profiles\[(\d+)\]\.pluginConfig\[(\d+)\]")


Change: TypeAlias = Callable[[LoadedConfiguration], LoadedConfiguration]
"""Changes a configuration that was read, as flags do."""


class Checked(NamedTuple):
    """A configuration without faults, and the core that was built to check it.

    Parameters
    ----------
    config
        The configuration.
    core
        The profiles, with the plugins from outside.
    """

    config: LoadedConfiguration
    core: Core


def check_config(
    path: Path | None, plugins: Sequence[str] = (), change: Change | None = None
) -> LoadedConfiguration:
    """Load a configuration and build its profiles once, so that every fault is found at start.

    Parameters, Raises: as `checked_core`.
    """
    return checked_core(path, plugins, change).config


def checked_core(
    path: Path | None, plugins: Sequence[str] = (), change: Change | None = None
) -> Checked:
    """Load a configuration and build its profiles once, and return both.

    Parameters
    ----------
    path
        The file; None for the defaults.
    plugins
        Plugins from outside.
    change
        What flags change before the profiles are built; None for nothing.

    Raises
    ------
    ConfigError
        The file or a plugin cannot be read or used; every fault is listed.
    """
    source = "" if path is None else str(path)
    text = None if path is None else file_text(path)
    reading, core = _built(text, plugins, source=source, change=change)
    if core is None:
        raise ConfigError(reading.faults, source=source)
    return Checked(reading.config, core)


def check_text(
    text: str | None,
    plugins: Sequence[str] = (),
    *,
    source: str = "",
    change: Change | None = None,
) -> Reading:
    """Read a configuration, build its profiles once, and return it with every fault found.

    Parameters
    ----------
    text
        The documents; None for the defaults.
    plugins
        Plugins from outside.
    source
        Name of the file, for the message about a text that is no YAML.
    change
        As `check_config` takes it.

    Raises
    ------
    ConfigError
        The text is no YAML.
    """
    return _built(text, plugins, source=source, change=change)[0]


def _built(
    text: str | None, plugins: Sequence[str], *, source: str, change: Change | None
) -> tuple[Reading, Core | None]:
    """Return a configuration with every fault, and its core; None for one with faults."""
    config, faults = (
        Reading(LoadedConfiguration(), []) if text is None else read_config(text, source=source)
    )
    if change is not None:
        config = change(config)
    try:
        known = with_plugins(config, plugins)
    except UsageError as error:
        faults += _signed(error)
        known = with_plugins(config)
    clock, streams = ManualClock(), Streams(0)
    last: list[str] = []
    if not faults:
        try:
            core = build_core(known.config, known.registry, clock=clock, streams=streams)
        except ConfigError as error:
            last += error.faults
        else:
            return Reading(config, []), core
    unusable = _unusable(config.scheduler, faults)
    found = start_faults(
        known.config, known.registry, clock=clock, streams=streams, unusable=unusable
    )
    return Reading(config, [*faults, *(found or last)]), None


def _unusable(
    config: KubeSchedulerConfiguration, faults: Sequence[str]
) -> frozenset[tuple[str, str]]:
    """Return (schedulerName, plugin) of the arguments that faults are about."""
    unusable = set()
    for fault in faults:
        for profile, entry in _ARGS.findall(fault):
            if int(profile) < len(config.profiles):
                each = config.profiles[int(profile)]
                if int(entry) < len(each.plugin_config):
                    unusable.add((each.scheduler_name, each.plugin_config[int(entry)].name))
    return frozenset(unusable)


def _signed(error: UsageError) -> list[str]:
    """Return the faults of plugins from outside, each with its origin."""
    if not isinstance(error, ConfigError):
        return [str(error)]
    return [f"{error.source}: {fault}" if error.source else fault for fault in error.faults]

"""The scheduler's configuration as far as the cluster around the scheduler has to fit it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from moorage.config.emulation import DEFAULT_VERSION

if TYPE_CHECKING:
    from moorage.service.core import Core

DEFAULT_NAMES: Final = frozenset({"default-scheduler"})
"""The schedulerNames of `moorage.config.own.LoadedConfiguration`, which takes long to import."""


class Configured(NamedTuple):
    """The demands of a configuration on its cluster.

    Parameters
    ----------
    names
        The schedulerNames that are served.
    version
        The version of Kubernetes that the API server plays.
    custom_kinds
        Plural names of the kinds of scheduler-plugins that the plugins watch.
    """

    names: frozenset[str]
    version: str
    custom_kinds: list[str]


def checked(
    path: Path | None,
    plugins: tuple[str, ...],
    emulation: Mapping[str, object],
    *,
    groups: bool = False,
) -> Configured:
    """Check a configuration before any process starts, and return what it asks of the cluster.

    Parameters
    ----------
    path, plugins
        The file, and plugins from outside.
    emulation
        The flags of the emulated version and of feature gates.
    groups
        Whether groups of every form are switched on.

    Raises
    ------
    ConfigError
        The file, a flag or a plugin cannot be used; every fault is listed.
    """
    version = ""
    if emulation:
        from moorage.cli.run.overrides import with_flags
        from moorage.config.load import load_config

        loaded = with_flags(load_config(path), emulation, has_config=path is not None)
        version = loaded.gates.version
    if path is None and not plugins and not groups:
        # The scheduler's modules take a second to import; the defaults have no mistakes.
        return Configured(DEFAULT_NAMES, version or DEFAULT_VERSION, [])
    from moorage.cli.checking import checked_core
    from moorage.config.own import with_groups

    loaded, core = checked_core(path, plugins, with_groups if groups else None)
    names = frozenset(profile.scheduler_name for profile in loaded.scheduler.profiles)
    return Configured(names, version or loaded.gates.version, _custom_kinds(core))


def _custom_kinds(core: Core) -> list[str]:
    from moorage.service.intake.kinds import CUSTOM, watched

    kinds = watched(core.profiles.values(), pod_groups=False)
    return [each.resource.plural for each in kinds if each in CUSTOM]

"""The line that ``moorage run`` writes at its start: its server, profiles, plugins and lease."""

from __future__ import annotations

import logging

from moorage.base.verbosity import V0, tell
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.plugins.from_outside import WithPlugins
from moorage.service.process.leader import Elector
from moorage.service.scheduler import Scheduler

_log = logging.getLogger(__name__)


async def tell_start(
    scheduler: Scheduler, server: str, known: WithPlugins, *, seed: int, records: str
) -> None:
    """Log the line, as soon as it is known whether this process leads or waits."""
    elector = scheduler.elector
    if elector is not None:
        await elector.tried.wait()
    specs = expand_profiles(known.config.scheduler, known.registry, gates=known.config.gates)
    (usual,) = expand_profiles(
        LoadedConfiguration().scheduler, known.registry, gates=known.config.gates
    )
    tell(
        _log,
        V0,
        "Scheduling",
        server=server,
        profiles=", ".join(spec.scheduler_name for spec in specs),
        plugins="; ".join(f"{spec.scheduler_name}: {plugins_of(spec, usual)}" for spec in specs),
        leaderElection=_leading(elector),
        seed=seed,
        records=records,
    )


def plugins_of(spec: ProfileSpec, usual: ProfileSpec) -> str:
    """Return the plugins of a profile as their difference from the default profile.

    Parameters
    ----------
    spec
        The profile.
    usual
        The default profile.
    """
    has, had = _names(spec), _names(usual)
    added = [f"+{name}" for name in has if name not in had]
    gone = [f"-{name}" for name in had if name not in has]
    return " ".join([f"{len(has)} (default", *added, *gone]) + ")"


def _names(spec: ProfileSpec) -> list[str]:
    return sorted({name for names in spec.points.values() for name in names})


def _leading(elector: Elector | None) -> str:
    if elector is None:
        return "off"
    if elector.leading:
        return f"leads by lease {elector.lease}"
    held = f", held by {elector.holder}" if elector.holder else ""
    return f"waits for lease {elector.lease}{held}"

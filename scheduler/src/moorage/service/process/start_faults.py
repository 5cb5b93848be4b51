"""Every fault that hinders the start, in one pass: of profiles, and of each plugin by itself.

`core.build_core` stops at the first plugin that cannot be constructed. A person who fixes a file
wants to know of all of them, and of the faults next to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.merge import ProfileSpec, read_profiles
from moorage.config.own import LoadedConfiguration
from moorage.framework.capabilities import capabilities_of
from moorage.framework.handle import Handle
from moorage.framework.points import EventsToRegister
from moorage.framework.profile import construct_plugin
from moorage.framework.registry import Registry
from moorage.framework.roles import roles_of
from moorage.framework.status import ReasonTable
from moorage.service.core import empty_snapshot
from moorage.service.intake.pod_store import PodStore
from moorage.state.nominations import Nominator


def start_faults(
    config: LoadedConfiguration,
    registry: Registry,
    *,
    clock: Clock,
    streams: Streams,
    unusable: Collection[tuple[str, str]] = (),
) -> list[str]:
    """Return the faults of all profiles and of all their plugins.

    Parameters
    ----------
    config
        The configuration, as far as it could be read.
    registry
        Every known plugin.
    clock, streams
        Time and randomness, as plugins get them.
    unusable
        (schedulerName, plugin) of the arguments known to be at fault; these plugins are not
        constructed, for a value at fault may break them.
    """
    specs, faults = read_profiles(config.scheduler, registry, gates=config.gates)
    nominator = Nominator(PodStore().get)
    shared = Handle(
        profile_name="",
        snapshot=empty_snapshot(nominator, config.gates, specs, registry),
        reasons=ReasonTable(),
        clock=clock,
        streams=streams,
        gates=config.gates,
    )
    for spec in specs:
        own = config.own.profile(spec.scheduler_name)
        handle = msgspec.structs.replace(
            shared,
            profile_name=spec.scheduler_name,
            group_mode=own.group_mode,
            group_orders=own.group_orders,
            complete_groups=own.complete_groups,
        )
        for name in dict.fromkeys(name for names in spec.points.values() for name in names):
            known = (spec.scheduler_name, name) in unusable or any(
                f'initializing plugin "{name}": ' in fault for fault in faults
            )
            if not known:
                faults += _plugin_faults(name, spec, registry, handle)
    return faults


def _plugin_faults(
    name: str, spec: ProfileSpec, registry: Registry, handle: Handle
) -> Iterator[str]:
    """Yield why a plugin cannot be used; nothing if it can."""
    prefix = f"creating profile for scheduler name {spec.scheduler_name}: "
    try:
        plugin = construct_plugin(name, spec.plugin_args.get(name), registry, handle)
        capabilities_of(name, plugin)
        roles_of(name, plugin)
        if isinstance(plugin, EventsToRegister):
            plugin.events_to_register()
    except ConfigError as error:
        for fault in error.faults:
            told = fault if name in fault else f'initializing plugin "{name}": {fault}'
            yield told if told.startswith(prefix) else f"{prefix}{told}"

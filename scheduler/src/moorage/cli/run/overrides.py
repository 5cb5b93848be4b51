"""Applies flags to a configuration; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from moorage.api.schedules.durations import parse_duration
from moorage.base.errors import ConfigError
from moorage.config.own import LoadedConfiguration, emulating
from moorage.config.validation import validate

_LEADER_ELECTION: Final = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline",
    "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
_EMULATION_FLAGS: Final = ("emulated-version", "min-compatibility-version", "feature-gates")
_LEFTOVER: Final = "pod-max-in-unschedulable-pods-duration"
_CONNECTION: Final = {"kube-api-qps": "qps", "kube-api-burst": "burst"}


def with_flags(
    config: LoadedConfiguration, flags: Mapping[str, Any], *, has_config: bool
) -> LoadedConfiguration:
    """Return the configuration, changed by the given flags.

    Parameters
    ----------
    config
        The configuration as read, or the defaults.
    flags
        Flags by name.
    has_config
        Whether the configuration was read from a file; deprecated flags do not override a file.

    Raises
    ------
    ConfigError
        A flag has an invalid value.

    Notes
    -----
    kubernetes v1.36 cmd/kube-scheduler/app/options (``ApplyDeprecated``, leader election flags).
    """
    scheduler = config.scheduler
    if any(flag in flags for flag in _EMULATION_FLAGS):
        version, oldest, gates = (str(flags.get(flag, "")) for flag in _EMULATION_FLAGS)
        config = emulating(config, version=version, oldest=oldest, gates=gates)
    if _LEFTOVER in flags:
        config = msgspec.structs.replace(config, unschedulable_ns_max=_leftover_ns(flags))
    election = _changes(flags, _LEADER_ELECTION)
    connection = {} if has_config else _changes(flags, _CONNECTION)
    if not election and not connection:
        return config
    scheduler = msgspec.structs.replace(
        scheduler,
        leader_election=msgspec.structs.replace(scheduler.leader_election, **election),
        client_connection=msgspec.structs.replace(scheduler.client_connection, **connection),
    )
    faults = validate(scheduler)
    if faults:
        raise ConfigError(faults, source="flags")
    return msgspec.structs.replace(config, scheduler=scheduler)


def _leftover_ns(flags: Mapping[str, Any]) -> int:
    longest_ns = parse_duration(flags[_LEFTOVER])
    if longest_ns < 0:
        raise ConfigError(
            [f"--{_LEFTOVER}: Invalid value: {flags[_LEFTOVER]}: must not be negative"],
            source="flags",
        )
    return longest_ns


def _changes(flags: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    return {field: flags[flag] for flag, field in fields.items() if flag in flags}

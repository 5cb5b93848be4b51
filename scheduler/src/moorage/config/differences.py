"""The meaning of a configuration under two versions: the gates, fields and plugins that differ.

``moorage config check --emulated-version`` prints the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from moorage.config.gate_table import GATES, V1_36, Gate
from moorage.config.merge import KnownPlugins, read_profiles
from moorage.config.own import LoadedConfiguration
from moorage.config.validation import EFFECTS, new_fields


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that means something else under another version.

    Parameters
    ----------
    kind
        ``gate``, ``field`` or ``plugin``.
    name
        The gate, the field with its path, or the plugin with its profile.
    before, now
        The meaning under the first version and under the second.
    effect
        What changes for pods; "" if nothing does.
    """

    kind: str
    name: str
    before: str
    now: str
    effect: str = ""


def differences(
    before: LoadedConfiguration, now: LoadedConfiguration, known: KnownPlugins
) -> Sequence[Difference]:
    """Return how the meaning of a configuration differs between two versions.

    Parameters
    ----------
    before, now
        The same configuration under both versions.
    known
        The registry of plugins.
    """
    return [*_gates(before, now), *_fields(before, now), *_plugins(before, now, known)]


def _gates(before: LoadedConfiguration, now: LoadedConfiguration) -> Iterator[Difference]:
    for gate in GATES:
        old, new = (_state(gate, config) for config in (before, now))
        if old != new:
            changes = before.gates(gate.name) != now.gates(gate.name)
            yield Difference("gate", gate.name, old, new, gate.effect if changes else "")


def _state(gate: Gate, config: LoadedConfiguration) -> str:
    state = gate.states.get(config.gates.version)
    if state is None:
        return f"a part of {gate.merged_into}" if gate.merged_into else "does not exist"
    value = "on" if config.gates(gate.name) else "off"
    return f"{value}, {state.stage.lower()}{', locked' if state.locked else ''}"


def _fields(before: LoadedConfiguration, now: LoadedConfiguration) -> Iterator[Difference]:
    """Yield the arguments and fields that are in force under one of the versions only."""
    was, becomes = (_fields_state(config) for config in (before, now))
    if was != becomes:
        for path in new_fields(before.scheduler):
            yield Difference("field", path, was, becomes, EFFECTS[path.rpartition(".")[2]])
    for gate in GATES:
        old, new = (config.gates(gate.name) for config in (before, now))
        if not gate.argument or old == new:
            continue
        plugin, _, field = gate.argument.partition(".")
        for profile in before.scheduler.profiles:
            for entry in profile.plugin_config:
                if entry.name == plugin and getattr(entry.args, field, None):
                    name = f"{profile.scheduler_name}: {plugin}Args.{field}"
                    was, becomes = ("in force", "refused") if old else ("refused", "in force")
                    yield Difference("field", name, was, becomes, gate.effect)


def _fields_state(config: LoadedConfiguration) -> str:
    return "unknown" if config.gates.version == V1_36 else "in force"


def _plugins(
    before: LoadedConfiguration, now: LoadedConfiguration, known: KnownPlugins
) -> Iterator[Difference]:
    """Yield the plugins of each profile that run under one version only, or decide otherwise."""
    then, later = (read_profiles(c.scheduler, known, gates=c.gates)[0] for c in (before, now))
    for one, other in zip(then, later, strict=True):
        names = [
            dict.fromkeys(name for order in spec.points.values() for name in order)
            for spec in (one, other)
        ]
        for name in dict.fromkeys([*names[0], *names[1]]):
            label = f"{one.scheduler_name}: {name}"
            if name in names[0] and name in names[1]:
                yield from _otherwise(label, name, before, now)
            else:
                old, new = ("runs" if name in each else "does not run" for each in names)
                yield Difference("plugin", label, old, new)


def _otherwise(
    label: str, name: str, before: LoadedConfiguration, now: LoadedConfiguration
) -> Iterator[Difference]:
    for gate in GATES:
        values = [config.gates(gate.name) for config in (before, now)]
        if name == gate.plugin and values[0] != values[1]:
            old, new = (f"{gate.name} {'on' if value else 'off'}" for value in values)
            yield Difference("plugin", label, old, new, gate.effect)

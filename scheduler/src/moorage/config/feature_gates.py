"""Feature gates: which are on in the version that is emulated, and which of them can be switched.

A gate is switched by ``--feature-gates``; every other one has its default of the version
(`gate_table`). Moorage refuses a value that is not built, instead of ignoring it; every default is
built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from moorage.base.errors import ConfigError
from moorage.config.emulation import DEFAULT_VERSION, minor_of
from moorage.config.gate_table import (
    BY_NAME,
    GANG_SCHEDULING,
    GATES,
    GENERIC_WORKLOAD,
    VERSIONS,
    Gate,
)

_DEFAULTS: Final[Mapping[str, Mapping[str, bool]]] = {
    version: {gate.name: version in gate.states and gate.states[version].default for gate in GATES}
    for version in VERSIONS
}
_MERGED: Final[Mapping[str, Mapping[str, str]]] = {
    version: {
        gate.name: gate.merged_into
        for gate in GATES
        if gate.merged_into and version not in gate.states
    }
    for version in VERSIONS
}


class FeatureGates(msgspec.Struct, frozen=True):
    """The feature gates that are on.

    Parameters
    ----------
    switched
        The gates that were set by hand; the others have their default.
    version
        The emulated version of Kubernetes, which has the defaults.
    min_compatibility
        The oldest version that other parts of the cluster have; "" if nobody says.
    """

    switched: Mapping[str, bool] = {}
    version: str = DEFAULT_VERSION
    min_compatibility: str = ""

    def __call__(self, name: str) -> bool:
        """Whether a gate is on; the name must be a known one.

        A gate that another one has replaced in this version is on with its successor.
        """
        name = _MERGED[self.version].get(name, name)
        switched = self.switched.get(name)
        return self.default(name) if switched is None else switched

    def default(self, name: str) -> bool:
        """Return the value of a gate that nobody sets."""
        on = _DEFAULTS[self.version][name]
        if not (on and self.min_compatibility):
            return on
        oldest = BY_NAME[name].states[self.version].min_compatibility
        return not oldest or minor_of(self.min_compatibility) >= minor_of(oldest)

    def as_text(self) -> str:
        """Return the gates that were set, as the flag spells them, sorted."""
        return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(self.switched.items()))


DEFAULT_GATES: Final = FeatureGates()


def feature_gates(
    values: Mapping[str, bool], version: str = DEFAULT_VERSION, min_compatibility: str = ""
) -> FeatureGates:
    """Return gates that were set by name.

    Raises
    ------
    ConfigError
        A gate is unknown, cannot be switched, or needs a gate that is off; every fault is listed.
    """
    gates = FeatureGates(dict(values), version, min_compatibility)
    faults = [fault for name, on in sorted(values.items()) for fault in _faults(gates, name, on)]
    if not faults:
        faults = list(_missing_requirements(gates))
    if faults:
        raise ConfigError(faults)
    return gates


def group_gates(version: str = DEFAULT_VERSION) -> dict[str, bool]:
    """Return the gates that switch pod groups on in a version."""
    names = (GENERIC_WORKLOAD, GANG_SCHEDULING)
    return {name: True for name in names if version in BY_NAME[name].states}


def group_flag(version: str = DEFAULT_VERSION) -> str:
    """Return the flag that switches pod groups on in a version."""
    return f"--feature-gates={','.join(f'{name}=true' for name in group_gates(version))}"


def parse_feature_gates(
    text: str, version: str = DEFAULT_VERSION, min_compatibility: str = ""
) -> FeatureGates:
    """Read gates as the flag spells them: ``A=true,B=false``.

    Raises
    ------
    ConfigError
        As `feature_gates`; also for text other than ``name=true`` or ``name=false``.
    """
    values: dict[str, bool] = {}
    faults = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in each.partition("="))
        if not equals:
            faults.append(f"featureGates: missing bool value for {name}")
        elif value.lower() not in _BOOLEANS:
            faults.append(f"featureGates.{name}: Invalid value: {value}: must be true or false")
        else:
            values[name] = _BOOLEANS[value.lower()]
    if faults:
        raise ConfigError(faults)
    return feature_gates(values, version, min_compatibility)


_BOOLEANS: Final = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _faults(gates: FeatureGates, name: str, on: bool) -> Iterator[str]:
    gate = BY_NAME.get(name)
    if gate is None or gates.version not in gate.states:
        yield (
            f"featureGates.{name}: unrecognized feature gate: {name}"
            f"{'' if gate is None else _elsewhere(gate, gates.version)}"
        )
        return
    state, shown = gate.states[gates.version], str(on).lower()
    if state.locked and on != state.default:
        locked = str(state.default).lower()
        yield (
            f"featureGates.{name}: cannot set feature gate {name} to {shown}, "
            f"feature is locked to {locked}{_unlocked(gate, on)}"
        )
    elif on not in gate.built and on != state.default:
        yield (
            f"featureGates.{name}: moorage does not implement {name}={shown} yet; "
            "leave the gate out"
        )


def _elsewhere(gate: Gate, version: str) -> str:
    """Return the versions of a gate that this version lacks, and what replaces the gate."""
    other = " or ".join(gate.states)
    if gate.merged_into:
        return (
            f": in {version} it is a part of {gate.merged_into}: set {gate.merged_into} alone, or "
            f"emulate {other} (--emulated-version {other})"
        )
    return f": {version} does not have it, {other} has (--emulated-version {other})"


def _unlocked(gate: Gate, on: bool) -> str:
    """Return the versions in which a value may be set that is locked in this one."""
    other = " or ".join(
        version for version, state in gate.states.items() if not state.locked and on in gate.built
    )
    return f"; {other} lets it be set (--emulated-version {other})" if other else ""


def _missing_requirements(gates: FeatureGates) -> Iterator[str]:
    for gate in GATES:
        exists = gates.version in gate.states
        if exists and gate.requires and gates(gate.name) and not gates(gate.requires):
            yield (f"featureGates.{gate.name}: Invalid value: true: needs {gate.requires}=true")

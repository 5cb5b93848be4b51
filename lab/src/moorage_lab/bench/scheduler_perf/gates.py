"""The feature gates of a workload: switched, refused, or ignored where nothing depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.base.errors import ConfigError
from moorage.config.feature_gates import DEFAULT_GATES, FeatureGates, feature_gates
from moorage.config.gate_table import gates_of_version

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "OpportunisticBatching": "replicas are always recognised by their shape",
    "SchedulerAsyncAPICalls": "calls are always made beside the deciding",
    "SchedulerAsyncPreemption": "victims are always evicted beside the deciding",
}
"""Gates that choose how kube-scheduler's own program works, and why moorage needs no such choice.

Neither value changes which node a pod gets, so a workload runs with either.
"""

OF_THE_SERVER: Final[Mapping[str, bool]] = {"DRAResourceClaimDeviceStatus": True}
"""Gates that only an API server looks at, with the value that ours, and v1.36 by default, has."""

_KNOWN: Final = {gate.name: gate for gate in gates_of_version(DEFAULT_GATES.version)}


class Gates(msgspec.Struct, frozen=True):
    """The gates of one workload.

    Parameters
    ----------
    switched
        The gates in force.
    unsupported
        Reasons why the workload cannot be run, one for each gate.
    notes
        Sentences about gates that have no effect.
    """

    switched: FeatureGates
    unsupported: tuple[str, ...]
    notes: tuple[str, ...]


def gates_of(wanted: Mapping[str, bool]) -> Gates:
    """Return the gates for the values that a workload asks for."""
    switched: dict[str, bool] = {}
    reasons, notes = [], []
    for name, on in sorted(wanted.items()):
        gate, shown = _KNOWN.get(name), f"{name}={str(on).lower()}"
        if gate is not None and (on == DEFAULT_GATES(name) or on in gate.built):
            switched[name] = on
        elif OF_THE_SERVER.get(name) == on:
            continue
        elif name in WITHOUT_EFFECT:
            notes.append(f"{shown} has no effect: {WITHOUT_EFFECT[name]}")
        else:
            reasons.append(f"feature gate {shown}")
    try:
        return Gates(feature_gates(switched), tuple(reasons), tuple(notes))
    except ConfigError as error:
        return Gates(DEFAULT_GATES, (*reasons, *error.faults), tuple(notes))

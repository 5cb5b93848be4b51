"""Decides whether a recorded case can be run: the features it needs that moorage lacks.

Second stop of the conformance runner. The test looks at needs, not at families. A need is a mode,
or a feature gate with another value. When a mode is built, it joins `BUILT_MODES`.
"""

from __future__ import annotations

from typing import Final

from moorage.base.errors import ConfigError
from moorage.config.feature_gates import FeatureGates, feature_gates
from moorage_lab.conformance.recordings import Scenario

BUILT_MODES: Final = frozenset(
    {
        "evaluate",
        "sequence",
        "preempt",
        "sequence-sampled",
        "hint",
        "extender",
        "podgroup",
        "plugin",
        "capacity",
        "change",
        "groupCycle",
        "groupPreemption",
        "members",
        "nodeOrder",
        "normalize",
        "queue",
        "requests",
    }
)


def gates_of(scenario: Scenario) -> FeatureGates:
    """Return the feature gates of a scenario, under the version that it was recorded with.

    Raises
    ------
    ConfigError
        The version does not have a gate, or moorage does not implement it.
    """
    return feature_gates(scenario.feature_gates, scenario.emulated_version)


def mode_needs(scenario: Scenario) -> list[str]:
    """Return the needs of a scenario that moorage lacks: its mode and feature gates."""
    needs = []
    if scenario.mode not in BUILT_MODES:
        needs.append(f"mode {scenario.mode}")
    try:
        gates_of(scenario)
    except ConfigError:
        needs += [f"feature gate {gate}" for gate in sorted(scenario.feature_gates)]
    return needs

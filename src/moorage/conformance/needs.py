"""Whether a recorded case can be run: what it needs that moorage does not have.

Second stop of the conformance runner. The test is by need, not by family: a mode, or the other
side of a feature gate. When a mode is built, it joins `BUILT_MODES`.
"""

from __future__ import annotations

from typing import Final

from moorage.base.errors import ConfigError
from moorage.config.feature_gates import feature_gates
from moorage.conformance.recordings import Scenario

BUILT_MODES: Final = frozenset(
    {"evaluate", "sequence", "preempt", "sequence-sampled", "hint", "extender", "podgroup"}
)


def mode_needs(scenario: Scenario) -> list[str]:
    """Return what a scenario needs that is not there: its mode and feature gates."""
    needs = []
    if scenario.mode not in BUILT_MODES:
        needs.append(f"mode {scenario.mode}")
    try:
        feature_gates(scenario.feature_gates)
    except ConfigError:
        needs += [f"feature gate {gate}" for gate in sorted(scenario.feature_gates)]
    return needs

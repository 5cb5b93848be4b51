"""The reports of ``moorage sim`` as text for people; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from moorage.sim.acts import FAULTS, Disturb, Script
from moorage.sim.course import Outcome
from moorage.sim.invariants.invariant import Breach

# Of one invariant, so many breaches are shown: the first says most.
_SHOWN = 3
# Faults that strike once; those of a connection are counted.
_FAULTS = tuple(kind for kind in FAULTS if kind is not Disturb)


def summary(script: Script, outcome: Outcome) -> str:
    """Return what a run was and how it ended."""
    acted = Counter(type(act).__name__.lower() for act in script.acts if isinstance(act, _FAULTS))
    faults = {**acted, **outcome.struck}
    struck = ", ".join(f"{fault} {count}" for fault, count in sorted(faults.items()))
    lines = [
        f"seed {outcome.seed}: {len(script.acts)} acts, {outcome.seconds:.0f} s of the cluster, "
        f"{outcome.steps} steps of programs, {outcome.bound} pods bound, {outcome.evicted} evicted",
        f"faults: {struck or 'none'}",
        f"trace: {len(outcome.lines)} lines, sha256 {outcome.digest}",
    ]
    return "\n".join([*lines, *breaches(outcome.breaches)])


def breaches(found: Sequence[Breach]) -> list[str]:
    """Return a line for each breach, the first ones of each invariant."""
    if not found:
        return ["every invariant holds"]
    shown: dict[str, int] = {}
    lines = []
    for breach in found:
        count = shown[breach.invariant] = shown.get(breach.invariant, 0) + 1
        if count <= _SHOWN:
            lines.append(f"{breach.invariant} at {breach.seconds:.2f} s: {breach.text}")
    hidden = len(found) - len(lines)
    return [*lines, f"and {hidden} more"] if hidden else lines

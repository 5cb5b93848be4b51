"""The reports of ``moorage fault-sim`` as text for people; pure."""

from __future__ import annotations

from collections.abc import Sequence

from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.company.series import SeriesReport
from moorage_lab.fault_sim.fault_run import Outcome
from moorage_lab.fault_sim.invariants.invariant import Breach

# Of one invariant, so many breaches are shown: the first says most.
_SHOWN = 3


def summary(script: Script, outcome: Outcome) -> str:
    """Return what a run was and how it ended."""
    faults = ", ".join(f"{fault} {count}" for fault, count in sorted(outcome.fault_counts.items()))
    lines = [
        f"seed {outcome.seed}: {len(script.acts)} acts, {outcome.seconds:.0f} s of the cluster, "
        f"{outcome.steps} steps of programs, {outcome.bound} pods bound, {outcome.evicted} evicted",
        f"faults: {faults or 'none'}",
        f"trace: {len(outcome.lines)} lines, sha256 {outcome.digest}",
    ]
    return "\n".join([*lines, *breaches(outcome.breaches)])


def breaches(broken: Sequence[Breach]) -> list[str]:
    """Return a line for each breach, the first ones of each invariant."""
    if not broken:
        return ["every invariant holds"]
    shown: dict[str, int] = {}
    lines = []
    for breach in broken:
        count = shown[breach.invariant] = shown.get(breach.invariant, 0) + 1
        if count <= _SHOWN:
            lines.append(f"{breach.invariant} at {breach.seconds:.2f} s: {breach.text}")
    hidden = len(broken) - len(lines)
    return [*lines, f"and {hidden} more"] if hidden else lines


def company_text(report: SeriesReport) -> str:
    """Return the report about a series of worlds for people."""
    covered = report.coverage
    lines = [
        f"{report.worlds} worlds, {report.exceptions} with an exception; "
        f"{covered.pairs} of {covered.pairs_possible} pairs and {covered.triples} of "
        f"{covered.triples_possible} triples of features covered"
    ]
    for rule, text in report.worst.items():
        lines.append(f"{rule}: {report.by_rule.get(rule, 0)} worlds; worst {text}")
    return "\n".join(lines)

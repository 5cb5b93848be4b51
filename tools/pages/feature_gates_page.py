"""The page of feature gates: each gate's state in each version that can be emulated."""

from __future__ import annotations

from moorage.config.gate_table import GATES, VERSIONS, Gate

_HEADER = """# Feature gates by version

<!-- Written by `make docs` from moorage.config.gate_table. Do not edit. -->

`--emulated-version` chooses the Kubernetes version whose gates are in force, `--feature-gates`
switches them. A cell says the default and the stage. "locked": kube-scheduler refuses another
value. "-": the version does not have the gate, and a command line that names it is refused.
The last column says which values moorage implements. A value that is not implemented is refused by
name, also where it is the default of the version.

| Gate | HEADS | Effect | Implemented |
|---|RULES---|---|
"""
_FOOTER = """
`DRAFractionalCapacityRange` is on by default in 1.37, unless `--min-compatibility-version` names an
older version. (kube-scheduler 1.37 takes 1.36 for the minimal compatibility version if nobody
names one, and then has the gate off.)
"""


def feature_gates_page() -> str:
    """Return the page: one row for each gate, by name."""
    header = _HEADER.replace("HEADS", " | ".join(VERSIONS)).replace("RULES", "---|" * len(VERSIONS))
    return header + "".join(map(_row, GATES)) + _FOOTER


def _row(gate: Gate) -> str:
    states = " | ".join(_state(gate, version) for version in VERSIONS)
    values = " and ".join("on" if value else "off" for value in sorted(gate.built, reverse=True))
    return f"| `{gate.name}` | {states} | {_effect(gate)} | {values} |\n"


def _state(gate: Gate, version: str) -> str:
    state = gate.states.get(version)
    if state is None:
        return f"- (in `{gate.merged_into}`)" if gate.merged_into else "-"
    stage = state.stage if state.stage == "GA" else state.stage.lower()
    return f"{'on' if state.default else 'off'}, {stage}{', locked' if state.locked else ''}"


def _effect(gate: Gate) -> str:
    return f"{gate.effect}; needs `{gate.requires}`" if gate.requires else gate.effect

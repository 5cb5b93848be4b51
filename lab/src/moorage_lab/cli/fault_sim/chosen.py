"""The scenario that the options of ``moorage fault-sim`` choose."""

from __future__ import annotations

import msgspec

from moorage.base.errors import UsageError
from moorage_lab.fault_sim.scenarios import IN_TURN, Scenario, scenario
from moorage_lab.fault_sim.users.faults import FAULT_KINDS


def chosen(
    name: str, *, steps: int | None, faults: str | None, nodes: int | None = None
) -> Scenario:
    """Return a scenario with the steps, faults and nodes of the options.

    Raises
    ------
    UsageError
        There is no such scenario, or no such kind of fault.
    """
    chosen_scenario = scenario(name)
    if steps is not None:
        chosen_scenario = msgspec.structs.replace(chosen_scenario, steps=steps)
    if nodes is not None:
        chosen_scenario = msgspec.structs.replace(chosen_scenario, nodes=nodes)
    if faults is None:
        return chosen_scenario
    kinds = () if faults == "none" else tuple(each.strip() for each in faults.split(","))
    for kind in kinds:
        if kind not in FAULT_KINDS:
            raise UsageError(f"no fault {kind!r}; there are {', '.join(FAULT_KINDS)}, and none")
    return msgspec.structs.replace(chosen_scenario, faults=kinds, rate=chosen_scenario.rate or 0.5)


def all_chosen(
    name: str, *, steps: int | None, faults: str | None, nodes: int | None = None
) -> list[Scenario]:
    """Return the scenarios of a hunt: one by its name, or every one for ``all``.

    Raises
    ------
    UsageError
        As `chosen`.
    """
    names = IN_TURN if name == "all" else [name]
    return [chosen(each, steps=steps, faults=faults, nodes=nodes) for each in names]

"""The scenarios that a simulation can be drawn from: how many schedulers, and which faults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from moorage.base.errors import UsageError
from moorage.sim.acts import Script
from moorage.sim.users import FAULT_KINDS, Plot


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of a seed consists of.

    Parameters
    ----------
    summary
        One line about it.
    replicas, nodes, steps
        Schedulers, nodes at the start, and acts of users.
    faults
        Kinds of faults, keys of `FAULT_KINDS`.
    rate
        Faults per act of a user.
    """

    summary: str
    replicas: int = 1
    nodes: int = 5
    steps: int = 60
    faults: tuple[str, ...] = ()
    rate: float = 0.0

    def script(self, seed: int) -> Script:
        """Return the script of a seed."""
        plot = Plot(
            seed,
            nodes=self.nodes,
            steps=self.steps,
            replicas=self.replicas,
            faults=self.faults,
            rate=self.rate,
        )
        return plot.script()


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        "calm": Scenario(summary="One scheduler, many users, no faults."),
        "wire": Scenario(
            summary="One scheduler on a connection that loses, delays and breaks.",
            faults=("wire", "outage"),
            rate=0.5,
        ),
        "leaders": Scenario(
            summary="Three schedulers that are stopped and killed, and whose clocks jump.",
            replicas=3,
            faults=("stop", "kill", "jump"),
            rate=0.4,
        ),
        "mixed": Scenario(
            summary="Three schedulers and every fault.",
            replicas=3,
            faults=tuple(FAULT_KINDS),
            rate=0.5,
        ),
    }
)


def scenario(name: str) -> Scenario:
    """Return a scenario by its name.

    Raises
    ------
    UsageError
        There is no such scenario.
    """
    found = SCENARIOS.get(name)
    if found is None:
        raise UsageError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return found

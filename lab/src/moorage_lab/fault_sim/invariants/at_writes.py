"""The rules for each write of a scheduler, bindings and evictions, and of the server itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from moorage_lab.fault_sim.history import Write, is_finished
from moorage_lab.fault_sim.invariants.attached import ATTACHED
from moorage_lab.fault_sim.invariants.evictions import EVICTION
from moorage_lab.fault_sim.invariants.immutable import IMMUTABLE
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import ON_NODE, REPORTED
from moorage_lab.fault_sim.invariants.quotas import QUOTA
from moorage_lab.fault_sim.invariants.rotation import not_in_rotation
from moorage_lab.fault_sim.invariants.together import TOGETHER
from moorage_lab.fault_sim.invariants.write_case import WriteCase

BINDING: tuple[Invariant[WriteCase], ...] = (*ON_NODE, *TOGETHER, *ATTACHED, *QUOTA)


def broken_by_server(write: Write) -> Iterator[tuple[str, str]]:
    """Yield the name of each invariant that the server breaks by a write, whoever asked for it."""
    for invariant in IMMUTABLE:
        for text in invariant.broken(write):
            yield invariant.name, text


def broken_by(case: WriteCase) -> Iterator[tuple[str, str]]:
    """Yield the name of each invariant that a write breaks, and how."""
    if case.binds and is_finished(case.pod):
        return  # it has failed since its node was chosen, and takes no room
    table = CHOICE if case.binds else EVICTION if case.evicts else REPORTED
    for invariant in table:
        for text in invariant.broken(case):
            yield invariant.name, text


def fits(case: WriteCase) -> bool:
    """Return whether a binding breaks no rule."""
    return not any(True for rule in BINDING for _ in rule.broken(case))


CHOICE: tuple[Invariant[WriteCase], ...] = (
    *BINDING,
    Invariant(
        "rotation",
        "Where nothing scores nodes, pods alike go to the nodes that take them in turn.",
        "each search looks at the same first nodes, and the others get nothing (kubernetes#66627)",
        partial(not_in_rotation, fits=fits),
    ),
)
"""The rules for each binding: does the node take the pod, and was it the node's turn?"""

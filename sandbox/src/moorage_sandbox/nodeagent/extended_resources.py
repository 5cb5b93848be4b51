"""Computes the allocatable extended resources of a node; pure.

A client may add an extended resource to a node by writing it into ``status.capacity``. The kubelet
then offers it to pods. ``agents`` asks after each change of a node.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.codec import from_dict
from moorage.api.meta import Quantity
from moorage.api.names import is_extended_resource
from moorage.api.node import Node, NodeStatus
from moorage.api.quantity import from_nano, parse_quantity
from moorage.nodeshapes.templates import NodeTemplate

Reserved = Mapping[str, int]
"""Extended resource to the amount of its capacity that is not allocatable; nano-units."""


def reserved_in(template: NodeTemplate) -> Reserved:
    """Return how much of each extended resource a template reserves."""
    status = from_dict(Node, template).status
    amounts: dict[str, int] = {}
    for name, amount in status.capacity.items():
        if is_extended_resource(name) and name in status.allocatable:
            back = parse_quantity(amount) - parse_quantity(status.allocatable[name])
            if back > 0:
                amounts[name] = back
    return amounts


def allocatable_changes(status: NodeStatus, reserved: Reserved) -> dict[str, Quantity | None]:
    """Return the changes of ``status.allocatable``: amounts, or None for a removed resource.

    Notes
    -----
    kubernetes v1.36 pkg/kubelet/nodestatus/setters.go, MachineInfo. A kubelet looks every ten
    seconds, the agent at once. The agent leaves cpu, memory and the other native resources as
    they are; a kubelet would write what its machine has.
    """
    changes: dict[str, Quantity | None] = {}
    for name, amount in status.capacity.items():
        if is_extended_resource(name):
            back = reserved.get(name, 0)
            wanted = max(0, parse_quantity(amount) - back)
            found = status.allocatable.get(name)
            if found is None or parse_quantity(found) != wanted:
                changes[name] = from_nano(wanted, binary=False) if back else amount
    for name in status.allocatable:
        if name not in status.capacity and is_extended_resource(name):
            changes[name] = None
    return changes

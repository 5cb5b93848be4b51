"""Runs vectors of upstream's tests of functions that several plugins use.

The modes "normalize", "capacity" and "nodeOrder" of the conformance runner. The arguments of the
function are those of the vector.
"""

from __future__ import annotations

import numpy as np

from moorage.api.codec import from_dict
from moorage.api.devices import DeviceCapacity
from moorage.plugins.answers import normalize_to_max
from moorage.plugins.claims.devices.capacity import parse_amount, parse_capacity
from moorage.snapshot.node_order import NodeOrder
from moorage_lab.conformance.recordings import Json, Scenario


def run_normalize(scenario: Scenario) -> Json:
    """Return the scores of a vector scaled to 100; mode "normalize"."""
    args = _args(scenario)
    raw_n = np.array(args["scores"], np.int64)
    scaled_n = normalize_to_max(raw_n, reverse=args.get("reverse", False))
    return {"normalized": scaled_n.tolist()}


def run_capacity(scenario: Scenario) -> Json:
    """Return what a request consumes of a capacity, and whether its policy forbids the amount.

    Mode "capacity".
    """
    args, vector = _args(scenario), scenario.vector
    assert vector is not None, "the reader refuses the mode without it"
    capacity = from_dict(DeviceCapacity, args["capacity"])
    rule = parse_capacity(capacity, fractions=args["fractions"])
    requested = None if args.get("requested") is None else parse_amount(args["requested"])
    if "violates" in vector.points:
        assert requested is not None, "the test names an amount"
        return {"violates": not rule.allows(requested)}
    return {"consumedNano": str(rule.consumed(requested).nano)}


def run_node_order(scenario: Scenario) -> Json:
    """Return the order of the nodes after some came and went; mode "nodeOrder"."""
    order = NodeOrder()
    nodes = {node.name: node for node in scenario.objects.nodes}
    for operation, name in _args(scenario)["steps"]:
        if operation == "add":
            order.put_node(nodes[name])
        else:
            order.remove(name)
    return {"order": [*order.names()]}


def _args(scenario: Scenario) -> Json:
    vector = scenario.vector
    assert vector is not None, "the reader refuses the mode without it"
    assert vector.args is not None, "a function has arguments"
    return vector.args

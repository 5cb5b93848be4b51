"""Nodes that have enough of an extended resource, but do not offer it at the moment.

A device plugin that has not started, or that reports broken devices, leaves the capacity and lowers
what is allocatable. That changes without a change of the pod or of the node's shape.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.engine.inquiry import BoolArray, Inquiry
from moorage.snapshot.shape import RESOURCES


def offering_too_little(inquiry: Inquiry, name: str, rows: NDArray[np.int64]) -> BoolArray:
    """Return bool, (rows,): where the capacity is enough and what is allocatable is not."""
    wanted = inquiry.attempt.pod.part(RESOURCES).value.filter.get(name, 0)
    found_n = np.zeros(len(rows), np.bool_)
    if "/" not in name:
        return found_n
    offers_n = inquiry.snapshot.allocatable(name)[rows]
    for place in np.flatnonzero(offers_n < wanted).tolist():
        capacity = inquiry.snapshot.node(int(rows[place])).status.capacity.get(name, 0)
        found_n[place] = to_units(name, parse_quantity(capacity)) >= wanted
    return found_n


def offers_may_come(inquiry: Inquiry) -> BoolArray:
    """Return bool, (nodes,): rows that lack nothing but what they have and do not offer now."""
    requested = inquiry.attempt.pod.part(RESOURCES).value.filter
    rows = np.arange(inquiry.snapshot.num_nodes)
    coming_n, lasting_n = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    for name, wanted in requested.items():
        lacking_n = inquiry.snapshot.allocatable(name) < wanted
        if wanted and lacking_n.any():
            offering_n = offering_too_little(inquiry, name, rows)
            coming_n |= offering_n
            lasting_n |= lacking_n & ~offering_n
    return coming_n & ~lasting_n

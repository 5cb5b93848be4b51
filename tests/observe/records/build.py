"""Records in a word, for the tests of the ring and of the file."""

from __future__ import annotations

from typing import Any

from moorage.engine.filters.filter_pass import FilterPass
from moorage.engine.notes import FilteredNodes, NodeNames
from moorage.observe.records.record import AttemptRecord


def names_of(count: int = 100) -> NodeNames:
    """Names of nodes, for one ring: it counts the holders in them."""
    return NodeNames(tuple(f"n{index}" for index in range(count)))


def filtered(names: NodeNames | None = None) -> FilteredNodes:
    names = names_of() if names is None else names
    profile: Any = None
    return FilteredNodes(names, None, FilterPass(len(names.names)), profile)


def record(number: int, pod: str = "p", *, attempt: int = 1, **fields: Any) -> AttemptRecord:
    given: dict[str, Any] = {
        "number": number,
        "uid": f"uid-{pod}",
        "key": ("default", pod),
        "profile": "default-scheduler",
        "attempt": attempt,
        "at_ns": number,
        "took_ns": 7,
        "before": (),
        "rejectors": frozenset(),
        "outcome": "reject",
        "node": "",
        "total": None,
        "feasible": 0,
        "evaluated": 100,
        "ties": 0,
        "message": "no room",
        "diagnosis": None,
        "nominated": None,
        "victims": (),
        "excluded_by": frozenset(),
        "filtered": None,
        "best": None,
    }
    return AttemptRecord(**{**given, **fields})

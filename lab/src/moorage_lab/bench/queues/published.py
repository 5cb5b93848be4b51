"""The published table of two traces, and which files these traces are.

Source: Zhang et al., "RLScheduler: an automated HPC batch job scheduler using reinforcement
learning", SC '20: average bounded slowdown and utilisation of the heuristics.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple


class Published(NamedTuple):
    """The published figures of a run: slowdown to two digits, utilisation to three."""

    slowdown: str
    utilisation: str


_TRACES: Final = {
    "a394ab3d81179ebc": "Lublin-1",
    "bee7e959a6b85844": "Lublin-2",
}
"""The first digits of the SHA-256 of the unpacked files lublin_256.swf and lublin_256_new2.swf, by
which other files of the same name are not compared."""

POLICIES: Final = ("FCFS", "WFP3", "UNICEP", "SJF", "F1")
"""The policies of the table."""

_ROWS: Final = {
    ("Lublin-1", False): (
        ("7273.77", "19753.53", "22274.74", "277.35", "258.37"),
        ("0.657", "0.747", "0.691", "0.762", "0.816"),
    ),
    ("Lublin-1", True): (
        ("235.82", "133.87", "307.23", "73.31", "75.07"),
        ("0.868", "0.864", "0.883", "0.778", "0.840"),
    ),
    ("Lublin-2", False): (
        ("7842.47", "9523.18", "11265.31", "787.89", "698.34"),
        ("0.404", "0.543", "0.510", "0.562", "0.478"),
    ),
    ("Lublin-2", True): (
        ("247.61", "318.35", "379.59", "91.99", "148.25"),
        ("0.587", "0.583", "0.587", "0.593", "0.552"),
    ),
}
PROCESSORS: Final = 256
"""Processors of the machine of the published runs."""


def published_trace(content: bytes) -> str:
    """Return the name under which a trace's figures are published; "" for other traces."""
    summed = hashlib.sha256(content).hexdigest()
    return _TRACES.get(summed[:16], "")


def published_figures(trace: str, policy: str, *, easy: bool) -> Published | None:
    """Return the published figures of a run; None where there are none."""
    rows = _ROWS.get((trace, easy))
    if rows is None or policy not in POLICIES:
        return None
    at = POLICIES.index(policy)
    return Published(rows[0][at], rows[1][at])

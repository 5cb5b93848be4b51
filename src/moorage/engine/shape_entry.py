"""What is known about one shape: the answers a `ShapeCache` keeps for its replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.engine.filtering import FilterPass
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import ScoreArray
from moorage.framework.runner import PreFilterAnswer
from moorage.snapshot.shape import Part
from moorage.snapshot.snapshot import Snapshot

_ENTRY_BYTES = 8 * 1024  # of an entry without arrays: its parts and what plugins compiled; a guess


class Scores:
    """Raw scores of the reusable plugins for every row."""

    __slots__ = ("fixed_n", "flat", "flat_total", "raw", "skipped")

    def __init__(self, n: int) -> None:
        self.skipped: frozenset[str] = frozenset()
        self.raw: dict[str, ScoreArray] = {}
        # Weighted sum of the plugins whose raw scores are final.
        self.fixed_n: ScoreArray = np.zeros(n, np.int64)
        # By normalising plugin, the one raw value every row has, where that is so.
        self.flat: dict[str, int] = {}
        # What those plugins add to every node's total; None when it is to be computed.
        self.flat_total: int | None = None


class Entry:
    """What is known about one shape."""

    def __init__(
        self, parts: tuple[Part[Any], ...], snapshot: Snapshot, epochs: tuple[int, ...]
    ) -> None:
        table = snapshot.table
        self.parts = parts  # kept alive, or the next replica's parts would get new ids
        self.key = shape_key(parts)
        self.structure = table.columns.structure
        self.node_position = table.node_log.position
        self.pod_position = table.pod_log.position
        self.epochs = epochs
        self.state = CycleState()
        self.pre_filters: dict[str, PreFilterAnswer] = {}
        self.by_node: FilterPass | None = None
        self.by_pods: FilterPass | None = None
        self.verdict: FilterPass | None = None
        self.feasible: NDArray[np.int64] | None = None
        """Rows that passed `verdict`, ascending; None when they are to be found again."""
        self.scores: Scores | None = None
        self.asks_too_much = False
        """Whether scoring every row fails, perhaps over rows that are not feasible."""

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, and of all else by a guess, bytes."""
        passes = [p for p in (self.by_node, self.by_pods, self.verdict) if p is not None]
        scores = self.scores
        arrays = 0 if scores is None else sum(raw.nbytes for raw in scores.raw.values())
        fixed = 0 if scores is None else scores.fixed_n.nbytes
        rows = 0 if self.feasible is None else self.feasible.nbytes
        return _ENTRY_BYTES + sum(p.nbytes for p in passes) + arrays + fixed + rows


def shape_key(parts: tuple[Part[Any], ...]) -> tuple[int, ...]:
    """Return what tells the shapes of two pods apart."""
    return tuple([part.id for part in parts])

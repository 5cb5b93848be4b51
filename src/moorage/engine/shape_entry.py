"""What is known about one shape: the answers a `ShapeCache` keeps for its replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.engine.filter_pass import FilterPass
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import ScoreArray
from moorage.framework.runner import PreFilterAnswer, PreFilterOutcome
from moorage.framework.status import Code
from moorage.snapshot.nominated_rows import NominatedLevel
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


class Beside:
    """The verdict on every row with nominated pods of a priority or more counted in.

    Parameters
    ----------
    base
        The shape's verdict without nominated pods, followed in place.
    level
        The nominated pods.
    by_sums
        Indexes of the Filters that judged beside them.
    verdict
        Of both.
    positions
        Up to where the logs of nodes, of pods and of the level were followed.
    """

    __slots__ = ("base", "by_sums", "level", "positions", "verdict")

    def __init__(
        self,
        base: FilterPass,
        level: NominatedLevel,
        by_sums: tuple[int, ...],
        verdict: FilterPass,
        positions: tuple[int, int, int],
    ) -> None:
        self.base = base
        self.level = level
        self.by_sums = by_sums
        self.verdict = verdict
        self.positions = positions


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
        self._skipping: frozenset[str] | None = None
        self.outcomes: dict[tuple[bool, ...], tuple[PreFilterOutcome, frozenset[str]]] = {}
        """By who of the plugins asked afresh skips, what PreFilter comes to and who skips at all,
        for attempts in which every plugin skips or has no objection."""
        self.lets_every_node = False
        """Whether the plugins in `pre_filters` are all there, and none of them has one."""
        self.forget_rows()

    def forget_rows(self) -> None:
        """Forget what is known about rows; what PreFilter said stays."""
        self.by_node: FilterPass | None = None
        self.by_pods: FilterPass | None = None
        self.verdict: FilterPass | None = None
        self.feasible: NDArray[np.int64] | None = None
        """Rows that passed `verdict`, ascending; None when they are to be found again."""
        self.beside: dict[int, Beside] = {}
        """By priority of the pod, the verdict with nominated pods counted in."""
        self.scores: Scores | None = None
        self.asks_too_much = False
        """Whether scoring every row fails, perhaps over rows that are not feasible."""

    def keep_pre_filter(self, name: str, answer: PreFilterAnswer) -> None:
        """Keep what a plugin answered."""
        self.pre_filters[name] = answer
        self._skipping = None

    @property
    def skipping(self) -> frozenset[str]:
        """Names of the plugins in `pre_filters` that skip."""
        if self._skipping is None:
            answers = self.pre_filters.items()
            skipping = (name for name, (_, status) in answers if status.code is Code.SKIP)
            self._skipping = frozenset(skipping)
        return self._skipping

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, and of all else by a guess, bytes."""
        passes = [p for p in (self.by_node, self.by_pods, self.verdict) if p is not None]
        passes += [beside.verdict for beside in self.beside.values()]
        scores = self.scores
        arrays = 0 if scores is None else sum(raw.nbytes for raw in scores.raw.values())
        fixed = 0 if scores is None else scores.fixed_n.nbytes
        rows = 0 if self.feasible is None else self.feasible.nbytes
        return _ENTRY_BYTES + sum(p.nbytes for p in passes) + arrays + fixed + rows


def shape_key(parts: tuple[Part[Any], ...]) -> tuple[int, ...]:
    """Return what tells the shapes of two pods apart."""
    return tuple([part.id for part in parts])

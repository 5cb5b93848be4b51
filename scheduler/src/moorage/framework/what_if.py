"""The failed search that the engine lends to a PostFilter plugin, and trials on its rows.

The engine writes a `WhatIf` into the cycle state before it runs PostFilter. A plugin never sees
other plugins; a `WhatIf` tells the answers of all Filters if some pods were gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import ResourceClaim
from moorage.framework.cycle_state import StateKey
from moorage.framework.status import Code, FilterAnswer, Status
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.nominated_rows import NominatedLevel
from moorage.snapshot.pod_info import PodInfo


class Room:
    """The room left on rows next to a pod; where the room is below 0, the pod does not fit.

    Parameters
    ----------
    amounts
        By resource, int64, (rows,); changed in place.
    pods
        int64, (rows,): how many more pods; changed in place.
    """

    __slots__ = ("_amounts", "_pods")

    def __init__(self, amounts: dict[str, NDArray[np.int64]], pods: NDArray[np.int64]) -> None:
        self._amounts = amounts
        self._pods = pods

    def left(self) -> tuple[Mapping[str, NDArray[np.int64]], NDArray[np.int64]]:
        """Return the room left: by resource, and the number of pods; int64, (rows,), not copied."""
        return self._amounts, self._pods

    def take_room(
        self, amounts: Mapping[str, NDArray[np.int64]], which: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Take the room of one more pod on some rows, where there is enough; return these rows."""
        fits = which & (self._pods >= 1)
        taken = [(left, amounts[name]) for name, left in self._amounts.items() if name in amounts]
        for left, amount in taken:
            fits &= amount <= left
        for left, amount in taken:
            np.subtract(left, amount * fits, out=left)
        self._pods -= fits
        return fits

    def lessen(
        self,
        positions: NDArray[np.int64],
        amounts: Mapping[str, NDArray[np.int64]],
        pods: NDArray[np.int64],
    ) -> None:
        """Take room on some rows, even if too little; arrays have an entry for each position."""
        for name, left in self._amounts.items():
            if name in amounts:
                left[positions] -= amounts[name]
        self._pods[positions] -= pods


class RowCounts(Protocol):
    """Numbers of pods by which a Filter judges some rows, and its answers if a row had fewer.

    A pod counts by its kind. A count of a row is that of its own pods: other rows stay as they are.
    """

    @property
    def kinds(self) -> NDArray[np.int64]:
        """int64, (rows, ranks): each pod's kind, as the Filter tells kinds apart; -1 for no pod."""
        ...

    @property
    def by_kind(self) -> NDArray[np.int64]:
        """int64, (counts, kinds + 1): what a pod adds to each count; 0 for no kind, the last."""
        ...

    @property
    def counting_rows(self) -> NDArray[np.bool_]:
        """bool, (counts, rows): whether the pods of a row count."""
        ...

    @property
    def alone(self) -> NDArray[np.bool_] | None:
        """bool, (rows,): rows that cannot be judged so, and are tried alone; None for no row."""
        ...

    def judge_without(self, gone: NDArray[np.int64]) -> FilterAnswer | None:
        """Return Filter's answer about the rows; None where all rows pass.

        Parameters
        ----------
        gone
            int64, (counts, rows): what the pods that left a row had added to its counts.
        """
        ...


class RowTrial(Protocol):
    """One row, judged while pods are taken off and put back; undone at the end of its context."""

    def take_off(self, other: PodInfo) -> Status:
        """Take a pod off its row, which may be another one; Error where a plugin cannot follow."""
        ...

    def put_on(self, other: PodInfo) -> Status:
        """Put a pod back that was taken off; Error where a plugin cannot follow."""
        ...

    def judge(self) -> Status:
        """Run every Filter on the row as it is now, nominated pods counted as in the search."""
        ...


class CountingTrial(RowTrial, Protocol):
    """A trial that also tells which pods of the row count next to nominated pods elsewhere."""

    def is_counted(self, other: PodInfo) -> bool:
        """Whether a Filter that counts nominated pods everywhere counts a pod of the row, too.

        Such a Filter may reject nominated pods on other nodes once this pod leaves.
        """
        ...


class RowsResult(Protocol):
    """The filter results on many rows."""

    @property
    def passed(self) -> NDArray[np.bool_]:
        """bool, (rows,)."""
        ...

    @property
    def alone(self) -> NDArray[np.bool_] | None:
        """bool, (rows,): the rows that must be tried alone; they have no result. None for no row.

        A Filter sees a pod there as more than its sums: one of lower priority, or one nominated
        first.
        """
        ...

    @property
    def broken(self) -> NDArray[np.bool_]:
        """bool, (rows,): where a Filter's answer is neither Success nor a rejection."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory of the results, bytes."""
        ...

    def status(self, position: int) -> Status:
        """Return the status of one row."""
        ...


class RowsTrial(Protocol):
    """Many rows whose sums of requests can be shifted, each row for itself.

    Exists only for attempts whose Filters say which pods of a row they see as more than sums. Only
    pods of lower priority than the attempt's pod may be taken off.
    """

    def shift(self, amounts: Mapping[str, NDArray[np.int64]], pods: NDArray[np.int64]) -> None:
        """Add to the sums by resource, and to the number of pods; int64, (rows,) each."""
        ...

    def take_off(self, ranked: RankedPods, which: NDArray[np.bool_]) -> None:
        """Take pods off the counts of Filters; `shift` takes them off the sums.

        Parameters
        ----------
        ranked
            The pods of the rows, with kinds if the trial is one that counts kinds.
        which
            bool, (rows, ranks): the pods.
        """
        ...

    def judge(self) -> RowsResult:
        """Run every Filter on the rows as they are now."""
        ...

    def put_back(
        self,
        amounts: Mapping[str, NDArray[np.int64]],
        which: NDArray[np.bool_],
        ranks: NDArray[np.int64] | None = None,
    ) -> NDArray[np.bool_]:
        """Put one pod back on each of some rows, as long as every Filter passes next to it.

        Parameters
        ----------
        amounts
            The sums that the row's pod adds, by resource, int64, (rows,).
        which
            bool, (rows,): on which rows; all of them pass as they are now.
        ranks
            int64, (rows,): the rank of the row's pod; None where no Filter counts kinds.

        Returns
        -------
        ndarray
            bool, (rows,): the rows without room; these rows are unchanged.
        """
        ...

    def awaited_by(self) -> Mapping[int, str]:
        """Return positions of rows where only nominated pods were missing at any time.

        By position, the plugin that said so the last time.
        """
        ...

    def are_counted(self, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return bool, (rows,): the rows with a pod that counts next to nominated pods elsewhere.

        Parameters
        ----------
        which
            bool, (rows, ranks): the pods that are asked about.
        """
        ...


class TakesArraysError(Exception):
    """A Filter could not be asked about a single row in scalars; `RowsTrial` tells its answer."""


class SumsTrial(Protocol):
    """One row whose sums of requests can be shifted, in scalars; the cluster stays as it is.

    As `RowsTrial` for a single row, where the overhead of arrays is many times the computation.
    """

    def shift(self, amounts: Mapping[str, int], pods: int) -> None:
        """Add to the sums by resource, and to the number of pods."""
        ...

    def judge(self) -> Status:
        """Run every Filter on the row as it is now.

        Raises
        ------
        TakesArraysError
            The row cannot be tried in scalars: try it with other rows, in arrays.
        """
        ...

    def put_back(self, amounts: Mapping[str, int]) -> bool:
        """Put one pod back, as long as every Filter passes next to it; return whether they do.

        Parameters
        ----------
        amounts
            The sums that the pod adds, by resource.

        Raises
        ------
        TakesArraysError
            As for `judge`.
        """
        ...


class WhatIf(Protocol):
    """The attempt that found no node, and trials that start from its state."""

    def rows_with(self, code: Code) -> NDArray[np.int64]:
        """Return int64: the rows whose status in the search has this code, ascending.

        Not to be changed.
        """
        ...

    def status_of(self, row: int) -> Status:
        """Return the status of one row in the search."""
        ...

    @property
    def rejected_in_pre_filter(self) -> bool:
        """Whether PreFilter rejected the pod, so that no Filter was asked about any row."""
        ...

    def awaits_nominated(self) -> bool:
        """Whether a row takes the pod as soon as the pods nominated first are placed.

        So says a Filter that counts nominated pods on every node, with the code Pending.
        """
        ...

    @property
    def evicts_whole_gangs(self) -> bool:
        """Whether the profile evicts what a gang needs as a whole or not at all."""
        ...

    def independent(self, rows: NDArray[np.int64]) -> bool:
        """Whether most of these rows can be tried at once; a guess, which changes no outcome."""
        ...

    @property
    def sees_numbers_only(self) -> bool:
        """Whether every Filter sees the pods of a row as their number, sums and counts."""
        ...

    @property
    def alike(self) -> object | None:
        """A key that is equal for attempts whose Filters answer alike about a row.

        The answers are alike as long as the row has the same node, the same pods and the same pods
        nominated first. The key is hashable and compared by identity. None where no such key is
        known.
        """
        ...

    def nominated(self) -> tuple[NominatedLevel, int | None]:
        """Return the pods nominated first, as sums, and the row the pod itself is nominated to.

        As `Snapshot.nominated_level`, which stays the same while the attempt goes on.
        """
        ...

    def on_rows(
        self, rows: NDArray[np.int64], *, nominated_placed: bool = False
    ) -> AbstractContextManager[RowsTrial]:
        """Open a trial on many rows at once, where the rows are independent.

        The parameters are those of `on_row`.
        """
        ...

    def needed_by_nominated(self, victims: Mapping[int, Sequence[PodInfo]]) -> set[int]:
        """Return the rows without whose victims nominated pods no longer fit, once all are placed.

        Parameters
        ----------
        victims
            The victims of candidates, by row.
        """
        ...

    def on_sums(self, row: int) -> SumsTrial | None:
        """Open a trial on one row by its sums; None where arrays are needed."""
        ...

    def on_row(
        self, row: int, *, nominated_placed: bool = False
    ) -> AbstractContextManager[CountingTrial]:
        """Open a trial on a row; one trial is open at a time.

        Parameters
        ----------
        row
            Which.
        nominated_placed
            Whether the row passes if it takes the pod once the pods nominated first are placed: the
            Filters that count these pods everywhere are then not asked about the cluster without
            them.
        """
        ...


WHAT_IF: StateKey[WhatIf] = StateKey("what-if")
"""Set while PostFilter runs, and only then."""

GIVEN_BACK: Final[StateKey[Callable[[ResourceClaim], bool]]] = StateKey("devices given back")
"""Says of a claim with devices whether a trial counts them as free.

A question writes it into the cycle state of its attempt, and a plugin that counts devices reads it.
No attempt of a scheduler has it.
"""

"""Victims on many independent nodes, found at once.

Part of DefaultPreemption. If every Filter depends only on sums over a node's pods, removing pods
is subtraction. The reprieve then goes rank by rank over all nodes together.

Rules mirrored: the rules of `victims`; tests compare both modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import SUCCESS, Status
from moorage.framework.what_if import RowsResult, RowsTrial, SumsTrial
from moorage.snapshot.importance import NOT_STARTED, RankedPods, start_ns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

_LOWEST = np.iinfo(np.int64).min
CRITERIA = 6
"""Number of criteria by which candidates are compared."""
PRIORITY_SHIFT = 2**31
"""Offset that makes every priority positive, so that more victims never cost less."""

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Protection(msgspec.Struct, frozen=True):
    """The effect of disruption budgets, and of pods that leave, on the pods of some rows.

    Parameters
    ----------
    order
        int64, (rows, ranks): the ranks in the order in which they are put back.
    violating
        bool, (rows, ranks): the ranks whose eviction violates a budget.
    leaves
        bool, (rows, ranks): the ranks whose pods leave their row anyway.
    """

    order: IntArray
    violating: Mask
    leaves: Mask


class Victims(msgspec.Struct, frozen=True):
    """The result of a dry run of many rows.

    Parameters
    ----------
    lower
        bool, (rows, ranks): pods of lower priority than the preemptor.
    victim
        bool, (rows, ranks): pods in `lower` that would be evicted.
    filtered
        The result of all Filters without the pods in `lower`.
    protection
        The effect of budgets; None where no budget selects a pod.
    """

    lower: Mask
    victim: Mask
    filtered: RowsResult
    protection: Protection | None

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, bytes."""
        protection = self.protection
        beside = 0 if protection is None else protection.order.nbytes + protection.violating.nbytes
        return self.lower.nbytes + self.victim.nbytes + self.filtered.nbytes + beside

    def of_row(self, index: int) -> RowVictims:
        """Return the result for one row."""
        victim: list[bool] = self.victim[index].tolist()
        if True not in victim:
            some, status = True in self.lower[index].tolist(), self.filtered.status(index)
            return RowVictims((), 0, mixed=False, lower=some, status=status)
        # A row with victims has passed without them.
        if self.protection is None:
            ranks = tuple([rank for rank, evicted in enumerate(victim) if evicted])
            return RowVictims(ranks, 0, mixed=False, lower=True, status=SUCCESS)
        violating: list[bool] = self.protection.violating[index].tolist()
        mixed = any(violating) and self.lower[index].tolist() != violating
        order = self.protection.order[index].tolist() if mixed else range(len(victim))
        ranks = tuple([rank for rank in order if victim[rank]])
        return RowVictims(
            ranks,
            sum([violating[rank] for rank in ranks]),
            mixed=mixed,
            lower=True,
            status=SUCCESS,
        )


class RowVictims(msgspec.Struct, frozen=True):
    """The result of a dry run for one row.

    Parameters
    ----------
    ranks
        Ranks of the pods to evict, in the order in which pods are put back if `mixed`, else by
        rank.
    violations
        Number of `ranks` whose eviction violates a budget.
    mixed
        Whether budgets protect some, but not all, pods of lower priority.
    lower
        Whether the row has pods of lower priority than the preemptor.
    status
        The status of all Filters without the pods of lower priority.
    """

    ranks: tuple[int, ...]
    violations: int
    mixed: bool
    lower: bool
    status: Status


NOBODY: Final = RowVictims((), 0, mixed=False, lower=False, status=SUCCESS)
"""The result for a row without pods of lower priority; its Filters need not run."""


def comparable(ranked: RankedPods, now_ns: int) -> Mask:
    """Return bool, (rows,): rows where no pod starts at `now_ns` or later; clocks may differ.

    The order by importance counts a pod that has not started as started now. Only on these rows is
    that pod the last.
    """
    started = ranked.start_ns
    late: Mask = ((started >= now_ns) & (started != NOT_STARTED)).any(axis=1)
    return ~late


def dry_run_many(
    trial: RowsTrial, ranked: RankedPods, priority: int, protection: Protection | None
) -> Victims:
    """Find the victims of every row of a trial.

    Parameters
    ----------
    trial
        The rows.
    ranked
        Pods of the rows, in the order of the rows.
    priority
        Priority of the preemptor.
    protection
        None where no budget protects any of the pods.
    """
    lower = ranked.priority < priority
    trial.shift(_sums(ranked.requests, lower), -lower.sum(axis=1))
    trial.take_off(ranked, lower)
    filtered = trial.judge()
    fits = filtered.passed
    victim = np.zeros_like(lower)
    every = np.arange(len(lower))
    for step in range(lower.shape[1]):
        at = (slice(None), step) if protection is None else (every, protection.order[:, step])
        back = lower[at] & fits
        if not back.any():
            continue
        amounts = {name: array[at] for name, array in ranked.requests.items()}
        ranks = np.full(len(every), step) if protection is None else protection.order[:, step]
        victim[at] = trial.put_back(amounts, back, ranks)
    return Victims(lower, victim, filtered, protection)


class WithinRules(Protocol):
    """Rules of other kinds than Filters that must hold, too: on many rows at once."""

    def refusal(self, relief: Mapping[str, IntArray]) -> tuple[Mask, Status] | None:
        """Return the rows where the rules forbid the preemptor even so, and their status.

        Parameters
        ----------
        relief
            int64, (rows,): by resource, what the pods that may be evicted give back.
        """
        ...

    def holds(self, relief: Mapping[str, IntArray]) -> Mask | None:
        """Return bool, (rows,): where the rules hold with what is given back; None everywhere."""
        ...


class _NarrowedResult:
    """`RowsResult` of rows of which some are refused although every Filter passes."""

    def __init__(self, filtered: RowsResult, refused: Mask, status: Status) -> None:
        self._filtered = filtered
        self._refused = refused & filtered.passed
        self._status = status
        self.passed: Mask = filtered.passed & ~refused
        self.alone = filtered.alone
        self.broken = filtered.broken
        self.nbytes = filtered.nbytes + 2 * refused.nbytes

    def status(self, position: int) -> Status:
        """Return the status of one row."""
        return self._status if self._refused[position] else self._filtered.status(position)


def dry_run_within(
    trial: RowsTrial, ranked: RankedPods, allowed: Mask, rules: WithinRules
) -> Victims:
    """Find the victims of every row of a trial where rules say which pods may be evicted.

    No budget protects any of these pods, and none of them leaves anyway.

    Parameters
    ----------
    trial, ranked
        As for `dry_run_many`.
    allowed
        bool, (rows, ranks): the pods that may be evicted.
    rules
        Must hold in addition to the Filters.
    """
    less = _sums(ranked.requests, allowed)
    trial.shift(less, -allowed.sum(axis=1))
    trial.take_off(ranked, allowed)
    filtered = trial.judge()
    relief = {name: -amounts for name, amounts in less.items()}
    refusal = rules.refusal(relief)
    if refusal is not None:
        filtered = _NarrowedResult(filtered, *refusal)
    victim = np.zeros_like(allowed)
    for rank in range(allowed.shape[1]):
        back = allowed[:, rank] & filtered.passed
        if not back.any():
            continue
        amounts = {name: array[:, rank] for name, array in ranked.requests.items()}
        holds = rules.holds({name: relief[name] - amount for name, amount in amounts.items()})
        candidates = back if holds is None else back & holds
        ranks = np.full(len(allowed), rank)
        returns = candidates & ~trial.put_back(amounts, candidates, ranks)
        victim[:, rank] = back & ~returns
        for name, amount in amounts.items():
            relief[name] -= amount * returns
    return Victims(allowed, victim, filtered, None)


def costs_of(ranked: RankedPods, victims: Victims) -> IntArray:
    """Return int64, (rows, 6): the costs of each row by criterion; less is better.

    Victims that leave their node anyway cost nothing. The criteria in order: number of budget
    violations, greatest priority, sum of priorities, number of pods, number of pods with those that
    leave anyway, and minus the earliest start among the victims of greatest priority. The last
    criterion is minus `NOT_STARTED` where none of them has started. Rows without victims have no
    meaning.
    """
    victim = victims.victim
    everyone = victim.sum(axis=1)
    if victims.protection is not None:
        victim = victim & ~victims.protection.leaves
    top = np.where(victim, ranked.priority, _LOWEST).max(axis=1, initial=_LOWEST)
    total = np.where(victim, ranked.priority + PRIORITY_SHIFT, 0).sum(axis=1)
    of_top = victim & (ranked.priority == top[:, None])
    earliest = np.where(of_top, ranked.start_ns, NOT_STARTED).min(axis=1, initial=NOT_STARTED)
    count = victim.sum(axis=1)
    broken = np.zeros_like(top)
    if victims.protection is not None:
        broken = (victim & victims.protection.violating).sum(axis=1)
    return np.stack([broken, top, total, count, everyone, -earliest], axis=1)


def judged_without(trial: SumsTrial, pods: Sequence[PodInfo]) -> Status:
    """Remove pods from one row, in any order, and return the status of all Filters.

    Raises
    ------
    TakesArraysError
        The row needs `dry_run_many`.
    """
    less: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.part(RESOURCES).value.balanced.items():
            less[name] = less.get(name, 0) - amount
    trial.shift(less, -len(pods))
    return trial.judge()


def put_back_on_row(
    trial: SumsTrial,
    pods: Sequence[PodInfo],
    lower: range,
    *,
    violating: Sequence[int],
    leaving: Sequence[int],
) -> RowVictims:
    """Find the victims of one row, as `dry_run_many` does.

    Parameters
    ----------
    trial
        The row, which passes without its pods of lower priority.
    pods
        All pods of the row by rank.
    lower
        Ranks whose priority is lower than the preemptor's: the last ranks.
    violating
        Lower ranks whose eviction violates a budget, in the order in which they are put back.
    leaving
        Lower ranks whose pods leave the row anyway.

    Raises
    ------
    TakesArraysError
        The row needs `dry_run_many`.
    """
    ranks = [
        rank
        for rank in put_back_ranks(lower, violating, leaving)
        if not trial.put_back(pods[rank].part(RESOURCES).value.balanced)
    ]
    mixed = 0 < len(violating) < len(lower)
    return RowVictims(
        tuple(ranks if mixed else sorted(ranks)),
        sum(rank in violating for rank in ranks),
        mixed=mixed,
        lower=True,
        status=SUCCESS,
    )


def put_back_ranks(lower: range, violating: Sequence[int], leaving: Sequence[int]) -> Sequence[int]:
    """Return lower ranks in the order in which they are put back.

    Pods whose eviction violates a budget come first, pods that leave the row anyway last.
    """
    order = [*violating, *(rank for rank in lower if rank not in violating)]
    return sorted(order, key=leaving.__contains__) if leaving else order


def costs_of_row(victims: Sequence[PodInfo], everyone: int) -> tuple[int, int, int, int, int]:
    """Return the costs of one row as `costs_of` does, without the number of violations.

    Parameters
    ----------
    victims
        The victims that would stay otherwise.
    everyone
        Number of victims with those that leave anyway.
    """
    top = max([pod.priority for pod in victims], default=_LOWEST)
    total = sum([pod.priority + PRIORITY_SHIFT for pod in victims])
    starts = [start_ns(pod) for pod in victims if pod.priority == top]
    earliest = min(starts, default=NOT_STARTED)
    return top, total, len(victims), everyone, -earliest


def _sums(requests: Mapping[str, IntArray], which: Mask) -> dict[str, IntArray]:
    return {name: -(array * which).sum(axis=1) for name, array in requests.items()}

"""Who would have to go from each of many nodes, where nodes are independent: all at once.

Part of DefaultPreemption. Where no Filter sees more of a node's pods than their sums, taking pods
off is subtraction, and the reprieve goes rank by rank over all nodes together.

Rules mirrored: those of `victims`, to which tests hold it equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import SUCCESS, Status
from moorage.framework.what_if import RowsResult, RowsTrial, SumsTrial
from moorage.snapshot.importance import NOT_STARTED, RankedPods, start_ns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

_LOWEST = np.iinfo(np.int64).min
CRITERIA = 5
"""By how many criteria candidates are compared."""
PRIORITY_SHIFT = 2**31
"""Makes every priority positive, so that more victims never cost less."""

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Protection(msgspec.Struct, frozen=True):
    """What disruption budgets make of some rows' pods.

    Parameters
    ----------
    order
        int64, (rows, ranks): the ranks in the order in which they are put back.
    violating
        bool, (rows, ranks): the ranks whose eviction breaks a budget.
    """

    order: IntArray
    violating: Mask


class Victims(msgspec.Struct, frozen=True):
    """What a dry run of many rows found.

    Parameters
    ----------
    lower
        bool, (rows, ranks): pods of lower priority than the preemptor.
    victim
        bool, (rows, ranks): those of them that would be evicted.
    filtered
        Of every Filter with all of them gone.
    protection
        The budgets' part; None where they have none.
    """

    lower: Mask
    victim: Mask
    filtered: RowsResult
    protection: Protection | None

    def of_row(self, index: int) -> RowVictims:
        """Return what was found for one row."""
        victim: list[bool] = self.victim[index].tolist()
        if True not in victim:
            some, status = True in self.lower[index].tolist(), self.filtered.status(index)
            return RowVictims((), 0, mixed=False, lower=some, status=status)
        # Who has victims has passed without them.
        if self.protection is None:
            ranks = tuple([rank for rank, evicted in enumerate(victim) if evicted])
            return RowVictims(ranks, 0, mixed=False, lower=True, status=SUCCESS)
        violating: list[bool] = self.protection.violating[index].tolist()
        ranks = tuple([rank for rank in self.protection.order[index].tolist() if victim[rank]])
        return RowVictims(
            ranks,
            sum([violating[rank] for rank in ranks]),
            mixed=any(violating) and self.lower[index].tolist() != violating,
            lower=True,
            status=SUCCESS,
        )


class RowVictims(msgspec.Struct, frozen=True):
    """What a dry run found for one row.

    Parameters
    ----------
    ranks
        Of the pods that would be evicted, in the order in which they were put back.
    violations
        How many of them budgets protect.
    mixed
        Whether budgets protect some of the lower pods and not all.
    lower
        Whether there are pods of lower priority than the preemptor.
    status
        What every Filter says with all of them gone.
    """

    ranks: tuple[int, ...]
    violations: int
    mixed: bool
    lower: bool
    status: Status


NOBODY: Final = RowVictims((), 0, mixed=False, lower=False, status=SUCCESS)
"""Of a row without pods of lower priority; Filters need not be asked."""


def comparable(ranked: RankedPods, now_ns: int) -> Mask:
    """Return bool, (rows,): whether nobody was started now or later, as clocks may say.

    The order by importance takes a pod not started for started now, which is only then the last.
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
        Their pods, in the same order.
    priority
        The preemptor's.
    protection
        None where no budget protects any of the pods.
    """
    lower = ranked.priority < priority
    trial.shift(_sums(ranked.requests, lower), -lower.sum(axis=1))
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
        victim[at] = trial.put_back(amounts, back)
    return Victims(lower, victim, filtered, protection)


def costs_of(ranked: RankedPods, victims: Victims) -> IntArray:
    """Return int64, (rows, 5): what each row loses, by criterion; less is better.

    In order: victims that budgets protect, greatest priority, sum of priorities, number of pods,
    and minus the earliest start among the victims of greatest priority, minus `NOT_STARTED` where
    none of them was started. Rows without victims mean nothing.
    """
    victim = victims.victim
    top = np.where(victim, ranked.priority, _LOWEST).max(axis=1, initial=_LOWEST)
    total = np.where(victim, ranked.priority + PRIORITY_SHIFT, 0).sum(axis=1)
    of_top = victim & (ranked.priority == top[:, None])
    earliest = np.where(of_top, ranked.start_ns, NOT_STARTED).min(axis=1, initial=NOT_STARTED)
    count = victim.sum(axis=1)
    broken = np.zeros_like(top)
    if victims.protection is not None:
        broken = (victim & victims.protection.violating).sum(axis=1)
    return np.stack([broken, top, total, count, -earliest], axis=1)


def judged_without(trial: SumsTrial, pods: Sequence[PodInfo]) -> Status:
    """Take pods off one row, in whatever order, and return what every Filter says.

    Raises
    ------
    TakesArraysError
        It takes `dry_run_many`.
    """
    less: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.part(RESOURCES).value.balanced.items():
            less[name] = less.get(name, 0) - amount
    trial.shift(less, -len(pods))
    return trial.judge()


def put_back_on_row(
    trial: SumsTrial, pods: Sequence[PodInfo], lower: range, violating: Sequence[int]
) -> RowVictims:
    """Find the victims of one row, as `dry_run_many` does.

    Parameters
    ----------
    trial
        The row, which passes without its pods of lower priority.
    pods
        All its pods by rank.
    lower
        The ranks of lower priority than the preemptor's: the last ones.
    violating
        Those of them whose eviction breaks a budget, in the order in which they are put back.

    Raises
    ------
    TakesArraysError
        It takes `dry_run_many`.
    """
    order = [*violating, *(rank for rank in lower if rank not in violating)]
    ranks = tuple(
        [rank for rank in order if not trial.put_back(pods[rank].part(RESOURCES).value.balanced)]
    )
    return RowVictims(
        ranks,
        sum(rank in violating for rank in ranks),
        mixed=0 < len(violating) < len(lower),
        lower=True,
        status=SUCCESS,
    )


def costs_of_row(pods: Sequence[PodInfo], ranks: Sequence[int]) -> tuple[int, int, int, int]:
    """Return what one row loses, as `costs_of` does, without the victims that budgets protect."""
    victims = [pods[rank] for rank in ranks]
    top = max([pod.priority for pod in victims])
    total = sum([pod.priority + PRIORITY_SHIFT for pod in victims])
    earliest = min([start_ns(pod) for pod in victims if pod.priority == top])
    return top, total, len(victims), -earliest


def _sums(requests: Mapping[str, IntArray], which: Mask) -> dict[str, IntArray]:
    return {name: -(array * which).sum(axis=1) for name, array in requests.items()}

"""Skew of topology domains, for Filter and Score of PodTopologySpread.

`HardSkew` judges rows by the counts of PreFilter, and follows the pods that a trial moves.
`SoftSkew` scores rows by the counts of PreScore.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/podtopologyspread``,
``filtering.go`` and ``scoring.go``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.points import ScoreArray
from moorage.framework.status import Code, CodeArray, FilterAnswer
from moorage.plugins.nodes.terms import BoolArray
from moorage.plugins.spread.constraints import HOSTNAME, Constraint
from moorage.plugins.spread.layout import Layout, Tally
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

TOO_SKEWED: Final = Code.UNSCHEDULABLE
KEY_MISSING: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
TOO_SOON: Final = Code.PENDING
"""The domain takes the pod once nominated pods of other domains are placed."""

Counts = NDArray[np.int64]

# The greatest float64 below a half.
_BELOW_HALF: Final = math.nextafter(0.5, 0.0)
_ROWS_A_DOMAIN: Final = 16  # rows checked first, to see whether they cover all domains; a guess

_DOMAINS_KEPT: Final = 64  # answers for more domains are not kept: each set would be new; a guess
_ANSWERS_KEPT: Final = 8  # by layout: three zones have six sets that fail; 10 KB each at 5000 nodes
_NO_DOMAIN: Final = np.zeros(0, np.bool_)

Reasons = Sequence[tuple[Code, int]]
"""The codes of failing rows, each with the id of its reasons."""

_Moved = Mapping[int, int]
"""By domain, the difference to the pods that were counted."""


def answer_of_codes(code_n: CodeArray, reasons: Reasons) -> FilterAnswer | None:
    """Return the answer with these codes; None when no row fails."""
    checks = [(code_n == code, code, reason) for code, reason in reasons]
    found = [each for each in checks if np.count_nonzero(each[0])]
    return FilterAnswer.of_checks(*found) if found else None


class HardSkew:
    """Counts by domain of a pod's hard constraints, with the moves of a trial.

    Parameters
    ----------
    constraints, layout
        The constraints, and the domains of all rows.
    tallies
        Pods by domain, one array for each constraint.
    moved
        Differences since the counts; None for no difference.
    """

    __slots__ = ("_constraints", "_layout", "_least", "_lowest", "_moved", "_tallies")

    def __init__(
        self, constraints: Sequence[Constraint], layout: Layout, tallies: Sequence[Tally]
    ) -> None:
        self._constraints = constraints
        self._layout = layout
        self._tallies = tallies
        self._moved: tuple[_Moved, ...] | None = None
        # For each constraint: the smallest count. For trials also the smallest domain, its count
        # and the smallest count of all other domains.
        self._lowest: list[float | None] = [None] * len(constraints)
        self._least: list[tuple[int, float, float] | None] = [None] * len(constraints)

    @classmethod
    def current_skew(cls, constraints: Sequence[Constraint], layout: Layout) -> HardSkew:
        """Return the skew of the current counts."""
        tallies = [
            axis.tally(constraint)
            for constraint, axis in zip(constraints, layout.axes, strict=True)
        ]
        return cls(constraints, layout, tallies)

    def moving(self, pod: PodInfo, other: PodInfo, row: int, step: int) -> HardSkew | None:
        """Return the skew after a pod is added or removed on a row; None for no change.

        Terminating pods are not counted. Still, as upstream, removing a terminating pod lowers the
        count.

        Parameters
        ----------
        pod
            The pod with the constraints.
        other
            The pod that is added or removed.
        row
            The row of the other pod.
        step
            +1 to add the pod, -1 to remove it.
        """
        if other.namespace != pod.namespace:
            return None
        labels = other.pod.metadata.labels
        moved = list(self._moved or ({},) * len(self._constraints))
        changed = False
        pairs = zip(self._constraints, self._layout.axes, strict=True)
        for index, (constraint, axis) in enumerate(pairs):
            if axis.counts_row(row) and constraint.selector.matches(labels):
                domain, before = int(axis.domain_n[row]), moved[index]
                moved[index] = {**before, domain: before.get(domain, 0) + step}
                changed = True
        if not changed:
            return None
        twin = HardSkew(self._constraints, self._layout, self._tallies)
        twin._moved, twin._lowest, twin._least = tuple(moved), self._lowest, self._least
        return twin

    def beside(self, pod: PodInfo, others: Iterable[tuple[int, PodInfo]]) -> HardSkew | None:
        """Return the skew with nominated pods counted, each on its row; None for no change.

        Parameters
        ----------
        pod
            The pod with the constraints.
        others
            The nominated pods, each with its row.
        """
        return self._counting(pod, others, +1)

    def _counting(
        self, pod: PodInfo, others: Iterable[tuple[int, PodInfo]], step: int
    ) -> HardSkew | None:
        """Return the skew after some pods change their counts by a step; None for no change."""
        tallies, changed = list(self._tallies), [False] * len(self._constraints)
        for row, other in others:
            metadata = other.pod.metadata
            if other.namespace != pod.namespace or metadata.deletion_timestamp:
                continue
            labels = metadata.labels
            for index, constraint in enumerate(self._constraints):
                axis = self._layout.axes[index]
                if constraint.counts_none or not axis.counts_row(row):
                    continue
                if constraint.selector.matches(labels):
                    if not changed[index]:
                        tallies[index], changed[index] = tallies[index].copy(), True
                    tallies[index][axis.domain_n[row]] += step
        return HardSkew(self._constraints, self._layout, tallies) if any(changed) else None

    def without(self, pod: PodInfo, others: Iterable[tuple[int, PodInfo]]) -> HardSkew:
        """Return the skew without some pods that count, each on its row.

        Parameters
        ----------
        pod
            The pod with the constraints.
        others
            The pods, each with its row; terminating pods change nothing.
        """
        return self._counting(pod, others, -1) or self

    def closed_rows(self, rows: Sequence[int], labels: Mapping[str, str]) -> BoolArray | None:
        """Return bool, (n,): where one more pod would break the skew of pods that count here.

        Parameters
        ----------
        rows
            The rows of pods with these constraints, which the counts include.
        labels
            The labels of the pod that may come. None where it may go anywhere.
        """
        closed: BoolArray | None = None
        for index, constraint in enumerate(self._constraints):
            if constraint.counts_none or not constraint.selector.matches(labels):
                continue
            axis, tally = self._layout.axes[index], self._tally(index)
            most = constraint.max_skew + self._floor(index, constraint)
            domains = {int(axis.domain_n[row]) for row in rows if axis.counts_row(row)}
            for domain in domains:
                if domain >= 0 and tally[domain] + 1 > most:
                    there: BoolArray = axis.domain_n == domain
                    closed = there if closed is None else closed | there
        return closed

    def is_broken(self, rows: Iterable[int]) -> bool:
        """Whether pods on some rows, which the counts include, exceed the maximum skew."""
        for index, constraint in enumerate(self._constraints):
            if constraint.counts_none:
                continue
            axis, tally = self._layout.axes[index], self._tally(index)
            most = constraint.max_skew + self._floor(index, constraint)
            domains = {int(axis.domain_n[row]) for row in rows if axis.counts_row(row)}
            if any(domain >= 0 and tally[domain] > most for domain in domains):
                return True
        return False

    def judge_row(self, row: int) -> Code:
        """Return the code for one row: the first constraint that fails decides."""
        for index, constraint in enumerate(self._constraints):
            domain = int(self._layout.axes[index].domain_n[row])
            if domain < 0:
                return KEY_MISSING
            count = self._tallies[index][domain]
            if self._moved is not None:
                count += self._moved[index].get(domain, 0)
            if count > self._most(index, constraint):
                return TOO_SKEWED
        return Code.SUCCESS

    def adds(self, pod: PodInfo, others: Sequence[PodInfo]) -> Counts:
        """Return int64, (constraints, pods + 1): whether a pod that moves counts; the last is 0."""
        adds = np.zeros((len(self._constraints), len(others) + 1), np.int64)
        for position, other in enumerate(others):
            if other.namespace == pod.namespace:
                labels = other.pod.metadata.labels
                for index, constraint in enumerate(self._constraints):
                    adds[index, position] = constraint.selector.matches(labels)
        return adds

    def counting_rows(self, view: NodeView) -> BoolArray:
        """Return bool, (constraints, rows of the view): whether a row's pods are counted."""
        return np.stack([axis.counts_rows(view) for axis in self._layout.axes])

    def codes_without(self, view: NodeView, gone: Counts) -> CodeArray:
        """Return uint8, (rows of the view,): the codes of rows that are each judged for itself.

        Parameters
        ----------
        view
            The rows.
        gone
            int64, (constraints, rows of the view): by how many pods the count of the row's domain
            is less than the tally, so that the domain may become the smallest one.
        """
        code_n = np.zeros(len(view), np.uint8)
        for index, constraint in enumerate(self._constraints):
            tally, domain_n = (
                self._tallies[index],
                view.take_rows(self._layout.axes[index].domain_n),
            )
            count_n = tally[domain_n] - gone[index]
            floor_n: NDArray[np.float64] = np.zeros(len(view))
            existing = self._layout.existing(index)
            if len(existing) and len(existing) >= constraint.min_domains:
                floor_n += self._lowest_of(index, existing)
                np.minimum(floor_n, count_n, out=floor_n, where=gone[index] > 0)
            most_n = constraint.max_skew - constraint.matches_self + floor_n
            failed_n = np.where(count_n > most_n, np.uint8(TOO_SKEWED), np.uint8(0))
            failed_n[domain_n < 0] = KEY_MISSING
            np.copyto(code_n, failed_n, where=code_n == 0)
        return code_n

    def judge(self, view: NodeView, reasons: Reasons) -> FilterAnswer | None:
        """Return the answer about the rows of a view; None when no row fails.

        Parameters
        ----------
        reasons
            The codes of failing rows, each with the id of its reasons.

        Notes
        -----
        Rows fail by their domains, and few sets of domains occur: of three zones one or two are
        too full. So the answer about every row is kept for each of these sets.
        """
        failing = self._failing()
        if failing is None:
            return None
        answers, key = self._layout.answers, tuple([each.tobytes() for each in failing])
        keeps = view.is_all and sum(map(len, key)) <= _DOMAINS_KEPT
        if keeps and key in answers:
            return answers[key]
        answer = self._answer(view, failing, reasons)
        if keeps:
            if len(answers) >= _ANSWERS_KEPT:
                answers.clear()
            answers[key] = None if answer is None else answer.keep()
        return answer

    def _failing(self) -> list[BoolArray] | None:
        """Return, for each constraint, bool, (size + 1,): its domains whose rows fail; or None.

        None where no row fails at all. The last entry is that of rows without the key.
        """
        masks: list[BoolArray] = []
        fails = False
        for index, constraint in enumerate(self._constraints):
            axis, tally = self._layout.axes[index], self._tally(index)
            most = self._most(index, constraint)
            if not axis.lacks_some and tally.item(tally.argmax()) <= most:
                masks.append(_NO_DOMAIN)
                continue
            failing: BoolArray = tally > most
            failing[-1] = True
            masks.append(failing)
            fails = True
        return masks if fails else None

    def _answer(
        self, view: NodeView, failing: Sequence[BoolArray], reasons: Reasons
    ) -> FilterAnswer | None:
        """Return the answer for domains that fail: the first constraint that fails decides."""
        codes: CodeArray | None = None
        for axis, failing_domains in zip(self._layout.axes, failing, strict=True):
            if not len(failing_domains):
                continue
            by_domain = failing_domains.astype(np.uint8) * np.uint8(TOO_SKEWED)
            by_domain[-1] = KEY_MISSING
            code_n = by_domain[view.take_rows(axis.domain_n)]
            if codes is None:
                codes = code_n
            else:
                codes += code_n * (codes == 0)
        return None if codes is None else answer_of_codes(codes, reasons)

    def _most(self, index: int, constraint: Constraint) -> float:
        """Return the greatest count that a domain may have before this pod is added."""
        return constraint.max_skew - constraint.matches_self + self._floor(index, constraint)

    def _floor(self, index: int, constraint: Constraint) -> float:
        """Return the count of the smallest domain; 0 with too few domains."""
        existing = self._layout.existing(index)
        if len(existing) == 0 or len(existing) < constraint.min_domains:
            return 0.0
        moved = None if self._moved is None else self._moved[index]
        if not moved:
            return self._lowest_of(index, existing)
        least = self._least[index]
        if least is None:
            least = self._least[index] = _two_least(self._tallies[index], existing)
        domain, lowest, second = least
        if len(moved) > 1:
            return float(self._tally(index)[existing].min())
        # A trial moves pods of one row, hence of one domain: the other domains need no check.
        ((changed, step),) = moved.items()
        others = second if changed == domain else lowest
        return min(others, float(self._tallies[index][changed]) + step)

    def _lowest_of(self, index: int, existing: NDArray[np.int64]) -> float:
        lowest = self._lowest[index]
        if lowest is None:
            tally, size = self._tallies[index], self._layout.axes[index].size
            counts = tally[:size] if len(existing) == size else tally[existing]
            lowest = self._lowest[index] = float(counts[counts.argmin()])
        return lowest

    def _tally(self, index: int) -> Tally:
        tally = self._tallies[index]
        if self._moved is not None and self._moved[index]:
            tally = tally.copy()
            for domain, step in self._moved[index].items():
                tally[domain] += step
        return tally


class SoftSkew:
    """Counts and weights of a pod's soft constraints over the feasible rows.

    Parameters
    ----------
    snapshot, constraints, layout
        The constraints, and the domains of all rows.
    feasible
        The rows that passed Filter.
    """

    __slots__ = ("_constraints", "_counts", "_ignored", "_layout", "_tallies", "_weights")

    def __init__(
        self,
        snapshot: Snapshot,
        constraints: Sequence[Constraint],
        layout: Layout,
        feasible: NodeView,
    ) -> None:
        self._constraints = constraints
        self._layout = layout
        self._ignored = self._left_out(feasible)
        count = len(feasible)
        if self._ignored is not None:
            count -= int(np.count_nonzero(self._ignored))
        self._counts: list[Counts | None] = []
        self._tallies: list[Tally | None] = []
        self._weights: list[float] = []
        for index, constraint in enumerate(constraints):
            by_node = constraint.key == HOSTNAME
            self._counts.append(counts_of(snapshot, constraint) if by_node else None)
            self._tallies.append(None if by_node else layout.axes[index].tally(constraint))
            domains = count if by_node else self._domains(index, feasible)
            self._weights.append(math.log(domains + 2))

    @property
    def ignored_n(self) -> BoolArray | None:
        """bool, (feasible rows,): rows that lack a key and score 0; None for no row."""
        return self._ignored

    def score(self, view: NodeView) -> ScoreArray:
        """Return int64, (rows of the view,): raw scores; more matching pods score higher."""
        wide = view.widened()
        total: NDArray[np.float64] | None = None
        for index, constraint in enumerate(self._constraints):
            part = self._part(index, constraint, wide)
            if total is None:
                total = part
            else:
                total += part
        assert total is not None, "there are no constraints to score"
        ignored = self._left_out(wide)
        if ignored is not None:
            total[ignored] = 0.0
        return view.narrowed(rounded(total), wide)

    def _part(self, index: int, constraint: Constraint, view: NodeView) -> NDArray[np.float64]:
        """Return one constraint's part of the score; 0 where the key is missing."""
        axis, tally, weight = self._layout.axes[index], self._tallies[index], self._weights[index]
        skew = float(constraint.max_skew - 1)
        if tally is not None:
            by_domain: NDArray[np.float64] = np.multiply(tally, weight)
            by_domain += skew
            by_domain[-1] = 0.0
            return by_domain[view.take_rows(axis.domain_n)]
        count_n = self._counts[index]
        if count_n is None:
            part = np.full(len(view), skew)
        else:
            part = view.take_rows(count_n).astype(np.float64)
            part *= weight
            part += skew
        if axis.lacks_some:
            part[view.take_rows(axis.domain_n) < 0] = 0.0
        return part

    def _domains(self, index: int, feasible: NodeView) -> int:
        """Return the number of distinct domains of the feasible rows; "no label" is a domain."""
        if self._ignored is None and len(feasible) == feasible.size_of_all:
            return self._layout.distinct_everywhere(index)
        axis = self._layout.axes[index]
        if self._ignored is not None:
            return axis.distinct(feasible.take_rows(axis.place_n)[~self._ignored])
        # The domains of all rows are an upper bound, which the first rows often reach.
        everywhere = self._layout.distinct_everywhere(index)
        assert feasible.rows is not None, "not all rows, so they are spelled out"
        first = feasible.rows[: everywhere * _ROWS_A_DOMAIN]
        found = axis.distinct(axis.place_n[first])
        if found == everywhere or len(first) == len(feasible):
            return found
        return axis.distinct(feasible.take_rows(axis.place_n))

    def _left_out(self, view: NodeView) -> BoolArray | None:
        complete_n = self._layout.complete_n
        if complete_n is None:
            return None
        lacking = ~view.take_rows(complete_n)
        return lacking if np.count_nonzero(lacking) else None


def counts_of(snapshot: Snapshot, constraint: Constraint) -> Counts | None:
    """Return int64, (n,): the number of counted pods on each row; None for no counted pods."""
    return None if constraint.counts_none else snapshot.count_column(constraint.count)


def rounded(total_n: NDArray[np.float64]) -> ScoreArray:
    """Return int64: non-negative numbers rounded half up, as Go rounds; the input is changed.

    `np.rint` rounds half to even and differs. Adding 0.5 is wrong, too: the greatest float64 below
    0.5 would round to 1. So this function adds that greatest float64 below 0.5.
    """
    total_n += _BELOW_HALF
    return total_n.astype(np.int64)


def normalized(raw_n: ScoreArray, ignored_n: BoolArray | None) -> ScoreArray:
    """Reverse raw scores: the lowest becomes 100; ignored rows become 0."""
    valid = raw_n if ignored_n is None else raw_n[~ignored_n]
    # By position: the reductions of NumPy take three times as long.
    high = valid.item(valid.argmax()) if len(valid) else 0
    if high <= 0:
        score_n = np.full_like(raw_n, 100)
    else:
        score_n = high + valid.item(valid.argmin()) - raw_n
        score_n *= 100
        score_n //= high
    if ignored_n is not None:
        score_n[ignored_n] = 0
    return score_n


def _two_least(tally: Tally, existing: NDArray[np.int64]) -> tuple[int, float, float]:
    """Return the first smallest domain, its count and the smallest count of the others."""
    counts = tally[existing].astype(np.float64)
    at = int(counts.argmin())
    lowest = float(counts[at])
    counts[at] = math.inf
    return int(existing[at]), lowest, float(counts.min())

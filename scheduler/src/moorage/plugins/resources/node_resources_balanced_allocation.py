"""NodeResourcesBalancedAllocation: prefers nodes with balanced use of their resources.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/noderesources``
(balanced_allocation.go), in float64 and in its order of operations, because the result is
truncated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.names import is_scalar_resource
from moorage.base.errors import ConfigError
from moorage.config.plugin_args import NodeResourcesBalancedAllocationArgs
from moorage.config.plugin_args import (
    validate_node_resources_balanced_allocation_args as validate,
)
from moorage.framework.capabilities import Capabilities, Reads, RowScorer
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.framework.status import SKIP, SUCCESS, Status
from moorage.plugins.answers import memo_of
from moorage.plugins.resources.derived_column import DerivedColumn
from moorage.plugins.resources.device_totals import DeviceTotals
from moorage.plugins.resources.free_shares import is_plain
from moorage.plugins.resources.scoring import FIRST_CLASS
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES, Part, PodRequests
from moorage.snapshot.view import NodeView

Float64Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ScoredColumn = tuple[Float64Array, NDArray[np.int64], int]
"""(allocatable amounts, used amounts, request) of a scored resource."""

_HALF = MAX_NODE_SCORE // 2
# Sets of resources whose balance is kept for all rows; a guess.
_BASES_MOST: Final = 16


class NodeResourcesBalancedAllocation:
    """PreScore and Score plugin; registers no events.

    Raises
    ------
    ConfigError
        A weight is not 1, or a resource occurs twice.
    """

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._resources = tuple(spec.name for spec in args.resources)
        self._snapshot = handle.snapshot
        self._totals = DeviceTotals(handle)
        self._used: dict[str, DerivedColumn[np.float64]] = {}
        """By resource, the used amounts of every row."""
        self._bases: dict[tuple[str, ...], DerivedColumn[np.int64]] = {}
        """By resources that every node has, the part of each score that depends on no pod."""

    def capabilities(self) -> Capabilities:
        """Declare reuse by row, and the scalar form."""
        return Capabilities(
            score_reads=Reads.NODE | Reads.SUMS,
            shape_parts=(RESOURCES,),
            row_scorer=self.row_scorer,
        )

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Skip pods that request none of the resources."""
        del state, feasible
        return SUCCESS if memo_of(pod.part(RESOURCES), self, self._terms) else SKIP

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score the change of balance, 50 to 100; 75 for no change."""
        del state
        terms = memo_of(pod.part(RESOURCES), self, self._terms)
        if not terms:
            return np.zeros(len(view), np.int64)
        wide = view.widened()
        if wide.is_all and all(
            is_plain(self._snapshot, self._totals, resource) for resource, _ in terms
        ):
            return view.narrowed(self._score_all(terms), wide)
        presence: list[BoolArray | None] = []
        before: list[Float64Array] = []
        after: list[Float64Array] = []
        for resource, request in terms:
            capacity = wide.take_rows(self._snapshot.allocatable_float(resource))
            used = wide.take_rows(self._snapshot.requested(resource))
            has: BoolArray | None = None
            devices = self._totals.totals_of(wide, resource)
            if devices is not None:
                instead = (capacity == 0.0) & (devices[0] > 0)
                capacity = np.where(instead, devices[0].astype(np.float64), capacity)
                used = np.where(instead, devices[1], used)
            if devices is not None or not self._snapshot.everywhere(resource):
                has = capacity != 0.0
                capacity = np.where(has, capacity, 1.0)
            presence.append(has)
            less, more = used.astype(np.float64), (used + request).astype(np.float64)
            less /= capacity  # NumPy takes twice the time for mixed types
            more /= capacity
            if _exceeds_one(more):  # else no row does, because `less` is smaller
                np.minimum(less, 1.0, out=less)
                np.minimum(more, 1.0, out=more)
            before.append(less)
            after.append(more)
        change = _balance(after, presence)
        change -= _balance(before, presence)
        # 50 + (50 + change) // 2; the sum is not negative: no deviation is above a half.
        change += 3 * _HALF
        change >>= 1
        return view.narrowed(change, wide)

    def _score_all(self, terms: tuple[tuple[str, int], ...]) -> ScoreArray:
        """Score every row by resources that are plain; only the balance with the pod is new."""
        after: list[Float64Array] = []
        for resource, request in terms:
            more = self._used_of(resource) + float(request)
            more /= self._snapshot.allocatable_float(resource)
            if _exceeds_one(more):
                np.minimum(more, 1.0, out=more)
            after.append(more)
        scores = _balance(after, [None] * len(after))
        scores += self._base_of(tuple([resource for resource, _ in terms]))
        scores >>= 1
        return scores

    def _used_of(self, resource: str) -> Float64Array:
        column = self._used.get(resource)
        if column is None:
            requested = partial(self._snapshot.requested, resource)
            column = self._used[resource] = DerivedColumn(
                self._snapshot.table,
                lambda: requested().astype(np.float64),
                lambda row: float(requested().item(row)),
            )
        return column.read()

    def _base_of(self, resources: tuple[str, ...]) -> ScoreArray:
        """Return int64, (n,): 150 minus the balance without the pod, for the halving to come."""
        column = self._bases.get(resources)
        if column is None:
            snapshot = self._snapshot

            def base() -> ScoreArray:
                before = [
                    np.minimum(snapshot.requested(each) / snapshot.allocatable_float(each), 1.0)
                    for each in resources
                ]
                return 3 * _HALF - _balance(before, [None] * len(before))

            def base_of(row: int) -> int:
                before = [
                    min(
                        snapshot.requested(each).item(row)
                        / snapshot.allocatable_float(each).item(row),
                        1.0,
                    )
                    for each in resources
                ]
                balance = int((1.0 - _deviation_of_one(before)) * MAX_NODE_SCORE)
                return 3 * _HALF - balance

            if len(self._bases) >= _BASES_MOST:
                self._bases.clear()
            column = self._bases[resources] = DerivedColumn(snapshot.table, base, base_of)
        return column.read()

    def row_scorer(self, state: CycleState, pod: PodInfo) -> RowScorer:
        """Return what scores one row with Python floats; None if the row lacks a resource."""
        del state
        columns = self._scored_columns(pod.part(RESOURCES))
        if len(columns) == 2:
            return _scorer_of_two(*columns)

        def score(row: int) -> int | None:
            before: list[float] = []
            after: list[float] = []
            for capacity_n, used_n, request in columns:
                capacity = capacity_n.item(row)
                if capacity == 0.0:
                    return None
                used = used_n.item(row)
                before.append(min(used / capacity, 1.0))
                after.append(min((used + request) / capacity, 1.0))
            return _change(_deviation_of_one(before), _deviation_of_one(after)) if after else 0

        return score

    def _scored_columns(self, requests: Part[PodRequests]) -> tuple[ScoredColumn, ...]:
        snapshot = self._snapshot
        return tuple(
            (snapshot.allocatable_float(resource), snapshot.requested(resource), request)
            for resource, request in memo_of(requests, self, self._terms)
        )

    def _terms(self, requests: PodRequests) -> tuple[tuple[str, int], ...]:
        """Return (resource, request) of the configured resources; () without a request."""
        amounts = {name: requests.balanced.get(name, 0) for name in self._resources}
        terms = tuple(
            (name, amount)
            for name, amount in amounts.items()
            if name in FIRST_CLASS or (amount != 0 and is_scalar_resource(name))
        )
        return terms if any(amount for _, amount in terms) else ()


def _scorer_of_two(first: ScoredColumn, second: ScoredColumn) -> RowScorer:
    """Return what scores one row by two resources, as most profiles do, without lists."""
    first_capacity_n, first_used_n, first_request = first
    second_capacity_n, second_used_n, second_request = second

    def score(row: int) -> int | None:
        capacity, other_capacity = first_capacity_n.item(row), second_capacity_n.item(row)
        if capacity == 0.0 or other_capacity == 0.0:
            return None
        used, other_used = first_used_n.item(row), second_used_n.item(row)
        before = min(used / capacity, 1.0) - min(other_used / other_capacity, 1.0)
        used, other_used = used + first_request, other_used + second_request
        after = min(used / capacity, 1.0) - min(other_used / other_capacity, 1.0)
        return _change(abs(before / 2.0), abs(after / 2.0))

    return score


def _change(before: float, after: float) -> int:
    """Return the score of a change between two deviations."""
    with_pod, without = int((1.0 - after) * MAX_NODE_SCORE), int((1.0 - before) * MAX_NODE_SCORE)
    return _HALF + (_HALF + with_pod - without) // 2


def _exceeds_one(fraction: Float64Array) -> bool:
    return len(fraction) > 0 and fraction.item(fraction.argmax()) > 1.0


def _balance(fractions: Sequence[Float64Array], presence: Sequence[BoolArray | None]) -> ScoreArray:
    """Return int64, (rows,): 100 for equal fractions, less by their standard deviation.

    Parameters
    ----------
    fractions
        float64, (rows,) for each resource: share used, at most 1.
    presence
        bool, (rows,) for each resource: rows that have the resource; None for all rows.
    """
    if all(has is None for has in presence):
        if len(fractions) == 2:
            return _balance_of_two(*fractions)
        deviation = _deviation(fractions)
    else:
        deviation = _deviation_of_counted(fractions, presence)
    return ((1.0 - deviation) * MAX_NODE_SCORE).astype(np.int64)


def _balance_of_two(first: Float64Array, second: Float64Array) -> ScoreArray:
    """Compute ``(1 - abs((first - second) / 2)) * 100`` in fewer passes, to the same bit.

    Doubling and halving are exact, so (2 - d) * 50 rounds as (1 - d / 2) * 100 does, twice.
    """
    difference = first - second
    np.abs(difference, out=difference)
    np.subtract(2.0, difference, out=difference)
    difference *= _HALF
    return difference.astype(np.int64)


def _deviation(fractions: Sequence[Float64Array]) -> Float64Array:
    count = len(fractions)
    if count == 1:
        return np.zeros_like(fractions[0])
    if count == 2:
        return np.abs((fractions[0] - fractions[1]) / 2.0)
    total = np.zeros_like(fractions[0])
    for fraction in fractions:
        total += fraction
    mean = total / float(count)
    squares = np.zeros_like(mean)
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return np.sqrt(squares / float(count))


def _deviation_of_one(fractions: Sequence[float]) -> float:
    """Return the standard deviation of one node's fractions, in the order of `_deviation`."""
    count = len(fractions)
    if count == 1:
        return 0.0
    if count == 2:
        return abs((fractions[0] - fractions[1]) / 2.0)
    total = 0.0
    for fraction in fractions:
        total += fraction
    mean, squares = total / count, 0.0
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return math.sqrt(squares / count)


def _deviation_of_counted(
    fractions: Sequence[Float64Array], presence: Sequence[BoolArray | None]
) -> Float64Array:
    """Return the standard deviations where nodes have different resources.

    Rows are grouped by the resources they have. Each group is computed over its own resources, so
    the order of operations is the order for a node with exactly these resources.
    """
    rows = len(fractions[0])
    pattern = np.zeros(rows, np.int64)
    for bit, has in enumerate(presence):
        pattern += np.int64(1 << bit) if has is None else has * np.int64(1 << bit)
    deviation = np.zeros(rows)
    for group in np.unique(pattern).tolist():
        present = [fraction for bit, fraction in enumerate(fractions) if group >> bit & 1]
        if len(present) < 2:
            continue
        member = pattern == group
        deviation[member] = _deviation([fraction[member] for fraction in present])
    return deviation

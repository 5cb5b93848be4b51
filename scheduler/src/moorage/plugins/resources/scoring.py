"""Scores by the use of each node's resources: the arithmetic of NodeResourcesFit.

A strategy turns use and capacity of each resource into a share of 0 to 100, and combines the shares
by weight. The arithmetic is Go's: int64 with truncating division.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/noderesources`` and
``pkg/scheduler/framework/plugins/helper/shape_score.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.names import is_scalar_resource
from moorage.config.plugin_args import LEAST_ALLOCATED, MOST_ALLOCATED
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.framework.utilization_shape import scores_by_percent
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

FIRST_CLASS: Final = frozenset({"cpu", "memory", "ephemeral-storage"})

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]
AmountArray = Int64Array | Float64Array
BoolArray = NDArray[np.bool_]


class ResourceUse(msgspec.Struct, frozen=True):
    """One resource over the rows of a view.

    Both arrays are float64 where float64 division is exact, else int64.

    Parameters
    ----------
    weight
        Weight of the resource in the score.
    capacity_n
        (rows,): allocatable amount; 1 where the node has none.
    missing_n
        bool, (rows,): rows without the resource; None for no row.
    used_n
        (rows,): use with the pod on the node; a strategy overwrites the array.
    """

    weight: int
    capacity_n: AmountArray
    missing_n: BoolArray | None
    used_n: AmountArray


class Strategy(Protocol):
    """Turns the use of several resources into a score."""

    def __call__(self, uses: Sequence[ResourceUse], count: int) -> ScoreArray:
        """Return int64, (count,), 0 to 100."""
        ...


def is_counted(resource: str) -> bool:
    """Whether request and capacity vectors contain a resource of this name."""
    return resource in FIRST_CLASS or is_scalar_resource(resource)


def resource_use(
    snapshot: Snapshot,
    view: NodeView,
    resource: str,
    used_n: Int64Array,
    *,
    request: int,
    weight: int,
) -> ResourceUse:
    """Pair the use and the capacity of a resource over the rows of a view.

    Parameters
    ----------
    snapshot, view, resource, weight
        The resource, its rows, and its weight in the score.
    used_n
        int64, (rows,): use without the pod.
    request
        The pod's request.
    """
    capacity: AmountArray
    used: AmountArray
    if snapshot.exact_float(resource):
        # Floats from the start: NumPy takes twice the time for mixed types. Sums beyond 2**53 are
        # not exact, but such sums are far above any capacity, so the result is the same.
        capacity, used = (
            view.take_rows(snapshot.allocatable_float(resource)),
            used_n.astype(np.float64),
        )
        used += float(request)
    else:
        capacity, used = view.take_rows(snapshot.allocatable(resource)), used_n + request
    if snapshot.everywhere(resource):
        return ResourceUse(weight, capacity, None, used)
    return ResourceUse(weight, np.maximum(capacity, 1), capacity == 0, used)


def use_of_devices(
    capacity_n: Int64Array,
    used_n: Int64Array,
    devices: tuple[Int64Array, Int64Array],
    *,
    request: int,
    weight: int,
) -> ResourceUse:
    """Pair use and capacity of a resource that devices provide on nodes that do not offer it.

    Parameters
    ----------
    capacity_n, used_n
        int64, (rows,): capacity of the nodes, and use without the pod.
    devices
        int64, (rows,), twice: devices that provide the resource, and allocated devices.
    request, weight
        The pod's request, and the weight of the resource in the score.
    """
    there_n, taken_n = devices
    instead = (capacity_n == 0) & (there_n > 0)
    capacity = np.where(instead, there_n, capacity_n)
    used = np.where(instead, taken_n, used_n) + request
    return ResourceUse(weight, np.maximum(capacity, 1), capacity == 0, used)


def percent_of(part_n: AmountArray, use: ResourceUse) -> Int64Array:
    """Return ``part * 100 // capacity``; 0 where the node has none of the resource.

    Parameters
    ----------
    part_n
        (rows,), 0 to the capacity, of the same type; the array is overwritten.
    use
        The resource.
    """
    part_n *= MAX_NODE_SCORE
    if part_n.dtype == np.float64:
        part_n /= use.capacity_n
        share = part_n.astype(np.int64)
    else:
        share = np.floor_divide(part_n, use.capacity_n)
    if use.missing_n is not None:
        share[use.missing_n] = 0
    return share


def least_allocated(uses: Sequence[ResourceUse], count: int) -> ScoreArray:
    """Prefer empty nodes: the mean of free shares; 0 for an overcommitted resource."""
    return _mean(uses, [percent_of(_free(use), use) for use in uses], count)


def share_of_free(free_n: Float64Array, capacity_n: Float64Array) -> Int64Array:
    """Return the free share of a resource that every row has, 0 where it is overcommitted.

    Parameters
    ----------
    free_n
        float64, (rows,): free amount times 100; the array is overwritten.
    capacity_n
        float64, (rows,): allocatable amount, above 0.
    """
    if len(free_n) and free_n.item(free_n.argmin()) < 0:
        np.maximum(free_n, 0.0, out=free_n)
    free_n /= capacity_n
    return free_n.astype(np.int64)


def mean_share(shares: Sequence[tuple[int, Int64Array]], count: int) -> ScoreArray:
    """Return the weighted mean of shares of resources that every row has; int64, (count,)."""
    total: Int64Array | None = None
    for weight, share in shares:
        part = share if weight == 1 else share * weight
        total = part if total is None else np.add(total, part, out=total)
    if total is None:
        return np.zeros(count, np.int64)
    return _divided(total, max(1, sum([weight for weight, _ in shares])))


def most_allocated(uses: Sequence[ResourceUse], count: int) -> ScoreArray:
    """Prefer full nodes: the mean of used shares; 100 for an overcommitted resource."""
    return _mean(uses, [percent_of(_used(use), use) for use in uses], count)


def _share_free(used: int, capacity: int) -> int:
    return max(capacity - used, 0) * MAX_NODE_SCORE // capacity


def _share_used(used: int, capacity: int) -> int:
    return min(used, capacity) * MAX_NODE_SCORE // capacity


SHARES: Final[Mapping[str, Callable[[int, int], int]]] = {
    LEAST_ALLOCATED: _share_free,
    MOST_ALLOCATED: _share_used,
}
"""By strategy, the score of one resource on one node from (used, capacity above 0)."""


class RequestedToCapacityRatio:
    """Score by a piecewise linear function of the used share, 0 to 100.

    Parameters
    ----------
    points
        (utilization, score) with scores 0 to 10, by rising utilization; at least one.
    """

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        self._by_percent = scores_by_percent(points)

    def __call__(self, uses: Sequence[ResourceUse], count: int) -> ScoreArray:
        """Return the weighted mean over resources that score above 0, rounded half up."""
        total = np.zeros(count, np.int64)
        weight = np.zeros(count, np.int64)
        for use in uses:
            score = self._by_percent[percent_of(_used(use), use)]
            if use.missing_n is not None:
                score[use.missing_n] = 0
            total += score * use.weight
            weight += (score > 0) * np.int64(use.weight)
        # (2t + w) // 2w is t / w rounded half up, for non-negative integers.
        np.maximum(weight, 1, out=weight)
        np.floor_divide(2 * total + weight, 2 * weight, out=total)
        return total


def _free(use: ResourceUse) -> AmountArray:
    free_n = np.subtract(use.capacity_n, use.used_n, out=use.used_n)
    # Overcommitted nodes are rare, and finding the minimum costs a quarter of clipping all.
    if len(free_n) and free_n.item(free_n.argmin()) < 0:
        np.maximum(free_n, 0, out=free_n)
    return free_n


def _used(use: ResourceUse) -> AmountArray:
    return np.minimum(use.used_n, use.capacity_n, out=use.used_n)


def _mean(uses: Sequence[ResourceUse], shares: Sequence[Int64Array], count: int) -> ScoreArray:
    """Combine shares by weight; on each row, leave out the resources that the row lacks."""
    if all(use.missing_n is None for use in uses):
        return mean_share(
            [(use.weight, share) for use, share in zip(uses, shares, strict=True)], count
        )
    total = np.zeros(count, np.int64)
    for use, share in zip(uses, shares, strict=True):
        total += share * use.weight
    weight = np.zeros(count, np.int64)
    for use in uses:
        weight += use.weight if use.missing_n is None else ~use.missing_n * np.int64(use.weight)
    total //= np.maximum(weight, 1)
    return total


def _divided(total_n: Int64Array, by: int) -> Int64Array:
    """Divide non-negative sums in place; a power of two, such as 2, is the usual case."""
    if by & (by - 1) == 0:
        total_n >>= by.bit_length() - 1
    else:
        total_n //= by
    return total_n

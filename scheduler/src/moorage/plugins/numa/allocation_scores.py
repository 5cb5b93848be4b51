"""Scores by what is left on the NUMA nodes: LeastAllocated, MostAllocated, BalancedAllocation.

Each NUMA node has a score of its own, 0 where the request does not fit. A node has the lowest of
these but 0: which NUMA node a pod gets is the kubelet's choice.

Rules mirrored: scheduler-plugins v0.35 ``pkg/noderesourcetopology`` (score.go,
least_allocated.go, most_allocated.go, balanced_allocation.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from moorage.api.names import CPU
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.plugins.numa.requests import PodRequests, Request
from moorage.plugins.numa.zone_columns import ABSENT, IntArray, ZoneColumns
from moorage.snapshot.view import NodeView

Weights = Mapping[str, int]
ZoneScorer = Callable[[Request, ZoneColumns, NodeView, Weights], IntArray]
"""Returns int64, (zones, rows): the score of each NUMA node."""

_MILLI_IN_CORE: Final = 1000


def least_allocated(
    request: Request, columns: ZoneColumns, view: NodeView, weights: Weights
) -> IntArray:
    """Score the share of each resource that the pod leaves; the weighted mean."""
    return _weighted(request, columns, view, weights, free=True)


def most_allocated(
    request: Request, columns: ZoneColumns, view: NodeView, weights: Weights
) -> IntArray:
    """Score the share of each resource that the pod takes; the weighted mean."""
    return _weighted(request, columns, view, weights, free=False)


def balanced_allocation(
    request: Request, columns: ZoneColumns, view: NodeView, weights: Weights
) -> IntArray:
    """Score how alike the shares are that the pod takes: 100 less their variance."""
    del weights
    if not request:
        return np.zeros(columns.present(view).shape, np.int64)
    shares = []
    for name, amount in request.items():
        capacity_zn = _whole_units(name, _left(name, columns, view))
        wanted = float(_whole_units(name, np.array(amount)))
        # A resource that is not there counts as wholly used.
        share_zn = np.divide(
            wanted, capacity_zn, out=np.ones(capacity_zn.shape), where=capacity_zn > 0
        )
        shares.append(share_zn)
    share_rzn = np.stack(shares)
    variance_zn = (
        share_rzn.var(axis=0, ddof=1) if len(shares) > 1 else np.zeros(share_rzn.shape[1:])
    )
    score_zn = ((1 - variance_zn) * MAX_NODE_SCORE).astype(np.int64)
    return np.where((share_rzn > 1).any(axis=0), 0, score_zn)


def allocation_scores(
    scorer: ZoneScorer,
    requests: PodRequests,
    columns: ZoneColumns,
    view: NodeView,
    *,
    weights: Weights,
) -> ScoreArray:
    """Return int64, (rows,): the scores of the pod, or the mean of its containers, by scope."""
    pod_n = _lowest(scorer(requests.whole, columns, view, weights), columns, view)
    whole_n = view.take_rows(columns.whole_n)
    if whole_n.all():
        return pod_n
    containers = (*requests.init, *requests.regular)
    each_cn = [_lowest(scorer(each, columns, view, weights), columns, view) for each in containers]
    if not each_cn:
        return np.where(whole_n, pod_n, 0)
    return np.where(whole_n, pod_n, np.sum(each_cn, axis=0) // len(each_cn))


def _weighted(
    request: Request, columns: ZoneColumns, view: NodeView, weights: Weights, *, free: bool
) -> IntArray:
    total_zn = np.zeros(columns.present(view).shape, np.int64)
    weight_sum = 0
    for name, amount in request.items():
        left_zn = _left(name, columns, view)
        capacity_zn = np.maximum(_whole_units(name, left_zn), 1)
        wanted = _whole_units(name, np.array(amount))
        part_zn = (capacity_zn - wanted if free else wanted) * MAX_NODE_SCORE // capacity_zn
        weight = max(weights.get(name, 1), 1)
        total_zn += weight * np.where((left_zn > 0) & (left_zn >= amount), part_zn, 0)
        weight_sum += weight
    return total_zn // weight_sum if weight_sum else total_zn


def _left(name: str, columns: ZoneColumns, view: NodeView) -> IntArray:
    """Return int64, (zones, rows): what is left; 0 where not reported."""
    available_zn = columns.available(name, view)
    if available_zn is None:
        return np.zeros(columns.present(view).shape, np.int64)
    return np.where(available_zn == ABSENT, 0, available_zn)


def _whole_units(name: str, amount: IntArray) -> IntArray:
    """Return whole cores for millicores, rounded up; other amounts as they are."""
    return -(-amount // _MILLI_IN_CORE) if name == CPU else amount


def _lowest(score_zn: IntArray, columns: ZoneColumns, view: NodeView) -> IntArray:
    """Return int64, (rows,): the lowest score but 0; 0 where there is none."""
    counts_zn = columns.present(view) & (score_zn > 0)
    lowest_n: IntArray = np.where(counts_zn, score_zn, MAX_NODE_SCORE + 1).min(
        axis=0, initial=MAX_NODE_SCORE + 1
    )
    return np.where(lowest_n > MAX_NODE_SCORE, 0, lowest_n)

"""Whether one NUMA node has what a container, or the pod, requests.

The kubelet takes the NUMA node with the lowest number that has everything. What a container takes
is missing for the containers after it. Init containers run one after another and before the others,
so nothing is taken for them.

Rules mirrored: scheduler-plugins v0.35 ``pkg/noderesourcetopology/filter.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from moorage.api.names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from moorage.plugins.numa.requests import (
    PodRequests,
    Request,
    is_host_level,
    is_numa_affine,
)
from moorage.plugins.numa.zone_columns import ABSENT, BoolArray, IntArray, ZoneColumns
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_EVERY_NODE = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})
"""Resources that every node counts as offered, though it be 0."""


class Alignment:
    """The NUMA nodes of a view while containers take their part.

    Parameters
    ----------
    snapshot
        The nodes, with what they offer.
    columns
        Their zones.
    view
        The rows.
    guaranteed
        Whether cpu, memory and huge pages of the pod are its own. Of other pods the kubelet does
        not align these.
    """

    def __init__(
        self, snapshot: Snapshot, columns: ZoneColumns, view: NodeView, *, guaranteed: bool
    ) -> None:
        self._snapshot = snapshot
        self._columns = columns
        self._view = view
        self._guaranteed = guaranteed
        self._taken: dict[str, IntArray] = {}

    def unaligned(self, requests: Iterable[Request], *, takes: bool) -> BoolArray:
        """Return bool, (rows,): whether a container finds no NUMA node.

        Parameters
        ----------
        requests
            The requests of the containers, in their order.
        takes
            Whether a container's part is missing for the next.
        """
        failed_n = np.zeros(len(self._view), np.bool_)
        for request in requests:
            fits_zn, failing_n = self._fitting(request)
            failed_n |= failing_n
            if takes:
                self._take(request, fits_zn)
        return failed_n

    def _fitting(self, request: Request) -> tuple[BoolArray, BoolArray]:
        """Return the NUMA nodes that have a request, and the rows where none has it."""
        fits_zn = self._columns.present(self._view).copy()
        rows = len(self._view)
        bound_n, failed_n = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
        for name, amount in request.items():
            if amount == 0:
                continue
            if name not in _EVERY_NODE:
                failed_n |= self._view.take_rows(self._snapshot.allocatable(name)) == 0
            available_zn = self._available(name)
            if available_zn is None:
                if not is_host_level(name):
                    failed_n[:] = True
                continue
            has_zn = self._has(name, amount, available_zn)
            if is_host_level(name):
                reported_n = (available_zn != ABSENT).any(axis=0)
                bound_n |= reported_n
                has_zn = has_zn | ~reported_n
            else:
                bound_n[:] = True
            fits_zn &= has_zn
        return fits_zn, failed_n | (bound_n & ~fits_zn.any(axis=0))

    def _has(self, name: str, amount: int, available_zn: IntArray) -> BoolArray:
        if not self._guaranteed and is_numa_affine(name):
            return np.asarray(available_zn != ABSENT)
        return np.asarray(available_zn >= amount)

    def _take(self, request: Request, fits_zn: BoolArray) -> None:
        if not len(fits_zn):
            return
        columns = np.arange(fits_zn.shape[1])
        lowest_n = fits_zn.argmax(axis=0)
        fitting_n = fits_zn[lowest_n, columns]
        for name, amount in request.items():
            available_zn = self._available(name)
            if available_zn is None or (not self._guaranteed and is_numa_affine(name)):
                continue
            if name not in self._taken:
                available_zn = self._taken[name] = available_zn.copy()
            from_n = fitting_n & (available_zn[lowest_n, columns] != ABSENT)
            available_zn[lowest_n[from_n], columns[from_n]] -= amount

    def _available(self, name: str) -> IntArray | None:
        taken_zn = self._taken.get(name)
        return self._columns.available(name, self._view) if taken_zn is None else taken_zn


def unaligned_pods(
    requests: PodRequests, snapshot: Snapshot, columns: ZoneColumns, view: NodeView
) -> BoolArray:
    """Return bool, (rows,): whether no NUMA node has what the pod as a whole requests."""
    alignment = Alignment(snapshot, columns, view, guaranteed=requests.guaranteed)
    return alignment.unaligned([requests.whole], takes=False)


def unaligned_containers(
    requests: PodRequests, snapshot: Snapshot, columns: ZoneColumns, view: NodeView
) -> tuple[BoolArray, BoolArray]:
    """Return two of bool, (rows,): whether an init container, or another, finds no NUMA node."""
    alignment = Alignment(snapshot, columns, view, guaranteed=requests.guaranteed)
    init_n = alignment.unaligned(requests.init, takes=False)
    return init_n, alignment.unaligned(requests.regular, takes=True)

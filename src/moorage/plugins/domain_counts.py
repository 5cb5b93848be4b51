"""Pods by topology domain: sums of a count column over the values of a node label.

Between count columns of the snapshot and plugins that compare domains. A table by domain has one
entry more than the label has values, always 0: the one a node without the label reads.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.view import NodeView

DomainArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Domains(msgspec.Struct, frozen=True):
    """Numbers by the domains of one topology key.

    Parameters
    ----------
    column
        The node label.
    by_domain
        int64, (values of the label + 1,): by value id; the last is 0. Not to be changed.
    """

    column: LabelColumn
    by_domain: DomainArray

    def rows_above_zero(self, view: NodeView) -> BoolArray:
        """Return bool, (rows of the view,): whether the row's domain has a positive number."""
        above: BoolArray = (self.by_domain > 0)[view.take(self.column.ids)]
        return above

    def rows(self, view: NodeView) -> DomainArray:
        """Return int64, (rows of the view,): the number of the row's domain, 0 without one."""
        return self.by_domain[view.take(self.column.ids)]


ByKey = Mapping[str, Domains]
"""Domains by topology key."""


def no_counts(column: LabelColumn) -> DomainArray:
    """Return a table of zeros, (values of the label + 1,)."""
    return np.zeros(column.size + 1, np.int64)


def domain_sums(column: LabelColumn, count_n: NDArray[np.int64]) -> DomainArray:
    """Sum a column of numbers over the domains of a label.

    Parameters
    ----------
    column
        The label, n rows.
    count_n
        int64, (n,), each well below 2**53, so that the sums are exact.

    Returns
    -------
    DomainArray
        int64, (values of the label + 1,), new.
    """
    total_d = no_counts(column)
    rows = count_n.nonzero()[0]
    if len(rows):
        # Value id -1, label absent, lands in the last entry.
        ids = column.ids[rows]
        sums = np.bincount(ids + 1, weights=count_n[rows])
        total_d[: len(sums) - 1] = sums[1:]
    return total_d


def moved(counts: ByKey, column: LabelColumn, key: str, *, row: int, step: int) -> ByKey:
    """Return the counts with one row's domain of a key changed; the same where it has none."""
    domain = int(column.ids[row])
    if domain < 0:
        return counts
    known = counts.get(key)
    by_domain = no_counts(column) if known is None else known.by_domain.copy()
    by_domain[domain] += step
    return {**counts, key: Domains(column, by_domain)}

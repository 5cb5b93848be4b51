"""Pods by topology domain: sums of a count column over the values of a node label.

Plugins compare domains by these sums. A table by domain has one entry more than the label has
values. The last entry is always 0 and belongs to nodes without the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.plugins.answers import NodeAnswers
from moorage.plugins.running_sums import Places, RunningSums
from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_KEYS_KEPT: Final = 256  # topology keys; a guess, far above what clusters use

DomainArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Domains(msgspec.Struct, frozen=True):
    """Numbers by the domains of one topology key.

    Parameters
    ----------
    column
        The node label.
    by_domain
        int64, (values of the label + 1,): by value id; the last is 0. Callers must not change it.
    """

    column: LabelColumn
    by_domain: DomainArray

    def rows_above_zero(self, view: NodeView) -> BoolArray:
        """Return bool, (rows of the view,): whether the row's domain has a positive number."""
        above: BoolArray = (self.by_domain > 0)[view.take_rows(self.column.ids)]
        return above

    def rows_without(self, view: NodeView) -> BoolArray:
        """Return bool, (rows of the view,): whether the row's domain has no positive number."""
        none: BoolArray = (self.by_domain <= 0)[view.take_rows(self.column.ids)]
        return none

    def domain_of_rows(self, view: NodeView) -> DomainArray:
        """Return int64, (rows of the view,): the number of the row's domain, 0 without one."""
        return self.by_domain[view.take_rows(self.column.ids)]


ByKey = Mapping[str, Domains]
"""Domains by topology key."""


def has_any(by_domain: DomainArray) -> bool:
    """Whether a table has a positive number; by position, as NumPy's reductions take longer."""
    return by_domain.item(by_domain.argmax()) > 0


def no_counts(column: LabelColumn) -> DomainArray:
    """Return a table of zeros, (values of the label + 1,)."""
    return np.zeros(column.size + 1, np.int64)


class DomainSums:
    """Count columns summed over the domains of labels, kept up to date by the rows that change.

    Parameters
    ----------
    snapshot
        The cluster.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sums = RunningSums(snapshot)
        self._places: NodeAnswers[str, Places] = NodeAnswers(snapshot, _KEYS_KEPT)

    def domains_of(self, key: str, count: CountKey) -> Domains:
        """Return the pods that a count column counts, by the domains of a topology key."""
        column = self._snapshot.label_column(key)
        places = self._places.find(key)
        if places is None:
            places = self._places.keep(key, Places(column.ids, column.size, column.ids >= 0))
        return Domains(column, self._sums.sums_of(places, count))


class Moved:
    """Counts by topology key while pods are added to rows or removed; the first ones stay.

    Attributes
    ----------
    counts
        The counts now.
    changed
        Whether any count was changed.
    """

    __slots__ = ("_own", "counts")

    def __init__(self, counts: ByKey) -> None:
        self.counts = counts
        self._own: dict[str, DomainArray] = {}

    @property
    def changed(self) -> bool:
        """Whether any count was changed."""
        return bool(self._own)

    def move(self, key: str, column: LabelColumn, row: int, step: int) -> None:
        """Change the number of a row's domain; a row without a domain changes nothing."""
        domain = int(column.ids[row])
        if domain < 0:
            return
        by_domain = self._own.get(key)
        if by_domain is None:
            known = self.counts.get(key)
            by_domain = no_counts(column) if known is None else known.by_domain.copy()
            self._own[key] = by_domain
            self.counts = {**self.counts, key: Domains(column, by_domain)}
        by_domain[domain] += step

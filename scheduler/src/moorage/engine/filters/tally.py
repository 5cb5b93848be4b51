"""Numbers of rows by filter result, from which a diagnosis is made.

The numbers follow single rows: from one preemptor to the next a few among thousands change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.framework.diagnosis import Diagnosis, count_reasons
from moorage.framework.points import Plugin, PreFilterOutcome
from moorage.framework.status import Code, CodeArray, ReasonArray, ReasonTable

PASSED = 255
"""Plugin index of a row that no plugin failed."""

RowResult = tuple[int, int, int]
"""Index of the first failing plugin, its `Code`, the id of its reasons."""


class Tally:
    """Numbers of rows by plugin, by code and by reason; rows that passed count as well.

    Attributes
    ----------
    diagnosed
        The last diagnosis made of these numbers, with the outcome of PreFilter it belongs to.
    """

    __slots__ = ("_pending", "_plugins", "_reasons", "diagnosed")

    def __init__(self, plugin_n: CodeArray, code_n: CodeArray, reason_n: ReasonArray) -> None:
        self._plugins = _counts_by_id(plugin_n)
        self._reasons = _counts_by_id(reason_n)
        self._pending = _counts_by_id(plugin_n[code_n == Code.PENDING])
        self.diagnosed: tuple[PreFilterOutcome, Diagnosis] | None = None

    def move(self, before: RowResult, after: RowResult) -> None:
        """Follow one row from a filter result to another."""
        self.diagnosed = None
        for (plugin, code, reason), step in ((before, -1), (after, +1)):
            self._plugins[plugin] = self._plugins.get(plugin, 0) + step
            self._reasons[reason] = self._reasons.get(reason, 0) + step
            if code == Code.PENDING:
                self._pending[plugin] = self._pending.get(plugin, 0) + step

    @property
    def passed(self) -> int:
        """Number of rows that passed."""
        return self._plugins.get(PASSED, 0)

    def rejectors(self, filters: Sequence[Plugin]) -> frozenset[str]:
        """Return the plugins that rejected any row."""
        counts = self._plugins
        return frozenset(plugin.name for i, plugin in enumerate(filters) if counts.get(i))

    def pending(self, filters: Sequence[Plugin]) -> frozenset[str]:
        """Return the plugins that answered Pending for any row."""
        return frozenset(filters[i].name for i, count in self._pending.items() if count)

    def reason_counts(self, reasons: ReasonTable) -> dict[str, int]:
        """Return how many rows fail for each single reason."""
        counts = sorted(self._reasons.items())
        return count_reasons((reasons.reasons(i), count) for i, count in counts if i and count)


def _counts_by_id(ids_n: CodeArray | ReasonArray) -> dict[int, int]:
    counts = np.bincount(ids_n)
    return {int(i): int(counts[i]) for i in np.flatnonzero(counts)}

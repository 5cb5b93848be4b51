"""Scalar filters: Filter plugins asked about single rows, without arrays.

The most frequent case of every cache is one node that got a pod since the last replica. On one row
NumPy's overhead is many times the computation. So plugins may offer the same check for a single row
(capability `filter_row`).
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.engine.attempt import Attempt
from moorage.engine.filters.filter_results import PASSES
from moorage.engine.filters.tally import RowResult
from moorage.framework.forms import FilterForms
from moorage.snapshot.shifted import NOTHING_MORE


class ScalarFilters:
    """Asks some Filter plugins about single rows.

    Parameters
    ----------
    filters
        The plugins, in order.
    """

    __slots__ = ("_filters", "_unskipped")

    def __init__(self, filters: Sequence[FilterForms]) -> None:
        self._filters = tuple(filters)
        self._unskipped: dict[frozenset[str], tuple[FilterForms, ...]] = {}

    def passes(self, attempt: Attempt, row: int) -> bool:
        """Whether every plugin passes a row; False is always a safe answer.

        A plugin that raises is asked again with arrays, where its failure is contained.
        """
        state, pod, skipped = attempt.state, attempt.pod, attempt.state.skip_filter
        try:
            for forms in self._unskipped.get(skipped) or self._without_skipped(skipped):
                judge = forms.judge_row
                said = None if judge is None else judge(state, pod, row, NOTHING_MORE)
                if said is None or said[0]:
                    return False
        except Exception:
            return False
        return True

    def row_result(self, attempt: Attempt, row: int) -> RowResult | None:
        """Return the result of the plugins on one row; None where a plugin did not answer."""
        state, pod, skipped = attempt.state, attempt.pod, attempt.state.skip_filter
        try:
            for forms in self._unskipped.get(skipped) or self._without_skipped(skipped):
                judge = forms.judge_row
                said = None if judge is None else judge(state, pod, row, NOTHING_MORE)
                if said is None:
                    found = _by_arrays(forms, attempt, row)
                    if found is not PASSES:
                        return found
                elif said[0]:
                    return forms.index, *said
        except Exception:  # as in `passes`
            return None
        return PASSES

    def _without_skipped(self, skipped: frozenset[str]) -> tuple[FilterForms, ...]:
        """Return the plugins that an attempt does not skip."""
        found = tuple(each for each in self._filters if each.name not in skipped)
        self._unskipped[skipped] = found
        return found


def _by_arrays(forms: FilterForms, attempt: Attempt, row: int) -> RowResult | None:
    """Ask the vector form of one plugin about one row."""
    answer = forms.plugin.filter(attempt.state, attempt.pod, attempt.snapshot.rows([row]))
    if answer is None or (len(answer) == 1 and not answer.code_n[0]):
        return PASSES
    if len(answer) != 1 or answer.is_broken:
        return None
    return forms.index, int(answer.code_n[0]), int(answer.reason_n[0])

"""The filter cache: results of the reusable Filter plugins on every row, for pods of one shape.

The results of Filters that read the node alone are shared with other shapes, and do not change with
the pods of a row. Answers of plugins that are asked afresh join the
kept filter result in every attempt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import ask_beside, ask_filters, raise_first_error
from moorage.engine.filters.filter_results import PASSES, FilterResults
from moorage.engine.filters.tally import PASSED
from moorage.engine.reuse.scalar_filters import ScalarFilters
from moorage.engine.reuse.shared import SharedAnswers
from moorage.framework.caches import Changes
from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile


class FilterPlugins:
    """The Filter plugins of a profile, by index, parted by what their answers depend on.

    Parameters
    ----------
    profile
        The profile.
    """

    def __init__(self, profile: Profile) -> None:
        forms = profile.filter_forms
        self.by_pods = [each.index for each in forms if each.reused and not each.by_node]
        self.afresh = [each for each in forms if not each.reused]
        self.scalar = ScalarFilters([forms[index] for index in self.by_pods])
        self._afresh_names = frozenset(each.name for each in self.afresh)

    def asks_afresh(self, state: CycleState) -> bool:
        """Whether an attempt has to ask any Filter whose answers are not kept."""
        return not self._afresh_names <= state.skip_filter


class FilterCache:
    """The filter result on every row for one shape.

    Parameters
    ----------
    plugins
        The Filter plugins of the profile.
    shared
        The answers that the shape shares with others.
    attempt
        A pod of the shape, with the state that the shape's plugins write; for changed rows.

    Attributes
    ----------
    filtered
        Result of all reusable Filters on every row; None until the Filters were asked. Not to be
        changed by others.
    by_node
        The shared result of the Filters that read the node alone; None as `filtered`.
    rows
        int64: the rows that `filtered` passes, ascending; None until somebody asked for them.
    """

    __slots__ = ("_attempt", "_by_pods", "_plugins", "_shared", "by_node", "filtered", "rows")

    def __init__(self, plugins: FilterPlugins, shared: SharedAnswers, attempt: Attempt) -> None:
        self._plugins = plugins
        self._shared = shared
        self._attempt = attempt
        self.forget()

    def forget(self) -> None:
        """Forget all results."""
        self.filtered: FilterResults | None = None
        self.by_node: FilterResults | None = None
        self._by_pods: FilterResults | None = None
        self.rows: NDArray[np.int64] | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, bytes."""
        passes = [each for each in (self._by_pods, self.filtered) if each is not None]
        rows = 0 if self.rows is None else self.rows.nbytes
        return sum([each.nbytes for each in passes]) + rows

    # -- answers -------------------------------------------------------------------------------

    def ask(self, attempt: Attempt) -> FilterResults:
        """Ask the reusable Filters about every row, and keep the result unless one broke."""
        plugins, view = self._plugins, attempt.snapshot.all()
        by_node = self._shared.filtered(attempt.state)
        by_pods = ask_filters(attempt, view, only=plugins.by_pods)
        filtered = by_node.copy()
        filtered.merge(by_pods)
        if not filtered.is_broken:  # an error may be gone the next time
            self.by_node, self._by_pods, self.filtered = by_node, by_pods, filtered
            self.rows = None
        return filtered

    def complete(self, attempt: Attempt, filtered: FilterResults) -> FilterResults:
        """Return a filter result of the reusable Filters joined with the Filters asked afresh.

        Where these fail no row, it is the same filter result, not a copy.

        Raises
        ------
        CycleError
            A plugin broke for a row that no earlier plugin failed.
        """
        plugins, state = self._plugins, attempt.state
        if plugins.asks_afresh(state):
            reusable, view = filtered, attempt.snapshot.all()
            for forms in plugins.afresh:
                if forms.name not in state.skip_filter:
                    answer = ask_beside(filtered, attempt, forms, view)
                    if answer is not None:
                        if filtered is reusable:
                            filtered = reusable.copy()
                        filtered.record_answer(forms.index, answer)
        if filtered is not self.filtered:
            raise_first_error(attempt.profile, filtered)
        return filtered

    def is_whole(self, filtered: FilterResults, state: CycleState) -> bool:
        """Whether a filter result is the kept one, and no Filter had to be asked besides."""
        return filtered is self.filtered and not self._plugins.asks_afresh(state)

    def on_row(self, state: CycleState, row: int) -> FilterResults | None:
        """Return a copy of the filter result on one row; None where a Filter must be asked."""
        if self.filtered is None or self._plugins.asks_afresh(state):
            return None
        return self.filtered.at_rows(np.array([row]))

    def passes(self, state: CycleState, row: int) -> bool | None:
        """Whether one row passed when the cache last followed changes; None where unknown."""
        if self.filtered is None or self._plugins.asks_afresh(state):
            return None
        return self.filtered.plugin_n.item(row) == PASSED

    def passes_now(self, row: int) -> bool:
        """Whether one row whose pods changed passes now; False is always a safe answer.

        Parameters
        ----------
        row
            The row. Its node is as it was when the cache followed changes last.
        """
        if self.by_node is None or self.by_node.plugin_n.item(row) != PASSED:
            return False
        return self._plugins.scalar.passes(self._attempt, row)

    def feasible(self, filtered: FilterResults) -> NDArray[np.int64]:
        """Return int64: the rows that a filter result on every row passes, ascending."""
        if filtered is not self.filtered:
            return filtered.passing
        if self.rows is None:
            self.rows = filtered.passing
        return self.rows

    # -- changes -------------------------------------------------------------------------------

    def follow(self, changes: Changes) -> None:
        """Judge the changed rows again."""
        if self.filtered is None:
            return
        if changes.are_few and self._follow_in_scalars(changes.rows):
            return
        assert self._by_pods is not None
        at = np.array(changes.rows, np.int64)
        self.by_node = self._shared.filtered(self._attempt.state)
        view = self._attempt.snapshot.rows(at)
        self._by_pods.put_rows(at, ask_filters(self._attempt, view, only=self._plugins.by_pods))
        merged = self.by_node.at_rows(at)
        merged.merge(self._by_pods.at_rows(at))
        if (merged.passed != (self.filtered.plugin_n[at] == PASSED)).any():
            self.rows = None
        self.filtered.put_rows(at, merged)
        if merged.is_broken:
            self.filtered = self.rows = None

    def _follow_in_scalars(self, rows: Sequence[int]) -> bool:
        """Judge a few rows whose nodes did not change; False when that takes arrays.

        In that case all changed rows are judged again in arrays.
        """
        attempt, filtered = self._attempt, self.filtered
        by_node, by_pods = self.by_node, self._by_pods
        assert filtered is not None
        assert by_node is not None
        assert by_pods is not None
        judge = self._plugins.scalar.row_result
        for row in rows:
            passed = filtered.plugin_n.item(row) == PASSED
            result = judge(attempt, row)
            if result is None:
                return False
            if passed and result is PASSES:
                continue
            by_pods.put_row(row, result)
            first = min(by_node.result_at(row), result)  # the first failing plugin decides
            filtered.put_row(row, first)
            if passed or first is PASSES:
                self.rows = None
        return True

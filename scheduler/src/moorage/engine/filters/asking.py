"""Asks Filter plugins about the rows of a view; the first failing plugin decides a row.

Rules: scheduling spec, cycle section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.filter_results import FilterResults
from moorage.framework.containment import contained
from moorage.framework.forms import FilterForms
from moorage.framework.meter import FILTER, NOT_TIMED
from moorage.framework.profile import Profile
from moorage.framework.status import SUCCESS_CODE, Code, FilterAnswer, Status, error
from moorage.snapshot.view import NodeView


def run_filters(attempt: Attempt, view: NodeView) -> FilterResults:
    """Ask the Filter plugins that PreFilter did not skip about a view.

    Raises
    ------
    CycleError
        A plugin answered Error for a row that no earlier plugin failed. The first such row in
        index order decides the text.
    """
    filtered = ask_filters(attempt, view, only=range(len(attempt.profile.filters)))
    raise_first_error(attempt.profile, filtered)
    return filtered


def ask_filters(attempt: Attempt, view: NodeView, *, only: Iterable[int]) -> FilterResults:
    """Ask some Filter plugins, by index, about a view; rows that broke stay in the result."""
    filtered, forms, skipped = (
        FilterResults(len(view)),
        attempt.profile.filter_forms,
        attempt.state.skip_filter,
    )
    for index in only:
        if forms[index].name not in skipped:
            ask_into(filtered, attempt, forms[index], view)
    return filtered


def ask_into(filtered: FilterResults, attempt: Attempt, forms: FilterForms, view: NodeView) -> None:
    """Ask one plugin about a view and record its answer in the filter result on that view."""
    answer = ask_beside(filtered, attempt, forms, view)
    if answer is not None:
        filtered.record_answer(forms.index, answer)


def ask_beside(
    filtered: FilterResults, attempt: Attempt, forms: FilterForms, view: NodeView
) -> FilterAnswer | None:
    """Ask one plugin about a view, next to the filter result of others; None where all rows pass.

    A plugin that judges row by row is asked only about rows that no earlier plugin failed: the
    other rows have their filter result, and each row costs a call.
    """
    if forms.row_by_row:
        open_rows = np.flatnonzero(filtered.plugin_n > forms.index)
        if len(open_rows) < len(view):
            if not len(open_rows):
                return None
            part = NodeView(view.size_of_all, view.row_numbers()[open_rows])
            answer = ask_filter(attempt, forms, part)
            return None if answer is None else _spread(answer, open_rows, len(view))
    return ask_filter(attempt, forms, view)


def _spread(answer: FilterAnswer, at: NDArray[np.int64], n: int) -> FilterAnswer:
    code_n, reason_n = np.zeros(n, np.uint8), np.zeros(n, np.int32)
    code_n[at], reason_n[at] = answer.code_n, answer.reason_n
    return FilterAnswer(code_n, reason_n)


def ask_filter(attempt: Attempt, forms: FilterForms, view: NodeView) -> FilterAnswer | None:
    """Ask one plugin about a view; a plugin that raises answers Error for every row."""
    if attempt.state.meter is None:
        return _answer(attempt, forms, view)
    return ask_contained(attempt, forms, view)


def ask_contained(
    attempt: Attempt,
    forms: FilterForms,
    view: NodeView,
    ask: Callable[[], FilterAnswer | None] | None = None,
) -> FilterAnswer | None:
    """Ask one plugin in another form about a view, as `ask_filter` does; its Filter if None."""
    state = attempt.state
    began_ns = state.begins()
    answer = _answer(attempt, forms, view, ask)
    code = SUCCESS_CODE
    if began_ns != NOT_TIMED and answer is not None and answer.is_broken:
        code = Code.ERROR  # read only where the call is timed
    state.ended(forms.name, FILTER, code, since_ns=began_ns)
    return answer


def _answer(
    attempt: Attempt,
    forms: FilterForms,
    view: NodeView,
    ask: Callable[[], FilterAnswer | None] | None = None,
) -> FilterAnswer | None:
    try:
        answer = ask() if ask else forms.plugin.filter(attempt.state, attempt.pod, view)
    except Exception as problem:
        status = contained(forms.name, "Filter", problem)
        return _broken_everywhere(attempt, view, *status.reasons)
    if answer is not None and len(answer) != len(view):
        text = f"plugin answered for {len(answer)} rows instead of {len(view)}"
        return _broken_everywhere(attempt, view, text)
    return answer


def _broken_everywhere(attempt: Attempt, view: NodeView, *reasons: str) -> FilterAnswer:
    n, reason = len(view), attempt.profile.handle.reasons.intern(*reasons)
    return FilterAnswer(np.full(n, Code.ERROR, np.uint8), np.full(n, reason, np.int32))


def raise_first_error(profile: Profile, filtered: FilterResults) -> None:
    """Raise `CycleError` for the first row whose filter result is neither success nor rejection."""
    if filtered.is_broken:
        broken = np.flatnonzero(filtered.broken)
        raise CycleError(broken_filter(filtered.status(profile, int(broken[0]))))


def broken_filter(status: Status) -> Status:
    """Return the Error of an attempt in which a Filter's answer is no Success and no rejection."""
    text = f'running "{status.plugin}" filter plugin: {status.message}'
    return error(text).by(status.plugin)

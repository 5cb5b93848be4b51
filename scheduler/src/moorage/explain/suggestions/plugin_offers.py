"""Suggestions of plugins: changes of the pod that ask less of the plugin that rejects it."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.explain.answer import Suggestion
from moorage.explain.suggestions.ranked import PART, REQUEST, REQUEST_SHARE, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.framework.insight.relaxations import Ladder, Relaxation


def offered(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the smallest change of each ladder of the rejecting plugins that lets the pod fit."""
    attempt = trying.inquiry.attempt
    for plugin in trying.inquiry.rejects:
        declared = attempt.profile.capabilities.get(plugin)
        if declared is None or declared.relaxations is None:
            continue
        for ladder in declared.relaxations(attempt.pod):
            found = _first_that_fits(trying, ladder)
            if found is not None:
                yield found


def _first_that_fits(trying: Trying, ladder: Ladder) -> RankedSuggestion | None:
    """Return the smallest change that lets the pod fit, by halving; None if no change does."""
    low, high = 0, len(ladder) - 1
    suggestion = _tried(trying, ladder[high]) if ladder else None
    if suggestion is None:
        return None
    while low < high:
        middle = (low + high) // 2
        smaller = _tried(trying, ladder[middle])
        if smaller is None:
            low = middle + 1
        else:
            suggestion, high = smaller, middle
    return suggestion


def _tried(trying: Trying, change: Relaxation) -> RankedSuggestion | None:
    rows = trying.with_patch(change.patch)
    if not len(rows):
        return None
    suggestion = Suggestion(
        kind=change.kind,
        text=change.text,
        nodes=len(rows),
        node=trying.first_name(rows),
        patch=change.patch,
    )
    size = PART if change.given_up is None else REQUEST + REQUEST_SHARE * change.given_up
    return RankedSuggestion(size, suggestion)

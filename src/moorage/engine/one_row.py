"""Brings what is known about a shape up to date with a few rows whose pods changed, in scalars.

The everyday case of a `ShapeCache`: since the last replica one node got a pod. On one row NumPy
costs many times what it computes, so plugins may offer the same question for a single row.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.engine.filter_pass import PASSED, PASSES, RowVerdict
from moorage.engine.shape_entry import Entry, Scores
from moorage.framework.capabilities import Reads
from moorage.framework.forms import FilterForms
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import NOTHING_MORE

ROWS_MOST = 8
"""From more rows on one pass over them in arrays costs less; a guess."""


class OneRow:
    """Asks the plugins of a profile about single rows.

    Parameters
    ----------
    profile
        The plugins.
    by_pods
        Indexes of the Filter plugins whose reusable answers depend on a row's pods.
    """

    def __init__(self, profile: Profile, by_pods: Sequence[int]) -> None:
        self._snapshot = profile.handle.snapshot
        scores = [each for each in profile.score_forms if each.reused and each.reads != Reads.NODE]
        self._filters = tuple(profile.filter_forms[index] for index in by_pods)
        self._unskipped: dict[frozenset[str], tuple[FilterForms, ...]] = {}
        self._scores = [
            (each.name, each.score_row, each.weight)
            for each in scores
            if each.score_row is not None and each.normalizer is None
        ]
        known = {name for name, _, _ in self._scores}
        self._vector_scores = [each.name for each in scores if each.name not in known]

    def follow(self, entry: Entry, pod: PodInfo, rows: Sequence[int]) -> bool:
        """Bring an entry up to date; False when that takes arrays, and nothing is lost then.

        Parameters
        ----------
        entry, pod
            What is known, and a pod of that shape.
        rows
            Rows whose pods changed, their nodes did not.
        """
        scores = entry.scores
        if len(rows) > ROWS_MOST or (scores is not None and self._needs_arrays(scores)):
            return False
        try:
            for row in rows:
                if not self._judged(entry, pod, row):
                    return False
                if scores is not None and not self._rescored(entry, scores, pod, row):
                    return False
        except Exception:  # whoever raised is asked again with arrays, and contained there
            return False
        return True

    def passes(self, entry: Entry, pod: PodInfo, row: int) -> bool:
        """Whether the plugins that read pods pass a row now; False is always right.

        Parameters
        ----------
        entry, pod, row
            What is known, a pod of that shape, and a row of which it is up to date or not.
        """
        try:
            for forms in self._asked(entry):
                passes = forms.passes_row
                if passes is None or not passes(entry.state, pod, row):
                    return False
        except Exception:  # as in `follow`
            return False
        return True

    def _asked(self, entry: Entry) -> tuple[FilterForms, ...]:
        """Return the Filters that a shape does not skip."""
        skipping = entry.skipping
        found = self._unskipped.get(skipping)
        if found is None:
            found = tuple(each for each in self._filters if each.name not in skipping)
            self._unskipped[skipping] = found
        return found

    def _needs_arrays(self, scores: Scores) -> bool:
        return not all(name in scores.skipped for name in self._vector_scores)

    def _judged(self, entry: Entry, pod: PodInfo, row: int) -> bool:
        """Put a row's verdict down as it is now; False where a plugin has to be asked for it."""
        verdict, by_node, by_pods = entry.verdict, entry.by_node, entry.by_pods
        if verdict is None or by_node is None or by_pods is None:
            return True
        passed = verdict.plugin_n.item(row) == PASSED
        found = self._first_failing(entry, pod, row, passed=passed)
        if found is None:
            return False
        if passed and found is PASSES:
            return True
        by_pods.put_row(row, found)
        first = min(by_node.verdict_at(row), found)  # the first plugin decides
        verdict.put_row(row, first)
        if passed or first is PASSES:
            entry.feasible = None
        return True

    def _first_failing(
        self, entry: Entry, pod: PodInfo, row: int, *, passed: bool
    ) -> RowVerdict | None:
        """Return what the plugins say that read pods; None where an answer is no verdict.

        `passed` is whether the row did so far: then it is the likelier answer now.
        """
        for forms in self._asked(entry):
            passes, judge = forms.passes_row, forms.judge_row
            likely = passed or judge is None
            if passes is not None and likely and passes(entry.state, pod, row):
                continue
            if judge is not None:
                found = judge(entry.state, pod, row, NOTHING_MORE)
            else:
                answer = forms.plugin.filter(entry.state, pod, self._snapshot.rows([row]))
                if answer is None:
                    continue
                if len(answer) != 1 or answer.is_broken:
                    return None
                found = int(answer.code_n[0]), int(answer.reason_n[0])
            if found[0]:
                return forms.index, *found
        return PASSES

    def _rescored(self, entry: Entry, scores: Scores, pod: PodInfo, row: int) -> bool:
        for name, score_row, weight in self._scores:
            if name in scores.skipped:
                continue
            new = score_row(entry.state, pod, row)
            if new is None or not MIN_NODE_SCORE <= new <= MAX_NODE_SCORE:
                return False
            raw_n = scores.raw[name]
            scores.fixed_n[row] += weight * (new - raw_n.item(row))
            raw_n[row] = new
        return True

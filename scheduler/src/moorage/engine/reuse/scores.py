"""The score cache: the raw scores that the reusable Score plugins give every row, for one shape.

Raw scores are kept for all rows, feasible or not, because feasible rows change from pod to pod. The
weighted sum of the scores that need no normalising is also kept.

Rules: scheduling spec, cycle section 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.base.no_names import NO_NAMES
from moorage.engine.answers import CachedPart, ScoreNotes
from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.notes.score_log import CHANGES_MAX, UNNOTED_MAX, ScoreLog
from moorage.engine.reuse.shared import SharedAnswers
from moorage.engine.scoring import ask_score, check_range, normalized, pre_scored
from moorage.framework.caches import Changes
from moorage.framework.capabilities import Reads, RowScorer
from moorage.framework.forms import ScoreForms
from moorage.framework.meter import PRE_SCORE
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE, ScoreArray
from moorage.framework.profile import Profile
from moorage.framework.runner import run_pre_score
from moorage.framework.status import SUCCESS_CODE
from moorage.snapshot.view import NodeView

# A log of scores begins with the copy of all of them: it pays from some notes on; a guess.
_NOTED_MIN: Final = 4


class ScorePlugins:
    """The Score plugins of a profile, grouped by the inputs of their answers.

    Parameters
    ----------
    profile
        The profile.
    """

    def __init__(self, profile: Profile) -> None:
        afresh = profile.asked_afresh
        self.reused = [each for each in profile.score_forms if each.reused]
        self.open = [each for each in profile.score_forms if each.normalizer or not each.reused]
        """The plugins whose part of the total is not in the fixed sum."""
        self.open_names = frozenset(each.name for each in self.open)
        self.described = [(each.name, each.weight, each.normalizer is None) for each in self.reused]
        """(name, weight, whether raw scores are final) of `reused`."""
        self.by_pods = [each for each in self.reused if each.reads != Reads.NODE]
        """The plugins whose scores of a row depend on more than its node."""
        self.shared_names = frozenset(each.name for each in self.reused) - {
            each.name for each in self.by_pods
        }
        """The plugins whose scores several shapes share."""
        pre_scores = [each for each in profile.pre_scores if each.name not in self.shared_names]
        self.prepared = [each for each in pre_scores if each.name not in afresh]
        self.prepared_afresh = [each for each in pre_scores if each.name in afresh]
        """The plugins whose PreScore runs in every attempt."""


class ScoreCache:
    """The scores of every row for one shape.

    Parameters
    ----------
    plugins
        The Score plugins of the profile.
    shared
        The answers that the shape shares with others.
    attempt
        A pod of the shape, with the state that the shape's plugins write.

    Attributes
    ----------
    raw
        By plugin, int64, (n,): raw scores; without the shared scores that are equal on every row.
    fixed_n
        int64, (n,): weighted sum of the plugins whose raw scores are final.
    flat
        By normalising plugin, the raw score of every row, where all rows have the same score.
    skipped
        Names of the reusable plugins whose PreScore answered Skip.
    """

    __slots__ = (
        "_attempt",
        "_cached",
        "_fails",
        "_flat_total",
        "_known",
        "_log",
        "_noted",
        "_plugins",
        "_raw_pn",
        "_scorers",
        "_scorers_of",
        "_shared",
        "_shared_flat",
        "_uneven",
        "_unlogged",
        "fixed_n",
        "flat",
        "raw",
        "skipped",
    )

    def __init__(self, plugins: ScorePlugins, shared: SharedAnswers, attempt: Attempt) -> None:
        self._plugins = plugins
        self._shared = shared
        self._attempt = attempt
        self.forget()

    def forget(self) -> None:
        """Forget every score."""
        self._known = False
        self._fails = False
        """Whether scoring every row fails, possibly on rows that are not feasible."""
        self.raw: dict[str, ScoreArray] = {}
        self.fixed_n: ScoreArray = np.zeros(0, np.int64)
        self.flat: dict[str, int] = {}
        self._shared_flat: dict[str, int] = {}
        """By plugin, the shared raw scores that are equal on every row."""
        self._uneven: frozenset[str] = NO_NAMES
        """Names of the plugins whose part of the total may differ between rows."""
        self._flat_total: int | None = None
        # By plugin whose scores depend on pods: what scores a row of it, and the generation of
        # the columns for which that is good; () before a row was scored, and after nodes changed.
        self._scorers: tuple[tuple[ScoreForms, RowScorer | None], ...] = ()
        self._scorers_of = -1
        # The arrays of `raw` are the rows of this one, in the order of `_cached`. It has a copy of
        # shared scores that differ between rows, because a log follows its rows.
        self._raw_pn: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._cached: tuple[CachedPart, ...] = ()
        # The log for notes of attempts. Without a log: the rows that changed since the last note,
        # and the notes in a row between which few rows changed.
        self._log: ScoreLog | None = None
        self._unlogged = 0
        self._noted = 0
        self.skipped: frozenset[str] = NO_NAMES

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, bytes."""
        return self._raw_pn.nbytes + self.fixed_n.nbytes

    @property
    def known(self) -> bool:
        """Whether scores of every row are cached."""
        return self._known

    # -- answers -------------------------------------------------------------------------------

    def ask(self) -> bool:
        """Ask the reusable plugins about every row; return whether all of them could answer.

        Plugins may fail over rows that are not feasible; then only feasible rows can be scored.
        """
        if self._fails:
            return False
        self._fails = True
        try:
            self._ask_all()
        except CycleError:
            self.forget()
            self._fails = True
            return False
        self._uneven = self._plugins.open_names - self.flat.keys()
        self._known, self._fails = True, False
        return True

    def _ask_all(self) -> None:
        """Take over the shared scores, and ask the other plugins.

        Raises
        ------
        CycleError
            A plugin failed, or a final score is out of range.
        """
        attempt = self._attempt
        shared = self._shared.scores(attempt.state)
        attempt.state.absorb(self._shared.state)
        self.skipped = shared.skipped | pre_scored(attempt, self._plugins.prepared)
        self._shared_flat = shared.flat.copy()
        self.fixed_n = shared.fixed_n.copy()
        scoring, view = self._scoring(), attempt.snapshot.all()
        self._raw_pn = np.empty((len(scoring), len(self.fixed_n)), np.int64)
        for raw_n, forms in zip(self._raw_pn, scoring, strict=True):
            name = forms.name
            self.raw[name] = raw_n
            if name in shared.raw:
                raw_n[:] = shared.raw[name]
                continue
            raw_n[:] = ask_score(attempt, forms, view)
            if forms.normalizer is None:
                check_range(forms.plugin, raw_n)
                self.fixed_n += raw_n if forms.weight == 1 else forms.weight * raw_n
            elif len(raw_n) and raw_n.min() == raw_n.max():
                self.flat[name] = int(raw_n[0])
        open_names = self._plugins.open_names
        self.flat.update((name, raw) for name, raw in shared.flat.items() if name in open_names)

    def totals(
        self, attempt: Attempt, feasible: NodeView, notes: ScoreNotes | None = None
    ) -> ScoreArray:
        """Return int64, (rows of the view,): weighted sums, plugins asked afresh included.

        Parameters
        ----------
        attempt, feasible
            The attempt after PreScore, and the rows to score.
        notes
            Takes the scores of each plugin; None where they are not noted.

        Raises
        ------
        CycleError
            A plugin failed, or a score is out of range.
        """
        state, rows = attempt.state, feasible.rows
        total_n = self.fixed_n.copy() if rows is None else self.fixed_n[rows]
        for forms in self._plugins.open:
            if forms.name in state.skip_score:
                continue
            if not forms.reused:
                raw_n = ask_score(attempt, forms, feasible)
            elif forms.name in self.flat:
                continue  # the same for every node
            else:
                raw_n = self.raw[forms.name]
                raw_n = raw_n.copy() if rows is None else raw_n[rows]
            scores_n = normalized(attempt, forms, raw_n)
            total_n += forms.weight * scores_n
            if notes is not None:
                own = None if forms.reused else raw_n
                notes.opened = (*notes.opened, (forms.name, forms.weight, own, scores_n))
        total_n += self._same_part(attempt)
        if notes is not None:
            log = self._log
            if log is None or log.length >= CHANGES_MAX:
                log = self._begin_log()
            notes.cached = self._cached
            if log is None:
                notes.raw_pn, notes.length = self._raw_pn, 0
            else:
                notes.log = log
                notes.length = log.noted = log.length
        return total_n

    def flat_part(self, attempt: Attempt, notes: ScoreNotes | None = None) -> int | None:
        """Return what is added to the fixed sum of every row; None where rows differ in it.

        None also where an attempt has to note more than its place in the log of scores.

        Parameters
        ----------
        attempt
            The attempt after PreScore.
        notes
            As for `totals`.

        Raises
        ------
        CycleError
            A plugin failed, or a score is out of range.
        """
        if not self._uneven <= attempt.state.skip_score:
            return None
        if notes is None:
            return self._same_part(attempt)
        log = self._log
        if log is None or log.length >= CHANGES_MAX:
            return None
        part = self._same_part(attempt)
        notes.cached, notes.log = self._cached, log
        notes.length = log.noted = log.length
        return part

    def _begin_log(self) -> ScoreLog | None:
        """Return a new log of the raw scores, for notes; None where it would not pay.

        A log pays for a shape of many pods, between which few rows change.
        """
        self._noted, self._unlogged = self._noted + 1, 0
        if self._log is not None:
            self._log.release_scores()
            self._log = None
        if self._noted >= _NOTED_MIN:
            self._log = ScoreLog(self._raw_pn)
        return self._log

    def _unlog(self, rows: list[int]) -> None:
        """Count changing rows while there is no log; end a log for which they are too many."""
        self._unlogged += len(rows)
        if self._log is not None:
            self._log.release_scores()
            self._log, self._noted = None, 0
        elif self._unlogged > UNNOTED_MAX:
            self._noted = 0

    def prepare(self, attempt: Attempt, feasible: NodeView) -> None:
        """Run PreScore of the plugins that are asked afresh.

        Raises
        ------
        CycleError
            A plugin failed.
        """
        state, afresh = attempt.state, self._plugins.prepared_afresh
        state.skip_score = NO_NAMES
        if afresh:
            status = run_pre_score(attempt.profile, state, attempt.pod, feasible, only=afresh)
            if not status.ok:
                raise CycleError(status, PRE_SCORE)
        state.skip_score |= self.skipped
        if state.meter is not None:
            state.meter.lap(PRE_SCORE, SUCCESS_CODE)

    def _scoring(self) -> list[ScoreForms]:
        """Return the plugins with raw scores of their own on each row, in order."""
        without = self.skipped | self._shared_flat.keys()
        return [each for each in self._plugins.reused if each.name not in without]

    def _same_part(self, attempt: Attempt) -> int:
        """Return what the plugins that give every row the same score add to each total."""
        if self._flat_total is None:
            self._flat_total = self._find_same_part(attempt)
        return self._flat_total

    def _find_same_part(self, attempt: Attempt) -> int:
        shared, part = self._shared.flat_normalized(attempt.state), 0
        scores = {name: shared[name] for name in self._shared_flat if name in shared}
        for forms in self._plugins.open:
            if forms.name in scores:
                part += forms.weight * scores[forms.name]
            elif forms.name in self.flat:
                one = np.array([self.flat[forms.name]], np.int64)
                score = scores[forms.name] = int(normalized(attempt, forms, one)[0])
                part += forms.weight * score
        self._cached = tuple(
            [
                CachedPart(name, weight, is_final, scores.get(name), self._shared_flat.get(name))
                for name, weight, is_final in self._plugins.described
                if name not in self.skipped
            ]
        )
        return part

    # -- changes -------------------------------------------------------------------------------

    def follow(self, changes: Changes) -> None:
        """Score the changed rows again; in scalars where rows are few and a plugin has the form."""
        if not self._known:
            return
        if self._noted:
            log = self._log
            if log is None or not log.change(changes.rows):
                self._unlog(changes.rows)
        try:
            if changes.are_few:
                generation = self._attempt.snapshot.table.columns.generation
                if not self._scorers or generation != self._scorers_of:
                    self._scorers, self._scorers_of = self._bound(), generation
                for forms, scorer in self._scorers:
                    if scorer is None or not self._by_row(forms, scorer, changes.rows):
                        self._by_arrays(forms, changes.rows)
                return
            self._scorers = ()
            for forms in self._scoring():
                if forms.reads != Reads.NODE:
                    self._by_arrays(forms, changes.rows)
            if changes.nodes:
                self._take_shared(changes.nodes)
        except CycleError:  # perhaps a row that is not feasible; asked again once it is
            self.forget()

    def _by_arrays(self, forms: ScoreForms, changed: Sequence[int]) -> None:
        """Ask one plugin about the changed rows.

        Raises
        ------
        CycleError
            The plugin failed, or a final score is out of range.
        """
        rows: NDArray[np.int64] = np.array(changed, np.int64)
        raw_n = self.raw[forms.name]
        new = ask_score(self._attempt, forms, self._attempt.snapshot.rows(rows))
        if forms.normalizer is None:
            check_range(forms.plugin, new)
            self.fixed_n[rows] += forms.weight * (new - raw_n[rows])
        elif forms.name in self.flat and (new != self.flat[forms.name]).any():
            self._not_flat(forms.name)
        raw_n[rows] = new

    def _take_shared(self, changed: Sequence[int]) -> None:
        """Take over the shared scores of rows whose nodes changed.

        Raises
        ------
        CycleError
            A plugin failed, or a final score is out of range.
        """
        shared = self._shared.scores(self._attempt.state)
        flat, skipped = self._shared_flat, self.skipped & self._plugins.shared_names
        if shared.skipped != skipped or not flat.items() <= shared.flat.items():
            self.forget()
            return
        rows: NDArray[np.int64] = np.array(changed, np.int64)
        for forms in self._scoring():
            if forms.name in shared.raw:
                raw_n, new = self.raw[forms.name], shared.raw[forms.name][rows]
                if forms.normalizer is None:
                    self.fixed_n[rows] += forms.weight * (new - raw_n[rows])
                raw_n[rows] = new

    def _bound(self) -> tuple[tuple[ScoreForms, RowScorer | None], ...]:
        """Return the plugins whose scores depend on pods, each with what scores a row of it."""
        state, pod, skipped = self._attempt.state, self._attempt.pod, self.skipped
        forms = [each for each in self._plugins.by_pods if each.name not in skipped]
        try:
            return tuple(
                (each, None if each.row_scorer is None else each.row_scorer(state, pod))
                for each in forms
            )
        except Exception:  # asked again with arrays, where a failure is contained
            return tuple((each, None) for each in forms)

    def _by_row(self, forms: ScoreForms, scorer: RowScorer, rows: Sequence[int]) -> bool:
        """Ask one plugin about a few changed rows, without arrays; False where it takes arrays.

        A plugin that raises is asked again with arrays, where its failure is contained.
        """
        raw_n = self.raw[forms.name]
        try:
            for row in rows:
                new, before = scorer(row), raw_n.item(row)
                if new is None:
                    return False
                if new == before:
                    continue
                if forms.normalizer is None:
                    if not MIN_NODE_SCORE <= new <= MAX_NODE_SCORE:
                        return False
                    self.fixed_n[row] += forms.weight * (new - before)
                elif forms.name in self.flat:
                    self._not_flat(forms.name)
                raw_n[row] = new
        except Exception:
            return False
        return True

    def _not_flat(self, name: str) -> None:
        """Note that the raw scores of a plugin are no longer equal on every row."""
        self.flat.pop(name, None)
        self._uneven |= {name}
        self._flat_total = None

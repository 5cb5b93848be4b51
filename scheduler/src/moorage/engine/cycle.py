"""The scheduling cycle of one pod: a function from (pod, snapshot, profile) to a `Decision`.

Read top to bottom it is the scheduling spec's cycle: PreFilter, Filter, PostFilter, PreScore,
Score, select. Answers of plugins come from `answers`, which may reuse those of another pod.

Rules: scheduling spec, cycle sections 2.1 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np

from moorage.base.no_names import NO_NAMES
from moorage.engine.answers import Answers, Rejection, Rows, ScoreNotes
from moorage.engine.attempt import WHOLE, Attempt, CycleError, Preemption, Scope
from moorage.engine.decision import Decision, Outcome, failed, rejected
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.filters.tally import PASSED
from moorage.engine.groups.whole_gangs import with_whole_gangs
from moorage.engine.notes.attempt_note import NoteWriter
from moorage.engine.notes.best_nodes import NearNodes
from moorage.engine.reuse.answers import Reuse
from moorage.engine.reuse.shapes import BUDGET_BYTES
from moorage.engine.sampling import Rotation, Sampler
from moorage.engine.search import Search, diagnose, filter_nominated_node, with_row
from moorage.engine.select_node import TieBreak, heap_order, positional
from moorage.engine.trials.what_if import NodeStatuses, SearchWhatIf
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import NO_NODES
from moorage.framework.meter import FILTER, POST_FILTER, PRE_FILTER, SCORE, SILENT, Meter
from moorage.framework.points import (
    PostFilterPlugin,
    PostFilterResult,
    PreFilterOutcome,
    ScoreArray,
)
from moorage.framework.preemption import EXPLAIN
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    AskPostFilter,
    PostFilterAnswer,
    PostFilterOutcome,
    post_filter_one,
    run_post_filter,
)
from moorage.framework.status import (
    ERROR_CODE,
    SUCCESS,
    SUCCESS_CODE,
    Status,
    unresolvable,
    unschedulable,
)
from moorage.framework.what_if import WHAT_IF
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

GROUP_TOO_LARGE: Final = "the pod group does not fit, even after evictions"
_BIND: Final = Outcome.BIND  # finding it in the enum takes longer than using it

T = TypeVar("T")

OnScored: TypeAlias = Callable[[Attempt, Rows], None]
"""(attempt, feasible rows): the callable may read both, and changes neither."""


class Cycle:
    """Decides one pod after another for one profile.

    Parameters
    ----------
    profile
        The plugins.
    snapshot
        The cluster; current, and not changed while `decide` runs.
    tie_break
        Chooses one of several best nodes.
    reuse
        Whether plugins' answers are reused for replicas; decisions are the same either way.
    budget_bytes
        Memory for reused answers.
    rotation
        Start of the next search of a part of the nodes; the cycles of a scheduler share one.
        Also an attribute; None makes a new one.
    meter
        Records the durations of extension points and plugins; None where they are not measured.
    notes
        Writes what attempts found, for their records; None where nothing is recorded.
    on_scored
        Called with the feasible rows once they have scores; None without a reader.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each part it is given
        self,
        profile: Profile,
        snapshot: Snapshot,
        tie_break: TieBreak,
        *,
        reuse: bool = True,
        budget_bytes: int = BUDGET_BYTES,
        rotation: Rotation | None = None,
        meter: Meter | None = None,
        notes: NoteWriter | None = None,
        on_scored: OnScored | None = None,
    ) -> None:
        self.profile = profile
        self.snapshot = snapshot
        self.reuse = Reuse(profile, snapshot, budget_bytes=budget_bytes) if reuse else None
        # The one place that knows of reuse: both have the same methods.
        self._answers_about = Answers if self.reuse is None else self.reuse.about
        self._tie_break = tie_break
        self.rotation = rotation or Rotation()
        self._sampler = Sampler(profile, snapshot, self.rotation)
        self._state_meter = meter  # the meter of the cycle state: None where nothing is measured
        self._meter = SILENT if meter is None else meter
        self._notes = notes
        self._on_scored = on_scored

    def decide(self, pod: PodInfo, scope: Scope = WHOLE) -> Decision:
        """Choose a node for a pod, or give the reasons why no node is feasible."""
        attempt = self.begin(pod, scope)
        try:
            # 1. Is there anything to choose from?
            if self.snapshot.num_nodes == 0:
                return failed(attempt, unresolvable(NO_NODES))
            # 2. Which nodes can take it? (PreFilter, Filter)
            search = self.search(attempt)
            if search.nominated_row is not None:
                return self._taken(search, search.nominated_row)
            rows = search.answers.feasible(search.view, search.filtered)
            # 3. None: say why, and let PostFilter look for a way.
            if len(rows) == 0:
                return self._reject(search)
            # 4. One: take it unscored.
            if len(rows) == 1:
                return self._taken(search, int(rows[0]))
            # 5. Several: score them, and take the best. (PreScore, Score, NormalizeScore)
            # A tie-break by position asks in which order the rows were found: nobody keeps that.
            by_position = self._tie_break is positional
            best = None if by_position else self._scored(search, rows, search.answers.best)
            if best is None:
                return self.select(search, rows, self.totals(search, rows))
            row = self._tie_break(best.rows, self.snapshot.names)
            ties, count = len(best.rows), len(rows)
            return self._taken(search, row, ties=ties, total=best.total, out_of=count)
        except CycleError as broken:
            return failed(attempt, broken.status)

    def begin(self, pod: PodInfo, scope: Scope = WHOLE) -> Attempt:
        """Return a new attempt for a pod."""
        state = CycleState(self._state_meter, self._meter.sample())
        if scope.explain:
            state.write(EXPLAIN, True)
        return Attempt(self.profile, self.snapshot, state, pod, scope)

    # -- PreFilter and Filter ------------------------------------------------------------------

    def search(self, attempt: Attempt, *, shortcut: bool = True) -> Search:
        """Run PreFilter and Filter: the nominated node first, then every candidate row.

        With `shortcut`, a nominated node that passes Filter ends the search.

        Raises
        ------
        CycleError
            PreFilter or Filter broke.
        """
        answers = self._answers_about(attempt)
        self._meter.start()
        outcome = answers.pre_filter()
        self._meter.lap(PRE_FILTER, outcome.status.code)
        if outcome.status.code is not SUCCESS_CODE:
            if outcome.status.rejected:
                return Search(answers, outcome, self.snapshot.rows([]), FilterResults(0))
            raise CycleError(outcome.status)
        code = ERROR_CODE
        try:
            filtered = self._filter(answers, outcome, shortcut=shortcut)
            code = SUCCESS_CODE
        finally:
            if self.profile.filters:
                self._meter.lap(FILTER, code)
        return filtered

    def _filter(self, answers: Answers, outcome: PreFilterOutcome, *, shortcut: bool) -> Search:
        named = answers.attempt.pod.pod.status.nominated_node_name
        own = filter_nominated_node(answers, named) if named else None
        if own is not None and shortcut and own.filtered.plugin_n.item(0) == PASSED:
            view = self.snapshot.rows([own.row])
            return Search(answers, outcome, view, own.filtered, nominated_row=own.row)
        start, rejectors = self._sampler.rotation.start, NO_NAMES
        view = answers.attempt.candidates(outcome.node_names)
        if self._sampler.on:
            view, filtered = self._sampled(answers, view)
        else:
            filtered = answers.filter_view(view)
        if own is not None:
            view, filtered = with_row(view, filtered, own.row, own.filtered)
            rejectors = own.filtered.tally.rejectors(self.profile.filters)
        self._sampler.rotation.advance(len(view), self.snapshot.num_nodes)
        return Search(
            answers,
            outcome,
            view,
            filtered,
            known=answers.known,
            nominated_rejectors=rejectors,
            start=start,
            notes=None if self._notes is None else ScoreNotes(),
        )

    def _sampled(self, answers: Answers, view: NodeView) -> tuple[NodeView, FilterResults]:
        try:
            filtered = answers.filter_view(view)
        except CycleError:
            return self._sampler.search(view, answers.filter_view)
        return self._sampler.sample_rows(view, filtered)

    # -- PostFilter ----------------------------------------------------------------------------

    def post_filter(self, search: Search, *, ask: AskPostFilter | None = None) -> PostFilterOutcome:
        """Let the PostFilter plugins look for a way after a search that found no node."""
        attempt, statuses = search.attempt, NodeStatuses(search)
        attempt.state.write(WHAT_IF, SearchWhatIf(search, statuses))
        if attempt.scope.preemption is not Preemption.ALLOWED:
            ask = partial(self._ask_some, attempt)
        self._meter.start()
        outcome = run_post_filter(self.profile, attempt.state, attempt.pod, statuses, ask=ask)
        self._meter.lap(POST_FILTER, outcome.status.code)
        attempt.state.delete(WHAT_IF)
        return outcome

    def _ask_some(
        self, attempt: Attempt, plugin: PostFilterPlugin, statuses: Mapping[str, Status]
    ) -> PostFilterAnswer:
        """Ask a PostFilter plugin if the scope of the attempt has it asked."""
        preempts = plugin.name in self.profile.preempting
        if preempts == (attempt.scope.preemption is Preemption.ALONE):
            return post_filter_one(plugin, attempt.state, attempt.pod, statuses)
        if not preempts:
            return None, unschedulable().by(plugin.name)
        # Its group cannot be completed: a nomination would hold room that nobody takes.
        return PostFilterResult(nominated_node=""), unschedulable(GROUP_TOO_LARGE).by(plugin.name)

    def _reject(self, search: Search) -> Decision:
        def find() -> Rejection:
            asks = search.attempt.wants_post_filter
            return Rejection(diagnose(search), self.post_filter(search) if asks else None)

        rejection = search.answers.rejection(search.pre_filter, search.filtered, find)
        return self.decision_of(search, rejection)

    def decision_of(self, search: Search, rejection: Rejection) -> Decision:
        """Return the decision of an attempt for which no node was found."""
        attempt, after, spared = search.attempt, rejection.after, ""
        victims = () if after is None or after.result is None else after.result.victims
        if victims and self.profile.evicts_whole_gangs:
            groups, below = self.snapshot.groups, attempt.pod.priority
            victims, spared = with_whole_gangs(groups, victims, below=below)
        evaluated = len(search.view)
        decision = rejected(attempt, rejection, victims=victims, spared=spared, evaluated=evaluated)
        if self._notes is None:
            return decision
        return msgspec.structs.replace(decision, note=self._notes.attempt_note(search))

    # -- PreScore, Score, NormalizeScore, select -----------------------------------------------

    def totals(self, search: Search, rows: Rows) -> ScoreArray:
        """Return int64, (rows,): the weighted sum of the scores of the feasible rows.

        Raises
        ------
        CycleError
            A plugin broke.
        """
        return self._scored(search, rows, search.answers.totals)

    def _scored(self, search: Search, rows: Rows, ask: Callable[[Rows, ScoreNotes | None], T]) -> T:
        try:
            scores = ask(rows, search.notes)
        except CycleError as broken:
            self._meter.lap(broken.point or SCORE, ERROR_CODE)
            raise
        if scores is not None:
            self._meter.lap(SCORE, SUCCESS_CODE)
            if self._on_scored is not None:
                self._on_scored(search.attempt, rows)
        return scores

    def select(self, search: Search, rows: Rows, total_n: ScoreArray) -> Decision:
        """Take one of the rows with the greatest total."""
        # By position: NumPy's reductions take three times as long.
        top = total_n.item(total_n.argmax())
        notes, scores, noted = self._notes, search.notes, None
        # The nodes near the greatest total are noted where the log of scores does not suffice.
        if scores is not None and (scores.log is None or scores.opened or scores.extended):
            assert notes is not None, "scores are noted for notes alone"
            noted, tied = notes.greatest(total_n, top)
        else:
            tied = (total_n == top).nonzero()[0]
        best: Rows = rows[tied]
        if self._tie_break is positional and len(best) > 1:
            found = self.in_order(search, rows)
            best = found[heap_order(np.flatnonzero(np.isin(found, best)))]
        row, near = self._tie_break(best, self.snapshot.names), None
        if notes is not None and scores is not None and noted is not None:
            near = notes.near(scores, (rows, total_n), noted, chosen=row, tied=tied)
        return self._taken(search, row, ties=len(best), total=top, out_of=len(rows), near=near)

    def in_order(self, search: Search, rows: Rows) -> Rows:
        """Return feasible rows in the order in which the search met them."""
        candidates = search.attempt.candidates(search.pre_filter.node_names)
        order = self._sampler.order(candidates, search.start)
        return order[np.isin(order, rows)]

    def _taken(
        self,
        search: Search,
        row: int,
        *,
        ties: int = 1,
        total: int | None = None,
        out_of: int = 1,
        near: NearNodes | None = None,
    ) -> Decision:
        attempt, notes = search.answers.attempt, self._notes
        return Decision(
            outcome=_BIND,
            pod=attempt.pod,
            state=attempt.state,
            status=SUCCESS,
            node_name=self.snapshot.names[row],
            total_score=total,
            feasible=out_of,
            evaluated=len(search.view),
            ties=ties,
            note=None if notes is None else notes.attempt_note(search, row, near),
        )

"""The scheduling cycle of one pod: a function from (pod, snapshot, profile) to a `Decision`.

Rules: scheduling spec, cycle sections 2.1 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.engine.beside import judge_beside
from moorage.engine.decision import CLEAR_NOMINATION, Decision, Nomination, Outcome
from moorage.engine.filter_pass import FilterPass
from moorage.engine.filtering import CycleError, filter_nominated, run_filters
from moorage.engine.nominated import comes_first
from moorage.engine.refusals import Refusal, Refusals
from moorage.engine.sampling import Rotation, Sampler
from moorage.engine.scope import WHOLE, Scope
from moorage.engine.scoring import ask_score, normalized, run_scores
from moorage.engine.search import Search, diagnose, with_row
from moorage.engine.select_node import TieBreak, heap_order, positional
from moorage.engine.shape_cache import DEFAULT_BUDGET_BYTES, ShapeCache
from moorage.engine.shape_entry import Entry, Scores
from moorage.engine.what_if import Attempt, NodeStatuses, SearchWhatIf
from moorage.engine.whole_gangs import with_whole_gangs
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import NO_NODES, Diagnosis
from moorage.framework.meter import FILTER, POST_FILTER, PRE_FILTER, PRE_SCORE, SCORE, Meter
from moorage.framework.points import PostFilterResult, ScoreArray
from moorage.framework.preemption import EXPLAIN
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    AskPostFilter,
    PostFilterOutcome,
    PreFilterOutcome,
    run_post_filter,
    run_pre_filter,
    run_pre_score,
)
from moorage.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from moorage.framework.what_if import WHAT_IF
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

# Asking the enum each time costs more than telling the meter.
_SUCCESS, _ERROR = Code.SUCCESS, Code.ERROR

_NOTHING_PROPOSED: Final = PostFilterResult()


class Cycle:
    """Decides one pod after another for one profile.

    Parameters
    ----------
    profile
        The plugins.
    snapshot
        The cluster; current, and not changed while `decide` runs.
    tie_break
        Which of several best nodes is taken.
    reuse
        Whether plugins' answers are reused for replicas; decisions are the same either way.
    budget_bytes
        Memory for reused answers.
    rotation
        Where searches of a part of the nodes start; the cycles of a scheduler share one.
    meter
        Told how long extension points and plugins take; None where nobody asks.
    """

    def __init__(
        self,
        profile: Profile,
        snapshot: Snapshot,
        tie_break: TieBreak,
        *,
        reuse: bool = True,
        budget_bytes: int = DEFAULT_BUDGET_BYTES,
        rotation: Rotation | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.profile = profile
        self.snapshot = snapshot
        self.shapes = ShapeCache(profile, snapshot, budget_bytes=budget_bytes) if reuse else None
        self._singular = [
            each.never_reused
            for each in profile.capabilities.values()
            if each.never_reused is not None
        ]
        self._whole_gangs = any(each.evicts_whole_gangs for each in profile.capabilities.values())
        self._refusals = Refusals(profile, snapshot)
        self._meter = meter
        self._tie_break = tie_break
        self._sampler = Sampler(profile, snapshot, rotation or Rotation())

    def decide(self, pod: PodInfo, scope: Scope = WHOLE) -> Decision:
        """Choose a node for a pod, or say why there is none."""
        state = CycleState()
        if scope.explain:
            state.write(EXPLAIN, True)
        try:
            # 1. Is there anything to choose from?
            if self.snapshot.num_nodes == 0:
                return self._failed(pod, state, unresolvable(NO_NODES))
            # 2. Which nodes can take it?
            search = self.search(state, pod, within=scope.within)
            if search.nominated_row is not None:
                return self._chosen(pod, state, search, row=search.nominated_row, ties=1)
            rows = self._feasible_rows(search)
            # 3. None: say why, and let PostFilter look for a way.
            if len(rows) == 0:
                return self._rejected(pod, state, search, scope)
            # 4. One: take it unscored. Several: score, and take the best.
            if len(rows) == 1:
                return self._chosen(pod, state, search, row=int(rows[0]), ties=1)
            total_n = self._totals(state, pod, search, rows=rows)
            best = self._best(search, rows, total_n)
            row = self._tie_break(best, self.snapshot.names)
        except CycleError as broken:
            return self._failed(pod, state, broken.status)
        top = total_n.item(total_n.argmax())
        return self._chosen(pod, state, search, row=row, ties=len(best), total=top, of=len(rows))

    def decide_together(self, pods: Sequence[PodInfo]) -> tuple[Decision, ...]:
        """Choose nodes for several pods, each as if those before it were on theirs already.

        Returns
        -------
        tuple
            One decision for each pod up to and including the first that gets no node. All are
            BIND only if every pod has a place beside the others; nothing is held either way.
        """
        decisions: list[Decision] = []
        with self.snapshot.trial() as trial:
            for pod in pods:
                decision = self.decide(pod)
                decisions.append(decision)
                if decision.outcome is not Outcome.BIND:
                    break
                row = self.snapshot.row_of(decision.node_name)
                assert row is not None, f"{decision.node_name} was chosen from the snapshot"
                trial.add_pod(pod, row)
        return tuple(decisions)

    # -- 2. filtering --------------------------------------------------------------------------

    def search(
        self,
        state: CycleState,
        pod: PodInfo,
        *,
        shortcut: bool = True,
        within: NodeView | None = None,
    ) -> Search:
        """Run PreFilter and Filter: the nominated node first, then every candidate row.

        Parameters
        ----------
        state, pod
            The attempt.
        shortcut
            Whether a nominated node that fits is all that is looked at.
        within
            The rows that can be chosen; None means all.

        Raises
        ------
        CycleError
            PreFilter or Filter broke.
        """
        entry, meter = self._entry(pod), self._meter
        if meter is not None:
            if state.meter is None:
                state.meter, state.timed = meter, meter.sample()
            meter.start()
        outcome = self._pre_filter(entry, state, pod)
        if meter is not None:
            meter.lap(PRE_FILTER, outcome.status.code)
        if not outcome.status.ok:
            if outcome.status.rejected:
                return Search(outcome, self.snapshot.rows([]), FilterPass(0), within=within)
            raise CycleError(outcome.status)
        code = _ERROR
        try:
            found = self._searched(entry, outcome, state, pod, shortcut=shortcut, within=within)
            code = _SUCCESS
        finally:
            if meter is not None and self.profile.filters:
                meter.lap(FILTER, code)
        return found

    def _entry(self, pod: PodInfo) -> Entry | None:
        """Return what is known about pods like this one, if anything may be reused for it."""
        shapes = self.shapes
        if shapes is None:
            return None
        for never_reused in self._singular:
            if never_reused(pod):
                return None
        entry = shapes.entry(pod)
        if not pod.pod.status.nominated_node_name:  # or one row may be all that is looked at
            shapes.catch_up(entry, pod)
        return entry

    def _searched(
        self,
        entry: Entry | None,
        outcome: PreFilterOutcome,
        state: CycleState,
        pod: PodInfo,
        *,
        shortcut: bool,
        within: NodeView | None,
    ) -> Search:
        """Look at the nominated node first, then at every candidate row."""
        nominated = self._nominated(entry, state, pod, within)
        if shortcut and nominated is not None and nominated[1].passed[0]:
            return Search(
                outcome, nominated[0], nominated[1], nominated_row=nominated[2], within=within
            )
        if entry is not None and self.shapes is not None:
            self.shapes.catch_up(entry, pod)
        start = self._sampler.rotation.start
        view, verdict = self._looked_at(entry, outcome, state, pod, within=within)
        if nominated is not None:
            view, verdict = with_row(view, verdict, nominated[2], nominated[1])
        self._sampler.rotation.advance(len(view), self.snapshot.num_nodes)
        rejectors = frozenset() if nominated is None else nominated[1].tally.rejectors(self.profile)
        return Search(
            outcome,
            view,
            verdict,
            entry if outcome.node_names is None else None,
            nominated_rejectors=rejectors,
            start=start,
            within=within,
        )

    def _pre_filter(self, entry: Entry | None, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        shapes = self.shapes
        if entry is None or shapes is None:
            return run_pre_filter(self.profile, state, pod, self.snapshot)
        return shapes.pre_filters.run(entry, state, pod)

    def _nominated(
        self, entry: Entry | None, state: CycleState, pod: PodInfo, within: NodeView | None
    ) -> tuple[NodeView, FilterPass, int] | None:
        name = pod.pod.status.nominated_node_name
        row = self.snapshot.row_of(name) if name else None
        if row is None or (within is not None and row not in within.row_numbers()):
            return None
        view = self.snapshot.rows([row])
        known = None
        if entry is not None and self.shapes is not None:
            passes = self.shapes.passes_at(entry, state, pod, row)
            if passes and comes_first(self.snapshot, pod, row):
                return view, FilterPass(1), row
            self.shapes.catch_up(entry, pod)
            known = self.shapes.verdict_at(entry, state, row)
        try:
            verdict = self._filtered(state, pod, view, known)
        except CycleError:  # looking here first is a short cut: the search proper finds out
            return None
        return view, verdict, row

    def _looked_at(
        self,
        entry: Entry | None,
        outcome: PreFilterOutcome,
        state: CycleState,
        pod: PodInfo,
        *,
        within: NodeView | None,
    ) -> tuple[NodeView, FilterPass]:
        view = self._candidates(outcome, within)
        if not self._sampler.on:
            return view, self._judged(entry, state, pod, view)
        try:
            verdict = self._judged(entry, state, pod, view)
        except CycleError:
            return self._sampler.search(state, pod, view, self._filtered)
        return self._sampler.take(view, verdict)

    def _candidates(self, outcome: PreFilterOutcome, within: NodeView | None) -> NodeView:
        if outcome.node_names is None:
            return self.snapshot.all() if within is None else within
        known = (self.snapshot.row_of(name) for name in outcome.node_names)
        rows = {row for row in known if row is not None}
        if within is not None:
            rows &= {*within.row_numbers().tolist()}
        return self.snapshot.rows(sorted(rows))

    def _judged(
        self, entry: Entry | None, state: CycleState, pod: PodInfo, view: NodeView
    ) -> FilterPass:
        if entry is None or self.shapes is None or not view.is_all:
            return self._filtered(state, pod, view)
        verdict = self.shapes.filter_all(entry, state, pod)
        if not self.snapshot.nominations:
            return verdict
        return judge_beside(
            self.profile,
            state,
            pod,
            self.snapshot,
            shapes=self.shapes,
            entry=entry,
            verdict=verdict,
        )

    def _filtered(
        self, state: CycleState, pod: PodInfo, view: NodeView, known: FilterPass | None = None
    ) -> FilterPass:
        """Judge the rows of a view; `known` is the verdict without nominated ones, changed."""
        verdict = run_filters(self.profile, state, pod, view) if known is None else known
        if self.snapshot.nominations:
            filter_nominated(self.profile, state, pod, self.snapshot, view=view, verdict=verdict)
        return verdict

    def _feasible_rows(self, search: Search) -> NDArray[np.int64]:
        entry = search.entry
        if entry is not None and search.verdict is entry.verdict:
            if entry.feasible is None:
                entry.feasible = search.verdict.passing
            return entry.feasible
        positions = search.verdict.passing
        return positions if search.view.is_all else search.view.row_numbers()[positions]

    # -- 4. scoring ----------------------------------------------------------------------------

    def _totals(
        self, state: CycleState, pod: PodInfo, search: Search, *, rows: NDArray[np.int64]
    ) -> ScoreArray:
        """Score the feasible rows; the meter hears of PreScore on the way, of Score at the end."""
        meter = self._meter
        if meter is None:
            return self._scored(state, pod, search, rows=rows)
        try:
            total_n = self._scored(state, pod, search, rows=rows)
        except CycleError as broken:
            meter.lap(broken.point or SCORE, Code.ERROR)
            raise
        meter.lap(SCORE, _SUCCESS)
        return total_n

    def _scored(
        self, state: CycleState, pod: PodInfo, search: Search, *, rows: NDArray[np.int64]
    ) -> ScoreArray:
        if search.entry is None or self.shapes is None:
            return run_scores(self.profile, state, pod, self._view_of(rows)).total_n
        known = self._known_scores(search.entry, state, pod)
        feasible = self._view_of(rows)
        if known is None:
            return run_scores(self.profile, state, pod, feasible).total_n
        total_n = known.fixed_n.copy() if feasible.is_all else known.fixed_n[rows]
        fresh = self.shapes.fresh_plugins
        if fresh:
            self._pre_score_fresh(state, pod, feasible, known.skipped)
        else:
            state.skip_score = known.skipped
        if self._meter is not None:
            self._meter.lap(PRE_SCORE, _SUCCESS)
        for plugin in self.profile.scores:
            if plugin.name in state.skip_score:
                continue
            weight = self.profile.weights[plugin.name]
            if plugin.name in fresh:
                raw_n = ask_score(plugin, state, pod, feasible)
            elif self.profile.normalizer(plugin) is None or plugin.name in known.flat:
                continue  # in the fixed sum already, or the same for every node
            else:
                raw_n = known.raw[plugin.name]
                raw_n = raw_n.copy() if feasible.is_all else raw_n[rows]
            total_n += weight * normalized(self.profile, plugin, state, pod, raw_n=raw_n)
        if known.flat_total is None:
            known.flat_total = self._flat_part(state, pod, known.flat)
        total_n += known.flat_total
        return total_n

    def _view_of(self, rows: NDArray[np.int64]) -> NodeView:
        """Return the view of ascending rows; of all of them no column is copied."""
        every = len(rows) == self.snapshot.num_nodes
        return self.snapshot.all() if every else self.snapshot.rows(rows)

    def _known_scores(self, entry: Entry, state: CycleState, pod: PodInfo) -> Scores | None:
        """Return the scores of every row, or None when only feasible rows can be scored."""
        if self.shapes is None or entry.asks_too_much:
            return None
        try:
            return self.shapes.scores_all(entry, state, pod)
        except CycleError:
            return None

    def _flat_part(self, state: CycleState, pod: PodInfo, flat: dict[str, int]) -> int:
        part = 0
        for plugin in self.profile.scores:
            if plugin.name in flat:
                one = np.array([flat[plugin.name]], np.int64)
                score_n = normalized(self.profile, plugin, state, pod, raw_n=one)
                part += self.profile.weights[plugin.name] * int(score_n[0])
        return part

    def _pre_score_fresh(
        self, state: CycleState, pod: PodInfo, feasible: NodeView, skipped: frozenset[str]
    ) -> None:
        assert self.shapes is not None
        status = run_pre_score(self.profile, state, pod, feasible, only=self.shapes.fresh_plugins)
        if not status.ok:
            raise CycleError(status, PRE_SCORE)
        state.skip_score |= skipped

    def found(self, search: Search, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the feasible rows in the order in which the search met them."""
        candidates = self._candidates(search.pre_filter, search.within)
        order = self._sampler.order(candidates, search.start)
        return order[np.isin(order, rows)]

    def _best(
        self, search: Search, rows: NDArray[np.int64], total_n: ScoreArray
    ) -> NDArray[np.int64]:
        """Return the rows with the greatest total, in the order tie-breaks expect."""
        # By position: NumPy's reductions take three times as long.
        at = (total_n == total_n[total_n.argmax()]).nonzero()[0]
        best: NDArray[np.int64] = rows[at]
        if self._tie_break is not positional or len(best) == 1:
            return best
        found = self.found(search, rows)
        return found[heap_order(np.flatnonzero(np.isin(found, best)))]

    # -- outcomes ------------------------------------------------------------------------------

    def _chosen(
        self,
        pod: PodInfo,
        state: CycleState,
        search: Search,
        *,
        row: int,
        ties: int,
        total: int | None = None,
        of: int = 1,
    ) -> Decision:
        return Decision(
            outcome=Outcome.BIND,
            pod=pod,
            state=state,
            status=SUCCESS,
            node_name=self.snapshot.names[row],
            total_score=total,
            feasible=of,
            evaluated=len(search.view),
            ties=ties,
        )

    def _rejected(self, pod: PodInfo, state: CycleState, search: Search, scope: Scope) -> Decision:
        wanted = scope.post_filter and bool(self.profile.post_filters)
        alike = self._refusals.alike(pod, state, search, post_filter=wanted)
        found = None if alike is None else self._refusals.find(alike, search.entry)
        if found is not None:
            diagnosis, after = found.diagnosis, found.after
        else:
            diagnosis = diagnose(self.profile, self.snapshot, search)
            after = self.post_filter(state, pod, search) if wanted else None
            if alike is not None and search.entry is not None:
                self._refusals.keep(alike, Refusal(search.entry, diagnosis, after))
        return self._rejection(pod, state, search, diagnosis=diagnosis, after=after)

    def _rejection(
        self,
        pod: PodInfo,
        state: CycleState,
        search: Search,
        *,
        diagnosis: Diagnosis,
        after: PostFilterOutcome | None,
    ) -> Decision:
        nomination: Nomination | None = CLEAR_NOMINATION
        victims: tuple[Pod, ...] = ()
        if after is not None:
            result = after.result or _NOTHING_PROPOSED
            victims, proposed, kept = result.victims, result.nominated_node, ""
            if victims and self._whole_gangs:
                groups, below = self.snapshot.groups, pod.priority
                victims, kept = with_whole_gangs(groups, victims, below=below)
            diagnosis = diagnosis.with_post_filter(kept or after.message)
            nomination = None if proposed is None else Nomination("" if kept else proposed)
        return Decision(
            outcome=Outcome.REJECT,
            pod=pod,
            state=state,
            status=unschedulable(diagnosis.message),
            evaluated=len(search.view),
            diagnosis=diagnosis,
            nomination=nomination,
            victims=victims,
        )

    def post_filter(
        self, state: CycleState, pod: PodInfo, search: Search, *, ask: AskPostFilter | None = None
    ) -> PostFilterOutcome:
        """Let the PostFilter plugins look for a way after a search that found no node."""
        statuses = NodeStatuses(
            self.profile,
            self.snapshot,
            view=search.view,
            verdict=search.verdict,
            absent=search.absent_status,
        )
        attempt = Attempt(self.profile, self.snapshot, state, pod, search.entry)
        state.write(WHAT_IF, SearchWhatIf(attempt, statuses))
        if self._meter is not None:
            self._meter.start()
        outcome = run_post_filter(self.profile, state, pod, statuses, ask=ask)
        if self._meter is not None:
            self._meter.lap(POST_FILTER, outcome.status.code)
        state.delete(WHAT_IF)
        return outcome

    def _failed(self, pod: PodInfo, state: CycleState, status: Status) -> Decision:
        outcome = Outcome.REJECT if status.rejected else Outcome.ERROR
        return Decision(
            outcome=outcome, pod=pod, state=state, status=status, nomination=CLEAR_NOMINATION
        )

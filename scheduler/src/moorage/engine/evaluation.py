"""Every plugin's answer about one pod against the present cluster: to explain, and for conformance.

Slower than `cycle`, which only decides: every plugin is also asked by itself. No answer is reused,
so tests compare the cycle's cache with an evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.filters.asking import ask_filter
from moorage.engine.filters.filter_pass import FilterResults
from moorage.engine.scoring import ScoreTable, run_scores
from moorage.engine.search import Search, diagnose
from moorage.engine.select_node import smallest_name
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.preemption import EXPLAIN, PREEMPTION, PreemptionReport
from moorage.framework.profile import Profile
from moorage.framework.runner import PostFilterOutcome, PreFilterOutcome, run_pre_enqueue
from moorage.framework.status import Code, Status
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of every plugin about one pod.

    Parameters
    ----------
    pre_enqueue
        The first PreEnqueue answer that is not Success; no other field is filled in then.
    pre_filter
        Outcome of PreFilter.
    filter
        Node to the first failing Filter plugin's status, nominated pods counted; passing nodes
        are absent.
    excluded
        Nodes PreFilter left out, sorted.
    by_plugin
        Filter plugin to node to status, each asked on its own without nominated pods, for every
        node that was not excluded; failures only.
    feasible
        Names of the feasible nodes, sorted; only the nominated node when the pod fits there.
    nominated_shortcut
        Whether the pod fits its nominated node and others would pass too.
    score_skipped
        Score plugins whose PreScore answered Skip, sorted.
    scores
        All scores, in the order of `feasible`; None when no node is feasible.
    winners
        Nodes with the greatest total, sorted.
    diagnosis
        Why no node took the pod, without the PostFilter part; None when a node took the pod.
    post_filter
        Outcome of PostFilter; None when a node took the pod or there are no PostFilter plugins.
    preemption
        Report of preemption; None when preemption was not reached.
    state
        The cycle state of the attempt.
    """

    pre_enqueue: Status | None = None
    pre_filter: PreFilterOutcome | None = None
    filter: Mapping[str, Status] = {}
    excluded: tuple[str, ...] = ()
    by_plugin: Mapping[str, Mapping[str, Status]] = {}
    feasible: tuple[str, ...] = ()
    nominated_shortcut: bool = False
    score_skipped: tuple[str, ...] = ()
    scores: ScoreTable | None = None
    winners: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    post_filter: PostFilterOutcome | None = None
    preemption: PreemptionReport | None = None
    state: CycleState = msgspec.field(default_factory=CycleState)


def evaluate(profile: Profile, snapshot: Snapshot, pod: PodInfo) -> Evaluation:
    """Ask every plugin about one pod against the unchanged cluster.

    Raises
    ------
    CycleError
        A plugin answered Error.
    """
    gate = run_pre_enqueue(profile, pod.pod)
    if not gate.ok:
        return Evaluation(pre_enqueue=gate)
    cycle = Cycle(profile, snapshot, smallest_name, reuse=False)
    attempt = cycle.begin(pod)
    state, search = attempt.state, cycle.search(attempt)
    outcome = search.pre_filter
    if outcome.status.rejected:
        diagnosis = diagnose(search)
        found = Evaluation(pre_filter=outcome, diagnosis=diagnosis, state=state)
        return _with_post_filter(found, cycle, search)
    candidates = attempt.candidates(outcome.node_names)
    full = search.answers.filter_view(candidates)
    feasible = _feasible(search, candidates, full)
    scores = _scores(attempt, feasible)
    passing = int(full.passed.sum())
    found = Evaluation(
        pre_filter=outcome,
        filter=_failures(search, candidates, full),
        excluded=_excluded(snapshot, candidates),
        by_plugin=_by_plugin(attempt, candidates),
        feasible=feasible,
        nominated_shortcut=search.nominated_row is not None and passing > 1,
        score_skipped=tuple(sorted(_skipped(profile, state))) if feasible else (),
        scores=scores,
        winners=_winners(feasible, scores),
        diagnosis=None if feasible else diagnose(search),
        state=state,
    )
    return found if feasible else _with_post_filter(found, cycle, search)


def _with_post_filter(found: Evaluation, cycle: Cycle, search: Search) -> Evaluation:
    if not cycle.profile.post_filters:
        return found
    state = search.attempt.state
    state.write(EXPLAIN, True)
    return msgspec.structs.replace(
        found, post_filter=cycle.post_filter(search), preemption=state.find(PREEMPTION)
    )


def _feasible(search: Search, candidates: NodeView, full: FilterResults) -> tuple[str, ...]:
    names = search.attempt.snapshot.names
    if search.nominated_row is not None:
        return (names[search.nominated_row],)
    rows = candidates.row_numbers()[full.passed]
    return tuple(sorted((names[int(row)] for row in rows), key=str.encode))


def _failures(search: Search, candidates: NodeView, filtered: FilterResults) -> dict[str, Status]:
    profile, names = search.attempt.profile, search.attempt.snapshot.names
    found: dict[str, Status] = {}
    for view, judged in ((candidates, filtered), (search.view, search.filtered)):
        rows = view.row_numbers()
        for position in np.flatnonzero(~judged.passed):
            name = names[int(rows[position])]
            found.setdefault(name, judged.status(profile, int(position)))
    return found


def _excluded(snapshot: Snapshot, candidates: NodeView) -> tuple[str, ...]:
    inside = {int(row) for row in candidates.row_numbers()}
    outside = (name for row, name in enumerate(snapshot.names) if row not in inside)
    return tuple(sorted(outside, key=str.encode))


def _by_plugin(attempt: Attempt, view: NodeView) -> dict[str, dict[str, Status]]:
    reasons, rows, names = (
        attempt.profile.handle.reasons,
        view.row_numbers(),
        attempt.snapshot.names,
    )
    found: dict[str, dict[str, Status]] = {}
    for forms in attempt.profile.filter_forms:
        if forms.name in attempt.state.skip_filter:
            continue
        answer = ask_filter(attempt, forms, view)
        if answer is None:
            continue
        failing = np.flatnonzero(answer.code_n)
        if len(failing):
            found[forms.name] = {
                names[int(rows[i])]: Status(
                    Code(int(answer.code_n[i])), reasons.reasons(int(answer.reason_n[i]))
                )
                for i in failing
            }
    return found


def _scores(attempt: Attempt, feasible: tuple[str, ...]) -> ScoreTable | None:
    if not feasible:
        return None
    rows = [attempt.snapshot.row_of(name) for name in feasible]
    return run_scores(attempt, attempt.snapshot.rows([row for row in rows if row is not None]))


def _skipped(profile: Profile, state: CycleState) -> set[str]:
    return {plugin.name for plugin in profile.scores if plugin.name in state.skip_score}


def _winners(feasible: tuple[str, ...], scores: ScoreTable | None) -> tuple[str, ...]:
    if scores is None:
        return ()
    best = np.flatnonzero(scores.total_n == scores.total_n.max())
    return tuple(feasible[int(i)] for i in best)


__all__ = ["CycleError", "Evaluation", "evaluate"]

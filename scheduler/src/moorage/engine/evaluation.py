"""Every plugin's answer about one pod against the present cluster: to explain, and for conformance.

A search of the cycle gives what an attempt finds, an inquiry what each plugin says by itself. No
answer is reused, so tests compare the cycle's cache with an evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.inquiry import Inquiry, inquire
from moorage.engine.scoring import ScoreTable
from moorage.engine.search import Search, diagnose
from moorage.engine.select_node import smallest_name
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.points import PreFilterOutcome
from moorage.framework.preemption import EXPLAIN, PREEMPTION, PreemptionReport
from moorage.framework.profile import Profile
from moorage.framework.runner import PostFilterOutcome, run_pre_enqueue
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
    search = cycle.search(cycle.begin(pod))
    outcome, state = search.pre_filter, search.attempt.state
    if outcome.status.rejected:
        evaluation = Evaluation(pre_filter=outcome, diagnosis=diagnose(search), state=state)
        return _with_post_filter(evaluation, cycle, search)
    inquiry = inquire(profile, snapshot, pod)
    candidates = search.attempt.candidates(outcome.node_names)
    feasible = _feasible(search, inquiry)
    rows = snapshot.table.rows_of(feasible)
    scores = inquiry.scores(np.array(rows, np.int64))
    evaluation = Evaluation(
        pre_filter=outcome,
        filter=_failures(search, inquiry, candidates),
        excluded=_excluded(snapshot, candidates),
        by_plugin=_by_plugin(inquiry, candidates),
        feasible=feasible,
        nominated_shortcut=search.nominated_row is not None and len(inquiry.feasible) > 1,
        score_skipped=tuple(sorted(_skipped(inquiry.attempt))) if feasible else (),
        scores=scores,
        winners=_winners(feasible, scores),
        diagnosis=None if feasible else diagnose(search),
        state=state,
    )
    return evaluation if feasible else _with_post_filter(evaluation, cycle, search)


def _with_post_filter(evaluation: Evaluation, cycle: Cycle, search: Search) -> Evaluation:
    if not cycle.profile.post_filters:
        return evaluation
    state = search.attempt.state
    state.write(EXPLAIN, True)
    return msgspec.structs.replace(
        evaluation, post_filter=cycle.post_filter(search), preemption=state.find(PREEMPTION)
    )


def _feasible(search: Search, inquiry: Inquiry) -> tuple[str, ...]:
    names, own = inquiry.snapshot.names, search.nominated_row
    rows = inquiry.feasible.tolist() if own is None else [own]
    return tuple(sorted((names[row] for row in rows), key=str.encode))


def _failures(search: Search, inquiry: Inquiry, candidates: NodeView) -> dict[str, Status]:
    """Return the first rejection of each candidate, and of a nominated node that is none."""
    names, failures = inquiry.snapshot.names, dict[str, Status]()
    for row in candidates.row_numbers().tolist():
        status = inquiry.status_at(row)
        if not status.ok:
            failures[names[row]] = status
    rows = search.view.row_numbers()
    for position in np.flatnonzero(~search.filtered.passed).tolist():
        status = search.filtered.status(inquiry.attempt.profile, position)
        failures.setdefault(names[int(rows[position])], status)
    return failures


def _excluded(snapshot: Snapshot, candidates: NodeView) -> tuple[str, ...]:
    inside = frozenset(candidates.row_numbers().tolist())
    outside = (name for row, name in enumerate(snapshot.names) if row not in inside)
    return tuple(sorted(outside, key=str.encode))


def _by_plugin(inquiry: Inquiry, candidates: NodeView) -> dict[str, dict[str, Status]]:
    reasons, names = inquiry.attempt.profile.handle.reasons, inquiry.snapshot.names
    by_plugin = {
        plugin: {
            names[row]: Status(
                Code(answer.code_n.item(row)), reasons.reasons(answer.reason_n.item(row))
            )
            for row in candidates.row_numbers().tolist()
            if answer.code_n.item(row)
        }
        for plugin, answer in inquiry.answers.items()
    }
    return {plugin: failures for plugin, failures in by_plugin.items() if failures}


def _skipped(attempt: Attempt) -> set[str]:
    return {each.name for each in attempt.profile.scores if each.name in attempt.state.skip_score}


def _winners(feasible: tuple[str, ...], scores: ScoreTable | None) -> tuple[str, ...]:
    if scores is None:
        return ()
    best = np.flatnonzero(scores.total_n == scores.total_n.max())
    return tuple(feasible[int(i)] for i in best)


__all__ = ["CycleError", "Evaluation", "evaluate"]

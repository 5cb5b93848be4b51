"""PodTopologySpread: spreads matching pods evenly over zones, nodes or other domains.

This module holds the extension points. `constraints` compiles the constraints of a pod, `defaults`
adds constraints to pods without constraints, `layout` finds the domains, and `skew` computes how
uneven the domains are.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/podtopologyspread``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.config.plugin_args import PodTopologySpreadArgs
from moorage.framework.capabilities import Capabilities, Skips, Victims
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PreFilterResult, ScoreArray
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    CodeArray,
    FilterAnswer,
    Status,
    error,
)
from moorage.framework.subjects import Subject
from moorage.framework.what_if import RowCounts
from moorage.plugins.nodes.terms import BoolArray, matches_node
from moorage.plugins.pod_hints import holds_place
from moorage.plugins.spread.constraints import SPREAD, SYSTEM_DEFAULTS, Constraint, Constraints
from moorage.plugins.spread.defaults import DefaultConstraints
from moorage.plugins.spread.layout import Layouts
from moorage.plugins.spread.skew import (
    KEY_MISSING,
    TOO_SKEWED,
    TOO_SOON,
    HardSkew,
    SoftSkew,
    answer_of_codes,
    normalized,
)
from moorage.plugins.spread.skews_by_row import Skews, SkewsByRow, codes_beside
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.shape import NODE_AFFINITY, TOLERATIONS
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

REASON: Final = "node(s) didn't match pod topology spread constraints"
REASON_LABEL: Final = f"{REASON} (missing required label)"
REASON_NOMINATED: Final = "node(s) didn't satisfy nominated pods' topology spread constraints"


_PRE_FILTER: StateKey[Skews] = StateKey("PreFilterPodTopologySpread")
_PRE_SCORE: StateKey[SoftSkew] = StateKey("PreScorePodTopologySpread")


class PodTopologySpread:
    """PreFilter (with AddPod and RemovePod), Filter, PreScore and Score plugin."""

    name = "PodTopologySpread"

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._snapshot = handle.snapshot
        self._evictions = handle.evictions
        self._system = args.defaulting_type == "System"
        written = SYSTEM_DEFAULTS if self._system else args.default_constraints
        self._defaults = DefaultConstraints(written, handle.snapshot.listers)
        self._layouts = Layouts(handle.snapshot)
        reason = handle.reasons.intern(REASON)
        self._reason_nominated = handle.reasons.intern(REASON_NOMINATED)
        self._reasons = (
            (TOO_SKEWED, reason),
            (KEY_MISSING, handle.reasons.intern(REASON_LABEL)),
            (TOO_SOON, reason),
        )

    def capabilities(self) -> Capabilities:
        """Declare which pods PreFilter skips."""
        return Capabilities(
            skips_spec=self.skips_spec,
            counts_nominated=True,
            nominated_need=self.nominated_need,
            filter_counts=self.filter_counts,
            rejects_about=Subject.SPREAD,
        )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Count matching pods by domain; skip pods without hard constraints.

        Notes
        -----
        Upstream counts nominated pods on their own node only. A preemptor whose peers wait for
        their victims elsewhere would so find its own node too full, and evict once more.
        """
        constraints = self._constraints(pod)
        if constraints.hard_error is not None:
            text = f"obtaining pod's hard topology spread constraints: {constraints.hard_error}"
            return None, error(text)
        closed_n = self._closed(pod, snapshot) if snapshot.any_nominated_spreads else None
        if not constraints.hard:
            if closed_n is None:
                return None, SKIP
            state.write(_PRE_FILTER, Skews(None, None, closed_n))
            return None, SUCCESS
        layout = self._layouts.layout_of(pod, constraints.hard, require_all=True)
        placed = HardSkew.current_skew(constraints.hard, layout)
        beside = (
            placed.beside(pod, snapshot.nominated_before(pod)) if snapshot.nominations else None
        )
        leaving = self._evicted_soon(snapshot)
        in_trials = None
        if leaving:
            in_trials = placed.without(pod, leaving), beside and beside.without(pod, leaving)
        state.write(_PRE_FILTER, Skews(placed, beside, closed_n, in_trials))
        return None, SUCCESS

    def _evicted_soon(self, snapshot: Snapshot) -> list[tuple[int, PodInfo]]:
        """Return the pods whose eviction is decided and not shown yet, each with its row.

        Upstream counts these pods until their deletion is seen. A preemptor that is tried between
        the evictions of another one would find too many pods in a domain, and evict more of them.
        """
        requested = self._evictions.requested
        if not requested or not snapshot.nominated_everywhere:
            return []
        pods = []
        for uid in requested:
            info, name = snapshot.table.pod_info(uid), snapshot.table.node_of_pod(uid)
            row = None if name is None else snapshot.row_of(name)
            if info is not None and row is not None and not info.pod.metadata.deletion_timestamp:
                pods.append((row, info))
        return pods

    def _closed(self, pod: PodInfo, snapshot: Snapshot) -> BoolArray | None:
        """Return bool, (n,): rows where the pod would take its place from a nominated pod.

        A pod of lower priority that a hard spread counts, and that has no such spread, could go to
        the domain of a nominated pod. That pod would no longer fit there, and evict again.
        """
        nominated = [
            (row, other)
            for row, other in snapshot.nominated_before(pod)
            if other.priority > pod.priority and other.namespace == pod.namespace
        ]
        closed: BoolArray | None = None
        for _, rows, skew in self._skews_of(nominated):
            more = skew.closed_rows(rows, pod.pod.metadata.labels)
            if more is not None:
                closed = more if closed is None else closed | more
        return closed

    def _skews_of(
        self, nominated: Sequence[tuple[int, PodInfo]]
    ) -> Iterator[tuple[PodInfo, Sequence[int], HardSkew]]:
        """Yield a nominated pod of each hard spread, the rows of all such pods, and their skew.

        The skew counts all nominated pods on their rows.
        """
        alike: dict[tuple[int, int, int], list[int]] = {}
        first: dict[tuple[int, int, int], PodInfo] = {}
        for row, other in nominated:
            part = other.part(SPREAD)
            if part.value.hard:
                key = (part.id, other.part(NODE_AFFINITY).id, other.part(TOLERATIONS).id)
                alike.setdefault(key, []).append(row)
                first.setdefault(key, other)
        for key, rows in alike.items():
            other = first[key]
            hard = other.part(SPREAD).value.hard
            layout = self._layouts.layout_of(other, hard, require_all=True)
            skew = HardSkew.current_skew(hard, layout)
            yield other, rows, skew.beside(other, nominated) or skew

    def nominated_need(self, pod: PodInfo, candidates: Sequence[Victims]) -> Sequence[bool]:
        """Return whether nominated pods exceed their skew without the victims of each candidate.

        They are placed by then, and the pod and the other members of its group are not: all victims
        leave at once, and the group comes last if they leave late.
        """
        snapshot = self._snapshot
        own = self._members_on_trial(pod)
        nominated = [each for each in snapshot.nominated_before(pod) if each[1].uid not in own]
        gone = [*self._evicted_soon(snapshot), *own.values()]
        skews = [
            (other, rows, skew.without(other, gone))
            for other, rows, skew in self._skews_of(nominated)
        ]
        return [
            any(
                skew.without(
                    other, [each for each in victims if not self._leaves(each[1])]
                ).is_broken(rows)
                for other, rows, skew in skews
            )
            for victims in candidates
        ]

    def _members_on_trial(self, pod: PodInfo) -> dict[str, tuple[int, PodInfo]]:
        """Return the members of a pod's group that have a node on trial or at Permit, by uid.

        Each comes with its row.
        """
        snapshot = self._snapshot
        key = snapshot.groups.key_of(pod.pod)
        on_rows: dict[str, tuple[int, PodInfo]] = {}
        for uid in () if key is None else snapshot.groups.members(key).assumed:
            info, name = snapshot.table.pod_info(uid), snapshot.table.node_of_pod(uid)
            row = None if name is None else snapshot.row_of(name)
            if info is not None and row is not None:
                on_rows[uid] = row, info
        return on_rows

    def skips_spec(self, pod: PodInfo) -> Skips:
        """Skip a pod without a hard constraint as long as no nominated pod has one."""
        own = pod.part(SPREAD).value
        is_hard = self._defaults.any_hard
        if own.explicit:
            is_hard = own.hard_error is not None or bool(own.hard)
        return False if is_hard else _no_nominated_spreads

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, *, row: int) -> None:
        """Add a pod on a row to the counts.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin did not run.
        """
        self._move(state, pod, added, row=row, step=+1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, *, row: int) -> None:
        """Remove a pod on a row from the counts.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin did not run.
        """
        self._move(state, pod, removed, row=row, step=-1)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows that lack a key, or whose domain would exceed the maximum skew.

        A row must pass with the pods nominated first, and without them. A row that passes only with
        them is pending: the row takes the pod once these pods are placed, and no pod has to go.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        skews = state.read(_PRE_FILTER)
        return self._unless_closed(skews, view, self._by_own(skews, view))

    def filter_counts(
        self, state: CycleState, pod: PodInfo, view: NodeView, ranked: RankedPods
    ) -> RowCounts:
        """Return the counts of domains by which `filter` judges rows.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        skews = state.read(_PRE_FILTER)

        def judge(code_n: CodeArray | None) -> FilterAnswer | None:
            answer = None if code_n is None else answer_of_codes(code_n, self._reasons)
            return self._unless_closed(skews, view, answer)

        if skews.in_trials is not None:
            skews = Skews(*skews.in_trials, skews.closed_n)
        by_row = SkewsByRow(
            skews,
            pod,
            view,
            ranked,
            moves_terminating=not self._snapshot.nominated_everywhere,
            judge=judge,
        )
        by_row.leave_out(self._evicted_soon(self._snapshot))
        return by_row

    def _unless_closed(
        self, skews: Skews, view: NodeView, answer: FilterAnswer | None
    ) -> FilterAnswer | None:
        """Return the answer of the pod's own constraints, and reject the other rows if closed."""
        if skews.closed_n is None:
            return answer
        closed_n = view.take_rows(skews.closed_n)
        code_n = closed_n.astype(np.uint8) * np.uint8(Code.UNSCHEDULABLE)
        reason_n = closed_n.astype(np.int32) * np.int32(self._reason_nominated)
        if answer is not None:
            failed_n = answer.code_n != 0
            code_n = np.where(failed_n, answer.code_n, code_n)
            reason_n = np.where(failed_n, answer.reason_n, reason_n)
        return FilterAnswer(code_n, reason_n) if code_n.any() else None

    def _by_own(self, skews: Skews, view: NodeView) -> FilterAnswer | None:
        if skews.placed is None:
            return None
        placed = self._judge(skews.placed, view)
        if skews.beside is None:
            return placed
        beside = self._judge(skews.beside, view)
        if placed is None:
            return beside
        beside_n = np.zeros_like(placed.code_n) if beside is None else beside.code_n
        return answer_of_codes(codes_beside(placed.code_n, beside_n), self._reasons)

    def _judge(self, skew: HardSkew, view: NodeView) -> FilterAnswer | None:
        if len(view) != 1:
            return skew.judge(view, self._reasons)
        code = skew.judge_row(int(view.row_numbers()[0]))
        return answer_of_codes(np.array([code], np.uint8), self._reasons) if code else None

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Count matching pods by domain; skip pods without soft constraints."""
        constraints = self._constraints(pod)
        if constraints.soft_error is not None:
            text = "obtaining pod's soft topology spread constraints"
            return error(f"calculating preScoreState: {text}: {constraints.soft_error}")
        if not constraints.soft:
            return SKIP
        require_all = constraints.explicit or not self._system
        layout = self._layouts.layout_of(pod, constraints.soft, require_all=require_all)
        state.write(_PRE_SCORE, SoftSkew(self._snapshot, constraints.soft, layout, feasible))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Sum the weighted counts of matching pods in each row's domains.

        Raises
        ------
        StateMissingError
            PreScore of this plugin is not enabled.
        """
        del pod
        return state.read(_PRE_SCORE).score(view)

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Reverse the scores: fewer matching pods score higher; rows that lack a key score 0."""
        del pod
        return normalized(raw_n, state.read(_PRE_SCORE).ignored_n)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new, deleted and changed pods and nodes.

        kube-scheduler does not hear that a counted pod begins to terminate. Of other updates than
        of labels and tolerations, only this one is looked at.
        """
        pod = Action.ADD | Action.DELETE | Action.UPDATE
        node = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        # The selector of a default constraint depends on the pod's owner, too.
        agree = not self._defaults.any_hard
        return (
            EventRegistration(
                ClusterEvent(Resource.POD, pod),
                self._pod_hint,
                _concerned,
                replicas_agree=agree,
            ),
            EventRegistration(
                ClusterEvent(Resource.NODE, node), self._node_hint, replicas_agree=agree
            ),
        )

    def _constraints(self, pod: PodInfo) -> Constraints:
        own = pod.part(SPREAD).value
        return own if own.explicit else self._defaults.constraints_of(pod)

    def _move(
        self, state: CycleState, pod: PodInfo, other: PodInfo, *, row: int, step: int
    ) -> None:
        skews = state.read(_PRE_FILTER)
        if skews.in_trials is not None:
            skews = Skews(*skews.in_trials, skews.closed_n)
            state.write(_PRE_FILTER, skews)
        if self._leaves(other):
            # A terminating pod is not counted. Upstream lowers the count all the same when it tries
            # a node without the pod, so it evicts others next to pods that leave anyway.
            return
        placed = skews.placed and skews.placed.moving(pod, other, row, step)
        if placed is not None:
            beside = skews.beside and skews.beside.moving(pod, other, row, step)
            state.write(_PRE_FILTER, Skews(placed, beside, skews.closed_n))

    def _leaves(self, pod: PodInfo) -> bool:
        """Whether trials do not count a pod, because it leaves anyway."""
        if not self._snapshot.nominated_everywhere:
            return False
        return bool(pod.pod.metadata.deletion_timestamp) or pod.uid in self._evictions.requested

    # -- hints ---------------------------------------------------------------------------------

    def _hard_of(self, waiting: Pod) -> Sequence[Constraint]:
        found = self._constraints(info_of(waiting))
        if found.hard_error is not None:
            raise ValueError(found.hard_error)
        return found.hard

    def _pod_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        versions = [version for version in (old, new) if isinstance(version, Pod)]
        constraints = self._hard_of(waiting)
        if self._snapshot.nominated_everywhere and (
            not constraints
            or self._snapshot.any_nominated_spreads
            or any(_was_nominated(each, waiting) for each in versions)
        ):
            return True  # a nominated pod keeps the pod away, or kept it away until now
        if not all(_involved(version, waiting) for version in versions):
            return False
        if len(versions) == 1:
            labels = versions[0].metadata.labels
            return any(each.selector.matches(labels) for each in constraints)
        before, after = versions
        if (
            after.uid == waiting.uid
            and before.spec.tolerations != after.spec.tolerations
            and any(each.honor_taints for each in constraints)
        ):
            return True
        old_labels, new_labels = before.metadata.labels, after.metadata.labels
        if _begins_to_terminate(before, after):
            return any(each.selector.matches(old_labels) for each in constraints)
        return old_labels != new_labels and any(
            each.selector.matches(old_labels) != each.selector.matches(new_labels)
            for each in constraints
        )

    def _node_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        constraints = self._hard_of(waiting)
        before = old if isinstance(old, Node) else None
        after = new if isinstance(new, Node) else None
        had = before is not None and _has_keys(before.metadata.labels, constraints)
        has = after is not None and _has_keys(after.metadata.labels, constraints)
        if before is None or after is None:
            return had or has
        if had != has:
            return True
        return has and (
            before.spec.taints != after.spec.taints
            or _is_affine(waiting, before) != _is_affine(waiting, after)
            or any(
                before.metadata.labels.get(each.key) != after.metadata.labels.get(each.key)
                for each in constraints
            )
        )


def _was_nominated(other: Pod, waiting: Pod) -> bool:
    """Whether another pod waits, or waited, for its victims."""
    return bool(other.status.nominated_node_name) and other.uid != waiting.uid


def _no_nominated_spreads(snapshot: Snapshot) -> bool:
    """Whether no nominated pod has a hard spread of its own, which could keep others away."""
    return not snapshot.any_nominated_spreads


def _involved(other: Pod, waiting: Pod) -> bool:
    """Whether a pod may count for a waiting pod: itself, or a placed pod of its namespace."""
    if other.uid == waiting.uid:
        return True
    return holds_place(other) and other.namespace == waiting.namespace


def _begins_to_terminate(before: Pod, after: Pod) -> bool:
    """Whether a pod is deleted but still there: it no longer counts."""
    return bool(after.metadata.deletion_timestamp and not before.metadata.deletion_timestamp)


def _concerned(old: object | None, new: object | None) -> Sequence[Pod] | None:
    """Return None, for any pod, where an event can change a count or a toleration."""
    if not (isinstance(old, Pod) and isinstance(new, Pod)):
        return None
    if old.metadata.labels != new.metadata.labels or _begins_to_terminate(old, new):
        return None
    return [new] if old.spec.tolerations != new.spec.tolerations else []


def _is_affine(waiting: Pod, node: Node) -> bool:
    """Whether a node fulfils the node selector and affinity of the waiting pod."""
    return matches_node(NODE_AFFINITY.part_of(waiting).value, node)


def _has_keys(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(each.key in labels for each in constraints)

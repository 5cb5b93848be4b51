"""NodeAffinity: nodeSelector and node affinity of the pod, and added affinity of the profile.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodeaffinity`` and
``component-helpers/scheduling/corev1/nodeaffinity``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.meta import NodeSelector
from moorage.api.node import Node
from moorage.api.pod import Pod, PreferredSchedulingTerm
from moorage.api.selectors import (
    NodeMatcher,
    compile_node_selector,
    compile_node_selector_term,
)
from moorage.base.errors import ConfigError
from moorage.config.plugin_args import NodeAffinityArgs, validate_node_affinity_args
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PreFilterResult, ScoreArray
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    Status,
    answer_where,
    error,
    unresolvable,
)
from moorage.framework.subjects import Subject
from moorage.plugins.answers import memo_of, normalize_to_max
from moorage.plugins.nodes.terms import (
    RequiredNodes,
    SelectorQuestion,
    TermQuestion,
    matches_node,
    term_question,
)
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_AFFINITY, NodeAffinitySpec
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

REASON_POD: Final = "node(s) didn't match Pod's node affinity/selector"
REASON_ADDED: Final = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT: Final = "pod affinity terms conflict"

_NODE_NAME: Final = "metadata.name"


class _Demands(RequiredNodes):
    """The required node affinity of a pod, and the nodes that it names."""

    __slots__ = ("names", "present")

    def __init__(self, spec: NodeAffinitySpec) -> None:
        super().__init__(spec)
        self.present = spec.node_selector is not None or spec.required is not None
        self.names = None if spec.required is None else _names_named_by(spec.required)


class _Wishes:
    """Preferred terms with their weights, or the fault of an invalid term."""

    __slots__ = ("_terms", "error")

    def __init__(self, preferred: Sequence[PreferredSchedulingTerm]) -> None:
        self.error: str | None = None
        self._terms: list[tuple[int, TermQuestion]] = []
        for index, wish in enumerate(preferred):
            term = compile_node_selector_term(wish.preference) if wish.weight else None
            if term is None:
                continue
            if term.error is None:
                self._terms.append((wish.weight, term_question(term)))
            elif self.error is None:
                self.error = f"[{index}]: {term.error}"

    def add_to(self, total_n: ScoreArray, snapshot: Snapshot, view: NodeView) -> None:
        """Add the weight of each term to the rows where it holds."""
        for weight, term in self._terms:
            held = term.holds(snapshot, view)
            total_n += weight if held is None else held * np.int64(weight)


class NodeAffinity:
    """PreFilter, Filter, PreScore and Score plugin.

    Its Filter and Score work the same with and without their Pre-points.

    Raises
    ------
    ConfigError
        The added affinity is invalid.
    """

    name = "NodeAffinity"
    capabilities = Capabilities(
        filter_reads=Reads.NODE,
        score_reads=Reads.NODE,
        shape_parts=(NODE_AFFINITY,),
        rejects_about=Subject.NODE_AFFINITY,
    )

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        faults = validate_node_affinity_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._snapshot = handle.snapshot
        self._pod_reason = handle.reasons.intern(REASON_POD)
        self._added_reason = handle.reasons.intern(REASON_ADDED)
        affinity = args.added_affinity
        required, preferred = None, None
        if affinity is not None:
            required = affinity.required_during_scheduling_ignored_during_execution
            preferred = affinity.preferred_during_scheduling_ignored_during_execution
        self._added_matcher: NodeMatcher | None = None
        self._added: SelectorQuestion | None = None
        if required is not None:
            self._added_matcher = compile_node_selector(required)
            self._added = SelectorQuestion(self._added_matcher)
        self._added_wishes = _Wishes(preferred) if preferred else None
        self._wishes_key = (self, "wishes")

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip pods without required terms; restrict the search to nodes that the terms name."""
        del state, snapshot
        demands = memo_of(pod.part(NODE_AFFINITY), self, _Demands)
        if not demands.present and self._added is None:
            return None, SKIP
        if demands.names is None:
            return None, SUCCESS
        if not demands.names:
            return None, unresolvable(REASON_CONFLICT)
        return PreFilterResult(demands.names), SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows that fail the added affinity, then rows that fail the pod's affinity."""
        del state
        own = memo_of(pod.part(NODE_AFFINITY), self, _Demands).hold(self._snapshot, view)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        answer = None if own is None else answer_where(~own, code, self._pod_reason)
        if self._added is None:
            return answer
        added = self._added.holds(self._snapshot, view)
        if added.all():
            return answer
        if answer is None:
            return answer_where(~added, code, self._added_reason)
        return FilterAnswer(
            np.where(added, answer.code_n, np.uint8(code)),
            np.where(added, answer.reason_n, np.int32(self._added_reason)),
        )

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Skip when neither pod nor profile has preferred terms; fail on invalid terms."""
        del state, feasible
        part = pod.part(NODE_AFFINITY)
        if part.value.preferred is None:
            return SKIP if self._added_wishes is None else SUCCESS
        wishes = self._wishes(pod)
        return SUCCESS if wishes.error is None else error(wishes.error)

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Sum the weights of the preferred terms that each row fulfils.

        Raises
        ------
        ValueError
            A preferred term is invalid, and PreScore, which would report the fault, is not enabled.
        """
        del state
        wishes = self._wishes(pod)
        if wishes.error is not None:
            raise ValueError(wishes.error)
        total = np.zeros(len(view), np.int64)
        wishes.add_to(total, self._snapshot, view)
        if self._added_wishes is not None:
            self._added_wishes.add_to(total, self._snapshot, view)
        return total

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Scale so that the best row has 100."""
        del state, pod
        return normalize_to_max(raw_n)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register matching nodes that are new or relabelled."""
        event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (EventRegistration(event, self._node_hint, replicas_agree=True),)

    def _wishes(self, pod: PodInfo) -> _Wishes:
        return memo_of(
            pod.part(NODE_AFFINITY), self._wishes_key, lambda spec: _Wishes(spec.preferred or ())
        )

    def _node_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        assert isinstance(new, Node)
        added = self._added_matcher
        if added is not None and not added.matches_node(new.metadata.labels, new.name):
            return False
        spec = NODE_AFFINITY.part_of(waiting).value
        if not matches_node(spec, new):
            return False
        return not (isinstance(old, Node) and matches_node(spec, old))


def _names_named_by(required: NodeSelector) -> frozenset[str] | None:
    """Return the node names that the terms allow; None when a term allows any name.

    Only ``In`` on ``metadata.name`` counts, as written. Filter still checks the whole selector.
    """
    terms = required.node_selector_terms
    if not terms:
        return None
    allowed: set[str] = set()
    for term in terms:
        names: set[str] | None = None
        for field in term.match_fields:
            if field.key == _NODE_NAME and field.operator == "In":
                values = set(field.values)
                names = values if names is None else names & values
        if names is None:
            return None
        allowed |= names
    return frozenset(allowed)

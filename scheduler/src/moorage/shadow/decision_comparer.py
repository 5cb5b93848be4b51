"""The configuration next to the real scheduler: each binding is decided about on the state before.

All pods are where they really are. Nothing is assumed: after a comparison the real binding counts.
Bindings come in the order of the decisions (`replay`). Where that order is not known, a difference
is no difference: it is counted as not comparable. A difference is kept open for a moment, since a
binding that is seen later may have been decided about first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec

from moorage.api.pod import Pod, volume_claims
from moorage.base.clock import rfc3339_micro
from moorage.engine.decision import Decision
from moorage.engine.decision import Outcome as Decided
from moorage.framework.runner import run_pre_enqueue
from moorage.shadow.comparison import Comparison, Outcome
from moorage.shadow.deciding import Decider, Preference, Why
from moorage.shadow.group_orders import GroupOrders
from moorage.shadow.moments import MOMENT_NS, Agreement, Binding, Moments
from moorage.shadow.queue_order import QueueOrder, SortKey
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.state.lifecycle import PodState
from moorage.virtual.deciding_half import ClusterInputs, DecidingHalf

OnComparison = Callable[[Comparison], None]

_OVERTOOK: Final = "a pod before it in the queue may have a node that was not seen yet"
_OTHER_ORDER: Final = "the order of its decision and that of another pod is not known"
_NODE_CHANGED: Final = "a node changed at about the same time"
_TOO_MUCH: Final = "too much changed between its decision and its binding"
_MEMBER: Final = "it is a member of a group, which is decided about as a whole"
_MOMENT_BEFORE: Final = "both agree on the state of a moment before"


class _Open(msgspec.Struct):
    """A difference that may still be explained; `at_ns` is when it was found.

    Parameters
    ----------
    group
        The group whose members are compared together, once all of them have a node; None for a
        pod on its own, and once that is done.
    """

    comparison: Comparison
    binding: Binding
    at_ns: int
    group: GroupKey | None = None


class DecisionComparer:
    """Compares each decision of the real scheduler with that of the configuration.

    Parameters
    ----------
    inputs
        The configuration and its plugins; its objects are those of the first lists.
    report
        Takes every comparison, once.

    Attributes
    ----------
    half
        The deciding half over the cluster as it is.
    decider
        Decides about one pod.
    moments
        The changes of the last moment.
    order
        The pods without a node.
    """

    def __init__(self, inputs: ClusterInputs, report: OnComparison) -> None:
        preference = Preference()
        self.half: DecidingHalf = inputs.fill(tie_break=preference)
        core = self.half.core
        self.decider = Decider(core.cycles, core.snapshot, preference)
        self.moments = Moments(core.snapshot)
        self.order = QueueOrder()
        self._group_orders = GroupOrders(self.decider, core.snapshot)
        self._report = report
        self._open: deque[_Open] = deque()
        # Claims -> when they changed, wall-clock ns.
        self._claims: dict[tuple[str, str, str], int] = {}
        # What makes decisions uncertain for a moment -> when it was seen last, wall-clock ns.
        self._uncertain: dict[str, int] = {}

    @property
    def shadow_now_ns(self) -> int:
        """Wall-clock time, nanoseconds since the Unix epoch."""
        return self.half.clock.now_ns()

    def serves(self, pod: Pod) -> bool:
        """Whether the configuration has a profile for a pod."""
        return pod.spec.scheduler_name in self.half.core.profiles

    # --- what is seen ---------------------------------------------------------------------------

    def begin_comparing(self) -> None:
        """Begin anew: what the first lists showed is no change."""
        self.moments = Moments(self.half.core.snapshot)
        self._claims.clear()
        self._uncertain.clear()

    def appeared(self, pod: Pod) -> None:
        """Note that a pod without a node appeared; the ingest has it."""
        self.order.appear(pod, at_ns=self.shadow_now_ns, sort_key=self._sort_key(pod))

    def _sort_key(self, pod: Pod) -> SortKey | None:
        """Return the order in which a pod is popped; None where it is not known."""
        core = self.half.core
        if not self.serves(pod) or was_rejected(pod) or pod.spec.scheduling_gates:
            return None
        gated = core.queue.lifecycle.state(pod.uid) is PodState.GATED
        if gated or self._group_of(pod) is not None:
            return None
        # All profiles of a scheduler have the same QueueSort plugin.
        return core.profiles[pod.spec.scheduler_name].queue_sort.sort_key

    def claim_changed(self, kind: str, namespace: str, name: str) -> None:
        """Note that a volume claim or a device claim changed."""
        self._claims[kind, namespace, name] = self.shadow_now_ns

    def claim_gone(self, kind: str, namespace: str, name: str) -> None:
        """Forget a claim."""
        self._claims.pop((kind, namespace, name), None)

    def node_changed(self) -> None:
        """Note that a node came, left, or changed in what decisions depend on."""
        self.uncertain(_NODE_CHANGED)

    def uncertain(self, why: str) -> None:
        """Note that decisions of about now may rest on another state than the one that is seen."""
        self._uncertain[why] = self.shadow_now_ns
        for case in self._open:
            self._excuse(case, why)

    def binding_shown(self, binding: Binding) -> None:
        """Note a binding in the moment when the watch shows it."""
        group = self._group_of(binding.pod.pod)
        for case in self._open:
            if group is not None and group == self._group_of(case.binding.pod.pod):
                continue
            if binding.turn.rank < case.binding.rank and not case.binding.turn.surely_before(
                binding.turn
            ):
                self._excuse(case, _OTHER_ORDER)

    def bound(self, binding: Binding, *, overtook: bool = False) -> None:
        """Compare the binding of a pod, before the binding is taken in.

        Parameters
        ----------
        overtook
            Whether a pod that was popped before may have a node that was not seen yet.
        """
        if self.serves(binding.pod.pod):
            comparison = self._compared(binding, overtook)
            if comparison.differs:
                group = self._group_of(binding.pod.pod)
                self._open.append(_Open(comparison, binding, self.shadow_now_ns, group))
            else:
                self._report(comparison)
        self.moments.bound(binding, self.shadow_now_ns)

    def unseen(self, pod: Pod) -> None:
        """Count a pod that had a node when it was first seen."""
        why = "it had a node when it was first seen"
        self._report(self._not_comparable(pod, pod.spec.node_name, why))

    def since_ns(self, pod: Pod) -> int:
        """Return when a pod without a node was first seen, wall-clock nanoseconds."""
        turn = self.order.turn_of(pod.uid)
        return self.shadow_now_ns if turn is None else turn.since_ns

    def close(self, *, every: bool = False) -> None:
        """Report the differences that nothing has explained within a moment.

        Parameters
        ----------
        every
            Whether younger differences are reported as well, since nothing more is watched.
        """
        self._compare_groups(every=every)
        while self._open and (every or self.shadow_now_ns - self._open[0].at_ns >= MOMENT_NS):
            case = self._open.popleft()
            if self.shadow_now_ns - case.at_ns < MOMENT_NS and self._may_be_overtaken(case.binding):
                self._excuse(case, _OTHER_ORDER)
            self._report(case.comparison)

    def _compare_groups(self, *, every: bool) -> None:
        """Compare the members of groups that differ one by one, once all of them have a node."""
        groups, now_ns = self.half.core.snapshot.groups, self.shadow_now_ns
        cases: dict[GroupKey, list[_Open]] = {}
        for case in self._open:
            if case.group is not None:
                cases.setdefault(case.group, []).append(case)
        for key, open_cases in cases.items():
            is_due = every or now_ns - open_cases[0].at_ns >= MOMENT_NS
            if is_due or not groups.members(key).waiting:
                self._compare_group(key, open_cases)

    def _compare_group(self, key: GroupKey, cases: list[_Open]) -> None:
        """Say for some members whether any order of the group leads to their real nodes."""
        first = cases[0].binding
        members = self.moments.bindings_of(self._members_of(key), first)
        cycle = self.half.core.cycles[first.pod.pod.spec.scheduler_name]
        others = None
        if self._group_orders.may_go_anywhere(key, cycle) and self.moments.is_alone(members):
            others = self._group_orders.compare(members)
        for case in cases:
            case.group = None
            pod, node = case.binding.pod.pod, case.binding.node
            if case.comparison.outcome is Outcome.NOT_COMPARABLE:
                continue
            if others is None:
                self._excuse(case, _MEMBER)
            elif other := others.get(pod.uid):
                case.comparison = self._comparison(
                    pod, Outcome.OTHER_NODE, node, shadow=other.node, why=other.why
                )
            else:
                case.comparison = self._comparison(pod, Outcome.EQUAL, node, shadow=node)

    def _group_of(self, pod: Pod) -> GroupKey | None:
        return self.half.core.snapshot.groups.key_of(pod)

    def _members_of(self, key: GroupKey | None) -> frozenset[str]:
        """Return the uids of a group's members."""
        if key is None:
            return frozenset()
        return frozenset(self.half.core.snapshot.groups.members(key).pods)

    def _may_be_overtaken(self, binding: Binding) -> bool:
        """Whether a pod without a node may have been decided about before a binding."""
        members = self._members_of(self._group_of(binding.pod.pod))
        return any(
            turn.rank < binding.rank and not binding.turn.surely_before(turn)
            for turn in self.order.turns(without=members)
        )

    # --- how they compare -----------------------------------------------------------------------

    def _compared(self, binding: Binding, overtook: bool) -> Comparison:
        pod, node = binding.pod, binding.node
        obstacle = self._obstacle(binding)
        if obstacle:
            return self._not_comparable(pod.pod, node, obstacle)
        held = self.gated_reason(pod.pod)
        if held is not None:
            return self._comparison(pod.pod, Outcome.NOT_PLACED, node, why=held)
        decision = self.decider.decide(pod, node)
        if isinstance(decision, str):
            return self._comparison(pod.pod, Outcome.NOT_PLACED, node, why=Why(reason=decision))
        if decision.node_name == node:
            outcome = Outcome.SAME if decision.ties <= 1 else Outcome.EQUAL
            return self._comparison(pod.pod, outcome, node, shadow=node)
        if self.decider.takes_from_elsewhere(pod, node):
            return self._comparison(pod.pod, Outcome.EQUAL, node, shadow=decision.node_name)
        return self._different(binding, decision, overtook)

    def _different(self, binding: Binding, decision: Decision, overtook: bool) -> Comparison:
        pod, node, shadow = binding.pod, binding.node, decision.node_name
        doubt = _OVERTOOK if overtook else self._doubt(binding, {node, shadow})
        if doubt:
            return self._not_comparable(pod.pod, node, doubt)
        agreement = self.moments.agreement(partial(self.decider.may_take, pod, node), binding)
        if agreement is Agreement.NOW:
            return self._comparison(pod.pod, Outcome.EQUAL, node, shadow=shadow)
        if agreement is not Agreement.NEVER:
            why = _MOMENT_BEFORE if agreement is Agreement.MAYBE else _TOO_MUCH
            return self._not_comparable(pod.pod, node, why)
        outcome = Outcome.OTHER_NODE if decision.outcome is Decided.BIND else Outcome.NOT_PLACED
        told = self.decider.why_not(pod, node, decision)
        return self._comparison(pod.pod, outcome, node, shadow=shadow, why=told)

    def _doubt(self, binding: Binding, nodes: set[str]) -> str:
        """Return why the state of the real decision is not known; "" if nothing speaks for it."""
        for why, at_ns in self._uncertain.items():
            if at_ns >= binding.at_ns - MOMENT_NS:
                return why
        if self._nominated_there(binding.pod, nodes):
            return "another pod is nominated for a node in question, and nominations are seen late"
        members = self._members_of(self._group_of(binding.pod.pod))
        return _OTHER_ORDER if self.moments.other_order(binding, members) else ""

    def _nominated_there(self, pod: PodInfo, nodes: set[str]) -> bool:
        """Whether another pod is nominated for one of the nodes."""
        nominator = self.half.core.queue.nominator
        return any(
            each.uid != pod.uid for name in nodes if name for each in nominator.for_node(name)
        )

    def _obstacle(self, binding: Binding) -> str:
        """Return why the state that the real scheduler decided on is not known; "" if it is."""
        if self.half.core.snapshot.row_of(binding.node) is None:
            return "its node was not known yet"
        for claim in _claims_of(binding.pod.pod):
            if self._claims.get(claim, 0) > binding.turn.since_ns:
                return f"a {claim[0]} of it was changed before the binding, maybe for its node"
        return ""

    def gated_reason(self, pod: Pod) -> Why | None:
        """Return why a PreEnqueue plugin keeps a pod out of the queue; None if none does."""
        core = self.half.core
        if core.queue.lifecycle.state(pod.uid) is not PodState.GATED:
            return None
        status = run_pre_enqueue(core.profiles[pod.spec.scheduler_name], pod)
        if status.ok:
            return None
        told = f"{status.plugin} keeps it out of the queue: {status.message}"
        return Why(reason=told, plugin=status.plugin, rejections={status.plugin: status.reasons})

    def _excuse(self, case: _Open, why: str) -> None:
        case.comparison = msgspec.structs.replace(
            case.comparison,
            outcome=Outcome.NOT_COMPARABLE,
            plugin="",
            reason=why,
            scores=(),
            rejections={},
        )

    # --- comparisons ----------------------------------------------------------------------------

    def _not_comparable(self, pod: Pod, node: str, why: str) -> Comparison:
        return self._comparison(pod, Outcome.NOT_COMPARABLE, node, why=Why(reason=why))

    def _comparison(
        self, pod: Pod, outcome: Outcome, node: str, *, shadow: str = "", why: Why | None = None
    ) -> Comparison:
        why = Why(reason="") if why is None else why
        return Comparison(
            time=rfc3339_micro(self.shadow_now_ns),
            pod=pod.full_name,
            about="binding",
            outcome=outcome,
            real_node=node,
            shadow_node=shadow,
            plugin=why.plugin,
            reason=why.reason,
            scores=why.scores,
            rejections=why.rejections,
        )


def was_rejected(pod: Pod) -> bool:
    """Whether a pod was rejected before: it is then queued anew at an unknown time."""
    return any(
        each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions
    )


def _claims_of(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield the claims that a pod refers to: kind, namespace, name."""
    for namespace, name in volume_claims(pod):
        yield "PersistentVolumeClaim", namespace, name
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            yield "ResourceClaim", pod.namespace, claim.resource_claim_name
    for made in pod.status.resource_claim_statuses:
        if made.resource_claim_name:
            yield "ResourceClaim", pod.namespace, made.resource_claim_name

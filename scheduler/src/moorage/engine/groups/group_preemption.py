"""Making room for a group as a whole, after an attempt that found too few places.

A plugin of the point PostFilter of groups chooses the pods to evict. It tries the group without
them: in 1.36 the whole attempt is made again for every pod that may stay. In 1.37 the members are
placed once, and then pods are put back as long as every member keeps its place.

Rules: kubernetes v1.36 and v1.37 ``pkg/scheduler/schedule_one_podgroup.go`` and
``pkg/scheduler/framework/preemption/podgrouppreemption.go``; scheduling spec, preemption section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from moorage.api.pod import Pod
from moorage.config.gate_table import TOPOLOGY_AWARE, V1_36
from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Nomination, Outcome
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, Member
from moorage.engine.groups.trying import MembersOnTrial
from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import GroupWhatIf
from moorage.framework.status import SUCCESS, Status, unschedulable
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.trial import Trial
from moorage.snapshot.view import NodeView

NO_PLUGIN: Final = (
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
CONSTRAINED: Final = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


class Attempts(Protocol):
    """Attempts for a group that evict no pod."""

    def decide_without(
        self, key: GroupKey, pods: Sequence[PodInfo], uids: Collection[str] = ()
    ) -> GroupDecision:
        """Decide as if some pods on nodes were gone."""
        ...

    def decide_at(self, pods: Sequence[PodInfo], places: Mapping[str, str]) -> GroupDecision:
        """Decide with members on the nodes that are named for their uids, in that order."""
        ...

    def try_without(self, pods: Sequence[PodInfo], uids: Collection[str]) -> Status:
        """Try the group in one order as if some pods on nodes were gone."""
        ...


class GroupPreemption:
    """Asks which pods leave for a group, and amends the decision about it.

    Parameters
    ----------
    cycle
        The cycle of the members' profile.
    attempts
        The attempts for the group.
    """

    def __init__(self, cycle: Cycle, attempts: Attempts) -> None:
        self._cycle = cycle
        self._snapshot = cycle.snapshot
        self._attempts = attempts
        gates = cycle.profile.handle.gates
        self._of_1_37 = gates.version != V1_36
        self._gate = gates(TOPOLOGY_AWARE)
        self._plugins = cycle.profile.group_post_filters

    def preempted(
        self, key: GroupKey, pods: Sequence[PodInfo], decision: GroupDecision
    ) -> GroupDecision:
        """Return the decision with the pods to evict, or with the reason why none is.

        Parameters
        ----------
        key, pods
            The group, and its members without a node.
        decision
            The rejection of the group.
        """
        if not self._of_1_37:
            victims, status = self._victims(key, pods, _Again(self._attempts, pods))
            return self._of_old(key, pods, decision, victims=victims, status=status)
        with self._snapshot.trial() as trial:
            what_if = _InPlace(self._cycle, trial, lambda: self._attempts.decide_without(key, pods))
            victims, status = self._victims(key, pods, what_if)
        if not status.ok:
            return _broken(decision, status) or _with_preemption(decision, status.message)
        if not victims and what_if.places:
            # Every pod may stay: the members only had to be placed otherwise.
            again = self._attempts.decide_at(pods, what_if.places)
            if again.outcome is GroupOutcome.PLACED:
                return again
        decision = msgspec.structs.replace(
            _with_preemption(decision, status.message),
            outcome=GroupOutcome.PREEMPTING,
            victims=tuple(victims),
            waits=not (victims or what_if.places),
        )
        return _nominated(decision, pods, what_if.places)

    def _of_old(
        self,
        key: GroupKey,
        pods: Sequence[PodInfo],
        decision: GroupDecision,
        *,
        victims: Sequence[Pod],
        status: Status,
    ) -> GroupDecision:
        """Amend a decision as kube-scheduler 1.36 does."""
        if not status.ok:
            reasons = (*decision.status.reasons, *status.reasons)
            return _broken(decision, status) or msgspec.structs.replace(
                decision, status=unschedulable(*reasons)
            )
        decision = msgspec.structs.replace(
            decision, outcome=GroupOutcome.PREEMPTING, victims=tuple(victims)
        )
        if not self._snapshot.nominated_everywhere:
            return decision  # as kube-scheduler 1.36, for its recordings
        # The members are nominated to the room: otherwise the pods that controllers make in place
        # of the victims take it, and the group preempts again.
        after = self._attempts.decide_without(key, pods, [victim.uid for victim in victims])
        tried = [each.decision.pod for each in decision.members]
        return _nominated(decision, tried, after.places)

    def _victims(
        self, key: GroupKey, pods: Sequence[PodInfo], what_if: GroupWhatIf
    ) -> tuple[Sequence[Pod], Status]:
        """Return the pods to evict, and Success; or why no pod is evicted."""
        terms = self._snapshot.groups.source.terms_of(key)
        if not self._plugins:
            return (), unschedulable(NO_PLUGIN)
        bound = terms is not None and terms.topology_key and (self._gate or key.source)
        if bound and not self._of_1_37:
            return (), unschedulable(CONSTRAINED)
        plugin = self._plugins[0]
        try:
            return plugin.post_filter_group(terms, pods, what_if)
        except Exception as problem:
            return (), contained(plugin.name, "PostFilter", problem)


def _broken(decision: GroupDecision, status: Status) -> GroupDecision | None:
    if status.rejected:
        return None
    return msgspec.structs.replace(decision, outcome=GroupOutcome.BROKEN, status=status)


def _with_preemption(decision: GroupDecision, text: str) -> GroupDecision:
    """Add to the message of a group what preemption came to, in the words of 1.37."""
    message = f"{decision.status.message}; pod group preemption: {text}"
    return msgspec.structs.replace(decision, status=unschedulable(message))


def _nominated(
    decision: GroupDecision, pods: Sequence[PodInfo], places: Mapping[str, str]
) -> GroupDecision:
    """Nominate the members of a rejected attempt to their places after the evictions."""
    members = {each.decision.pod.uid: each for each in decision.members}
    nominated = []
    for pod in pods:
        member = members.get(pod.uid) or Member(
            Decision(outcome=Outcome.REJECT, pod=pod, state=CycleState(), status=decision.status)
        )
        node_name = places.get(pod.uid, member.node_name)
        if member.node_name:
            member = msgspec.structs.replace(member, node_name=node_name)
        elif node_name:
            own = msgspec.structs.replace(member.decision, nomination=Nomination(node_name))
            member = msgspec.structs.replace(member, decision=own)
        nominated.append(member)
    return msgspec.structs.replace(decision, members=tuple(nominated))


class _Again:
    """`GroupWhatIf` of 1.36: the attempt is made again for each pod that is put back."""

    def __init__(self, attempts: Attempts, pods: Sequence[PodInfo]) -> None:
        self._attempts = attempts
        self._pods = pods
        self._gone: frozenset[str] = frozenset()

    def without(self, uids: Collection[str]) -> Status:
        """Try the whole group again as if these pods were gone; nothing is evicted for it."""
        self._gone = frozenset(uids)
        return self._attempts.try_without(self._pods, self._gone)

    def put_back(self, pods: Sequence[PodInfo]) -> bool:
        """Put pods back for whom the whole group fits all the same."""
        gone = self._gone.difference(pod.uid for pod in pods)
        fits = self._attempts.try_without(self._pods, gone).ok
        if fits:
            self._gone = gone
        return fits


class _InPlace:
    """`GroupWhatIf` of 1.37: members are placed once, and pods are put back next to them.

    Parameters
    ----------
    cycle
        The cycle of the members' profile.
    trial
        Takes the changes back at its end.
    decide
        Decides about the group without evictions.

    Attributes
    ----------
    places
        The nodes of the members by uid, in the order in which they were placed.
    """

    def __init__(self, cycle: Cycle, trial: Trial, decide: Callable[[], GroupDecision]) -> None:
        self._cycle = cycle
        self._snapshot = cycle.snapshot
        self._trial = trial
        self._decide = decide
        self._rows: dict[str, int] = {}
        self._members: Sequence[tuple[PodInfo, NodeView]] = ()
        self.places: Mapping[str, str] = {}

    def without(self, uids: Collection[str]) -> Status:
        """Place the whole group as if these pods were gone; nothing is evicted for it."""
        self._trial.undo()
        table = self._snapshot.table
        for uid in uids:
            row = table.row_of(table.node_of_pod(uid) or "")
            assert row is not None, f"pod {uid} is on no node"
            self._rows[uid] = row
            self._trial.remove_pod(uid)
        decision = self._decide()
        placed = decision.outcome is GroupOutcome.PLACED
        self.places = decision.places if placed else {}
        self._members = [
            (each.decision.pod, self._snapshot.rows(table.rows_of([each.node_name])))
            for each in decision.members
            if each.node_name
        ]
        return SUCCESS if placed else decision.status

    def put_back(self, pods: Sequence[PodInfo]) -> bool:
        """Put pods back if every member keeps its place next to them."""
        for pod in pods:
            self._trial.add_pod(pod, self._rows[pod.uid])
        if self._members_fit():
            return True
        for pod in pods:
            self._trial.remove_pod(pod.uid)
        return False

    def _members_fit(self) -> bool:
        """Whether each member fits on its node, next to the members before it."""
        with MembersOnTrial(self._cycle.profile, self._snapshot) as tried:
            for number, (pod, here) in enumerate(self._members, start=1):
                tried.add(self._cycle.decide(pod, Scope(within=here, post_filter=False)))
                if tried.placed < number:
                    return False
        return True

"""The decision of a pod group's attempt, and its meaning for each member."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import Enum

import msgspec

from moorage.api.pod import Pod
from moorage.engine.decision import CLEAR_NOMINATION, Decision, Nomination, Outcome, uids_of
from moorage.engine.packing.bounds import Shortage
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.snapshot.pod_info import PodInfo

GROUP_UNSCHEDULABLE = "pod group is unschedulable"
NO_PODS = "no pods were schedulable"
WAITS_FOR_PREEMPTION = "pod group is waiting for preemption to complete"


class GroupOutcome(Enum):
    """The outcome of the attempt of a group."""

    PLACED = "placed"
    """Enough members have a place: the members with a place are bound, the others wait."""
    REJECTED = "rejected"
    """Too few members have a place: no member is bound."""
    PREEMPTING = "preempting"
    """Enough members would have a place after evictions: victims are evicted, places nominated."""
    BROKEN = "broken"
    """Something broke: every member is retried after backoff."""


class SearchEnd(Enum):
    """How the complete search for the places of a group ended."""

    PLACES = "places"
    """Places exist, and the plugins take them."""
    IMPOSSIBLE = "impossible"
    """The search proved that there are no places."""
    GAVE_UP = "gave up"
    """The search reached its limit, or the plugins rejected what it cannot express."""
    POSTPONED = "postponed"
    """Other pods wait, and searches have had their share of the time; another attempt searches."""


class SearchReport(msgspec.Struct, frozen=True, kw_only=True):
    """The complete search of one attempt; of several placements all together.

    Parameters
    ----------
    end
        How it ended.
    sets
        Number of sets of members that were looked at.
    rejections
        How often the plugins rejected places that it found.
    shortage
        What is short, where a sum or a count proved that there are no places on all nodes.
    """

    end: SearchEnd
    sets: int = 0
    rejections: int = 0
    shortage: Shortage | None = None


class Member(msgspec.Struct, frozen=True):
    """The outcome for one member.

    Parameters
    ----------
    decision
        The decision about the pod next to the earlier members.
    node_name
        Its place, by choice or by preemption; "" for none.
    permit
        Answer of Permit there: Success, or Wait while too few members have a place.
    """

    decision: Decision
    node_name: str = ""
    permit: Status = SUCCESS

    @property
    def preempts(self) -> bool:
        """Whether the place is free only after evictions."""
        return bool(self.node_name) and self.decision.outcome is not Outcome.BIND

    @property
    def nominated_to(self) -> str:
        """The node of its place, now or after the evictions; "" for none."""
        return self.node_name or place_of(self.decision)

    @property
    def broke(self) -> bool:
        """Whether the attempt for this member failed with an error."""
        return self.decision.outcome is Outcome.ERROR

    @property
    def message(self) -> str:
        """The reason why the member has no place, or why victims must leave."""
        return self.decision.message


class MemberOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The consequence for one member.

    Parameters
    ----------
    pod
        The pod.
    decision
        The decision to carry out; None when the pod goes back to the queue.
    status, diagnosis, message
        Why the pod goes back.
    nomination
        Change to its nomination; None leaves it alone.
    """

    pod: PodInfo
    decision: Decision | None = None
    status: Status = SUCCESS
    diagnosis: Diagnosis | None = None
    message: str = ""
    nomination: Nomination | None = CLEAR_NOMINATION


class PartOutcome(msgspec.Struct, frozen=True):
    """The outcome for a group of a composite group.

    Parameters
    ----------
    name, composite
        The group: a PodGroup or a composite group.
    status
        Success, or why it has no places.
    """

    name: str
    composite: bool
    status: Status


class GroupDecision(msgspec.Struct, frozen=True):
    """The outcome of one attempt of a group.

    Parameters
    ----------
    outcome
        How the attempt ended.
    status
        Success, or why not; `Status.message` is the text of the group's condition.
    members
        The outcome for each pod tried, in the order tried; fewer than the
        pods where the attempt failed or tried no pod.
    victims
        Pods to evict for the group as a whole, most important first.
    placement
        Name of the placement taken; "" where there is only one.
    preferred
        Whether the placement is a preferred one.
    detail
        Why the group fits in no placement, for people; "" where members say enough.
    generator
        The plugin that restricted the group to the placement: its events may cure a rejection too.
        "" for a group that may go anywhere.
    search
        The complete search; None where the attempt made none.
    waits
        Whether the group only waits for victims of an earlier attempt, or for nominated pods that
        are not placed yet: the nominations stand.
    parts
        The outcome for each group of a composite group.
    """

    outcome: GroupOutcome
    status: Status
    members: tuple[Member, ...] = ()
    victims: tuple[Pod, ...] = ()
    placement: str = ""
    preferred: bool = False
    detail: str = ""
    generator: str = ""
    search: SearchReport | None = None
    waits: bool = False
    parts: tuple[PartOutcome, ...] = ()

    @property
    def places(self) -> dict[str, str]:
        """The node of each member that has a place, by uid."""
        return {each.decision.pod.uid: each.node_name for each in self.members if each.node_name}

    @property
    def all_victims(self) -> tuple[Pod, ...]:
        """The pods that are evicted for the group, and for members with a place; each once."""
        own = [pod for each in self.members if each.preempts for pod in each.decision.victims]
        return tuple({pod.uid: pod for pod in (*self.victims, *own)}.values())

    def awaits_nominated(self, plugins: Collection[str]) -> bool:
        """Whether the members without a place get one as soon as nominated pods are placed.

        Parameters
        ----------
        plugins
            The plugins that count nominated pods on every node, and say so with the code Pending.
        """
        without = [each.decision.diagnosis for each in self.members if not each.node_name]
        return (
            self.outcome is GroupOutcome.REJECTED
            and bool(without)
            and all(each and not each.pending_plugins.isdisjoint(plugins) for each in without)
        )

    def outcomes(self, pods: Sequence[PodInfo]) -> Iterator[MemberOutcome]:
        """Yield the outcome for each pod of the attempt, in order."""
        members = {each.decision.pod.uid: each for each in self.members}
        for pod in pods:
            yield self._outcome(pod, members.get(pod.uid))

    def explanation(self, pods: Sequence[PodInfo]) -> str:
        """Name the pods of an attempt that have no place, and the reason; for people."""
        without = [each for each in self.members if not each.node_name]
        text = self.status.message
        if self.detail:
            return f"{text}: {self.detail}"
        if not self.members or self.outcome is GroupOutcome.BROKEN:
            return text
        if not without:
            return f"{text}: all {len(pods)} pods tried have a place, more are needed"
        first = without[0]
        others = f" and {len(without) - 1} more" if len(without) > 1 else ""
        return (
            f"{text}: {len(pods) - len(without)} of {len(pods)} pods tried have a place, "
            f"{first.decision.pod.key}{others} {'have' if others else 'has'} none: {first.message}"
        )

    def _outcome(self, pod: PodInfo, member: Member | None) -> MemberOutcome:
        if self.outcome is GroupOutcome.BROKEN:
            own = member is not None and member.broke
            text = member.message if member is not None and own else self.status.message
            return MemberOutcome(pod=pod, status=error(text), message=text)
        if member is None:
            diagnosis = None if not self.generator else self._restricted(Diagnosis(num_nodes=0))
            text = self.status.message
            return MemberOutcome(
                pod=pod,
                status=self.status,
                diagnosis=diagnosis,
                message=text,
                nomination=self._no_place,
            )
        if not member.node_name:
            return self._own_failure(member)
        if self.outcome is GroupOutcome.PLACED:
            return MemberOutcome(pod=pod, decision=member.decision)
        if self.outcome is GroupOutcome.PREEMPTING:
            if member.preempts:
                return self._own_failure(member)
            return MemberOutcome(
                pod=pod,
                status=self.status,
                message=self.status.message,
                nomination=self._nomination(member),
            )
        status = unschedulable(GROUP_UNSCHEDULABLE, *member.permit.reasons)
        return MemberOutcome(
            pod=pod, status=status, message=status.message, nomination=self._no_place
        )

    @property
    def _no_place(self) -> Nomination | None:
        """The change to the nomination of a member that gets none."""
        return None if self.waits else CLEAR_NOMINATION

    def _own_failure(self, member: Member) -> MemberOutcome:
        decision = member.decision
        diagnosis = decision.diagnosis
        return MemberOutcome(
            pod=decision.pod,
            status=decision.status,
            diagnosis=None if diagnosis is None else self._restricted(diagnosis),
            message=decision.message,
            nomination=self._nomination(member),
        )

    def _nomination(self, member: Member) -> Nomination | None:
        """Return the nomination of a member; its place may become free by others' victims."""
        if self.waits:
            return None
        if self.outcome is GroupOutcome.PREEMPTING and member.nominated_to:
            return Nomination(member.nominated_to, uids_of(self.all_victims))
        if self.outcome is GroupOutcome.REJECTED and member.decision.nomination is None:
            return CLEAR_NOMINATION  # no plugin looked for victims, and no other member has a place
        return member.decision.nomination

    def _restricted(self, diagnosis: Diagnosis) -> Diagnosis:
        """Count the plugin that restricted the nodes among the plugins that rejected a member."""
        if not self.generator:
            return diagnosis
        plugins = diagnosis.unschedulable_plugins | {self.generator}
        return msgspec.structs.replace(diagnosis, unschedulable_plugins=plugins)


def place_of(decision: Decision) -> str:
    """Return the chosen or nominated node of a decision; "" for none."""
    if decision.node_name or decision.outcome is not Outcome.REJECT:
        return decision.node_name
    return "" if decision.nomination is None else decision.nomination.node_name

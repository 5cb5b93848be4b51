"""The members of a group that were tried so far, each on its node in a trial of the snapshot.

A trial may not stay open while the scheduler awaits, because events change the same rows. So the
trial can be suspended: everything is undone, and later the members are put on their nodes again.
`apart` suspends it whenever an attempt with extenders awaits.

Rules: scheduling spec, cycle section 9 (kubernetes v1.36
``pkg/scheduler/schedule_one_podgroup.go``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

import msgspec

from moorage.engine.decision import CLEAR_NOMINATION, Decision, Outcome
from moorage.engine.groups.decision import (
    GROUP_UNSCHEDULABLE,
    NO_PODS,
    WAITS_FOR_PREEMPTION,
    GroupDecision,
    GroupOutcome,
    Member,
    place_of,
)
from moorage.engine.notes.attempt_note import AttemptNote
from moorage.framework.diagnosis import of_one_node
from moorage.framework.group import GROUP_PHASE, ON_TRIAL, GroupProgress
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    run_permit,
    run_placement_feasible,
    run_reserve,
    run_unreserve,
)
from moorage.framework.status import SUCCESS, Code, Status, error, unschedulable
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.trial import Trial


class ClusterMovedError(Exception):
    """A member's node or a node of the placement changed while extenders were asked."""


class Suspendable(Protocol):
    """Changes that can be taken back while others have their turn, and made again."""

    def suspend(self) -> None:
        """Take the changes back."""

    def resume(self) -> None:
        """Make the changes again."""


Steps: TypeAlias = Generator[Suspendable | None, None, GroupDecision]
"""An attempt that stops after each member and each try; it returns the decision.

After a member it yields the members on trial: whoever does something else meanwhile suspends and
resumes them. After a try it yields None, and the snapshot is as it was.
"""


class Mark(msgspec.Struct, frozen=True):
    """How far a trial has come: what it was before a member."""

    members: int
    placements: int
    outcome: GroupOutcome
    preempting: bool
    remaining: int
    feasible: Status


def take_all_steps(steps: Steps) -> GroupDecision:
    """Take every step at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            decision: GroupDecision = end.value
            return decision


class MembersOnTrial:
    """The members tried so far; use it in a `with` statement, which undoes everything at its end.

    Parameters
    ----------
    profile, snapshot
        The plugins, and the cluster that is changed on trial.
    bounded
        Whether the members are placed within some rows only. Rows have other numbers once a node
        comes or goes, so a bounded trial does not survive that.
    """

    def __init__(self, profile: Profile, snapshot: Snapshot, *, bounded: bool = False) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._groups = snapshot.groups
        self._bounded = bounded
        self._structure = snapshot.table.columns.structure
        self._members: list[Member] = []
        self._placements: list[tuple[Decision, str]] = []
        self._suspended: list[tuple[Decision, str]] = []
        self._preempting = False
        self._outcome = GroupOutcome.REJECTED
        self._key: GroupKey | None = None
        self._placed_before = self._remaining = 0
        self._feasible = SUCCESS
        self._gone: dict[str, list[tuple[PodInfo, int]]] = {}  # the victims on nodes, by preemptor
        self._trial: Trial | None = snapshot.trial()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.suspend()

    def begin(self, pods: Sequence[PodInfo]) -> bool:
        """Ask the plugins, before any member is tried, whether the group can be placed at all.

        Only in 1.37, where plugins say after each member whether the group may be placed. Otherwise
        Permit says so.
        """
        key = self._groups.key_of(pods[0].pod) if self._profile.group_feasibility else None
        if key is None or key.source:
            return True
        self._key, self._remaining = key, len(pods)
        self._placed_before = self._groups.members(key).placed
        return self._goes_on()

    def add(self, decision: Decision) -> bool:
        """Put a member on the node that was decided for it; False if no other is to be tried.

        A member that must wait until victims have left is put on its node too, without the victims.
        """
        member = self._placed(decision)
        self._members.append(member)
        if member.broke:
            self._outcome = GroupOutcome.BROKEN
            return False
        if self._key is not None:
            self._preempting = self._preempting or member.preempts
            self._remaining -= 1
            return self._goes_on()
        if member.preempts:
            self._preempting = True
        # Once enough members have a place, one that must wait for its victims holds all of them up,
        # whatever Permit says of it: it cannot be bound yet.
        enough = member.permit.ok or self._outcome is GroupOutcome.PLACED
        if member.node_name and enough:
            preempting = self._preempting
            self._outcome = GroupOutcome.PREEMPTING if preempting else GroupOutcome.PLACED
        return True

    def _goes_on(self) -> bool:
        """Ask the plugins whether the group may be placed; False if no further member helps."""
        assert self._key is not None, "the attempt of a group without a key"
        progress = GroupProgress(self._placed_before + self.placed, self._remaining)
        self._feasible = status = run_placement_feasible(self._profile, self._key, progress)
        self._outcome = GroupOutcome.REJECTED
        if status.ok and self.placed:
            self._outcome = GroupOutcome.PREEMPTING if self._preempting else GroupOutcome.PLACED
        elif not (status.ok or status.rejected or status.code is Code.WAIT):
            self._outcome = GroupOutcome.BROKEN
        return status.ok or status.code is Code.WAIT

    @property
    def placed(self) -> int:
        """Number of members with a place."""
        return len(self._placements)

    # -- going back ------------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """Number of members tried."""
        return len(self._members)

    @property
    def broken(self) -> bool:
        """Whether the attempt failed with an error."""
        return self._outcome is GroupOutcome.BROKEN

    def placed_after(self, number: int) -> int:
        """Return how many members have a place of those that were tried after so many others."""
        return sum(bool(each.node_name) for each in self._members[number:])

    def members_after(self, number: int) -> Sequence[Member]:
        """Return the members that were tried after so many others."""
        return self._members[number:]

    def back_to(self, number: int) -> list[Member]:
        """Take back all members but so many, the last one first, and return them."""
        taken = self._members[number:]
        del self._members[number:]
        for member in reversed(taken):
            if member.node_name:
                decision, node_name = self._placements.pop()
                self._unreserve(decision, node_name)
                self._open_trial.remove_pod(decision.pod.uid)
                for victim, row in self._gone.pop(decision.pod.uid):
                    self._open_trial.add_pod(victim, row)
        return taken

    def put_back(self, taken: Sequence[Member]) -> None:
        """Put members that `back_to` returned on their nodes again."""
        for member in taken:
            decision, row = member.decision, self._snapshot.row_of(member.node_name)
            if not member.node_name or row is None:
                self._members.append(member)
                continue
            self._hold(decision, member.node_name, row)
            reserved = run_reserve(self._profile, decision.state, decision.pod, member.node_name)
            assert reserved.ok, f"{decision.pod.key} was reserved before: {reserved.message}"
            self._members.append(member)

    def leave_out(self, taken: Sequence[Member], text: str) -> None:
        """Count members that `back_to` returned as members without a place, for this reason."""
        status = unschedulable(text)
        for member in taken:
            decision = member.decision
            if member.node_name:
                decision = msgspec.structs.replace(
                    decision,
                    outcome=Outcome.REJECT,
                    status=status,
                    node_name="",
                    victims=(),
                    diagnosis=None,
                    nomination=CLEAR_NOMINATION,
                )
            self._members.append(Member(decision))

    def end(self, *, complete: bool, status: Status = SUCCESS) -> None:
        """Say whether the members with a place are enough, whatever Permit says.

        A rejection has the given status if it is one, else a general one.
        """
        if not self.broken:
            self._feasible = status
            preempting = any(each.preempts for each in self._members)
            outcome = GroupOutcome.PREEMPTING if preempting else GroupOutcome.PLACED
            self._outcome = outcome if complete else GroupOutcome.REJECTED

    def group_decision(self) -> GroupDecision:
        """Return the decision about the group with the members tried so far."""
        status = unschedulable(GROUP_UNSCHEDULABLE)
        if self._outcome is GroupOutcome.BROKEN and self._members and self._members[-1].broke:
            text = f"failed to schedule other pod from a pod group: {self._members[-1].message}"
            status = error(text)
        elif self._outcome is GroupOutcome.BROKEN:
            status = error(f"failed to evaluate placement feasibility: {self._feasible.message}")
        elif self._outcome is GroupOutcome.REJECTED and self._feasible.reasons:
            status = unschedulable(*self._feasible.reasons)
        elif self._outcome is GroupOutcome.REJECTED and self._key is not None:
            status = unschedulable(NO_PODS)
        elif self._outcome is GroupOutcome.PLACED:
            status = SUCCESS
        elif self._outcome is GroupOutcome.PREEMPTING:
            status = unschedulable(GROUP_UNSCHEDULABLE, WAITS_FOR_PREEMPTION)
        return GroupDecision(self._outcome, status, tuple(self._members))

    # -- members that are decided ahead ----------------------------------------------------------

    def mark(self) -> Mark:
        """Return how far the trial has come, for `rewind`."""
        return Mark(
            len(self._members),
            len(self._placements),
            self._outcome,
            self._preempting,
            self._remaining,
            self._feasible,
        )

    def rewind(self, mark: Mark) -> None:
        """Forget the members since a mark; only while the trial is suspended."""
        assert self._trial is None, "members are forgotten while they are on nodes"
        del self._members[mark.members :], self._suspended[mark.placements :]
        self._outcome, self._preempting = mark.outcome, mark.preempting
        self._remaining, self._feasible = mark.remaining, mark.feasible

    def confirm(self, mark: Mark, note: AttemptNote | None) -> None:
        """Note the findings about the member after a mark, once extenders have confirmed it."""
        member = self._members[mark.members]
        decision = msgspec.structs.replace(member.decision, note=note)
        self._members[mark.members] = msgspec.structs.replace(member, decision=decision)

    # -- suspending ----------------------------------------------------------------------------

    def suspend(self) -> None:
        """Take every member off its node, the last one first, and undo the trial."""
        if self._trial is None:
            return
        for decision, node_name in reversed(self._placements):
            self._unreserve(decision, node_name)
        self._placements, self._suspended = [], self._placements
        self._trial.undo()
        self._trial = None

    def resume(self) -> None:
        """Put the members on their nodes again.

        Raises
        ------
        ClusterMovedError
            A node is gone, a member is no longer without a node, or a Reserve plugin refuses.
        """
        held, self._suspended = self._suspended, []
        if self._bounded and self._structure != self._snapshot.table.columns.structure:
            raise ClusterMovedError
        self._trial = self._snapshot.trial()
        for decision, node_name in held:
            row = self._snapshot.row_of(node_name)
            if row is None or self._snapshot.table.pod_info(decision.pod.uid) is not None:
                raise ClusterMovedError
            self._hold(decision, node_name, row)
            reserved = run_reserve(self._profile, decision.state, decision.pod, node_name)
            if not reserved.ok:
                raise ClusterMovedError

    # -- one member ----------------------------------------------------------------------------

    def _placed(self, decision: Decision) -> Member:
        node_name, pod, state = place_of(decision), decision.pod, decision.state
        row = self._snapshot.row_of(node_name) if node_name else None
        if row is None:
            return Member(decision)
        gone = self._hold(decision, node_name, row)
        status = run_reserve(self._profile, state, pod, node_name)
        if status.ok:
            permit = run_permit(self._profile, state, pod, node_name).status
            if permit.ok or permit.code is Code.WAIT:
                return Member(decision, node_name, permit)
            status = permit
        self._placements.pop()
        self._unreserve(decision, node_name)
        self._open_trial.remove_pod(pod.uid)
        for victim, its_row in gone:
            self._open_trial.add_pod(victim, its_row)
        diagnosis = of_one_node(node_name, status) if status.rejected else None
        return Member(
            msgspec.structs.replace(
                decision,
                outcome=Outcome.REJECT if status.rejected else Outcome.ERROR,
                status=status,
                node_name="",
                diagnosis=diagnosis,
                nomination=CLEAR_NOMINATION,
            )
        )

    @property
    def _open_trial(self) -> Trial:
        assert self._trial is not None, "a member was tried while the trial was suspended"
        return self._trial

    def _hold(self, decision: Decision, node_name: str, row: int) -> list[tuple[PodInfo, int]]:
        """Put a member on its node in place of its victims; return the victims and their rows.

        A member that comes later then finds the room that is left. It can neither count on what
        this member uses, nor evict further pods where the victims make enough room for both.
        """
        gone = list(self._victims_of(decision))
        for victim, _ in gone:
            self._open_trial.remove_pod(victim.uid)
        self._placements.append((decision, node_name))
        self._gone[decision.pod.uid] = gone
        self._open_trial.add_pod(decision.pod, row)
        self._groups.assume(decision.pod.uid)
        decision.state.write(GROUP_PHASE, ON_TRIAL)
        return gone

    def _victims_of(self, decision: Decision) -> Iterator[tuple[PodInfo, int]]:
        """Yield the victims of a member that are on nodes, each with its row."""
        if not self._snapshot.nominated_everywhere:
            return  # kube-scheduler leaves them on their nodes, and so do its recordings
        table = self._snapshot.table
        for victim in decision.victims:
            info, row = (
                table.pod_info(victim.uid),
                table.row_of(table.node_of_pod(victim.uid) or ""),
            )
            if info is not None and row is not None:
                yield info, row

    def _unreserve(self, decision: Decision, node_name: str) -> None:
        run_unreserve(self._profile, decision.state, decision.pod, node_name)
        self._groups.forget_pod(decision.pod.uid)
        decision.state.delete(GROUP_PHASE)


class Apart:
    """An attempt for one member; the members before it are off their nodes while it awaits.

    Parameters
    ----------
    asking
        The attempt.
    tried
        The members before it.
    """

    def __init__(self, asking: Awaitable[Decision], tried: MembersOnTrial) -> None:
        self._asking = asking
        self._tried = tried

    def __await__(self) -> Generator[Any, Any, Decision]:
        """Run the attempt; each time it awaits, suspend the trial until the loop comes back."""
        running = self._asking.__await__()
        sent: Any = None
        problem: BaseException | None = None
        while True:
            try:
                awaited = running.send(sent) if problem is None else running.throw(problem)
            except StopIteration as done:
                decision: Decision = done.value
                return decision
            self._tried.suspend()
            sent, problem = None, None
            try:
                sent = yield awaited
            except BaseException as raised:  # cancelled: the attempt learns of it, as it would
                problem = raised
            try:
                self._tried.resume()
            except ClusterMovedError:
                running.close()
                raise

"""Attempts of pod groups: gathers the members from the queue, decides, and carries the outcome out.

The first popped member takes the other members along, from any sub-queue. Either enough members are
assumed, reserved and permitted, in one step without an await; each member is then bound in a task
of its own. Or no member is assumed, and the group holds nothing while it waits.

Rules: scheduling spec, gang section A4 and cycle section 9 (kubernetes v1.36
``pkg/scheduler/schedule_one_podgroup.go``). Departures: no pod is evicted for a group that would
not fit in the freed room either; a Reserve that fails for real leaves no part of the group behind.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence

from moorage.base.aio import Arrivals, Hold
from moorage.base.no_names import NO_NAMES
from moorage.config.gate_table import V1_36
from moorage.engine.cycle import Cycle
from moorage.engine.decision import CLEAR_NOMINATION
from moorage.engine.groups.asking import AskingGroupCycle
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.groups.nominated_places import with_nominations
from moorage.engine.groups.places_search import SearchPauses
from moorage.engine.groups.room import all_rank_as_high, fits_at_most, judges_of_room
from moorage.engine.groups.trying import Steps
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.group import CARRIED_OUT, GROUP_PHASE
from moorage.framework.preemption import awaits_victims
from moorage.framework.profile import Profile
from moorage.framework.runner import run_group_gates
from moorage.framework.status import SUCCESS, Status, error
from moorage.service.attempts.attempt_log import decided, group_attempt_begins
from moorage.service.attempts.failure import FailureHandler
from moorage.service.attempts.skipping import Skipping
from moorage.service.attempts.traced import traced
from moorage.service.binding.binding_cycle import BindingCycles
from moorage.service.binding.evictions import Evicting
from moorage.service.core import Core
from moorage.service.groups.backfill import Backfill
from moorage.service.groups.group_status import GroupReports
from moorage.service.groups.group_turns import Turns
from moorage.service.groups.incomplete_groups import lack_of
from moorage.service.process.facts import Facts
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import info_of
from moorage.state.queued_pod import QueuedPod, member_order

_log = logging.getLogger(__name__)

_RESULTS = {
    GroupOutcome.PLACED: "scheduled",
    GroupOutcome.PREEMPTING: "waiting_on_preemption",
    GroupOutcome.REJECTED: "unschedulable",
    GroupOutcome.BROKEN: "error",
}
"""Outcomes as metrics name them."""
_LEFT = "the pod left its group while extenders were asked"


class GroupAttempts:
    """Runs the attempts of pods that belong to groups.

    Parameters
    ----------
    core
        The state and the cycles.
    binding_cycles, failures, evictor, facts
        Receives outcomes; the evictor is None where no pod is ever evicted.
    reports
        The groups' own status and Events; None where nothing is written.
    skipping
        Drops pods that need no attempt.
    backfill
        Holds room back for a group that waits for long; None where no profile asks for that.
    hold
        Keeps changes of the cluster back during an attempt that takes long; None where no attempt
        may be interrupted.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each part it drives
        self,
        core: Core,
        *,
        binding_cycles: BindingCycles,
        failures: FailureHandler,
        evictor: Evicting | None,
        reports: GroupReports | None,
        facts: Facts,
        skipping: Skipping,
        backfill: Backfill | None = None,
        hold: Hold | None = None,
    ) -> None:
        self._core = core
        self._turns = Turns(facts.group_attempts.meter_ns, hold, Arrivals().are_there)
        self._queue = core.queue
        self._groups = core.snapshot.groups
        pauses = SearchPauses(facts.group_attempts.meter_ns, lambda: core.queue.counts().active > 0)
        self._cycles = {
            name: GroupCycle(cycle, pauses=pauses) for name, cycle in core.cycles.items()
        }
        self._extended = {
            name: AskingGroupCycle(cycle) for name, cycle in core.extended_cycles.items()
        }
        self._binding_cycles = binding_cycles
        self._failures = failures
        self._evictor = evictor
        self._reports = reports
        self._facts = facts
        self._skipping = skipping
        self._backfill = backfill
        self._version = next(iter(core.profiles.values())).handle.gates.version
        self._one_by_one = {
            name for name, profile in core.profiles.items() if profile.handle.group_mode == "permit"
        }

    def takes(self, first: QueuedPod) -> bool:
        """Return whether a popped pod is tried together with its group.

        A pod is tried by itself if it has no group, or if its profile lets members wait for each
        other.
        """
        return self._groups.key_of(first.pod) is not None and first.profile not in self._one_by_one

    def would_complete(self, preemptor: QueuedPod) -> bool:
        """Whether pods may be evicted for a pod that is tried by itself.

        Members that let each other wait at Permit preempt one after another. Nothing is evicted for
        a group of which too few members would have a node all the same, also while the victims of
        other members stop: a node of theirs may be gone. True for any other pod.
        """
        key = self._groups.key_of(preemptor.pod)
        terms = None if key is None else self._groups.source.terms_of(key)
        if key is None or terms is None or not terms.gang:
            return True
        members = self._groups.members(key)
        missing = self._groups.missing_for(terms)
        others = [
            info_of(pod)
            for pod in members.waiting_pods()
            if pod.uid != preemptor.uid
            and pod.uid not in members.gated
            and not pod.metadata.deletion_timestamp
        ]
        if missing <= 1:
            return True
        if not self._cycles[preemptor.profile].would_fit([preemptor.info, *others], missing):
            return False
        snapshot, evictions = self._core.snapshot, self._core.evictions
        if not any(awaits_victims(snapshot, info, evictions) for info in others):
            # The other members may have been refused before, and the event that helps the group
            # may have woken this member alone.
            self._queue.activate([info.pod for info in others])
        return True

    def attempt(self, first: QueuedPod) -> Awaitable[None] | None:
        """Run the attempt of a popped pod's group.

        Returns
        -------
        Awaitable or None
            The rest of the attempt where extenders are asked, or where it takes long. No other
            attempt may start before it ends.
        """
        key = self._groups.key_of(first.pod)
        assert key is not None, f"pod {first.pod.full_name} has no group"
        # 1. Which members take part? A pod that cannot take part leaves the others where they are.
        if self._skipping.skips(first) or self._turned_away(first, key):
            if self._queue.companions is not None:
                self._queue.companions.pass_on(first.pod)
            return None
        if self._has_too_little_room(first, key):
            return None
        others = [entry for entry in self._others(first, key) if not self._skipping.skips(entry)]
        entries = [first, *(each for each in others if not self._turned_away(each, key))]
        version = V1_36 if key.source else self._version
        entries.sort(key=lambda each: member_order(each, version))
        facts = self._facts.group_attempts
        began_ns = facts.meter_ns()
        # 2. Do the members name one profile, and can the profile decide about them?
        cycle, problem = self._cycle_of(entries)
        if cycle is None:
            self._fail_all(entries, error(problem))
            facts.ended("error", first.profile, since_ns=began_ns)
            return None
        # 3. Where do the members go?
        group_attempt_begins(key.full_name, len(entries))
        asking = self._asking(key, entries)
        if asking is not None:
            return self._decide_in_turns(key, entries, asking, began_ns=began_ns)
        steps = self._deciding(cycle, key, entries)
        try:
            decision = self._turns.begun(steps)
        except Exception as broken:
            self._broke(key, entries, broken, began_ns=began_ns)
            return None
        if decision is None:
            return self._decide_in_turns(key, entries, self._turns.rest(steps), began_ns=began_ns)
        self._end(key, entries, decision, began_ns=began_ns)
        return None

    def _asking(
        self, key: GroupKey, entries: Sequence[QueuedPod]
    ) -> Awaitable[GroupDecision] | None:
        """Return the decision with extenders; None where no extender takes part."""
        extended = self._extended.get(entries[0].profile)
        return None if extended is None else extended.asking(key, [each.info for each in entries])

    async def _decide_in_turns(
        self,
        key: GroupKey,
        entries: list[QueuedPod],
        asking: Awaitable[GroupDecision],
        *,
        began_ns: int,
    ) -> None:
        """Decide with others' turns between; anew when members have left meanwhile."""
        profile, recorder = entries[0].profile, self._core.recorder
        try:
            # Extenders are asked for the group; the calls stand in the trace of its first member.
            with traced(None if recorder is None else recorder.traces, entries[0].uid):
                decision = await asking
            # From here on nothing is awaited, unless members have left.
            while gone := [each for each in entries if not self._is_waiting(key, each)]:
                self._fail_all(gone, error(_LEFT))
                left = [each for each in entries if each not in gone]
                if not left:
                    return
                entries, again = left, self._asking(key, left)
                if again is None:
                    decision = self._cycles[profile].decide_group(key, [each.info for each in left])
                else:
                    decision = await again
        except Exception as broken:
            self._broke(key, entries, broken, began_ns=began_ns)
        else:
            self._end(key, entries, decision, began_ns=began_ns)

    def _is_waiting(self, key: GroupKey, entry: QueuedPod) -> bool:
        """Return whether a member still exists, without a node, and is not being deleted."""
        members = self._groups.members(key)
        pod = members.pods.get(entry.uid)
        return entry.uid in members.waiting and not (pod and pod.metadata.deletion_timestamp)

    def _broke(
        self, key: GroupKey, entries: Sequence[QueuedPod], broken: Exception, *, began_ns: int
    ) -> None:
        _log.error("attempt for pod group %s broke", key.full_name, exc_info=broken)
        self._fail_all(entries, error(str(broken) or type(broken).__name__))
        self._facts.group_attempts.ended("error", entries[0].profile, since_ns=began_ns)

    def _end(
        self, key: GroupKey, entries: Sequence[QueuedPod], decision: GroupDecision, *, began_ns: int
    ) -> None:
        """Carry the members where they were decided to go, or back to the queue."""
        # In the order tried: a member may need what Reserve does for the members before it.
        ranks = {each.decision.pod.uid: rank for rank, each in enumerate(decision.members)}
        entries = sorted(entries, key=lambda each: ranks.get(each.uid, len(ranks)))
        facts, pods = self._facts.group_attempts, [entry.info for entry in entries]
        profile = self._core.profiles[entries[0].profile]
        decision = with_nominations(decision, self._groups.members(key), profile)
        took_ns = facts.decided(since_ns=began_ns)
        self._facts.groups.attempted(key, placed=decision.outcome is GroupOutcome.PLACED)
        self._evict(key, decision, entries)
        repeats = self._repeats(key, entries, decision)
        self._carry_out(profile, entries, decision, repeats=repeats, took_ns=took_ns)
        self._all_or_none(key)
        if self._backfill is not None:
            self._backfill.attempted(key, entries, decision.outcome)
        if self._reports is not None and not repeats:
            self._reports.report(key, decision, pods)
        facts.ended(_RESULTS[decision.outcome], profile.handle.profile_name, since_ns=began_ns)

    def _repeats(
        self, key: GroupKey, entries: Sequence[QueuedPod], decision: GroupDecision
    ) -> bool:
        """Whether the same members were rejected before, and only time has passed since.

        Members that had a place come back by backoff, because other ties may let the group fit.
        """
        rejected = decision.outcome is GroupOutcome.REJECTED
        uids = frozenset(each.uid for each in entries) if rejected else NO_NAMES
        same = self._groups.members(key).note_attempt(uids)
        return same and not any(each.has_news for each in entries)

    def _deciding(self, cycle: Cycle, key: GroupKey, entries: Sequence[QueuedPod]) -> Steps:
        """Decide within the nodes that are open to the group."""
        backfill, pods = self._backfill, [entry.info for entry in entries]
        within = None if backfill is None else backfill.open_to(entries, key)
        found = yield from self._cycles[cycle.profile.name].deciding(key, pods, within=within)
        if backfill is not None and within is not None and found.outcome is not GroupOutcome.PLACED:
            backfill.is_delayed(entries)
        return found

    # -- members -------------------------------------------------------------------------------

    def _others(self, first: QueuedPod, key: GroupKey) -> list[QueuedPod]:
        """Take the other members out of the queue, from wherever they wait."""
        entries: list[QueuedPod] = []
        for pod in self._groups.members(key).waiting_pods():
            if pod.uid != first.uid:
                entry = self._queue.pop_specific(pod)
                if entry is not None:
                    entries.append(entry)
        return entries

    def _has_too_little_room(self, first: QueuedPod, key: GroupKey) -> bool:
        """Return a member that an event woke, with its old reason, if the group cannot fit yet.

        A large job that ends pod by pod wakes every group with each pod. All but the last of these
        attempts are saved. A member that comes back by backoff is always tried.
        """
        cycle, terms = self._core.cycles.get(first.profile), self._groups.source.terms_of(key)
        if first.profile in self._core.hold_back_after_seconds:
            return False  # only a rejected attempt can make the group the head
        if cycle is None or terms is None:
            return False
        # An event that gives room must wake the member again, and its reason must name the room.
        # So the member is not returned unless its last attempt lacked room, too.
        if not first.unschedulable_plugins & judges_of_room(cycle.profile):
            return False
        members, infos = self._groups.members(key), [first.info]
        infos += [info_of(pod) for pod in members.waiting_pods() if pod.uid != first.uid]
        # Only an attempt gives up the nominations, which keep other pods from their nodes.
        if any(self._queue.nominator.node_of(info.pod.uid) for info in infos):
            return False
        missing = self._groups.missing_for(terms)
        if missing <= 0 or fits_at_most(cycle.snapshot, infos) >= missing:
            return False
        priority = max(terms.priority, *(info.priority for info in infos))
        if not all_rank_as_high(cycle.snapshot, priority):
            return False
        self._facts.attempts.dropped(first.uid)
        self._queue.add_unschedulable_if_not_present(first)
        return True

    def _turned_away(self, entry: QueuedPod, key: GroupKey) -> bool:
        """Return a member that a plugin does not let into the attempt, with its reason."""
        profile = self._core.profiles.get(entry.profile)
        status = SUCCESS if profile is None else run_group_gates(profile, entry.pod)
        if status.ok:
            return False
        self._facts.note_failure(entry.pod, status, status.message)
        self._facts.groups.attempted(key, placed=False)
        diagnosis = Diagnosis(
            num_nodes=self._core.snapshot.num_nodes,
            pre_filter_message=status.message,
            unschedulable_plugins=frozenset({status.plugin}),
        )
        known = diagnosis if status.rejected else None
        if not entry.has_news and entry.message == diagnosis.message:
            self._failures.repeat(entry, status, known, nomination=CLEAR_NOMINATION)
            return True
        self._failures.handle(
            entry, status, known, message=diagnosis.message, nomination=CLEAR_NOMINATION
        )
        terms, members = self._groups.source.terms_of(key), self._groups.members(key)
        # A lack of pods is reported once it lasts, not with each pod that arrives.
        if self._reports is not None and not (terms and lack_of(key, terms, members)):
            self._reports.turned_away(key, entry.pod, status)
        return True

    def _cycle_of(self, entries: Sequence[QueuedPod]) -> tuple[Cycle | None, str]:
        names = list(dict.fromkeys(entry.profile for entry in entries))
        if len(names) > 1:
            return None, (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{names[0]}" and "{names[1]}"'
            )
        cycle = self._core.cycles.get(names[0])
        if cycle is None:
            return None, f'profile not found for scheduler name "{names[0]}"'
        return cycle, ""

    # -- outcomes ------------------------------------------------------------------------------

    def _evict(
        self, key: GroupKey, decision_taken: GroupDecision, entries: Sequence[QueuedPod]
    ) -> None:
        """Start evictions before the pods go back, so that PreEnqueue knows of the evictions."""
        if self._evictor is None or decision_taken.outcome is not GroupOutcome.PREEMPTING:
            return
        preempting = [
            each.decision
            for each in decision_taken.members
            if each.preempts and each.decision.victims
        ]
        for decision in preempting:
            self._evictor.start(decision)
        terms = self._groups.source.terms_of(key)
        preemptors = [each.pod.uid for each in preempting]
        if decision_taken.victims and terms is not None:
            preemptors.append(terms.uid)
            self._evictor.start_for_group(
                terms.uid, [entry.pod for entry in entries], decision_taken.victims
            )
        places = [each.nominated_to for each in decision_taken.members if each.nominated_to]
        self._core.evictions.wait_together(
            key, preemptors, decision_taken.all_victims, places=places
        )

    def _record(
        self, entries: Sequence[QueuedPod], group_decision: GroupDecision, *, took_ns: int
    ) -> None:
        """Record the attempt of each member; a member of a rejected group is requeued."""
        recorder, histories = self._core.recorder, self._queue.lifecycle.histories
        if recorder is None:
            return
        members = {each.decision.pod.uid: each.decision for each in group_decision.members}
        for entry in entries:
            decision = members.get(entry.uid)
            if decision is None:
                if recorder.traces is not None:
                    recorder.traces.dropped(entry.uid)
            else:
                if recorder.traces is not None:
                    recorder.traces.decided(entry.uid, tuple)  # points belong to the whole group
                recorder.decided(entry, decision, histories, took_ns=took_ns)
                if group_decision.outcome is not GroupOutcome.PLACED:
                    recorder.ended(entry.uid, "requeued", group_decision.status.message)

    def _carry_out(
        self,
        profile: Profile,
        entries: Sequence[QueuedPod],
        decision: GroupDecision,
        *,
        repeats: bool,
        took_ns: int,
    ) -> None:
        pods = [entry.info for entry in entries]
        outcomes = list(zip(entries, decision.outcomes(pods), strict=True))
        why = decision.explanation(pods)
        self._record(entries, decision, took_ns=took_ns)
        for entry, outcome in outcomes:
            if outcome.decision is not None:
                self._facts.count_decision(outcome.decision)
                decided(outcome.decision)
                outcome.decision.state.write(GROUP_PHASE, CARRIED_OUT)
                self._binding_cycles.carry_out(profile, entry, outcome.decision)
        for entry, outcome in outcomes:
            if outcome.decision is None:
                # A member without a node waits for the events that may cure its rejection; once it
                # is popped, it takes the others along. A member that has no reason of its own
                # comes back by backoff: another order of ties may fit where no event comes.
                status, diagnosis = outcome.status, outcome.diagnosis
                if repeats:
                    self._facts.note_failure(entry.pod, status, entry.message)
                    self._failures.repeat(entry, status, diagnosis, nomination=outcome.nomination)
                    continue
                # A member with a place on trial says which other member has none, and every member
                # of a group that fits in no topology domain says so.
                rejected = decision.outcome is GroupOutcome.REJECTED
                of_group = rejected and (diagnosis is None or decision.detail)
                message = why if of_group else outcome.message
                self._facts.note_failure(entry.pod, status, message)
                self._failures.handle(
                    entry, status, diagnosis, message=message, nomination=outcome.nomination
                )

    def _all_or_none(self, key: GroupKey) -> None:
        """Turn away the members held at Permit if too few others passed Reserve."""
        terms, members = self._groups.source.terms_of(key), self._groups.members(key)
        if terms is None or not terms.gang or not self._groups.missing_for(terms):
            return
        share = terms.share(members.placed)
        text = f"only {share} pods of the group could be reserved{terms.succeeded_note}"
        for pod in members.assumed_pods():
            holders = self._core.profiles[pod.spec.scheduler_name].group_holders
            self._core.effects.reject(pod.uid, holders.get(key.source, ""), text)

    def _fail_all(self, entries: Sequence[QueuedPod], status: Status) -> None:
        for entry in entries:
            self._facts.note_failure(entry.pod, status, status.message)
            self._failures.handle(
                entry, status, None, message=status.message, nomination=CLEAR_NOMINATION
            )

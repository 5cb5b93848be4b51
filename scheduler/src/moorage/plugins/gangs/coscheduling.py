"""Coscheduling: pods that name a group in labels are placed together or not at all.

A group is a PodGroup of ``scheduling.x-k8s.io/v1alpha1`` that pods name by a label, or two labels
on each pod. With ``groupMode: trial`` all members are placed in one attempt, which assumes nothing
unless enough members fit. With ``groupMode: permit`` each member is placed alone, and waits at
Permit until enough members have a node. The plugin is not part of the default profile.

Rules mirrored: scheduler-plugins ``pkg/coscheduling`` of 2026-08 (PodGroup) and of September 2020
(labels). In mode ``trial`` three rules are added. Members must have one priority in both forms. A
missing PodGroup keeps its pods waiting. Missing members of a started group sort before other pods
of their priority.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from moorage.api.coscheduling import MIN_AVAILABLE_LABEL, NAME_LABEL, minimum_of
from moorage.api.pod import Pod
from moorage.base.errors import ConfigError
from moorage.config.plugin_args_optional import CoschedulingArgs, validate_coscheduling_args
from moorage.framework.capabilities import Capabilities
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import (
    CARRIED_OUT,
    FAILED_RECENTLY,
    GROUP_PHASE,
    ON_TRIAL,
    FilledPlacement,
    Placement,
)
from moorage.framework.handle import Handle
from moorage.framework.points import (
    EventRegistration,
    PostFilterResult,
    PreFilterResult,
    ScoreArray,
)
from moorage.framework.preemption import AWAITS_NOMINATED, AWAITS_SHARE, awaits_victims
from moorage.framework.roles import Role
from moorage.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from moorage.framework.what_if import WHAT_IF
from moorage.plugins.gangs.coscheduling_hints import GroupHints
from moorage.plugins.gangs.coscheduling_rules import GroupRules, Until, created_ns
from moorage.plugins.gangs.topology_domains import TopologyDomains, percent_of_most
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.snapshot.pod_groups import GroupKey, GroupMembers, GroupTerms
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.snapshot import Snapshot

NOT_FOUND: Final = "PodGroup not found"
_WAIT_SECONDS: Final = 60  # where neither the group nor the arguments set a time
_PERCENT: Final = 100
_BACKOFF_SECONDS: Final = 1  # as long as the first backoff of a pod


class Coscheduling:
    """QueueSort, PreFilter, PostFilter, Reserve and Permit plugin.

    Raises
    ------
    ConfigError
        A time is negative, or a percentage is out of bounds.
    """

    name = "Coscheduling"
    roles = Role.SORTS_BY_FIRST_ATTEMPT | Role.EVICTS_WHOLE_GANGS

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        faults = validate_coscheduling_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._args = args
        self._snapshot = handle.snapshot
        self._effects = handle.effects
        self._clock = handle.clock
        self._client = handle.client
        self._evictions = handle.evictions
        self._waits = handle.group_mode == "permit"
        permitted = Until(handle.clock, args.permit_waiting_time_seconds or _WAIT_SECONDS)
        self._backing_off = Until(handle.clock, _BACKOFF_SECONDS)
        self._backoff = Until(handle.clock, args.pod_group_backoff_seconds)
        self._rules = GroupRules(handle.snapshot, permitted)
        self._domains = TopologyDomains(handle.snapshot, lambda key: bool(key.source))
        self._in_question = False

    def capabilities(self) -> Capabilities:
        """Declare how gangs are rejected, and what questions leave out."""
        return Capabilities(
            rejects_by_shape=not self._waits,
            question=self.question,
        )

    @contextmanager
    def question(self, pod: PodInfo) -> Iterator[None]:
        """Answer without the backoff of groups, and reject no waiting member, for a while."""
        del pod
        before = self._in_question
        self._in_question = self._rules.in_question = True
        try:
            yield
        finally:
            self._in_question = self._rules.in_question = before

    # -- the order of the queue ----------------------------------------------------------------

    def sort_key(self, priority: int, timestamp_ns: int, pod: Pod) -> tuple[Any, ...]:
        """Return (-priority, 0 for pods a started group misses, time, name).

        The time belongs to the group, so the members follow one another: the creation of its
        PodGroup, or, without an object, the time when its first pod was queued.
        """
        found = self._group_of(pod)
        if found is None:
            return (-priority, 1, timestamp_ns, pod.full_name)
        key, members, terms = found
        lacks = bool(members.placed) and self._snapshot.groups.missing_for(terms) > 0
        rank = 0 if not self._waits and lacks else 1
        if key.source == LABEL_SOURCE:
            if members.first_ns is None and members.pods:
                members.first_ns = timestamp_ns
            first_ns = timestamp_ns if members.first_ns is None else members.first_ns
            return (-terms.priority, rank, first_ns, key.full_name)
        time_ns = created_ns(terms) if members.failed_ns is None else members.failed_ns
        return (-priority, rank, time_ns, pod.full_name)

    # -- before the attempt --------------------------------------------------------------------

    def group_ready(self, pod: Pod) -> Status:
        """Reject a pod for a missing group, too few members, or members that disagree."""
        key = self._snapshot.groups.key_of(pod)
        if key is None or not key.source:
            return SUCCESS
        terms = self._snapshot.groups.source.terms_of(key)
        return self._rules.rejection(key, terms, pod).by(self.name)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """In mode ``permit``, reject a member whose group cannot be completed.

        A pod with an invalid label ``min-available`` counts as a single pod and gets an Event.
        """
        del state, snapshot
        labels = pod.labels
        if labels.get(NAME_LABEL) and minimum_of(pod.pod) is None and not self._in_question:
            self._tell_of_bad_label(pod.pod, labels.get(MIN_AVAILABLE_LABEL, ""))
        found = self._group_of(pod.pod) if self._waits else None
        if found is None:
            return None, SUCCESS
        key, _, terms = found
        text = f"podGroup {key.full_name} {FAILED_RECENTLY}"  # upstream's words
        if self._backoff.is_marked(key) and not self._in_question:
            return None, unresolvable(text)
        topology = self._rules.topology_in_permit(key, terms, pod.pod)
        if not topology.ok:
            status = topology
        elif wait := self._rules.wait_for_sub_groups(key, terms, pod.pod):
            status = unresolvable(wait)
        elif key.source == LABEL_SOURCE:
            status = self._rules.label_rejection(key, terms, pod.pod)
        else:
            status = self._rules.shortage(key, terms, pod.pod)
        if status.ok and self._backing_off.is_marked(key) and not self._in_question:
            # The first placed member activates the others, whatever their backoff. Otherwise two
            # groups that need the same room would take the room from each other repeatedly.
            # A group with too little room wakes itself, as upstream: NodeResourcesFit wakes the
            # member without a node for the room that the placed members give back. That member is
            # placed first then, and the group may fit. Upstream tries again without this backoff. A
            # backoff that grew would delay the group when there is room at last.
            status = unresolvable(text)
        return None, status

    # -- topology ------------------------------------------------------------------------------

    def generate_placements(
        self, key: GroupKey, terms: GroupTerms | None
    ) -> tuple[Sequence[Placement], Status]:
        """Return one placement for each domain of the group's topology; preferred domains first."""
        return self._domains.placements(key, terms)

    def score_placements(
        self, key: GroupKey, filled: Sequence[FilledPlacement]
    ) -> tuple[ScoreArray, Status]:
        """Return each number of placed members in percent of the greatest number, rounded down."""
        if not key.source:  # counted by PodGroupPodsCount
            return np.zeros(len(filled), np.int64), SUCCESS
        placed = self._snapshot.groups.members(key).placed
        return percent_of_most(placed, [len(each.pods) for each in filled]), SUCCESS

    # -- in mode permit ------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let a member wait until enough members have a node; the last one needed passes."""
        del node_name
        groups = self._snapshot.groups
        key = groups.key_of(pod.pod)
        if key is None or not key.source:
            return SUCCESS, 0.0
        terms, members = groups.source.terms_of(key), groups.members(key)
        if terms is None:
            return unschedulable(NOT_FOUND), 0.0
        phase, missing = state.find(GROUP_PHASE), groups.missing_for(terms)
        if not missing:
            if phase != ON_TRIAL:
                members.failed_ns = None
            last = members.placed == terms.minimum or terms.parts is not None
            if phase is None or (phase == CARRIED_OUT and last):
                for uid in members.assumed:
                    self._effects.allow(uid, self.name)
            if phase is None and terms.parts is not None:  # those that let the others go first
                state.pods_to_activate.update((each.uid, each) for each in members.waiting_pods())
            return SUCCESS, 0.0
        if phase is None and members.placed == 1:
            state.pods_to_activate.update((each.uid, each) for each in members.waiting_pods())
        text = f"waiting for {missing} more pods of group {key.full_name} to have a node"
        seconds = terms.wait_seconds or self._args.permit_waiting_time_seconds or _WAIT_SECONDS
        return Status(Code.WAIT, (text,)), float(seconds)

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """In mode ``permit``, reject all waiting members when too many members find no node.

        The plugin of 2020 had no such rule: a group named by labels kept its room until the timeout
        while other groups that would have fit waited for that room.
        """
        del node_to_status
        if not self._waits or self._in_question:
            return None, unschedulable()
        found = self._group_of(pod.pod)
        if found is None:
            return None, unschedulable("can not find pod group")
        key, members, terms = found
        if self._backing_off.is_marked(key):
            return None, unschedulable()  # PreFilter refused the member, no node did
        missing = self._snapshot.groups.missing_for(terms)
        tolerable = missing * _PERCENT <= self._args.pod_group_reject_percentage * terms.minimum
        # The members that have a node wait for the victims of another member, for those of any pod
        # that still count in the quotas, or for nominated pods that are not placed yet: their room
        # would be lost to the pods that controllers make in place of the victims.
        what_if = state.find(WHAT_IF)
        awaits = (
            state.find(AWAITS_SHARE) is True
            or state.find(AWAITS_NOMINATED) is True
            or (what_if is not None and what_if.awaits_nominated())
            or any(
                awaits_victims(self._snapshot, info_of(each), self._evictions)
                for each in members.waiting_pods()
            )
        )
        if missing <= 0 or tolerable or awaits:
            return None, unschedulable()
        if self._reject(members, "optimistic rejection in PostFilter"):
            self._backing_off.mark_group(key)
        if self._args.pod_group_backoff_seconds and not members.pods_missing(terms):
            self._back_off(key)
        self._failed(key, members)
        return None, unschedulable(
            f"PodGroup {key.full_name} gets rejected due to Pod {pod.name} is unschedulable even "
            "after PostFilter"
        )

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Do nothing: the engine counts the placed members."""
        del state, pod, node_name
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Reject the waiting members after one member failed; bound members stay."""
        del node_name
        if state.find(GROUP_PHASE) == ON_TRIAL:
            return
        key = self._snapshot.groups.key_of(pod.pod)
        if key is None or not key.source:
            return
        members = self._snapshot.groups.members(key)
        self._reject(members, "rejection in Unreserve", but=pod.pod.uid)
        if self._waits:
            self._backing_off.mark_group(key)
            self._failed(key, members)

    def _back_off(self, key: GroupKey) -> None:
        """Begin the backoff of a group, unless it is under way."""
        if not self._backoff.is_marked(key):
            self._backoff.mark_group(key)
            what = f"backoff of podGroup {key.full_name}"
            self._effects.in_background(what, lambda: self._try_after_backoff(key))

    async def _try_after_backoff(self, key: GroupKey) -> None:
        """Have the members tried when the backoff is over: room that came meanwhile woke nobody."""
        client = self._client
        assert client is not None, "nothing runs in the background without an API"
        await client.sleep(self._args.pod_group_backoff_seconds)
        while self._backoff.is_marked(key):  # the clock was set back
            await client.sleep(_BACKOFF_SECONDS)
        self._effects.activate(self._snapshot.groups.members(key).waiting_pods())

    def _reject(self, members: GroupMembers, text: str, *, but: str = "") -> bool:
        """Reject all waiting members; return whether any member was waiting."""
        waiting = [uid for uid in members.assumed if uid != but]
        return sum(self._effects.reject(uid, self.name, text) for uid in waiting) > 0

    def _failed(self, key: GroupKey, members: GroupMembers) -> None:
        self._rules.permitted.unmark_group(key)
        if key.source == CUSTOM_SOURCE and members.pods:
            members.failed_ns = self._clock.now_ns()

    # -- leaves --------------------------------------------------------------------------------

    def _group_of(self, pod: Pod) -> tuple[GroupKey, GroupMembers, GroupTerms] | None:
        """Return a pod's group from a group source of coscheduling; None if there is none."""
        groups = self._snapshot.groups
        key = groups.key_of(pod)
        if key is None or not key.source:
            return None
        terms = groups.source.terms_of(key)
        return None if terms is None else (key, groups.members(key), terms)

    def _tell_of_bad_label(self, pod: Pod, text: str) -> None:
        self._effects.emit(
            pod,
            kind="Warning",
            reason="NotInPodGroup",
            action="Scheduling",
            note=f'label {MIN_AVAILABLE_LABEL} is "{text}", not a whole number of at least 1: the '
            "pod is scheduled on its own",
        )

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new members, new groups, more room, and changes of topology domains."""
        hints = GroupHints(self._snapshot, waits=self._waits).registrations()
        return hints if self._waits else (*hints, *self._domains.registrations())

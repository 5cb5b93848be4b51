"""The pod's group: whether enough members fit together, with the pod changed or with more members.

The cycle of groups is asked, in a trial, as for an attempt. Nothing is evicted for a group here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.engine.cycle import Cycle
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.select_node import smallest_name
from moorage.framework.profile import Profile
from moorage.framework.runner import run_group_gates, run_pre_enqueue
from moorage.snapshot.pod_groups import GroupTerms
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

MEMBERS_MOST: Final = 64
"""Larger groups are not tried: a try costs an attempt for each member."""


class Together(msgspec.Struct, frozen=True):
    """The pod's group.

    Parameters
    ----------
    profile, snapshot
        The plugins and the cluster.
    pod
        The pod.
    terms
        The demands of its group, a gang.
    """

    profile: Profile
    snapshot: Snapshot
    pod: Pod
    terms: GroupTerms

    @property
    def lacking(self) -> int:
        """The number of pods that the group lacks."""
        return self.snapshot.groups.members(self.terms.key).pods_missing(self.terms)

    @property
    def lack(self) -> str:
        """How many pods there are of those that the group needs."""
        members = self.snapshot.groups.members(self.terms.key)
        return pods_lacking(self.terms, members.pods.values())

    @property
    def is_short(self) -> bool:
        """Whether too few pods are there that can be tried."""
        members = self.snapshot.groups.members(self.terms.key)
        untried = {pod.uid for pod, _ in self.untried()}
        return (
            self.terms.missing([pod for uid, pod in members.pods.items() if uid not in untried]) > 0
        )

    def untried(self) -> list[tuple[Pod, str]]:
        """Return the members without a place that are not in the queue, each with the reason."""
        waiting = self.snapshot.groups.members(self.terms.key).waiting_pods()
        reasons = [(each, self._reason(each)) for each in waiting]
        return sorted(((pod, why) for pod, why in reasons if why), key=lambda each: each[0].key)

    def _reason(self, member: Pod) -> str:
        """Return why a member is not in the queue; "" where it is."""
        if member.metadata.deletion_timestamp:
            return "is being deleted"
        if member.spec.scheduler_name != self.pod.spec.scheduler_name:
            return f"has another schedulerName, {member.spec.scheduler_name}"
        status = run_pre_enqueue(self.profile, member)
        if status.ok:
            return ""
        return f"is held before the queue by plugin {status.plugin}: {status.message}"

    def excluded(self) -> list[tuple[Pod, str]]:
        """Return the members that a plugin does not let into the attempt, each with the reason."""
        untried = {pod.uid for pod, _ in self.untried()}
        waiting = self.snapshot.groups.members(self.terms.key).waiting_pods()
        reasons = [
            (each, turned_away(self.profile, each)) for each in waiting if each.uid not in untried
        ]
        return sorted(((pod, why) for pod, why in reasons if why), key=lambda each: each[0].key)

    def decide_group(
        self, *, changed: Pod | None = None, more: Sequence[Pod] = (), evicting: bool = True
    ) -> GroupDecision:
        """Decide about the members without a place.

        Parameters
        ----------
        changed
            Taken for the pod; None takes the pod as it is.
        more
            Further members.
        evicting
            Whether the members may preempt.
        """
        groups = self.snapshot.groups
        for each in more:
            groups.put_pod(each)
        try:
            waiting = groups.members(self.terms.key).waiting_pods()
            absent = {pod.uid for pod, _ in (*self.untried(), *self.excluded())}
            pods = [
                changed if changed and each.uid == changed.uid else each
                for each in waiting
                if each.uid not in absent
            ]
            infos = sorted(map(PodInfo, pods), key=lambda info: (-info.priority, info.key))
            cycle = Cycle(self.profile, self.snapshot, smallest_name, reuse=False)
            within = None if evicting else self.snapshot.all()
            return GroupCycle(cycle).decide_group(self.terms.key, infos, within=within)
        finally:
            for each in more:
                groups.remove(each.uid)

    def fits(self, *, changed: Pod | None = None, more: Sequence[Pod] = ()) -> bool:
        """Whether the pod gets a place together with enough members of its group."""
        return bool(self.place(changed=changed, more=more))

    def place(self, *, changed: Pod | None = None, more: Sequence[Pod] = ()) -> str:
        """Return the pod's node if enough members of its group have places too, else ""."""
        if self.terms.minimum > MEMBERS_MOST:
            return ""
        found = self.decide_group(changed=changed, more=more)
        if found.outcome is not GroupOutcome.PLACED:
            return ""
        nodes = {each.decision.pod.uid: each.node_name for each in found.members}
        return nodes.get(self.pod.uid, "")


def pods_lacking(terms: GroupTerms, pods: Collection[Pod]) -> str:
    """Return how many pods there are of those that a group needs, by sub-group if it has any."""
    in_parts = "" if terms.parts is None else terms.parts.lack(pods)
    return f"lacks pods: {in_parts}" if in_parts else f"has {pods_needed(terms, len(pods))}"


def pods_needed(terms: GroupTerms, number: int) -> str:
    """Return how many pods of a group there are: ``2 of the 3 pods it needs``."""
    return (
        f"{number + terms.succeeded} of the {terms.declared_minimum} pods it needs"
        f"{terms.succeeded_note}"
    )


def turned_away(profile: Profile, pod: Pod) -> str:
    """Return why a plugin does not let a pod into the attempt of its group; "" where all do.

    Where members are placed one by one, PreFilter and Permit say so instead.
    """
    if profile.handle.group_mode == "permit":
        return ""
    return run_group_gates(profile, pod).message


def missing_group(snapshot: Snapshot, pod: Pod) -> str:
    """Return the full name of a pod's group if the group does not exist, else ""."""
    key = snapshot.groups.key_of(pod)
    if key is None or snapshot.groups.source.terms_of(key) is not None:
        return ""
    return key.full_name


def together(profile: Profile, snapshot: Snapshot, pod: Pod) -> Together | None:
    """Return the pod's group; None for a pod that is placed without regard to others."""
    terms = snapshot.groups.terms_of(pod)
    if terms is None or not terms.gang or terms.minimum <= 1:
        return None
    return Together(profile, snapshot, pod, terms)

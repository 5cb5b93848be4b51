"""Reasons not to try a group: too few members, members that disagree, too little room.

Coscheduling checks them before a group's trial in mode ``trial``, and at PreFilter in ``permit``.
Rules: scheduling spec, gang sections B and C.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from moorage.api.coscheduling import (
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    SUB_GROUPS,
    minimum_of,
)
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, Clock, parse_rfc3339
from moorage.framework.status import SUCCESS, Status, unresolvable, unschedulable
from moorage.snapshot.group_labels import LABEL_SOURCE
from moorage.snapshot.group_topology import NO_TOPOLOGY, Topology, topology_of
from moorage.snapshot.pod_groups import GroupKey, GroupMembers, GroupTerms
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot

_PODS = "pods"


class Until:
    """Groups that are marked for a limited time.

    Parameters
    ----------
    clock
        Wall-clock time.
    seconds
        Duration of a mark.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._for_ns = round(seconds * NS_PER_SECOND)
        self._ends_ns: dict[GroupKey, int] = {}

    def mark_group(self, key: GroupKey) -> None:
        """Mark a group from now on; an existing mark keeps its end."""
        now_ns = self._clock.now_ns()
        self._ends_ns = {each: end for each, end in self._ends_ns.items() if end > now_ns}
        self._ends_ns.setdefault(key, now_ns + self._for_ns)

    def unmark_group(self, key: GroupKey) -> None:
        """Remove the mark of a group."""
        self._ends_ns.pop(key, None)

    def is_marked(self, key: GroupKey) -> bool:
        """Whether a group is marked now."""
        return self._ends_ns.get(key, 0) > self._clock.now_ns()


class GroupRules:
    """Decides whether a member is worth an attempt.

    Parameters
    ----------
    snapshot
        The cluster and the members of each group.
    permitted
        Groups whose ``minResources`` were found free recently.
    """

    def __init__(self, snapshot: Snapshot, permitted: Until) -> None:
        self._snapshot = snapshot
        self.permitted = permitted
        self.in_question = False
        """Whether a question is answered: nothing is remembered, and members may still be missing,
        as nodes are asked about as well."""

    def rejection(self, key: GroupKey, terms: GroupTerms | None, pod: Pod) -> Status:
        """Return the status that excludes a member from its group's trial, or Success."""
        if terms is None:
            return unresolvable(f"PodGroup {key.full_name} not found")
        topology = self._topology_rejection(key, terms, pod)
        if not topology.ok:
            return topology
        if pod.priority != terms.priority:
            first = next(iter(self._snapshot.groups.members(key).pods.values()), pod)
            return unresolvable(
                f"Priorities do not match: {pod.name} has {pod.priority}, {first.name} of group "
                f"{key.full_name} has {terms.priority}"
            )
        if key.source == LABEL_SOURCE and minimum_of(pod) != terms.declared_minimum:
            return unresolvable(
                f"PodGroupMinAvailables do not match: {pod.name} has {minimum_of(pod)}, others of "
                f"group {key.full_name} have {terms.declared_minimum}"
            )
        return self.shortage(key, terms, pod)

    def shortage(self, key: GroupKey, terms: GroupTerms, pod: Pod) -> Status:
        """Return why a group cannot be completed (gang section B, PreFilter 2 to 4)."""
        members = self._snapshot.groups.members(key)
        if not self.in_question:
            why = _missing_members(members, terms, pod)
            if why:
                return unresolvable(why)
        has_started = members.assigned or terms.succeeded
        if has_started or not terms.resources or self.permitted.is_marked(key):
            return SUCCESS  # a replacement in a group that has started needs only its own room
        gap = self.gap(key, terms)
        if gap:
            listed = " ".join(f"{name}:{amount}" for name, amount in sorted(gap.items()))
            return unresolvable(f"resource gap: map[{listed}]")
        if not self.in_question:
            self.permitted.mark_group(key)
        return SUCCESS

    def label_rejection(self, key: GroupKey, terms: GroupTerms, pod: Pod) -> Status:
        """Return why the plugin of 2020 rejects a member (gang section C, PreFilter)."""
        if minimum_of(pod) != terms.declared_minimum:
            return unschedulable("PodGroupMinAvailables do not match")
        if pod.priority != terms.priority:
            return unschedulable("Priorities do not match")
        members = self._snapshot.groups.members(key)
        # The plugin of 2020 knew no scheduling gates.
        if members.pods_missing(terms, ready=True) and not self.in_question:
            return unschedulable("less than pgMinAvailable")
        return SUCCESS

    def topology_in_permit(self, key: GroupKey, terms: GroupTerms, pod: Pod) -> Status:
        """Reject a member of a group with a topology: mode ``permit`` cannot keep to it."""
        faulty = self._topology_rejection(key, terms, pod)
        if not faulty.ok:
            return faulty
        for name, value in (
            (REQUIRED_TOPOLOGY, terms.topology_key),
            (PREFERRED_TOPOLOGY, terms.preferred_topology_key),
        ):
            if value:
                return unresolvable(
                    f"annotation {name} of group {key.full_name} needs groupMode trial"
                )
        if terms.confined:
            return unresolvable(
                f"a topology in annotation {SUB_GROUPS} of group {key.full_name} needs groupMode "
                "trial"
            )
        return SUCCESS

    def wait_for_sub_groups(self, key: GroupKey, terms: GroupTerms, pod: Pod) -> str:
        """Return why a member lets others go first in mode ``permit``; "" if it may be placed.

        A pod that its sub-group does not need takes no room before all sub-groups are complete.
        """
        parts, groups = terms.parts, self._snapshot.groups
        if parts is None or not groups.missing_for(terms):
            return ""
        members, own = groups.members(key), parts.part_of(pod)
        placed = [members.pods[uid] for uid in members.placed_uids()]
        leaf = next((each for each in parts.root.leaves() if each.name == own), None)
        lack = parts.lack(placed)
        if leaf is None or not lack or leaf.missing(parts.counts(placed)):
            return ""
        return f"sub-group {own} of group {key.full_name} has enough nodes for now: {lack}"

    def _sub_group_rejection(self, key: GroupKey, terms: GroupTerms, pod: Pod) -> Status:
        """Reject a member with other sub-groups than its group, and one that is in none."""
        mine = pod.metadata.annotations.get(SUB_GROUPS)
        parts, source = terms.parts, key.source
        text = None if parts is None else parts.text
        if mine != text and (source == LABEL_SOURCE or mine is not None):
            own, other = ("none" if each is None else f'"{each}"' for each in (mine, text))
            return unresolvable(
                f"annotations {SUB_GROUPS} do not match: {pod.name} has {own}, group "
                f"{key.full_name} has {other}"
            )
        if parts is None or parts.part_of(pod) in {each.name for each in parts.root.leaves()}:
            return SUCCESS
        return unresolvable(
            f"pod {pod.name} is in no sub-group of group {key.full_name}: its label {parts.label} "
            f'is "{parts.part_of(pod)}", and the sub-groups are "{parts.text}"'
        )

    def _topology_rejection(self, key: GroupKey, terms: GroupTerms, pod: Pod) -> Status:
        """Reject members of a group with faulty annotations, and a member with other ones.

        A member of a group with an object need not repeat the annotations of the object.
        """
        if terms.fault:
            return unresolvable(terms.fault)
        of_parts = self._sub_group_rejection(key, terms, pod)
        if not of_parts.ok:
            return of_parts
        mine = topology_of(pod.metadata.annotations)
        if key.source != LABEL_SOURCE and mine == NO_TOPOLOGY:
            return SUCCESS
        group = Topology(terms.topology_key or None, terms.preferred_topology_key or None)
        difference = mine.difference(group)
        if difference is None:
            return SUCCESS
        name, own, other = difference
        holder = f"PodGroup {key.full_name}"
        if key.source == LABEL_SOURCE:
            first = next(iter(self._snapshot.groups.members(key).pods.values()), pod)
            holder = f"{first.name} of group {key.full_name}"
        return unresolvable(
            f"annotations {name} do not match: {pod.name} has {own}, {holder} has {other}"
        )

    def gap(self, key: GroupKey, terms: GroupTerms) -> dict[str, int]:
        """Return the amounts missing for a group's ``minResources``, by resource.

        The free amounts of all nodes are added up, even where no pod fits. The group's own pods do
        not count as requests. A resource is satisfied once the nodes so far have enough of it.
        """
        snapshot, table = self._snapshot, self._snapshot.table
        own = [
            (row, info.part(RESOURCES).value.balanced)
            for uid in snapshot.groups.members(key).placed_uids()
            if (info := table.pod_info(uid)) is not None
            and (row := table.row_of(table.node_of_pod(uid) or "")) is not None
        ]
        gap: dict[str, int] = {}
        for name, need in (*terms.resources, (_PODS, terms.minimum)):
            if name == _PODS:
                free_n = snapshot.allowed_pods - snapshot.pod_count
            else:
                free_n = snapshot.allocatable(name) - snapshot.requested(name)
            for row, requests in own:
                free_n[row] += 1 if name == _PODS else requests.get(name, 0)
            sums_n = np.cumsum(free_n)
            if need > 0 and not (len(sums_n) and int(sums_n.max()) >= need):
                gap[name] = need - (int(sums_n[-1]) if len(sums_n) else 0)
        return gap


def _missing_members(members: GroupMembers, terms: GroupTerms, pod: Pod) -> str:
    """Return that too few members are there, or too few without a gate; else ""."""
    number, parts = len(members.pods), terms.parts
    if number < terms.minimum:
        return (
            f"pre-filter pod {pod.name} cannot find enough sibling pods, current pods number: "
            f"{number + terms.succeeded}, minMember of group: {terms.declared_minimum}"
        )
    if parts is not None and (lack := parts.lack(members.pods.values())):
        return f"pre-filter pod {pod.name} cannot find enough sibling pods: {lack}"
    if members.pods_missing(terms, ready=True):
        return f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup"
    return ""


def created_ns(terms: GroupTerms) -> int:
    """Return the creation time of a group's object, wall-clock nanoseconds; 0 if absent."""
    return _parsed(terms.created) if terms.created else 0


@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    try:
        return parse_rfc3339(text)
    except ValueError:
        return 0

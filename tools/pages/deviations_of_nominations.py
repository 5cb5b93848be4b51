"""The rows of the table of differences that are about nominations, and victims that stop."""

from __future__ import annotations

from typing import Final

from tools.pages.deviation import Deviation

NOMINATIONS: Final[tuple[Deviation, ...]] = (
    Deviation(
        subject=(
            "Nominated pods in InterPodAffinity, PodTopologySpread, VolumeRestrictions, "
            "VolumeBinding and DynamicResources"
        ),
        upstream=(
            "count only on the node that they are nominated to, and not at all where PreFilter "
            "skips by what the placed pods ask for (kubernetes issue 114889), nor with their claims"
        ),
        here=(
            "those of equal or higher priority count on every node: by their own anti-affinity, in "
            "their topology domain, by a ReadWriteOncePod claim, and by the volumes and devices "
            "that their claims would get"
        ),
        why=(
            "a nominated pod would lose what its victims are evicted for to any pod that is tried "
            "while they stop, and evict again"
        ),
    ),
    Deviation(
        subject="A pod that a node takes once nominated pods are placed elsewhere (hard spread)",
        upstream="evicts pods on another node, or on the same",
        here=(
            "evicts nobody and waits for these pods; it is nominated to such a node, unless it is "
            "a member of a group"
        ),
        why="nobody is evicted for nothing",
    ),
    Deviation(
        subject=(
            "A pod that fits on a node after evictions, but only once pods nominated to other "
            "nodes are placed (hard spread)"
        ),
        upstream="counts none of them: it evicts more pods there or elsewhere, or nobody",
        here=(
            "evicts there at once where that costs less than any other node, and waits for these "
            "pods. Where the spread counts the victims, too, it evicts nobody until these pods "
            "are placed"
        ),
        why="it waited for two graces, and a group gave up its room meanwhile",
    ),
    Deviation(
        subject=(
            "A claim of devices or of a volume, not allocated or bound yet, that a pod shares with "
            "a pod nominated first"
        ),
        upstream="may still go to any node",
        here="counts as allocated or bound where that pod is nominated",
        why="pods evicted others on several nodes, though the claim goes to one",
    ),
    Deviation(
        subject="A ResourceClaim whose allocation is decided and not written yet",
        upstream="rejects every other pod with it",
        here="other pods count on the allocation",
        why="they lost their nominated nodes, and evicted again",
    ),
    Deviation(
        subject=(
            "A pod of lower priority in the domain of a nominated pod whose hard spread counts it"
        ),
        upstream="is placed there",
        here=(
            "waits, or goes elsewhere, where the nominated pod would no longer fit; the reason has "
            "a text of its own, and the code `NominatedPodSpread`"
        ),
        why="the nominated pod evicted again, without an end over few zones",
    ),
    Deviation(
        subject=(
            "A pod whose eviction is decided and not shown yet, in a trial of a preemptor with a "
            "hard spread"
        ),
        upstream="is counted until its deletion is seen",
        here="is not counted",
        why=(
            "a preemptor that was tried between the evictions of another one evicted more pods of "
            "the domain than the spread asks for"
        ),
    ),
    Deviation(
        subject="A pod that waits until nominated pods are placed, one of which waits at Permit",
        upstream="is woken when that pod is bound",
        here="is woken at once",
        why="the pod at Permit may be a member of its group, and be bound only with it",
    ),
    Deviation(
        subject="Events that wake a pod for which no eviction helps",
        upstream="those of the plugins that rejected it in Filter",
        here="also those of the plugins that rejected it on nodes tried for preemption",
        why="what kept the pod from evicting may change, and no other event would come",
    ),
    Deviation(
        subject="Members of a pod group whose victims stop",
        upstream=(
            "are tried one by one or in parts as their own victims leave; an attempt with too few "
            "members gives up the places of all"
        ),
        here=(
            "wait in PreEnqueue until all victims of the group have left, at most 30 s longer than "
            "a victim's grace; their nominations hold the room meanwhile"
        ),
        why="the pods that controllers make in place of the victims took it: evictions without end",
    ),
    Deviation(
        subject="Victims that still stop, when CapacityScheduling seeks victims for another pod",
        upstream="count as used, next to the nominated pods that they leave for",
        here="do not count as used; the nominated pods do. A pod that lacks only their share is "
        "nominated to a node with room for it, evicts nobody and waits for them",
        why="of pods that come at one moment, each evicted one pod more than the one before it, "
        "and once more as soon as its own victim was gone",
    ),
    Deviation(
        subject="A member of a pod group on whose nominated node pods still stop",
        upstream="has no place, so the group is rejected, and all members give up their places",
        here="keeps it if it fits without them and no more is evicted; the group waits for them",
        why="the room of the other members went to other pods, and the group evicted again",
    ),
    Deviation(
        subject="A group of 1.37 that is tried while its victims leave a nominated node",
        upstream="waits until all of them have left, also if another member has lost its node",
        here="keeps its nominations as long as every member would fit there without the pods that "
        "leave; otherwise the group is decided about anew at once",
        why="a group that has lost a place would wait for room that it cannot use",
    ),
    Deviation(
        subject="A status of a pod that could not be written",
        upstream="is written by the next attempt, if there is one",
        here="is written again after 1 s, 2 s, up to 60 s, with the pod's uid as a condition, "
        "until the server takes it or the pod is bound or gone",
        why="a pod that a gate holds back kept a nomination that was withdrawn",
    ),
    Deviation(
        subject="Nominations of a pod group that preempts as a whole",
        upstream="v1.36 nominates no member (kubernetes#138967, in 1.37)",
        here="each member is nominated to its place after the evictions",
        why="the room is kept for the group, as for a pod",
    ),
    Deviation(
        subject="A member that preempts by itself (groupMode permit)",
        upstream="evicts for itself, whether or not the group fits",
        here="evicts only if enough members would have a node next to each other after evictions",
        why="a group that cannot fit evicted without end",
    ),
    Deviation(
        subject="A pod that PreEnqueue rejects when it is first seen, with a nominated node",
        upstream="is nominated once PreEnqueue lets it in",
        here="is nominated at once",
        why="after a restart the victims of its group are still stopping, and others took the room",
    ),
    Deviation(
        subject="A group that preempts as a whole while other pods leave",
        upstream="may evict pods that stay in place of pods that leave anyway",
        here="evicts those that leave anyway last of all to be spared",
        why="nobody is evicted for nothing",
    ),
    Deviation(
        subject="A pod that preempts on a node that victims of an earlier preemptor are leaving",
        upstream="spares these victims like others, and may evict pods that stay in their place",
        here="spares these victims last of all",
        why="nobody is evicted for nothing",
    ),
    Deviation(
        subject=("Victims of earlier preemptors, when a node is chosen for another preemptor"),
        upstream="cost as much as other victims, and count against disruption budgets",
        here="cost nothing. Among nodes of equal cost, the one with fewer of them is taken",
        why="a pod was evicted elsewhere although room was being made",
    ),
    Deviation(
        subject=(
            "A terminating pod that PodTopologySpread does not count, when preemption tries its "
            "node without the pod"
        ),
        upstream="lowers the count of its domain",
        here="makes no difference",
        why="nodes passed that the pod could not go to, and others needed more victims",
    ),
    Deviation(
        subject="A member of a pod group that is tried after a member with victims",
        upstream="is tried while these victims are still on their nodes",
        here="is tried as if these victims were gone",
        why="several members were nominated to what a node has once, such as a host port, and "
        "evicted without end; members that need GPUs of their victims never got any",
    ),
    Deviation(
        subject="A preemptor whose nominated node has a victim that is not terminating yet",
        upstream="evicts again where the watch has not shown the deletion yet",
        here="waits for a victim as soon as its eviction is decided, also for another preemptor's",
        why="one or two pods too many were evicted, and deletions were sent twice",
    ),
    Deviation(
        subject="A victim that stays more than 30 s longer than its grace",
        upstream="its preemptor waits for it on the nominated node",
        here="is waited for no more: its preemptor may preempt elsewhere",
        why="a finalizer may hold it for ever, and groups and pods woke each other without an end",
    ),
    Deviation(
        subject="The nominated node of a pod goes, is closed, tainted or relabelled",
        upstream="the pod is tried again if a plugin that rejected it registered such a change",
        here="the pod is tried again at once, and may preempt elsewhere also where a plugin "
        "rejects it in PreFilter",
        why="it waited until its victims had left before it made room elsewhere, and meanwhile "
        "other pods took that room and were evicted",
    ),
    Deviation(
        subject="A member at Permit (groupMode permit) while another member's victims stop",
        upstream="is rejected once the other member is tried again and has no room yet",
        here="stays at Permit, also while the other member lacks only the share of an elastic "
        "quota that pods still use that are about to leave, or waits for nominated pods without "
        "which it breaks a hard spread",
        why="its room would be lost to other pods, and be evicted again",
    ),
    Deviation(
        subject="A pod group that breaks a hard spread until nominated pods of other domains are "
        "placed (groupMode trial)",
        upstream="is rejected, and its members lose their nominated nodes",
        here="keeps its nominated nodes for up to 30 s",
        why="pods of low priority took its room, and were evicted again",
    ),
    Deviation(
        subject="Order of PostFilter plugins (groupMode permit)",
        upstream="as configured",
        here="as configured, but Coscheduling comes last",
        why="Coscheduling would take the members off their nodes before victims are chosen",
    ),
)

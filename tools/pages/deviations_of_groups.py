"""The rows of the table of differences that are about the groups of Coscheduling."""

from __future__ import annotations

from typing import Final

from tools.pages.deviation import Deviation

COSCHEDULING: Final[tuple[Deviation, ...]] = (
    Deviation(
        subject="Pod groups of the plugin Coscheduling",
        upstream="members are placed one by one and hold their nodes while they wait",
        here="members are tried together and hold nothing; they must share a priority, and the "
        "PodGroup must exist",
        why="a group that waits takes nothing from others, and two groups cannot block each other",
        back="`groupMode: permit` of the profile",
    ),
    Deviation(
        subject="Places of a group that pods name by labels, if its members are unlike or must be "
        "near one another (required pod affinity)",
        upstream="one order is tried; a group may be refused although it fits",
        here="each domain with room for the members that must be near one another, a complete "
        "search for unlike members, then up to 4 other orders, before the group is refused or "
        "evicts; the groups of Kubernetes are tried in one order, as upstream",
        why="a group that fits should start",
        back="`groupOrders: 0` of the profile",
    ),
    Deviation(
        subject="A pod with the label `pod-group.scheduling.sigs.k8s.io` alone",
        upstream="is a pod on its own since 2022: scheduler-plugins reads "
        "`scheduling.x-k8s.io/pod-group` only",
        here="belongs to the PodGroup that the label names, unless it has the label of today too",
        why="manifests with the old label are around, and half a gang would start",
        back="take the label off",
    ),
    Deviation(
        subject="A group of 1.37 that fits without any eviction, if its members are placed "
        "otherwise",
        upstream="is nominated to these places with 0 victims, and waits for an event",
        here="is placed there at once",
        why="nothing would wake the group: no pod leaves",
    ),
    Deviation(
        subject="Two ElasticQuotas in one namespace",
        upstream="the first counts that the watch shows; a change of either one replaces it, and "
        "deleting either one leaves the namespace without a quota until its next pod",
        here="the first counts as long as it exists, then the other",
        why="a quota that nobody touched stays in force",
        back="keep one quota in a namespace",
    ),
    Deviation(
        subject="Members of a group that have succeeded",
        upstream="do not count any more; what replaces another member waits for the minimum anew "
        "(kubernetes#142330)",
        here="count towards the minimum as long as the pod exists. Pods of an earlier group of the "
        "same name do not count: pods older than the group's object, and the pods of another "
        "controller that were a whole group",
        why="the group has started: a replacement needs only its own room",
        back="not available",
    ),
    Deviation(
        subject="`minResources` of a group of Coscheduling that has started",
        upstream="must be free once more for each pod that comes a minute later, its own pods left "
        "out: a replacement waits, and never preempts, though its node has room",
        here="are not asked for while a member has a node, or has succeeded",
        why="the group has started: a replacement needs only its own room",
        back="not available",
    ),
    Deviation(
        subject="Victims that belong to a gang, in a profile with Coscheduling",
        upstream="are evicted one by one, as other pods",
        here="members beyond the minimum go one by one, the least important first. The others go "
        "together, wherever they run, if the rules of the preemptor (quota, toleration, priority) "
        "let every one of them go; otherwise another node is chosen. A node costs what all these "
        "pods cost; among equal priorities a gang is kept rather than a pod on its own",
        why="the rest of a gang cannot work and holds its nodes",
        back="leave the plugin out of the preemptor's profile",
    ),
    Deviation(
        subject="Coscheduling that waits at Permit, a group just rejected while members waited",
        upstream="is tried again at once: its first member activates the others past their backoff",
        here="waits for a second before each further try; reports nothing while only time passes",
        why="two groups that want the same room took it from each other without end",
    ),
    Deviation(
        subject="Coscheduling that waits at Permit, members that were turned away",
        upstream="come back when a pod or a PodGroup is added, or after five minutes; by labels, a "
        "placed member does not activate the others",
        here="come back when anything may have given room, and when `podGroupBackoffSeconds` are "
        "over; a placed member activates the others in both forms",
        why="members came back one by one, up to five minutes apart, each holding room in vain",
    ),
    Deviation(
        subject="Coscheduling by the labels of 2020 that waits at Permit, a member finds no node",
        upstream="the members with a node keep it until the timeout",
        here="all of them give their nodes back at once, as those of a PodGroup do",
        why="one group after another held room in vain, and groups that fit waited for several "
        "timeouts",
        back="`podGroupRejectPercentage: 100` in the arguments of Coscheduling",
    ),
    Deviation(
        subject="Coscheduling by the labels of 2020",
        upstream="the first pod seen says minimum, priority and place in the queue, for ten "
        "minutes after the group is gone",
        here="minimum and priority are those of the first pod that is still there; a group without "
        "pods is forgotten at once",
        why="a group that is fixed by new pods need not wait for anything",
    ),
)

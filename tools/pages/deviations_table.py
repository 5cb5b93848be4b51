"""Every knowing difference from kube-scheduler, as a table; ``docs/deviations.md`` is made of it.

A change that departs from kube-scheduler adds its row here, in the same commit.
"""

from __future__ import annotations

from typing import Final

from tools.pages.deviation import Deviation
from tools.pages.deviations_of_groups import COSCHEDULING
from tools.pages.deviations_of_hints import FORGOTTEN_WAKE_UPS

DEVIATIONS: Final[tuple[Deviation, ...]] = (
    Deviation(
        subject="`percentageOfNodesToScore` unset",
        upstream=(
            "below 100 nodes all; above, a share that falls from 50 % to 5 % as the cluster grows"
        ),
        here="100: all nodes are scored",
        why="scoring is cheap here, and a sample can miss the best node",
        back="set it to 0; any value that is set is honoured, a profile's own even when it is 0",
    ),
    Deviation(
        subject="Which nodes a search of a part finds",
        upstream="those its parallel workers happen to reach first",
        here="those one worker finds: same order of nodes, same start, same end",
        why="a run can be replayed",
        back="nothing to do: it is what `parallelism: 1` gives there",
    ),
    Deviation(
        subject="All nodes searched, no Score plugin enabled",
        upstream="the search ends at the first feasible node",
        here="one of all feasible nodes, drawn from a seeded stream",
        why="every filter result is known anyway",
        back="set a percentage below 100",
    ),
    Deviation(
        subject="Equal top scores",
        upstream="one of them at random",
        here="one of them, drawn from a seeded stream",
        why="a run can be replayed",
        back="nothing to do: each is equally likely",
    ),
    Deviation(
        subject="`clientConnection.qps` unset",
        upstream="50 calls a second, burst 100",
        here="no limit on our side; `429` and `Retry-After` are obeyed",
        why="the API server has its own priority and fairness",
        back="set `qps` and `burst`",
    ),
    Deviation(
        subject="Wire format",
        upstream="protobuf",
        here="JSON",
        why="fields are read faster from JSON in Python",
    ),
    Deviation(
        subject="Preemption candidates that lose equally little",
        upstream="any of them, by the order of a map",
        here="the one with the smallest name, among those tried; where those to evict have not "
        "started, the one with the greatest",
        why="a run can be replayed",
        back="nothing to do: any is right",
    ),
    Deviation(
        subject="What counts against an `ElasticQuota` (CapacityScheduling of scheduler-plugins)",
        upstream="pods assigned since the quota was made; sidecars as other init containers",
        here="all pods of the namespace on nodes, by what NodeResourcesFit asks for them",
        why="a quota made later would not know what is in use",
    ),
    Deviation(
        subject="A preemptor of CapacityScheduling or PreemptionToleration whose victims go",
        upstream="its victims are evicted before its attempt ends",
        here="they are evicted beside the queue; it is held at PreEnqueue meanwhile",
        why="no attempt waits for the API server",
    ),
    Deviation(
        subject="Annotations of PreemptionToleration",
        upstream="one domain, which differs between its releases",
        here="`preemption-toleration.scheduling.x-k8s.io` and, where that is absent, "
        "`preemption-toleration.scheduling.sigs.k8s.io`",
        why="manifests of both are around",
    ),
    Deviation(
        subject="Evictions for members of a pod group",
        upstream="begin when a member finds a node to preempt on, whether or not the group fits",
        here="begin when the group as a whole would fit with the room they make",
        why="nobody is evicted for nothing",
    ),
    Deviation(
        subject="Texts about a pod group that does not fit",
        upstream="the group's condition and the members with a place on trial say `pod group is "
        "unschedulable`",
        here="they also say how many members have a place, which member has none, and why",
        why="the reason stands where people look",
    ),
    Deviation(
        subject="A group of Kubernetes that lacks pods or its PodGroup",
        upstream="nothing is told",
        here="a condition and an Event of the group and of one member say so within seconds",
        why="a group that waits in silence looks like a fault",
    ),
    Deviation(
        subject="A pod that comes, and the gated members of groups",
        upstream="each of them has its hint asked, and each of its own group is let in or refused",
        here="its own group is looked at, once it is complete: the rest would hear no, and is not "
        "counted in `scheduler_queueing_hint_execution_duration_seconds`",
        why="a pod that comes costs what it concerns, however many wait",
    ),
    Deviation(
        subject="Reserve of a member of a pod group fails when its decision is carried out",
        upstream="the other members stay assumed and wait at Permit for up to five minutes",
        here="if too few are left they are turned away at once",
        why="a group that waits holds nothing",
    ),
    Deviation(
        subject="Order of topology domains, and choice among equally good ones",
        upstream="the order of a map; one of them at random",
        here="by label value; the first",
        why="a run can be replayed",
        back="nothing to do: any is right",
    ),
    Deviation(
        subject="Members of a group that fits in no topology domain",
        upstream="wait for events of the plugins that rejected them, none of which is a node's new "
        "label; the condition of the group tells the status of one domain",
        here="also wait for a node that comes to a domain and for a member that is gone "
        "(TopologyPlacementGenerator registers both); the condition and the members tell how many "
        "pods each domain takes, and why the best one takes no more",
        why="a group should start as soon as a domain fits",
    ),
    Deviation(
        subject="Topology of groups of the plugin Coscheduling",
        upstream="none",
        here="the annotations `moorage.dev/required-topology` and `moorage.dev/preferred-topology` "
        "of the PodGroup, or of the pods where there is no object; with groupMode permit such a "
        "group is rejected",
        why="the groups of Kubernetes have it, and most users have the others",
        back="leave the annotations out",
    ),
    Deviation(
        subject="Extension points placementGenerate and placementScore",
        upstream="weights of their own",
        here="the weight a plugin has as a Score plugin, else 1",
        why="the only plugins there are have weight 1",
    ),
    Deviation(
        subject="A pod that is changed while Permit holds it, and then turned away",
        upstream="the change is ignored: it waits for another event, or the leftover flush",
        here="the hints of its rejectors are asked about the change when it comes back",
        why="the change may be what it waits for",
    ),
    Deviation(
        subject="A pod turned away from Permit because it is being deleted, and still there",
        upstream=(
            "waits for events of a plugin without a name: none comes before the leftover flush"
        ),
        here="is retried after backoff, and then skipped with an Event",
        why="nothing waits for what cannot come",
    ),
    Deviation(
        subject="Several PreBind plugins of one group fail",
        upstream="the first to fail counts",
        here="the first in the profile's order counts, of those that failed at once",
        why="a run can be replayed",
        back="nothing to do",
    ),
    Deviation(
        subject="Cost of a selector of devices",
        upstream=(
            "estimated when it is stored and counted while it is evaluated; an evaluation ends at "
            "1,000,000 units"
        ),
        here=(
            "the highest possible cost is computed before an evaluation, and a selector over "
            "1,000,000 units is not evaluated; large regular expressions cost more; all selectors "
            "of one attempt may cost 10,000,000, and the next attempt continues"
        ),
        why="the CEL runtime counts nothing and cannot be interrupted",
    ),
    Deviation(
        subject="Text of a pod preempted in PreBind",
        upstream='`running PreBind plugin "X": preempted by DefaultPreemption`',
        here="`preempted by DefaultPreemption`",
        why="no one plugin was at fault",
    ),
    Deviation(
        subject="`AllowParallel` of PreBindPreFlight",
        upstream="answered for each pod",
        here="a capability of the plugin, `pre_bind_parallel`",
        why="its own plugins always answer the same",
    ),
    Deviation(
        subject="A binding answered with success that the watch does not confirm",
        upstream="the pod stays assumed for as long as the scheduler runs",
        here="the pod is looked up after 30 s, and tried again where it is not on its node",
        why="a write may be lost behind its answer",
    ),
    Deviation(
        subject="A pod that the server says is on another node than before",
        upstream="kube-scheduler ends: its cache is corrupted",
        here="reported, and taken for a pod that was deleted and made again",
        why="no single object may end the scheduler",
    ),
    Deviation(
        subject="Two pods with one uid, or a pod without uid",
        upstream="both are taken in, and change each other's place in queue and cache",
        here="the first is taken in; the other is reported and left alone",
        why="state and writes go by the uid",
    ),
    Deviation(
        subject="`Retry-After` of more than a minute",
        upstream="obeyed, however long",
        here="a minute",
        why="a server must not keep a binding under way for years",
    ),
    Deviation(
        subject="A preemptor whose evictions failed",
        upstream="is tried again at once; the rate limit of the client slows that down",
        here="is tried again a second later",
        why="a server that refuses at once would be asked hundreds of times a second",
        back="nothing to do: without failures nothing waits",
    ),
    Deviation(
        subject="A victim that is gone, while another pod has its name",
        upstream="the other pod is deleted, if the victim was marked already",
        here="it is left alone: a deletion names the victim's uid",
        why="nobody is evicted for nothing",
    ),
    Deviation(
        subject="A failed eviction among several",
        upstream="the others still under way are cancelled",
        here="they end by themselves; the last victim is spared just the same",
        why="a call that was sent may have happened anyway",
    ),
    Deviation(
        subject="How a waiting replica takes the Lease",
        upstream="it looks every 2 to 4.4 s",
        here=(
            "it watches the Lease, takes it when it is released or over, and waits up to 0.25 s "
            "for its watch of pods to be current"
        ),
        why="a hand-over within a second, and no room that is given away twice",
    ),
    Deviation(
        subject="When the leader may write",
        upstream="until it gives up renewing",
        here=(
            "until it gives up, never beyond the lease as its record says it, judged from "
            "before the last renewal was sent and by the wall clock as well; every write is "
            "checked"
        ),
        why=(
            "a process that was stopped or suspended must not write in the name of a lease "
            "that is over"
        ),
    ),
    Deviation(
        subject="A client certificate of no trusted authority, or an expired one",
        upstream="the connection is made, and its other credentials may count",
        here="the connection ends, if client certificates are asked for at all",
        why="Python's TLS checks them while the connection begins",
    ),
    Deviation(
        subject="The ConfigMap `extension-apiserver-authentication` without authorities of proxies",
        upstream="counts as a failed lookup",
        here="there are no front proxies",
        why="a server without an aggregation layer publishes none",
    ),
    Deviation(
        subject="`/version`",
        upstream="kube-scheduler does not serve it",
        here="the version that is played",
        why="the other components serve it",
    ),
    Deviation(
        subject="`leaderElection.leaseDuration` below 1s",
        upstream="accepted; the server then refuses the Lease",
        here="refused",
        why="a Lease counts whole seconds",
    ),
    Deviation(
        subject="`parallelism`, `clientConnection.contentType`",
        upstream="workers of parallel loops; protobuf",
        here="accepted and without effect",
        why="all nodes are judged by one pass over columns; JSON only",
    ),
    Deviation(
        subject="Order of PreEnqueue plugins",
        upstream="any",
        here="that of the profile",
        why="a run can be replayed",
        back="nothing to do: any is right",
    ),
    Deviation(
        subject="`unschedulable_pods` when a queued pod is deleted",
        upstream="not corrected",
        here="corrected",
        why="the count would only ever grow",
    ),
    Deviation(
        subject="Cluster events kept for pods in flight",
        upstream="unbounded",
        here="100,000; a pod whose events were lost is retried after backoff",
        why="memory stays bounded",
    ),
    Deviation(
        subject="A pod whose name appears with a new uid",
        upstream="an update, as the watch tells it",
        here="a deletion and an addition",
        why="two pods are not versions of each other",
    ),
    Deviation(
        subject="A failed attempt for a pod that was bound meanwhile",
        upstream="the condition `PodScheduled=False` is written all the same",
        here="only the Event is written",
        why="the condition would be false",
    ),
    Deviation(
        subject="Image counts in ImageLocality",
        upstream="may lag until a node's own row is refreshed",
        here="live",
        why="nothing is copied",
    ),
    Deviation(
        subject="A kind the API server does not serve",
        upstream="never starts to schedule",
        here="taken for empty, told once, asked for again every minute; not pods and nodes",
        why="older servers stay usable",
    ),
    Deviation(
        subject="Watch broken off without an error",
        upstream="relists",
        here="continues from the last version seen",
        why="a relist of a large cluster is costly",
    ),
    Deviation(
        subject="Nodes an extender returns as objects",
        upstream="scored as if they had no pods",
        here="scored as they are",
        why="its answer says nothing of pods",
        back="set `nodeCacheCapable`, which has no such effect there either",
    ),
    Deviation(
        subject="Nodes an extender returns that it was not asked about",
        upstream="by name: an error; as objects: taken",
        here="an error either way",
        why="a node that does not fit must not be chosen",
    ),
    Deviation(
        subject="Extender scores",
        upstream="sums may wrap round 64 bits",
        here="bounded at 2^61",
        why="a wrong answer must not turn the order round",
        back="nothing to do",
    ),
    Deviation(
        subject="Cluster changed while extenders were asked",
        upstream="the choice is of the cluster as it was",
        here="the choice passes every Filter again; gone nodes are left out",
        why="a pod is not sent where it no longer fits",
    ),
    *COSCHEDULING,
    *FORGOTTEN_WAKE_UPS,
    Deviation(
        subject="Counters and constraints of a device that is rejected, or given back",
        upstream=(
            "v1.36.2 keeps them for the rest of the search: a pod that fits is not placed "
            "(kubernetes#140436); v1.36.3 gives them back"
        ),
        here="given back, as in v1.36.3",
        why="a pod that fits should start",
    ),
    Deviation(
        subject="Counters of a shared device with a share that consumes no capacity",
        upstream=(
            "taken again for the next share, in another attempt (kubernetes#140433, fixed in 1.37)"
        ),
        here="taken once, by the first share",
        why="a pod that fits should start",
    ),
    Deviation(
        subject="Counters of partitionable devices, two drivers with a pool of one name",
        upstream=(
            "kept by the name of the pool alone: only those of the driver asked first are "
            "watched, and the other's devices can be given away twice over"
        ),
        here="kept by driver and pool",
        why="devices must not be promised that cannot be cut",
    ),
    Deviation(
        subject="Claims that are given back (PostFilter, Unreserve)",
        upstream="are written while the attempt waits; where that fails, the pod goes to backoff",
        here="are written in the background; where that fails, the pod is tried again after 10 s",
        why="no decision waits for the API server",
    ),
    Deviation(
        subject="The special claim of a failed attempt (extended resources) is deleted",
        upstream="its pod, and pods that need its devices, wait for another event, or five minutes",
        here="the deletion queues them, as does that of any claim with devices",
        why="the room is there, and perhaps nothing else happens",
    ),
    Deviation(
        subject="A volume or a device that a failed binding gives back",
        upstream="pods that wait for it wait for another event, or five minutes",
        here="the failed binding queues them",
        why="it was held in the scheduler's memory alone, so perhaps nothing else happens",
    ),
    Deviation(
        subject="Members of a pod group that share a claim nobody has allocated yet",
        upstream="the second one to be bound fails: the claim is allocated elsewhere by then",
        here="it is bound: the claim has the devices that were decided on for both",
        why="the group would never be complete",
    ),
    Deviation(
        subject="Own claims beside an extended resource that the node's device plugin serves",
        upstream="makes a claim that asks for nothing, and then fails to bind the pod",
        here="makes no claim, and binds the pod",
        why="nothing is left to be allocated",
    ),
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
        here="evicts nobody and waits for these pods; its nomination to such a node stays",
        why="nobody is evicted for nothing",
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
        here="do not count as used; the nominated pods do. A nominated pod that lacks only their "
        "share waits for them",
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
        subject="A member at Permit (groupMode permit) while another member's victims stop",
        upstream="is rejected once the other member is tried again and has no room yet",
        here="stays at Permit",
        why="its room would be lost to other pods, and be evicted again",
    ),
    Deviation(
        subject="Order of PostFilter plugins (groupMode permit)",
        upstream="as configured",
        here="as configured, but Coscheduling comes last",
        why="Coscheduling would take the members off their nodes before victims are chosen",
    ),
)
"""By subject matter, in the order of the page."""

_HEADER = """# Deviations from kube-scheduler

<!-- Written by `make docs` from tools/pages/deviations_table.py. Do not edit. -->

Every knowing difference from kube-scheduler v1.36. A difference that is not in this table is a
fault: please report it.

| Subject | kube-scheduler | moorage | Why | To have kube-scheduler's way |
|---|---|---|---|---|
"""


def deviations_page() -> str:
    """Return the page: one row a difference."""
    return _HEADER + "".join(
        "| " + " | ".join(map(_cell, _cells(each))) + " |\n" for each in DEVIATIONS
    )


def _cells(each: Deviation) -> tuple[str, ...]:
    return each.subject, each.upstream, each.here, each.why, each.back or "not available"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

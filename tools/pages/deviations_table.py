"""Every knowing difference from kube-scheduler, as a table; ``docs/deviations.md`` is made of it.

A change that departs from kube-scheduler adds its row here, in the same commit.
"""

from __future__ import annotations

from typing import Final

from tools.pages.deviation import Deviation
from tools.pages.deviations_of_api import API
from tools.pages.deviations_of_devices import DEVICES
from tools.pages.deviations_of_groups import COSCHEDULING
from tools.pages.deviations_of_hints import FORGOTTEN_WAKE_UPS
from tools.pages.deviations_of_nominations import NOMINATIONS

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
        subject="Topologies that lag behind (NodeResourceTopologyMatch of scheduler-plugins)",
        upstream="are renewed by a timer; a deleted object counts on; each profile assumes apart; "
        "unknown values of `cache` mean the default; pods that have ended are in the fingerprint",
        here="are renewed in the first decision after the period; a deleted object is forgotten; "
        "profiles with equal arguments share what they assume; unknown values are refused; pods "
        "that have ended are in no fingerprint",
        why="nothing runs next to decisions, and the scheduler drops pods that have ended",
        back="have the exporter leave ended pods out",
    ),
    Deviation(
        subject="Metrics for TargetLoadPacking and LoadVariationRiskBalancing",
        upstream="the library load-watcher asks every minute and opens port 2020; SignalFx and "
        "Datadog too",
        here="asked every 30 seconds by the scheduler itself; other sources through a load-watcher",
        why="the scheduler opens no further port",
        back="`watcherAddress`",
    ),
    Deviation(
        subject="A preemptor of CapacityScheduling or PreemptionToleration whose victims go",
        upstream="its victims are evicted before its attempt ends",
        here="they are evicted next to the queue; it is held at PreEnqueue meanwhile",
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
        upstream="nothing is reported",
        here="a condition and an Event of the group and of one member say so within seconds",
        why="a group that waits in silence looks like a fault",
    ),
    Deviation(
        subject="A PodGroup of a composite group (1.37, the gate CompositePodGroup off)",
        upstream="is placed by itself, as if it had no `parentCompositePodGroupName`",
        here="is refused: its condition, an Event and its pods name the CompositePodGroup",
        why="a part that runs without the other parts wastes its room",
    ),
    Deviation(
        subject="The status of a CompositePodGroup",
        upstream="1.37 writes none (later versions do)",
        here="has the condition `CompositePodGroupInitiallyScheduled`, with the reason; so has "
        "each composite group below it",
        why="the reason stands where people look",
        back="nothing to do: 1.37 has the field and nothing reads it",
    ),
    Deviation(
        subject="The order in which the groups of a composite group are tried",
        upstream="that of a list of the scheduler",
        here="that of their pods in the queue",
        why="a run can be replayed",
        back="nothing to do: any is right",
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
        "label; the condition of the group has the status of one domain",
        here="also wait for a node that comes to a domain and for a member that is gone "
        "(TopologyPlacementGenerator registers both); the condition and the members say how many "
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
        subject="Sub-groups of groups of the plugin Coscheduling",
        upstream="none",
        here="the annotation `moorage.dev/sub-groups` of the PodGroup, or of the pods where there "
        "is no object: each sub-group has a minimum and may have a topology, and all are placed "
        "together",
        why="prefill and decode, or a launcher and its workers, are of no use without each other",
        back="leave the annotation out",
    ),
    Deviation(
        subject="Placements of a group that are tried (1.37, TopologyAwareWorkloadScheduling)",
        upstream="`percentageOfPlacementsToScore` unset: an adaptive part of them",
        here="unset: all of them; 0: the adaptive part, and any other value is honoured",
        why="all placements can be afforded, and the best one should be among those tried",
        back="`percentageOfPlacementsToScore: 0`",
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
        subject="Text of an error in a selector of devices",
        upstream="that of cel-go, for example `got 'types.Int', expected iterable type`",
        here="that of another CEL runtime, for example `no such overload`; it names the device",
        why="the runtime is another one; the same selectors fail",
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
    *API,
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
        upstream="an update, as in the watch",
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
        here="counts as empty, is logged once, is requested again each minute; not pods and nodes",
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
        subject="Extender whose `urlPrefix` is no http URL, or whose `httpTimeout` is negative",
        upstream="taken: each call fails, or has no limit",
        here="a fault of the configuration",
        why="no pod could be placed, or one call could stop all of them",
        back="not available",
    ),
    Deviation(
        subject="`leaderElection.leaseDuration` below one second",
        upstream="taken: replicas depose each other",
        here="a fault of the configuration, with leader election",
        why="a Lease counts whole seconds",
        back="not available",
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
        subject="Scores by free storage, where several CSIStorageCapacities suit a node",
        upstream="one of them counts, in the order of a map",
        here="the first by namespace and name counts",
        why="a run can be replayed",
        back="nothing to do: it is one of kube-scheduler's choices",
    ),
    *DEVICES,
    *NOMINATIONS,
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

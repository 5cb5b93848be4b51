"""Rules about the pods that wait when the cluster is at rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import (
    CORE_EVENTS,
    ELASTIC_QUOTAS,
    EVENTS,
    LEASES,
    POD_GROUPS,
    RESOURCE_CLAIMS,
    RESOURCES,
)
from moorage.base.clock import NS_PER_SECOND
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import ClusterObjects
from moorage_lab.fault_sim.broken_plugin import registry
from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.delayed_step import AWAITS_CALL, GATED, REFUSED
from moorage_lab.fault_sim.delayed_step import LABEL as DELAYED_STEP
from moorage_lab.fault_sim.history import (
    Obj,
    group_of,
    is_finished,
    name_of,
    node_of,
    nominated_of,
    priority_of,
)
from moorage_lab.fault_sim.invariants.at_writes import fits
from moorage_lab.fault_sim.invariants.inside import leaders
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import requested_resources, resources_of_devices
from moorage_lab.fault_sim.invariants.together import selects, terms
from moorage_lab.fault_sim.invariants.write_case import is_leaving, placed
from moorage_lab.fault_sim.setups import configuration, without_extenders

_UNREAD = (CORE_EVENTS, EVENTS, LEASES)
_CUSTOM = (ELASTIC_QUOTAS, COSCHEDULING_POD_GROUPS)

_FAILED_LATE = 'running PreBind plugin "VolumeBinding"'
# A broken connection hides a change from a scheduler for so long: see
# `moorage_lab.fault_sim.network_faults`.
_HIDDEN_NS = 60 * NS_PER_SECOND


def waiting(cluster: SimCluster) -> Iterator[Obj]:
    """Yield the pods without a node that some scheduler of the simulation is to place."""
    for pod in cluster.history.pods.values():
        ours = pod["spec"].get("schedulerName") == "default-scheduler"
        if ours and not node_of(pod) and not is_finished(pod) and not is_leaving(pod):
            yield pod


def _explained(cluster: SimCluster) -> Iterable[str]:
    gated = _held_back(cluster)
    for pod in waiting(cluster):
        if pod["metadata"]["uid"] in gated:
            continue  # as upstream, only the queue knows why PreEnqueue keeps a pod out
        conditions = [
            each
            for each in pod.get("status", {}).get("conditions") or ()
            if each["type"] == "PodScheduled" and each.get("status") == "False"
        ]
        reported = conditions and conditions[0].get("message") and conditions[0].get("reason")
        if not reported and not _group_says(cluster, pod):
            yield f"{name_of(pod)} waits, and nothing says why: {pod.get('status')}"


def _held_back(cluster: SimCluster) -> set[str]:
    """Return the uids of the pods that PreEnqueue keeps out of the leader's queue."""
    return {
        each.pod.uid
        for scheduler in leaders(cluster)
        for each in scheduler.core.queue.pending().gated
        if each.gating_reasons
    }


def _group_says(cluster: SimCluster, pod: Obj) -> bool:
    """Return whether the pod's group, or an Event about it, says why its pods wait."""
    key = group_of(pod)
    if not key:
        return False
    namespace, _, name = key.partition("/")
    group = cluster.history.server_objects(POD_GROUPS.qualified).get((namespace, name), {})
    if group.get("status", {}).get("conditions"):
        return True
    notes = [each.get("message", "") for each in cluster.history.server_objects("events").values()]
    return any(key in note for note in notes)


def _no_lost_wakeup(cluster: SimCluster) -> Iterable[str]:
    """Let a scheduler that has just been started decide about the same objects."""
    pods = list(waiting(cluster))
    nominated = [pod["metadata"]["uid"] for pod in pods if nominated_of(pod)]
    if not pods or _held_back(cluster).intersection(nominated):
        # A scheduler keeps the room that it promised to a pod that PreEnqueue has held back since,
        # as upstream; one that has just been started does not know the promise.
        return
    objects = ClusterObjects()
    shelves = cluster.served.store.shelves()
    for resource in (*RESOURCES, *_CUSTOM):
        if resource not in _UNREAD and resource.qualified in shelves:
            for record in shelves[resource.qualified].records():
                objects.add_json(record.data)
    pending = [pod.uid for pod in objects.pending_pods]
    model = ClusterModel(
        ClusterInputs(
            objects=objects,
            registry=registry(),
            config=without_extenders(_in_force(cluster)),
            draws=Streams(cluster.seed),
            now_ns=cluster.clock.now_ns(),
        )
    )
    model.settle(within_seconds=60)
    if model.evictions:
        # A pod that could evict others after an event is not woken by it, unless the event is about
        # what turned the pod away. So room that evictions make proves nothing: see `_preempts`.
        return
    names = {pod.uid: pod.full_name for pod in objects.pending_pods}
    for uid in pending:
        if uid in model.bound and not _unheard(cluster, cluster.history.pods[uid]):
            yield f"{names[uid]} waits, and a scheduler that has just been started places it"


def _in_force(cluster: SimCluster) -> LoadedConfiguration:
    """Return the configuration of the leader, which may have been given another one."""
    for scheduler in leaders(cluster):
        return scheduler.parts.reload.config
    return configuration(cluster.setup)


def _fits_nowhere(cluster: SimCluster) -> Iterable[str]:
    """Ask the rules of this room, which no scheduler shares, for a node for each waiting pod."""
    if any(nominated_of(pod) for pod in waiting(cluster)):
        return  # room may be kept for the nominated pod
    for pod in waiting(cluster):
        if not _alone(cluster, pod) or _unheard(cluster, pod):
            continue
        for node in cluster.history.nodes:
            if fits(placed(pod, node, cluster.history)):
                yield f"{name_of(pod)} waits, and {node} has room for it"


def _unheard(cluster: SimCluster, pod: Obj) -> bool:
    """Return whether room may have come by a change that wakes nobody, here as upstream.

    A pod that another one keeps away by its anti-affinity is not woken when a node changes
    (kubernetes v1.36 ``pkg/scheduler/framework/plugins/interpodaffinity/plugin.go``).
    """
    return _nodes_changed_since(cluster, pod) and any(
        selects(term, pod, of=other)
        for other in cluster.history.pods.values()
        for term in terms(other, "podAntiAffinity")
        if node_of(other)
    )


def _nodes_changed_since(cluster: SimCluster, pod: Obj) -> bool:
    """Return whether the last attempt for a pod may have missed a change of a node."""
    changed_ns = max(cluster.history.node_changed_ns.values(), default=0)
    return _may_have_missed(cluster, pod, changed_ns)


def _may_have_missed(cluster: SimCluster, pod: Obj, changed_ns: int) -> bool:
    """Return whether the last attempt for a pod may not know of a change."""
    tried_ns = cluster.history.popped_ns.get(pod["metadata"]["uid"], 0)
    hidden_ns = 0 if cluster.undisturbed else _HIDDEN_NS
    return changed_ns + hidden_ns >= tried_ns


def _preempts(cluster: SimCluster) -> Iterable[str]:
    """Look for a node on which a waiting pod fits once pods of lower priority are gone.

    Where a volume keeps a pod from a node, and the node has no room besides, only the room turned
    the pod away. So a change of the volume does not wake the pod, as upstream.
    """
    volumes_ns = cluster.history.volume_changed_ns
    for pod in waiting(cluster):
        if pod["spec"].get("preemptionPolicy") == "Never" or not _alone(cluster, pod):
            continue
        if _nodes_changed_since(cluster, pod):
            continue
        if pod["spec"].get("volumes") and _may_have_missed(cluster, pod, volumes_ns):
            continue
        for node in cluster.history.nodes:
            lower = [
                each["metadata"]["uid"]
                for each in cluster.history.on_node(node)
                if priority_of(each) < priority_of(pod) and _same_quota(cluster, each, pod)
            ]
            if lower and fits(placed(pod, node, cluster.history, without=lower)):
                yield f"{name_of(pod)} waits, and may have the room of {len(lower)} pods of {node}"


def _same_quota(cluster: SimCluster, one: Obj, other: Obj) -> bool:
    """Return whether quotas let one pod take the room of the other: pods of one namespace may."""
    quotas = cluster.history.server_objects(ELASTIC_QUOTAS.qualified)
    return not quotas or one["metadata"]["namespace"] == other["metadata"]["namespace"]


def _alone(cluster: SimCluster, pod: Obj) -> bool:
    """Return whether the rules of this room say all about a pod: no group, gate or device."""
    if requested_resources(pod) & resources_of_devices(cluster.history):
        return False
    spec = pod["spec"]
    labels = pod["metadata"].get("labels", {})
    return not (
        spec.get("schedulingGates")
        or spec.get("schedulingGroup")
        or spec.get("resourceClaims")
        or any(
            "pod-group" in key or key in (DELAYED_STEP, GATED, AWAITS_CALL, REFUSED)
            for key in labels
        )
        or pod["metadata"]["namespace"] != "default"
    )


def _promises(cluster: SimCluster) -> Iterable[str]:
    """Compare the node that a pod's status promises with the one that the leader keeps for it.

    A leader that began later does not read the promise of a pod that PreEnqueue holds back, as
    upstream.
    """
    held_back = _held_back(cluster)
    for scheduler in leaders(cluster):
        nominator = scheduler.core.queue.nominator
        for pod in waiting(cluster):
            if (
                pod["metadata"]["uid"] in held_back
                and nominator.node_of(pod["metadata"]["uid"]) is None
            ):
                continue
            node = nominator.node_of(pod["metadata"]["uid"]) or ""
            if nominated_of(pod) != node:
                promised = nominated_of(pod) or "no node"
                yield f"{name_of(pod)} is promised {promised}, and {node or 'none'} is kept for it"


def _promised_in_vain(cluster: SimCluster) -> Iterable[str]:
    """Look for a promise that the last attempt must have taken back: nothing makes the pod fit."""
    for pod in waiting(cluster):
        node = nominated_of(pod)
        polite = pod["spec"].get("preemptionPolicy") == "Never"
        if node not in cluster.history.nodes or polite or not _alone(cluster, pod):
            continue
        if _nodes_changed_since(cluster, pod):
            continue
        lower = [
            each["metadata"]["uid"]
            for each in cluster.history.on_node(node)
            if priority_of(each) < priority_of(pod)
        ]
        if not fits(placed(pod, node, cluster.history, without=lower)):
            yield f"{name_of(pod)} is promised {node}, and cannot go there"


def _reserved_in_vain(cluster: SimCluster) -> Iterable[str]:
    """Look for claims that are reserved for a pod that waits; a fault may leave a reservation."""
    if not cluster.faultless:
        return
    names = {pod["metadata"]["uid"]: name_of(pod) for pod in waiting(cluster)}
    for (_, name), claim in cluster.history.server_objects(RESOURCE_CLAIMS.qualified).items():
        for user in claim.get("status", {}).get("reservedFor") or ():
            if user["uid"] in names:
                yield f"claim {name} is reserved for {names[user['uid']]}, which waits"


def _gang_says(cluster: SimCluster) -> Iterable[str]:
    """Look for gangs whose status does not say that they wait; with faults it may be lost."""
    for (namespace, name), group in cluster.history.server_objects(POD_GROUPS.qualified).items():
        key = f"{namespace}/{name}"
        tried = any(
            group_of(pod) == key and pod["metadata"]["uid"] in cluster.history.popped_ns
            for pod in waiting(cluster)
        )
        if cluster.undisturbed and tried and not group.get("status", {}).get("conditions"):
            yield f"group {key} waits, and its status does not say why"


def _gangs(cluster: SimCluster) -> Iterable[str]:
    """Look for a gang that has never been whole and has a pod on a node.

    A pod of higher priority may take the place of one member before that member is bound. A plugin
    may fail one member at Permit or in PreBind when others are let go, and a pod takes its place:
    so does VolumeBinding where two members share a claim that was not bound. A member that ends
    frees its room, also while a finalizer keeps it.
    """
    history = cluster.history
    called_off = {
        each["involvedObject"].get("uid")
        for each in history.server_objects(CORE_EVENTS.qualified).values()
        if each.get("reason") == "Preempted" or _FAILED_LATE in each.get("message", "")
    }
    for (namespace, name), group in history.server_objects(POD_GROUPS.qualified).items():
        least = group["spec"].get("schedulingPolicy", {}).get("gang", {}).get("minCount", 0)
        key = f"{namespace}/{name}"
        if key in history.excused_groups:
            continue
        members = [pod for pod in history.pods.values() if group_of(pod) == key]
        there = [pod for pod in members if node_of(pod)]
        if any(is_leaving(pod) or is_finished(pod) for pod in there):
            continue
        if any(
            pod["metadata"]["uid"] in called_off | cluster.plugin_faults.spoiled for pod in members
        ):
            continue
        if 0 < len(there) < least:
            yield f"group {key}: {len(there)} of {least} pods have a node"


PLACED: tuple[Invariant[SimCluster], ...] = (
    Invariant(
        "no-lost-wakeup",
        "No pod waits that a scheduler just started would place.",
        "lost wake-ups of QueueingHints (kubernetes#109437, #122018)",
        _no_lost_wakeup,
    ),
    Invariant(
        "fits-nowhere",
        "No pod waits that fits on a node, by a naive reading of the rules.",
        "a filter turns away too many nodes (kubernetes#95449)",
        _fits_nowhere,
    ),
)

WAITING: tuple[Invariant[SimCluster], ...] = (
    Invariant(
        "explained",
        "A pod that waits says why.",
        "a pod waits without a condition (kubernetes#107556)",
        _explained,
    ),
    *PLACED,
    Invariant(
        "promises",
        "The leader keeps the nodes that the statuses of pods promise.",
        "a promise that was taken back comes to life with the next leader",
        _promises,
    ),
    Invariant(
        "promised-in-vain",
        "No pod keeps the promise of a node that nothing makes fit.",
        "room is kept for a pod that never comes",
        _promised_in_vain,
    ),
    Invariant(
        "reserved-in-vain",
        "No claim is reserved for a pod that waits.",
        "a claim that nobody uses cannot be taken back",
        _reserved_in_vain,
    ),
    Invariant(
        "gang-says", "A gang that waits says why.", "nobody can tell what is missing", _gang_says
    ),
    Invariant(
        "preempts",
        "No pod waits that may have the room of less important pods.",
        "preemption overlooks a candidate (kubernetes#88442)",
        _preempts,
    ),
    Invariant("gangs", "All or none of a gang are placed.", "half a gang holds room", _gangs),
)

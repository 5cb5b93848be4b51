"""Rules about the pods that wait when the cluster is at rest.

Each waiting pod says why. None waits that has room: neither by the decision of a scheduler that has
just been started, nor by a naive reading of the rules, nor in the place of less important pods.
What is promised or reserved for it is really for it. And all of a gang is placed, or none of it.

Upstream lets some pods wait although there is room, and so does moorage. Where a rule leaves such a
pod out, the reason stands there.
"""

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

# Kinds that no decision reads, and kinds that only some plugins read.
_UNREAD = (CORE_EVENTS, EVENTS, LEASES)
_CUSTOM = (ELASTIC_QUOTAS, COSCHEDULING_POD_GROUPS)

# A broken connection hides a change from a scheduler for so long: see
# `moorage_lab.fault_sim.network_faults`.
_HIDDEN_NS = 60 * NS_PER_SECOND


def waiting(cluster: SimCluster) -> Iterator[Obj]:
    """Yield the pods without a node that some scheduler of the simulation is to place."""
    for pod in cluster.history.pods.values():
        ours = pod["spec"].get("schedulerName") == "default-scheduler"
        if ours and not node_of(pod) and not is_finished(pod) and not is_leaving(pod):
            yield pod


# --- each says why --------------------------------------------------------------------------------


def _explained(cluster: SimCluster) -> Iterable[str]:
    """Expect a condition of the pod, or its group, to say why it waits.

    As upstream, only the queue knows why PreEnqueue keeps a pod out.
    """
    gated = _gated_uids(cluster)
    for pod in waiting(cluster):
        conditions = pod.get("status", {}).get("conditions") or ()
        unscheduled = [
            each
            for each in conditions
            if each["type"] == "PodScheduled" and each.get("status") == "False"
        ]
        reported = any(each.get("message") and each.get("reason") for each in unscheduled[:1])
        if not (pod["metadata"]["uid"] in gated or reported or _group_explains(cluster, pod)):
            yield f"{name_of(pod)} waits, and nothing says why: {pod.get('status')}"


def _gated_uids(cluster: SimCluster) -> set[str]:
    """Return the uids of the pods that PreEnqueue keeps out of the leader's queue."""
    queues = [scheduler.core.queue for scheduler in leaders(cluster)]
    gated = [each for queue in queues for each in queue.pending().gated]
    return {each.pod.uid for each in gated if each.gating_reasons}


def _group_explains(cluster: SimCluster, pod: Obj) -> bool:
    """Return whether the pod's group, or an Event about it, says why its pods wait."""
    key = group_of(pod)
    if not key:
        return False
    namespace, _, name = key.partition("/")
    group = cluster.history.server_objects(POD_GROUPS.qualified).get((namespace, name), {})
    notes = [each.get("message", "") for each in cluster.history.server_objects("events").values()]
    return _has_conditions(group) or any(key in note for note in notes)


def _has_conditions(group: Obj) -> bool:
    return bool(group.get("status", {}).get("conditions"))


def _gang_says(cluster: SimCluster) -> Iterable[str]:
    """Expect the status of a tried gang to say that it waits; a fault may lose it."""
    if not cluster.undisturbed:
        return
    popped = cluster.history.popped_ns
    tried = {group_of(pod) for pod in waiting(cluster) if pod["metadata"]["uid"] in popped}
    for (namespace, name), group in cluster.history.server_objects(POD_GROUPS.qualified).items():
        key = f"{namespace}/{name}"
        if key in tried and not _has_conditions(group):
            yield f"group {key} waits, and its status does not say why"


# --- none has room --------------------------------------------------------------------------------


def _no_lost_wakeup(cluster: SimCluster) -> Iterable[str]:
    """Expect a scheduler that has just been started to place no waiting pod.

    It proves nothing in two cases:

    - A scheduler keeps the room that it promised to a pod that PreEnqueue has held back since, as
      upstream. One that has just been started does not know the promise.
    - It evicts pods. A pod that could evict others after an event is not woken by it, unless the
      event is about what turned the pod away: see `_preempts`.
    """
    nominated = {pod["metadata"]["uid"] for pod in waiting(cluster) if nominated_of(pod)}
    if not any(waiting(cluster)) or _gated_uids(cluster) & nominated:
        return
    objects = _objects_of_server(cluster)
    names = {pod.uid: pod.full_name for pod in objects.pending_pods}
    inputs = ClusterInputs(
        objects=objects,
        registry=registry(),
        config=without_extenders(_config_of_leader(cluster)),
        draws=Streams(cluster.seed),
        now_ns=cluster.clock.now_ns(),
    )
    model = ClusterModel(inputs)
    model.settle(within_seconds=60)
    for uid, name in names.items() if not model.evictions else ():
        if uid in model.bound and not _changed_unheard(cluster, cluster.history.pods[uid]):
            yield f"{name} waits, and a scheduler that has just been started places it"


def _objects_of_server(cluster: SimCluster) -> ClusterObjects:
    objects = ClusterObjects()
    shelves = cluster.served.store.shelves()
    for resource in (*RESOURCES, *_CUSTOM):
        if resource not in _UNREAD and resource.qualified in shelves:
            for record in shelves[resource.qualified].records():
                objects.add_json(record.data)
    return objects


def _config_of_leader(cluster: SimCluster) -> LoadedConfiguration:
    """Return the configuration of the leader, which may have been given another one."""
    for scheduler in leaders(cluster):
        return scheduler.parts.reload.config
    return configuration(cluster.setup)


def _fits_nowhere(cluster: SimCluster) -> Iterable[str]:
    """Expect no node to take a waiting pod by the rules of this room, which no scheduler shares.

    Room may be kept for a pod that has a promise, so nothing is judged while one waits.
    """
    if any(nominated_of(pod) for pod in waiting(cluster)):
        return
    for pod in waiting(cluster):
        if _is_plain(cluster, pod) and not _changed_unheard(cluster, pod):
            for node in cluster.history.nodes:
                if fits(placed(pod, node, cluster.history)):
                    yield f"{name_of(pod)} waits, and {node} has room for it"


def _preempts(cluster: SimCluster) -> Iterable[str]:
    """Expect no node to take a waiting pod once the pods of lower priority are gone.

    Where a volume keeps a pod from a node, and the node has no room besides, only the room turned
    the pod away. So a change of the volume does not wake the pod, as upstream.
    """
    history = cluster.history
    for pod in _preemptors(cluster):
        if pod["spec"].get("volumes") and _may_have_missed(cluster, pod, history.volume_changed_ns):
            continue
        for node in history.nodes:
            lower = _lower_pods(cluster, node, pod)
            victims = [
                each["metadata"]["uid"] for each in lower if _share_quota(cluster, each, pod)
            ]
            if victims and fits(placed(pod, node, history, without=victims)):
                count = len(victims)
                yield f"{name_of(pod)} waits, and may have the room of {count} pods of {node}"


def _preemptors(cluster: SimCluster) -> Iterator[Obj]:
    """Yield the waiting pods that may evict others, and were tried with all nodes as they are."""
    for pod in waiting(cluster):
        may_evict = pod["spec"].get("preemptionPolicy") != "Never"
        if may_evict and _is_plain(cluster, pod) and not _nodes_changed_since(cluster, pod):
            yield pod


def _lower_pods(cluster: SimCluster, node: str, pod: Obj) -> list[Obj]:
    there = cluster.history.on_node(node)
    return [each for each in there if priority_of(each) < priority_of(pod)]


def _share_quota(cluster: SimCluster, one: Obj, other: Obj) -> bool:
    """Return whether quotas let one pod take the room of the other: pods of one namespace may."""
    quotas = cluster.history.server_objects(ELASTIC_QUOTAS.qualified)
    return not quotas or one["metadata"]["namespace"] == other["metadata"]["namespace"]


def _is_plain(cluster: SimCluster, pod: Obj) -> bool:
    """Return whether the rules of this room say all about a pod: no group, gate or device."""
    spec, labels = pod["spec"], pod["metadata"].get("labels", {})
    if any(spec.get(field) for field in ("schedulingGates", "schedulingGroup", "resourceClaims")):
        return False
    if any("pod-group" in key for key in labels) or not _HELD_BY_PLUGIN.isdisjoint(labels):
        return False
    devices = requested_resources(pod) & resources_of_devices(cluster.history)
    return not devices and pod["metadata"]["namespace"] == "default"


_HELD_BY_PLUGIN = frozenset({DELAYED_STEP, GATED, AWAITS_CALL, REFUSED})


# --- changes that a pod need not know -------------------------------------------------------------


def _changed_unheard(cluster: SimCluster, pod: Obj) -> bool:
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


# --- promises and reservations --------------------------------------------------------------------


def _promises(cluster: SimCluster) -> Iterable[str]:
    """Expect the leader to keep the node that a pod's status promises, and no other.

    A leader that began later does not read the promise of a pod that PreEnqueue holds back, as
    upstream.
    """
    gated = _gated_uids(cluster)
    for scheduler in leaders(cluster):
        for pod in waiting(cluster):
            uid, promised = pod["metadata"]["uid"], nominated_of(pod)
            node = scheduler.core.queue.nominator.node_of(uid)
            unread = node is None and uid in gated
            if promised != (node or "") and not unread:
                there = promised or "no node"
                yield f"{name_of(pod)} is promised {there}, and {node or 'none'} is kept for it"


def _promised_in_vain(cluster: SimCluster) -> Iterable[str]:
    """Expect a promised node to fit its pod once less important pods are gone.

    Else the last attempt must have taken the promise back.
    """
    for pod in _preemptors(cluster):
        node = nominated_of(pod)
        if node in cluster.history.nodes:
            victims = [each["metadata"]["uid"] for each in _lower_pods(cluster, node, pod)]
            if not fits(placed(pod, node, cluster.history, without=victims)):
                yield f"{name_of(pod)} is promised {node}, and cannot go there"


def _reserved_in_vain(cluster: SimCluster) -> Iterable[str]:
    """Expect no claim to be reserved for a pod that waits; a fault may leave a reservation."""
    if not cluster.faultless:
        return
    names = {pod["metadata"]["uid"]: name_of(pod) for pod in waiting(cluster)}
    for (_, name), claim in cluster.history.server_objects(RESOURCE_CLAIMS.qualified).items():
        for user in claim.get("status", {}).get("reservedFor") or ():
            if user["uid"] in names:
                yield f"claim {name} is reserved for {names[user['uid']]}, which waits"


# --- gangs ----------------------------------------------------------------------------------------


def _gangs(cluster: SimCluster) -> Iterable[str]:
    """Expect a gang to have no pod on a node, or as many as it needs."""
    for (namespace, name), group in cluster.history.server_objects(POD_GROUPS.qualified).items():
        key = f"{namespace}/{name}"
        least = group["spec"].get("schedulingPolicy", {}).get("gang", {}).get("minCount", 0)
        members = [pod for pod in cluster.history.pods.values() if group_of(pod) == key]
        there = [pod for pod in members if node_of(pod)]
        if 0 < len(there) < least and not _may_lack_members(cluster, key, members):
            yield f"group {key}: {len(there)} of {least} pods have a node"


def _may_lack_members(cluster: SimCluster, group: str, members: list[Obj]) -> bool:
    """Return whether a gang was whole before, or was called off after it was decided.

    A member that ends frees its room, also while a finalizer keeps it. A pod of higher priority may
    take the place of one member before that member is bound. A plugin may fail one member at Permit
    or in PreBind when others are let go, and a pod takes its place: so does VolumeBinding where two
    members share a claim that was not bound.
    """
    history = cluster.history
    if group in history.excused_groups:
        return True
    if any(node_of(pod) and (is_leaving(pod) or is_finished(pod)) for pod in members):
        return True
    failed_late = {
        each["involvedObject"].get("uid")
        for each in history.server_objects(CORE_EVENTS.qualified).values()
        if each.get("reason") == "Preempted"
        or 'running PreBind plugin "VolumeBinding"' in each.get("message", "")
    }
    failed_late |= cluster.plugin_faults.spoiled
    return any(pod["metadata"]["uid"] in failed_late for pod in members)


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

"""Rules about the inside of a scheduler: what it believes, and what it keeps.

`INSIDE` holds at every moment between two steps; `AT_END` holds once the cluster is at rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.codec import from_dict, to_dict
from moorage.api.meta import Condition
from moorage.api.node import Node
from moorage.api.pod import Pod, PodStatus
from moorage.service.core import Core
from moorage.service.intake.kinds import CUSTOM, WATCHED, WatchedKind
from moorage.service.intake.pod_store import PodStore
from moorage.service.scheduler import Scheduler
from moorage.snapshot.snapshot import Snapshot
from moorage.state.compare import compare
from moorage.state.lifecycle import PodState
from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.history import name_of, node_of
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import asks

_NANO_PER_MILLI = 1_000_000


def leaders(cluster: SimCluster) -> list[Scheduler]:
    """Return the schedulers that may write."""
    return [
        replica.scheduler
        for replica in cluster.replicas.values()
        if replica.leading and replica.scheduler is not None
    ]


def synced(cluster: SimCluster) -> list[Scheduler]:
    """Return the schedulers that have listed everything and run."""
    return [
        replica.scheduler
        for replica in cluster.replicas.values()
        if replica.scheduler is not None and replica.scheduler.synced and not replica.process.dead
    ]


def _agrees(cluster: SimCluster) -> Iterable[str]:
    pods = [from_dict(Pod, pod) for pod in cluster.history.pods.values()]
    nodes = [from_dict(Node, node) for node in cluster.history.nodes.values()]
    for replica in cluster.replicas.values():
        scheduler = replica.scheduler
        if scheduler is None or not scheduler.synced:
            yield f"{replica.identity} has not listed everything"
            continue
        core = scheduler.core
        difference = compare(
            core.cache,
            core.queue,
            [pod for pod in pods if not _is_given_up(core, pod)],
            nodes,
            responsible=lambda pod: pod.spec.scheduler_name == "default-scheduler",
        )
        if not difference.empty:
            yield f"{replica.identity}: {difference}"
        for pod in core.store.all_pods():
            stored = cluster.history.pods.get(pod.uid)
            if stored and stored["metadata"]["resourceVersion"] != pod.metadata.resource_version:
                yield f"{replica.identity} knows an old version of {name_of(stored)}"


def _is_given_up(core: Core, pod: Pod) -> bool:
    """Whether a scheduler has dropped a pod without a node, because the pod is being deleted."""
    leaves = bool(pod.metadata.deletion_timestamp) and not pod.spec.node_name
    return leaves and core.cache.lifecycle.state(pod.uid) is PodState.GONE


def _other_kinds(cluster: SimCluster) -> Iterable[str]:
    """Compare each lister with the server: the same objects in the same versions."""
    stored = {kind.lister: _versions_stored(cluster, kind) for kind in (*WATCHED, *CUSTOM)}
    for scheduler in synced(cluster):
        for kind in (*WATCHED, *_watched_custom(scheduler)):
            listed = {
                (obj.metadata.namespace, obj.metadata.name): obj.metadata.resource_version
                for obj in getattr(scheduler.core.snapshot.listers, kind.lister).all()
            }
            if listed != stored[kind.lister]:
                wrong = sorted(set(listed.items()) ^ set(stored[kind.lister].items()))
                yield f"{kind.resource.plural}: {wrong[:3]} differ"


def _watched_custom(scheduler: Scheduler) -> list[WatchedKind]:
    plurals = {each.plural for each in scheduler.parts.reflectors}
    return [kind for kind in CUSTOM if kind.resource.plural in plurals]


def _versions_stored(cluster: SimCluster, kind: WatchedKind) -> dict[tuple[str, str], str]:
    objects = cluster.history.server_objects(kind.resource.qualified)
    return {key: obj["metadata"]["resourceVersion"] for key, obj in objects.items()}


def _valid(cluster: SimCluster) -> Iterable[str]:
    for scheduler in synced(cluster):
        core = scheduler.core
        for part in (core.cache, core.queue, core.queue.nominator, core.snapshot.groups):
            try:
                part.validate()
            except AssertionError as problem:
                yield f"{type(part).__name__}: {problem}"


def _columns(cluster: SimCluster) -> Iterable[str]:
    """Compare what a node's row says is requested with the sum over its pods.

    The pods count as the scheduler has heard of them: after an outage it may not know for minutes
    that a pod was resized. An assumed pod counts as it was when it was decided, as upstream.
    """
    for scheduler in synced(cluster):
        snapshot, dump = scheduler.core.snapshot, scheduler.core.cache.dump()
        for name in dump.nodes:
            row = snapshot.row_of(name)
            if row is None:
                yield f"node {name} has no row"
                continue
            here = sorted(info.uid for info in snapshot.pods(row))
            cached = sorted(uid for uid, node in dump.node_of_pod.items() if node == name)
            if here != cached:
                yield f"node {name} has pods {here} in its row, {cached} in the cache"
            assumed = {uid: dump.pods[uid] for uid in dump.assumed}
            yield from _wrong_sums(scheduler.core.store, assumed, snapshot, row)


def _wrong_sums(
    store: PodStore, assumed: Mapping[str, Pod], snapshot: Snapshot, row: int
) -> Iterable[str]:
    name, here = snapshot.names[row], [info.uid for info in snapshot.pods(row)]
    counted = int(snapshot.pod_count[row])
    if counted != len(here):
        yield f"node {name} counts {counted} pods, and has {len(here)}"
    known = [pod for uid in here if (pod := assumed.get(uid) or _stored(store, uid))]
    requests = sum(asks(to_dict(pod), "cpu") for pod in known)
    booked = int(snapshot.requested("cpu")[row])
    if len(known) == len(here) and booked != requests // _NANO_PER_MILLI:
        yield f"node {name} has {booked}m of cpu requested, its pods ask {requests} billionths"


def _stored(store: PodStore, uid: str) -> Pod | None:
    key = store.name_of(uid)
    return None if key is None else store.get(*key)


def _nothing_under_way(cluster: SimCluster) -> Iterable[str]:
    for scheduler in leaders(cluster):
        core = scheduler.core
        pending = core.queue.pending()
        if pending.in_flight or pending.active or scheduler.bindings:
            yield (
                f"in flight {pending.in_flight}, active {len(pending.active)}, "
                f"bindings {scheduler.bindings}"
            )
        for each in pending.gated:
            if any("waiting for the preemption" in reason for reason in each.gating_reasons):
                yield f"{each.pod.full_name} is held for evictions, and none is under way"
        if assumed := core.cache.dump().assumed:
            yield f"assumed pods are left: {sorted(assumed)}"


def _nothing_left(cluster: SimCluster) -> Iterable[str]:
    """Look for things that are kept for pods that are gone."""
    pods = cluster.history.pods
    for scheduler in leaders(cluster):
        core = scheduler.core
        strangers = [uid for uid, _ in core.queue.nominator if uid not in pods]
        if strangers:
            yield f"pods that are gone are nominated: {strangers}"
        there = [uid for uid, _ in core.queue.nominator if uid in pods and node_of(pods[uid])]
        if there:
            yield f"pods that have a node are nominated: {there}"
        tried = [
            uid for uid in core.cache.lifecycle.in_state(PodState.IN_FLIGHT) if uid not in pods
        ]
        if tried:
            yield f"pods that are gone are still tried: {tried}"
        stored = {pod.uid for pod in core.store.all_pods()}
        if stored - set(pods):
            yield f"pods that are gone are kept: {sorted(stored - set(pods))}"


def _nominated_once(cluster: SimCluster) -> Iterable[str]:
    """Look for pods that count twice: as assumed on a node, and as nominated to one."""
    for scheduler in synced(cluster):
        assumed = scheduler.core.cache.dump().assumed
        for uid, node in scheduler.core.queue.nominator:
            if uid in assumed:
                yield f"pod {uid} is assumed, and still nominated to {node}"


def _statuses(cluster: SimCluster) -> Iterable[str]:
    """Compare what a scheduler takes for the status of a pod with the server's."""
    for scheduler in synced(cluster):
        for uid, status in scheduler.parts.writes.in_hand().items():
            stored = cluster.history.pods.get(uid)
            if stored is None:
                yield f"the status of pod {uid}, which is gone, is kept"
                continue
            if _reported(from_dict(Pod, stored).status) != _reported(status):
                yield f"{name_of(stored)} has another status than the scheduler wrote: {status}"


def _reported(status: PodStatus) -> tuple[list[Condition], str]:
    """Return the part that a scheduler writes; node agents may have written others meanwhile."""
    scheduled = [each for each in status.conditions if each.type == "PodScheduled"]
    return scheduled, status.nominated_node_name


def _groups_agree(cluster: SimCluster) -> Iterable[str]:
    """Compare the members of each group, and which of them have a node, with the server."""
    pods = cluster.history.pods
    for scheduler in synced(cluster):
        for key, members in scheduler.core.snapshot.groups.all_groups().items():
            known = [pods[uid] for uid in members.pods if uid in pods]
            gone = [uid for uid in members.pods if uid not in pods]
            placed = {pod["metadata"]["uid"] for pod in known if node_of(pod)}
            if gone or set(members.assigned) != placed or members.assumed:
                counted = [*members.assigned, *members.assumed]
                yield f"group {key.full_name}: {gone} are gone, {placed} placed, {counted} counted"


INSIDE: tuple[Invariant[SimCluster], ...] = (
    Invariant("valid", "Cache and queue obey their own rules.", "states drift apart", _valid),
    Invariant(
        "columns",
        "The snapshot's rows hold what the cache holds.",
        "a snapshot that misses an update (kubernetes#89908)",
        _columns,
    ),
    Invariant(
        "counted-once",
        "A pod on its way to a node is nominated no more.",
        "a nomination outlives the decision, and the pod takes its room twice",
        _nominated_once,
    ),
)

AT_END: tuple[Invariant[SimCluster], ...] = (
    *INSIDE,
    Invariant("belief", "Every cache equals the server.", "a lost watch event", _agrees),
    Invariant("other-kinds", "Every lister equals the server.", "a lost watch event", _other_kinds),
    Invariant(
        "members",
        "A group has the members that the server has, and they have a node or none.",
        "a member that is gone counts for its gang",
        _groups_agree,
    ),
    Invariant(
        "statuses",
        "Every status that a scheduler goes by is the server's.",
        "a status that was written is never read again",
        _statuses,
    ),
    Invariant(
        "under-way",
        "No attempt, binding, eviction or assumed pod is left.",
        "an assumed pod holds room for ever (kubernetes#106361)",
        _nothing_under_way,
    ),
    Invariant(
        "nothing-left",
        "Nothing is kept for pods that are gone, and no promise for pods that have a node.",
        "a nomination outlives its pod (kubernetes#85677)",
        _nothing_left,
    ),
)

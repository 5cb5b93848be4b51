"""What must hold when faults are over and every timer had its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.resources import CORE_EVENTS, LEASES, RESOURCES
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.scheduler import Scheduler
from moorage.sim.cluster import SimCluster
from moorage.sim.history import Obj, is_finished, name_of, node_of
from moorage.sim.invariants.at_writes import asks
from moorage.sim.invariants.invariant import Invariant
from moorage.state.compare import compare
from moorage.what_if.lists import Objects
from moorage.what_if.rehearsal import Rehearsal
from moorage.what_if.world import World


def leaders(cluster: SimCluster) -> list[Scheduler]:
    """Return the schedulers that may write."""
    return [
        replica.scheduler
        for replica in cluster.replicas.values()
        if replica.leading and replica.scheduler is not None
    ]


def _one_leader(cluster: SimCluster) -> Iterable[str]:
    count = len(leaders(cluster))
    if count != 1:
        yield f"{count} schedulers lead"


def _agrees(cluster: SimCluster) -> Iterable[str]:
    pods = [from_dict(Pod, pod) for pod in cluster.history.pods.values()]
    nodes = [from_dict(Node, node) for node in cluster.history.nodes.values()]
    for replica in cluster.replicas.values():
        scheduler = replica.scheduler
        if scheduler is None or not scheduler.synced:
            yield f"{replica.identity} has not listed everything"
            continue
        core = scheduler.core
        found = compare(
            core.cache,
            core.queue,
            pods,
            nodes,
            responsible=lambda pod: pod.spec.scheduler_name == "default-scheduler",
        )
        if not found.empty:
            yield f"{replica.identity}: {found}"


def _valid(cluster: SimCluster) -> Iterable[str]:
    for scheduler in leaders(cluster):
        core = scheduler.core
        for part in (core.cache, core.queue):
            try:
                part.validate()
            except AssertionError as problem:
                yield f"{type(part).__name__}: {problem}"


def _nothing_under_way(cluster: SimCluster) -> Iterable[str]:
    for scheduler in leaders(cluster):
        pending = scheduler.core.queue.pending()
        if pending.in_flight or pending.active or scheduler.bindings:
            yield (
                f"in flight {pending.in_flight}, active {len(pending.active)}, "
                f"bindings {scheduler.bindings}"
            )
        if assumed := scheduler.core.cache.dump().assumed:
            yield f"assumed pods are left: {sorted(assumed)}"


def _explained(cluster: SimCluster) -> Iterable[str]:
    for pod in waiting(cluster):
        found = [
            each
            for each in pod.get("status", {}).get("conditions") or ()
            if each["type"] == "PodScheduled" and each["status"] == "False"
        ]
        if not found or not (found[0].get("message") and found[0].get("reason")):
            yield f"{name_of(pod)} waits, and nothing says why: {pod.get('status')}"


def waiting(cluster: SimCluster) -> Iterator[Obj]:
    """Yield the pods without a node."""
    for pod in cluster.history.pods.values():
        if not node_of(pod) and not is_finished(pod) and "deletionTimestamp" not in pod["metadata"]:
            yield pod


def _no_lost_wakeup(cluster: SimCluster) -> Iterable[str]:
    """Let a scheduler that has just been started decide about the same objects."""
    objects = Objects()
    for resource in RESOURCES:
        if resource not in (CORE_EVENTS, LEASES):
            for record in cluster.api.store.shelf(resource.qualified).records():
                objects.add_json(record.data)
    pending = [pod.uid for pod in objects.pending_pods]
    rehearsal = Rehearsal(
        World(
            objects=objects,
            registry=in_tree_registry(),
            draws=Streams(cluster.seed),
            now_ns=cluster.clock.now_ns(),
        )
    )
    rehearsal.settle(within_seconds=60)
    names = {pod.uid: pod.full_name for pod in objects.pending_pods}
    for uid in pending:
        if uid in rehearsal.bound:
            yield f"{names[uid]} waits, and a scheduler that has just been started places it"


def _nominations(cluster: SimCluster) -> Iterable[str]:
    for scheduler in leaders(cluster):
        core = scheduler.core
        try:
            core.queue.nominator.validate()
        except AssertionError as problem:
            yield str(problem)


def _all_there(cluster: SimCluster) -> Iterable[str]:
    """Compare what the history took in with what the server's store lists."""
    for kind, known in (("pods", cluster.history.pods), ("nodes", cluster.history.nodes)):
        stored = [record.decode() for record in cluster.api.store.shelf(kind).records()]
        key = "uid" if kind == "pods" else "name"
        if {each["metadata"][key] for each in stored} != set(known):
            yield f"{kind} of the server are not those that were written"


def _room(cluster: SimCluster) -> Iterable[str]:
    """At rest no node may be overcommitted, whoever knew what when."""
    for node in cluster.history.nodes.values():
        there = cluster.history.on_node(node["metadata"]["name"])
        for resource, amount in node["status"]["allocatable"].items():
            used = len(there) if resource == "pods" else sum(asks(pod, resource) for pod in there)
            room = int(amount) if resource == "pods" else parse_quantity(amount)
            if used > room:
                yield f"{node['metadata']['name']}: {used} of {room} {resource} are used"


def _failures(cluster: SimCluster) -> Iterable[str]:
    yield from cluster.failures


def _licensed(cluster: SimCluster) -> Iterable[str]:
    yield from cluster.unlicensed


def _counts(cluster: SimCluster) -> Iterable[str]:
    """Compare with what the server did: a pod that is bound counts, whatever answer came."""
    done = cluster.history.bindings
    for scheduler, identity in zip(cluster.schedulers, cluster.identities, strict=True):
        if scheduler.facts.bound > done.get(identity, 0):
            yield f"{identity} counts {scheduler.facts.bound}, the server {done.get(identity, 0)}"


AT_REST: tuple[Invariant[Any], ...] = (
    Invariant("no-failure", "No task of any part fails.", "an unhandled exception", _failures),
    Invariant(
        "writes-with-lease",
        "No scheduler sends a write while another may write.",
        "a stopped process comes back and writes in the name of an old lease",
        _licensed,
    ),
    Invariant(
        "counts",
        "No scheduler counts a binding that did not happen.",
        "metrics that nobody can rely on",
        _counts,
    ),
    Invariant("one-leader", "One scheduler leads.", "nobody takes over", _one_leader),
    Invariant("belief", "Every cache equals the server.", "a lost watch event", _agrees),
    Invariant("valid", "Cache and queue obey their own rules.", "states drift apart", _valid),
    Invariant(
        "under-way",
        "No attempt, binding or assumed pod is left.",
        "an assumed pod holds room for ever (kubernetes#106361)",
        _nothing_under_way,
    ),
    Invariant(
        "explained",
        "A pod that waits says why.",
        "a pod waits without a condition (kubernetes#107556)",
        _explained,
    ),
    Invariant(
        "no-lost-wakeup",
        "No pod waits that a scheduler just started would place.",
        "lost wake-ups of QueueingHints (kubernetes#109437, #122018)",
        _no_lost_wakeup,
    ),
    Invariant("nominations", "Nominations obey their own rules.", "a stale one", _nominations),
    Invariant("acknowledged", "What was written is there.", "a lost write", _all_there),
    Invariant("room-at-rest", "No node is overcommitted.", "double booking", _room),
)


def broken_at_rest(cluster: SimCluster) -> Iterator[tuple[str, str]]:
    """Yield the name of each invariant that does not hold now, and how."""
    for invariant in AT_REST:
        for text in invariant.broken(cluster):
            yield invariant.name, text

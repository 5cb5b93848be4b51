"""Rules that hold when faults are over and every timer had its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.api.quantity import parse_quantity
from moorage.api.resources import CORE_EVENTS
from moorage.base.clock import NS_PER_SECOND
from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.history import name_of
from moorage_lab.fault_sim.invariants.accounts import ACCOUNTS
from moorage_lab.fault_sim.invariants.inside import AT_END, leaders
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import asks
from moorage_lab.fault_sim.invariants.waiting import WAITING
from moorage_lab.fault_sim.invariants.while_running import WHILE_RUNNING, broken_rule_texts

_QUIET_NS = 30 * NS_PER_SECOND
# Decisions take no time here: a pod is tried once the watch has told of it, within milliseconds.
_PROMPT_NS = NS_PER_SECOND // 40
# Fields of a pod that may wait for something else before it is tried.
_HELD_BACK = ("schedulingGates", "schedulingGroup", "resourceClaims")


def _one_leader(cluster: SimCluster) -> Iterable[str]:
    count = len(leaders(cluster))
    if count != 1:
        yield f"{count} schedulers lead"


def _all_there(cluster: SimCluster) -> Iterable[str]:
    """Compare what the history took in with what the server's store lists."""
    yield from broken_rule_texts("acknowledged", cluster)
    for kind, known in (("pods", cluster.history.pods), ("nodes", cluster.history.nodes)):
        stored = [record.decode() for record in cluster.served.store.shelf(kind).records()]
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
    yield from cluster.writes_without_lease


def _prompt(cluster: SimCluster) -> Iterable[str]:
    """Look for plain pods that were not tried as soon as they were seen."""
    history = cluster.history
    for uid, pod in history.pods.items() if cluster.undisturbed else ():
        spec, tried_ns = pod["spec"], history.first_popped_ns.get(uid)
        if tried_ns is None or set(_HELD_BACK) & set(spec) or "pod-group" in str(pod["metadata"]):
            continue
        late_ns = tried_ns - history.created_ns[uid]
        if late_ns > _PROMPT_NS:
            yield f"{name_of(pod)} was tried {late_ns / NS_PER_SECOND:.3f} s after it was made"


def _watched(cluster: SimCluster) -> Iterable[str]:
    yield from cluster.auditor.differences()


def _quiet(cluster: SimCluster) -> Iterable[str]:
    """Look for pods that a leader tries again and again though nothing happens."""
    since_ns = cluster.clock.monotonic_ns() - _QUIET_NS
    for replica in cluster.replicas.values():
        probe = cluster.probes.get(replica.identity)
        for uid in probe.tried_since(since_ns) if probe is not None else ():
            pod = cluster.history.pods.get(uid)
            yield f"{name_of(pod) if pod else uid} is tried again and again at rest"


def _ready(cluster: SimCluster) -> Iterable[str]:
    """Every node that an agent plays must be ready: the agents run, and had their time."""
    for name in cluster.played:
        conditions = cluster.history.nodes.get(name, {}).get("status", {}).get("conditions") or ()
        for each in conditions:
            if each["type"] == "Ready" and each["status"] != "True":
                yield f"node {name} is not ready: {each}"


def _events(cluster: SimCluster) -> Iterable[str]:
    """Look for the Events of bindings and evictions; with faults an Event may be lost."""
    history = cluster.history
    reports = {
        (each.get("reason"), each["involvedObject"].get("uid"))
        for each in history.server_objects(CORE_EVENTS.qualified).values()
    }
    for uid, placed in history.placed.items() if cluster.undisturbed else ():
        if placed.by.startswith("scheduler") and ("Scheduled", uid) not in reports:
            yield f"no Event tells that {name_of(history.pods[uid])} is scheduled"
    for uid in history.evicted if cluster.undisturbed else ():
        if ("Preempted", uid) not in reports:
            yield f"no Event tells that pod {uid} was evicted"


AT_REST: tuple[Invariant[SimCluster], ...] = (
    Invariant(
        "no-failure",
        "No task of any part fails or is left, and no error is logged.",
        "an unhandled exception, or one that nobody heard of",
        _failures,
    ),
    Invariant(
        "writes-with-lease",
        "A scheduler sends writes only while the Lease is its own, and no other may write.",
        "a stopped process comes back and writes in the name of an old lease",
        _licensed,
    ),
    Invariant(
        "prompt",
        "Without faults a new pod is tried at once.",
        "a pod that comes while the loop falls asleep waits for the next event",
        _prompt,
    ),
    Invariant(
        "events",
        "Without faults an Event tells of each binding and eviction.",
        "nobody can tell who took a pod away",
        _events,
    ),
    Invariant("one-leader", "One scheduler leads.", "nobody takes over", _one_leader),
    *AT_END,
    *ACCOUNTS,
    *WHILE_RUNNING,
    *WAITING,
    Invariant("watch", "A watch tells every change once, in order.", "a lost event", _watched),
    Invariant(
        "quiet", "Without news no pod is tried again.", "a loop of wake-ups costs a core", _quiet
    ),
    Invariant("acknowledged", "What was written is there.", "a lost write", _all_there),
    Invariant(
        "nodes-ready",
        "A node whose agent runs is ready.",
        "agents that slept for a minute kept their nodes unreachable for five",
        _ready,
    ),
    Invariant("room-at-rest", "No node is overcommitted.", "double booking", _room),
)


def broken_at_rest(cluster: SimCluster) -> Iterator[tuple[str, str]]:
    """Yield the name of each invariant that does not hold now, and how."""
    for invariant in AT_REST:
        for text in invariant.broken(cluster):
            yield invariant.name, text

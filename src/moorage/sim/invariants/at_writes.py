"""What must hold at each write of a scheduler.

A scheduler may know less than the server: what others wrote a moment ago, or while its watch was
disturbed, is on its way. So a binding is judged by what the scheduler must have known, `known`:
its own bindings at once, everything else after a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.sim.history import History, Obj, Write, is_finished, name_of, node_of
from moorage.sim.invariants.invariant import Invariant

HOSTNAME = "kubernetes.io/hostname"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A write, and what is known besides.

    Parameters
    ----------
    write
        The write.
    history
        The server's objects after the write.
    horizon_ns
        Age from which the writer must have seen what others wrote, nanoseconds.
    """

    write: Write
    history: History
    horizon_ns: int

    @property
    def pod(self) -> Obj:
        """The pod that was written."""
        return self.write.now or {}

    @property
    def binds(self) -> bool:
        """Whether a scheduler gave a pod its node."""
        write = self.write
        return (
            write.resource == "pods"
            and write.path.endswith("/binding")
            and bool(node_of(write.now or {}))
        )

    @property
    def evicts(self) -> bool:
        """Whether a scheduler began the end of a pod."""
        return (
            self.write.resource == "pods"
            and self.write.by.startswith("scheduler")
            and not self.write.path.endswith(("/binding", "/status"))
            and not _is_leaving(self.write.before)
            and (self.write.now is None or _is_leaving(self.write.now))
        )

    def settled(self, moment_ns: int) -> bool:
        """Return whether the writer must know what happened at that moment."""
        return self.write.at_ns - moment_ns > self.horizon_ns

    def known(self, pod: Obj) -> bool:
        """Return whether the writer must know that a pod is on its node."""
        placed = self.history.placed.get(pod["metadata"]["uid"])
        return placed is None or placed.by == self.write.by or self.settled(placed.at_ns)

    @property
    def node(self) -> Obj | None:
        """The node that the pod got, if the writer must know how it looks now."""
        name = node_of(self.pod)
        if not self.settled(self.history.node_changed_ns.get(name, -(10**18))):
            return None
        return self.history.nodes.get(name)

    def others(self) -> Iterator[Obj]:
        """Yield the other placed pods that the writer must know."""
        for other in self.history.pods.values():
            takes_room = node_of(other) and not is_finished(other)
            if takes_room and other is not self.pod and self.known(other):
                yield other


def _is_leaving(pod: Obj | None) -> bool:
    return pod is None or bool(pod["metadata"].get("deletionTimestamp"))


# --- bindings -------------------------------------------------------------------------------------


def _bound_once(seen: Seen) -> Iterable[str]:
    before = node_of(seen.write.before or {})
    if before and node_of(seen.pod) != before:
        yield f"{name_of(seen.pod)} moved from {before} to {node_of(seen.pod)}"


def _node_exists(seen: Seen) -> Iterable[str]:
    name = node_of(seen.pod)
    if name not in seen.history.nodes and seen.settled(seen.history.node_changed_ns.get(name, 0)):
        yield f"{name_of(seen.pod)} was bound to {name}, which is not there"


def _room(seen: Seen) -> Iterable[str]:
    node = seen.node
    if node is None:
        return
    there = [pod for pod in seen.others() if node_of(pod) == node["metadata"]["name"]]
    for resource, amount in node["status"]["allocatable"].items():
        if resource == "pods":
            used, asked = len(there), 1
        else:
            used, asked = sum(asks(pod, resource) for pod in there), asks(seen.pod, resource)
        room = parse_quantity(amount) if resource != "pods" else int(amount)
        if asked and used + asked > room:
            yield (
                f"{name_of(seen.pod)} asks {asked} of {resource} on {node['metadata']['name']}, "
                f"where {used} of {room} are used by {', '.join(map(name_of, there))}"
            )


def asks(pod: Obj, resource: str) -> int:
    """Return what a pod requests of a resource, billionths of its unit."""
    spec = pod["spec"]
    return sum(_asked(each, resource) for each in spec["containers"]) + (
        parse_quantity(spec.get("overhead", {}).get(resource, "0"))
    )


def _asked(container: Obj, resource: str) -> int:
    return parse_quantity(container.get("resources", {}).get("requests", {}).get(resource, "0"))


def _ports(seen: Seen) -> Iterable[str]:
    mine = set(ports(seen.pod))
    for other in seen.others() if mine else ():
        if node_of(other) == node_of(seen.pod) and mine & set(ports(other)):
            yield f"{name_of(seen.pod)} and {name_of(other)} have the same host port"


def ports(pod: Obj) -> Iterator[int]:
    """Yield the host ports of a pod."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", ()):
            if port.get("hostPort"):
                yield port["hostPort"]


def _taints(seen: Seen) -> Iterable[str]:
    node = seen.node
    for taint in (node or {}).get("spec", {}).get("taints") or ():
        if taint["effect"] != "PreferNoSchedule" and not _tolerated(seen.pod, taint):
            yield f"{name_of(seen.pod)} does not tolerate {taint['key']} of {node_of(seen.pod)}"


def _tolerated(pod: Obj, taint: Mapping[str, Any]) -> bool:
    for each in pod["spec"].get("tolerations") or ():
        if each.get("effect") not in (None, "", taint["effect"]):
            continue
        if each.get("key") not in (None, "", taint["key"]):
            continue
        if each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""):
            return True
    return False


def _selector(seen: Seen) -> Iterable[str]:
    node, wanted = seen.node, seen.pod["spec"].get("nodeSelector") or {}
    labels = (node or {}).get("metadata", {}).get("labels", {})
    if node is not None and any(labels.get(key) != value for key, value in wanted.items()):
        yield f"{name_of(seen.pod)} selects {wanted}, {node_of(seen.pod)} has {labels}"


def _anti_affinity(seen: Seen) -> Iterable[str]:
    node = seen.node
    if node is None:
        return
    for other in seen.others():
        there = seen.history.nodes.get(node_of(other))
        if there is None or not _steady(seen, there):
            continue
        for one, two in ((seen.pod, other), (other, seen.pod)):
            for term in _terms(one, "podAntiAffinity"):
                if _same_domain(term["topologyKey"], node, there) and _selects(term, two):
                    yield (
                        f"{name_of(seen.pod)} on {node_of(seen.pod)} and {name_of(other)} on "
                        f"{node_of(other)}: anti-affinity of {name_of(one)}"
                    )


def _steady(seen: Seen, node: Obj) -> bool:
    return seen.settled(seen.history.node_changed_ns.get(node["metadata"]["name"], -(10**18)))


def _terms(pod: Obj, kind: str) -> list[Any]:
    found = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return found.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def _same_domain(key: str, one: Obj, two: Obj) -> bool:
    first = one["metadata"].get("labels", {}).get(key)
    return first is not None and first == two["metadata"].get("labels", {}).get(key)


def _selects(term: Mapping[str, Any], pod: Obj) -> bool:
    labels = pod["metadata"].get("labels", {})
    wanted = term["labelSelector"]["matchLabels"]
    return all(labels.get(key) == value for key, value in wanted.items())


def _spread(seen: Seen) -> Iterable[str]:
    """Compare the fullest possible count of the pod's domain with the emptiest domain."""
    if seen.node is None or not seen.settled(seen.history.pod_gone_ns):
        return
    nodes = seen.history.nodes
    if not all(_steady(seen, node) for node in nodes.values()):
        return
    for constraint in seen.pod["spec"].get("topologySpreadConstraints") or ():
        if constraint["whenUnsatisfiable"] != "DoNotSchedule":
            continue
        key = constraint["topologyKey"]
        wanted = seen.pod["spec"].get("nodeSelector") or {}
        counts: dict[str, int] = {}
        least: dict[str, int] = {}
        for node in nodes.values():
            labels = node["metadata"].get("labels", {})
            if key in labels and all(labels.get(k) == v for k, v in wanted.items()):
                counts.setdefault(labels[key], 0)
                least.setdefault(labels[key], 0)
        mine = seen.node["metadata"]["labels"].get(key)
        for other in seen.history.pods.values():
            if other is seen.pod or not node_of(other) or not _selects(constraint, other):
                continue
            there = nodes.get(node_of(other), {}).get("metadata", {}).get("labels", {}).get(key)
            if there in counts:
                counts[there] += not _is_leaving(other) and not is_finished(other)
                least[there] += seen.known(other) and not _is_leaving(other)
        # Of the pod's own domain what the writer must know counts; of the others what there may be.
        there = counts.get(mine)
        if there is None or not _selects(constraint, seen.pod):
            continue
        if least[mine] + 1 - min(counts.values()) > constraint["maxSkew"]:
            yield f"{name_of(seen.pod)} on {node_of(seen.pod)}: {key} {counts}, known {least}"


def _gates(seen: Seen) -> Iterable[str]:
    if seen.pod["spec"].get("schedulingGates"):
        yield f"{name_of(seen.pod)} is bound and has scheduling gates"


def _own_pods(seen: Seen) -> Iterable[str]:
    name = seen.pod["spec"].get("schedulerName")
    if name != "default-scheduler":
        yield f"{name_of(seen.pod)} belongs to scheduler {name}"


def _not_leaving(seen: Seen) -> Iterable[str]:
    if _is_leaving(seen.write.before):
        yield f"{name_of(seen.pod)} was bound when it was being deleted"


# --- evictions ------------------------------------------------------------------------------------


def _lower_priority(seen: Seen) -> Iterable[str]:
    if not seen.settled(seen.history.waiting_left_ns):
        return
    victim = seen.write.before or {}
    priorities = [
        pod["spec"].get("priority", 0) for pod in seen.history.pods.values() if _tried(pod)
    ]
    if victim["spec"].get("priority", 0) >= max(priorities, default=-(10**18)):
        yield f"{name_of(victim)} was evicted, no waiting pod has a higher priority"


def _tried(pod: Obj) -> bool:
    return not node_of(pod) and not pod["spec"].get("schedulingGates")


def _for_somebody(seen: Seen) -> Iterable[str]:
    victim = seen.write.before or {}
    if not node_of(victim):
        yield f"{name_of(victim)} was evicted and has no node"


BINDING: tuple[Invariant[Seen], ...] = (
    Invariant(
        "bound-once",
        "A bound pod keeps its node.",
        "two schedulers bind one pod (kubernetes#98000)",
        _bound_once,
    ),
    Invariant("node-exists", "A pod is bound to a node that exists.", "stale cache", _node_exists),
    Invariant(
        "room",
        "What is bound to a node fits its allocatable amounts.",
        "forgotten assumed pods overcommit a node (kubernetes#106361)",
        _room,
    ),
    Invariant("ports", "Two pods of a node have no host port in common.", "stale node", _ports),
    Invariant("taints", "A bound pod tolerates the taints of its node.", "stale node", _taints),
    Invariant("selector", "A node has the labels that its pods select.", "stale node", _selector),
    Invariant(
        "anti-affinity",
        "Required anti-affinity holds in both directions.",
        "the symmetric rule is forgotten for pods under way",
        _anti_affinity,
    ),
    Invariant("spread", "maxSkew of a hard constraint holds.", "counts drift apart", _spread),
    Invariant("gates", "A pod with scheduling gates is not bound.", "a gate is passed", _gates),
    Invariant("own-pods", "Only own pods are bound.", "two schedulers, one pod", _own_pods),
    Invariant("not-leaving", "A pod that ends is not bound.", "late deletion", _not_leaving),
)

EVICTION: tuple[Invariant[Seen], ...] = (
    Invariant(
        "victim-priority",
        "A victim has a lower priority than a pod that waits.",
        "a victim is evicted for a pod that is gone (kubernetes#72124)",
        _lower_priority,
    ),
    Invariant("victim-placed", "A victim has a node.", "a waiting pod is deleted", _for_somebody),
)


def broken_by(seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield the name of each invariant that a write breaks, and how."""
    table = BINDING if seen.binds else EVICTION if seen.evicts else ()
    for invariant in table:
        for text in invariant.broken(seen):
            yield invariant.name, text

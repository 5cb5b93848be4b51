"""Rules about pods together: affinity, anti-affinity and spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage_lab.fault_sim.history import Obj, is_finished, name_of, node_of
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import hard_taints, selects_node, tolerated
from moorage_lab.fault_sim.invariants.write_case import WriteCase, is_leaving


def _anti_affinity(case: WriteCase) -> Iterable[str]:
    node = case.node
    if node is None or not case.known(case.pod):
        return
    for other in case.others():
        there = case.history.nodes.get(node_of(other))
        if there is None or not case.steady(there):
            continue
        for one, two in ((case.pod, other), (other, case.pod)):
            for term in terms(one, "podAntiAffinity"):
                if _same_domain(term["topologyKey"], node, there) and selects(term, two, of=one):
                    yield (
                        f"{name_of(case.pod)} on {node_of(case.pod)} and {name_of(other)} on "
                        f"{node_of(other)}: anti-affinity of {name_of(one)}"
                    )


def _affinity(case: WriteCase) -> Iterable[str]:
    """Look for a pod in the domain of the node that each term selects, in any state."""
    required = terms(case.pod, "podAffinity")
    if not required or case.node is None or not _calm(case):
        return
    nodes = case.history.nodes
    own = case.pod["metadata"]["uid"]
    placed = [
        pod
        for pod in case.history.pods.values()
        if node_of(pod) in nodes and pod["metadata"]["uid"] != own and not is_finished(pod)
    ]
    matching = [pod for pod in placed if all(selects(term, pod, of=case.pod) for term in required)]
    # Bindings under way arrive in any order: a pod that arrived just now may be decided later.
    # Those outside of every domain do not count: the first pod of its kind may go anywhere.
    keys = {term["topologyKey"] for term in required}
    older = [
        pod
        for pod in matching
        if _placed_long_ago(case, pod)
        and keys & nodes[node_of(pod)]["metadata"].get("labels", {}).keys()
    ]
    for term in required:
        key = term["topologyKey"]
        if key not in case.node["metadata"].get("labels", {}):
            yield f"{name_of(case.pod)}: {node_of(case.pod)} has no label {key}"
        elif any(_same_domain(key, case.node, nodes[node_of(pod)]) for pod in matching):
            continue
        elif older or not all(selects(each, case.pod, of=case.pod) for each in required):
            yield f"{name_of(case.pod)} on {node_of(case.pod)}: no pod of its affinity is there"


def _placed_long_ago(case: WriteCase, pod: Obj) -> bool:
    placed = case.history.placed.get(pod["metadata"]["uid"])
    return placed is None or case.settled(placed.at_ns)


def _calm(case: WriteCase) -> bool:
    """Return whether the writer must know which pods are gone, every pod's labels, every node."""
    history = case.history
    if any(
        _under_way(history.pods.get(uid)) for uid in history.tried_binding.get(case.write.by, ())
    ):
        return False  # it counts for the writer, and the server does not know it yet
    changed = (*history.relabelled_ns.values(), *history.node_changed_ns.values())
    return case.settled(history.pod_gone_ns) and all(map(case.settled, changed))


def _under_way(pod: Obj | None) -> bool:
    return pod is not None and not node_of(pod)


def terms(pod: Obj, kind: str) -> list[Any]:
    """Return the required terms of ``podAffinity`` or ``podAntiAffinity``."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def _same_domain(key: str, one: Obj, two: Obj) -> bool:
    first = one["metadata"].get("labels", {}).get(key)
    return first is not None and first == two["metadata"].get("labels", {}).get(key)


def selects(term: Mapping[str, Any], pod: Obj, *, of: Obj) -> bool:
    """Return whether a term of a pod selects another pod.

    The other pod is in the same namespace. Where the term selects namespaces by labels, it may be
    in any: the namespaces of users have no labels in common.
    """
    labels = pod["metadata"].get("labels", {})
    required = term["labelSelector"]["matchLabels"]
    same = pod["metadata"]["namespace"] == of["metadata"]["namespace"]
    return (same or "namespaceSelector" in term) and all(
        labels.get(key) == value for key, value in required.items()
    )


def _spread(case: WriteCase) -> Iterable[str]:
    if case.node is None or not _calm(case):
        return
    for constraint in case.pod["spec"].get("topologySpreadConstraints") or ():
        if constraint["whenUnsatisfiable"] == "DoNotSchedule":
            yield from _uneven(case, case.node, constraint)


def _uneven(case: WriteCase, node: Obj, constraint: Mapping[str, Any]) -> Iterable[str]:
    """Compare the fullest possible count of the pod's domain with the emptiest domain."""
    key, nodes = constraint["topologyKey"], case.history.nodes
    counts: dict[str, int] = {}
    least: dict[str, int] = {}
    for each in nodes.values():
        labels = each["metadata"].get("labels", {})
        if key in labels and _counts(constraint, case.pod, each):
            counts.setdefault(labels[key], 0)
            least.setdefault(labels[key], 0)
    own = case.pod["metadata"]["uid"]
    for other in case.history.pods.values():
        if other["metadata"]["uid"] == own or not node_of(other):
            continue
        if not selects(constraint, other, of=case.pod):
            continue
        at = nodes.get(node_of(other))
        there = at["metadata"].get("labels", {}).get(key) if at is not None else None
        if at is not None and there in counts and _counts(constraint, case.pod, at):
            stays = not is_leaving(other) and not is_finished(other)
            counts[there] += stays
            least[there] += stays and case.known(other) and not _decided_later(case, other)
    mine = node["metadata"]["labels"].get(key)
    if mine is None:
        yield f"{name_of(case.pod)}: {node_of(case.pod)} has no label {key}"
    elif mine in counts:
        # Of the pod's own domain what the writer must know counts; of the others what may be there.
        own_share = int(selects(constraint, case.pod, of=case.pod))
        if least[mine] + own_share - min(counts.values()) > constraint["maxSkew"]:
            yield f"{name_of(case.pod)} on {node_of(case.pod)}: {key} {counts}, known {least}"


def _decided_later(case: WriteCase, other: Obj) -> bool:
    """Return whether the writer took a pod out of its queue after the one that it binds.

    A plugin may hold a pod between its decision and its binding. A pod without a constraint may
    go to the same domain meanwhile.
    """
    at = case.history.popped_at
    return at.get(other["metadata"]["uid"], 0) > at.get(case.pod["metadata"]["uid"], 0)


def _counts(constraint: Mapping[str, Any], pod: Obj, node: Obj) -> bool:
    """Return whether the pods of a node count for a constraint of a pod."""
    honors = constraint.get("nodeTaintsPolicy") == "Honor"
    open_to = not honors or all(tolerated(pod, taint) for taint in hard_taints(node))
    return open_to and selects_node(pod, node)


TOGETHER: tuple[Invariant[WriteCase], ...] = (
    Invariant(
        "anti-affinity",
        "Required anti-affinity holds in both directions.",
        "the symmetric rule is forgotten for pods under way",
        _anti_affinity,
    ),
    Invariant("affinity", "Required affinity finds a pod.", "a pod that is gone counts", _affinity),
    Invariant("spread", "maxSkew of a hard constraint holds.", "counts drift apart", _spread),
)

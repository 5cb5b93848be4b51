"""Filters, node by node: each rule in a few lines over one node and one pod, none over columns.

Written from the scheduling spec (resources, node basics). They are slow and plain on purpose: the
oracle of attempts and the property tests hold the vector plugins equal to them. Codes are
kube-scheduler's names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from moorage.api.meta import NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.node import Node, Taint
from moorage.api.pod import NodeAffinity, Pod, Toleration
from moorage.api.quantity import parse_quantity
from moorage.api.requests import non_zero_requests, pod_requests, to_units

Rejection: TypeAlias = tuple[str, tuple[str, ...]]
"""Code and reasons of a node that does not take a pod."""

Verdict: TypeAlias = Rejection | None
"""None of a node that takes the pod."""

UNRESOLVABLE: Final = "UnschedulableAndUnresolvable"
FIRST: Final = ("cpu", "memory", "ephemeral-storage")


def units(nano: Mapping[str, int]) -> dict[str, int]:
    """Return amounts in the units of the scheduler."""
    return {name: to_units(name, amount) for name, amount in nano.items()}


def allocatable(node: Node) -> dict[str, int]:
    """Return what a node has for pods."""
    return units({name: parse_quantity(q) for name, q in node.status.allocatable.items()})


def used(pods: Sequence[Pod], name: str) -> int:
    """Return what the pods of a node request of a resource."""
    return sum(units(pod_requests(p, use_status=True, pod_level=True)).get(name, 0) for p in pods)


def used_with_defaults(pods: Sequence[Pod], name: str) -> int:
    """Return what scorers count: containers without a request have a default."""
    if name not in ("cpu", "memory"):
        return used(pods, name)
    return sum(non_zero_requests(p)[name == "memory"] for p in pods)


def is_scalar(name: str) -> bool:
    """Return whether a resource is an extended one, or huge pages."""
    return name.startswith("hugepages-") or "/" in name


def fit(
    pod: Pod,
    node: Node,
    pods: Sequence[Pod],
    ignored: Collection[str] = (),
    groups: Collection[str] = (),
) -> Verdict:
    """Judge the room of a node, by NodeResourcesFit."""
    have, want = allocatable(node), units(pod_requests(pod, use_status=False, pod_level=True))
    reasons, code = [], "Unschedulable"
    if len(pods) + 1 > have.get("pods", 0):
        reasons.append("Too many pods")
    scalars = sorted(name for name in want if is_scalar(name))
    for name in (*FIRST, *scalars):
        if "/" in name and (name in ignored or name.split("/")[0] in groups):
            continue
        amount = want.get(name, 0)
        if amount > 0 and amount > have.get(name, 0) - used(pods, name):
            reasons.append(f"Insufficient {name}")
            if amount > have.get(name, 0):
                code = UNRESOLVABLE
    return (code, tuple(reasons)) if reasons else None


def node_name(pod: Pod, node: Node) -> Verdict:
    """Judge the name of a node, by NodeName."""
    if pod.spec.node_name in ("", node.name):
        return None
    return UNRESOLVABLE, ("node(s) didn't match the requested node name",)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration is for a taint."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def unschedulable(pod: Pod, node: Node) -> Verdict:
    """Judge a cordon, by NodeUnschedulable."""
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    if not node.spec.unschedulable or any(tolerates(t, taint) for t in pod.spec.tolerations):
        return None
    return UNRESOLVABLE, ("node(s) were unschedulable",)


def taints(pod: Pod, node: Node) -> Verdict:
    """Judge the hard taints of a node, by TaintToleration."""
    for taint in node.spec.taints:
        hard = taint.effect in ("NoSchedule", "NoExecute")
        if hard and not any(tolerates(t, taint) for t in pod.spec.tolerations):
            return UNRESOLVABLE, ("node(s) had untolerated taint(s)",)
    return None


def host_ports(pod: Pod) -> Iterator[tuple[str, str, int]]:
    """Yield address, protocol and number of the host ports of a pod."""
    sidecars = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port > 0:
                yield port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port


def ports(pod: Pod, pods: Sequence[Pod]) -> Verdict:
    """Judge the ports that the pods of a node have taken, by NodePorts."""
    taken = {triple for other in pods for triple in host_ports(other)}
    for ip, protocol, port in host_ports(pod):
        ips = {other[0] for other in taken if other[1:] == (protocol, port)}
        if ips and (ip == "0.0.0.0" or ips & {"0.0.0.0", ip}):
            return "Unschedulable", ("node(s) didn't have free ports for the requested pod ports",)
    return None


def required_features(pod: Pod) -> set[str]:
    """Return the features that a node must declare for a pod."""
    features = set()
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules):
            features.add("RestartAllContainersOnContainerExits")
    if pod.spec.host_network and pod.spec.host_users is False:
        features.add("UserNamespacesHostNetworkSupport")
    return features


def features(pod: Pod, node: Node) -> Verdict:
    """Judge the features that a node declares, by NodeDeclaredFeatures."""
    if required_features(pod) <= set(node.status.declared_features):
        return None
    return UNRESOLVABLE, ("node(s) didn't match Pod's required features",)


def is_int64(text: str) -> bool:
    """Return whether a text is a number that Gt and Lt compare."""
    digits = text[1:] if text[:1] in "+-" else text
    return digits.isascii() and digits.isdigit() and -(2**63) <= int(text) < 2**63


def requirement_holds(item: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet one requirement."""
    value, values = labels.get(item.key), item.values
    if item.operator == "In":
        return value is not None and value in values
    if item.operator == "NotIn":
        return value is None or value not in values
    if item.operator == "Exists":
        return value is not None
    if item.operator == "DoesNotExist":
        return value is None
    if value is None or not is_int64(value):
        return False
    return int(value) > int(values[0]) if item.operator == "Gt" else int(value) < int(values[0])


def requirement_is_valid(item: NodeSelectorRequirement) -> bool:
    """Return whether a requirement has as many values as its operator takes."""
    if item.operator in ("In", "NotIn"):
        return bool(item.values)
    if item.operator in ("Exists", "DoesNotExist"):
        return not item.values
    return item.operator in ("Gt", "Lt") and len(item.values) == 1 and is_int64(item.values[0])


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Return whether a node meets a term of a node selector."""
    if not term.match_expressions and not term.match_fields:
        return False
    if not all(map(requirement_is_valid, term.match_expressions)):
        return False
    for field in term.match_fields:
        if len(field.values) != 1 or field.operator not in ("In", "NotIn"):
            return False
        value = node.name if field.key == "metadata.name" else ""
        if (value == field.values[0]) != (field.operator == "In"):
            return False
    return all(requirement_holds(item, node.metadata.labels) for item in term.match_expressions)


def node_affinity_of(pod: Pod) -> NodeAffinity | None:
    """Return the node affinity of a pod."""
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None


NOT_NAMED: Final[Rejection] = (
    UNRESOLVABLE,
    ("node(s) didn't satisfy plugin(s) [NodeAffinity]",),
)


def required_of(affinity: NodeAffinity | None) -> Sequence[NodeSelectorTerm] | None:
    """Return the terms of which a node must meet one; None where every node does."""
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return required.node_selector_terms if required else None


def names_named(pod: Pod) -> frozenset[str] | None:
    """Return the nodes that a pod's required affinity names; None where a term names none.

    PreFilter of NodeAffinity leaves only these nodes to the filters.
    """
    required = required_of(node_affinity_of(pod))
    names: frozenset[str] = frozenset()
    for term in required or ():
        values = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == "metadata.name" and field.operator == "In"
        ]
        if not values:
            return None
        names |= frozenset.intersection(*values)
    return names if required else None


def selects(pod: Pod, node: Node) -> bool:
    """Return whether a pod asks for the labels of a node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    required = required_of(node_affinity_of(pod))
    return required is None or any(term_matches(t, node) for t in required)


def node_affinity(pod: Pod, node: Node, added: NodeAffinity | None = None) -> Verdict:
    """Judge the labels of a node, by NodeAffinity."""
    required = required_of(added)
    if required is not None and not any(term_matches(t, node) for t in required):
        return UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",)
    if not selects(pod, node):
        return UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)
    return None

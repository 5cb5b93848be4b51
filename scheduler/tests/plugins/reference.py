"""Scalar references: each rule in a few lines over one node and one pod, none over columns.

Written from the scheduling spec (resources, node basics). They are slow and plain on purpose; the
property tests hold the vector plugins equal to them. Codes are kube-scheduler's names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, Toleration
from moorage.api.quantity import parse_quantity
from moorage.api.requests import non_zero_requests, pod_requests, to_units

UNRESOLVABLE = "UnschedulableAndUnresolvable"
FIRST = ("cpu", "memory", "ephemeral-storage")
MIB = 2**20


def units(nano: dict[str, int]) -> dict[str, int]:
    return {name: to_units(name, amount) for name, amount in nano.items()}


def allocatable(node: Node) -> dict[str, int]:
    return units({name: parse_quantity(q) for name, q in node.status.allocatable.items()})


def used(pods: Sequence[Pod], name: str) -> int:
    return sum(units(pod_requests(p, use_status=True, pod_level=True)).get(name, 0) for p in pods)


def used_with_defaults(pods: Sequence[Pod], name: str) -> int:
    if name not in ("cpu", "memory"):
        return used(pods, name)
    return sum(non_zero_requests(p)[name == "memory"] for p in pods)


def is_scalar(name: str) -> bool:
    return name.startswith("hugepages-") or "/" in name


# -- filters: (code, reasons) or None -----------------------------------------------------------


def fit(pod: Pod, node: Node, pods: Sequence[Pod], ignored=(), groups=()):
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


def node_name(pod: Pod, node: Node):
    if pod.spec.node_name in ("", node.name):
        return None
    return UNRESOLVABLE, ("node(s) didn't match the requested node name",)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def unschedulable(pod: Pod, node: Node):
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    if not node.spec.unschedulable or any(tolerates(t, taint) for t in pod.spec.tolerations):
        return None
    return UNRESOLVABLE, ("node(s) were unschedulable",)


def taints(pod: Pod, node: Node):
    for taint in node.spec.taints:
        hard = taint.effect in ("NoSchedule", "NoExecute")
        if hard and not any(tolerates(t, taint) for t in pod.spec.tolerations):
            return UNRESOLVABLE, ("node(s) had untolerated taint(s)",)
    return None


def host_ports(pod: Pod):
    sidecars = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port > 0:
                yield port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port


def ports(pod: Pod, pods: Sequence[Pod]):
    taken = {triple for other in pods for triple in host_ports(other)}
    for ip, protocol, port in host_ports(pod):
        ips = {other[0] for other in taken if other[1:] == (protocol, port)}
        if ips and (ip == "0.0.0.0" or ips & {"0.0.0.0", ip}):
            return "Unschedulable", ("node(s) didn't have free ports for the requested pod ports",)
    return None


def required_features(pod: Pod) -> set[str]:
    found = set()
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules):
            found.add("RestartAllContainersOnContainerExits")
    if pod.spec.host_network and pod.spec.host_users is False:
        found.add("UserNamespacesHostNetworkSupport")
    return found


def features(pod: Pod, node: Node):
    if required_features(pod) <= set(node.status.declared_features):
        return None
    return UNRESOLVABLE, ("node(s) didn't match Pod's required features",)


def is_int64(text: str) -> bool:
    digits = text[1:] if text[:1] in "+-" else text
    return digits.isascii() and digits.isdigit() and -(2**63) <= int(text) < 2**63


def requirement_holds(item, labels: dict[str, str]) -> bool:
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


def requirement_is_valid(item) -> bool:
    if item.operator in ("In", "NotIn"):
        return bool(item.values)
    if item.operator in ("Exists", "DoesNotExist"):
        return not item.values
    return item.operator in ("Gt", "Lt") and len(item.values) == 1 and is_int64(item.values[0])


def term_matches(term, node: Node) -> bool:
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


def node_affinity_of(pod: Pod):
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None


def selects(pod: Pod, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = node_affinity_of(pod)
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return required is None or any(term_matches(t, node) for t in required.node_selector_terms)


def node_affinity(pod: Pod, node: Node, added=None):
    required = added and added.required_during_scheduling_ignored_during_execution
    if required and not any(term_matches(t, node) for t in required.node_selector_terms):
        return UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",)
    if not selects(pod, node):
        return UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)
    return None


# -- scores --------------------------------------------------------------------------------------


def affinity_score(pod: Pod, node: Node, added=None) -> int:
    total = 0
    for affinity in (node_affinity_of(pod), added):
        wishes = affinity and affinity.preferred_during_scheduling_ignored_during_execution
        for wish in wishes or ():
            if term_matches(wish.preference, node):
                total += wish.weight
    return total


def taint_score(pod: Pod, node: Node) -> int:
    soft = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(tolerates(t, taint) for t in soft)
        for taint in node.spec.taints
    )


def normalized(raw: list[int], *, reverse: bool) -> list[int]:
    top = max(raw, default=0)
    scaled = [0 if top == 0 else score * 100 // top for score in raw]
    return [100 - score for score in scaled] if reverse else scaled


def used_by_resource(pod: Pod, node: Node, pods: Sequence[Pod], resources, *, balanced=False):
    """Return (allocatable, used without, used with the pod, weight) of resources that count."""
    if balanced:
        want = units(pod_requests(pod, use_status=True, pod_level=True))
    else:
        want = units(pod_requests(pod, use_status=False, pod_level=False, non_zero=True))
    have = allocatable(node)
    for name, weight in resources:
        amount = want.get(name, 0)
        if have.get(name, 0) == 0 or (is_scalar(name) and amount == 0):
            continue
        before = used(pods, name) if balanced else used_with_defaults(pods, name)
        yield have[name], before, before + amount, weight


def least(pod: Pod, node: Node, pods: Sequence[Pod], resources) -> int:
    total = weights = 0
    for have, _, want, weight in used_by_resource(pod, node, pods, resources):
        total += weight * (0 if want > have else (have - want) * 100 // have)
        weights += weight
    return total // weights if weights else 0


def most(pod: Pod, node: Node, pods: Sequence[Pod], resources) -> int:
    total = weights = 0
    for have, _, want, weight in used_by_resource(pod, node, pods, resources):
        total += weight * (min(want, have) * 100 // have)
        weights += weight
    return total // weights if weights else 0


def shape_value(points: Sequence[tuple[int, int]], percent: int) -> int:
    points = [(at, score * 10) for at, score in points]
    for index, (at, score) in enumerate(points):
        if percent <= at:
            if index == 0:
                return score
            left, base = points[index - 1]
            return base + math.trunc((score - base) * (percent - left) / (at - left))
    return points[-1][1]


def ratio(pod: Pod, node: Node, pods: Sequence[Pod], resources, points) -> int:
    total = weights = 0
    for have, _, want, weight in used_by_resource(pod, node, pods, resources):
        score = shape_value(points, 100 if want > have else want * 100 // have)
        if score > 0:
            total += score * weight
            weights += weight
    return math.floor(total / weights + 0.5) if weights else 0


def balance(fractions: list[float]) -> int:
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean, squares = total / float(len(fractions)), 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / float(len(fractions)))
    return int((1 - deviation) * 100.0)


def balanced(pod: Pod, node: Node, pods: Sequence[Pod], resources) -> int:
    rows = list(used_by_resource(pod, node, pods, resources, balanced=True))
    after = balance([min(1.0, float(want) / float(have)) for have, _, want, _ in rows])
    before = balance([min(1.0, float(was) / float(have)) for have, was, _, _ in rows])
    return 50 + (50 + after - before) // 2


def image_name(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"


def image_locality(pod: Pod, node: Node, nodes: Sequence[Node]) -> int:
    """Reference for clusters whose nodes agree on the size of each image."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    wanted = [c.image for c in containers]
    wanted += [volume.image.reference for volume in pod.spec.volumes if volume.image]
    total = 0
    for name in map(image_name, wanted):
        sizes = {n: i.size_bytes for i in node.status.images for n in i.names}
        if name in sizes:
            spread = sum(any(name in i.names for i in n.status.images) for n in nodes)
            total += int(float(sizes[name]) * (float(spread) / float(len(nodes))))
    most_bytes = 1000 * MIB * len(containers)
    clamped = min(max(total, 23 * MIB), most_bytes)
    return 100 * (clamped - 23 * MIB) // (most_bytes - 23 * MIB)

"""Rules about a pod and its node: room, ports, taints, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from moorage.api.coscheduling import GROUP_LABEL
from moorage.api.quantity import parse_quantity
from moorage.base.clock import NS_PER_SECOND
from moorage_lab.fault_sim.history import (
    History,
    Obj,
    group_of,
    name_of,
    node_of,
    nominated_of,
    priority_of,
)
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.write_case import LONG_AGO_NS, WriteCase, is_leaving

# Fields of a pod that PreEnqueue may hold back, though it has no gate of its own.
_HELD_BACK = frozenset({"schedulingGroup", "resourceClaims"})
_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def _bound_once(case: WriteCase) -> Iterable[str]:
    before = node_of(case.write.before or {})
    if before and node_of(case.pod) != before:
        yield f"{name_of(case.pod)} moved from {before} to {node_of(case.pod)}"


def _node_exists(case: WriteCase) -> Iterable[str]:
    name = node_of(case.pod)
    gone_ns = case.history.node_changed_ns.get(name, LONG_AGO_NS)
    if name not in case.history.nodes and case.settled(gone_ns):
        yield f"{name_of(case.pod)} was bound to {name}, which is not there"


def _room(case: WriteCase) -> Iterable[str]:
    node = case.node
    if node is None:
        return
    there = [pod for pod in case.others() if node_of(pod) == node["metadata"]["name"]]
    for resource, amount in node["status"]["allocatable"].items():
        if resource == "pods":
            used, request = len(there), 1
        else:
            used, request = sum(asks(pod, resource) for pod in there), asks(case.pod, resource)
        room = parse_quantity(amount) if resource != "pods" else int(amount)
        if request and used + request > room:
            yield (
                f"{name_of(case.pod)} asks {request} of {resource} on {node['metadata']['name']}, "
                f"where {used} of {room} are used by {', '.join(map(name_of, there))}"
            )
    for resource in requested_resources(case.pod) - resources_of_devices(case.history):
        if resource not in node["status"]["allocatable"]:
            yield f"{name_of(case.pod)} asks {resource}, and {node['metadata']['name']} has none"


def _promised_room(case: WriteCase) -> Iterable[str]:
    """Add the pods to which the node was promised, and which have not been tried since."""
    node, history = case.node, case.history
    if node is None:
        return
    name = node["metadata"]["name"]
    promised = [pod for pod in history.pods.values() if _holds_promise(pod, name, case)]
    there = [pod for pod in case.others() if node_of(pod) == name]
    for resource in ("cpu", "memory") if promised else ():
        request = asks(case.pod, resource)
        used = sum(asks(pod, resource) for pod in (*there, *promised))
        room = parse_quantity(node["status"]["allocatable"][resource])
        if request and used + request > room:
            yield (
                f"{name_of(case.pod)} takes {resource} of {name} that is promised to "
                f"{', '.join(map(name_of, promised))}"
            )


def _holds_promise(pod: Obj, node: str, case: WriteCase) -> bool:
    """Return whether the writer must know that a node is promised to a pod.

    The next scheduler reads promises from the statuses of pods, but not of those that PreEnqueue
    holds back, as upstream.
    """
    uid = pod["metadata"]["uid"]
    promised_ns = case.history.nominated_ns.get(uid)
    own = case.history.nominated_by.get(uid) == case.write.by
    return (
        (own or not _HELD_BACK & pod["spec"].keys())
        and nominated_of(pod) == node
        and not node_of(pod)
        and uid != case.pod["metadata"]["uid"]
        and not is_leaving(pod)
        and priority_of(pod) >= priority_of(case.pod)
        and promised_ns is not None
        and case.settled(promised_ns)
        and _last_tried_ns(pod, case.history) < promised_ns
    )


def _last_tried_ns(pod: Obj, history: History) -> int:
    """Return when a pod was last tried: a member of a group is tried when another one is."""
    uid, group = pod["metadata"]["uid"], group_of(pod)
    tried = [
        tried_ns
        for other, tried_ns in history.popped_ns.items()
        if other == uid
        or (group and other in history.pods and group_of(history.pods[other]) == group)
    ]
    return max(tried, default=LONG_AGO_NS)


def _lesser_promise(case: WriteCase) -> Iterable[str]:
    """Look for a pod that kept its promise of a node that a more important one claimed later."""
    history, pod = case.history, case.write.before or {}
    node = nominated_of(pod)
    # A write that failed may leave a promise, here as upstream.
    if not node or node_of(pod) or not case.undisturbed:
        return
    promised_ns = history.nominated_ns.get(pod["metadata"]["uid"])
    for other in history.pods.values():
        claimed_ns = history.nominated_ns.get(other["metadata"]["uid"])
        if (
            promised_ns is not None
            and claimed_ns is not None
            and nominated_of(other) == node
            and not node_of(other)
            and priority_of(pod) < priority_of(other)
            and claimed_ns - promised_ns > case.horizon_ns
            and case.settled(claimed_ns)
            # Where all its victims leave already, a claim changes nothing, as upstream.
            and history.evicted_on_ns.get(node, LONG_AGO_NS) - promised_ns > case.horizon_ns
        ):
            yield f"{name_of(other)} claimed {node}, which is still promised to {name_of(pod)}"


def _announced(case: WriteCase) -> Iterable[str]:
    """Look for a pod that was held for long, and whose status did not tell its node meanwhile.

    Not looked at: members of groups. They are tried with their group, without a pop of their own.
    """
    now, before = case.write.now or {}, case.write.before or {}
    popped_ns = case.history.popped_ns.get(now.get("metadata", {}).get("uid", ""))
    if not case.faultless or popped_ns is None or node_of(now) or _is_member(now):
        return
    held_ns = case.write.at_ns - popped_ns
    turned_away = _unscheduled(now) and _unscheduled(now) != _unscheduled(before)
    if turned_away and held_ns > NS_PER_SECOND and not nominated_of(before):
        yield f"{name_of(now)} was held for {held_ns / NS_PER_SECOND:.1f} s and did not say where"


def _is_member(pod: Obj) -> bool:
    return bool(group_of(pod) or pod["metadata"].get("labels", {}).get(GROUP_LABEL))


def _unscheduled(pod: Obj) -> list[Obj]:
    conditions = pod.get("status", {}).get("conditions") or ()
    return [each for each in conditions if each["type"] == "PodScheduled"]


def resources_of_devices(history: History) -> set[str]:
    """Return the extended resources that device classes provide."""
    classes = history.server_objects("deviceclasses.resource.k8s.io").values()
    return {each["spec"].get("extendedResourceName", "") for each in classes}


def requested_resources(pod: Obj) -> set[str]:
    """Return the names of the resources that a pod requests."""
    return {
        resource
        for container in pod["spec"]["containers"]
        for resource in container.get("resources", {}).get("requests", {})
    }


def asks(pod: Obj, resource: str) -> int:
    """Return what a pod requests or has on its node of a resource, billionths of its unit.

    A container that shrinks has its former resources until its node says otherwise.
    """
    spec = pod["spec"]
    in_force = _allocated(pod, resource)
    running = sum(
        max(_request_of(each, resource), in_force.get(each["name"], 0))
        for each in spec["containers"]
    )
    starting = max(
        (_request_of(each, resource) for each in spec.get("initContainers") or ()), default=0
    )
    overhead = parse_quantity(spec.get("overhead", {}).get(resource, "0"))
    return max(running, starting) + overhead


def _allocated(pod: Obj, resource: str) -> dict[str, int]:
    """Return what the node of a pod has given to its containers, by their names."""
    return {
        each["name"]: parse_quantity(each.get("allocatedResources", {}).get(resource, "0"))
        for each in pod.get("status", {}).get("containerStatuses") or ()
    }


def _request_of(container: Obj, resource: str) -> int:
    return parse_quantity(container.get("resources", {}).get("requests", {}).get(resource, "0"))


def _ports(case: WriteCase) -> Iterable[str]:
    mine = set(ports(case.pod))
    for other in case.others() if mine else ():
        if node_of(other) == node_of(case.pod) and mine & set(ports(other)):
            yield f"{name_of(case.pod)} and {name_of(other)} have the same host port"


def ports(pod: Obj) -> Iterator[int]:
    """Yield the host ports of a pod."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", ()):
            if port.get("hostPort"):
                yield port["hostPort"]


def _taints(case: WriteCase) -> Iterable[str]:
    node = case.node or {}
    cordon = [_CORDONED] if node.get("spec", {}).get("unschedulable") else []
    for taint in [*hard_taints(node), *cordon]:
        if not tolerated(case.pod, taint):
            yield f"{name_of(case.pod)} does not tolerate {taint['key']} of {node_of(case.pod)}"


def hard_taints(node: Obj) -> list[Mapping[str, Any]]:
    """Return the taints of a node that keep pods away."""
    taints = node.get("spec", {}).get("taints") or ()
    return [taint for taint in taints if taint["effect"] != "PreferNoSchedule"]


def tolerated(pod: Obj, taint: Mapping[str, Any]) -> bool:
    """Return whether a pod tolerates a taint."""
    for each in pod["spec"].get("tolerations") or ():
        if each.get("effect") not in (None, "", taint["effect"]):
            continue
        if each.get("key") not in (None, "", taint["key"]):
            continue
        if each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""):
            return True
    return False


def _selector(case: WriteCase) -> Iterable[str]:
    node = case.node
    if node is not None and not selects_node(case.pod, node):
        labels = node["metadata"].get("labels", {})
        yield f"{name_of(case.pod)} does not select {node_of(case.pod)} with {labels}"


def selects_node(pod: Obj, node: Obj) -> bool:
    """Return whether a node has what ``nodeSelector`` and required node affinity ask."""
    labels = node["metadata"].get("labels", {})
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any_term_selects(required["nodeSelectorTerms"], node)


def any_term_selects(terms: Iterable[Mapping[str, Any]], node: Obj) -> bool:
    """Return whether a node meets one of the terms of a node selector."""
    labels = node["metadata"].get("labels", {})
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        all(_holds(each, labels) for each in term.get("matchExpressions") or ())
        and all(_holds(each, fields) for each in term.get("matchFields") or ())
        for term in terms
        if term.get("matchExpressions") or term.get("matchFields")
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    return _OPERATORS[expression["operator"]](value, values)


_OPERATORS: dict[str, Callable[[str | None, list[str]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, values: value is not None,
    "DoesNotExist": lambda value, values: value is None,
    "Gt": lambda value, values: value is not None and int(value) > int(values[0]),
    "Lt": lambda value, values: value is not None and int(value) < int(values[0]),
}


def _features(case: WriteCase) -> Iterable[str]:
    """Look for a pod in a namespace of users, with the network of a node that cannot do this."""
    spec, node = case.pod["spec"], case.node
    if node is None or not spec.get("hostNetwork") or spec.get("hostUsers") is not False:
        return
    declared = node["status"].get("declaredFeatures") or ()
    if "UserNamespacesHostNetworkSupport" not in declared:
        yield f"{name_of(case.pod)} needs a feature that {node_of(case.pod)} does not declare"


def _gates(case: WriteCase) -> Iterable[str]:
    if case.pod["spec"].get("schedulingGates"):
        yield f"{name_of(case.pod)} is bound and has scheduling gates"


def _own_pods(case: WriteCase) -> Iterable[str]:
    name = case.pod["spec"].get("schedulerName")
    if name != "default-scheduler":
        yield f"{name_of(case.pod)} belongs to scheduler {name}"


def _not_leaving(case: WriteCase) -> Iterable[str]:
    if is_leaving(case.write.before):
        yield f"{name_of(case.pod)} was bound when it was being deleted"


ON_NODE: tuple[Invariant[WriteCase], ...] = (
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
    Invariant(
        "promised-room",
        "Room that is promised to a pod is not given to one that is less important.",
        "other pods take the room that preemption made (kubernetes#95449)",
        _promised_room,
    ),
    Invariant("ports", "Two pods of a node have no host port in common.", "stale node", _ports),
    Invariant("taints", "A bound pod tolerates the taints of its node.", "stale node", _taints),
    Invariant("selector", "A node has the labels that its pods select.", "stale node", _selector),
    Invariant("features", "A node has the features that its pods need.", "old node", _features),
    Invariant("gates", "A pod with scheduling gates is not bound.", "a gate is passed", _gates),
    Invariant("own-pods", "Only own pods are bound.", "two schedulers, one pod", _own_pods),
    Invariant("not-leaving", "A pod that ends is not bound.", "late deletion", _not_leaving),
)

REPORTED: tuple[Invariant[WriteCase], ...] = (
    Invariant(
        "lesser-promise",
        "A node that a pod claims is promised no more to less important pods.",
        "a lower pod stays nominated, and keeps its room from others",
        _lesser_promise,
    ),
    Invariant(
        "announced",
        "The status of a pod that is held after its decision tells the node.",
        "an autoscaler takes the room of a pod that is on its way (KEP-5278)",
        _announced,
    ),
)
"""Rules about what a scheduler writes of a pod that waits."""

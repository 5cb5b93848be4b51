"""Decides whether a node admits a pod that is bound to it, as a kubelet does.

``pod_life`` asks when it first sees a pod. Stale data or two racing schedulers can bind a pod that
does not fit. Such a pod fails with a kubelet's reason and message.

Notes
-----
Mirrors kubernetes v1.36 pkg/kubelet/lifecycle/predicate.go and the admission check of
pkg/scheduler/eventhandlers.go. Left out: evicting pods for critical ones.
"""

from __future__ import annotations

import msgspec

from moorage.api.names import is_extended_resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import pod_requests, to_units
from moorage.api.selectors import compile_node_selector, equality_selector
from moorage.api.taints import NO_EXECUTE, find_untolerated
from moorage_sandbox.nodeagent.pressure import why_not_admitted

Port = tuple[str, str, int]
"""(protocol, host IP, host port)."""

_ANY_IP = "0.0.0.0"
_FIXED_ORDER = ("cpu", "memory", "ephemeral-storage")


class Refusal(msgspec.Struct, frozen=True):
    """The refusal of a pod by a node: reason and message for the pod's status."""

    reason: str
    message: str


class NodeLoad:
    """The requests and host ports of the pods admitted to one node."""

    __slots__ = ("_ports", "_requests")

    def __init__(self) -> None:
        self._requests: dict[str, dict[str, int]] = {}
        self._ports: dict[str, list[Port]] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, pod: Pod) -> None:
        """Count a pod, by uid; counting it twice changes nothing."""
        self._requests[pod.uid] = requests_in_units(pod)
        if ports := host_ports(pod):
            self._ports[pod.uid] = ports

    def remove(self, uid: str) -> None:
        """Stop counting a pod; an uncounted pod changes nothing."""
        self._requests.pop(uid, None)
        self._ports.pop(uid, None)

    def uids(self) -> list[str]:
        """Return the pods that are counted, by uid."""
        return sorted(self._requests)

    def used(self, resource: str) -> int:
        """Return the sum of the requests for a resource: millicores, bytes or units."""
        return sum(requests.get(resource, 0) for requests in self._requests.values())

    def ports_conflict(self, wanted: list[Port]) -> bool:
        """Whether a wanted host port is taken; the wildcard address conflicts with all."""
        return any(
            protocol == other_protocol
            and port == other_port
            and (address == other or _ANY_IP in {address, other})
            for protocol, address, port in wanted
            for ports in self._ports.values()
            for other_protocol, other, other_port in ports
        )


def refuse(pod: Pod, node: Node, load: NodeLoad) -> Refusal | None:
    """Return the reason why the node does not admit the pod; None if it admits the pod.

    Parameters
    ----------
    node
        The node as the API server has it.
    load
        Requests and host ports of the other pods of the node.
    """
    if pressed := why_not_admitted(pod, node):
        return Refusal("Evicted", pressed)
    try:
        lacking = _lacking_resource(pod, node, load)
    except ValueError as error:
        return Refusal("UnexpectedAdmissionError", f"Cannot read a quantity: {error}")
    if lacking is not None:
        return lacking
    if not _affinity_matches(pod, node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if load.ports_conflict(host_ports(pod)):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if find_untolerated(node.spec.taints, pod.spec.tolerations, (NO_EXECUTE,)) is not None:
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def requests_in_units(pod: Pod) -> dict[str, int]:
    """Return the pod's requests in millicores, bytes or units.

    Raises
    ------
    ValueError
        A quantity cannot be read.
    """
    amounts = pod_requests(pod, use_status=False, pod_level=True)
    return {name: to_units(name, nano) for name, nano in amounts.items()}


def host_ports(pod: Pod) -> list[Port]:
    """Return the host ports the pod takes."""
    sidecars = [c for c in pod.spec.init_containers if c.is_restartable_init]
    return [
        (port.protocol or "TCP", port.host_ip or _ANY_IP, port.host_port)
        for container in (*sidecars, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    ]


def _lacking_resource(pod: Pod, node: Node, load: NodeLoad) -> Refusal | None:
    capacity = {
        name: to_units(name, parse_quantity(amount))
        for name, amount in node.status.allocatable.items()
    }
    if len(load) + 1 > capacity.get("pods", 0):
        return _insufficient("pods", 1, len(load), capacity.get("pods", 0))
    wanted = requests_in_units(pod)
    others = sorted(name for name in wanted if name not in _FIXED_ORDER)
    for name in (*_FIXED_ORDER, *others):
        amount = wanted.get(name, 0)
        if amount <= 0 or (is_extended_resource(name) and name not in capacity):
            # As in a kubelet, a resource that the node does not list is not checked.
            continue
        used = load.used(name)
        if amount > capacity.get(name, 0) - used:
            return _insufficient(name, amount, used, capacity.get(name, 0))
    return None


def _affinity_matches(pod: Pod, node: Node) -> bool:
    if not equality_selector(pod.spec.node_selector).matches(node.metadata.labels):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return True
    return compile_node_selector(required).matches_node(node.metadata.labels, node.name)


def _insufficient(name: str, requested: int, used: int, capacity: int) -> Refusal:
    return Refusal(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, "
        f"requested: {requested}, used: {used}, capacity: {capacity}",
    )


def _predicate(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")

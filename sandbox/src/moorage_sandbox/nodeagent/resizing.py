"""The resources that a node has given to the containers of a pod, and a resize that waits.

``pod_life`` asks when a pod's spec has changed and when room has become free. No container runs,
so a resize that fits takes effect at once, and PodResizeInProgress is never seen.

Notes
-----
Mirrors kubernetes v1.36 pkg/kubelet/allocation/allocation_manager.go (handlePodResourcesResize and
canResizePod). Left out: resources of the pod as a whole, and restarts of containers.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Container, ContainerStatus, Pod, Resources
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage_sandbox.nodeagent.admission import NodeLoad, Refusal, refuse, requests_in_units


class ResourcesInForce:
    """The resources in force of one pod on a node.

    Parameters
    ----------
    pod
        The pod as it is admitted, or as it is taken up by an agent that comes back.

    Attributes
    ----------
    resources
        Resources by the name of the container: regular ones and sidecars.
    pending
        Why the resize that is asked for waits; None where none waits.
    """

    __slots__ = ("pending", "resources")

    def __init__(self, pod: Pod) -> None:
        statuses = {
            each.name: each
            for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)
            if each.resources is not None
        }
        self.resources = {
            each.name: _in_force(each, statuses.get(each.name)) for each in _resizable(pod)
        }
        self.pending: Refusal | None = None

    def differs(self, pod: Pod) -> bool:
        """Whether the pod asks for other resources."""
        return self.resources != _wanted(pod)

    def with_resources(self, pod: Pod) -> Pod:
        """Return the pod with the resources in force."""

        def in_force(container: Container) -> Container:
            resources = self.resources.get(container.name, container.resources)
            return msgspec.structs.replace(container, resources=resources)

        spec = msgspec.structs.replace(
            pod.spec,
            containers=[in_force(each) for each in pod.spec.containers],
            init_containers=[in_force(each) for each in pod.spec.init_containers],
        )
        return msgspec.structs.replace(pod, spec=spec)

    def resize(self, pod: Pod, node: Node, load: NodeLoad) -> None:
        """Give the pod the resources that its spec asks for, or note why they have to wait.

        Parameters
        ----------
        load
            The pods of the node. It counts the pod with the resources in force.
        """
        self.pending = None
        if not self.differs(pod):
            return
        load.remove(pod.uid)
        self.pending = _why_not(pod, node, load)
        if self.pending is None:
            self.resources = _wanted(pod)
        load.add(self.with_resources(pod))


def _wanted(pod: Pod) -> dict[str, Resources]:
    return {each.name: each.resources for each in _resizable(pod)}


def _resizable(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.containers
    yield from (each for each in pod.spec.init_containers if each.is_restartable_init)


def _in_force(container: Container, status: ContainerStatus | None) -> Resources:
    if status is None or status.resources is None:
        return container.resources
    return msgspec.structs.replace(
        container.resources,
        requests=status.allocated_resources,
        limits=status.resources.limits,
    )


def _why_not(pod: Pod, node: Node, others: NodeLoad) -> Refusal | None:
    """Return why the node cannot resize a pod: not ever, or not now."""
    wanted = requests_in_units(pod)
    for name in ("memory", "cpu"):
        capacity = to_units(name, parse_quantity(node.status.allocatable.get(name, 0)))
        if wanted.get(name, 0) > capacity:
            return Refusal(
                "Infeasible",
                f"Node didn't have enough capacity: {name}, "
                f"requested: {wanted[name]}, capacity: {capacity}",
            )
    refusal = refuse(pod, node, others)
    return None if refusal is None else Refusal("Deferred", refusal.message)

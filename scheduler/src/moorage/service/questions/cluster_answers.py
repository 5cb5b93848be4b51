"""The nodes and what fills them, as the answer goes over the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, TypeVar

import msgspec

from moorage.api.mentions import NodeName, SubjectNamespace
from moorage.service.questions.question import Answer

N = TypeVar("N", int, float)
Devices: TypeAlias = Mapping[str, Mapping[str, int]]
"""Thousandths of devices, by the resource that counts the devices, then by index."""


class FillingPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod that is counted on a node.

    Parameters
    ----------
    namespace, name, uid
        The pod.
    priority
        The pod's priority.
    owner
        ``Kind/name`` of the pod's controller; absent without one.
    group
        ``namespace/name`` of the pod's group; absent without one.
    requests
        What the pod takes from its node, by resource: cpu in millicores, memory and storage in
        bytes, units of any other resource. A share of a GPU is a part of a unit.
    devices
        The devices of the node that the pod holds, and how many thousandths of each, by the
        resource that counts them.
    """

    namespace: SubjectNamespace
    name: str
    uid: str
    priority: int = 0
    owner: str = ""
    group: str = ""
    requests: Mapping[str, float] = {}
    devices: Devices = {}


class OtherPods(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The pods of a node that the caller may not read.

    Parameters
    ----------
    pods
        Their number.
    requests
        What they take together, as `FillingPod.requests`.
    devices
        What they hold together of the node's devices, as `FillingPod.devices`.
    """

    pods: int
    requests: Mapping[str, float]
    devices: Devices = {}


class FilledNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A node and what fills it.

    Parameters
    ----------
    allocatable
        What the node offers, by resource: cpu in millicores, memory and storage in bytes, units of
        any other resource; ``pods`` is the most pods.
    domains
        The node's topology domains and pools, by label key.
    unschedulable
        Whether the node is cordoned.
    taints
        The node's taints, as kubectl writes them.
    pods
        The pods counted on the node, assumed ones included, in the order of their arrival.
    others
        The pods that the caller may not read, as a sum; absent where there are none.
    """

    allocatable: Mapping[str, int]
    domains: Mapping[str, str] = {}
    unschedulable: bool = False
    taints: tuple[str, ...] = ()
    pods: tuple[FillingPod, ...] = ()
    others: OtherPods | None = None

    def after_redaction(self, whole: FilledNode) -> FilledNode:
        """Return the node with a sum of the pods that were left out.

        Parameters
        ----------
        whole
            The node with all pods.
        """
        seen = {pod.uid for pod in self.pods}
        hidden = [pod for pod in whole.pods if pod.uid not in seen]
        if not hidden:
            return self
        others = OtherPods(
            pods=len(hidden),
            requests=_sums(pod.requests for pod in hidden),
            devices={
                pool: _sums(pod.devices.get(pool, {}) for pod in hidden)
                for pool in sorted({pool for pod in hidden for pool in pod.devices})
            },
        )
        return msgspec.structs.replace(self, others=others)


def _sums(amounts: Iterable[Mapping[str, N]]) -> dict[str, N]:
    total: dict[str, N] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total


class ClusterAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The nodes of the cluster and what fills them, or what changed since an earlier answer.

    Parameters
    ----------
    version
        Names this moment; give it as ``since`` to ask for changes only.
    whole
        Whether `nodes` has every node; otherwise the nodes that are left out are as they were.
    nodes
        The nodes by name.
    """

    kind: str = "ClusterFill"
    version: str
    whole: bool
    nodes: Mapping[NodeName, FilledNode]

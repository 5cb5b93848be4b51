"""The nodes and what fills them, as the answer goes over the wire."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from moorage.service.questions.question import Answer


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
        bytes, units of any other resource.
    """

    namespace: str
    name: str
    uid: str
    priority: int = 0
    owner: str = ""
    group: str = ""
    requests: Mapping[str, int] = {}


class FilledNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A node and what fills it.

    Parameters
    ----------
    allocatable
        What the node offers, by resource: cpu in millicores, memory and storage in bytes, units of
        any other resource; ``pods`` is the most pods.
    domains
        The node's topology domains, by label key.
    unschedulable
        Whether the node is cordoned.
    taints
        The node's taints, as kubectl writes them.
    pods
        The pods counted on the node, assumed ones included, in the order of their arrival.
    """

    allocatable: Mapping[str, int]
    domains: Mapping[str, str] = {}
    unschedulable: bool = False
    taints: tuple[str, ...] = ()
    pods: tuple[FillingPod, ...] = ()


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
    nodes: Mapping[str, FilledNode]

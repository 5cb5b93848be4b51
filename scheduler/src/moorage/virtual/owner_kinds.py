"""Which owners make a pod again that is gone, judged by the pod alone.

A model asks here where it has no manifest of the owner. The kinds are those with a controller
of kubernetes v1.36 that creates pods. Nothing is known about other owners: a ConfigMap makes no
pod, and a custom resource may or may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.api.meta import OwnerReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.workloads.daemon_steps import Placement
from moorage.workloads.objects import Whole

SCALABLE: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
OWNERS: Final = (*SCALABLE, "DaemonSet", "Job")
"""The kinds that own pods, Deployments before their sets."""
_GROUPS: Final[Mapping[str, str]] = {"ReplicationController": "", "Job": "batch"}
DAEMON_SET: Final = ("apps", "DaemonSet")
JOB: Final = ("batch", "Job")
_KUBELET: Final = ("", "Node")
_ANYWHERE: Final = frozenset(
    {
        ("", "ReplicationController"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        JOB,
    }
)


def group_of(kind: str) -> str:
    """Return the API group of a kind that owns pods."""
    return _GROUPS.get(kind, "apps")


def kind_of(owner: OwnerReference) -> tuple[str, str]:
    """Return the API group and the kind of an owner."""
    return owner.api_version.rpartition("/")[0], owner.kind


def is_of_one_node(pod: Pod) -> bool:
    """Whether a pod ends with its node: a pod of a DaemonSet, or of the kubelet itself."""
    owner = pod.metadata.controller
    return owner is not None and kind_of(owner) in (DAEMON_SET, _KUBELET)


def is_of_job(pod: Pod) -> bool:
    """Whether a pod belongs to a Job."""
    owner = pod.metadata.controller
    return owner is not None and kind_of(owner) == JOB


def unknown_owner(pod: Pod) -> str:
    """Return the controller of a pod if nobody knows whether it makes pods again, "" otherwise."""
    owner = pod.metadata.controller
    if owner is None or kind_of(owner) in _ANYWHERE or is_of_one_node(pod):
        return ""
    return f"{owner.kind} {owner.name}"


def may_return(pod: Pod, node: Node | None) -> bool:
    """Whether the owner of a pod that is gone makes another.

    Parameters
    ----------
    node
        The node that the pod was on or was pinned to; None if it is gone.

    Notes
    -----
    The pod of a DaemonSet has the selector and the tolerations of its set, so it says by itself
    whether the set may run on the node (kubernetes v1.36 pkg/controller/daemon,
    NodeShouldRunDaemonPod).
    """
    owner = pod.metadata.controller
    if owner is None:
        return False
    kind = kind_of(owner)
    if kind != DAEMON_SET:
        return kind in _ANYWHERE
    if node is None:
        return False
    template = {"spec": msgspec.to_builtins(msgspec.structs.replace(pod.spec, node_name=""))}
    return Placement(Whole(spec={"template": template})).should_run(node)

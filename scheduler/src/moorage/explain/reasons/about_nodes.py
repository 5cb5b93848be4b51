"""The texts about nodes that a pod may not use, and about resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.reasons.codes import ReasonCode
from moorage.explain.reasons.reason_text import ReasonText

_ROOM: Final = (
    "Lower the request, scale another workload down, or add a node; `moorage capacity` says which "
    "node would help. Requests count, not use."
)
_TOP: Final = "moorage top nodes"

ABOUT_NODES: Final[Mapping[ReasonCode, ReasonText]] = {
    ReasonCode.NODE_CORDONED: ReasonText(
        what="Nodes that would take the pod are cordoned.",
        see="kubectl get nodes --field-selector spec.unschedulable=true",
        fix="kubectl uncordon NODE, once the maintenance is over.",
        example="0/3 nodes are available: 3 node(s) were unschedulable.",
    ),
    ReasonCode.NODE_NAME: ReasonText(
        what="The pod names the one node that it wants, and that node is not there.",
        see="kubectl get pod NAME -o jsonpath='{.spec.nodeName}'",
        fix="Add a node of that name, or make the pod anew without spec.nodeName.",
        example="0/3 nodes are available: 3 node(s) didn't match the requested node name.",
    ),
    ReasonCode.UNTOLERATED_TAINT: ReasonText(
        what="Nodes that would take the pod have a taint that it does not tolerate. Kubernetes "
        "taints nodes by itself that are not ready or under pressure.",
        see="kubectl get nodes -o custom-columns=NODE:.metadata.name,TAINTS:.spec.taints",
        fix="Add a toleration to the pod's template, or remove the taint: kubectl taint node NODE "
        "KEY-. Of a taint node.kubernetes.io/…, fix the node's condition instead.",
        example="0/3 nodes are available: 3 node(s) had untolerated taint(s).",
    ),
    ReasonCode.EXCLUDED_BY_PROFILE: ReasonText(
        what="The scheduler's profile adds a node affinity to every pod, and the nodes do not "
        "match it.",
        see="kubectl get nodes --show-labels",
        fix="Label nodes as addedAffinity of the profile asks, or change the profile.",
        example="0/3 nodes are available: 3 node(s) didn't match scheduler-enforced node affinity.",
    ),
    ReasonCode.NO_MATCHING_NODE: ReasonText(
        what="The pod chooses nodes by nodeSelector or required node affinity, and no node with "
        "room has these labels.",
        see="kubectl get nodes --show-labels",
        fix="Label a node: kubectl label node NODE KEY=VALUE. Or ask for less in the pod's "
        "template.",
        example="0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
    ),
    ReasonCode.HOST_PORT: ReasonText(
        what="The pod wants a port of the node itself, and another pod there has it.",
        see="kubectl get pods -A -o wide",
        fix="Use another hostPort, give each pod a hostIP of its own, add a node, or use a "
        "Service instead.",
        example="0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod "
        "ports.",
    ),
    ReasonCode.TOO_MANY_PODS: ReasonText(
        what="The nodes have as many pods as they take (allocatable.pods, 110 as a rule).",
        see=_TOP,
        fix="Add a node, delete pods, or raise maxPods of the kubelet.",
        example="0/3 nodes are available: 3 Too many pods.",
    ),
    ReasonCode.MEMORY: ReasonText(
        what="Nodes that would take the pod have too little memory that is not requested.",
        see=_TOP,
        fix=_ROOM,
        example="0/3 nodes are available: 3 Insufficient memory.",
    ),
    ReasonCode.EPHEMERAL_STORAGE: ReasonText(
        what="Nodes that would take the pod have too little local disk that is not requested.",
        see="kubectl describe node NODE",
        fix=_ROOM,
        example="0/3 nodes are available: 3 Insufficient ephemeral-storage.",
    ),
    ReasonCode.RESOURCE: ReasonText(
        what="Nodes that would take the pod have too little of an extended resource or of huge "
        "pages.",
        see="kubectl describe node NODE",
        fix="Look whether the node's device plugin runs and reports the resource. Otherwise lower "
        "the request, free some, or add a node that has it.",
        example="0/3 nodes are available: 3 Insufficient hugepages-2Mi.",
    ),
    ReasonCode.CPU: ReasonText(
        what="Nodes that would take the pod have too little CPU that is not requested.",
        see=_TOP,
        fix=_ROOM,
        example="0/3 nodes are available: 3 Insufficient cpu.",
    ),
    ReasonCode.NODE_FEATURE: ReasonText(
        what="The pod needs a feature of the kubelet that the nodes do not declare.",
        see="kubectl get node NODE -o jsonpath='{.status.declaredFeatures}'",
        fix="Upgrade the kubelet of a node, or do without the feature.",
        example="0/3 nodes are available: 3 node(s) didn't match Pod's required features.",
    ),
    ReasonCode.NUMA: ReasonText(
        what="No NUMA node of a node has free what the pod, or one of its containers, has to get "
        "from one, though the node as a whole may have it; or the node's zones cannot be read.",
        see="kubectl get noderesourcetopologies -o yaml",
        fix="Lower the requests to what one NUMA node has free, make room there, or add a node "
        "with larger NUMA nodes.",
        example="0/3 nodes are available: 3 cannot align container.",
    ),
    ReasonCode.GPU_MODEL: ReasonText(
        what="The pod admits certain models of GPU, and no node with free GPUs has one of them.",
        see=_TOP,
        fix="Admit one more model in the pod's annotation, or add a node of a model it admits.",
        example="0/3 nodes are available: 3 node(s) had no GPU of a requested model.",
    ),
    ReasonCode.GPU: ReasonText(
        what="No node has as many GPUs free, or a share of one GPU as large, as the pod asks for. "
        "Free shares of several GPUs do not add up.",
        see=_TOP,
        fix="Ask for a smaller share or fewer GPUs, scale another workload down, or add a node.",
        example="0/3 nodes are available: 3 node(s) had no GPU with a large enough free share.",
    ),
}
"""Code to text."""

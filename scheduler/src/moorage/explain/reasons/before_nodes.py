"""The texts about pods for which no node is looked at, and about steps after the decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.reasons.codes import ReasonCode
from moorage.explain.reasons.reason_text import ReasonText

BEFORE_NODES: Final[Mapping[ReasonCode, ReasonText]] = {
    ReasonCode.NOT_TRIED: ReasonText(
        what="No attempt has decided about the pod yet: it waits for its turn in the queue.",
        see="moorage queue --by none --sort age",
        fix="Wait. If it stays, look whether the scheduler runs and has the lease, and which pods "
        "of higher priority are before it.",
        example="the pod has no condition PodScheduled",
    ),
    ReasonCode.UNKNOWN_SCHEDULER: ReasonText(
        what="The pod's schedulerName is that of no profile, so this scheduler leaves it alone.",
        see="kubectl get pod NAME -o jsonpath='{.spec.schedulerName}'",
        fix="Make the pod anew with the name of a profile, add a profile of that name, or start "
        "the scheduler that has it.",
        example="this scheduler does not serve schedulerName batch: it serves default-scheduler; "
        "whether another scheduler does is not known here",
    ),
    ReasonCode.SCHEDULING_GATED: ReasonText(
        what="The pod has scheduling gates, and is kept out of the queue until all are removed.",
        see="kubectl get pod NAME -o jsonpath='{.spec.schedulingGates}'",
        fix="Let the controller that set a gate remove it. A gate that nobody removes can be "
        "removed by hand from spec.schedulingGates.",
        example="waiting for scheduling gates: [quota]",
    ),
    ReasonCode.NO_NODES: ReasonText(
        what="The cluster has no nodes.",
        see="kubectl get nodes",
        fix="Add a node, or look why the nodes' kubelets do not register.",
        example="no nodes available to schedule pods",
    ),
    ReasonCode.INVALID_SPEC: ReasonText(
        what="A field or an annotation of the pod, or of an object that it names, cannot be read. "
        "No node can take the pod as long as it is written so.",
        see="moorage explain pod NAME",
        fix="Correct the field that the message names. Most fields of a pod cannot be changed: "
        "correct the owner's template, or make the pod anew.",
        example="shares of several GPUs are not supported, ask for one or for whole GPUs",
    ),
    ReasonCode.QUOTA: ReasonText(
        what="A quota has too little left: an ElasticQuota keeps the pod waiting, or a "
        "ResourceQuota keeps its owner from making it.",
        see="kubectl describe resourcequota,elasticquota -n NAMESPACE",
        fix="Raise the quota, lower the requests, or scale another workload of the namespace down.",
        example="Pod team/web is rejected in PreFilter because ElasticQuota team is more than Max",
    ),
    ReasonCode.QUOTA_INVALID: ReasonText(
        what="An ElasticQuota cannot be read, so nobody knows what it allows.",
        see="kubectl get elasticquota -A -o yaml",
        fix="Correct the field that the message names.",
        example="ElasticQuota team/quota: spec.max[cpu]: not a quantity; fix the quota",
    ),
    ReasonCode.GROUP_MISSING: ReasonText(
        what="The pod names a group whose PodGroup does not exist.",
        see="kubectl get podgroups -n NAMESPACE",
        fix="Create the PodGroup, or correct the name in the pod.",
        example='waiting for pod\'s pod group "train" to appear in scheduling queue',
    ),
    ReasonCode.GROUP_INVALID: ReasonText(
        what="The members of a group contradict each other, or a label of the group cannot be "
        "read.",
        see="moorage explain pod NAME",
        fix="Give all members the same priority and the same minimum.",
        example="Priorities do not match",
    ),
    ReasonCode.GROUP_INCOMPLETE: ReasonText(
        what="The group has fewer pods than its minimum, so none of its pods is tried.",
        see="moorage queue --by group",
        fix="Create the missing pods: look why their owner does not, such as a quota. Or lower "
        "the group's minimum (minMember, minCount).",
        example="waiting for minCount pods from a gang to appear in scheduling queue",
    ),
    ReasonCode.GROUP_UNSCHEDULABLE: ReasonText(
        what="The group has its pods, and not as many of them find nodes at once as it needs.",
        see="moorage explain pod NAME",
        fix="Make room for the member that lacks a node, add nodes, or lower the group's minimum.",
        example="pod group is unschedulable: 2 of 4 pods tried have a place",
    ),
    ReasonCode.WAITING_FOR_GROUP: ReasonText(
        what="The pod has a node, and waits at Permit until enough members of its group have one.",
        see="moorage queue --by group",
        fix="See what the members without a node wait for. After a time the node is given back.",
        example="waiting for minCount pods from a gang to be scheduled",
    ),
    ReasonCode.REJECTED_BY_PLUGIN: ReasonText(
        what="A plugin that does not belong to moorage rejected the pod, or one of ours without "
        "a code for its message.",
        see="moorage explain pod NAME",
        fix="Read the message: the plugin's author knows what it asks for.",
        example="0/3 nodes are available: 3 no licence on this node.",
    ),
    ReasonCode.EXTENDER: ReasonText(
        what="An HTTP extender rejected the nodes that the plugins had accepted.",
        see="moorage explain pod NAME --attempt -1",
        fix="Read the message of the extender, and its own log.",
        example="extender http://127.0.0.1:8888: node is reserved",
    ),
    ReasonCode.PREEMPTION: ReasonText(
        what="Pods of lower priority are being evicted for the pod, and have not left yet.",
        see="kubectl get pod NAME -o jsonpath='{.status.nominatedNodeName}'",
        fix="Wait for the end of their grace period. If a victim stays, look at its finalizers.",
        example="waiting for the preemption for this pod to be finished",
    ),
    ReasonCode.BINDING_FAILED: ReasonText(
        what="A node was chosen, and a step between the choice and the node failed: volumes, "
        "devices, or the binding itself.",
        see="kubectl describe pod NAME",
        fix="The pod is tried again by itself. If it fails again and again, look at the driver or "
        "the object that the message names.",
        example='running PreBind plugin "VolumeBinding": binding volumes: context deadline '
        "exceeded",
    ),
    ReasonCode.SCHEDULER_ERROR: ReasonText(
        what="The attempt ended with an error: a plugin failed, or the API server refused.",
        see="moorage explain pod NAME --attempt -1",
        fix="The pod is tried again after its backoff. If it fails again, the scheduler's log has "
        "the error; a plugin's failure belongs to its author.",
        example='running Reserve plugin "Books": the books are gone',
    ),
}
"""Code to text."""

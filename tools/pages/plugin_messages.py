"""What each in-tree plugin says when it refuses a pod, and what to do about it.

Next to ``tools.pages.plugin_pages``, which puts these on the plugin's page. ``<name>`` stands for a
part that varies. ``tests/test_plugin_pages.py`` compares the texts with the string literals of
``moorage.plugins``, so a message without a remedy, or one nobody says any more, fails there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tools.pages.claim_messages import CLAIM_MESSAGES

_CREATE_CLAIM: Final = "Create the claim in the pod's namespace, or correct `claimName`."
_NO_CLIENT: Final = (
    "Nothing can be written where there is no server, as in a benchmark; anywhere else, report it."
)
_BAD_TERM: Final = "Correct the label selector or namespace selector the message names."
_RETRIED: Final = "Nothing: the pod is tried again. Look at the object if it goes on."
_OUTSIDE: Final = "Somebody changed the object meanwhile; the pod is tried again."

VOLUME_MESSAGES: Final[Mapping[str, str]] = {
    'persistentvolumeclaim "<name>" not found': _CREATE_CLAIM,
    'VolumeBindingMode not set for StorageClass "<name>"': (
        "Set `volumeBindingMode` of the class: `Immediate` or `WaitForFirstConsumer`."
    ),
    'storageclass.storage.k8s.io "<name>" not found': (
        "Create the class, or correct the claim's `storageClassName`."
    ),
}
"""Of helpers that several volume plugins share."""

REMEDIES: Final[Mapping[str, Mapping[str, str]]] = {
    "SchedulingGates": {
        "waiting for scheduling gates: [<names>]": (
            "Remove the gates from `spec.schedulingGates`; usually whoever set one removes it "
            "when its condition holds."
        ),
    },
    "NodeUnschedulable": {
        "node(s) were unschedulable": (
            "`kubectl uncordon` the node, or tolerate `node.kubernetes.io/unschedulable`."
        ),
    },
    "NodeName": {
        "node(s) didn't match the requested node name": (
            "Only the node in `spec.nodeName` will do: add that node, or make the pod anew "
            "without the field."
        ),
    },
    "TaintToleration": {
        "node(s) had untolerated taint(s)": (
            "Remove the taint (`kubectl describe node` lists them), or add a toleration."
        ),
    },
    "NodeAffinity": {
        "node(s) didn't match Pod's node affinity/selector": (
            "Label a node as `nodeSelector` and the required node affinity ask, or ask for less."
        ),
        "node(s) didn't match scheduler-enforced node affinity": (
            "The profile's `addedAffinity` excludes the node: label the node, or change the "
            "profile's arguments."
        ),
        "pod affinity terms conflict": (
            "The terms name different nodes by `metadata.name`, so no node can match: correct them."
        ),
    },
    "NodePorts": {
        "node(s) didn't have free ports for the requested pod ports": (
            "Another pod has the `hostPort`: use a different one, give each a `hostIP`, add a "
            "node, or do without host ports."
        ),
    },
    "NodeResourcesFit": {
        "Too many pods": (
            "The node is at its `allocatable.pods`: delete pods, add a node, or raise the "
            "kubelet's `maxPods`."
        ),
        "Insufficient <resource>": (
            "Requests, not use, count: lower the pod's requests, delete or shrink other pods, "
            "or add a node that large."
        ),
    },
    "VolumeRestrictions": {
        "node(s) had no available disk": (
            "A pod on the node mounts the same disk: use another disk or node, or mount it "
            "read-only everywhere if its kind allows that."
        ),
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod": (
            "Wait for or delete the pod that uses the claim, or ask for another access mode."
        ),
        'persistentvolumeclaim "<name>" not found': _CREATE_CLAIM,
    },
    "NodeVolumeLimits": {
        "converting volume(<name>) from inline to csi: <problem>": (
            "Correct the volume in the pod's spec: as it is, its CSI driver would not find it."
        ),
        "node(s) exceed max volume count": (
            "The driver's limit (`CSINode`, `allocatable.count`) is reached: add a node, or "
            "delete pods that use volumes of that driver."
        ),
        "PersistentVolumeClaim had no name": "Give the volume a `claimName`.",
        "looking up PVC <namespace>/<name>: <problem>": _CREATE_CLAIM,
        'persistentvolumeclaim "<name>" not found': _CREATE_CLAIM,
        "PVC <namespace>/<name> was not created for pod <namespace>/<name> (pod is not owner)": (
            "Delete or rename the claim that has the name of the ephemeral volume's."
        ),
        "<driver> CSI driver is not installed on the node": (
            "Under 1.37 a node needs the driver in its `CSINode`: install the driver's node "
            "plugin there, or wait until it has registered."
        ),
    },
    "VolumeBinding": {
        **VOLUME_MESSAGES,
        "pod has unbound immediate PersistentVolumeClaims": (
            "Their class binds at once, without the scheduler: see `kubectl describe pvc` for "
            "what keeps the volume controller from it."
        ),
        "node(s) didn't match PersistentVolume's node affinity": (
            "The bound volume can only be used elsewhere: make room where it is."
        ),
        "node(s) didn't find available persistent volumes to bind": (
            "Add a volume of the class with the size, access modes and node affinity, or a class "
            "that provisions there."
        ),
        "node(s) did not have enough free storage": (
            "No `CSIStorageCapacity` of the class is large enough there: free space, or ask for "
            "less."
        ),
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": (
            "Restore the volume, or make the claim anew."
        ),
        'persistentvolumeclaim "<name>" bound to non-existent persistentvolume "<volume>"': (
            "The claim is Lost: restore the volume, or make the claim anew."
        ),
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "<name>"': (
            "Wait; if the claim does not come, look at the controller that makes them."
        ),
        'persistentvolumeclaim "<name>" is being deleted': (
            "Wait until it is gone and make it anew, or use another."
        ),
        "PVC <namespace>/<name> was not created for pod <namespace>/<name> (pod is not owner)": (
            "Delete or rename the claim that has the name of the ephemeral volume's."
        ),
        'persistentvolume "<name>" not found': "Restore the volume, or make the claim anew.",
        'persistentvolumeclaim "<name>": resources.requests.storage: <problem>': (
            "Correct the claim's storage request."
        ),
        'no class for claim "<key>"': "Set the claim's `storageClassName`.",
        'failed to find storage class "<name>"': (
            "Create the class, or correct the claim's `storageClassName`."
        ),
        "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (<id>)": (
            "Correct the volume's `awsElasticBlockStore.volumeID`."
        ),
        "failed to get region from zones: zone in unexpected format, expected: "
        "{locale}-{region}-{zone}, got: <zone>": (
            "Correct the zone labels of the volume: a regional disk's zones are named so."
        ),
        "failed to get region from zones: multiple or no regions gotten from zones, got: "
        "map[<regions>]": "Correct the zone labels of the volume: one region only.",
        "could not translate pv: <problem>": (
            "Correct the PersistentVolume: as it is, its CSI driver would not find it."
        ),
        '"<name>" is gone': _RETRIED,
        '"<name>" has changed since the decision': _RETRIED,
        "binding volumes: <problem>": "See the rest of the message; the pod is tried again.",
        "context deadline exceeded": (
            "The volume was not bound within `bindTimeoutSeconds`: look at the provisioner; the "
            "pod is tried again."
        ),
        'pod does not exist any more: pod "<name>" not found': "Nothing: the pod was deleted.",
        'failed to get node "<name>": node "<name>" not found': (
            "The node was deleted meanwhile; the pod is tried elsewhere."
        ),
        "failed to check binding: <problem>": _OUTSIDE,
        "failed to check provisioning pvc: <problem>": _OUTSIDE,
        'ClaimRef got reset for pv "<name>"': _OUTSIDE,
        'selectedNode annotation reset for PVC "<name>"': (
            "The provisioner could not make the volume on that node; the pod is tried elsewhere."
        ),
        'provisioning failed for PVC "<name>"': "Look at the provisioner; the pod is tried again.",
        'pv "<name>" node affinity doesn\'t match node "<node>": no matching NodeSelectorTerms': (
            "The provisioner made the volume elsewhere: check the class's `allowedTopologies`."
        ),
        "pod <key>: no volume can be bound here, there is no API client": _NO_CLIENT,
    },
    "VolumeZone": {
        **VOLUME_MESSAGES,
        "node(s) had no available volume zone": (
            "The volume's zone or region label is not the node's: make room in that zone, or "
            "correct the labels."
        ),
        "PersistentVolumeClaim had no name": "Give the volume a `claimName`.",
        'persistentvolume "<name>" not found': "Restore the volume, or make the claim anew.",
        "PersistentVolumeClaim had no pv name and storageClass name": (
            "Bind the claim to a volume, or set its `storageClassName`."
        ),
        "PersistentVolume had no name": "Report it: a bound claim names its volume.",
    },
    "PodTopologySpread": {
        "node(s) didn't match pod topology spread constraints": (
            "The domain has too many matching pods already: make room in the emptier domains, "
            "raise `maxSkew`, or use `ScheduleAnyway`."
        ),
        "node(s) didn't match pod topology spread constraints (missing required label)": (
            "Label the node with the constraint's `topologyKey`."
        ),
        "node(s) didn't satisfy nominated pods' topology spread constraints": (
            "A nominated pod of higher priority keeps its place in the domain: wait until it is "
            "placed, or make room in another domain."
        ),
        "obtaining pod's hard topology spread constraints: <problem>": (
            "Correct the constraint's `labelSelector`."
        ),
        "calculating preScoreState: <what>: <problem>": (
            "Correct the constraint's `labelSelector`."
        ),
    },
    "InterPodAffinity": {
        "node(s) didn't match pod affinity rules": (
            "No pod that the required affinity asks for is in the node's domain: start one there, "
            "label the node with the `topologyKey`, or prefer instead of requiring."
        ),
        "node(s) didn't match pod anti-affinity rules": (
            "A pod that the required anti-affinity avoids is in the node's domain: add a domain, "
            "or prefer instead of requiring."
        ),
        "node(s) didn't satisfy existing pods anti-affinity rules": (
            "A pod already there refuses this one's labels: change these, or that pod's "
            "anti-affinity."
        ),
        "parsing pod: <problem>": _BAD_TERM,
        "failed to parse pod: <problem>": _BAD_TERM,
    },
    "DynamicResources": CLAIM_MESSAGES,
    "DefaultPreemption": {
        "waiting for the preemption for this pod to be finished": (
            "Wait: its victims are being evicted."
        ),
        "not eligible due to preemptionPolicy=Never.": (
            "The pod (or its priority class) may not preempt: allow it, or make room."
        ),
        "not eligible due to a terminating pod on the nominated node.": (
            "Wait for that pod to end; its `terminationGracePeriodSeconds` bounds it."
        ),
        "not eligible due to nominated pods that are not placed yet.": (
            "Wait: a node takes the pod as soon as pods that wait for their victims are placed."
        ),
        "Preemption is not helpful for scheduling": (
            "Evicting pods would not cure what these nodes were refused for: see those reasons."
        ),
        "No preemption victims found for incoming pod": (
            "No pod of lower priority is on the node: give this pod a higher priority, or make "
            "room."
        ),
        "No preemption victims found: gangs on the node cannot be evicted as a whole": (
            "A member that may not be evicted keeps the rest of its gang: give this pod a higher "
            "priority, lower the minimum of the gang, or make room elsewhere."
        ),
        "no candidate node for preemption": (
            "The extenders left no node to preempt on: look at what they answer."
        ),
        "waiting for the preemption for this pod group to be finished": (
            "Wait: pods are being evicted for its group."
        ),
        "ongoing preemption on nominated nodes": (
            "Wait: pods are leaving the nodes to which members of its group are nominated."
        ),
        "found a placement for podgroup, preempting <> victims": (
            "Wait: these pods are being evicted for its group."
        ),
        "pod group for pod not found": (
            "Create the PodGroup that `spec.schedulingGroup` names, in the pod's namespace."
        ),
        "not eligible due to placement-based pod group scheduling limitation": (
            "Members of a group with a topology constraint do not preempt: make room in one "
            "domain, or take the constraint away."
        ),
        "not eligible due to workload aware preemption enabled": (
            "Nothing: the group preempts as a whole, and its condition says what came of that."
        ),
        "No preemption victims found for incoming preemptor": (
            "No pod, and no group, of lower priority than the group is there: give the group a "
            "higher priority, or make room."
        ),
        "no nodes available": "There is no node: add one.",
        'expected at least one victim pod on node "<name>"': (
            "The pod fits there without evicting anybody, which Filter had denied: report it, "
            "unless a plugin of your own answers differently each time."
        ),
    },
    "CapacityScheduling": {
        "Pod <key> is rejected in PreFilter because ElasticQuota <namespace> is more than Max": (
            "The namespace would exceed `spec.max`, where an absent `cpu`, `memory` or "
            "`ephemeral-storage` means 0: an Event of the pod has the figures. Raise the "
            "quota, or delete pods of the namespace."
        ),
        "Pod <key> is rejected in PreFilter because total ElasticQuota used is more than min": (
            "All quotas together guarantee no more: an Event of the pod has the figures. Raise "
            "a `spec.min`, or wait for pods of namespaces with a quota to end."
        ),
        "not eligible due to terminating pods that still count in the quotas.": (
            "The pod is nominated to a node that has room for it, and the quotas have room once "
            "the pods that stop are gone: wait for the end of their grace period."
        ),
        "<ElasticQuota>; fix the quota": (
            "The quota has an amount that cannot be read, so nothing of its namespace is "
            "scheduled: correct it."
        ),
        "ElasticQuota <namespace>/<name>: <problem>": "Correct the amount the message names.",
        "spec.<field>[<resource>]: <problem>": "Correct the amount the message names.",
        "ElasticQuota <namespace>/<name>: <figures> at most": (
            "This is the Event: raise the quota's `spec.max`, or delete pods of the namespace."
        ),
        "all ElasticQuotas together: <figures> guaranteed": (
            "This is the Event: raise a `spec.min`, or wait for pods of these namespaces to end."
        ),
        "<resource> <amount> used and <amount> asked, <amount>": (
            "These are the figures in the Event; cpu in millicores, memory in bytes."
        ),
        "global quota max exceeded": (
            "Not even with every pod gone that may be evicted there do the quotas leave room: "
            "raise `spec.max` of the namespace, or some `spec.min`."
        ),
        "not eligible due to failed to read from cycleState": (
            "Another plugin refused the pod before quotas were looked at: see its reason."
        ),
        "No victims found on node <node> for preemptor pod <pod>": (
            "Nobody there may be evicted for it: no pod of lower priority in its namespace, and, "
            "where the namespace is within its `spec.min`, no other namespace borrows."
        ),
    },
    "NodeResourceTopologyMatch": {
        "cannot align container": (
            "No single NUMA node of the node has left what a container requests, next to the "
            "containers before it: `kubectl get noderesourcetopologies <node> -o yaml` shows what "
            "is left. Ask for less in one container, or free a NUMA node."
        ),
        "cannot align init container": (
            "No single NUMA node of the node has left what an init container requests: ask for "
            "less there, or free a NUMA node."
        ),
        "cannot align pod": (
            "The kubelet aligns the pod as a whole, and no single NUMA node has left what its "
            "containers request together. Ask for less, or free a NUMA node."
        ),
        "invalid node topology data": (
            "It is not known what is left on the NUMA nodes: a pod is being bound to the node, or "
            "another scheduler placed one. Wait for the node's next topology."
        ),
    },
    "GpuFragmentation": {
        "<plugin> and <plugin> both choose GPUs: enable one of them": (
            "A profile has at most one policy for GPUs: disable the others."
        ),
        "<plugin> scores the GPUs that GpuShare counts: enable GpuShare": (
            "Enable `GpuShare` at `multiPoint` of the same profile."
        ),
    },
    "GpuShare": {
        "shares of several GPUs are not supported, ask for one or for whole GPUs": (
            "Ask for one GPU and a share of it, or for several GPUs of 1000 milli."
        ),
        "<n> GPUs of <n> milli: shares of several GPUs are not supported, ask for one or for "
        "whole GPUs": ("Ask for one GPU and a share of it, or for several GPUs of 1000 milli."),
        "<resource> <n>: shares of several GPUs are not supported, ask for one or for whole GPUs": (
            "Ask for at most 1000 of the resource, or for a multiple of 1000."
        ),
        'annotation <name> is "<text>", not a whole number': (
            "Write the number of GPUs as a whole number, quoted."
        ),
        'annotation <name> is "<text>", not 1 to 1000': (
            "Write the share as thousandths of a GPU, quoted."
        ),
        "node(s) had fewer GPUs than requested": (
            "No node of this kind has so many devices: ask for fewer GPUs, or add a larger node."
        ),
        "node(s) had no GPU of a requested model": (
            "Admit more models in the pod's annotation, or add a node of a model it names. The "
            "model is a label of the node."
        ),
        "node(s) didn't have enough wholly free GPUs": (
            "Every other device is in use, perhaps in part: delete pods, or add a node."
        ),
        "node(s) had no GPU with a large enough free share": (
            "Ask for a smaller share, delete pods, or add a node."
        ),
        "the GPUs of the node were taken meanwhile": _RETRIED,
        "writing the chosen GPUs of pod <pod>: <error>": (
            "The pod is tried again. If the server forbids the write, allow the scheduler to "
            "`patch` pods."
        ),
    },
    "PreemptionToleration": {
        "No victims found on node <node> for preemptor pod <pod>": (
            "Every pod there has the same priority or a higher one, or a PriorityClass that "
            "tolerates the preemption: look at its annotations."
        ),
        'priorityclass.scheduling.k8s.io "<name>" not found': (
            "A pod names a PriorityClass that is gone: create it again, or delete the pod."
        ),
        "PriorityClass %s tolerates no preemption: %s": (
            "Correct the annotation the log names; until then its pods are evicted like any."
        ),
        "annotation <domain>/<key>: <text> is no whole number": (
            "Write the annotation as a whole number, quoted."
        ),
        "annotation <domain>/<key>: <text> has more than <n> bits": "Write a smaller number.",
    },
    "DefaultBinder": {
        "pod <key>: nothing can be bound here, there is no API client": _NO_CLIENT,
    },
    "NodeDeclaredFeatures": {
        "node(s) didn't match Pod's required features": (
            "The pod needs a kubelet feature the node does not declare "
            "(`status.declaredFeatures`): upgrade the node, or leave the field out."
        ),
    },
    "GangScheduling": {
        'waiting for pods\'s pod group "<name>" to appear in scheduling queue': (
            "Create the PodGroup that `spec.schedulingGroup` names, in the pod's namespace."
        ),
        'waiting for pod\'s pod group "<name>" to appear in scheduling queue': (
            "Create the PodGroup that `spec.schedulingGroup` names, in the pod's namespace."
        ),
        'waiting for composite pod group "<name>" tree to meet quorum': (
            "Create the CompositePodGroups and PodGroups of the tree, and enough pods of as many "
            "groups as are needed; with too few, lower `minGroupCount` or `minCount`."
        ),
        "waiting for minCount pods from a gang to appear in scheduling queue": (
            "Create more pods of the group, or lower `schedulingPolicy.gang.minCount`; pods that "
            "run already are counted."
        ),
        "waiting for minCount pods from a gang to be scheduled": (
            "This pod fits, too many others of its group do not: their messages say why."
        ),
        "minCount (<minimum>) cannot be satisfied: <placed> scheduled, <remaining> remaining": (
            "Too few of the pods that are left could have a node: the messages of those that were "
            "tried say why."
        ),
        "minCount (<minimum>) is not yet satisfied: <placed> scheduled, <remaining> remaining": (
            "The same, while further pods of the group are tried."
        ),
        'failed to get podGroup <full_name>: podgroup.scheduling.k8s.io "<name>" not found': (
            "The PodGroup went while its pods were being scheduled: create it again."
        ),
    },
    "Coscheduling": {
        "PodGroup <full_name> not found": (
            "Create the PodGroup (`scheduling.x-k8s.io/v1alpha1`) that the pod's label names."
        ),
        "PodGroup not found": "The same, where members wait for each other.",
        "Priorities do not match: <name> has <priority>, <name> of group <full_name> has "
        "<priority>": "Give all pods of a group one priority class.",
        "Priorities do not match": "The same, where members wait for each other.",
        "PodGroupMinAvailables do not match: <name> has <pod>, others of group <full_name> have "
        "<minimum>": "Give all pods of a group the same label `min-available`.",
        "PodGroupMinAvailables do not match": "The same, where members wait for each other.",
        "pre-filter pod <name> cannot find enough sibling pods, current pods number: <number>, "
        "minMember of group: <minimum>": (
            "Create more pods of the group, or lower its minimum; pods that run are counted, those "
            "of other schedulers are not until they run."
        ),
        "less than pgMinAvailable": "The same, for groups without an object.",
        "pre-filter pod <name> cannot proceed due to gated pods in the same PodGroup": (
            "Remove the scheduling gates of the other members."
        ),
        "pre-filter pod <name> cannot find enough sibling pods: <lack>": (
            "The same, where the group has sub-groups: create more pods of the one that is named."
        ),
        "annotations moorage.dev/sub-groups do not match: <name> has <own>, group <full_name> has "
        "<other>": "Give all pods of a group the same annotation; pods of a PodGroup need none.",
        'pod <name> is in no sub-group of group <full_name>: its label <label> is "<part>", and '
        'the sub-groups are "<text>"': "Correct the label of the pod, or the annotation.",
        "a topology in annotation moorage.dev/sub-groups of group <full_name> needs groupMode "
        "trial": "Set `groupMode: trial` in the profile, or leave the topology out.",
        "sub-group <own> of group <full_name> has enough nodes for now: <lack>": (
            "Nothing: the pod is placed once the other sub-groups have their minimum."
        ),
        "resource gap: map[<listed>]": (
            "The cluster has less free than the group's `minResources`: wait, add nodes, or lower "
            "it. Shown is what is missing, cpu in millicores, the rest in its own unit."
        ),
        "podGroup <full_name> failed recently": (
            "Nothing: the group is tried again after `podGroupBackoffSeconds`, or a second."
        ),
        "waiting for <missing> more pods of group <full_name> to have a node": (
            "This pod has a place, too many others of its group have none: their messages say why."
        ),
        "optimistic rejection in PostFilter": (
            "Nothing: another member found no node, and all of the group are tried again."
        ),
        "rejection in Unreserve": (
            "Nothing: another member failed or waited too long; its message says why."
        ),
        'label pod-group.scheduling.sigs.k8s.io/min-available is "<text>", not a whole number of '
        "at least 1: the pod is scheduled on its own": "Correct the label; pods keep their nodes.",
        "can not find pod group": "Nothing: the pod belongs to no group.",
        "annotation <name> of group <full_name> needs groupMode trial": (
            "Set `groupMode: trial` in the profile, or remove the annotation."
        ),
        "annotations <name> do not match: <name> has <own>, <holder> has <other>": (
            "Give all pods of a group the same annotation; pods of a PodGroup need none."
        ),
        "PodGroup <full_name> gets rejected due to Pod <name> is unschedulable even after "
        "PostFilter": "See the message of that pod.",
    },
    "TopologyPlacementGenerator": {
        "cannot determine domain for already scheduled pods: no topology domain found for pod "
        "<name>": (
            "A member runs on a node without the topology label: label the node, or delete the pod."
        ),
        "cannot determine domain for already scheduled pods: more than 1 domain found for pod "
        "group: <required>, <domain>": (
            "Members run in several domains: delete those in all but one."
        ),
    },
    "PodGroupPodsCount": {
        "no pods from pod group are assigned to any of the candidate placements": (
            "A plugin of your own found places for no pod at all: report it."
        ),
    },
}
"""By plugin name: message to what to do. A plugin that is missing refuses nothing."""

HINTS: Final[Mapping[tuple[str, str], str]] = {
    ("NodeUnschedulable", "Node"): "It is not cordoned, and is new or was cordoned before.",
    ("NodeUnschedulable", "Pod"): "The pod itself now tolerates cordoned nodes.",
    ("TaintToleration", "Node"): (
        "The pod tolerates its taints, and it is new or the pod did not tolerate them before."
    ),
    ("NodeAffinity", "Node"): "It matches now, and is new or did not match before.",
    ("NodePorts", "Pod"): "The deleted pod had a place and a host port the pod wants.",
    ("NodeResourcesFit", "Pod"): (
        "A pod with a place is deleted, one with a node asks for less of what the pod wants, or "
        "the pod itself asks for less."
    ),
    ("NodeResourcesFit", "resource.k8s.io/DeviceClass"): (
        "It provides an extended resource the pod wants."
    ),
    ("VolumeRestrictions", "Pod"): (
        "The deleted pod used a disk of the pod's, or, in the same namespace, a claim."
    ),
    ("NodeVolumeLimits", "Pod"): (
        "The deleted pod had a place and volumes that are attached to its node."
    ),
    ("NodeVolumeLimits", "storage.k8s.io/VolumeAttachment"): (
        "The pod has a claim, or a volume of the attachment's driver."
    ),
    ("VolumeZone", "storage.k8s.io/StorageClass"): "It waits for the first consumer.",
    ("VolumeZone", "PersistentVolume"): "It is new, or its zone and region labels changed.",
    ("PodTopologySpread", "Pod"): (
        "The constraints count it, or count it no longer; or the pod itself tolerates other "
        "taints and a constraint honours them."
    ),
    ("PodTopologySpread", "Node"): (
        "Its domains begin or cease to count for the pod's constraints, or its taints changed."
    ),
    ("DefaultPreemption", "Pod"): (
        "Never by itself: the event only has the gate looked at again, and other plugins' events "
        "move the pod."
    ),
    ("GangScheduling", "Pod"): "A pod of the same group came, with a node or without.",
    ("NodeDeclaredFeatures", "Node"): "It is new, or declares other features than before.",
    ("NodeDeclaredFeatures", "Pod"): "The pod itself now needs other features.",
    ("PreemptionToleration", "Pod"): (
        "Never by itself: the event only has the gate looked at again, and other plugins' events "
        "move the pod."
    ),
}
"""Of events by plugin and resource: when a hint that has no docstring wakes a pod."""

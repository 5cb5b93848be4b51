"""What ``kubectl explain`` says about kinds and their most common fields.

Place in the flow: read by `openapi` only; a definition or field without an entry has no text.
"""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "Pod": "A group of containers that run together on one node.",
    "Node": "A machine of the cluster that pods can be bound to.",
    "Namespace": "A scope for the names of other objects.",
    "Service": "One stable address for a set of pods.",
    "ReplicationController": "Keeps a number of equal pods running; older than ReplicaSet.",
    "PersistentVolume": "A piece of storage in the cluster.",
    "PersistentVolumeClaim": "A request for a persistent volume.",
    "ConfigMap": "Configuration data for pods.",
    "Secret": "Confidential data for pods.",
    "ServiceAccount": "An identity for what runs in pods.",
    "Event": "A report of something that happened to an object.",
    "Deployment": "Keeps equal pods running and replaces them gradually when they change.",
    "ReplicaSet": "Keeps a number of equal pods running.",
    "StatefulSet": "Keeps pods with names and storage of their own running.",
    "DaemonSet": "Keeps one pod running on each node it selects.",
    "Job": "Runs pods until enough of them have succeeded.",
    "PodDisruptionBudget": "Limits how many pods of a set may be evicted at the same time.",
    "PriorityClass": "Gives a name to a priority of pods.",
    "StorageClass": "Describes one way of making volumes.",
    "CSINode": "Lists the storage drivers of a node.",
    "CSIDriver": "Describes what a storage driver can do.",
    "CSIStorageCapacity": "Says how much space is left for a storage class in some topology.",
    "VolumeAttachment": "Asks for a volume to be attached to a node.",
    "Lease": "A lock that its holder has to renew.",
    "PodSpec": "What a pod should be.",
    "PodStatus": "What a pod is, as far as the cluster knows.",
    "Container": "One container of a pod.",
    "NodeSpec": "What is wanted of a node.",
    "NodeStatus": "What a node is and has.",
    "ObjectMeta": "What every object has: name, labels, version and so on.",
    "LabelSelector": "Chooses objects by their labels; an empty one chooses all.",
}

FIELDS: Mapping[str, str] = {
    "apiVersion": "Group and version of the API this object is written in.",
    "kind": "Kind of this object.",
    "metadata": "Name, labels and other data every object has.",
    "spec": "What is wanted.",
    "status": "What is, as last observed.",
    "nodeName": "Node the pod is bound to; empty until it is scheduled.",
    "schedulerName": "Scheduler that should place the pod.",
    "nodeSelector": "Labels a node must have for the pod to be placed there.",
    "affinity": "Rules about the nodes and the other pods this pod wants near or far.",
    "tolerations": "Taints of nodes that this pod tolerates.",
    "topologySpreadConstraints": "How pods should be spread over zones, nodes and so on.",
    "schedulingGates": "Names that hold the pod back from scheduling until they are removed.",
    "priorityClassName": "Priority class of the pod.",
    "priority": "Priority of the pod, worked out from its class.",
    "resources": "Resources requested and limited.",
    "requests": "Resources that must be free on a node.",
    "limits": "Resources that may not be exceeded.",
    "taints": "Marks that keep pods away which do not tolerate them.",
    "unschedulable": "No new pods are placed on the node.",
    "allocatable": "Resources pods can have.",
    "capacity": "Resources there are in all.",
    "replicas": "Number of pods wanted.",
    "selector": "Labels of the pods that belong.",
    "template": "What each pod looks like.",
    "containers": "Containers of the pod, at least one.",
    "initContainers": "Containers that run one after the other before the others start.",
    "volumes": "Volumes the containers can mount.",
    "image": "Image of the container.",
}

"""The texts about volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.reasons.codes import ReasonCode
from moorage.explain.reasons.reason_text import ReasonText

_CLAIMS: Final = "kubectl get pvc -n NAMESPACE"

ABOUT_VOLUMES: Final[Mapping[ReasonCode, ReasonText]] = {
    ReasonCode.VOLUME_CLAIM_MISSING: ReasonText(
        what="A PersistentVolumeClaim of the pod does not exist, is being deleted, or has a name "
        "that another pod's volume took.",
        see=_CLAIMS,
        fix="Create the claim in the pod's namespace, or correct claimName.",
        example='persistentvolumeclaim "data" not found',
    ),
    ReasonCode.VOLUME_CLAIM_PENDING: ReasonText(
        what="A claim of the pod has no volume yet, and another controller has to give it one.",
        see="kubectl describe pvc CLAIM",
        fix="Look at the claim's Events: its provisioner may be missing or refuse.",
        example="pod has unbound immediate PersistentVolumeClaims",
    ),
    ReasonCode.VOLUME_MISSING: ReasonText(
        what="A claim is bound to a PersistentVolume that does not exist any more.",
        see="kubectl get pvc,pv -n NAMESPACE",
        fix="Restore the volume, or delete the claim and make it anew.",
        example="node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    ),
    ReasonCode.STORAGE_CLASS: ReasonText(
        what="The StorageClass of a claim does not exist, or says nothing about when to bind.",
        see="kubectl get storageclass",
        fix="Create the class, set its volumeBindingMode, or correct the claim's class.",
        example='storageclass.storage.k8s.io "fast" not found',
    ),
    ReasonCode.VOLUME_IN_USE: ReasonText(
        what="A volume of the pod may be used once only, and another pod uses it.",
        see="kubectl describe pvc CLAIM",
        fix="Wait for that pod to end, delete it, or use another access mode.",
        example="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access "
        "mode already in-use by another pod",
    ),
    ReasonCode.VOLUME_LIMIT: ReasonText(
        what="The nodes have as many volumes attached as their driver allows.",
        see="kubectl get csinode NODE -o yaml",
        fix="Add a node, or delete pods there that use volumes of this driver.",
        example="node(s) exceed max volume count",
    ),
    ReasonCode.VOLUME_DRIVER: ReasonText(
        what="The CSI driver of a volume is not installed on the nodes.",
        see="kubectl get csinode",
        fix="Install the driver's node plugin there, or wait until it has registered.",
        example="ebs.csi.aws.com CSI driver is not installed on the node",
    ),
    ReasonCode.VOLUME_NODE: ReasonText(
        what="A volume of the pod can be used on certain nodes only, such as those of its zone, "
        "and the other rules leave none of them.",
        see="kubectl get pv -o yaml",
        fix="Make room on a node of the volume's zone, or add one there. To move, copy the data "
        "into a volume of another zone.",
        example="node(s) didn't match PersistentVolume's node affinity",
    ),
    ReasonCode.NO_MATCHING_VOLUME: ReasonText(
        what="No PersistentVolume fits a claim of the pod, and its class makes none.",
        see="kubectl get pv",
        fix="Create a volume of the class, size and access mode, or use a class with a "
        "provisioner.",
        example="node(s) didn't find available persistent volumes to bind",
    ),
    ReasonCode.STORAGE: ReasonText(
        what="The driver reports too little free capacity for a volume that the pod needs.",
        see="kubectl get csistoragecapacities -A",
        fix="Ask for a smaller volume, free capacity, or add a node or a pool.",
        example="node(s) did not have enough free storage",
    ),
}
"""Code to text."""

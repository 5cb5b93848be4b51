"""The texts about other pods and about devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.reasons.codes import ReasonCode
from moorage.explain.reasons.reason_text import ReasonText

_CLAIMS: Final = "kubectl get resourceclaims -n NAMESPACE"

ABOUT_OTHERS: Final[Mapping[ReasonCode, ReasonText]] = {
    ReasonCode.TOPOLOGY_LABEL: ReasonText(
        what="The pod spreads over a topology, and nodes lack the label of its key.",
        see="kubectl get nodes -L topology.kubernetes.io/zone",
        fix="Label the nodes, or correct topologyKey.",
        example="node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    ReasonCode.SPREAD: ReasonText(
        what="On every node with room the pod would make its set more uneven than maxSkew allows.",
        see="moorage explain pod NAME",
        fix="Make room in the domain with the fewest pods, raise maxSkew, or make the constraint "
        "soft (whenUnsatisfiable: ScheduleAnyway).",
        example="node(s) didn't match pod topology spread constraints",
    ),
    ReasonCode.SPREAD_OF_NOMINATED: ReasonText(
        what="A pod of higher priority is nominated to the domain and must be spread. Next to this "
        "pod, which its constraint counts, it would not fit there any more.",
        see="moorage explain pod NAME",
        fix="Wait: the pod is tried again when the nominated pod is placed, deleted or nominated "
        "elsewhere. Add room in another domain if that takes too long.",
        example="node(s) didn't satisfy nominated pods' topology spread constraints",
    ),
    ReasonCode.POD_AFFINITY: ReasonText(
        what="The pod wants to be near certain pods, and no node with room has them near.",
        see="kubectl get pods -A -o wide -l KEY=VALUE",
        fix="Start the pods that it names, make room next to them, or make the affinity preferred.",
        example="node(s) didn't match pod affinity rules",
    ),
    ReasonCode.ANTI_AFFINITY: ReasonText(
        what="The pod wants to be apart from certain pods, and every node with room has one near.",
        see="moorage explain pod NAME",
        fix="Add a node or a domain, or make the anti-affinity preferred.",
        example="node(s) didn't match pod anti-affinity rules",
    ),
    ReasonCode.ANTI_AFFINITY_OF_OTHERS: ReasonText(
        what="Pods that run want to be apart from pods like this one.",
        see="moorage explain pod NAME",
        fix="Add a node or a domain, or change the anti-affinity of the pods that run.",
        example="node(s) didn't satisfy existing pods anti-affinity rules",
    ),
    ReasonCode.RESOURCE_CLAIM_MISSING: ReasonText(
        what="A ResourceClaim of the pod does not exist, is being deleted, or belongs to another "
        "pod.",
        see=_CLAIMS,
        fix="Create the claim, or correct its name in spec.resourceClaims.",
        example='could not find ResourceClaim "team/gpu"',
    ),
    ReasonCode.RESOURCE_CLAIM_PENDING: ReasonText(
        what="A ResourceClaim of the pod is not made yet, or its devices are being prepared.",
        see=_CLAIMS,
        fix="Wait. If it stays, look at the controller that makes claims from templates, or at the "
        "driver of the devices.",
        example='pod "team/web": ResourceClaim not created yet',
    ),
    ReasonCode.RESOURCE_CLAIM_INVALID: ReasonText(
        what="A ResourceClaim asks for something that cannot be judged: a DeviceClass that does "
        "not exist, or a selector that fails.",
        see="kubectl get deviceclasses",
        fix="Correct the claim, the class or the selector that the message names.",
        example="request gpu: device class large.example.com does not exist",
    ),
    ReasonCode.RESOURCE_CLAIM_NODE: ReasonText(
        what="A claim of the pod has devices already, and they are on other nodes.",
        see=_CLAIMS,
        fix="Make room on the node of the devices, or delete the pods that hold the claim, so that "
        "it is allocated anew.",
        example="resourceclaim not available on the node",
    ),
    ReasonCode.DEVICES: ReasonText(
        what="No node has devices free for all claims of the pod: they are taken, tainted, not "
        "selected, or the driver's list of them is not complete.",
        see="moorage explain pod NAME",
        fix="Ask for fewer devices or weaker selectors, end pods that hold devices, or add a node.",
        example="cannot allocate all claims",
    ),
}
"""Code to text."""

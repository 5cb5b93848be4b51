"""Rows of the table of deviations: wake-ups that kube-scheduler's hints forget.

The recordings that hold them are named in ``moorage_lab.conformance.faults``.
"""

from __future__ import annotations

from typing import Final

from tools.pages.deviation import Deviation

_HEARD: Final = "the pod fits from then on, and perhaps nothing else happens"

FORGOTTEN_WAKE_UPS: Final[tuple[Deviation, ...]] = (
    Deviation(
        subject="A pod with required affinity to its own label whose last peer goes",
        upstream="waits for another event, or five minutes (kubernetes#141354)",
        here="the deleted or relabelled peer queues it: it may place itself now",
        why=_HEARD,
    ),
    Deviation(
        subject="Several required anti-affinity terms, of the waiting pod or of a pod that goes",
        upstream=(
            "the pod that goes has to match all of them (kubernetes#139161, fixed in 1.37); "
            "otherwise the waiting pod waits for another event, or five minutes"
        ),
        here="one of them is enough",
        why=_HEARD,
    ),
    Deviation(
        subject="Affinity terms with a `namespaceSelector`, and the hints",
        upstream=(
            "hints do not resolve the selector, and labels of namespaces are not heard "
            "(kubernetes#141953): the pod waits for another event, or five minutes"
        ),
        here="hints resolve it, and a namespace whose labels change queues the pod",
        why=_HEARD,
    ),
    Deviation(
        subject="Anti-affinity of a running pod, and labels of nodes",
        upstream=(
            "a pod that it keeps out does not hear that a node comes, goes, changes its domain "
            "or leaves it"
        ),
        here="is queued when such a node changes the label of a term that is about the pod",
        why=_HEARD,
    ),
    Deviation(
        subject="A CSIDriver that stops tracking capacity, or is deleted",
        upstream="queues pods with an inline volume of the driver, whose capacity is never checked",
        here="also queues pods with claims",
        why=_HEARD,
    ),
    Deviation(
        subject="A CSI limit that goes",
        upstream=(
            "a CSINode queues pods only when a driver's count rises, not when count, driver or "
            "CSINode are gone"
        ),
        here="queues them in all these cases",
        why=_HEARD,
    ),
    Deviation(
        subject="Other hints about volumes",
        upstream=(
            "a pod rejected for attach limits does not hear of new nodes, nor of changes of its "
            "claims; one that shares a disk hears only of pods of its own namespace, and one with "
            "a ReadWriteOncePod claim not of deleted nodes"
        ),
        here="each of them queues the pod",
        why=_HEARD,
    ),
    Deviation(
        subject="A claim that holds other devices than before, as a new list shows it",
        upstream="queues no pod: only a claim without devices gave some back",
        here="queues the pods that need devices",
        why=_HEARD,
    ),
    Deviation(
        subject="A ResourceSlice that is deleted",
        upstream="queues no pod",
        here=(
            "queues the pods that need devices: a claim for all devices fits without one that is "
            "tainted or in use"
        ),
        why=_HEARD,
    ),
    Deviation(
        subject="Topology spread: a node leaves the pod's node selector, or a counted pod ends",
        upstream=(
            "a node's new labels queue the pod only if they are topology keys; a counted pod only "
            "when it is gone, not when it begins to terminate"
        ),
        here="both queue the pod: the skew is less from then on",
        why=_HEARD,
    ),
    Deviation(
        subject="A pod that Permit turns away gives its room back",
        upstream=(
            "every waiting pod whose hints want room is tried again, and once more when the node "
            "is removed from the pod's status"
        ),
        here="only its group, and pods that were tried while it had the room; once",
        why="the others were rejected with that room free; two groups woke each other without end",
    ),
)

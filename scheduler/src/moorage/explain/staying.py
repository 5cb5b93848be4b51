"""The pods that stay on a node however long the pod waits: those of DaemonSets, and static pods.

A controller makes a pod of a DaemonSet again at once, and a kubelet its static pods. So an empty
node still has them, unless the pod that waits may preempt them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import MIRROR, Pod
from moorage.engine.inquiry import Inquiry
from moorage.snapshot.pod_info import PodInfo


def staying_pods(inquiry: Inquiry, rows: NDArray[np.int64]) -> list[tuple[int, PodInfo]]:
    """Return the pods that stay on some rows, each with its row."""
    pod, snapshot = inquiry.attempt.pod.pod, inquiry.snapshot
    staying = []
    for row in rows.tolist():
        for other in snapshot.pods(row):
            metadata = other.pod.metadata  # looked at first: a cluster has many pods
            owned = metadata.owner_references or metadata.annotations
            if owned and stays(other, next_to=pod):
                staying.append((row, other))
    return staying


def stays(other: PodInfo, *, next_to: Pod) -> bool:
    """Whether a pod stays on its node, though another pod waits for room there."""
    controller = other.pod.metadata.controller
    remade = controller is not None and controller.kind == "DaemonSet"
    if not remade and MIRROR not in other.annotations:
        return False
    preempts = next_to.spec.preemption_policy != "Never" and next_to.priority > other.priority
    return not preempts


def owner_words(pod: PodInfo) -> str:
    """Return the words before "pod" for a pod that stays: ``DaemonSet agent's``."""
    controller = pod.pod.metadata.controller
    if controller is None or MIRROR in pod.annotations:  # whose owner is the node
        return "static "
    return f"{controller.kind} {controller.name}'s "

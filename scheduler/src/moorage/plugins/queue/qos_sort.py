"""QOSSort: at equal priority Guaranteed pods first, then Burstable, then BestEffort.

The plugin is not part of the default profile: a profile enables it at ``queueSort`` and disables
PrioritySort. Rules mirrored: scheduler-plugins ``pkg/qos``. Upstream leaves the order of pods of
one priority and class open. Here the longest waiting pod is first, a strict order.
"""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod
from moorage.api.requests import qos_of
from moorage.framework.handle import Handle

_RANK: Final = {"Guaranteed": 0, "Burstable": 1, "BestEffort": 2}


class QOSSort:
    """QueueSort plugin; takes no arguments."""

    name = "QOSSort"

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def sort_key(self, priority: int, timestamp_ns: int, pod: Pod) -> tuple[int, int, int]:
        """Return (-priority, rank of the QoS class, time of entering the queue).

        The class comes from the pod's status, or is computed if the status has none.
        """
        return (-priority, _RANK[qos_of(pod)], timestamp_ns)

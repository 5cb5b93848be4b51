"""QOSSort: among pods of equal priority Guaranteed first, then Burstable, then BestEffort.

Not part of the default profile: a profile that wants it disables PrioritySort at ``queueSort`` and
enables this. Rules mirrored: scheduler-plugins ``pkg/qos``, which leaves pods of one priority and
class in no order at all; here the one waiting longest is first, which is one of the orders allowed
there and a strict one.
"""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod
from moorage.api.requests import qos_class
from moorage.framework.handle import Handle

_RANK: Final = {"Guaranteed": 0, "Burstable": 1, "BestEffort": 2}


class QOSSort:
    """QueueSort plugin; takes no arguments."""

    name = "QOSSort"

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def sort_key(self, priority: int, timestamp_ns: int, pod: Pod) -> tuple[int, int, int]:
        """Return (-priority, rank of the QoS class, time of entering the queue).

        The class is what the pod's status says, computed where it says nothing.
        """
        return (-priority, _RANK[pod.status.qos_class or qos_class(pod)], timestamp_ns)

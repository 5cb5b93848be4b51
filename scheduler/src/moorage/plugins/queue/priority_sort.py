"""PrioritySort: the pod of highest priority first; at equal priority the longest waiting pod.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/queuesort``.
"""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.framework.handle import Handle


class PrioritySort:
    """QueueSort plugin; takes no arguments."""

    name = "PrioritySort"

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def sort_key(self, priority: int, timestamp_ns: int, pod: Pod) -> tuple[int, int]:
        """Return (-priority, time of entering the queue); a retried pod has a new time."""
        del pod
        return (-priority, timestamp_ns)

"""DefaultBinder: writes the Binding of a pod to its node.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultbinder``.
"""

from __future__ import annotations

from moorage.base.errors import ApiError
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.status import SUCCESS, Status, error
from moorage.snapshot.pod_info import PodInfo


class DefaultBinder:
    """Bind plugin; takes no arguments, registers no events."""

    name = "DefaultBinder"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._client = handle.client

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Create the Binding; with the pod's uid, so the server rejects a recreated pod.

        Returns
        -------
        Status
            Success, or Error with the server's text when the server rejected the Binding.

        Raises
        ------
        TransportError
            The server did not answer. The pod may be bound nevertheless, so the binding task must
            read the pod before a retry.
        """
        del state
        if self._client is None:
            return error(f"pod {pod.key}: nothing can be bound here, there is no API client")
        try:
            await self._client.bind(pod.namespace, pod.name, pod.uid, node_name)
        except ApiError as refusal:
            return error(str(refusal))
        return SUCCESS

"""The verbs a plugin may await in the binding task, spoken through the API client."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from moorage.api.codec import encode
from moorage.api.meta import ObjectMeta, ObjectReference
from moorage.api.pod import Pod
from moorage.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ResourceType,
)
from moorage.base import aio
from moorage.base.errors import ApiError, MoorageError, RefusedError, TransportError
from moorage.client.requests import MERGE_PATCH
from moorage.client.writes import Client
from moorage.framework.handle import ObjectClient
from moorage.service.attempts.attempt_log import binding_begins
from moorage.service.binding.slots import BindingSlots

_log = logging.getLogger(__name__)

# After a lost answer the pod is looked up until an answer comes. The waits between grow (a guess:
# soon after a short fault, and rarely in a long one).
_WAIT_SECONDS = 1.0
_WAIT_SECONDS_MAX = 30.0


class ApiBinding:
    """The verbs a plugin may await in the binding task, over the API client.

    A binding whose answer was lost may have happened. The pod keeps its room until that is known.

    Parameters
    ----------
    client
        The API verbs.
    lookup
        Newest version of a pod by namespace and name, None where the watch shows none.
    slots
        Counts the bindings under way; a pod that waits for another look does not count.
    """

    def __init__(
        self, client: Client, lookup: Callable[[str, str], Pod | None], slots: BindingSlots
    ) -> None:
        self._client = client
        self._lookup = lookup
        self._slots = slots

    @property
    def objects(self) -> ObjectClient:
        """The verbs for objects of any kind."""
        return self._client

    async def bind_volume(
        self, volume: ObjectMeta, claim: ObjectReference, *, annotations: Mapping[str, str]
    ) -> str:
        """Write a PersistentVolume's claimRef and annotations, at the version given.

        Raises
        ------
        ApiError
            The server refused; ConflictError when the volume has changed.
        TransportError
            No answer.
        """
        metadata = {
            "resourceVersion": volume.resource_version,
            "annotations": dict(annotations),
        }
        return await self._patch(
            PERSISTENT_VOLUMES, volume, {"metadata": metadata, "spec": {"claimRef": claim}}
        )

    async def annotate_claim(self, claim: ObjectMeta, annotations: Mapping[str, str]) -> str:
        """Set annotations of a PersistentVolumeClaim at the version given.

        Raises
        ------
        ApiError
            The server refused; ConflictError when the claim has changed.
        TransportError
            No answer.
        """
        metadata = {"resourceVersion": claim.resource_version, "annotations": dict(annotations)}
        return await self._patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": metadata})

    async def _patch(
        self, resource: ResourceType, obj: ObjectMeta, change: Mapping[str, object]
    ) -> str:
        stored = await self._client.patch(
            resource,
            obj.name,
            encode(change),
            namespace=obj.namespace,
            content_type=MERGE_PATCH,
        )
        metadata = stored.get("metadata")
        return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""

    async def sleep(self, seconds: float) -> None:
        """Wait in the binding task."""
        await aio.sleep(seconds)

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the API still shows a pod of this name."""
        return self._lookup(namespace, name) is not None

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node.

        Raises
        ------
        ApiError
            The server refused.
        TransportError
            No answer, and the pod is not on the node or may not be read.
        """
        binding_begins(namespace, name, node_name)
        target = ObjectReference(namespace=namespace, name=name, uid=uid)
        try:
            await self._client.bind(target, node_name=node_name)
        except RefusedError:
            raise  # nothing was sent, so there is nothing to look for
        except TransportError as lost:
            if not await self.is_bound(namespace, name, uid, node_name):
                raise
            _log.info("binding of %s/%s had happened: %s", namespace, name, lost)

    async def is_bound(self, namespace: str, name: str, uid: str, node_name: str) -> bool:
        """Return whether a pod is on a node; ask again until the server or the watch tells."""
        seconds = _WAIT_SECONDS
        while True:
            try:
                stored = await self._client.get(PODS, name, namespace=namespace)
            except MoorageError as problem:
                if _is_answer(problem):
                    return False
                level = logging.INFO if seconds == _WAIT_SECONDS else logging.WARNING
                text = "pod %s/%s may be bound to %s and cannot be looked up: %s"
                _log.log(level, text, namespace, name, node_name, problem)
            else:
                metadata, spec = stored.get("metadata"), stored.get("spec")
                same = isinstance(metadata, dict) and metadata.get("uid") == uid
                return same and isinstance(spec, dict) and spec.get("nodeName") == node_name
            await self._wait(seconds)
            seconds = min(2 * seconds, _WAIT_SECONDS_MAX)
            pod = self._lookup(namespace, name)
            if pod is None or pod.metadata.uid != uid:
                return False  # deleted
            if pod.spec.node_name:
                return pod.spec.node_name == node_name

    async def _wait(self, seconds: float) -> None:
        """Wait for another look; meanwhile other pods may be bound."""
        self._slots.free()
        try:
            await aio.sleep(seconds)
        finally:
            self._slots.take_slot()


def _is_answer(problem: MoorageError) -> bool:
    """Whether a failed look says that no pod is to be seen, and will say so again.

    401 is none: it comes while credentials are renewed.
    """
    return isinstance(problem, ApiError) and problem.code < 500 and problem.code not in {401, 429}

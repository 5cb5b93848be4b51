"""The verbs a plugin may await in the binding task, spoken through the API client."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from moorage.api.codec import encode
from moorage.api.meta import ObjectMeta, ObjectReference
from moorage.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ResourceType,
)
from moorage.base import aio
from moorage.base.errors import MoorageError, NotFoundError, RefusedError, TransportError
from moorage.client.requests import MERGE_PATCH
from moorage.client.writes import Client
from moorage.framework.handle import ObjectClient
from moorage.service.attempt_log import binding_begins

_log = logging.getLogger(__name__)

# After a lost answer the pod is looked up this often, this far apart. Then the pod goes back to the
# queue.
_LOOKS = 5
_LOOK_WAIT_SECONDS = 1.0


class ApiBinding:
    """The verbs a plugin may await in the binding task, over the API client.

    A binding whose answer was lost may have happened, so the pod is looked at before the attempt
    counts as failed.

    Parameters
    ----------
    client
        The API verbs.
    lookup
        Newest version of a pod by namespace and name, None where the API shows none.
    """

    def __init__(self, client: Client, lookup: Callable[[str, str], object | None]) -> None:
        self._client = client
        self._lookup = lookup

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
            No answer, and the pod could not be looked at or is not on the node.
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
        """Return whether a pod is on a node; ask again for a while if no answer comes."""
        for _ in range(_LOOKS):
            try:
                found = await self._client.get(PODS, name, namespace=namespace)
            except NotFoundError:
                return False
            except MoorageError:
                await aio.sleep(_LOOK_WAIT_SECONDS)
                continue
            metadata, spec = found.get("metadata"), found.get("spec")
            same = isinstance(metadata, dict) and metadata.get("uid") == uid
            return same and isinstance(spec, dict) and spec.get("nodeName") == node_name
        return False

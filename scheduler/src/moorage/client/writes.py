"""The verbs by which the scheduler, the agents and the command line change objects.

Each verb sends a `Call` of ``requests`` and turns a failure status into its exception. Objects
go in and come out as plain JSON values, because nothing decoded is ever written back whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

from moorage.api.codec import decode_untyped, encode
from moorage.api.meta import ObjectReference
from moorage.api.resources import PODS, ResourceType
from moorage.base import aio
from moorage.base.errors import (
    ApiError,
    ConflictError,
    DecodeError,
    MoorageError,
    NotFoundError,
    RefusedError,
)
from moorage.base.rng import Random
from moorage.client import requests
from moorage.client.status import (
    Status,
    error_from_answer,
    error_from_status,
    read_status,
    refuse_failed,
)
from moorage.client.transport import Answer, Call, Transport

JsonObject: TypeAlias = dict[str, object]
"""An object as plain JSON values."""

_STATUS_TRIES_MAX = 4
_STATUS_PAUSE_SECONDS = 0.01
_STATUS_PAUSE_FACTOR = 5
_STATUS_PAUSE_JITTER = 0.1


class Client:
    """Verbs over one transport.

    Parameters
    ----------
    transport
        Carries the calls; closed by its owner, not by the client.
    rng
        Stream for the jitter of retries.
    """

    def __init__(self, transport: Transport, *, rng: Random) -> None:
        self.transport = transport
        self._rng = rng

    # --- pods -------------------------------------------------------------------------------

    async def bind(self, pod: ObjectReference, *, node_name: str) -> None:
        """Bind a pod to a node, once.

        Parameters
        ----------
        pod
            Namespace, name and uid; the uid is a precondition.

        Raises
        ------
        ConflictError
            The pod is bound, gated, being deleted, or another pod of that name.
        NotFoundError
            The pod is gone.
        TransportError
            No answer; the binding may have happened, look before retrying.
        """
        await self._send_call(requests.bind(PODS, pod, node_name=node_name))

    async def patch_pod_status(self, pod: ObjectReference, body: bytes) -> str:
        """Apply a strategic merge patch to a pod's status, retrying as kube-scheduler does.

        Parameters
        ----------
        pod
            Namespace and name.
        body
            As ``pod_status.status_patch`` builds it.

        Returns
        -------
        str
            The version of the pod with this status; "" if the reply does not say it.

        Notes
        -----
        Mirrors kubernetes v1.36 pkg/scheduler/util/utils.go ``PatchPodStatus``: four tries on
        409, 500 InternalError, 503 and a refused connection, 10 ms x 5^n apart.
        """
        call = requests.patch(PODS, pod.name, body, namespace=pod.namespace, subresource="status")
        pause = _STATUS_PAUSE_SECONDS
        for _ in range(_STATUS_TRIES_MAX - 1):
            try:
                return _version(await self._send_call(call))
            except (ApiError, RefusedError) as error:
                if not _worth_retrying(error):
                    raise
            await aio.sleep(pause * (1 + _STATUS_PAUSE_JITTER * self._rng.random()))
            pause *= _STATUS_PAUSE_FACTOR
        return _version(await self._send_call(call))

    async def delete_pod(
        self, pod: ObjectReference, *, grace_seconds: int | None = None, check_uid: bool = False
    ) -> bool:
        """Delete a pod; a missing pod counts as deleted.

        Parameters
        ----------
        pod
            Namespace, name and, with `check_uid`, the uid it must still have.
        grace_seconds
            Grace period; None leaves it to the pod, 0 removes it at once.

        Returns
        -------
        bool
            Whether the pod was there.
        """
        call = requests.delete(
            PODS,
            pod.name,
            namespace=pod.namespace,
            grace_seconds=grace_seconds,
            uid=pod.uid if check_uid else "",
        )
        try:
            await self._send_call(call)
        except NotFoundError:
            return False
        return True

    # --- any object -------------------------------------------------------------------------

    async def get(self, resource: ResourceType, name: str, *, namespace: str = "") -> JsonObject:
        """Read one object.

        Raises
        ------
        NotFoundError
            There is no object of that name.
        """
        return _object(await self._send_call(requests.get(resource, name, namespace=namespace)))

    async def list(
        self, resource: ResourceType, selection: requests.Selection | None = None
    ) -> JsonObject:
        """Read all pages of a list and return them as one.

        Returns
        -------
        dict
            The list object of the last page, with the items of all pages in server order.
        """
        selection = selection or requests.Selection()
        items: list[object] = []
        page = requests.ListPage(limit=requests.PAGE_SIZE)
        while True:
            answer = await self._send_call(requests.list_objects(resource, selection, page=page))
            result = _object(answer)
            found = result.get("items")
            items.extend(found if isinstance(found, list) else [])
            metadata = result.get("metadata")
            token = metadata.get("continue") if isinstance(metadata, dict) else None
            if not isinstance(token, str) or not token:
                result["items"] = items
                return result
            page = requests.ListPage(limit=requests.PAGE_SIZE, continue_token=token)

    async def create(
        self,
        resource: ResourceType,
        obj: Mapping[str, object],
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
    ) -> JsonObject:
        """Create an object, or a subresource of a named one, and return it as stored.

        Raises
        ------
        ConflictError
            The name is taken.
        """
        call = requests.create(
            resource, encode(obj), namespace=namespace, name=name, subresource=subresource
        )
        return _object(await self._send_call(call))

    async def create_only(
        self, resource: ResourceType, obj: Mapping[str, object], *, namespace: str = ""
    ) -> None:
        """Create an object as `create` does, and leave the object in the answer unread.

        The call is pipelined: without an answer the object may have been created.
        """
        call = requests.create(resource, encode(obj), namespace=namespace, pipelined=True)
        await self._send_call(call)

    async def replace(
        self,
        resource: ResourceType,
        obj: Mapping[str, object],
        *,
        name: str,
        namespace: str = "",
        subresource: str = "",
    ) -> JsonObject:
        """Replace an object that was read as plain JSON and changed.

        Raises
        ------
        ConflictError
            Another client changed the object meanwhile.
        """
        call = requests.replace(
            resource, name, encode(obj), namespace=namespace, subresource=subresource
        )
        return _object(await self._send_call(call))

    async def patch(
        self,
        resource: ResourceType,
        name: str,
        body: bytes,
        *,
        namespace: str = "",
        subresource: str = "",
        content_type: str = requests.STRATEGIC_MERGE_PATCH,
    ) -> JsonObject:
        """Change an object, or a subresource, by a patch and return it as stored."""
        call = requests.patch(
            resource,
            name,
            body,
            namespace=namespace,
            subresource=subresource,
            content_type=content_type,
        )
        return _object(await self._send_call(call))

    async def delete(
        self,
        resource: ResourceType,
        name: str,
        *,
        namespace: str = "",
        grace_seconds: int | None = None,
        uid: str = "",
        version: str = "",
        propagation: str = "",
    ) -> JsonObject:
        """Delete an object and return the server's answer (the object, or a Status).

        Raises
        ------
        NotFoundError
            There is no object of that name.
        ConflictError
            The object does not have `uid` or `version`.
        """
        call = requests.delete(
            resource,
            name,
            namespace=namespace,
            grace_seconds=grace_seconds,
            uid=uid,
            version=version,
            propagation=propagation,
        )
        return _object(await self._send_call(call))

    async def read_path(self, path: str) -> JsonObject:
        """Read any path that answers with a JSON object (discovery, ``/version``)."""
        return _object(await self._send_call(Call("GET", path)))

    async def watch(
        self,
        resource: ResourceType,
        selection: requests.Selection | None = None,
        *,
        resource_version: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncIterator[JsonObject]:
        """Yield watch events as plain JSON until the server ends the stream.

        For people who watch (``get -w``, ``wait``); a caller that must not miss a change uses a
        `Reflector`.

        Parameters
        ----------
        resource_version
            Version of the list to continue from; "" begins with what there is.

        Raises
        ------
        ApiError
            The server refused the watch, or ended it with an ERROR event.
        """
        call = requests.watch(
            resource,
            selection or requests.Selection(),
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
        )
        async with self.transport.stream(call) as stream:
            await refuse_failed(stream)
            async for line in stream:
                event = decode_untyped(line)
                if not isinstance(event, dict):
                    raise DecodeError(f"not a watch event: {line[:80]!r}")
                if event.get("type") == "ERROR":
                    status = read_status(encode(event.get("object")))
                    raise error_from_status(status or Status(message="an unreadable error"))
                yield event

    async def _send_call(self, call: Call) -> Answer:
        answer = await self.transport.request(call)
        if answer.status >= 400:
            raise error_from_answer(answer)
        return answer


def _worth_retrying(error: MoorageError) -> bool:
    if isinstance(error, RefusedError | ConflictError):
        return True
    if not isinstance(error, ApiError):
        return False
    return error.code == 503 or (error.code == 500 and error.reason in {"InternalError", ""})


def _version(answer: Answer) -> str:
    """Return the version of the object in a reply; "" where there is none."""
    try:
        metadata = _object(answer).get("metadata")
    except DecodeError:
        return ""
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def _object(answer: Answer) -> JsonObject:
    value = decode_untyped(answer.body)
    if not isinstance(value, dict):
        raise DecodeError("the server answered with JSON that is not an object")
    return value

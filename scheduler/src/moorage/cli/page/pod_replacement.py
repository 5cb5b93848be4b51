"""A pod that is deleted and created changed, because most of its spec cannot be changed in place.

The server checks the changed pod before the old one is deleted. If the creation is refused
nevertheless, the pod is created again as it was, and the error says what became of it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import jsonpatch
import msgspec

from moorage.api.codec import encode
from moorage.api.resources import PODS
from moorage.base.errors import MoorageError, UsageError
from moorage.client import requests
from moorage.client.status import error_from_answer
from moorage.client.transport import Transport
from moorage.client.writes import Client

_BY_THE_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
)
_PREFIX_MAX = 50
_OVER_QUOTA = "exceeded quota"


class PodReplacement:
    """The old and the changed form of a pod.

    Parameters
    ----------
    transport, client
        The connection to the server, and the verbs of the API over it.
    pod
        The pod as the server has it.
    patch
        The JSON patch.

    Raises
    ------
    UsageError
        The patch does not fit, or the pod's finalizers keep its name taken.
    """

    def __init__(
        self, transport: Transport, client: Client, pod: Any, patch: Sequence[dict[str, Any]]
    ) -> None:
        self._transport = transport
        self._client = client
        meta = pod["metadata"]
        self._name, self._namespace, self._uid = meta["name"], meta["namespace"], meta["uid"]
        if meta.get("finalizers"):
            names = ", ".join(meta["finalizers"])
            raise UsageError(f"pod {self._title} cannot be replaced: it has finalizers: {names}")
        try:
            changed = jsonpatch.apply_patch(pod, list(patch))
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            raise UsageError(f"patch: {error}") from error
        self._old, self._new = _creatable(pod), _creatable(changed)

    @property
    def _title(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def check_replacement(self) -> None:
        """Let the server check the changed pod, under another name, without storing it.

        An exceeded quota is passed over: the old pod counts in it.

        Raises
        ------
        ApiError
            The server would refuse the changed pod.
        """
        trial = copy.deepcopy(self._new)
        trial["metadata"]["generateName"] = trial["metadata"].pop("name")[:_PREFIX_MAX] + "-"
        call = requests.create(PODS, encode(trial), namespace=self._namespace)
        call = msgspec.structs.replace(call, query=(*call.query, ("dryRun", "All")))
        answer = await self._transport.request(call)
        if answer.status >= 300:
            error = error_from_answer(answer)
            if _OVER_QUOTA not in str(error):
                raise error

    async def carry_out(self) -> None:
        """Delete the pod, and create it changed.

        Raises
        ------
        ApiError
            The pod could not be deleted, and stays.
        UsageError
            The changed pod was refused; the text says whether the old one exists again.
        """
        where = {"namespace": self._namespace}
        await self._client.delete(PODS, self._name, **where, uid=self._uid, grace_seconds=0)
        try:
            await self._client.create(PODS, self._new, **where)
        except MoorageError as problem:
            raise UsageError(await self._restored(problem)) from problem

    async def _restored(self, problem: MoorageError) -> str:
        """Create the pod as it was, and return what became of it."""
        text = f"pod {self._title} was deleted, and its changed form was refused: {problem}"
        try:
            await self._client.create(PODS, self._old, namespace=self._namespace)
        except MoorageError as error:
            manifest = encode(self._old).decode()
            return f"{text}; it is lost, because the old form was refused, too: {error}: {manifest}"
        return f"{text}; it was created again as it was"


def _creatable(pod: Any) -> dict[str, Any]:
    """Return a pod without the fields that the server sets."""
    obj: dict[str, Any] = copy.deepcopy(pod)
    obj.pop("status", None)
    for field in _BY_THE_SERVER:
        obj["metadata"].pop(field, None)
    return {"apiVersion": "v1", "kind": "Pod", **obj}

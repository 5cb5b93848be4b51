"""The sandbox's own client: creates the first objects and follows pods and Events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from moorage.api.event import Event
from moorage.api.pod import Pod
from moorage.api.resources import EVENTS, NODES, PODS, by_kind
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import ApiError
from moorage.base.rng import Streams
from moorage.client.follow import Follower
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.reflectors import Reflectors
from moorage.client.requests import ListPage, Selection, list_objects
from moorage.client.status import error_from_answer
from moorage.client.writes import Client, JsonObject
from moorage_sandbox.sandbox.progress import Progress


class Onlooker:
    """Creates the first objects of ``moorage up`` and watches its pods and Events.

    Parameters
    ----------
    kubeconfig
        Address and credentials of the server.
    progress
        Receives pods and Events.
    clock, streams
        Time; randomness of retries.
    tasks
        Owns the watches.
    """

    def __init__(
        self,
        kubeconfig: Path,
        progress: Progress,
        *,
        clock: Clock,
        streams: Streams,
        tasks: TaskOwner,
    ) -> None:
        access = find_access(str(kubeconfig), clock=clock)
        self._transport = HttpTransport(access, user_agent="moorage-up")
        self._client = Client(self._transport, rng=streams.stream("up/client"))
        self._progress = progress
        self._clock = clock
        self._streams = streams
        self._tasks = tasks

    async def watch(self) -> None:
        """Follow pods and Events; returns when the first lists are in."""
        progress = self._progress
        made = Reflectors(self._transport, clock=self._clock, streams=self._streams, prefix="up")
        pods = made.reflector_of(PODS, Pod, Follower(progress.pod_seen, progress.pod_gone))
        events = made.reflector_of(
            EVENTS, Event, Follower(progress.event_seen, progress.event_gone)
        )
        self._tasks.spawn(pods.run(), name="watch pods")
        self._tasks.spawn(events.run(), name="watch events")
        await pods.synced.wait()
        await events.synced.wait()

    async def count_nodes(self) -> int:
        """Return how many nodes there are now; the nodes themselves are not read.

        Raises
        ------
        MoorageError
            The server does not answer, or refuses.
        """
        call = list_objects(NODES, Selection(), page=ListPage(limit=1))
        answer = await self._transport.request(call)
        if answer.status != 200:
            raise error_from_answer(answer)
        listed = msgspec.json.decode(answer.body)
        return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close()

    async def create_objects(
        self, objects: Sequence[JsonObject], complain: Callable[[str], None]
    ) -> int:
        """Create objects one after another; refused objects are reported and left out.

        An owner reference without a uid is to an object that was created before, by its name.

        Returns
        -------
        int
            How many pods were created.
        """
        pods = 0
        uids: dict[object, str] = {}
        for obj in objects:
            metadata = obj.get("metadata")
            names = metadata if isinstance(metadata, dict) else {}
            kind, version = str(obj.get("kind", "")), str(obj.get("apiVersion", ""))
            resource = by_kind(kind, version)
            if resource is None:
                complain(f"{version} {kind}: the sandbox does not serve this kind")
                continue
            namespace = str(names.get("namespace") or "default") if resource.namespaced else ""
            for owner in names.get("ownerReferences") or ():
                owner.setdefault("uid", uids.get(owner["name"], ""))
            try:
                created = await self._client.create(resource, obj, namespace=namespace)
            except ApiError as error:
                complain(f"{kind} {names.get('name', '')}: {error}")
                continue
            pods += resource is PODS
            stored = created.get("metadata")
            uids[names.get("name")] = str(stored["uid"]) if isinstance(stored, dict) else ""
        return pods

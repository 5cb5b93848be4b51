"""The base of all controllers: surroundings, a queue of keys, and workers that empty it.

`Controller.sync` brings one object to its wanted state. Every change that may matter to an object
queues the object's key. A write that came too late (conflict, gone) is dropped: the watch shows the
newer object, and the key is queued again.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from moorage.api.meta import ApiObject, ObjectReference
from moorage.api.resources import ResourceType
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import ConflictError, MoorageError, NotFoundError
from moorage.base.rng import Random, Streams
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.objects import Key
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client
from moorage.controllers.event_budget import EventBudget
from moorage.controllers.views import View, Views
from moorage.controllers.work_queue import ObjectQueue
from moorage.workloads.objects import Json, Whole

_log = logging.getLogger(__name__)

_WORKERS: Final = 5  # of each controller, as in kube-controller-manager


@dataclass(frozen=True, slots=True)
class ControllerInputs:
    """The client, views, clock and random streams that controllers work with.

    Parameters
    ----------
    client
        Verbs of the server.
    views
        The watched objects, shared by all controllers.
    recorder
        Emits Events.
    authority
        Certificate of the server's authority, PEM, published in every namespace; "" for none.
    """

    client: Client
    views: Views
    recorder: EventRecorder
    clock: Clock
    streams: Streams
    authority: str = ""


class Controller(ABC):
    """One controller of one kind of objects.

    Parameters
    ----------
    around
        The surroundings of the controller.
    name
        Name of the controller in Events, and name of its random stream.
    resource
        The kind of the controller's objects.
    """

    def __init__(self, around: ControllerInputs, *, name: str, resource: ResourceType) -> None:
        self.name = name
        self.resource = resource
        self.client = around.client
        self.clock = around.clock
        self.rng: Random = around.streams.stream(f"controllers/{name}")
        self.queue = ObjectQueue()
        self._recorder = around.recorder
        self._budget = EventBudget(around.clock)
        self._followed: View[Any] | None = None
        # Objects that a view still shows, though a write found them gone.
        self._left_alone: set[Key] = set()

    @abstractmethod
    async def sync(self, key: Key) -> float | None:
        """Bring one object to its wanted state.

        Returns
        -------
        float or None
            Seconds after which to look again although nothing has changed; None for never.

        Raises
        ------
        MoorageError
            A call failed; the key is tried again later.
        """

    async def run(self) -> None:
        """Sync the queued keys until cancelled; needs views that have been listed."""
        try:
            await aio.together(*(self._work() for _ in range(_WORKERS)))
        finally:
            self.queue.close()

    async def _work(self) -> None:
        while True:
            key = await self.queue.take_key()
            if key in self._left_alone:
                self.queue.finish_key(key)
                continue
            try:
                again = await self.sync(key)
            except (ConflictError, NotFoundError) as late:
                _log.debug("%s %s: too late: %s", self.name, "/".join(key), late)
                self.queue.retry(key)
            except MoorageError as problem:
                _log.warning("%s %s: %s", self.name, "/".join(key), problem)
                self.queue.retry(key)
            else:
                self.queue.forget_failures(key)
                if again is not None:
                    self.queue.add_after(key, again)
            finally:
                self.queue.finish_key(key)

    def follow(self, view: View[Any]) -> None:
        """Queue every object of a view that changes."""
        self._followed = view
        view.tell(self._enqueue_changed)

    def _enqueue_changed(self, old: ApiObject | None, new: ApiObject | None) -> None:
        obj = new or old
        assert obj is not None, "a view tells of something"
        key = (obj.namespace, obj.name)
        self._left_alone.discard(key)
        self.queue.add(key)

    def _found_gone(self, obj: ApiObject) -> None:
        """Leave an object alone until the view tells of it.

        Otherwise a controller whose watch is late makes dependents of an object that is gone, and
        the garbage collector deletes them, hundreds of times a second.
        """
        key = (obj.namespace, obj.name)
        shown = self._followed.objects.get(key) if self._followed is not None else None
        if shown is not None and shown.metadata.uid == obj.metadata.uid:
            self._left_alone.add(key)

    # --- writing ----------------------------------------------------------------------------

    def emit_event(
        self,
        obj: ApiObject,
        reason: str,
        text: str,
        *,
        kind: Literal["Normal", "Warning"] = "Normal",
        action: str = "",
        related: ObjectReference | None = None,
    ) -> None:
        """Emit an Event about an object of this controller's kind.

        Parameters
        ----------
        action, related
            Events that differ only in their text are merged into one. Different values here keep
            two Events apart.
        """
        if not self._budget.spend_one(obj.metadata.uid):
            return
        self._recorder.record_event(
            EventNote(
                regarding=reference(obj, self.resource),
                controller=self.name,
                instance=self.name,
                type=kind,
                reason=reason,
                action=action or reason,
                note=text,
                related=related,
            )
        )

    async def write_status(self, obj: Whole, status: Mapping[str, Any]) -> None:
        """Patch the changed fields of an object's status, if it is still the version seen.

        Fields that are None are removed.
        """
        changes = {
            name: value
            for name, value in status.items()
            if _bare(obj.status.get(name)) != _bare(value)
        }
        if changes:
            await self.patch_object(self.resource, obj, {"status": changes}, subresource="status")

    async def patch_object(
        self, resource: ResourceType, obj: ApiObject, changes: Json, *, subresource: str = ""
    ) -> Json:
        """Change an object by a merge patch, if it is still the version seen.

        Raises
        ------
        ConflictError
            The object has changed since the version seen.
        NotFoundError
            The object is gone.
        """
        version = {"resourceVersion": obj.metadata.resource_version}
        metadata = {**changes.get("metadata", {}), **version}
        try:
            return await self.client.patch(
                resource,
                obj.name,
                patch_body({**changes, "metadata": metadata}),
                namespace=obj.namespace,
                subresource=subresource,
                content_type=MERGE_PATCH,
            )
        except NotFoundError:
            if resource is self.resource:
                self._found_gone(obj)
            raise


def _bare(value: Any) -> Any:
    """Return a value without fields that are None; an empty map becomes None."""
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if each is not None} or None
    return value


def reference(obj: ApiObject, resource: ResourceType) -> ObjectReference:
    """Return the object reference for Events."""
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=obj.namespace,
        name=obj.name,
        uid=obj.metadata.uid,
    )

"""The garbage collector: deletes objects without owners, in the order the deletion asked for.

It follows every kind the server has: by the view that controllers share, or by a watch of its own
for the metadata. It keeps ``owner_graph``, and looks at one object at a time: an object whose
owners are all gone is deleted. Foreground deletion removes the object after its dependents. Orphan
deletion first removes the owner reference from the dependents.

Rules: kubernetes v1.36 pkg/controller/garbagecollector/garbagecollector.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from moorage.api.meta import ApiObject, OwnerReference, PartialObject
from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ResourceType, group_version_path
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.errors import ConflictError, MoorageError, NotFoundError
from moorage.client.follow import Follower
from moorage.client.objects import Key
from moorage.client.reflector import Reflector
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client
from moorage.controllers.controller import ControllerInputs
from moorage.controllers.work_queue import WorkQueue
from moorage.workloads.objects import Whole
from moorage_sandbox.controllers.owner_graph import FOREGROUND, ORPHAN, Item, OwnerGraph, item_of

_log = logging.getLogger(__name__)

_WORKERS: Final = 10
_VERBS: Final = frozenset({"delete", "list", "watch"})  # of the kinds that are followed
_DISCOVER_SECONDS: Final = 30.0  # between two discoveries of the server's kinds, as upstream
_SOON_SECONDS: Final = 0.2  # after a definition changed; a guess: the server serves it by then
_GONE_KEPT: Final = 500  # uids known to be gone, as upstream
# Events own no objects, and there are many Events.
_IGNORED: Final = frozenset({"events", "events.events.k8s.io"})

_Uid = tuple[str]


class _Watch(NamedTuple):
    """A watch for the garbage collector alone."""

    reflector: Reflector[PartialObject]
    task: asyncio.Task[Any]


class GarbageCollector:
    """Deletes dependents without living owners.

    Parameters
    ----------
    around
        The surroundings; controllers that use views are made before.

    Attributes
    ----------
    ready
        Set once every kind has been listed.
    """

    def __init__(self, around: ControllerInputs) -> None:
        self._client = around.client
        self._clock = around.clock
        self._streams = around.streams
        self._graph = OwnerGraph()
        self._queue: WorkQueue[_Uid] = WorkQueue()
        self._kinds: dict[tuple[str, str], ResourceType] = {}
        # The objects of each followed kind, and its watch; None for a view that others use, too.
        self._followed: dict[ResourceType, tuple[Mapping[Key, ApiObject], _Watch | None]] = {}
        self._told_by: set[ResourceType] = set()  # views that tell their changes here
        self._gone: dict[str, None] = {}
        self._broken: list[BaseException] = []
        self._tasks = TaskOwner(lambda _name, error: self._broken.append(error))
        self._look = asyncio.Event()
        self.ready = asyncio.Event()
        self._views = around.views
        definitions = around.views.view_of(CUSTOM_RESOURCE_DEFINITIONS, Whole)
        definitions.tell(lambda _old, _new: self._look.set())

    async def run(self) -> None:
        """Collect garbage until cancelled."""
        try:
            await self._discover()
            await self._views.synced()
            for _, watch in list(self._followed.values()):
                if watch is not None:
                    await watch.reflector.synced.wait()
            self.ready.set()
            await aio.together(self._keep_discovering(), *(self._work() for _ in range(_WORKERS)))
        finally:
            self._queue.close()
            await self._tasks.cancel_all()

    # --- following --------------------------------------------------------------------------

    async def _keep_discovering(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_DISCOVER_SECONDS):
                    await self._look.wait()
                await aio.sleep(_SOON_SECONDS)
            except TimeoutError:
                pass
            self._look.clear()
            if self._broken:
                raise self._broken[0]
            await self._discover()

    async def _discover(self) -> None:
        """Follow new kinds, and forget kinds that no longer exist."""
        try:
            resources = await _deletable_kinds(self._client)
        except MoorageError as problem:
            _log.warning("the kinds of the server cannot be told: %s", problem)
            self._look.set()
            return
        self._kinds = {(each.group, each.kind): each for each in resources}
        wanted = {each for each in resources if each.qualified not in _IGNORED}
        for resource in [each for each in self._followed if each not in wanted]:
            objects, watch = self._followed.pop(resource)
            if watch is not None:
                watch.task.cancel()
            for obj in objects.values():
                self._object_gone(obj)
        for resource in resources:
            if resource in wanted and resource not in self._followed:
                self._follow(resource)

    def _follow(self, resource: ResourceType) -> None:
        def put_object(obj: ApiObject) -> None:
            self._add(self._graph.put_object(item_of(resource, obj)))

        def object_changed(old: ApiObject | None, new: ApiObject | None) -> None:
            if new is not None:
                put_object(new)
            elif old is not None:
                self._object_gone(old)

        view = self._views.known(resource)
        if view is None:
            self._watch(resource, put_object)
            return
        for obj in view.objects.values():
            put_object(obj)
        self._followed[resource] = (view.objects, None)
        if resource not in self._told_by:
            self._told_by.add(resource)
            view.tell(object_changed)

    def _watch(self, resource: ResourceType, on_object: Callable[[ApiObject], None]) -> None:
        reflector = Reflector(
            self._client.transport,
            resource,
            PartialObject,
            handler=Follower(on_object, self._object_gone),
            clock=self._clock,
            rng=self._streams.stream(f"controllers/garbage/{resource.qualified}"),
            optional=True,
        )
        task = self._tasks.spawn(reflector.run(), name=f"watch {resource.qualified}")
        self._followed[resource] = (reflector.known_objects, _Watch(reflector, task))

    def _object_gone(self, obj: ApiObject) -> None:
        self._note_gone(obj.metadata.uid)
        self._add(self._graph.drop(obj.metadata.uid))

    def _note_gone(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _GONE_KEPT:
            del self._gone[next(iter(self._gone))]

    def _add(self, uids: list[str]) -> None:
        for uid in uids:
            self._queue.add((uid,))

    # --- working ----------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            key = await self._queue.take_key()
            try:
                await self._look_at(key[0])
            except NotFoundError:
                self._queue.forget_failures(key)
            except MoorageError as problem:
                level = logging.DEBUG if isinstance(problem, ConflictError) else logging.WARNING
                _log.log(level, "collecting %s: %s", key[0], problem)
                self._queue.retry(key)
            else:
                self._queue.forget_failures(key)
            finally:
                self._queue.finish_key(key)

    async def _look_at(self, uid: str) -> None:
        item = self._graph.items.get(uid)
        if item is None:
            return
        if item.lets_dependents_go:
            await self._let_go(item)
        elif item.waits_for_dependents:
            await self._wait_for_dependents(item)
        elif not item.deleting and item.owners:
            await self._judge(item)

    async def _let_go(self, item: Item) -> None:
        for each in self._graph.dependents(item.uid):
            await self._disown(each, [item.uid])
        await self._take_finalizer(item, ORPHAN)

    async def _wait_for_dependents(self, item: Item) -> None:
        dependents = self._graph.dependents(item.uid)
        if not any(each.blocks(item.uid) for each in dependents):
            await self._take_finalizer(item, FOREGROUND)
        self._add([each.uid for each in dependents if not each.deleting])

    async def _judge(self, item: Item) -> None:
        """Delete an object without living owners, or drop its references to deleted owners."""
        solid, dangling, waiting = [], [], []
        for owner in item.owners:
            found = self._graph.items.get(owner.uid)
            if found is None and not await self._is_there(item, owner):
                dangling.append(owner.uid)
            elif found is not None and found.waits_for_dependents and owner.block_owner_deletion:
                waiting.append(owner.uid)
            else:
                solid.append(owner.uid)
        if solid:
            if dangling or waiting:
                await self._disown(item, [*dangling, *waiting])
            return
        live: Any = await self._client.get(item.resource, item.name, namespace=item.namespace)
        meta = live["metadata"]
        owners = {each.get("uid") for each in meta.get("ownerReferences") or []}
        if meta.get("uid") != item.uid or owners != {each.uid for each in item.owners}:
            # The judged object is outdated; the watch queues it again.
            return
        await self._delete(item, foreground=bool(waiting) and self._is_owner(item))

    def _is_owner(self, item: Item) -> bool:
        return any(not each.deleting for each in self._graph.dependents(item.uid))

    async def _is_there(self, item: Item, owner: OwnerReference) -> bool:
        """Ask the server whether an owner that no watch has shown exists.

        Raises
        ------
        MoorageError
            The answer is unknown, because the server has no such kind; that may change.
        """
        if owner.uid in self._gone:
            return False
        group = owner.api_version.rpartition("/")[0]
        resource = self._kinds.get((group, owner.kind))
        if resource is None:
            raise MoorageError(f"owner of {item.name}: no kind {owner.api_version} {owner.kind}")
        namespace = item.namespace if resource.namespaced else ""
        if resource.namespaced and not namespace:
            raise MoorageError(f"owner of {item.name}: a {owner.kind} cannot own cluster's objects")
        try:
            found: Any = await self._client.get(resource, owner.name, namespace=namespace)
        except NotFoundError:
            found = {"metadata": {}}
        if found["metadata"].get("uid") == owner.uid:
            return True
        self._note_gone(owner.uid)
        return False

    # --- writing ----------------------------------------------------------------------------

    async def _delete(self, item: Item, *, foreground: bool) -> None:
        if ORPHAN in item.finalizers:
            policy = "Orphan"
        elif foreground or FOREGROUND in item.finalizers:
            policy = "Foreground"
        else:
            policy = "Background"
        await self._client.delete(
            item.resource,
            item.name,
            namespace=item.namespace,
            uid=item.uid,
            propagation=policy,
        )

    async def _disown(self, item: Item, uids: list[str]) -> None:
        """Remove owners from an object; a deleted object needs no change."""
        try:
            live: Any = await self._client.get(item.resource, item.name, namespace=item.namespace)
            meta = live["metadata"]
            owners = meta.get("ownerReferences") or []
            kept = [each for each in owners if each.get("uid") not in uids]
            if meta.get("uid") == item.uid and kept != owners:
                await self._patch(item, live, {"ownerReferences": kept or None})
        except NotFoundError:
            return

    async def _take_finalizer(self, item: Item, finalizer: str) -> None:
        live: Any = await self._client.get(item.resource, item.name, namespace=item.namespace)
        meta = live["metadata"]
        kept = [each for each in meta.get("finalizers") or [] if each != finalizer]
        if meta.get("uid") == item.uid and kept != (meta.get("finalizers") or []):
            await self._patch(item, live, {"finalizers": kept or None})

    async def _patch(self, item: Item, live: Any, metadata: dict[str, Any]) -> None:
        version = {"resourceVersion": live["metadata"]["resourceVersion"]}
        await self._client.patch(
            item.resource,
            item.name,
            patch_body({"metadata": {**metadata, **version}}),
            namespace=item.namespace,
            content_type=MERGE_PATCH,
        )


async def _deletable_kinds(client: Client) -> list[ResourceType]:
    """Ask a server for its kinds, each in its preferred version.

    Raises
    ------
    MoorageError
        The server refused a call or gave no valid answer.
    """
    groups: Any = await client.read_path("/apis")
    versions = [("", "v1")]
    for group in groups.get("groups") or []:
        preferred = group.get("preferredVersion") or {}
        versions.append((group["name"], preferred.get("version") or "v1"))
    # A server of v1.36 has some 25 groups; asking for them in sequence would delay the start.
    found = await asyncio.gather(*(_kinds_of(client, *each) for each in versions))
    return [each for kinds in found for each in kinds]


async def _kinds_of(client: Client, group: str, version: str) -> list[ResourceType]:
    try:
        listed: Any = await client.read_path(group_version_path(group, version))
    except NotFoundError:
        return []  # The version was removed after the groups were listed.
    return [
        ResourceType(
            group=group,
            version=version,
            kind=each["kind"],
            plural=each["name"],
            singular=each.get("singularName") or each["kind"].lower(),
            namespaced=bool(each.get("namespaced")),
        )
        for each in listed.get("resources") or []
        if "/" not in each["name"] and set(each.get("verbs") or []) >= _VERBS
    ]

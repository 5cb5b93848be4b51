"""Pods of an owner: claimed by its selector, created in growing batches, deleted, waited for.

Shared by the controllers that keep a number of pods whose names do not matter.

Rules: kubernetes v1.36 pkg/controller/controller_ref_manager.go and
pkg/controller/replicaset/replica_set.go (slowStartBatch).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from moorage.api.codec import from_dict
from moorage.api.meta import LabelSelector, ObjectReference
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.api.selectors import NOTHING, Selector, compile_label_selector
from moorage.base.errors import ConflictError, MoorageError, NotFoundError
from moorage.base.ids import name_suffix
from moorage.client.objects import key_of
from moorage.client.requests import Selection, patch_body
from moorage.controllers.controller import Controller
from moorage.controllers.views import View
from moorage.workloads.objects import Json, ViewedPod, Whole, owner_reference
from moorage.workloads.pods import is_active
from moorage_sandbox.controllers.expectations import Expectations, created, deleted

# Of replica sets and stateful sets, of daemon sets, of Jobs.
_POD_COUNTS: Final = ("replicas", "currentNumberScheduled", "active", "succeeded", "failed")
_FIRST_BATCH: Final = 1
_BATCH_MAX: Final = 32  # writes at a time; a guess, upstream doubles without end


class PodControl:
    """Keeps the pods of a controller's objects.

    Parameters
    ----------
    controller
        The controller that gets the keys and emits the Events.
    owners, pods
        Views of the owners and of the pods.
    said
        Texts of the Events about a created and about a deleted pod.
    finalizers
        Finalizers that a pod gets when it is adopted, and loses when it is released.
    """

    def __init__(
        self,
        controller: Controller,
        owners: View[Whole],
        pods: View[ViewedPod],
        *,
        said: tuple[str, str] = ("Created pod: {pod}", "Deleted pod: {pod}"),
        finalizers: Sequence[str] = (),
    ) -> None:
        self._controller = controller
        self._finalizers = list(finalizers)
        self._said = said
        self._owners = owners
        self._pods = pods
        self.expectations = Expectations(controller.clock)
        # Uids of owners that appeared with the numbers of their pods in the status.
        self._arrived: set[str] = set()
        pods.tell(self._pod_changed)
        owners.tell(self._owner_changed)

    # --- following --------------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or old.metadata.controller != new.metadata.controller):
            self._queue_owner(old)
        if new is None:
            assert old is not None
            self._note_gone(old)
            return
        if new.metadata.deletion_timestamp is not None:
            self._note_gone(new)
        if old is None:
            self._note_new(new)
        if new.metadata.controller is not None:
            self._queue_owner(new)
        elif old is None or old.metadata.labels != new.metadata.labels or old.metadata.controller:
            self._queue_takers(new)

    def _owner_changed(self, old: Whole | None, new: Whole | None) -> None:
        if old is None and new is not None and _pods_in_status(new):
            self._arrived.add(new.metadata.uid)
        elif new is None and old is not None:
            self._arrived.discard(old.metadata.uid)

    def _owner_of(self, pod: Pod) -> Whole | None:
        owner = pod.metadata.controller
        if owner is None or owner.kind != self._controller.resource.kind:
            return None
        found = self._owners.objects.get((pod.namespace, owner.name))
        return found if found is not None and found.metadata.uid == owner.uid else None

    def _queue_owner(self, pod: Pod) -> None:
        owner = self._owner_of(pod)
        if owner is not None:
            self._controller.queue.add(key_of(owner))

    def _queue_takers(self, pod: Pod) -> None:
        """Queue the objects that might adopt a pod without a managing owner."""
        if not pod.metadata.labels:
            return
        for key, owner in self._owners.objects.items():
            if key[0] == pod.namespace and selector_of(owner).matches(pod.metadata.labels):
                self._controller.queue.add(key)

    def _note_new(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == self._controller.resource.kind:
            self.expectations.write_shown((pod.namespace, owner.name), created(pod.name))

    def _note_gone(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == self._controller.resource.kind:
            self.expectations.write_shown((pod.namespace, owner.name), deleted(pod.metadata.uid))

    # --- claiming ---------------------------------------------------------------------------

    async def claim(
        self, owner: Whole, *, fits: Callable[[Pod], bool] = lambda _pod: True
    ) -> list[Pod]:
        """Return an owner's pods by name, after adopting matching pods and releasing others.

        Parameters
        ----------
        fits
            A further condition on a pod, besides matching labels.

        Raises
        ------
        MoorageError
            An adoption failed, or the view of pods is behind that of owners; the owner's sync is
            tried again.
        """
        await self._check_view(owner)
        selector = selector_of(owner)
        leaving = owner.metadata.deletion_timestamp is not None
        mine: list[Pod] = []
        for pod in self._pods.owned_by(owner.metadata.uid):
            if selector.matches(pod.metadata.labels) and fits(pod):
                mine.append(pod)
            elif not leaving and pod.metadata.deletion_timestamp is None:
                await self._release(owner, pod)
        if leaving:
            return mine
        for pod in self._pods.free_in(owner.namespace):
            wanted = is_active(pod) and fits(pod)
            if wanted and pod.metadata.labels and selector.matches(pod.metadata.labels):
                await self._adopt(owner, pod)
                mine.append(pod)
        return sorted(mine, key=lambda pod: pod.name)

    async def _check_view(self, owner: Whole) -> None:
        """Check that the view shows the pods of an owner that appeared together with its pods.

        A snapshot brings both, in two watches. An owner whose pods are not shown yet would get
        twice as many.

        Raises
        ------
        ConflictError
            The view does not show a pod that the server has.
        """
        uid = owner.metadata.uid
        if uid not in self._arrived:
            return
        if len(self._pods.owned_by(uid)) < _pods_in_status(owner):
            labels = (owner.spec.get("selector") or {}).get("matchLabels") or {}
            chosen = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
            selection = Selection(namespace=owner.namespace, label_selector=chosen)
            listed: Any = await self._controller.client.list(PODS, selection)
            for item in listed["items"]:
                meta = item["metadata"]
                owners = {each["uid"] for each in meta.get("ownerReferences") or ()}
                if uid in owners and (owner.namespace, meta["name"]) not in self._pods.objects:
                    raise _behind(owner)
        self._arrived.discard(uid)

    async def _adopt(self, owner: Whole, pod: Pod) -> None:
        resource = self._controller.resource
        live: Any = await self._controller.client.get(
            resource, owner.name, namespace=owner.namespace
        )
        metadata = live["metadata"]
        if metadata["uid"] != owner.metadata.uid or metadata.get("deletionTimestamp"):
            raise MoorageError(f"{owner.name} is being deleted and adopts nothing")
        also = {"finalizers": self._finalizers} if self._finalizers else {}
        await self._change_owners(pod, owner_reference(owner, resource), also)

    async def _release(self, owner: Whole, pod: Pod) -> None:
        try:
            gone = {"$deleteFromPrimitiveList/finalizers": self._finalizers}
            change = {"$patch": "delete", "uid": owner.metadata.uid}
            await self._change_owners(pod, change, gone if self._finalizers else {})
        except NotFoundError:
            return

    async def _change_owners(self, pod: Pod, change: Json, also: Json) -> None:
        metadata = {"uid": pod.metadata.uid, "ownerReferences": [change], **also}
        await self._controller.client.patch(
            PODS, pod.name, patch_body({"metadata": metadata}), namespace=pod.namespace
        )

    # --- creating and deleting --------------------------------------------------------------

    async def create_pods(self, owner: Whole, bodies: Sequence[Json]) -> None:
        """Create pods in growing batches; a batch with a failure is the last one.

        A body without a name gets a name that starts with its ``generateName``.

        Raises
        ------
        MoorageError
            The first failure.
        """
        for body in bodies:
            metadata = body["metadata"]
            if not metadata.get("name"):
                prefix = metadata["generateName"][:58]
                metadata["name"] = f"{prefix}{name_suffix(self._controller.rng)}"
        await in_batches([partial(self._create_one, owner, body) for body in bodies])

    async def _create_one(self, owner: Whole, body: Json) -> None:
        key, name = key_of(owner), body["metadata"]["name"]
        self.expectations.expect(key, created(name))
        try:
            await self._controller.client.create(PODS, body, namespace=owner.namespace)
        except MoorageError as problem:
            self.expectations.write_shown(key, created(name))
            if not _owner_leaves(problem):
                text = f"Error creating: {problem}"
                self._controller.emit_event(owner, "FailedCreate", text, kind="Warning")
            raise
        self._emit_event(owner, "SuccessfulCreate", self._said[0], name)

    async def delete_pods(self, owner: Whole, pods: Iterable[Pod]) -> None:
        """Delete pods; a pod that does not exist counts as deleted.

        Raises
        ------
        MoorageError
            The first failure.
        """
        await in_batches([partial(self._delete_one, owner, pod) for pod in pods])

    async def _delete_one(self, owner: Whole, pod: Pod) -> None:
        key, uid = key_of(owner), pod.metadata.uid
        self.expectations.expect(key, deleted(uid))
        try:
            await self._controller.client.delete(PODS, pod.name, namespace=pod.namespace, uid=uid)
        except (NotFoundError, ConflictError):
            self.expectations.write_shown(key, deleted(uid))
        except MoorageError as problem:
            self.expectations.write_shown(key, deleted(uid))
            text = f"Error deleting: {problem}"
            self._controller.emit_event(owner, "FailedDelete", text, kind="Warning")
            raise
        else:
            self._emit_event(owner, "SuccessfulDelete", self._said[1], pod.name)

    def _emit_event(self, owner: Whole, reason: str, said: str, pod: str) -> None:
        related = ObjectReference(api_version="v1", kind="Pod", namespace=owner.namespace, name=pod)
        text = said.format(pod=pod, owner=owner.name)
        self._controller.emit_event(owner, reason, text, related=related)


async def in_batches(works: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Run jobs side by side, in batches that double; a batch with a failure is the last one.

    So a quota that refuses every pod is asked a few times, not a thousand times.

    Raises
    ------
    Exception
        The first failure, after its batch has ended.
    """
    done, size = 0, _FIRST_BATCH
    while done < len(works):
        batch = works[done : done + size]
        results = await asyncio.gather(*(work() for work in batch), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        done += len(batch)
        size = min(size * 2, _BATCH_MAX)


def selector_of(owner: Whole) -> Selector:
    """Return an owner's compiled selector; an unreadable selector selects nothing."""
    try:
        selector = owner.spec["selector"]
        if selector and all(isinstance(value, str) for value in selector.values()):
            # The selector of a replication controller is a plain map of labels.
            selector = {"matchLabels": selector}
        return compile_label_selector(from_dict(LabelSelector, selector))
    except (ValueError, KeyError, TypeError, MoorageError):
        return NOTHING


def _pods_in_status(owner: Whole) -> int:
    """Return how many pods the status of a set or a Job counts."""
    return sum(owner.status.get(field) or 0 for field in _POD_COUNTS)


def _behind(owner: Whole) -> ConflictError:
    text = f"the view does not show all pods of {owner.name} yet"
    return ConflictError(409, "Conflict", text)


def _owner_leaves(problem: MoorageError) -> bool:
    return "being terminated" in str(problem)

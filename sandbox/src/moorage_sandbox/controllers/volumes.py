"""Plays the volume controllers: watches, asks ``volume_steps`` for the next step, and writes.

One loop does all work: a change makes the claims, volumes and pods it concerns due. A write that
came too late (conflict, gone) is dropped, because the watch will show why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any, Final

from moorage.api.codec import from_dict
from moorage.api.meta import ApiObject
from moorage.api.pod import Pod
from moorage.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from moorage.api.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.base import aio
from moorage.base.errors import (
    ApiError,
    ConflictError,
    MoorageError,
    NotFoundError,
)
from moorage.client.objects import Key
from moorage.client.requests import MERGE_PATCH, Selection, patch_body
from moorage.controllers.controller import ControllerInputs
from moorage.workloads.objects import ViewedPod
from moorage.workloads.volume_steps import (
    Create,
    Patch,
    Release,
    Step,
    VolumeIndex,
    VolumeWorld,
    asks_for_more,
    claim_step,
    index_volumes,
    orphaned_claims,
    pod_steps,
    volume_step,
)
from moorage_sandbox.controllers.changed_objects import ChangedObjects
from moorage_sandbox.controllers.claim_users import VolumeClaimUsers, claims_in_use

_log = logging.getLogger(__name__)

DEFAULT_CLASS: Final[dict[str, object]] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": "volumes.moorage.dev",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}
"""Default class for claims without a class; not made if the cluster has classes at the start."""

# Pause after a failed call that may succeed later; a guess.
_RETRY_SECONDS = 1.0


class VolumeControllers:
    """Binds claims, makes volumes for them, and makes and removes claims of ephemeral volumes.

    Every provisioner named by a StorageClass is played, so run this only without a real
    provisioner.

    Parameters
    ----------
    around
        The surroundings.

    Attributes
    ----------
    ready
        Set once everything has been listed and the default class is there.
    """

    def __init__(self, around: ControllerInputs) -> None:
        self._client = around.client
        self._views = views = around.views
        self._wake = asyncio.Event()
        claims = views.view_of(PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim)
        self._claims = ChangedObjects(claims, self._run_again)
        self._volumes = ChangedObjects(
            views.view_of(PERSISTENT_VOLUMES, PersistentVolume), self._run_again
        )
        self._classes = ChangedObjects(
            views.view_of(STORAGE_CLASSES, StorageClass), self._run_again
        )
        pods = views.view_of(PODS, ViewedPod)
        self._users = VolumeClaimUsers(pods)
        self._pods = ChangedObjects(pods, self._run_again)
        self._world = VolumeWorld(
            claims=self._claims.objects,
            volumes=self._volumes.objects,
            classes=self._classes.objects,
            pods=self._pods.objects,
            used=self._users.used,
        )
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Run the controllers until cancelled.

        Raises
        ------
        ApiError
            The server refused the default class (credentials).
        """
        await self._views.synced()
        await self._ensure_default_class()
        self.ready.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            failed = False
            for step in self._steps():
                failed |= not await self._carry_out(step)
            if failed:
                await aio.sleep(_RETRY_SECONDS)
                self._wake.set()

    async def _ensure_default_class(self) -> None:
        if self._classes.objects:
            return
        try:
            await self._client.create(STORAGE_CLASSES, DEFAULT_CLASS)
        except ConflictError:
            _log.info("storage class standard is there already")

    def _run_again(self, _obj: ApiObject) -> None:
        self._wake.set()

    # -- working -------------------------------------------------------------------------------

    def _steps(self) -> list[Step]:
        """Return the steps that are due, at most one for each object."""
        volumes, claims = self._volumes, self._claims
        pods_moved = self._pods.take_dirty()
        claims_moved, volumes_moved = claims.take_dirty(), volumes.take_dirty()
        steps: list[Step] = []
        for key in pods_moved:
            pod = self._pods.objects.get(key)
            if pod is not None:
                steps += pod_steps(pod, self._world)
        if any(key not in self._pods.objects for key in pods_moved):
            steps += orphaned_claims(self._world)
        due_claims, due_volumes = dict.fromkeys(claims_moved), dict.fromkeys(volumes_moved)
        due_claims.update(self._users.take_left())
        if self._classes.take_dirty() or volumes_moved:
            due_claims.update(dict.fromkeys(self._unfinished_claims()))
        due_claims.update(dict.fromkeys(self._claims_of(volumes_moved)))
        if claims_moved:
            due_volumes.update(dict.fromkeys(self._volumes_of(claims_moved)))
        taken: set[tuple[str, Key]] = set()
        # A scan of all volumes for each of thousands of claims would hold the loop for seconds.
        index = index_volumes(volumes.objects.values() if due_claims else ())
        for key in due_claims:
            claim = claims.objects.get(key)
            step = None if claim is None else self._judged(claim, index)
            if step is not None and not _writes_any(step, taken):
                steps.append(step)
        for key in due_volumes:
            volume = volumes.objects.get(key)
            volume_due = None if volume is None else volume_step(volume, self._world)
            if volume_due is not None and not _writes_any(volume_due, taken):
                steps.append(volume_due)
        return steps

    def _judged(self, claim: PersistentVolumeClaim, index: VolumeIndex) -> Step | None:
        try:
            return claim_step(claim, self._world, index)
        except ValueError as problem:
            _log.warning("claim %s/%s is left alone: %s", claim.namespace, claim.name, problem)
            return None

    def _unfinished_claims(self) -> list[Key]:
        return [
            key
            for key, claim in self._claims.objects.items()
            if claim.status.phase != "Bound" or claim.metadata.deletion_timestamp is not None
        ]

    def _claims_of(self, volumes: dict[Key, None]) -> Iterator[Key]:
        """Yield the claims of volumes that moved: a claim that grows waits for its volume."""
        for key in volumes:
            volume = self._volumes.objects.get(key)
            if volume is not None and volume.spec.claim_ref is not None:
                yield volume.spec.claim_ref.namespace, volume.spec.claim_ref.name

    def _volumes_of(self, claims: dict[Key, None]) -> list[Key]:
        return [
            key
            for key, volume in self._volumes.objects.items()
            if volume.spec.claim_ref is not None
            and (volume.spec.claim_ref.namespace, volume.spec.claim_ref.name) in claims
        ]

    async def _carry_out(self, step: Step) -> bool:
        """Carry out a step; False when the step is to be retried."""
        try:
            await self._send_step(step)
        except (ConflictError, NotFoundError) as late:
            _log.debug("too late: %s", late)
            self._look_again()
        except MoorageError as problem:
            if isinstance(problem, ApiError):
                _log.warning("volumes: %s", problem)
            self._look_again()
            return False
        return True

    async def _send_step(self, step: Step) -> None:
        if isinstance(step, Create):
            await self._client.create(step.resource, step.body, namespace=step.namespace)
        elif isinstance(step, Patch):
            if isinstance(step, Release) and await self._in_use(step):
                return
            namespace, name = step.key
            await self._client.patch(
                step.resource,
                name,
                patch_body(step.change),
                namespace=namespace,
                subresource=step.subresource,
                content_type=MERGE_PATCH,
            )
        else:
            namespace, name = step.key
            await self._client.delete(step.resource, name, namespace=namespace)

    async def _in_use(self, step: Release) -> bool:
        """Whether the server knows a pod that uses a claim; the view of pods may be late."""
        if step.resource is not PERSISTENT_VOLUME_CLAIMS:
            return False
        listed = await self._client.list(PODS, Selection(namespace=step.key[0]))
        items: Any = listed["items"]
        return any(step.key in claims_in_use(from_dict(Pod, each)) for each in items)

    def _look_again(self) -> None:
        """Make everything unfinished due again at the next change or the next retry."""
        growing = (key for key, each in self._claims.objects.items() if asks_for_more(each))
        self._claims.dirty.update(dict.fromkeys((*self._unfinished_claims(), *growing)))
        self._pods.dirty.update(dict.fromkeys(self._pods.objects))
        self._volumes.dirty.update(dict.fromkeys(self._volumes.objects))


def _writes_any(step: Step, taken: set[tuple[str, Key]]) -> bool:
    """Whether an earlier step of the round writes the same object; notes it if not.

    So two claims for the same free volume are decided one after the other.
    """
    if isinstance(step, Create):
        return False
    key = (step.resource.plural, step.key)
    if key in taken:
        return True
    taken.add(key)
    return False

"""Revisions of a pod template, kept as ControllerRevisions so that a rollout can be undone.

Shared by stateful and daemon sets; kubectl rollout history and undo read these revisions.

Rules: kubernetes v1.36 pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.resources import CONTROLLER_REVISIONS
from moorage.base.errors import ConflictError, NotFoundError
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.objects import Json, Whole, owner_reference
from moorage.workloads.pods import template_hash, time_ns
from moorage.workloads.revisions import History, Revision


class Revisions:
    """Keeps the revisions of a controller's objects.

    Parameters
    ----------
    controller
        The controller of the objects.
    hash_label
        The label that holds the hash of a revision.
    """

    def __init__(
        self, controller: Controller, around: ControllerInputs, *, hash_label: str
    ) -> None:
        self._controller = controller
        self._hash_label = hash_label
        self._revisions = around.views.view_of(CONTROLLER_REVISIONS, Revision)
        self._revisions.tell(self._index_change)

    def _index_change(self, old: Revision | None, new: Revision | None) -> None:
        for each in (old, new):
            for owner in each.metadata.owner_references if each is not None else ():
                if owner.controller and owner.kind == self._controller.resource.kind:
                    assert each is not None
                    self._controller.queue.add((each.namespace, owner.name))

    async def ensure_newest(self, owner: Whole) -> History:
        """Ensure that the newest revision is that of the object's template; return all revisions.

        Raises
        ------
        MoorageError
            A write failed; it is tried again at the object's next sync.
        """
        every = sorted(self._revisions.owned_by(owner.metadata.uid), key=_age_key)
        data = {"spec": {"template": {**(owner.spec.get("template") or {}), "$patch": "replace"}}}
        equal = [each for each in every if each.data == data]
        number = every[-1].revision + 1 if every else 1
        if equal and equal[-1] is every[-1]:
            return History(every, equal[-1])
        if equal:
            # After an undo the old revision becomes the newest.
            changed = msgspec.structs.replace(equal[-1], revision=number)
            await self._controller.patch_object(
                CONTROLLER_REVISIONS, equal[-1], {"revision": number}
            )
            return History([*(each for each in every if each is not equal[-1]), changed], changed)
        created = await self._create(owner, data, number)
        return History([*every, created], created)

    async def _create(self, owner: Whole, data: Json, number: int) -> Revision:
        collisions = int(owner.status.get("collisionCount") or 0)
        hashed = template_hash(data, collisions)
        labels = dict((owner.spec.get("template") or {}).get("metadata", {}).get("labels") or {})
        body = {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {
                "name": f"{owner.name}-{hashed}",
                "namespace": owner.namespace,
                "labels": {**labels, self._hash_label: hashed},
                "ownerReferences": [owner_reference(owner, self._controller.resource)],
            },
            "data": data,
            "revision": number,
        }
        client = self._controller.client
        name = f"{owner.name}-{hashed}"
        try:
            stored: Any = await client.create(CONTROLLER_REVISIONS, body, namespace=owner.namespace)
        except ConflictError:
            stored = await client.get(CONTROLLER_REVISIONS, name, namespace=owner.namespace)
            if stored.get("data") != data:
                # Another template has this hash: the next attempt uses another name.
                await self._controller.write_status(owner, {"collisionCount": collisions + 1})
                raise
        return msgspec.convert(stored, Revision)

    async def tidy(self, owner: Whole, history: History, live: set[str]) -> None:
        """Delete the oldest revisions beyond the history that is kept, but none in `live`."""
        limit = owner.spec.get("revisionHistoryLimit")
        unused = [each for each in history.every if each.name not in live]
        surplus = len(unused) - (10 if limit is None else int(limit))
        for each in unused[: max(0, surplus)]:
            try:
                await self._controller.client.delete(
                    CONTROLLER_REVISIONS,
                    each.name,
                    namespace=each.namespace,
                    uid=each.metadata.uid,
                )
            except NotFoundError:
                continue


def _age_key(each: Revision) -> tuple[int, int, str]:
    return each.revision, time_ns(each.metadata.creation_timestamp), each.name

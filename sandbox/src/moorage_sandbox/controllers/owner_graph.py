"""The graph of owners and dependents: every object of a cluster by uid. No I/O.

Place in the flow: `moorage_sandbox.controllers.garbage` puts watched objects into the graph, gets
the uids to check, and decides about deletions.

Rules: kubernetes v1.36 pkg/controller/garbagecollector/{graph,graph_builder}.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from moorage.api.meta import ApiObject, OwnerReference
from moorage.api.resources import ResourceType

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class Item(msgspec.Struct, frozen=True):
    """The fields of an object that matter to ownership and deletion."""

    resource: ResourceType
    namespace: str
    name: str
    uid: str
    owners: tuple[OwnerReference, ...]
    finalizers: tuple[str, ...]
    deleting: bool

    @property
    def waits_for_dependents(self) -> bool:
        """Whether the object is in foreground deletion: it goes after its dependents."""
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def lets_dependents_go(self) -> bool:
        """Whether the object is in orphan deletion: its dependents stay."""
        return self.deleting and ORPHAN in self.finalizers

    def blocks(self, uid: str) -> bool:
        """Whether the foreground deletion of an owner waits for this object."""
        return any(each.uid == uid and each.block_owner_deletion for each in self.owners)


def item_of(resource: ResourceType, obj: ApiObject) -> Item:
    """Return the entry of an object in the graph."""
    meta = obj.metadata
    return Item(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        owners=tuple(meta.owner_references),
        finalizers=tuple(meta.finalizers),
        deleting=meta.deletion_timestamp is not None,
    )


class OwnerGraph:
    """All objects by uid, and the dependents of each owner, of absent owners, too."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def dependents(self, uid: str) -> list[Item]:
        """Return the dependents of an object, in the order they were seen."""
        return [self.items[each] for each in self._dependents.get(uid, ())]

    def put_object(self, item: Item) -> list[str]:
        """Add or update an object; return the uids to check."""
        before = self.items.get(item.uid)
        if before is not None:
            self._unlink(before)
        self.items[item.uid] = item
        for owner in item.owners:
            self._dependents.setdefault(owner.uid, {})[item.uid] = None
        return list(dict.fromkeys(self._touched(before, item)))

    def drop(self, uid: str) -> list[str]:
        """Remove a deleted object; return the uids to check."""
        item = self.items.pop(uid, None)
        if item is None:
            return []
        self._unlink(item)
        waiting = [each.uid for each in item.owners if self._waits(each.uid)]
        return [*self._dependents.get(uid, ()), *waiting]

    def _touched(self, before: Item | None, item: Item) -> Iterator[str]:
        owners_changed = before is None or before.owners != item.owners
        if owners_changed:
            if any(self._is_doubtful(each.uid) for each in item.owners):
                yield item.uid
            if before is not None:
                yield from (each.uid for each in before.owners if self._waits(each.uid))
        if item.waits_for_dependents or item.lets_dependents_go:
            yield item.uid

    def _is_doubtful(self, uid: str) -> bool:
        return uid not in self.items or self._waits(uid)

    def _waits(self, uid: str) -> bool:
        item = self.items.get(uid)
        return item is not None and item.waits_for_dependents

    def _unlink(self, item: Item) -> None:
        for owner in item.owners:
            found = self._dependents.get(owner.uid)
            if found is not None:
                found.pop(item.uid, None)
                if not found:
                    del self._dependents[owner.uid]

"""CustomResourceDefinitions at work: a write to a definition changes the served kinds.

Place in the flow: `world` reports every write to a definition. This module puts the definition's
kinds into the catalog and takes them out. It deletes the objects of a definition that is being
deleted, at once and in order, as `namespaces` does. A definition waits for objects with finalizers.
"""

from __future__ import annotations

from moorage.base.clock import rfc3339
from moorage.kinds.cells import is_true
from moorage.kinds.custom.custom_kind import DEFINITIONS, custom_kind
from moorage.kinds.kind import Obj
from moorage.kinds.tree import put_condition, text
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.custom.converter import WebhookConverter
from moorage_sandbox.apiserver.custom.definition import CLEANUP
from moorage_sandbox.apiserver.custom.registration import Registration
from moorage_sandbox.apiserver.verbs.deleting import DeleteOptions, Deleter
from moorage_sandbox.apiserver.webhooks.addresses import HookAddresses
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.rules.validation import rules_of
from moorage_sandbox.storage.record import Record


class Definitions:
    """Serves the kinds of the stored definitions.

    Parameters
    ----------
    world
        Holds the definitions.
    deleter
        Deletes the objects of a definition that is being deleted.
    addresses
        The places where webhooks listen.
    """

    def __init__(self, world: World, deleter: Deleter, addresses: HookAddresses) -> None:
        self._world = world
        self._addresses = addresses
        self._deleter = deleter
        self._served = world.catalog.by_plural("customresourcedefinitions")
        # Definitions whose objects are being deleted: deletions of their objects are reported here,
        # too.
        self._emptying: set[str] = set()
        # Those of them whose objects are being deleted one after another right now.
        self._deleting: set[str] = set()
        # Name of a definition -> version of the last write that changed the schema of its objects.
        self._renewed: dict[str, int] = {}
        self._registration = Registration(world)
        world.on_write(DEFINITIONS, self._apply_change, apart=True)

    def load(self) -> None:
        """Serve the kinds of all stored definitions; called after a store has been restored."""
        for record in self._world.store.shelf(DEFINITIONS).records():
            self._written(self._served, None, record)

    def register(self) -> None:
        """Make the APIServices that a restored store lacks."""
        for record in list(self._world.store.shelf(DEFINITIONS).records()):
            self._registration.follow(None, record.decode())

    def _apply_change(self, served: Served, before: Record | None, after: Record | None) -> None:
        old, new = (None if each is None else each.decode() for each in (before, after))
        self._world.run_in_one_step(lambda: self._registration.follow(old, new))
        self._written(served, before, after)

    def _written(self, served: Served, before: Record | None, after: Record | None) -> None:
        if after is None:
            assert before is not None, "something was there to be removed"
            self._drop(before.name)
            self._emptying.discard(before.name)
            self._renewed.pop(before.name, None)
            return
        definition = after.decode()
        if before is None or _stored_schema(before.decode()) != _stored_schema(definition):
            self._renewed[after.name] = after.version
        self._serve(definition)
        if definition["metadata"].get("deletionTimestamp") and after.name not in self._emptying:
            self._empty(definition)

    def _serve(self, definition: Obj) -> None:
        """Put the definition's kinds into the catalog, if it is established."""
        name = definition["metadata"]["name"]
        if not is_true(definition, "Established"):
            self._drop(name)
            return
        versions = definition["spec"]["versions"]
        stored = next(
            custom_kind(definition, each, rules_of) for each in versions if each.get("storage")
        )
        renewed = self._renewed[name]
        converter = None
        if text(definition, "spec", "conversion", "strategy") == "Webhook":
            converter = WebhookConverter(definition, self._addresses)
        shelf = Served(stored, stored, custom=True, renewed=renewed)
        served = []
        for version in versions:
            if version.get("served"):
                kind = (
                    stored if version.get("storage") else custom_kind(definition, version, rules_of)
                )
                served.append(
                    Served(kind, stored, custom=True, renewed=renewed, converter=converter)
                )
        # Built here, which may take long; used where the catalog is read.
        self._world.run_in_one_step(lambda: self._world.catalog.put_custom(name, served, shelf))

    def _drop(self, name: str) -> None:
        self._world.run_in_one_step(lambda: self._world.catalog.drop_custom(name))

    def _empty(self, definition: Obj) -> None:
        """Delete all objects of a definition, then the definition when no object is left."""
        name = definition["metadata"]["name"]
        shelf = self._world.catalog.custom_shelf(name)
        self._emptying.add(name)
        if shelf is not None:
            self._world.on_write(name, lambda *told: self._settle(name, told[2]))
            records = self._world.store.shelf(name).listed()
            # One report at the end: each writes the definition, which may be large.
            self._deleting.add(name)
            try:
                self._deleter.delete_all(shelf, records, DeleteOptions())
            finally:
                self._deleting.discard(name)
        self._world.one_by_one(
            lambda: self._world.run_in_one_step(lambda: self._settle(name, None))
        )

    def _settle(self, name: str, written: Record | None) -> None:
        """Remove a definition without objects; until then, write the reason into its conditions."""
        if name in self._deleting:
            return
        record = self._world.store.shelf(DEFINITIONS).get(("", name))
        if written is not None or record is None or name not in self._emptying:
            return
        definition = record.decode()
        left = len(self._world.store.shelf(name))
        if left:
            self._tell_terminating(definition, left)
            return
        meta = definition["metadata"]
        meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != CLEANUP]
        if meta["finalizers"]:
            self._world.store_form(self._served, definition)
        else:
            del meta["finalizers"]
            self._world.remove(self._served, record.key, definition)

    def _tell_terminating(self, definition: Obj, left: int) -> None:
        condition = {
            "message": f"could not remove all objects: {left} left, waiting for finalizers",
            "reason": "InstanceDeletionInProgress",
            "status": "True",
            "type": "Terminating",
        }
        put_condition(definition["status"], condition, rfc3339(self._world.clock.now_ns()))
        self._world.store_form(self._served, definition)


def _stored_schema(definition: Obj) -> object:
    """Return the schema of the version that is stored."""
    return next(each.get("schema") for each in definition["spec"]["versions"] if each["storage"])

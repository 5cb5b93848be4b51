"""The webhooks of the stored configurations, in the order in which they are called.

Place in the flow: `admission` reads them for each write. Mirrors kubernetes v1.36 apiserver
pkg/admission/configuration: configurations by name, and webhooks as they are listed.
"""

from __future__ import annotations

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.kind import Obj
from moorage.kinds.tree import Json, child, objects, text
from moorage.policies.expressions import Policy, read_policy
from moorage_sandbox.apiserver.world import World


class Hook(msgspec.Struct, frozen=True):
    """One webhook of a configuration.

    Parameters
    ----------
    index
        The place among all webhooks of its kind.
    configuration
        Name of the configuration.
    fields
        The webhook as it is stored.
    conditions
        The match conditions, and the failure policy.
    """

    index: int
    configuration: str
    fields: Obj
    conditions: Policy

    @property
    def name(self) -> str:
        """Name of the webhook."""
        return text(self.fields, "name")

    @property
    def identity(self) -> str:
        """The configuration and the webhook, as one text."""
        return f"{self.configuration}/{self.name}"

    @property
    def fails_open(self) -> bool:
        """Whether a write goes on where the webhook gives no answer."""
        return text(self.fields, "failurePolicy") == "Ignore"

    @property
    def client(self) -> Json:
        """The fields that say how the webhook is called."""
        return child(self.fields, "clientConfig")


class StoredHooks:
    """The stored webhooks of one kind of configuration.

    Parameters
    ----------
    world
        Holds the configurations.
    resource
        Their kind.

    Attributes
    ----------
    shelf
        The configurations: every write looks first whether there are any.
    """

    def __init__(self, world: World, resource: ResourceType) -> None:
        self.shelf = world.store.shelf(resource.qualified)
        self._read: tuple[int, tuple[Hook, ...]] = (-1, ())

    def hooks(self) -> tuple[Hook, ...]:
        """Return all webhooks, in the order in which they are called."""
        version = self.shelf.changed_version
        read = self._read
        if read[0] != version:
            self._read = read = (version, self._read_hooks())
        return read[1]

    def _read_hooks(self) -> tuple[Hook, ...]:
        pairs = [
            (record.name, fields)
            for record in self.shelf.records()
            for fields in objects(record.decode(), "webhooks")
        ]
        return tuple(
            Hook(index, configuration, fields, _conditions(fields))
            for index, (configuration, fields) in enumerate(pairs)
        )


def _conditions(fields: Json) -> Policy:
    names = ("failurePolicy", "matchConditions")
    return read_policy({name: fields[name] for name in names if name in fields})

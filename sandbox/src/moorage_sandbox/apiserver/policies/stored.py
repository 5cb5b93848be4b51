"""The policies of one kind in the store, and the writes that they are about.

Place in the flow: `denying` and `mutating` look here whether there are policies at all, for every
write. Mirrors kubernetes v1.36 apiserver pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from moorage.api.resources import ResourceType
from moorage.cel.authorizer import Authorize
from moorage.cel.runtime import is_installed
from moorage.kinds.kind import Obj
from moorage.kinds.tree import Json, text
from moorage.policies.bound import GROUP, BoundPolicies, Chosen
from moorage.policies.matching import Write
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.world import World


class StoredPolicies(BoundPolicies):
    """The stored policies of one kind, and their bindings.

    Parameters
    ----------
    world
        Holds them, and their parameters.
    policies, bindings
        The plurals of the two kinds.
    authorize
        Decides about the rights of callers.

    Attributes
    ----------
    binding_shelf
        The bindings: policies without a binding do nothing, so every write looks here first.
    """

    def __init__(self, world: World, policies: str, bindings: str, *, authorize: Authorize) -> None:
        super().__init__(world, policies, bindings, authorize=authorize)
        self._world = world
        self.binding_shelf = world.store.shelf(f"{bindings}.{GROUP}")

    def write_to_match(
        self, served: Served, new: Obj | None, old: Obj | None, subresource: str
    ) -> Write | None:
        """Return a write as policies see it; None for a write that no policy is about.

        Parameters
        ----------
        served
            The resource as it is called.
        new, old
            The object in the ruled form, None when it is deleted; and the object before, None when
            it is new.
        subresource
            ``status``, or empty.
        """
        if not self.are_about(served):
            return None
        return write_of(self._world, served, (new, old), subresource)

    def are_about(self, served: Served) -> bool:
        """Whether a policy may be about writes of a resource."""
        # Otherwise a policy could keep its own removal from happening.
        is_policy = served.kind.resource.group == GROUP
        return bool(self.binding_shelf) and not is_policy and is_installed()

    def params_of(self, kind: Json, namespace: str, chosen: Chosen) -> list[Obj] | None:
        """Return the chosen stored objects of a kind of parameters."""
        served = self._world.catalog.by_kind(kind.get("apiVersion"), kind.get("kind"))
        if served is None:
            return None
        where = namespace if served.kind.resource.namespaced else ""
        return [
            served.served_form(record)
            for record in self._world.store.shelf(served.shelf).records(where)
            if chosen(record.name, record.labels)
        ]


def write_of(
    world: World, served: Served, objects: tuple[Obj | None, Obj | None], subresource: str
) -> Write:
    """Return a write as policies and webhooks see it; ``objects`` are (new, old), both ruled."""
    new, old = objects
    resource = served.kind.resource
    namespace = text(new or old or {}, "metadata", "namespace")
    return Write(
        operation="CREATE" if old is None else "DELETE" if new is None else "UPDATE",
        resource=resource,
        versions=served_versions(world, resource),
        subresource=subresource,
        new=None if new is None else served.served_from_ruled(new),
        old=None if old is None else served.served_from_ruled(old),
        namespace=world.lookup("namespaces", None, namespace) if namespace else None,
    )


def served_versions(world: World, resource: ResourceType) -> frozenset[str]:
    """Return the versions in which a resource is served."""
    return frozenset(
        kind.resource.version
        for kind in world.catalog.kinds
        if (kind.resource.group, kind.resource.plural) == (resource.group, resource.plural)
    )

"""Namespaces: nothing is created outside one, and a deleted one takes its contents along.

Upstream, a controller empties a terminating namespace; here the server does, at once and in
order, so that a cluster without controllers still gets rid of its namespaces. Pods on nodes end
by their grace period first, and the namespace waits for them.
"""

from __future__ import annotations

from moorage.api.resources import ResourceType
from moorage.apiserver.deleting import NAMESPACES, DeleteOptions, Deleter
from moorage.apiserver.routes import Target
from moorage.apiserver.status import StatusError, forbidden, not_found
from moorage.apiserver.views import Served
from moorage.apiserver.world import World

# As the controller upstream deletes, so that jobs do not wait for a collector of garbage.
_BACKGROUND = DeleteOptions(propagation_policy="Background")

INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")


class Namespaces:
    """Guards and empties namespaces.

    Parameters
    ----------
    world
        Where they are.
    deleter
        Deletes what is in them; tells this object what has gone.
    """

    def __init__(self, world: World, deleter: Deleter) -> None:
        self._world = world
        self._deleter = deleter
        self._served = world.catalog.by_plural(NAMESPACES)
        self._terminating: set[str] = set()
        deleter.on_gone = self.settle
        deleter.on_terminating = self._empty

    def check_open(self, namespace: str, resource: ResourceType, name: str) -> None:
        """Refuse to create in a namespace that is not there or is on its way out.

        Raises
        ------
        StatusError
            404 or 403.
        """
        record = self._world.store.shelf(NAMESPACES).get(("", namespace))
        if record is None:
            raise not_found(self._served.kind.resource, namespace)
        if namespace in self._terminating:
            text = f"namespace {namespace} is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": text,
                "field": "metadata.namespace",
            }
            raise forbidden(
                resource,
                name,
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated",
                causes=[cause],
            )

    def _empty(self, namespace: str) -> None:
        """Delete all there is in a namespace, then the namespace when nothing is left."""
        self._terminating.add(namespace)
        for served in self._namespaced():
            for record in list(self._world.store.shelf(served.shelf).records(namespace)):
                target = Target(served=served, namespace=namespace, name=record.name)
                try:
                    self._deleter.delete(target, _BACKGROUND)
                except StatusError as error:
                    # Deleting one may have removed another; everything else is a fault.
                    if error.code != 404:
                        raise
        self.settle(namespace)

    def settle(self, namespace: str) -> None:
        """Remove a terminating namespace if nothing is in it and nothing holds it any more."""
        if namespace not in self._terminating:
            return
        record = self._world.store.shelf(NAMESPACES).get(("", namespace))
        assert record is not None, "a terminating namespace leaves only here"
        if record.decode()["metadata"].get("finalizers"):
            return
        shelves = [self._world.store.shelf(served.shelf) for served in self._namespaced()]
        if any(next(shelf.records(namespace), None) for shelf in shelves):
            return
        self._terminating.discard(namespace)
        self._world.remove(self._served, ("", namespace))

    def _namespaced(self) -> list[Served]:
        return [each for each in self._world.catalog.shelves() if each.kind.resource.namespaced]

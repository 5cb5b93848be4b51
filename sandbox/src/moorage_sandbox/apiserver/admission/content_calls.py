"""Deletes the objects of a namespace by calls, as the namespace controller of Kubernetes does.

Place in the flow: `namespaces` empties a namespace this way while webhooks or policies review
deletes. They are asked about each object, and may refuse.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context
from http import HTTPStatus
from typing import Any, Final

import msgspec

from moorage.api.resources import ResourceType, group_version_path
from moorage.base.aio import TaskOwner
from moorage.kinds.users import User
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.rbac.impersonation import account_groups
from moorage_sandbox.apiserver.wire.negotiate import JSON
from moorage_sandbox.apiserver.wire.requests import Reply, Request
from moorage_sandbox.apiserver.world import World

_NAME: Final = "system:serviceaccount:kube-system:namespace-controller"
_CONTROLLER: Final = User(_NAME, account_groups(_NAME))
# With the propagation policy of upstream's controller.
_OPTIONS: Final = msgspec.json.encode(
    {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
)


class ContentCalls:
    """Calls that delete the objects of namespaces.

    Parameters
    ----------
    world
        Holds the objects.
    are_reviewed
        Whether webhooks or policies are asked about deletes now.
    handle
        Answers a call.
    """

    def __init__(
        self,
        world: World,
        are_reviewed: Callable[[], bool],
        handle: Callable[[Request], Awaitable[Reply]],
    ) -> None:
        self._world = world
        self.are_reviewed = are_reviewed
        self._handle = handle
        self._tasks = TaskOwner()

    def spawn(self, work: Callable[[], Any]) -> None:
        """Do work that makes calls, in the loop; it knows nothing of the call that is answered."""

        def start() -> None:
            Context().run(self._tasks.spawn, work(), name="delete the objects of a namespace")

        self._world.store.at_home(start)

    async def delete_objects(self, served: Served, namespace: str) -> list[str]:
        """Delete all objects of a resource in a namespace; return why some could not be deleted."""
        records = list(self._world.store.shelf(served.shelf).records(namespace))
        if not records:
            return []
        called = self._called(served)
        if called is None:
            return [f"no version of {served.shelf} is served"]
        kind = called.kind
        together = "deletecollection" in kind.verbs
        failures = []
        for name in [""] if together else [record.name for record in records]:
            request = Request(
                method="DELETE",
                path=_path(kind.resource, namespace, name),
                headers={"content-type": JSON},
                body=_OPTIONS,
                user=_CONTROLLER,
            )
            failures.append(_failure(await self._handle(request)))
        return list(filter(None, failures))

    def _called(self, served: Served) -> Served | None:
        """Return the resource in a served version; None where there is no such version."""
        catalog, own = self._world.catalog, served.kind.resource
        for each in (own, *catalog.equivalents(served)):
            found = catalog.get(each.api_version, each.plural)
            if found is not None and found.shelf == served.shelf:
                return found
        return None


def _path(resource: ResourceType, namespace: str, name: str) -> str:
    root = group_version_path(resource.group, resource.version)
    collection = f"{root}/namespaces/{namespace}/{resource.plural}"
    return f"{collection}/{name}" if name else collection


def _failure(reply: Reply) -> str:
    """Return why a call failed; empty where it did not, or where the object has gone."""
    if reply.status < HTTPStatus.BAD_REQUEST or reply.status == HTTPStatus.NOT_FOUND:
        return ""
    assert isinstance(reply.body, bytes), "a refusal is no stream"
    return str(msgspec.json.decode(reply.body)["message"])

"""From a path to its target: a resource, perhaps an object, perhaps a subresource.

This module knows only the shape of paths; `views.Catalog` knows the existing resources.
"""

from __future__ import annotations

import msgspec

from moorage.kinds.status import StatusError, unknown_path
from moorage_sandbox.apiserver.rbac.attributes import OF_NAMESPACES
from moorage_sandbox.apiserver.views import Catalog, Served


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a resource path.

    Parameters
    ----------
    served
        The resource.
    namespace
        Empty for kinds without namespaces, and for all namespaces of a namespaced kind.
    name
        Empty for the collection.
    subresource
        Empty for the object itself.
    """

    served: Served
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Routes:
    """Resolves the paths of calls; a call asks for its path several times.

    Parameters
    ----------
    catalog
        Served kinds.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        # (path, generation of the catalog, target) of the last question, replaced as a whole:
        # the worker thread asks, too.
        self._last: tuple[str, int, Target] | None = None

    def find(self, path: str) -> Target | None:
        """Return the target of a path; None where the path addresses no served resource."""
        last, generation = self._last, self._catalog.generation
        if last is not None and last[0] == path and last[1] == generation:
            return last[2]
        try:
            target = resource_target(path, self._catalog)
        except StatusError:
            return None
        self._last = (path, generation, target)
        return target


def resource_target(path: str, catalog: Catalog) -> Target:
    """Resolve a path under ``/api/v1/`` or ``/apis/GROUP/VERSION/``.

    Raises
    ------
    StatusError
        404: the path does not address a served resource.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        api_version, rest = parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        api_version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        raise unknown_path()
    if "" in rest:
        raise unknown_path()
    # /namespaces/NS/RESOURCE...; a namespace's own subresources are not resources.
    if rest[0] == "namespaces" and len(rest) >= 3 and not _is_own(rest):
        served = catalog.find(api_version, rest[2])
        if not served.kind.resource.namespaced:
            raise unknown_path()
        return _target(served, rest[1], rest[3:])
    served = catalog.find(api_version, rest[0])
    if served.kind.resource.namespaced and len(rest) > 1:
        raise unknown_path()
    return _target(served, "", rest[1:])


def _is_own(rest: list[str]) -> bool:
    # In every group: a resource of this name within a namespace would get the rights of another
    # one.
    return len(rest) == 3 and rest[2] in OF_NAMESPACES


def _target(served: Served, namespace: str, rest: list[str]) -> Target:
    if len(rest) > 2:
        raise unknown_path()
    name = rest[0] if rest else ""
    subresource = rest[1] if len(rest) > 1 else ""
    if subresource and subresource not in served.kind.subresources:
        raise unknown_path()
    return Target(served=served, namespace=namespace, name=name, subresource=subresource)

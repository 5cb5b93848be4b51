"""What tells clients what there is: versions, groups, resources, OpenAPI.

Answers are built once and kept as bytes. Aggregated discovery is not served: a client that asks
for it lists the plain form as well, gets that, and asks group by group.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.apiserver.kind import Kind
from moorage.apiserver.openapi import GIT_VERSION, openapi_v2, openapi_v3, openapi_v3_index
from moorage.apiserver.status import StatusError
from moorage.apiserver.views import Catalog

_OBJECT_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Discovery:
    """The documents about the server itself, by path.

    Parameters
    ----------
    catalog
        What is served.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._kept: dict[str, bytes] = {}
        self._makers: dict[str, Callable[[], Any]] = {
            "/version": _version,
            "/api": lambda: {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [],
            },
            "/apis": self._groups,
            "/openapi/v2": lambda: openapi_v2(catalog.kinds),
            "/openapi/v3": lambda: openapi_v3_index(catalog.kinds),
        }
        for api_version in catalog.api_versions():
            prefix = "/apis/" if "/" in api_version else "/api/"
            self._makers[prefix + api_version] = self._resources_maker(api_version)
            path = f"/openapi/v3{prefix}{api_version}"
            self._makers[path] = self._openapi_maker(api_version)
            group = api_version.partition("/")[0]
            if "/" in api_version:
                self._makers[f"/apis/{group}"] = self._group_maker(group)
        self._makers["/"] = lambda: {"paths": sorted(path for path in self._makers if path != "/")}

    def document(self, path: str) -> bytes | None:
        """Return the document at a path, None when the path is not one of discovery's."""
        path = path.rstrip("/") or "/"
        if path not in self._makers:
            return None
        if path not in self._kept:
            self._kept[path] = msgspec.json.encode(self._makers[path]()) + b"\n"
        return self._kept[path]

    def _groups(self) -> dict[str, Any]:
        names = {v.partition("/")[0] for v in self._catalog.api_versions() if "/" in v}
        groups = [self._group(name) for name in sorted(names)]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, name: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": api_version, "version": api_version.partition("/")[2]}
            for api_version in self._catalog.api_versions()
            if api_version.startswith(f"{name}/")
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _group_maker(self, name: str) -> Callable[[], Any]:
        return lambda: {"kind": "APIGroup", "apiVersion": "v1"} | self._group(name)

    def _resources_maker(self, api_version: str) -> Callable[[], Any]:
        def make() -> Any:
            resources = []
            for kind in self._kinds(api_version):
                resources += _resource_entries(kind)
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": api_version,
                "resources": resources,
            }

        return make

    def _openapi_maker(self, api_version: str) -> Callable[[], Any]:
        return lambda: openapi_v3(self._catalog.kinds, api_version)

    def _kinds(self, api_version: str) -> list[Kind]:
        found = [k for k in self._catalog.kinds if k.resource.api_version == api_version]
        return sorted(found, key=lambda kind: kind.resource.plural)


def _resource_entries(kind: Kind) -> list[dict[str, Any]]:
    resource = kind.resource
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(_OBJECT_VERBS),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    entries = [entry]
    for name in sorted(kind.subresources):
        sub = {"name": f"{resource.plural}/{name}", "singularName": ""}
        sub_kind, verbs = resource.kind, ["get", "patch", "update"]
        if name == "binding":
            sub_kind, verbs = "Binding", ["create"]
        elif name == "eviction":
            # kubectl drain looks for exactly this before it evicts.
            sub |= {"group": "policy", "version": "v1"}
            sub_kind, verbs = "Eviction", ["create"]
        entries.append(sub | {"namespaced": resource.namespaced, "kind": sub_kind, "verbs": verbs})
    return entries


def _version() -> dict[str, str]:
    major, minor = GIT_VERSION.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})


def health(path: str) -> bytes | None:
    """Return the answer of a health path, None for other paths.

    Raises
    ------
    StatusError
        404: an unknown check below a health path.
    """
    head, _, check = path.strip("/").partition("/")
    if f"/{head}" not in HEALTH_PATHS:
        return None
    if check not in {"", "ping"}:
        raise StatusError(404, "NotFound", f"there is no health check named {check}", details={})
    return b"ok"

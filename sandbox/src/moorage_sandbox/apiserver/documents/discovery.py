"""Discovery documents for clients: versions, groups, resources, OpenAPI.

Documents are built once and kept as bytes, until a definition of custom resources changes the
served kinds. Of the OpenAPI documents only the documents of its group are built again.
"""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.built_in import fact_of, subresource_body, version_rank
from moorage.kinds.served import ServedKind
from moorage_sandbox.apiserver.catalog import Catalog
from moorage_sandbox.apiserver.documents.openapi import (
    encoded_v3,
    openapi_v2,
    openapi_v3_index,
)
from moorage_sandbox.apiserver.documents.openapi_protobuf import in_protobuf
from moorage_sandbox.apiserver.documents.tagged_documents import OPENAPI_V2, OPENAPI_V3, Document
from moorage_sandbox.apiserver.wire.negotiate import (
    AGGREGATED,
    JSON,
    OPENAPI_PROTOBUF,
    accepts_aggregated,
    accepts_openapi_protobuf,
)

# `kubelet.proxies` answers these calls, outside of the kinds.
_PROXY = "proxy"


class Discovery:
    """The documents about the server itself, by path.

    Parameters
    ----------
    catalog
        The served kinds.
    git_version
        The version that is served.
    served
        Kinds that are sent and answered, but never stored.
    computed
        Types that are only read and never stored; no OpenAPI document describes them.
    """

    def __init__(
        self,
        catalog: Catalog,
        git_version: str,
        served: Sequence[ServedKind] = (),
        computed: Sequence[ResourceType] = (),
    ) -> None:
        self._catalog = catalog
        self._git_version = git_version
        self._served = tuple(served)
        self._computed = tuple(computed)
        self._documents: dict[str, bytes] = {}
        # API version -> its kinds, and their OpenAPI document.
        self._openapi: dict[str, tuple[list[ServedKind], bytes]] = {}
        self._generation = -1
        self._makers: dict[str, Callable[[], Any]] = {}

    def _refresh(self) -> None:
        """Build the documents again if the served kinds have changed."""
        catalog = self._catalog
        if self._generation == catalog.generation:
            return
        self._generation = catalog.generation
        self._documents.clear()
        self._makers = {
            "/version": partial(_version, self._git_version),
            "/api": lambda: {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [],
            },
            "/apis": self._groups,
            OPENAPI_V2: lambda: openapi_v2(self._all_kinds(), self._git_version),
            "/openapi/v3": lambda: openapi_v3_index(self._all_kinds(), self._openapi_v3),
        }
        for api_version in self._api_versions():
            prefix = "/apis/" if "/" in api_version else "/api/"
            self._makers[prefix + api_version] = partial(self._resources, api_version)
            path = f"/openapi/v3{prefix}{api_version}"
            self._makers[path] = partial(self._openapi_v3, api_version)
            group = api_version.partition("/")[0]
            if "/" in api_version:
                self._makers[f"/apis/{group}"] = partial(self._one_group, group)
        self._makers["/"] = lambda: {"paths": sorted(path for path in self._makers if path != "/")}

    def _api_versions(self) -> list[str]:
        more = (*(each.resource for each in self._served), *self._computed)
        versions = {*self._catalog.api_versions(), *(each.api_version for each in more)}
        return sorted(versions, key=version_rank)

    def document(self, path: str, accept: str = "") -> Document | None:
        """Return the document at a path; None when the path is not a path of discovery."""
        path = path.rstrip("/") or "/"
        self._refresh()
        if path not in self._makers:
            return None
        if path in ("/api", "/apis") and accepts_aggregated(accept):
            aggregated = partial(self._aggregated, path)
            return Document(self._keep_document(f"{path} aggregated", aggregated), AGGREGATED)
        body = self._keep_document(path, self._makers[path])
        version = 2 if path == OPENAPI_V2 else 3 if path.startswith(OPENAPI_V3) else 0
        if version and accepts_openapi_protobuf(accept, version):
            form = self._keep_document(f"{path} protobuf", partial(in_protobuf, body, version))
            return Document(form, OPENAPI_PROTOBUF[version], tagged=body)
        return Document(body, JSON)

    def _keep_document(self, path: str, make: Callable[[], Any]) -> bytes:
        if path not in self._documents:
            made = make()
            self._documents[path] = (
                made if isinstance(made, bytes) else msgspec.json.encode(made) + b"\n"
            )
        return self._documents[path]

    def _aggregated(self, path: str) -> dict[str, Any]:
        """Build the document of all groups below a path (aggregated discovery)."""
        core = path == "/api"
        versions: dict[str, list[str]] = {}
        for api_version in self._api_versions():
            group, _, version = api_version.rpartition("/")
            if core == (not group):
                versions.setdefault(group, []).append(version)
        items = []
        for group, listed in versions.items():
            prefix = f"{group}/" if group else ""
            group_versions = [
                {
                    "version": version,
                    "resources": [
                        _aggregated_entry(resource, entries)
                        for resource, entries in self._entries(prefix + version)
                    ],
                    "freshness": "Current",
                }
                for version in listed
            ]
            meta: dict[str, Any] = {"creationTimestamp": None}
            if group:
                meta["name"] = group
            items.append({"metadata": meta, "versions": group_versions})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    def _groups(self) -> dict[str, Any]:
        names = {v.partition("/")[0] for v in self._api_versions() if "/" in v}
        groups = [self._group(name) for name in sorted(names)]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, name: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": api_version, "version": api_version.partition("/")[2]}
            for api_version in self._api_versions()
            if api_version.startswith(f"{name}/")
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _one_group(self, name: str) -> dict[str, Any]:
        return {"kind": "APIGroup", "apiVersion": "v1"} | self._group(name)

    def _resources(self, api_version: str) -> dict[str, Any]:
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": api_version,
            "resources": [entry for _, entries in self._entries(api_version) for entry in entries],
        }

    def _openapi_v3(self, api_version: str) -> bytes:
        kinds = self._kinds(api_version)
        kept = self._openapi.get(api_version)
        if kept is None or [id(kind) for kind in kept[0]] != [id(kind) for kind in kinds]:
            document = encoded_v3(kinds, api_version, self._git_version)
            kept = self._openapi[api_version] = (kinds, document)
        return kept[1]

    def _entries(self, api_version: str) -> list[tuple[ResourceType, list[dict[str, Any]]]]:
        """Return every type of an API version with its own entry and its subresource entries."""
        computed = [
            (each, [_resource_entry(each, ("get", "list"))])
            for each in self._computed
            if each.api_version == api_version
        ]
        found = [(kind.resource, self._own_entries(kind)) for kind in self._kinds(api_version)]
        return [*found, *computed]

    def _own_entries(self, kind: ServedKind) -> list[dict[str, Any]]:
        first, *subresources = _resource_entries(kind)
        served = self._catalog.get(kind.resource.api_version, kind.resource.plural)
        if served is not None:
            first["storageVersionHash"] = _hash_of_stored(served.stored_kind.resource)
        return [first, *subresources]

    def _kinds(self, api_version: str) -> list[ServedKind]:
        found = [k for k in self._all_kinds() if k.resource.api_version == api_version]
        return sorted(found, key=lambda kind: kind.resource.plural)

    def _all_kinds(self) -> tuple[ServedKind, ...]:
        return (*self._catalog.kinds, *self._served)


@lru_cache(maxsize=1024)
def _hash_of_stored(resource: ResourceType) -> str:
    """Return the hash of a stored version, as a real API server computes it.

    Notes
    -----
    kubernetes v1.36 apiserver pkg/endpoints/discovery/storageversionhash.go.
    """
    stored = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _resource_entry(resource: ResourceType, verbs: Iterable[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": sorted(verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _resource_entries(kind: ServedKind) -> list[dict[str, Any]]:
    names = {*kind.subresources, *([_PROXY] if fact_of(kind.resource, _PROXY) else ())}
    return [
        _resource_entry(kind.resource, kind.verbs),
        *(_subresource_entry(kind.resource, name) for name in sorted(names)),
    ]


def _subresource_entry(resource: ResourceType, name: str) -> dict[str, Any]:
    body, verbs = subresource_body(resource, name)
    entry: dict[str, Any] = {"name": f"{resource.plural}/{name}", "singularName": ""}
    if (body.group, body.version) != (resource.group, resource.version):
        # kubectl drain looks for exactly this entry before it evicts.
        entry |= {"group": body.group, "version": body.version}
    return entry | {
        "namespaced": resource.namespaced,
        "kind": body.kind,
        "verbs": sorted(verbs),
    }


def _aggregated_entry(resource: ResourceType, entries: list[dict[str, Any]]) -> dict[str, Any]:
    first, *subresources = entries
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _response_kind(first, resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": first["verbs"],
    }
    for key in ("shortNames", "categories"):
        if key in first:
            entry[key] = first[key]
    if subresources:
        entry["subresources"] = [
            {
                "subresource": each["name"].partition("/")[2],
                "responseKind": _response_kind(each, resource),
                "verbs": each["verbs"],
            }
            for each in subresources
        ]
    return entry


def _response_kind(entry: dict[str, Any], resource: ResourceType) -> dict[str, str]:
    return {
        "group": entry.get("group", resource.group),
        "version": entry.get("version", resource.version),
        "kind": entry["kind"],
    }


def _version(git_version: str) -> dict[str, str]:
    major, minor = git_version.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }

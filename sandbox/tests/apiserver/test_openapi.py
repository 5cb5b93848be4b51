"""Scope: the OpenAPI documents hold together and say what kubectl looks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage_sandbox.apiserver.documents.openapi import (
    encoded_v3,
    openapi_v2,
    openapi_v3,
    openapi_v3_index,
)
from moorage_sandbox.apiserver.served_kinds import served_kinds

KINDS = served_kinds()
VERSION = "v1.36.0"
GROUP_VERSIONS = sorted({kind.resource.api_version for kind in KINDS})
POD = "io.k8s.api.core.v1.Pod"


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def test_every_reference_of_version_2_leads_somewhere():
    document = openapi_v2(KINDS, VERSION)
    found = {ref.removeprefix("#/definitions/") for ref in references(document)}
    assert found - set(document["definitions"]) == set()


@pytest.mark.parametrize("group_version", GROUP_VERSIONS)
def test_every_reference_of_version_3_leads_somewhere(group_version):
    document = openapi_v3(KINDS, group_version, VERSION)
    found = {ref.removeprefix("#/components/schemas/") for ref in references(document)}
    assert found - set(document["components"]["schemas"]) == set()


def test_the_index_names_every_group_and_version():
    paths = openapi_v3_index(KINDS, lambda each: encoded_v3(KINDS, each, VERSION))["paths"]
    assert sorted(paths) == sorted(
        f"apis/{each}" if "/" in each else f"api/{each}" for each in GROUP_VERSIONS
    )
    for path, entry in paths.items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")
        assert openapi_v3(KINDS, path, VERSION)["paths"]


def test_an_unknown_group_has_no_document():
    with pytest.raises(KeyError):
        openapi_v3(KINDS, "apis/nobody/v1", VERSION)


PATCHED = [kind for kind in KINDS if "patch" in kind.verbs]


@pytest.mark.parametrize("kind", PATCHED, ids=lambda kind: kind.resource.qualified)
def test_kubectl_finds_the_kind_and_strict_validation_of_its_patches(kind):
    resource = kind.resource
    document = openapi_v3(KINDS, resource.api_version, VERSION)
    gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    schemas = document["components"]["schemas"].values()
    assert [each for each in schemas if gvk in each.get("x-kubernetes-group-version-kind", [])]
    patches = [
        item["patch"]
        for item in document["paths"].values()
        if "patch" in item and item["patch"]["x-kubernetes-group-version-kind"] == gvk
    ]
    assert patches
    for patch in patches:
        assert "fieldValidation" in {each["name"] for each in patch["parameters"]}
        assert sorted(patch["requestBody"]["content"]) == [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ]


def test_openapi_lists_carry_their_merge_strategy():
    schemas = openapi_v3(KINDS, "v1", VERSION)["components"]["schemas"]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]
    container = {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}]}
    assert spec["containers"] == {
        "type": "array",
        "items": container,
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }
    assert schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"][
        "x-kubernetes-list-map-keys"
    ] == ["containerPort", "protocol"]
    assert spec["tolerations"]["x-kubernetes-list-type"] == "atomic"
    assert spec["nodeSelector"]["x-kubernetes-map-type"] == "atomic"
    assert spec["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert "x-kubernetes-patch-strategy" not in spec["tolerations"]


@pytest.mark.parametrize(
    ("name", "v2", "v3"),
    [
        pytest.param(
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            {"type": "string"},
            {"oneOf": [{"type": "string"}, {"type": "number"}]},
            id="a quantity is text or a number",
        ),
        pytest.param(
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            {"type": "string", "format": "int-or-string"},
            {"oneOf": [{"type": "string"}, {"type": "integer"}], "format": "int-or-string"},
            id="a port is a number or a name",
        ),
    ],
)
def test_types_with_two_json_forms_are_described_in_both_versions(name, v2, v3):
    assert openapi_v2(KINDS, VERSION)["definitions"][name] == v2
    assert openapi_v3(KINDS, "v1", VERSION)["components"]["schemas"][name] == v3


def test_openapi_describes_the_paths_of_pods():
    paths = openapi_v2(KINDS, VERSION)["paths"]
    pods = "/api/v1/namespaces/{namespace}/pods"
    found = {
        path: sorted(set(item) - {"parameters"})
        for path, item in paths.items()
        if path == "/api/v1/pods" or path.startswith(pods)
    }
    assert found == {
        "/api/v1/pods": ["get"],
        pods: ["delete", "get", "post"],
        f"{pods}/{{name}}": ["delete", "get", "patch", "put"],
        f"{pods}/{{name}}/binding": ["post"],
        f"{pods}/{{name}}/ephemeralcontainers": ["get", "patch", "put"],
        f"{pods}/{{name}}/eviction": ["post"],
        f"{pods}/{{name}}/resize": ["get", "patch", "put"],
        f"{pods}/{{name}}/status": ["get", "patch", "put"],
    }
    assert paths[pods]["post"]["parameters"][0] == {
        "name": "body",
        "in": "body",
        "schema": {"$ref": f"#/definitions/{POD}"},
    }

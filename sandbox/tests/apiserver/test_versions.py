"""Scope: discovery offers every resource, version, verb and subresource of the Kubernetes facts."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds import facts
from moorage.kinds.built_in import verbs_of, version_rank
from moorage.kinds.facts import ResourceFact
from sandbox.tests.apiserver.harness import Cluster

GROUP_VERSIONS = sorted({(each.group, each.version) for each in facts.resources()})


def path_of(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def entry_of(fact: ResourceFact) -> tuple[str, dict[str, Any]]:
    """Return the name of a resource in discovery, and what discovery says of it."""
    name = f"{fact.plural}/{fact.subresource}" if fact.subresource else fact.plural
    said: dict[str, Any] = {
        "kind": fact.kind,
        "namespaced": fact.namespaced,
        "verbs": list(verbs_of(fact)),
    }
    if (fact.body_group, fact.body_version) != (fact.group, fact.version):
        said |= {"group": fact.body_group, "version": fact.body_version}
    return name, said


@pytest.mark.parametrize(("group", "version"), GROUP_VERSIONS)
async def test_every_resource_and_subresource_is_discovered_with_its_verbs(group, version):
    found = await Cluster().ok("GET", path_of(group, version))
    keys = ("kind", "namespaced", "verbs", "group", "version")
    listed = {
        each["name"]: {key: each[key] for key in keys if key in each} for each in found["resources"]
    }
    expected = dict(
        entry_of(each)
        for each in facts.resources()
        if (each.group, each.version) == (group, version)
    )
    assert listed == expected


async def test_every_version_of_a_group_is_listed_and_the_best_is_preferred():
    groups = (await Cluster().ok("GET", "/apis"))["groups"]
    listed = {each["name"]: [v["groupVersion"] for v in each["versions"]] for each in groups}
    expected: dict[str, list[str]] = {}
    for group, version in GROUP_VERSIONS:
        if group:
            expected.setdefault(group, []).append(f"{group}/{version}")
    # What a metrics server serves, and custom resources that the sandbox ships.
    expected["metrics.k8s.io"] = ["metrics.k8s.io/v1beta1"]
    expected["scheduling.x-k8s.io"] = ["scheduling.x-k8s.io/v1alpha1"]
    assert listed == {name: sorted(found, key=version_rank) for name, found in expected.items()}
    preferred = {each["name"]: each["preferredVersion"]["groupVersion"] for each in groups}
    assert preferred == {name: versions[0] for name, versions in listed.items()}


@pytest.mark.parametrize(
    ("group", "versions"),
    [
        pytest.param("autoscaling", ["v2", "v1"], id="the newest stable version leads"),
        pytest.param(
            "resource.k8s.io",
            ["v1", "v1beta2", "v1beta1", "v1alpha3"],
            id="stable, then beta from new to old, then alpha",
        ),
    ],
)
async def test_the_order_of_versions(group, versions):
    found = await Cluster().ok("GET", f"/apis/{group}")
    assert [each["version"] for each in found["versions"]] == versions

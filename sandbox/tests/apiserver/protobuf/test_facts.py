"""Scope: the facts of messages, against the API's own and the Go types of Kubernetes' programs."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from moorage.kinds import facts as api
from moorage_sandbox.apiserver.protobuf import facts
from sandbox.tests.apiserver.protobuf import pack
from tests.kubectl.go_types import GoField
from tests.kubectl.install import NoKubectlError

LABELS = {"r": "repeated", "m": "map"}


@pytest.fixture(scope="module")
def go_types() -> dict[str, list[GoField]]:
    try:
        return pack.go_types()
    except NoKubectlError as error:
        pytest.skip(str(error))


def test_every_message_has_the_fields_numbers_and_types_of_the_facts():
    shipped: dict[str, Any] = {
        f"{package}.{name}": [
            [each.number, each.wire_name or each.name, each.type, LABELS.get(each.how, "optional")]
            for each in fields
        ]
        for package in facts.packages()
        for name, fields in facts.package(package).items()
        if name not in facts.messages_of_1_37(package)
    }
    assert shipped == pack.numbers()
    assert len(shipped) == 1265


@pytest.mark.usefixtures("go_types")
def test_the_shipped_file_equals_freshly_packed_facts():
    content = json.loads(gzip.decompress(Path(pack.PACKED).read_bytes()))
    assert content == pack.pack()


def test_go_numbers_the_fields_as_the_facts_do(go_types):
    compared = 0
    for full, fields in pack.numbers().items():
        name = pack.go_name(full)
        told = pack.tagged(go_types.get(name, []))
        if told:
            assert {number for number, _ in told} == {field[0] for field in fields}, full
            compared += 1
    assert compared > 1150


@pytest.mark.parametrize(
    ("message", "field", "expected"),
    [
        pytest.param("apps.v1.DeploymentSpec", "replicas", "p", id="a pointer: zero counts"),
        pytest.param("core.v1.PodSpec", "hostNetwork", "v", id="omitted when zero"),
        pytest.param("core.v1.Container", "name", "z", id="always in JSON"),
        pytest.param("core.v1.PersistentVolumeClaimSpec", "storageClassName", "p", id="empty text"),
        pytest.param("core.v1.Probe", "handler", "i", id="fields of the object around it"),
        pytest.param("core.v1.PodSpec", "containers", "r", id="a list"),
        pytest.param("core.v1.ConfigMap", "data", "m", id="a map"),
    ],
)
def test_zero_values_of_a_field_are_written_as_go_writes_them(message, field, expected):
    found = {each.name: each.how for each in facts.fields(f"k8s.io.api.{message}")}
    assert found[field] == expected


def test_every_kind_that_is_served_has_a_message():
    missing = {
        (each.body_group, each.body_version, each.kind)
        for each in api.resources()
        if facts.message_of(f"{each.body_group}/{each.body_version}".lstrip("/"), each.kind) is None
    }
    connected = {
        (each.body_group, each.body_version, each.kind)
        for each in api.resources()
        if "connect" in each.verbs
    }
    assert missing <= connected


def test_every_kind_that_only_1_37_serves_has_a_message_with_the_fields_of_its_schema():
    for each in api.resources_of_1_37():
        version = f"{each.body_group}/{each.body_version}"
        if each.kind == "CompositePodGroup":
            # The numbers of its fields are not known, so it has a JSON form alone.
            assert facts.message_of(version, each.kind) is None
            continue
        assert facts.message_of(version, each.kind), each
        assert facts.message_of(version, f"{each.kind}List"), each
    schemas = api.definitions()
    for package in ("k8s.io.api.scheduling.v1beta1", "k8s.io.api.scheduling.v1alpha3"):
        for name, fields in facts.messages_of_1_37(package).items():
            schema = schemas.get(f"io.{package}.{name}")
            if schema is not None:
                own = {*schema.fields} - {"apiVersion", "kind"}
                assert {field.name for field in fields} == own, (package, name)


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        pytest.param("v1", "Pod", "k8s.io.api.core.v1.Pod", id="of the core group"),
        pytest.param("v1", "Status", f"{facts.META}.Status", id="an answer"),
        pytest.param("v1", "APIResourceList", f"{facts.META}.APIResourceList", id="discovery"),
        pytest.param("apps/v1", "DeleteOptions", f"{facts.META}.DeleteOptions", id="of any group"),
        pytest.param(
            "shop.example.com/v1",
            "DeleteOptions",
            f"{facts.META}.DeleteOptions",
            id="options for a custom resource",
        ),
        pytest.param(
            "meta.k8s.io/v1",
            "PartialObjectMetadataList",
            f"{facts.META}.PartialObjectMetadataList",
            id="metadata only",
        ),
        pytest.param("meta.k8s.io/v1", "Table", None, id="a table"),
        pytest.param("shop.example.com/v1", "Pod", None, id="a custom resource"),
        pytest.param("v1", "Deployment", None, id="of another group"),
    ],
)
def test_the_message_of_a_kind_is_found_by_version_and_kind(api_version, kind, expected):
    assert facts.message_of(api_version, kind) == expected


def test_lookups_of_invented_kinds_keep_no_memory():
    words = "".join(["Fr", "og"]), "".join(["v", "99"])
    kept = [sys.getrefcount(each) for each in words]
    assert facts.message_of(words[1], words[0]) is None
    assert facts.message_of("v1", words[0]) is None
    assert [sys.getrefcount(each) for each in words] == kept

"""Scope: the definitions built from the facts, and the checks of bodies by definition."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kubernetes.client import models

from moorage.kinds import facts
from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.wire.bodies import Sent, check_fields, check_kind
from moorage_sandbox.apiserver.wire.requests import Query
from scheduler.tests.kinds.builders import KINDS, container, pod, workload

# Fields that have another name in the official client, and a definition that it does not have.
RENAMED = {
    "NodeAllocatableResourceClaimStatus.resources",
    "Device.nodeAllocatableResourceMappings",
}
WITHOUT_MODEL = ("CustomResourceSubresourceStatus", "NodeAllocatableResourceMapping")


def model(name: str) -> Any:
    """The official client's model of a definition."""
    short = facts.short_name(name)
    package, version = (part.capitalize() for part in name.split(".")[-3:-1])
    for candidate in (f"{version}{short}", f"{package}{version}{short}"):
        found = getattr(models, candidate, None)
        if found is not None:
            return found
    raise AssertionError(f"the official client has no {name}")


# The official client has the stable versions of these definitions.
STABLE = sorted(
    name
    for name in facts.closure([facts.definition_name(kind.resource) for kind in served_kinds()])
    if re.search(r"\.v\d+\.", name) and not name.endswith(WITHOUT_MODEL)
)


@pytest.mark.parametrize("name", STABLE)
def test_the_official_client_knows_every_field(name):
    known = set(model(name).attribute_map.values())
    # The client follows Kubernetes 1.37, which has fields that 1.36 does not have.
    short = facts.short_name(name)
    unknown = {f"{short}.{field}" for field in facts.definition(name).fields if field not in known}
    assert unknown == {each for each in RENAMED if each.startswith(f"{short}.")}


@pytest.mark.parametrize(
    ("obj", "paths"),
    [
        pytest.param(pod(), [], id="a right pod"),
        pytest.param({"foo": 1}, ["foo"], id="at the top"),
        pytest.param(
            pod(foo=1, containers=[container(), container(imagee="x")]),
            ["spec.containers[1].imagee", "spec.foo"],
            id="in the spec and in a list",
        ),
        pytest.param(
            pod(nodeSelector={"any": "key"}, containers=[container(resources={"want": {}})]),
            ["spec.containers[0].resources.want"],
            id="keys of maps are free",
        ),
        pytest.param(
            {"metadata": {"managedFields": [{"fieldsV1": {"f:any": {}}}]}},
            [],
            id="some values are open",
        ),
        pytest.param({"spec": "text"}, [], id="wrong types are somebody else's affair"),
    ],
)
def test_unknown_fields_are_found_with_their_paths(obj, paths):
    assert sorted(KINDS["pods"].shape.unknown_fields(obj)) == paths


STRUCT = "json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("plural", "obj", "errors"),
    [
        pytest.param("pods", pod(), [], id="a right pod"),
        pytest.param(
            "deployments",
            workload("deployments", replicas="3"),
            [STRUCT.format("string", "DeploymentSpec.spec.replicas", "int32")],
            id="text for a number",
        ),
        pytest.param(
            "deployments",
            workload("deployments", replicas=1.5),
            [STRUCT.format("number 1.5", "DeploymentSpec.spec.replicas", "int32")],
            id="a fraction for an integer",
        ),
        pytest.param(
            "pods",
            pod(priority=2**31),
            [STRUCT.format("number 2147483648", "PodSpec.spec.priority", "int32")],
            id="a number too large",
        ),
        pytest.param(
            "pods",
            pod(containers={"name": "x"}),
            [STRUCT.format("object", "PodSpec.spec.containers", "[]v1.Container")],
            id="an object for a list",
        ),
        pytest.param(
            "pods",
            pod(containers=[container(env=[{"name": "A", "value": 1}])]),
            [STRUCT.format("number", "EnvVar.spec.containers.env.value", "string")],
            id="a number for text, deep inside",
        ),
        pytest.param(
            "pods",
            pod(nodeSelector=[], hostNetwork="yes"),
            [
                STRUCT.format("array", "PodSpec.spec.nodeSelector", "map[string]string"),
                STRUCT.format("string", "PodSpec.spec.hostNetwork", "bool"),
            ],
            id="a list for a map, text for a boolean",
        ),
        pytest.param(
            "pods",
            pod(containers=[container(resources={"limits": {"cpu": "many"}})]),
            [
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' "
                '(spec.containers.resources.limits: "many")'
            ],
            id="a quantity that is none",
        ),
        pytest.param(
            "leases",
            {"spec": {"renewTime": "yesterday"}},
            [
                'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse '
                '"yesterday" as "2006" (spec.renewTime: "yesterday")'
            ],
            id="a time that is none",
        ),
        pytest.param(
            "secrets",
            {"data": {"a": "not base64!"}},
            ['illegal base64 data at input byte 0 (data: "not base64!")'],
            id="data that is not encoded",
        ),
        pytest.param(
            "services", {"spec": {"ports": [{"targetPort": "http"}]}}, [], id="a port by name"
        ),
        pytest.param("pods", pod(nodeName=None), [], id="null is nothing"),
    ],
)
def test_values_of_a_wrong_type_are_found_with_their_paths(plural, obj, errors):
    assert KINDS[plural].shape.type_errors(obj) == errors


def test_a_value_of_a_wrong_type_is_refused_in_the_words_of_go():
    kind = KINDS["pods"]
    assert check_fields(pod(), kind, Query(()), Sent(b"", None)) == []
    with pytest.raises(StatusError) as refused:
        check_fields(pod(priority="high"), kind, Query(()), Sent(b"", None))
    assert refused.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go '
        "struct field PodSpec.spec.priority of type int32"
    )


def test_only_an_object_is_a_pod():
    with pytest.raises(StatusError, match="expected a JSON object, not list"):
        check_kind([], KINDS["pods"].resource)


def test_pruning_keeps_known_fields():
    obj = pod(
        foo={"bar": 1},
        nodeName=None,
        nodeSelector={"a": "b", "c": None},
        containers=[None, container(imagee="x", args=["a", None])],
    )
    KINDS["pods"].shape.prune(obj)
    assert obj == pod(nodeSelector={"a": "b"}, containers=[container(args=["a"])])


def merge_key(*path: str) -> str:
    """The merge key of a list of pods, by its path."""
    found = facts.kind_definition(KINDS["pods"].resource)
    for name in path[:-1]:
        found = facts.definition(found.fields[name].innermost.name)
    return found.fields[path[-1]].patch_merge_key


def test_lists_of_a_pod_have_their_merge_keys():
    assert merge_key("spec", "containers") == "name"
    assert merge_key("spec", "tolerations") == ""
    assert merge_key("spec", "containers", "ports") == "containerPort"
    assert merge_key("status", "conditions") == "type"


@pytest.mark.parametrize("kind", served_kinds(), ids=lambda kind: kind.resource.qualified)
def test_every_kind_has_a_definition(kind):
    definition = facts.kind_definition(kind.resource)
    assert {"apiVersion", "kind", "metadata"} <= set(definition.fields)

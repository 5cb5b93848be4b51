"""Scope: the field tables, and the checks of bodies made from them."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import models

from moorage.apiserver.kinds import all_kinds
from moorage.apiserver.openapi import decode_error, type_errors, unknown_fields
from moorage.apiserver.schema import catalog
from moorage.apiserver.schema.check import prune
from moorage.apiserver.schema.language import parse_table
from tests.apiserver_kinds.builders import KINDS, container, pod, workload

# Fields of the official client, which follows Kubernetes 1.37, that 1.36 does not have, or drops
# while a gate is off that is off by default (lists of values: DRAListTypeAttributes).
NEWER = {
    "CSINode": {"status"},
    "EmptyDirVolumeSource": {"mode"},
    "JobSpec": {"scheduling"},
    "KeyToPath": {"user"},
    "Device": {"nodeAllocatableResources"},
    "DeviceAttribute": {"bools", "ints", "strings", "versions"},
    "DeviceCounterConsumption": {"compatibilityGroups"},
    "DeviceRequestAllocationResult": {"skipNodeOperations"},
    "DeviceSubRequest": {"derivedAttributes"},
    "DownwardAPIVolumeFile": {"user"},
    "ExactDeviceRequest": {"derivedAttributes"},
    "ClusterTrustBundleProjection": {"user"},
    "PodCertificateProjection": {"user"},
    "ServiceAccountTokenProjection": {"user"},
    "ListMeta": {"shardInfo"},
    "NodeSpec": {"podPreemptionPolicy"},
    "PersistentVolumeClaimStatus": {"healthStatus"},
    "PodSpec": {"evictionResponders"},
    "PodStatus": {"volumeHealth"},
    "ResourceSliceSpec": {"partitionTypeAttribute", "skipNodeOperations"},
    "VolumeMount": {"bindMountOptions"},
}
FILE_VOLUMES = (
    "ConfigMapVolumeSource",
    "DownwardAPIVolumeSource",
    "ProjectedVolumeSource",
    "SecretVolumeSource",
)
NEWER |= {name: {"defaultUser"} for name in FILE_VOLUMES}


def model(name: str) -> Any:
    """The official client's model of a definition."""
    short = catalog.short_name(name)
    package, version = (part.capitalize() for part in name.split(".")[-3:-1])
    for candidate in (f"{version}{short}", f"{package}{version}{short}"):
        found = getattr(models, candidate, None)
        if found is not None:
            return found
    raise AssertionError(f"the official client has no {name}")


# Not in the official client: alpha, and another version of it there.
ALPHA = "io.k8s.api.scheduling.v1alpha2."


@pytest.mark.parametrize("name", sorted(n for n in catalog.DEFINITIONS if not n.startswith(ALPHA)))
def test_no_field_of_the_public_api_is_missing(name):
    known = set(model(name).attribute_map.values())
    ours = set(catalog.DEFINITIONS[name].fields)
    assert ours == known - NEWER.get(catalog.short_name(name), set())


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
def test_unknown_fields(obj, paths):
    assert sorted(unknown_fields(KINDS["pods"], obj)) == paths


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
        pytest.param(
            "pods",
            [],
            ["json: cannot unmarshal array into Go value of type v1.Pod"],
            id="no object at all",
        ),
    ],
)
def test_type_errors(plural, obj, errors):
    assert type_errors(KINDS[plural], obj) == errors


def test_the_message_of_a_refusal():
    assert decode_error(KINDS["pods"], pod()) is None
    assert decode_error(KINDS["pods"], pod(priority="high")) == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go '
        "struct field PodSpec.spec.priority of type int32"
    )


def test_pruning_leaves_what_is_known():
    obj = pod(
        foo={"bar": 1},
        nodeName=None,
        nodeSelector={"a": "b", "c": None},
        containers=[None, container(imagee="x", args=["a", None])],
    )
    prune(KINDS["pods"], obj)
    assert obj == pod(nodeSelector={"a": "b"}, containers=[container(args=["a"])])


def test_merge_keys_of_a_pod():
    keys = KINDS["pods"].merge_keys
    assert {path: keys.get(path) for path in ("spec.containers", "spec.tolerations")} == {
        "spec.containers": "name",
        "spec.tolerations": None,
    }
    assert keys["spec.containers.ports"] == "containerPort"
    assert keys["status.conditions"] == "type"


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.resource.qualified)
def test_every_kind_is_in_the_tables(kind):
    definition = catalog.kind_definition(kind.resource)
    assert definition.is_kind
    assert {"apiVersion", "kind", "metadata"} <= set(definition.fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("A = b\nA = c", "not a definition, or defined twice", id="twice"),
        pytest.param("A: b", "not a definition, or defined twice", id="no equals sign"),
        pytest.param("A = b:[[s]]", "not a field", id="a list of lists"),
    ],
)
def test_tables_with_mistakes_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_table(text)

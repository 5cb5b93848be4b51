"""Scope: the rules that kube-apiserver has for volumes, their claims, classes and drivers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import (
    claim,
    create_errors,
    created,
    named,
    update_errors,
)
from scheduler.tests.kinds.test_pod_validation import QUALIFIED
from scheduler.tests.kinds.test_scheduling_rules import SUBDOMAIN

PLURALS = {
    "CSIDriver": "csidrivers",
    "CSINode": "csinodes",
    "CSIStorageCapacity": "csistoragecapacities",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "VolumeAttachment": "volumeattachments",
    "VolumeAttributesClass": "volumeattributesclasses",
}


def volume(**spec: Any) -> Obj:
    base: Obj = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    return named("persistentvolumes", spec=base | spec)


def csi(**fields: Any) -> Obj:
    return {"csi": {"driver": "d", "volumeHandle": "h", **fields}}


def on_nodes(label: str) -> Obj:
    expressions = [{"key": label, "operator": "Exists"}]
    return {
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    }


def topologies(*terms: Obj) -> Obj:
    return named("storageclasses", provisioner="d", allowedTopologies=list(terms))


def topology(*entries: tuple[str, list[str]]) -> Obj:
    return {"matchLabelExpressions": [{"key": key, "values": values} for key, values in entries]}


def csi_node(*drivers: Obj) -> Obj:
    return named("csinodes", spec={"drivers": list(drivers)})


def driver(**fields: Any) -> Obj:
    return {"name": "d", "nodeID": "n", **fields}


def attachment(**spec: Any) -> Obj:
    base = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    return named("volumeattachments", spec=base | spec)


T = "allowedTopologies[0].matchLabelExpressions"
NEW = [
    pytest.param(volume(**csi()), [], id="a volume"),
    pytest.param(
        volume(**csi(driver="", volumeHandle="", nodePublishSecretRef={"name": "A"})),
        [
            "spec.csi.driver: Required value",
            f'spec.csi.driver: Invalid value: "": {SUBDOMAIN}',
            "spec.csi.volumeHandle: Required value",
            f'spec.csi.nodePublishSecretRef.name: Invalid value: "A": {SUBDOMAIN}',
            "spec.csi.nodePublishSecretRef.namespace: Required value",
        ],
        id="a volume of no driver",
    ),
    pytest.param(
        volume(hostPath={"path": "/a/../b"}, storageClassName="A", volumeAttributesClassName=""),
        [
            f'spec.storageClassName: Invalid value: "A": {SUBDOMAIN}',
            "spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            "spec.volumeAttributesClassName: Required value: an empty string is disallowed",
            "spec.csi: Required value: has to be specified when using volumeAttributesClassName",
        ],
        id="a volume of a host that goes up",
    ),
    pytest.param(
        volume(hostPath={"path": "//"}, persistentVolumeReclaimPolicy="Recycle"),
        [
            "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath "
            "mount of '/'"
        ],
        id="the root of a host is not recycled",
    ),
    pytest.param(
        volume(
            **csi(),
            nodeAffinity={
                "required": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": [""]}
                            ]
                        }
                    ]
                }
            },
        ),
        [
            "spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].values[0]: Invalid "
            f'value: "": {SUBDOMAIN}'
        ],
        id="a volume on a node without a name",
    ),
    pytest.param(
        claim(
            storageClassName="A",
            dataSource={"kind": "PersistentVolumeClaim", "name": ""},
            dataSourceRef={"kind": "Pod", "name": "x", "apiGroup": "a b"},
        ),
        [
            f'spec.storageClassName: Invalid value: "A": {SUBDOMAIN}',
            "spec.dataSource.name: Required value",
            f'spec.dataSourceRef.apiGroup: Invalid value: "a b": {SUBDOMAIN}',
            'spec: Invalid value: "spec.dataSource": must match dataSourceRef',
        ],
        id="a claim on odd data",
    ),
    pytest.param(topologies(topology(("a", ["x", "y"]))), [], id="a topology"),
    pytest.param(
        topologies(topology(("a", ["x", "x"]), ("a", ["y"]), ("b", []))),
        [
            f'{T}[0].values[1]: Duplicate value: "x"',
            f'{T}[1].key: Duplicate value: "a"',
            f"{T}[2].values: Required value",
        ],
        id="a topology that names a key twice",
    ),
    pytest.param(
        topologies(topology(("a", ["x", "y"])), topology(("a", ["y", "x"]))),
        ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
        id="a topology twice",
    ),
    pytest.param(
        topologies({}),
        ['allowedTopologies[0].matchLabelExpressions: Duplicate value: ""'],
        id="a topology of nothing",
    ),
    pytest.param(
        named(
            "storageclasses",
            provisioner="a/b/c",
            parameters={"": "x"},
            volumeBindingMode="Later",
        ),
        [
            'provisioner: Invalid value: "a/b/c": a qualified name '
            f"{QUALIFIED.removeprefix('name part ')} with an optional DNS subdomain prefix and "
            "'/' (e.g. 'example.com/MyName')",
            'parameters: Invalid value: "": field can not be empty.',
            'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", '
            '"WaitForFirstConsumer"',
        ],
        id="an odd class",
    ),
    pytest.param(
        named("volumeattributesclasses", driverName="d", parameters={"k": "x" * 262_144}),
        ["parameters: Too long: may not be more than 262144 bytes"],
        id="parameters of more than 256 KiB",
    ),
    pytest.param(
        csi_node(driver(topologyKeys=["", "a", "a"], allocatable={"count": -1})),
        [
            "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal "
            "to 0",
            "spec.drivers[0]: Required value",
            'spec.drivers[0]: Invalid value: "": name part must be non-empty',
            f'spec.drivers[0]: Invalid value: "": {QUALIFIED}',
            'spec.drivers[0]: Duplicate value: "a"',
        ],
        id="an empty topology key",
    ),
    pytest.param(
        csi_node(driver(), driver(nodeID="x" * 193)),
        [
            'spec.drivers[1].name: Duplicate value: "d"',
            f'spec.drivers[1].nodeID: Invalid value: "{"x" * 193}": must be 192 characters or less',
        ],
        id="a driver twice",
    ),
    pytest.param(
        named(
            "csidrivers",
            spec={
                "tokenRequests": [
                    {"audience": "a", "expirationSeconds": 599},
                    {"audience": "a", "expirationSeconds": 2**32 + 1},
                ],
                "nodeAllocatableUpdatePeriodSeconds": 9,
            },
        ),
        [
            "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a "
            "duration less than 10 minutes",
            "spec.tokenRequests[1].expirationSeconds: Invalid value: 4294967297: may not specify a "
            "duration larger than 2^32 seconds",
            'spec.tokenRequests[1].audience: Duplicate value: "a"',
            "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or "
            "equal to 10 seconds",
        ],
        id="tokens of an odd life",
    ),
    pytest.param(
        named("csistoragecapacities", storageClassName="A", capacity="-1"),
        [
            f'storageClassName: Invalid value: "A": {SUBDOMAIN}',
            'capacity: Invalid value: "-1": must be greater than or equal to 0',
        ],
        id="a capacity of less than nothing",
    ),
    pytest.param(
        attachment(attacher="a b", source={"persistentVolumeName": ""}, nodeName="N"),
        [
            f'spec.attacher: Invalid value: "a b": {SUBDOMAIN}',
            "spec.source.persistentVolumeName: Required value: must specify non empty "
            "persistentVolumeName",
            f'spec.source.persistentVolumeName: Invalid value: "": {SUBDOMAIN}',
            f'spec.nodeName: Invalid value: "N": {SUBDOMAIN}',
        ],
        id="an attachment of nothing",
    ),
]


@pytest.mark.parametrize(("obj", "messages"), NEW)
def test_a_new_object_gets_the_errors_of_kube_apiserver(obj, messages):
    assert create_errors(PLURALS[obj["kind"]], obj) == messages


def bound(**spec: Any) -> Obj:
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    return claim(volumeName="v", **spec) | {"status": status}


def sized(size: str) -> Obj:
    return {"resources": {"requests": {"storage": size}}}


SHUT = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)
SMALLER = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"


@pytest.mark.parametrize(
    ("old", "change", "messages"),
    [
        pytest.param(claim(), {"volumeName": "v"}, [], id="a claim is bound"),
        pytest.param(claim(), {"storageClassName": "c"}, [], id="a claim gets a class"),
        pytest.param(
            claim(storageClassName="b"), {"storageClassName": "c"}, [SHUT], id="another class"
        ),
        pytest.param(bound(**sized("3Gi")), sized("2Gi"), [], id="a resize is given up"),
        pytest.param(bound(**sized("3Gi")), sized("1Gi"), [SMALLER], id="a claim shrinks"),
        pytest.param(
            bound(volumeAttributesClassName="a"),
            {"volumeAttributesClassName": "b"},
            [],
            id="other attributes",
        ),
        pytest.param(
            bound(volumeAttributesClassName="a"),
            {"volumeAttributesClassName": None},
            [
                SHUT,
                "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is "
                "forbidden",
            ],
            id="no attributes",
        ),
        pytest.param(
            volume(**csi()),
            csi(controllerExpandSecretRef={"name": "a", "namespace": "b"}),
            [],
            id="the secret of an expansion is added",
        ),
        pytest.param(
            volume(**csi()),
            csi(volumeHandle="x"),
            [
                "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable "
                "after creation"
            ],
            id="another volume",
        ),
        pytest.param(
            volume(**csi()),
            {"volumeMode": "Block"},
            ['volumeMode: Invalid value: "Block": field is immutable'],
            id="another mode",
        ),
        pytest.param(
            volume(**csi(), **on_nodes("failure-domain.beta.kubernetes.io/zone")),
            on_nodes("topology.kubernetes.io/zone"),
            [],
            id="nodes by the stable label in place of its beta label",
        ),
        pytest.param(
            volume(**csi(), **on_nodes("topology.kubernetes.io/zone")),
            on_nodes("failure-domain.beta.kubernetes.io/zone"),
            [
                'nodeAffinity: Invalid value: {"required":{"nodeSelectorTerms":[{'
                '"matchExpressions":[{"key":"failure-domain.beta.kubernetes.io/zone",'
                '"operator":"Exists"}]}]}}: field is immutable, except for updating from beta '
                "label to GA"
            ],
            id="nodes by the beta label again",
        ),
        pytest.param(
            csi_node(driver()),
            {"drivers": [driver(allocatable={"count": 5})]},
            [],
            id="more volumes",
        ),
        pytest.param(
            csi_node(driver()),
            {"drivers": [driver(nodeID="m")]},
            ['spec.drivers: Invalid value: {"name":"d","nodeID":"m"}: field is immutable'],
            id="another id of a driver",
        ),
        pytest.param(csi_node(driver()), {"drivers": []}, [], id="a driver leaves"),
        pytest.param(
            named("csidrivers", spec={}),
            {"attachRequired": False},
            ["spec.attachedRequired: Invalid value: false: field is immutable"],
            id="a driver that attaches no longer",
        ),
    ],
)
def test_a_change_gets_the_errors_of_kube_apiserver(old, change, messages):
    plural = PLURALS[old["kind"]]
    stored = created(plural, old)
    if "status" in old:
        stored["status"] = old["status"]
    new = copy.deepcopy(stored)
    new["spec"] = {key: value for key, value in (new["spec"] | change).items() if value is not None}
    assert update_errors(plural, new, stored) == messages


@pytest.mark.parametrize(
    ("old", "status", "messages"),
    [
        pytest.param(
            claim(),
            {
                "capacity": {"storage": "-1"},
                "allocatedResourceStatuses": {"cpu": "Soon"},
                "allocatedResources": {"storage": "-2"},
            },
            [
                'status.capacity[storage]: Invalid value: "-1": must be a valid resource quantity',
                'status.allocatedResourceStatus: Unsupported value: "cpu": supported values: '
                '"storage"',
                'status.allocatedResourceStatus: Unsupported value: "cpu": supported values: '
                '"ControllerResizeInProgress", "ControllerResizeInfeasible", '
                '"NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"',
                'status.allocatedResources[storage]: Invalid value: "-2": must be a valid resource '
                "quantity",
            ],
            id="the status of a claim",
        ),
        pytest.param(
            attachment(),
            {"attached": False, "attachError": {"message": "x" * 1025}},
            ["status.attachError.message: Too long: may not be more than 1024 bytes"],
            id="the status of an attachment",
        ),
    ],
)
def test_a_status_gets_the_errors_of_kube_apiserver(old, status, messages):
    plural = PLURALS[old["kind"]]
    stored = created(plural, old)
    assert update_errors(plural, stored | {"status": status}, stored, subresource="status") == (
        messages
    )


PVC = {"kind": "PersistentVolumeClaim", "name": "x"}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "x"}
OTHER = {"apiGroup": "example.com", "kind": "Dump", "name": "x"}
ELSEWHERE = {**OTHER, "namespace": "other"}


@pytest.mark.parametrize(
    ("source", "reference", "stored"),
    [
        pytest.param(PVC, None, (PVC, PVC), id="a claim"),
        pytest.param(SNAPSHOT, None, (SNAPSHOT, SNAPSHOT), id="a snapshot"),
        pytest.param(OTHER, None, (None, None), id="another kind is dropped"),
        pytest.param({"kind": "Pod", "name": "x"}, None, (None, None), id="so is a pod"),
        pytest.param(None, OTHER, (OTHER, OTHER), id="a reference may be of any kind"),
        pytest.param(None, ELSEWHERE, (None, None), id="another namespace: the gate is off"),
        pytest.param(PVC, PVC, (PVC, PVC), id="both"),
        pytest.param(None, None, (None, None), id="neither"),
    ],
)
def test_both_fields_of_a_data_source_are_stored(source, reference, stored):
    spec = {"dataSource": source, "dataSourceRef": reference}
    new = claim(**{name: value for name, value in spec.items() if value is not None})
    old = created("persistentvolumeclaims", new)
    assert (old["spec"].get("dataSource"), old["spec"].get("dataSourceRef")) == stored
    # The same manifest, sent again, changes nothing.
    assert update_errors("persistentvolumeclaims", new, old) == []

"""Scope: what is refused of a pod's volumes, mounts, block devices and resize policies."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import container, create_errors, pod
from scheduler.tests.kinds.test_pod_validation import LABEL

CLAIM: Obj = {"persistentVolumeClaim": {"claimName": "c"}}
LONG = "x" * 250
TEMPLATE: Obj = {
    "volumeClaimTemplate": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
}
C, V = "spec.containers[0]", "spec.volumes[0]"


def volume(source: Obj, name: str = "v") -> Obj:
    return {"volumes": [{"name": name, **source}]}


def uses(source: Obj, **fields: Any) -> Obj:
    return volume(source) | {"containers": [container(**fields)]}


def device(name: str = "v", path: str = "/dev/x") -> Obj:
    return {"name": name, "devicePath": path}


def mount(name: str = "v", path: str = "/x", **fields: Any) -> Obj:
    return {"name": name, "mountPath": path, **fields}


def resized(restart: str, *policies: Obj) -> Obj:
    return {"restartPolicy": restart, "containers": [container(resizePolicy=list(policies))]}


def policy(name: str, restart: str = "NotRequired") -> Obj:
    return {"resourceName": name, "restartPolicy": restart}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param(volume({"hostPath": {"path": "/a", "type": "File"}}), [], id="a file"),
        pytest.param(
            volume({"hostPath": {"path": "/a/../b", "type": "Disk"}}),
            [
                f"{V}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                f'{V}.hostPath.type: Unsupported value: "Disk": supported values: "", '
                '"BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", '
                '"FileOrCreate", "Socket"',
            ],
            id="a path of a host that goes up, and has an unknown type",
        ),
        pytest.param(
            volume({"nfs": {"server": "s", "path": "a"}}),
            [f'{V}.nfs.path: Invalid value: "a": must be an absolute path'],
            id="a share with a relative path",
        ),
        pytest.param(uses(CLAIM, volumeDevices=[device()]), [], id="a block device"),
        pytest.param(
            uses({"emptyDir": {}}, volumeDevices=[device(path="/a/../b")]),
            [
                f'{C}.volumeDevices[0].name: Invalid value: "v": can only use volume source type '
                "of PersistentVolumeClaim for block mode",
                f'{C}.volumeDevices[0].devicePath: Invalid value: "/a/../b": can not contain '
                "backsteps ('..')",
            ],
            id="a block device of an empty directory, with a path that goes up",
        ),
        pytest.param(
            uses(CLAIM, volumeDevices=[device(), device()]),
            [
                f'{C}.volumeDevices[1].name: Invalid value: "v": must be unique',
                f'{C}.volumeDevices[1].devicePath: Invalid value: "/dev/x": must be unique',
            ],
            id="a block device that comes twice",
        ),
        pytest.param(
            uses(CLAIM, volumeDevices=[device("w", "")]),
            [
                f'{C}.volumeDevices[0].name: Not found: "w"',
                f"{C}.volumeDevices[0].devicePath: Required value",
            ],
            id="a block device of no volume, without a path",
        ),
        pytest.param(
            uses(CLAIM, volumeDevices=[device(path="/x")], volumeMounts=[mount()]),
            [
                f'{C}.volumeMounts[0].name: Invalid value: "v": must not already exist in '
                "volumeDevices",
                f'{C}.volumeMounts[0].mountPath: Invalid value: "/x": must not already exist as a '
                "path in volumeDevices",
                f'{C}.volumeDevices[0].name: Invalid value: "v": must not already exist in '
                "volumeMounts",
                f'{C}.volumeDevices[0].devicePath: Invalid value: "/x": must not already exist as '
                "a path in volumeMounts",
            ],
            id="a volume that is mounted and a block device",
        ),
        pytest.param(
            uses(CLAIM, volumeMounts=[mount(subPath="/a", subPathExpr="b/..")]),
            [
                f'{C}.volumeMounts[0].subPathExpr: Invalid value: "b/..": subPathExpr and subPath '
                "are mutually exclusive",
                f'{C}.volumeMounts.subPath: Invalid value: "/a": must be a relative path',
                f"{C}.volumeMounts.subPathExpr: Invalid value: \"b/..\": must not contain '..'",
            ],
            id="two parts of a volume in one mount",
        ),
        pytest.param(resized("Always", policy("cpu"), policy("memory")), [], id="a resize"),
        pytest.param(
            resized("Never", policy("cpu", "RestartContainer"), policy("cpu"), policy("gpu", "")),
            [
                f'{C}.resizePolicy[1]: Duplicate value: "cpu"',
                f'{C}.resizePolicy: Invalid value: "RestartContainer": must be '
                "'NotRequired' when `restartPolicy` is 'Never'",
                f'{C}.resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory"',
                f"{C}.resizePolicy: Required value",
                f"{C}.resizePolicy: Invalid value: \"\": must be 'NotRequired' when "
                "`restartPolicy` is 'Never'",
            ],
            id="odd resize policies",
        ),
    ],
)
def test_a_pod_gets_the_errors_of_kube_apiserver(spec, messages):
    assert create_errors("pods", pod(**spec)) == messages


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param(
            volume({"ephemeral": TEMPLATE}, "four"),
            [
                f'{V}.name: Invalid value: "four": PVC name "{LONG}-four": must be no more than '
                "253 characters"
            ],
            id="of an ephemeral volume",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "four", "resourceClaimTemplateName": "t"}]},
            [
                f'spec.resourceClaims[0].name: Invalid value: "{LONG}-four": final ResourceClaim '
                "name: must be no more than 253 characters"
            ],
            id="of a resource claim",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "A", "resourceClaimTemplateName": "t"}]},
            [f'spec.resourceClaims[0].name: Invalid value: "A": {LABEL}'],
            id="of a resource claim whose own name is wrong",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "four", "resourceClaimName": "c"}]},
            [],
            id="of a claim that exists",
        ),
    ],
)
def test_the_names_of_the_claims_that_a_pod_gets_are_checked(spec, messages):
    assert create_errors("pods", pod(name=LONG, **spec)) == messages


def test_a_pod_does_not_use_the_claim_of_its_ephemeral_volume_otherwise():
    volumes = [
        {"name": "v", "ephemeral": TEMPLATE},
        {"name": "w", "persistentVolumeClaim": {"claimName": "web-v"}},
    ]
    assert create_errors("pods", pod(volumes=volumes)) == [
        'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "web-v": must not '
        "reference a PVC that gets created for an ephemeral volume"
    ]

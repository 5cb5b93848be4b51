"""Every pod that deploy/ makes is one of the Pod Security Standard "restricted".

The static pod cannot be; it is held to the exceptions that its own comment gives.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from tests.deploy.chart import MANIFESTS, PLAIN, ROOT, kept, objects
from tests.deploy.pod_security import violations

GOOD: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "c",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    ],
}


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_the_pods_of_a_manifest_are_restricted(name: str) -> None:
    templates = [
        each["spec"]["template"]
        for each in objects(kept(name))
        if "template" in each.get("spec", {})
    ]
    assert len(templates) == 1
    for template in templates:
        assert violations(template["spec"], template["metadata"].get("annotations")) == []
        for container in template["spec"]["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


def specs() -> dict[str, dict[str, Any]]:
    """Return the pods of the scheduler that deploy/ has without Helm, by file."""
    found = {
        name: each["spec"]["template"]["spec"]
        for name in PLAIN
        for each in objects(kept(name))
        if each["kind"] == "Deployment"
    }
    static = ROOT / "deploy/static-pod/kube-scheduler.yaml"
    return {**found, static.name: yaml.safe_load(static.read_text())["spec"]}


@pytest.mark.parametrize("name", sorted(specs()))
def test_a_scheduler_may_write_temporary_files_and_nothing_else(name: str) -> None:
    spec = specs()[name]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    writable = {each["name"]: each for each in container["volumeMounts"] if "readOnly" not in each}
    assert writable == {"tmp": {"name": "tmp", "mountPath": "/tmp"}}
    (volume,) = (each for each in spec["volumes"] if each["name"] == "tmp")
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Mi"}


def test_every_manifest_is_looked_at() -> None:
    assert sorted(path.name for path in MANIFESTS.iterdir()) == sorted(PLAIN)


def test_the_static_pod_breaks_only_what_a_static_pod_must() -> None:
    pod = yaml.safe_load((ROOT / "deploy/static-pod/kube-scheduler.yaml").read_text())
    assert violations(pod["spec"]) == [
        "hostNetwork",
        "volumes[kubeconfig]",
        "containers[kube-scheduler].securityContext.runAsUser",
        "containers[kube-scheduler].securityContext.runAsNonRoot",
        "containers[kube-scheduler].startupProbe.host",
        "containers[kube-scheduler].livenessProbe.host",
        "containers[kube-scheduler].readinessProbe.host",
    ]


_C = ("containers", 0)
_CONTEXT = (*_C, "securityContext")


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        pytest.param((), None, [], id="nothing is changed"),
        pytest.param(("hostNetwork",), True, ["hostNetwork"], id="the node's network"),
        pytest.param(("hostPID",), True, ["hostPID"], id="the node's processes"),
        pytest.param(("hostIPC",), True, ["hostIPC"], id="the node's shared memory"),
        pytest.param(
            ("volumes",), [{"name": "v", "hostPath": {}}], ["volumes[v]"], id="a folder of the node"
        ),
        pytest.param(("volumes",), [{"name": "v", "configMap": {}}], [], id="a ConfigMap is fine"),
        pytest.param(("securityContext", "runAsUser"), 0, ["securityContext.runAsUser"], id="root"),
        pytest.param(
            ("securityContext", "runAsNonRoot"),
            False,
            ["securityContext.runAsNonRoot", "containers[c].securityContext.runAsNonRoot"],
            id="root is allowed",
        ),
        pytest.param(
            ("securityContext", "seccompProfile"),
            {"type": "Unconfined"},
            ["securityContext.seccompProfile"],
            id="every system call",
        ),
        pytest.param(
            ("securityContext", "seccompProfile"),
            None,
            ["containers[c].securityContext.seccompProfile"],
            id="no profile of system calls",
        ),
        pytest.param(
            ("securityContext", "sysctls"),
            [{"name": "kernel.msgmax"}],
            ["securityContext.sysctls[kernel.msgmax]"],
            id="a setting of the kernel",
        ),
        pytest.param(
            (*_CONTEXT, "appArmorProfile"),
            {"type": "Unconfined"},
            ["containers[c].securityContext.appArmorProfile"],
            id="no AppArmor",
        ),
        pytest.param(
            (*_CONTEXT, "seLinuxOptions"),
            {"type": "spc_t"},
            ["containers[c].securityContext.seLinuxOptions"],
            id="another type of SELinux",
        ),
        pytest.param(
            (*_CONTEXT, "windowsOptions"),
            {"hostProcess": True},
            ["containers[c].securityContext.windowsOptions.hostProcess"],
            id="a process of a Windows node",
        ),
        pytest.param(
            (*_CONTEXT, "privileged"),
            True,
            ["containers[c].securityContext.privileged"],
            id="privileged",
        ),
        pytest.param(
            (*_CONTEXT, "allowPrivilegeEscalation"),
            None,
            ["containers[c].securityContext.allowPrivilegeEscalation"],
            id="escalation is not ruled out",
        ),
        pytest.param(
            (*_CONTEXT, "capabilities"),
            {"drop": ["ALL"], "add": ["NET_ADMIN"]},
            ["containers[c].securityContext.capabilities.add"],
            id="a capability is added",
        ),
        pytest.param(
            (*_CONTEXT, "capabilities"),
            {},
            ["containers[c].securityContext.capabilities.drop"],
            id="capabilities are kept",
        ),
        pytest.param(
            (*_CONTEXT, "procMount"),
            "Unmasked",
            ["containers[c].securityContext.procMount"],
            id="the whole of /proc",
        ),
        pytest.param(
            (*_C, "ports"), [{"hostPort": 80}], ["containers[c].ports"], id="a port of the node"
        ),
        pytest.param(
            (*_C, "livenessProbe"),
            {"httpGet": {"host": "10.0.0.1"}},
            ["containers[c].livenessProbe.host"],
            id="a probe of another address",
        ),
    ],
)
def test_a_violation_is_found(path: tuple[Any, ...], value: Any, found: list[str]) -> None:
    spec = copy.deepcopy(GOOD)
    into: Any = spec
    for part in path[:-1]:
        into = into[part]
    if path:
        into[path[-1]] = value
    assert violations(spec) == found

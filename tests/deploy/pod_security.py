"""The Pod Security Standard "restricted", field by field.

Source: kubernetes v1.36 ``pod-security-admission/policy``, the checks of the levels baseline and
restricted. The sandbox keeps the labels of namespaces and does not enforce them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Fields = dict[str, Any]

_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
_SECCOMP = ("RuntimeDefault", "Localhost")
_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
_SELINUX = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")


def violations(spec: Fields, annotations: Fields | None = None) -> list[str]:
    """Return what keeps a pod out of a restricted namespace, as paths of fields."""
    containers = [
        (f"{kind}[{each['name']}]", each)
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for each in spec.get(kind, ())
    ]
    found = [*_of_pod(spec, annotations or {})]
    for path, container in containers:
        found += [f"{path}.{fault}" for fault in _of_container(container, spec)]
    return found


def _of_pod(spec: Fields, annotations: Fields) -> Iterator[str]:
    context = spec.get("securityContext") or {}
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name))
    for volume in spec.get("volumes", ()):
        if not _VOLUMES & volume.keys():
            yield f"volumes[{volume['name']}]"
    yield from (f"securityContext.{fault}" for fault in _of_context(context))
    for sysctl in context.get("sysctls", ()):
        if sysctl["name"] not in _SYSCTLS:
            yield f"securityContext.sysctls[{sysctl['name']}]"
    if any("apparmor" in name and value == "unconfined" for name, value in annotations.items()):
        yield "annotations"


def _of_context(context: Fields) -> Iterator[str]:
    """Yield the faults that a context of a pod and of a container can have alike."""
    if context.get("runAsUser") == 0:
        yield "runAsUser"
    if context.get("runAsNonRoot") is False:
        yield "runAsNonRoot"
    if (context.get("seccompProfile") or {"type": _SECCOMP[0]})["type"] not in _SECCOMP:
        yield "seccompProfile"
    if (context.get("appArmorProfile") or {}).get("type") == "Unconfined":
        yield "appArmorProfile"
    linux = context.get("seLinuxOptions") or {}
    if linux.get("type", "") not in _SELINUX or linux.get("user") or linux.get("role"):
        yield "seLinuxOptions"
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield "windowsOptions.hostProcess"


def _of_container(container: Fields, spec: Fields) -> Iterator[str]:
    context = container.get("securityContext") or {}
    of_pod = spec.get("securityContext") or {}
    capabilities = context.get("capabilities") or {}
    yield from (f"securityContext.{fault}" for fault in _of_context(context))
    if context.get("privileged"):
        yield "securityContext.privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield "securityContext.allowPrivilegeEscalation"
    if "ALL" not in capabilities.get("drop", ()):
        yield "securityContext.capabilities.drop"
    if set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield "securityContext.capabilities.add"
    if context.get("procMount", "Default") != "Default":
        yield "securityContext.procMount"
    if not (context.get("runAsNonRoot") or of_pod.get("runAsNonRoot")):
        yield "securityContext.runAsNonRoot"
    if not (context.get("seccompProfile") or of_pod.get("seccompProfile")):
        yield "securityContext.seccompProfile"
    if any(port.get("hostPort") for port in container.get("ports", ())):
        yield "ports"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        handler = container.get(probe) or {}
        if any((handler.get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
            yield f"{probe}.host"

"""Defaults of pods and pod templates (kubernetes v1.36 pkg/apis/core/v1/defaults.go)."""

from __future__ import annotations

from moorage.api.quantity import canonical
from moorage.kinds.fields import Default, defaults
from moorage.kinds.pod.containers import container_totals
from moorage.kinds.tree import (
    Json,
    attach,
    child,
    containers,
    fill,
    fill_empty,
    objects,
    text,
)
from moorage.kinds.values.quantities import (
    NANO_PER_MILLI,
)
from moorage.kinds.volumes.persistent_volumes import AZURE_DISK, SOURCE_DEFAULTS, default_claim_spec

# Permission bits of files in a volume when a manifest does not say: octal 0644.
DEFAULT_FILE_MODE = 0o644

_HUGEPAGES = "hugepages-"
# Resources that spec.resources may hold (pod-level resources).
_POD_LEVEL = frozenset({"cpu", "memory"})
_PROBE = (
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
)


def default_pod(obj: Json) -> None:
    """Default a pod in place."""
    spec = attach(obj, "spec")
    default_pod_spec(spec)
    for container in containers(spec):
        _requests_from_limits(container)
    if spec.get("resources") is not None:
        _default_pod_level(spec)
    fill(spec, {"enableServiceLinks": True})
    default_pod_status(obj)


def default_pod_status(obj: Json) -> None:
    """Default the status of a pod in place."""
    pod_status = attach(obj, "status")
    fill_empty(pod_status, {"phase": "Pending"})


def default_template(owner_spec: Json) -> None:
    """Default the pod template of a workload's spec in place."""
    default_pod_spec(attach(attach(owner_spec, "template"), "spec"))


def default_pod_spec(spec: Json) -> None:
    """Fill in the defaults that pods and pod templates share."""
    fill_empty(
        spec,
        {
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
        },
    )
    fill(spec, {"terminationGracePeriodSeconds": 30})
    attach(spec, "securityContext")
    _mirror_service_account(spec)
    for container in containers(spec):
        _default_container(container)
        if spec.get("hostNetwork"):
            _host_ports(container)
    for volume in objects(spec, "volumes"):
        default_volume(volume)


def image_pull_policy(image: str) -> str:
    """Default pull policy of an image: Always for the tag latest or no tag."""
    name, at, _ = image.partition("@")
    if at:
        return "IfNotPresent"
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _mirror_service_account(spec: Json) -> None:
    # serviceAccount is the deprecated name of the same field; the server keeps both equal.
    name = text(spec, "serviceAccountName") or text(spec, "serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _default_container(container: Json) -> None:
    fill_empty(
        container,
        {
            "imagePullPolicy": image_pull_policy(text(container, "image")),
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        },
    )
    attach(container, "resources")
    for port in objects(container, "ports"):
        fill_empty(port, {"protocol": "TCP"})
    for variable in objects(container, "env"):
        _default_field_source(child(variable, "valueFrom"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            _default_probe(container[name])
    for name in ("postStart", "preStop"):
        _default_http_get(child(container, "lifecycle", name))
    # The gate ContainerStopSignals is off by default in 1.36, which drops the field.
    child(container, "lifecycle").pop("stopSignal", None)


def _default_field_source(source: Json) -> None:
    if source.get("fieldRef") is not None:
        fill_empty(source["fieldRef"], {"apiVersion": "v1"})
    if source.get("resourceFieldRef") is not None:
        fill(source["resourceFieldRef"], {"divisor": "0"})


def _default_probe(probe: Json) -> None:
    for name, value in _PROBE:
        if not probe.get(name):
            probe[name] = value
    _default_http_get(probe)
    if probe.get("grpc") is not None:
        fill(probe["grpc"], {"service": ""})


def _default_http_get(handler: Json) -> None:
    if handler.get("httpGet") is not None:
        fill_empty(handler["httpGet"], {"path": "/", "scheme": "HTTP"})


def _host_ports(container: Json) -> None:
    for port in objects(container, "ports"):
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]


def _requests_from_limits(container: Json) -> None:
    limits = child(container, "resources", "limits")
    if limits:
        fill(attach(container["resources"], "requests"), limits)


def _default_pod_level(spec: Json) -> None:
    """Fill in pod-level requests from the containers' requests, then from the limits.

    Notes
    -----
    kubernetes v1.36 pkg/apis/core/v1/defaults.go, defaultHugePagePodLimits and defaultPodRequests.
    """
    resources = spec["resources"]
    limits = attach(resources, "limits")
    for name, total in _aggregate(spec, "limits").items():
        if name.startswith(_HUGEPAGES):
            limits.setdefault(name, total)
    if not limits:
        del resources["limits"]
        return
    requests = dict(child(resources, "requests"))
    for name, total in _aggregate(spec, "requests").items():
        if name in _POD_LEVEL:
            requests.setdefault(name, total)
    for name, total in limits.items():
        if name in _POD_LEVEL or name.startswith(_HUGEPAGES):
            requests.setdefault(name, total)
    if requests:
        resources["requests"] = requests


def _aggregate(spec: Json, which: str) -> dict[str, str]:
    total = container_totals(spec, which)
    return {name: format_nano(nano, name) for name, nano in sorted(total.items())}


def format_nano(nano: int, name: str) -> str:
    """Return nano units as a quantity: binary suffixes for memory and the like."""
    if name == "memory" or name.startswith((_HUGEPAGES, "ephemeral-storage")):
        whole, rest = divmod(nano, 10**9)
        if not rest:
            for suffix, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
                if whole and whole % size == 0:
                    return canonical(f"{whole // size}{suffix}")
    return canonical(f"{-(-nano // NANO_PER_MILLI)}m")


def default_volume(volume: Json) -> None:
    """Default a pod volume in place; a volume without a source is an emptyDir."""
    sources = [key for key in volume if key != "name"]
    if not sources:
        volume["emptyDir"] = {}
        return
    for key in sources:
        change = _VOLUME_DEFAULTS.get(key)
        if change is not None and isinstance(volume[key], dict):
            change(volume[key])


def _files(source: Json) -> None:
    fill(source, {"defaultMode": DEFAULT_FILE_MODE})
    for entry in objects(source, "items"):
        _default_field_source(entry)
    for projection in objects(source, "sources"):
        if projection.get("serviceAccountToken") is not None:
            fill(projection["serviceAccountToken"], {"expirationSeconds": 3600})
        for entry in objects(projection, "downwardAPI", "items"):
            _default_field_source(entry)


def _image(source: Json) -> None:
    fill_empty(source, {"pullPolicy": image_pull_policy(text(source, "reference"))})


def _ephemeral(source: Json) -> None:
    template = source.get("volumeClaimTemplate")
    if isinstance(template, dict):
        default_claim_spec(attach(template, "spec"))


_VOLUME_DEFAULTS: dict[str, Default] = {
    **dict.fromkeys(("secret", "configMap", "downwardAPI", "projected"), _files),
    "hostPath": defaults(unset={"type": ""}),
    "image": _image,
    "ephemeral": _ephemeral,
    "azureDisk": defaults(unset=AZURE_DISK),
    **{source: defaults(empty=given) for source, given in SOURCE_DEFAULTS.items()},
}

"""Node: registered with its status by a node agent or kubelet.

Mirrors kubernetes v1.36 pkg/apis/core/validation (ValidateNode, ValidateNodeUpdate).
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.names import label_value_faults
from moorage.apiserver.kind import FieldError, Obj, forbidden
from moorage.apiserver.kinds.cells import AGE, NAME, NONE, UNKNOWN, column, is_true, wide
from moorage.apiserver.kinds.fields import defaults, named, one_of, quantities, rules, selectable
from moorage.apiserver.kinds.quantities import check_resource_list
from moorage.apiserver.kinds.selectors import TAINT_EFFECTS, label_name
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, child, condition, items, objects, text

_ROLE_PREFIX = "node-role.kubernetes.io/"
_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def _default_allocatable(obj: Json) -> None:
    """Allocatable is the whole capacity unless the node states it."""
    status = obj["status"]
    if status.get("capacity") and status.get("allocatable") is None:
        status["allocatable"] = dict(status["capacity"])


_taint = rules(
    ("key", label_name),
    ("value", named(label_value_faults)),
    ("effect", one_of(*TAINT_EFFECTS, empty="required")),
)


def _taints(taints: list[Json] | None, field: str) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints or ()):
        where, pair = f"{field}[{index}]", (text(taint, "key"), text(taint, "effect"))
        errors += _taint(taint, where)
        if pair in seen:
            detail = "taints must be unique by key and effect pair"
            errors.append(FieldError("FieldValueDuplicate", where, taint, detail))
        seen.add(pair)
    return errors


_status = rules(("status.capacity status.allocatable", check_resource_list))


def _change(new: Obj, old: Obj) -> list[FieldError]:
    errors = []
    before, cidrs = text(old, "spec", "providerID"), items(old, "spec", "podCIDRs")
    if before and before != text(new, "spec", "providerID"):
        detail = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden("spec.providerID", detail))
    if cidrs and cidrs != items(new, "spec", "podCIDRs"):
        detail = 'node updates may not change podCIDR except from "" to valid'
        errors.append(forbidden("spec.podCIDRs", detail))
    return errors


def _readiness(obj: Obj) -> str:
    ready = "Ready" if is_true(obj, "Ready") else "NotReady"
    shown = "Unknown" if condition(obj, "Ready") is None else ready
    closed = child(obj, "spec").get("unschedulable") is True
    return f"{shown},SchedulingDisabled" if closed else shown


def _roles(obj: Obj) -> str:
    roles = set()
    for key, value in child(obj, "metadata", "labels").items():
        if key.startswith(_ROLE_PREFIX) and key != _ROLE_PREFIX:
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == "kubernetes.io/role" and value:
            roles.add(str(value))
    return ",".join(sorted(roles))


def _address(obj: Obj, kind: str) -> str:
    found = (each for each in objects(obj, "status", "addresses") if each.get("type") == kind)
    return next((text(each, "address") for each in found), NONE)


_GONE = {
    "configSource": "the feature is removed",
    "externalID": "this field is deprecated, and is unused by Kubernetes",
}


def _warn(obj: Obj) -> list[str]:
    given = child(obj, "spec")
    return [f"spec.{name}: {told}" for name, told in _GONE.items() if given.get(name)]


_INFO_PATH = "status.nodeInfo."

KINDS = (
    ServedKind(
        resource=resources.NODES,
        acted_on_by="the scheduler, node agents, the node life controller",
        warn=_warn,
        columns=(
            NAME,
            column("Status", _readiness, "Whether the node is ready and takes pods"),
            column("Roles", _roles, "Roles given by labels", empty=NONE),
            AGE,
            column("Version", f"{_INFO_PATH}kubeletVersion", "Version of the kubelet"),
            wide("Internal-IP", lambda obj: _address(obj, "InternalIP"), "First internal address"),
            wide("External-IP", lambda obj: _address(obj, "ExternalIP"), "First external address"),
            wide("OS-Image", f"{_INFO_PATH}osImage", "Operating system", empty=UNKNOWN),
            wide(
                "Kernel-Version",
                f"{_INFO_PATH}kernelVersion",
                "Version of the kernel",
                empty=UNKNOWN,
            ),
            wide(
                "Container-Runtime",
                f"{_INFO_PATH}containerRuntimeVersion",
                "Container runtime and its version",
                empty=UNKNOWN,
            ),
        ),
        defaults=defaults(
            quantities("status.capacity", "status.allocatable"),
            _default_allocatable,
            unset={
                "spec": {},
                "status.daemonEndpoints.kubeletEndpoint.Port": 0,
                **{f"{_INFO_PATH}{name}": "" for name in _INFO},
            },
        ),
        fields=selectable(
            more={
                "spec.unschedulable": lambda obj: (
                    "true" if child(obj, "spec").get("unschedulable") is True else "false"
                )
            }
        ),
        keeps_status=True,
        rules=rules(("spec.taints", _taints), _status),
        change=_change,
        check_status=lambda new, old: _status(new, ""),
    ),
)

"""Node: registered with its status by a node agent or kubelet.

Mirrors kubernetes v1.36 pkg/apis/core/validation (ValidateNode, ValidateNodeUpdate).
"""

from __future__ import annotations

import msgspec

from moorage.api import resources
from moorage.api.names import label_value_faults
from moorage.kinds.cells import AGE, NAME, NONE, UNKNOWN, column, is_true, wide
from moorage.kinds.fields import defaults, duplicates, one_of, rules, selectable
from moorage.kinds.kind import FieldError, Obj, duplicate, forbidden, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, condition, items, objects, strings, text
from moorage.kinds.values.addresses import check_network, network_of
from moorage.kinds.values.quantities import check_amount
from moorage.kinds.values.selectors import TAINT_EFFECTS, label_name

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


def _agree_on_ranges(obj: Json) -> None:
    """Make ``podCIDR`` and the first of ``podCIDRs`` agree; where both are sent, the first wins.

    Notes
    -----
    kubernetes v1.36 pkg/apis/core/v1/conversion.go, Convert_v1_NodeSpec_To_core_NodeSpec.
    """
    spec = obj["spec"]
    first, listed = text(spec, "podCIDR"), strings(spec, "podCIDRs")
    if first and listed[:1] != [first]:
        spec["podCIDRs"] = [first]
    elif listed and not first:
        spec["podCIDR"] = listed[0]


def _value(value: str | None, field: str) -> list[FieldError]:
    faults = label_value_faults(value or "")
    return [invalid(field, value, ";".join(faults))] if faults else []


_taint = rules(
    ("key", label_name),
    ("value", _value),
    ("effect", one_of(*TAINT_EFFECTS, empty="required")),
)


def _taints(spec: Json, field: str) -> list[FieldError]:
    # The path is upstream's.
    return _each_taint(objects(spec, "taints"), "metadata.taints")


def _each_taint(taints: list[Json], field: str) -> list[FieldError]:
    errors = []
    pairs: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where, pair = f"{field}[{index}]", (text(taint, "key"), text(taint, "effect"))
        errors += _taint(taint, where)
        if pair in pairs:
            detail = "taints must be unique by key and effect pair"
            errors.append(FieldError("FieldValueDuplicate", where, taint, detail))
        pairs.add(pair)
    return errors


def _ranges(ranges: list[str] | None, field: str) -> list[FieldError]:
    """Check the ranges of addresses of a node's pods: at most one of each family."""
    errors, families = list[FieldError](), list[int]()
    for index, each in enumerate(ranges or ()):
        network = network_of(each)
        errors += check_network(each, f"{field}[{index}]")
        families += [] if network is None else [network.version]
    if len(set(families)) < len(families):
        detail = "may specify no more than one CIDR for each IP family"
        errors.append(invalid(field, ranges, detail))
    return errors + duplicates(ranges or (), lambda place: f"{field}[{place}]")


class _Controller(msgspec.Struct, frozen=True):
    controller: bool | None = None


class _Signature(msgspec.Struct, frozen=True, rename="camel"):
    pod_controller: _Controller | None = None


class _AvoidedPod(msgspec.Struct, frozen=True, rename="camel"):
    pod_signature: _Signature = _Signature()


class _AvoidedPods(msgspec.Struct, frozen=True, rename="camel"):
    prefer_avoid_pods: list[_AvoidedPod] = []


_AVOIDED_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def _avoided_pods(value: str | None, where: str) -> list[FieldError]:
    """Check the pods that a node would rather not have (ValidateAvoidPodsInNodeAnnotations)."""
    if not value:
        return []
    field = f"{where}.AvoidPods"
    try:
        preferences = msgspec.json.decode(value, type=_AvoidedPods)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        return [invalid(field, _AVOIDED_PODS, str(error))]
    errors: list[FieldError] = []
    for index, entry in enumerate(preferences.prefer_avoid_pods):
        place = f"{where}.preferAvoidPods[{index}].PodSignature"
        controller = entry.pod_signature.pod_controller
        if controller is None:
            errors.append(required(place))
        elif controller.controller is not True:
            detail = "must point to a controller"
            errors.append(invalid(f"{place}.PodController.Controller", False, detail))
    return errors


_OLD_TAINTS = "scheduler.alpha.kubernetes.io/taints"


def _annotations(obj: Obj, field: str) -> list[FieldError]:
    """Check annotations of old, which nothing reads any more."""
    annotations, where = child(obj, "metadata", "annotations"), "metadata.annotations"
    errors = _avoided_pods(annotations.get(_AVOIDED_PODS), where)
    if value := annotations.get(_OLD_TAINTS):
        try:
            taints = msgspec.json.decode(value, type=list[dict[str, str | None]])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            return [*errors, invalid(where, _OLD_TAINTS, str(error))]
        errors += _each_taint(taints, f"{where}.{_OLD_TAINTS}")
    return errors


def _status(obj: Obj, field: str) -> list[FieldError]:
    errors = []
    for part in ("capacity", "allocatable"):
        for name, value in child(obj, "status", part).items():
            errors += check_amount(name, value, f"status.{part}.{name}")
    return errors


def _changed_status(new: Obj) -> list[FieldError]:
    errors, addresses = [], set[tuple[str, str]]()
    for index, each in enumerate(objects(new, "status", "addresses")):
        address = (text(each, "type"), text(each, "address"))
        if address in addresses:
            errors.append(duplicate(f"status.addresses[{index}]", each))
        addresses.add(address)
    return errors


def _change(new: Obj, old: Obj) -> list[FieldError]:
    errors = _changed_status(new)
    if text(new, "spec", "externalID") != text(old, "spec", "externalID"):
        errors.append(forbidden("spec.externalID", "may not be updated"))
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
            _default_allocatable,
            _agree_on_ranges,
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
        rules=rules(_annotations, ("spec", _taints), _status, ("spec.podCIDRs", _ranges)),
        change=_change,
        check_status=lambda new, old: _status(new, "") + _changed_status(new),
    ),
)

"""RuntimeClass, and the fields that a class adds to its pods.

Place in the flow: a row of `moorage.apiserver.kinds.registry`; `pod_admission` calls
`admit_runtime_class`. Mirrors kubernetes v1.36 pkg/apis/node/validation and
plugin/pkg/admission/runtimeclass/admission.go.
"""

from __future__ import annotations

from typing import Any

from moorage.api.names import dns_label_faults
from moorage.api.resources import ResourceType
from moorage.apiserver import status
from moorage.apiserver.built_in import resource_type
from moorage.apiserver.kind import Column, Context, FieldError, Obj, invalid, required
from moorage.apiserver.kinds.cells import AGE, NAME, age, name_of
from moorage.apiserver.kinds.check_resources import check_quantity
from moorage.apiserver.kinds.check_scheduling import check_tolerations
from moorage.apiserver.kinds.metadata import check_labels, immutable
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, attach, child, objects, text

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS = (
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


def admit_runtime_class(pod: Obj, ctx: Context, resource: ResourceType) -> None:
    """Add the overhead, node selector and tolerations of a pod's class, in place.

    Raises
    ------
    moorage.apiserver.status.StatusError
        403: the class does not exist, or the pod contradicts the class.
    """
    spec = attach(pod, "spec")
    class_name = text(spec, "runtimeClassName")
    if not class_name and not spec.get("overhead"):
        return
    found = ctx.lookup("runtimeclasses", None, class_name) if class_name else None
    if class_name and found is None:
        why = f'pod rejected: RuntimeClass "{class_name}" not found'
        raise status.forbidden(resource, name_of(pod), why)
    overhead = child(found or {}, "overhead", "podFixed")
    given = spec.get("overhead")
    if given and given != overhead:
        raise status.forbidden(resource, name_of(pod), _MISMATCH if overhead else _WITHOUT_CLASS)
    if overhead:
        spec["overhead"] = dict(overhead)
    if found is not None:
        _add_scheduling(pod, child(found, "scheduling"), resource)


def _add_scheduling(pod: Obj, scheduling: Json, resource: ResourceType) -> None:
    spec = pod["spec"]
    chosen, wanted = child(spec, "nodeSelector"), child(scheduling, "nodeSelector")
    for key, value in wanted.items():
        if chosen.get(key, value) != value:
            why = (
                f"pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {chosen[key]}"
            )
            raise status.forbidden(resource, name_of(pod), why)
    if wanted:
        spec["nodeSelector"] = chosen | wanted
    tolerations = objects(spec, "tolerations")
    more = [each for each in objects(scheduling, "tolerations") if each not in tolerations]
    if more:
        spec["tolerations"] = tolerations + [dict(each) for each in more]


def _check(new: Obj, old: Obj | None) -> list[FieldError]:
    handler = text(new, "handler")
    errors = [invalid("handler", handler, fault) for fault in dns_label_faults(handler)]
    if not handler:
        errors = [required("handler")]
    if old is not None and handler != text(old, "handler"):
        errors.append(immutable("handler", handler))
    for name, value in child(new, "overhead", "podFixed").items():
        errors += check_quantity(value, f"overhead.podFixed[{name}]")
    scheduling = child(new, "scheduling")
    errors += check_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    tolerations = objects(scheduling, "tolerations")
    return errors + check_tolerations(tolerations, "scheduling.tolerations")


def _cells(obj: Obj, now_ns: int) -> list[Any]:
    return [name_of(obj), text(obj, "handler"), age(obj, now_ns)]


RUNTIME_CLASS = ServedKind(
    resource=resource_type("node.k8s.io/v1", "runtimeclasses"),
    columns=(NAME, Column("Handler", description="Configuration that the runtime should use"), AGE),
    cells=_cells,
    check=_check,
    acted_on_by="admission of pods",
)

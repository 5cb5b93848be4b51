"""RuntimeClass, and the fields that a class adds to its pods.

`pod.admission` calls `admit_runtime_class`. Mirrors kubernetes v1.36 pkg/apis/node/validation and
plugin/pkg/admission/runtimeclass/admission.go.
"""

from __future__ import annotations

from moorage.api.names import dns_label_faults
from moorage.api.resources import ResourceType
from moorage.kinds import status
from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import AGE, NAME, column
from moorage.kinds.fields import name_rule, rules, unchanging
from moorage.kinds.kind import Context, FieldError, Obj, duplicate
from moorage.kinds.metadata import check_labels
from moorage.kinds.pod.spec import check_tolerations
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, name_or_prefix, objects, text
from moorage.kinds.values.quantities import check_limits
from moorage.kinds.values.warnings import of_labels

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS = (
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


def admit_runtime_class(pod: Obj, ctx: Context, resource: ResourceType) -> None:
    """Add the overhead, node selector and tolerations of its class to a pod, in place.

    Asked about pods that name a class or have an overhead.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: the class does not exist, or the pod contradicts the class.
    """
    spec = attach(pod, "spec")
    class_name = text(spec, "runtimeClassName")
    runtime_class = ctx.lookup("runtimeclasses", None, class_name) if class_name else None
    if class_name and runtime_class is None:
        why = f'pod rejected: RuntimeClass "{class_name}" not found'
        raise status.forbidden(resource, name_or_prefix(pod), why)
    overhead = child(runtime_class or {}, "overhead", "podFixed")
    given = spec.get("overhead")
    if given and given != overhead:
        raise status.forbidden(
            resource, name_or_prefix(pod), _MISMATCH if overhead else _WITHOUT_CLASS
        )
    if overhead:
        spec["overhead"] = dict(overhead)
    if runtime_class is not None:
        _add_scheduling(pod, child(runtime_class, "scheduling"), resource)


def _add_scheduling(pod: Obj, scheduling: Json, resource: ResourceType) -> None:
    spec = pod["spec"]
    chosen, wanted = child(spec, "nodeSelector"), child(scheduling, "nodeSelector")
    for key, value in wanted.items():
        if chosen.get(key, value) != value:
            why = (
                f"pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {chosen[key]}"
            )
            raise status.forbidden(resource, name_or_prefix(pod), why)
    if wanted:
        spec["nodeSelector"] = chosen | wanted
    tolerations = objects(spec, "tolerations")
    more = [each for each in objects(scheduling, "tolerations") if each not in tolerations]
    if more:
        spec["tolerations"] = tolerations + [dict(each) for each in more]


def _unique(tolerations: list[Json] | None, where: str) -> list[FieldError]:
    """Refuse a toleration that comes twice; how many seconds it lasts makes no difference."""
    keys: set[tuple[str, ...]] = set()
    errors = []
    for index, each in enumerate(tolerations or ()):
        key = tuple(text(each, name) for name in ("key", "operator", "value", "effect"))
        if key in keys:
            errors.append(duplicate(f"{where}[{index}]", each))
        keys.add(key)
    return errors


def _warn(obj: Obj) -> list[str]:
    chosen = child(obj, "scheduling", "nodeSelector")
    return of_labels([("scheduling.nodeSelector", key) for key in chosen], with_name=False)


KINDS = (
    ServedKind(
        resource=resource_type("node.k8s.io/v1", "runtimeclasses"),
        needs_version=True,
        acted_on_by="admission of pods",
        created_by_put=True,
        columns=(
            NAME,
            column("Handler", "handler", "Configuration that the runtime should use"),
            AGE,
        ),
        rules=rules(
            ("handler", name_rule(dns_label_faults, empty="required")),
            lambda obj, where: check_limits(child(obj, "overhead").get("podFixed"), "overhead"),
            ("scheduling.nodeSelector", check_labels),
            ("scheduling.tolerations", check_tolerations),
            ("scheduling.tolerations", _unique),
        ),
        change=unchanging("handler"),
        warn=_warn,
    ),
)

"""The kinds of ``scheduling.k8s.io/v1alpha2``: PodGroup and Workload.

Place in the flow: one table of `moorage.apiserver.kinds.registry`. Mirrors kubernetes v1.36
pkg/apis/scheduling/validation and pkg/registry/scheduling. The kinds are served without a feature
gate, since a scheduler without the gate does not read them.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.api.names import dns_label_faults, qualified_name_faults
from moorage.api.resources import ResourceType
from moorage.apiserver import status
from moorage.apiserver.kind import (
    Column,
    Context,
    FieldError,
    Obj,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.cells import AGE, NAME, NONE, age, name_of
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, attach, child, condition, number, objects, text

_GROUP_COLUMNS = (
    NAME,
    Column("Policy", description="How its pods are placed: one by one, or at least so many"),
    Column("Scheduled", description="Whether it was scheduled, or why not"),
    AGE,
)
_WORKLOAD_COLUMNS = (
    NAME,
    Column("Templates", "integer", description="How many kinds of pod groups it has"),
    AGE,
)
_MODES = ("Pod", "PodGroup")
_TEMPLATES_MAX = 8
_IMMUTABLE = "field is immutable"


def _policy(spec: Json) -> str:
    policy = child(spec, "schedulingPolicy")
    if "gang" in policy:
        return f"gang ({number(policy, 'gang', 'minCount')})"
    return "basic" if "basic" in policy else NONE


def _group_cells(obj: Json, now_ns: int) -> list[Any]:
    found = condition(obj, "PodGroupScheduled")
    shown = NONE if found is None else text(found, "status")
    if shown == "False" and found is not None:
        shown = f"False ({text(found, 'reason')})"
    return [name_of(obj), _policy(child(obj, "spec")), shown, age(obj, now_ns)]


def _workload_cells(obj: Json, now_ns: int) -> list[Any]:
    templates = objects(child(obj, "spec"), "podGroupTemplates")
    return [name_of(obj), len(templates), age(obj, now_ns)]


def _default_group(obj: Json) -> None:
    _default_mode(attach(obj, "spec"))


def _default_workload(obj: Json) -> None:
    for template in objects(attach(obj, "spec"), "podGroupTemplates"):
        _default_mode(template)


def _default_mode(spec: Json) -> None:
    spec.setdefault("disruptionMode", "Pod")


def _prepare_group(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Fill in the priority, as priority admission does.

    Raises
    ------
    moorage.apiserver.status.StatusError
        403: there is no such priority class.
    """
    spec = attach(obj, "spec")
    class_name = text(spec, "priorityClassName")
    if not class_name:
        return
    found = ctx.lookup("priorityclasses", None, class_name)
    if found is None:
        why = f"no PriorityClass with name {class_name} was found"
        raise status.forbidden(resource, name_of(obj), why)
    spec["priority"] = int(found.get("value") or 0)


def _check_group(new: Obj, old: Obj | None) -> list[FieldError]:
    errors = _check_spec(child(new, "spec"), "spec")
    if old is not None and new.get("spec") != old.get("spec"):
        errors.append(invalid("spec", new.get("spec"), _IMMUTABLE))
    return errors


def _check_workload(new: Obj, old: Obj | None) -> list[FieldError]:
    spec = child(new, "spec")
    templates = objects(spec, "podGroupTemplates")
    errors: list[FieldError] = []
    if not templates:
        errors.append(required("spec.podGroupTemplates", "must have at least one item"))
    if len(templates) > _TEMPLATES_MAX:
        detail = f"must have at most {_TEMPLATES_MAX} items"
        errors.append(forbidden("spec.podGroupTemplates", detail))
    for index, template in enumerate(templates):
        where = f"spec.podGroupTemplates[{index}]"
        name = text(template, "name")
        errors += [invalid(f"{where}.name", name, fault) for fault in dns_label_faults(name)]
        errors += _check_spec(template, where)
    if old is not None:
        before = child(old, "spec").get("podGroupTemplates")
        if spec.get("podGroupTemplates") != before:
            errors.append(
                invalid("spec.podGroupTemplates", spec.get("podGroupTemplates"), _IMMUTABLE)
            )
    return errors


def _check_spec(spec: Json, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    policy, field = child(spec, "schedulingPolicy"), f"{where}.schedulingPolicy"
    given = [each for each in ("basic", "gang") if each in policy]
    if not given:
        errors.append(required(field, "must specify one of: `basic`, `gang`"))
    elif len(given) > 1:
        errors.append(invalid(field, policy, "must specify exactly one of: `basic`, `gang`"))
    elif given == ["gang"]:
        least = number(policy, "gang", "minCount")
        if least < 1:
            detail = "must be greater than or equal to 1"
            errors.append(invalid(f"{field}.gang.minCount", least, detail))
    mode = text(spec, "disruptionMode")
    if mode not in _MODES:
        errors.append(not_supported(f"{where}.disruptionMode", mode, _MODES))
    topology = objects(child(spec, "schedulingConstraints"), "topology")
    if len(topology) > 1:
        detail = "must have at most 1 item"
        errors.append(forbidden(f"{where}.schedulingConstraints.topology", detail))
    for index, each in enumerate(topology):
        key, at = text(each, "key"), f"{where}.schedulingConstraints.topology[{index}].key"
        errors += [invalid(at, key, fault) for fault in qualified_name_faults(key)]
    return errors


KINDS = (
    ServedKind(
        resource=resources.POD_GROUPS,
        acted_on_by="the scheduler, the pod group controller",
        columns=_GROUP_COLUMNS,
        cells=_group_cells,
        defaults=_default_group,
        on_create=_prepare_group,
        has_status=True,
        counts_generations=True,
        check=_check_group,
    ),
    ServedKind(
        resource=resources.WORKLOADS,
        acted_on_by="the scheduler",
        columns=_WORKLOAD_COLUMNS,
        cells=_workload_cells,
        defaults=_default_workload,
        counts_generations=True,
        check=_check_workload,
    ),
)

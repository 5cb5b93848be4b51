"""PodGroup, Workload and CompositePodGroup of ``scheduling.k8s.io``, as 1.37 serves them.

Mirrors kubernetes v1.37 ``staging/src/k8s.io/api/scheduling``, ``v1beta1/types.go`` and
``v1alpha3/types.go``, whose tags are the rules. PodGroup and Workload stay stored in ``v1alpha2``,
so that a data directory serves 1.36 and 1.37. The field preemptionPolicy is refused as by 1.37,
which has its gate off, and so are the composite templates of a Workload. CompositePodGroup, which
only v1alpha3 has, is served as with its gate CompositePodGroup.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.api.resources import ResourceType
from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import AGE, NAME, NONE, column
from moorage.kinds.fields import (
    Rule,
    defaults,
    each,
    if_present,
    name_rule,
    needed,
    rules,
    unchanging,
    value_at,
    within,
)
from moorage.kinds.kind import FieldError, Obj, Translation, forbidden, required
from moorage.kinds.metadata import immutable
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, condition, number, objects, text
from moorage.kinds.workloads import pod_groups as of_1_36

VERSIONS = ("v1beta1", "v1alpha3")
_MODES = {"Pod": "single", "PodGroup": "all"}
_STORED_MODES = {form: mode for mode, form in _MODES.items()}
_COMPOSITE = "not implemented: create the composite groups and their pod groups themselves"


def _gated(gate: str) -> Rule:
    def check(value: Any, where: str) -> list[FieldError]:
        return [] if value is None else [forbidden(where, f"needs the feature gate {gate}")]

    return check


_name = name_rule(dns_label_faults, empty="refused")
_group = rules(
    ("schedulingPolicy", of_1_36.one_member("basic", "gang")),
    ("schedulingPolicy.gang", if_present(rules(("minCount", within(1))))),
    ("schedulingConstraints.topology", of_1_36.check_topology),
    ("resourceClaims", of_1_36.check_claims),
    ("disruptionMode", if_present(of_1_36.one_member("single", "all"))),
    of_1_36.check_priority,
    ("preemptionPolicy", _gated("PodGroupPreemptionPolicy")),
)
_reference = rules(("workloadName", needed()), ("templateName", needed()))
_parent = if_present(name_rule(dns_subdomain_faults, empty="refused"))
_composite = rules(
    ("schedulingPolicy", of_1_36.one_member("basic", "gang")),
    ("schedulingPolicy.gang", if_present(rules(("minGroupCount", within(1))))),
    ("schedulingConstraints.topology", of_1_36.check_topology),
    ("disruptionMode", if_present(of_1_36.one_member("single", "all"))),
    of_1_36.check_priority,
    ("preemptionPolicy", _gated("PodGroupPreemptionPolicy")),
    ("parentCompositePodGroupName", _parent),
    ("workloadRef", _reference),
)
_UNCHANGING = "schedulingConstraints resourceClaims disruptionMode priorityClassName priority"


def _change(new: Json, old: Json, where: str, more: str = "") -> list[FieldError]:
    """Return the errors of a group or template: only the minimum of a gang may change."""
    paths = (*_UNCHANGING.split(), *more.split(), "schedulingPolicy.basic")
    changed = [
        immutable(f"{where}.{path}", value_at(new, path.split(".")))
        for path in paths
        if value_at(new, path.split(".")) != value_at(old, path.split("."))
    ]
    gangs = [child(each, "schedulingPolicy").get("gang") for each in (new, old)]
    if (gangs[0] is None) != (gangs[1] is None):
        changed.append(immutable(f"{where}.schedulingPolicy.gang", gangs[0]))
    return changed


def _changed_group(new: Obj, old: Obj) -> list[FieldError]:
    more = "workloadRef parentCompositePodGroupName"
    return _change(child(new, "spec"), child(old, "spec"), "spec", more)


def _part_of_workload(spec: Any, where: str) -> list[FieldError]:
    """Return the error of a group with a parent and without the workload that describes both."""
    spec = spec or {}
    if spec.get("parentCompositePodGroupName") is None or spec.get("workloadRef"):
        return []
    return [required(f"{where}.workloadRef", "needed by parentCompositePodGroupName")]


def _changed_composite(new: Obj, old: Obj) -> list[FieldError]:
    paths = (
        "parentCompositePodGroupName workloadRef schedulingConstraints disruptionMode "
        "priorityClassName priority schedulingPolicy.basic"
    )
    changed = unchanging(" ".join(f"spec.{path}" for path in paths.split()))(new, old)
    gangs = [child(each, "spec", "schedulingPolicy").get("gang") for each in (new, old)]
    if (gangs[0] is None) != (gangs[1] is None):
        changed.append(immutable("spec.schedulingPolicy.gang", gangs[0]))
    return changed


def _changed_workload(new: Obj, old: Obj) -> list[FieldError]:
    where = "spec.podGroupTemplates"
    changed = unchanging("spec.controllerRef")(new, old)
    before = {text(each, "name"): each for each in objects(old, "spec", "podGroupTemplates")}
    names = list[str]()
    for index, template in enumerate(objects(new, "spec", "podGroupTemplates")):
        name = text(template, "name")
        names.append(name)
        if name in before:
            changed += _change(template, before[name], f"{where}[{index}]")
        else:
            changed.append(forbidden(f"{where}[{index}]", "item may not be added"))
    gone = [name for name in before if name not in names]
    return changed + [forbidden(where, f"item {name} may not be removed") for name in gone]


def _templates(spec: Any, where: str) -> list[FieldError]:
    if (spec or {}).get("compositePodGroupTemplates"):
        return [forbidden(f"{where}.compositePodGroupTemplates", _COMPOSITE)]
    if not objects(spec or {}, "podGroupTemplates"):
        members = "`podGroupTemplates`, `compositePodGroupTemplates`"
        return [required(where, f"must specify one of: {members}")]
    return []


# -- the stored form ------------------------------------------------------------------------------


def _group_to_stored(spec: Json) -> Json:
    stored = dict(spec)
    mode, origin = stored.pop("disruptionMode", None), stored.pop("workloadRef", None)
    if mode:
        stored["disruptionMode"] = _STORED_MODES["all" if "all" in mode else "single"]
    if origin:
        names = {"workloadName": "workloadName", "templateName": "podGroupTemplateName"}
        workload = {names[key]: value for key, value in origin.items() if key in names}
        stored["podGroupTemplateRef"] = {"workload": workload}
    return stored


def _group_from_stored(spec: Json) -> Json:
    served = dict(spec)
    mode, origin = served.pop("disruptionMode", None), served.pop("podGroupTemplateRef", None)
    if mode:
        served["disruptionMode"] = {_MODES[mode]: {}}
    if origin:
        names = {"workloadName": "workloadName", "podGroupTemplateName": "templateName"}
        workload = child(origin, "workload")
        served["workloadRef"] = {names[key]: value for key, value in workload.items()}
    return served


def _converted(obj: Obj, api_version: str, *, stored: bool) -> Obj:
    """Return an object in another version; it shares what is the same."""
    convert = _group_to_stored if stored else _group_from_stored
    spec, converted = child(obj, "spec"), dict(obj) | {"apiVersion": api_version}
    if "podGroupTemplates" in spec:
        converted["spec"] = spec | {
            "podGroupTemplates": [convert(each) for each in objects(spec, "podGroupTemplates")]
        }
    elif spec:
        converted["spec"] = convert(spec)
    return converted


def _translation(stored: ResourceType, version: str) -> Translation:
    served = f"{stored.group}/{version}"
    return Translation(
        stored=stored,
        to_stored=lambda obj: _converted(obj, stored.api_version, stored=True),
        from_stored=lambda obj: _converted(obj, served, stored=False),
    )


def _kinds(version: str) -> tuple[ServedKind, ...]:
    api_version = f"scheduling.k8s.io/{version}"
    group, workload = of_1_36.KINDS
    return (
        ServedKind(
            resource=resource_type(api_version, "podgroups"),
            acted_on_by=group.acted_on_by,
            columns=group.columns,
            defaults=defaults(unset={"spec.disruptionMode": {"single": {}}}),
            admit_new=group.admit_new,
            counts_generations=True,
            rules=rules(
                ("spec", _group),
                ("spec.workloadRef", if_present(_reference)),
                ("spec.parentCompositePodGroupName", _parent),
                ("spec", _part_of_workload),
            ),
            change=_changed_group,
            translation=_translation(resources.POD_GROUPS, version),
        ),
        ServedKind(
            resource=resource_type(api_version, "workloads"),
            acted_on_by=workload.acted_on_by,
            columns=workload.columns,
            counts_generations=True,
            rules=rules(
                ("spec", _templates),
                (
                    "spec.podGroupTemplates",
                    each(rules(("name", _name), _group), unique="name", most=of_1_36.TEMPLATES_MAX),
                ),
            ),
            change=_changed_workload,
            translation=_translation(resources.WORKLOADS, version),
        ),
    )


def _composite_policy(obj: Obj) -> str:
    policy = child(obj, "spec", "schedulingPolicy")
    if "gang" in policy:
        return f"gang ({number(policy, 'gang', 'minGroupCount')})"
    return "basic" if "basic" in policy else NONE


def _composite_scheduled(obj: Obj) -> str:
    found = condition(obj, "CompositePodGroupInitiallyScheduled")
    if found is None:
        return NONE
    shown = text(found, "status")
    return f"False ({text(found, 'reason')})" if shown == "False" else shown


_COMPOSITE_GROUP = ServedKind(
    resource=resources.COMPOSITE_POD_GROUPS,
    acted_on_by="the scheduler, which refuses it",
    columns=(
        NAME,
        column("Policy", _composite_policy, "How its groups are placed, or at least how many"),
        column("Scheduled", _composite_scheduled, "Whether it was scheduled, or why not"),
        AGE,
    ),
    defaults=defaults(unset={"spec.disruptionMode": {"single": {}}}),
    admit_new=of_1_36.KINDS[0].admit_new,
    counts_generations=True,
    rules=rules(("spec", _composite)),
    change=_changed_composite,
)
KINDS = (*(kind for version in VERSIONS for kind in _kinds(version)), _COMPOSITE_GROUP)

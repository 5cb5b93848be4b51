"""PodGroup and Workload of ``scheduling.k8s.io/v1alpha2``, which 1.36 has.

Mirrors kubernetes v1.36 pkg/apis/scheduling/validation and pkg/registry/scheduling. The kinds are
served without a feature gate, since a scheduler without the gate does not read them.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.api.names import dns_label_faults, dns_subdomain_faults, qualified_name_faults
from moorage.api.resources import ResourceType
from moorage.kinds import status
from moorage.kinds.cells import AGE, NAME, NONE, column, count
from moorage.kinds.fields import (
    Rule,
    defaults,
    each,
    if_present,
    name_rule,
    one_of,
    rules,
    unchanging,
    within,
)
from moorage.kinds.kind import Context, FieldError, Obj, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, condition, name_or_prefix, number, objects, text
from moorage.kinds.values.conditions import conditions
from moorage.kinds.values.name_rules import path_segment_name

TEMPLATES_MAX = 8
_CLAIMS_MAX = 4
_PRIORITY_MAX = 1_000_000_000
_PRIORITY_DETAIL = f"must be less than or equal to {_PRIORITY_MAX}"


def _admit(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Fill in the priority, as priority admission does.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: there is no such priority class.
    """
    spec = attach(obj, "spec")
    class_name = text(spec, "priorityClassName")
    if not class_name:
        return
    found = ctx.lookup("priorityclasses", None, class_name)
    if found is None:
        why = f"no PriorityClass with name {class_name} was found"
        raise status.forbidden(resource, name_or_prefix(obj), why)
    spec["priority"] = int(found.get("value") or 0)


def one_member(*names: str) -> Rule:
    """Return the rule of a union, of whose members exactly one is given."""
    listed = ", ".join(f"`{name}`" for name in names)

    def check(value: Any, where: str) -> list[FieldError]:
        given_members = [name for name in names if (value or {}).get(name) is not None]
        if len(given_members) == 1:
            return []
        if not given_members:
            return [invalid(where, "", f"must specify one of: {listed}")]
        shown = f"{{{', '.join(given_members)}}}"
        return [invalid(where, shown, f"must specify exactly one of: {listed}")]

    return check


_one_policy = one_member("basic", "gang")


def _policy(policy: Json | None, where: str) -> list[FieldError]:
    if errors := _one_policy(policy, where):
        return errors
    gang = (policy or {}).get("gang")
    field = f"{where}.gang.minCount"
    if gang is None:
        return []
    return within(1)(gang["minCount"], field) if gang.get("minCount") else [required(field)]


_short_name = name_rule(dns_label_faults, empty="required")
_long_name = if_present(name_rule(dns_subdomain_faults, empty="refused"))
_segment = name_rule(path_segment_name, empty="required")
check_topology = each(rules(("key", name_rule(qualified_name_faults, empty="required"))), most=1)
"""Check the topologies of a group, of which there is one at most."""
check_claims = each(
    rules(
        one_member("resourceClaimName", "resourceClaimTemplateName"),
        ("name", _short_name),
        ("resourceClaimName resourceClaimTemplateName", _long_name),
    ),
    unique="name",
    most=_CLAIMS_MAX,
)
"""Check the claims of a group."""
check_priority = rules(
    ("priorityClassName", name_rule(dns_subdomain_faults)),
    ("priority", if_present(within(-(2**31), _PRIORITY_MAX, _PRIORITY_DETAIL))),
)
"""Check the priority of a group, and its class."""
_spec = rules(
    ("schedulingPolicy", _policy),
    ("disruptionMode", one_of("Pod", "PodGroup")),
    ("schedulingConstraints.topology", check_topology),
    ("resourceClaims", check_claims),
    check_priority,
)
_origin = rules(
    ("workloadName", name_rule(dns_subdomain_faults, empty="required")),
    ("podGroupTemplateName", _short_name),
)
_reference = rules(one_member("workload"), ("workload", if_present(_origin)))
_controller = rules(("apiGroup", name_rule(dns_subdomain_faults)), ("kind name", _segment))
_claim_statuses = each(rules(("resourceClaimName", _long_name)), unique="name", most=_CLAIMS_MAX)


def _status(new: Obj, old: Obj | None) -> list[FieldError]:
    status, field = child(new, "status"), "status.resourceClaimStatuses"
    errors = conditions()(status.get("conditions"), "status.conditions")
    claims = {text(each, "name") for each in objects(new, "spec", "resourceClaims")}
    for place, claim in enumerate(objects(status, "resourceClaimStatuses")):
        if text(claim, "name") not in claims:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{field}[{place}].name", text(claim, "name"), detail))
    return errors + _claim_statuses(status.get("resourceClaimStatuses"), field)


def _templates(templates: list[Json] | None, where: str) -> list[FieldError]:
    return [] if templates else [required(where, "must have at least one item")]


_template = rules(("name", _short_name), _spec)


def _policy_of(obj: Obj) -> str:
    policy = child(obj, "spec", "schedulingPolicy")
    if "gang" in policy:
        return f"gang ({number(policy, 'gang', 'minCount')})"
    return "basic" if "basic" in policy else NONE


def _scheduled(obj: Obj) -> str:
    found = condition(obj, "PodGroupInitiallyScheduled") or condition(obj, "PodGroupScheduled")
    if found is None:
        return NONE
    shown = text(found, "status")
    return f"False ({text(found, 'reason')})" if shown == "False" else shown


def _template_count(obj: Obj) -> int:
    return len(objects(obj, "spec", "podGroupTemplates"))


KINDS = (
    ServedKind(
        resource=resources.POD_GROUPS,
        acted_on_by="the scheduler, the pod group controller",
        columns=(
            NAME,
            column(
                "Policy", _policy_of, "How its pods are placed: one by one, or at least so many"
            ),
            column("Scheduled", _scheduled, "Whether it was scheduled, or why not"),
            AGE,
        ),
        defaults=defaults(unset={"spec.disruptionMode": "Pod"}),
        admit_new=_admit,
        counts_generations=True,
        rules=rules(("spec", _spec), ("spec.podGroupTemplateRef", if_present(_reference))),
        change=unchanging("spec"),
        check_status=_status,
    ),
    ServedKind(
        resource=resources.WORKLOADS,
        acted_on_by="the scheduler",
        columns=(
            NAME,
            count("Templates", _template_count, "How many kinds of pod groups it has"),
            AGE,
        ),
        defaults=defaults(unset={"spec.podGroupTemplates[].disruptionMode": "Pod"}),
        counts_generations=True,
        rules=rules(
            ("spec.podGroupTemplates", _templates),
            ("spec.podGroupTemplates", each(_template, unique="name", most=TEMPLATES_MAX)),
            ("spec.controllerRef", if_present(_controller)),
        ),
        change=unchanging("spec.controllerRef spec.podGroupTemplates"),
    ),
)

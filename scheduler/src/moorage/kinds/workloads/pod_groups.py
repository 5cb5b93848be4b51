"""PodGroup and Workload of ``scheduling.k8s.io/v1alpha2``, which 1.36 has.

Mirrors kubernetes v1.36 pkg/apis/scheduling/validation and pkg/registry/scheduling. The kinds are
served without a feature gate, since a scheduler without the gate does not read them.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.names import dns_label_faults, qualified_name_faults
from moorage.api.resources import ResourceType
from moorage.kinds import status
from moorage.kinds.cells import AGE, NAME, NONE, column, count, name_of
from moorage.kinds.fields import defaults, each, name_rule, one_of, rules, unchanging, within
from moorage.kinds.kind import Context, FieldError, Obj, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, condition, number, objects, text

_TEMPLATES_MAX = 8


def _prepare(obj: Json, ctx: Context, resource: ResourceType) -> None:
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
        raise status.forbidden(resource, name_of(obj), why)
    spec["priority"] = int(found.get("value") or 0)


def _policy(policy: Json | None, where: str) -> list[FieldError]:
    policies = [key for key in ("basic", "gang") if key in (policy or {})]
    if not policies:
        return [required(where, "must specify one of: `basic`, `gang`")]
    if len(policies) > 1:
        return [invalid(where, policy, "must specify exactly one of: `basic`, `gang`")]
    least = number(policy or {}, "gang", "minCount")
    return within(1)(least, f"{where}.gang.minCount") if policies == ["gang"] else []


_topology = each(rules(("key", name_rule(qualified_name_faults, empty="refused"))), most=1)
_spec = rules(
    ("schedulingPolicy", _policy),
    ("disruptionMode", one_of("Pod", "PodGroup")),
    ("schedulingConstraints.topology", _topology),
)


def _templates(templates: list[Json] | None, where: str) -> list[FieldError]:
    return [] if templates else [required(where, "must have at least one item")]


_template = rules(("name", name_rule(dns_label_faults, empty="refused")), _spec)


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
        on_create=_prepare,
        counts_generations=True,
        rules=rules(("spec", _spec)),
        change=unchanging("spec"),
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
            ("spec.podGroupTemplates", each(_template, most=_TEMPLATES_MAX)),
        ),
        change=unchanging("spec.podGroupTemplates"),
    ),
)

"""PodDisruptionBudget (kubernetes v1.36 pkg/apis/policy/validation)."""

from __future__ import annotations

from moorage.api import resources
from moorage.kinds.cells import AGE, NAME, column, count
from moorage.kinds.fields import amount, defaults, one_of, rules, within
from moorage.kinds.kind import FieldError, Obj, invalid
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child
from moorage.kinds.values.conditions import conditions
from moorage.kinds.values.selectors import check_label_selector


def _only_one(spec: Json, where: str) -> list[FieldError]:
    if spec.get("minAvailable") is None or spec.get("maxUnavailable") is None:
        return []
    return [invalid(where, spec, "minAvailable and maxUnavailable cannot be both set")]


_status = rules(
    ("conditions", conditions()),
    ("disruptionsAllowed currentHealthy desiredHealthy expectedPods", within(0)),
)


def _limit(obj: Obj, name: str) -> str:
    found = child(obj, "spec").get(name)
    return "N/A" if found is None else str(found)


KINDS = (
    ServedKind(
        resource=resources.POD_DISRUPTION_BUDGETS,
        needs_version=True,
        acted_on_by="the disruption controller, eviction, preemption",
        columns=(
            NAME,
            column(
                "Min Available",
                lambda obj: _limit(obj, "minAvailable"),
                "Pods that must stay available",
            ),
            column(
                "Max Unavailable",
                lambda obj: _limit(obj, "maxUnavailable"),
                "Pods that may be unavailable",
            ),
            count(
                "Allowed Disruptions", "status.disruptionsAllowed", "Pods that may be disrupted now"
            ),
            AGE,
        ),
        defaults=defaults(
            unset={
                "spec": {},
                "status.currentHealthy": 0,
                "status.desiredHealthy": 0,
                "status.disruptionsAllowed": 0,
                "status.expectedPods": 0,
            }
        ),
        counts_generations=True,
        rules=rules(
            ("spec", _only_one),
            ("spec.minAvailable spec.maxUnavailable", amount),
            (
                "spec.unhealthyPodEvictionPolicy",
                one_of("AlwaysAllow", "IfHealthyBudget", empty="absent"),
            ),
            ("spec.selector", check_label_selector),
        ),
        check_status=lambda new, old: _status(child(new, "status"), "status"),
    ),
)

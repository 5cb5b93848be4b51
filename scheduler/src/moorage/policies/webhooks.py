"""The kinds of webhook configurations, and APIService, which is stored so that charts install.

The API server asks the webhooks. It aggregates no API service of others, and a warning tells the
client so. Mirrors kubernetes v1.36
pkg/apis/admissionregistration/{v1/defaults.go,validation} and
staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.api.names import dns_subdomain_faults, qualified_name_faults
from moorage.api.resources import ResourceType
from moorage.base.clock import rfc3339
from moorage.cel.runtime import Refusal, is_installed
from moorage.kinds.cells import AGE, NAME, column, count, name_of
from moorage.kinds.fields import defaults, each, if_present, needed, one_of, rules, within
from moorage.kinds.kind import Context, FieldError, Obj, duplicate, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, condition, objects, text
from moorage.kinds.values.name_rules import path_segment_name
from moorage.kinds.values.selectors import check_label_selector
from moorage.policies.expressions import compiled
from moorage.policies.hook_rules import check_client, check_review_versions, hook_rule

_NOT_AGGREGATED = "API services of others are stored and not aggregated: their kinds are not served"
_SEGMENTS = 3
_TIMEOUT_MAX = 30
_HTTPS = 443


def _name(name: str | None, where: str) -> list[FieldError]:
    name = name or ""
    errors = [invalid(where, name, fault) for fault in dns_subdomain_faults(name)]
    if not errors and name.count(".") < _SEGMENTS - 1:
        detail = "should be a domain with at least three segments separated by dots"
        return [invalid(where, name, detail)]
    return errors


def _conditions(conditions: list[Json] | None, where: str) -> list[FieldError]:
    """Refuse match conditions that do not compile; those with unknown functions are stored."""
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, entry in enumerate(conditions or ()):
        field, name, expression = (
            f"{where}[{index}]",
            text(entry, "name"),
            text(entry, "expression"),
        )
        if not expression.strip():
            errors.append(required(f"{field}.expression", ""))
        elif is_installed():
            program = compiled((), expression, "bool")
            if isinstance(program, Refusal) and not program.missing:
                errors.append(invalid(f"{field}.expression", expression, program.message))
        if not name:
            errors.append(required(f"{field}.name", ""))
        elif name in names:
            errors.append(duplicate(f"{field}.name", name))
        else:
            errors += [invalid(f"{field}.name", name, why) for why in qualified_name_faults(name)]
        names.add(name)
    return errors


_webhook = rules(
    ("name", _name),
    ("admissionReviewVersions", check_review_versions),
    ("failurePolicy", one_of("Fail", "Ignore")),
    ("matchPolicy", one_of("Equivalent", "Exact")),
    # A webhook with other side effects may not be called for dry runs.
    ("sideEffects", one_of("None", "NoneOnDryRun")),
    (
        "timeoutSeconds",
        within(1, _TIMEOUT_MAX, f"the timeout value must be between 1 and {_TIMEOUT_MAX} seconds"),
    ),
    ("rules", each(hook_rule)),
    ("namespaceSelector objectSelector", check_label_selector),
    ("reinvocationPolicy", if_present(one_of("IfNeeded", "Never"))),
    ("clientConfig", check_client),
    ("matchConditions", _conditions),
)


def _webhooks(obj: Any, where: str) -> list[FieldError]:
    errors = []
    names: set[str] = set()
    for index, webhook in enumerate(objects(obj, "webhooks")):
        name, field = text(webhook, "name"), f"webhooks[{index}]"
        # An empty name that is repeated is a duplicate as well.
        if name in names:
            errors.append(duplicate(f"{field}.name", name))
        names.add(name)
        errors += _webhook(webhook, field)
    return errors


def _warn_of_conditions(obj: Obj) -> list[str]:
    """Name the match conditions that this server cannot evaluate: their webhook is not called."""
    warnings = []
    for index, webhook in enumerate(objects(obj, "webhooks")):
        for place, entry in enumerate(objects(webhook, "matchConditions")):
            why = "this server has no CEL"
            if is_installed():
                program = compiled((), text(entry, "expression"), "bool")
                why = program.missing if isinstance(program, Refusal) else ""
            if why:
                where = f"webhooks[{index}].matchConditions[{place}].expression"
                warnings.append(f"{where}: stored and not evaluated: {why}")
    return warnings


def _configuration(resource: ResourceType, **more: Any) -> ServedKind:
    """Return a kind of webhook configuration, with more defaults of a webhook."""
    values = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        "rules[].scope": "*",
        "clientConfig?.service?.port": _HTTPS,
        **more,
    }
    return ServedKind(
        resource=resource,
        needs_version=True,
        columns=(
            NAME,
            count("Webhooks", lambda obj: len(objects(obj, "webhooks")), "How many there are"),
            AGE,
        ),
        defaults=defaults(unset={f"webhooks[].{key}": value for key, value in values.items()}),
        counts_generations=True,
        rules=_webhooks,
        warn=_warn_of_conditions,
        acted_on_by="admission",
    )


def _say_availability(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Set the condition at once; this server calls no other API server."""
    local = child(obj, "spec").get("service") is None
    said = {
        "type": "Available",
        "status": "True" if local else "False",
        "reason": "Local" if local else "FailedDiscoveryCheck",
        "message": "Local APIServices are always available" if local else _NOT_AGGREGATED,
        "lastTransitionTime": rfc3339(ctx.clock.now_ns()),
    }
    obj["status"] = {"conditions": [said]}


def _service_name(obj: Any, where: str) -> list[FieldError]:
    expected = f"{text(obj, 'spec', 'version')}.{text(obj, 'spec', 'group')}"
    if name_of(obj) == expected:
        return []
    detail = f'must be `spec.version+"."+spec.group`: "{expected}"'
    return [invalid("metadata.name", name_of(obj), detail)]


def _below(most: int) -> Any:
    return within(1, most, f"must be positive and less than {most}")


def _warn_not_aggregated(obj: Obj) -> list[str]:
    return [] if child(obj, "spec").get("service") is None else [_NOT_AGGREGATED]


def _server(obj: Obj) -> str:
    service = child(obj, "spec", "service")
    return f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"


def _available(obj: Obj) -> str:
    found = condition(obj, "Available") or {}
    shown, reason = text(found, "status") or "Unknown", text(found, "reason")
    return f"{shown} ({reason})" if reason and shown != "True" else shown


KINDS = (
    _configuration(resources.VALIDATING_WEBHOOK_CONFIGURATIONS),
    _configuration(resources.MUTATING_WEBHOOK_CONFIGURATIONS, reinvocationPolicy="Never"),
    ServedKind(
        resource=resources.API_SERVICES,
        needs_version=True,
        columns=(
            NAME,
            column("Service", _server, "Who serves its kinds"),
            column("Available", _available, "Whether they are served"),
            AGE,
        ),
        defaults=defaults(unset={"spec?.service?.port": _HTTPS, "status": {}}),
        on_create=_say_availability,
        name_rule=path_segment_name,
        open_status=(),
        rules=rules(
            _service_name,
            ("spec.groupPriorityMinimum", _below(20_000)),
            ("spec.versionPriority", _below(1_000)),
            ("spec.service", if_present(rules(("name namespace", needed())))),
        ),
        warn=_warn_not_aggregated,
    ),
)

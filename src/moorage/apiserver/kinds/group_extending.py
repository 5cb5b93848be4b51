"""Kinds that extend a cluster: webhooks and further API servers.

Place in the flow: two tables of `moorage.apiserver.kinds.registry`. These objects are stored, so
that charts that contain them can be installed. The server calls none of them, and a warning tells
the client so. Mirrors kubernetes v1.36 pkg/apis/admissionregistration/{v1/defaults.go,validation}
and staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.api.names import dns_subdomain_faults
from moorage.api.resources import ResourceType
from moorage.apiserver.kind import Column, Context, FieldError, duplicate, invalid, required
from moorage.apiserver.kind import not_supported as unsupported
from moorage.apiserver.kinds.cells import AGE, NAME, age, name_of
from moorage.apiserver.kinds.name_rules import path_segment_name
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, attach, child, fill, number, objects, strings, text
from moorage.base.clock import rfc3339

_NOT_CALLED = "webhooks are stored and not called: this API server admits without them"
_NOT_AGGREGATED = "API services of others are stored and not aggregated: their kinds are not served"

_WEBHOOK_DEFAULTS: Json = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_HTTPS = 443
# Allowed values of fields; a webhook with side effects may not be called for dry runs.
_CHOICES = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "sideEffects": ("None", "NoneOnDryRun"),
}
_REVIEWS = ("v1", "v1beta1")
_SEGMENTS = 3
_TIMEOUT_MAX = 30
_PRIORITY_MAX = {"groupPriorityMinimum": 20_000, "versionPriority": 1_000}

_WEBHOOK_COLUMNS = (NAME, Column("Webhooks", "integer", description="How many there are"), AGE)
_SERVICE_COLUMNS = (
    NAME,
    Column("Service", description="Who serves its kinds"),
    Column("Available", description="Whether they are served"),
    AGE,
)


def _default_validating(obj: Json) -> None:
    for webhook in objects(obj, "webhooks"):
        fill(webhook, {**_WEBHOOK_DEFAULTS, "namespaceSelector": {}, "objectSelector": {}})
        for rule in objects(webhook, "rules"):
            fill(rule, {"scope": "*"})
        service = child(webhook, "clientConfig").get("service")
        if isinstance(service, dict):
            fill(service, {"port": _HTTPS})


def _default_mutating(obj: Json) -> None:
    _default_validating(obj)
    for webhook in objects(obj, "webhooks"):
        fill(webhook, {"reinvocationPolicy": "Never"})


def _check_webhooks(new: Json, old: Json | None) -> list[FieldError]:
    del old
    errors = []
    seen: set[str] = set()
    for index, webhook in enumerate(objects(new, "webhooks")):
        field = f"webhooks[{index}]"
        name = text(webhook, "name")
        if name in seen:
            errors.append(duplicate(f"{field}.name", name))
        seen.add(name)
        errors += _check_webhook(webhook, name, field)
    return errors


def _check_webhook(webhook: Json, name: str, field: str) -> list[FieldError]:
    errors = [invalid(f"{field}.name", name, fault) for fault in dns_subdomain_faults(name)]
    if not errors and name.count(".") < _SEGMENTS - 1:
        detail = "should be a domain with at least three segments separated by dots"
        errors.append(invalid(f"{field}.name", name, detail))
    versions = strings(webhook, "admissionReviewVersions")
    if not versions:
        detail = "must specify one of v1, v1beta1"
        errors.append(required(f"{field}.admissionReviewVersions", detail))
    elif not set(versions) & set(_REVIEWS):
        detail = "must include at least one of v1, v1beta1"
        errors.append(invalid(f"{field}.admissionReviewVersions", versions, detail))
    for key, choices in _CHOICES.items():
        if text(webhook, key) not in choices:
            errors.append(unsupported(f"{field}.{key}", text(webhook, key), choices))
    seconds = number(webhook, "timeoutSeconds")
    if not 1 <= seconds <= _TIMEOUT_MAX:
        detail = f"the timeout value must be between 1 and {_TIMEOUT_MAX} seconds"
        errors.append(invalid(f"{field}.timeoutSeconds", seconds, detail))
    client = child(webhook, "clientConfig")
    if (client.get("url") is None) == (client.get("service") is None):
        detail = "exactly one of url or service is required"
        errors.append(required(f"{field}.clientConfig", detail))
    return errors


def _warn_not_called(obj: Json) -> list[str]:
    return [_NOT_CALLED] if objects(obj, "webhooks") else []


def _webhook_cells(obj: Json, now_ns: int) -> list[Any]:
    return [name_of(obj), len(objects(obj, "webhooks")), age(obj, now_ns)]


def _default_api_service(obj: Json) -> None:
    service = child(obj, "spec").get("service")
    if isinstance(service, dict):
        fill(service, {"port": _HTTPS})
    attach(obj, "status")


def _say_availability(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Set the condition at once; this server calls no other API server."""
    del resource
    local = child(obj, "spec").get("service") is None
    obj["status"] = {
        "conditions": [
            {
                "type": "Available",
                "status": "True" if local else "False",
                "reason": "Local" if local else "FailedDiscoveryCheck",
                "message": "Local APIServices are always available" if local else _NOT_AGGREGATED,
                "lastTransitionTime": rfc3339(ctx.clock.now_ns()),
            }
        ]
    }


def _check_api_service(new: Json, old: Json | None) -> list[FieldError]:
    del old
    spec = child(new, "spec")
    group, version, name = text(spec, "group"), text(spec, "version"), name_of(new)
    errors = []
    if name != f"{version}.{group}":
        detail = f'must be `spec.version+"."+spec.group`: "{version}.{group}"'
        errors.append(invalid("metadata.name", name, detail))
    for key, most in _PRIORITY_MAX.items():
        found = number(spec, key)
        if not 1 <= found <= most:
            detail = f"must be positive and less than {most}"
            errors.append(invalid(f"spec.{key}", found, detail))
    service = child(spec, "service")
    if spec.get("service") is not None:
        errors += [
            required(f"spec.service.{key}")
            for key in ("name", "namespace")
            if not text(service, key)
        ]
    return errors


def _warn_not_aggregated(obj: Json) -> list[str]:
    return [] if child(obj, "spec").get("service") is None else [_NOT_AGGREGATED]


def _api_service_cells(obj: Json, now_ns: int) -> list[Any]:
    service = child(obj, "spec", "service")
    where = f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"
    found = next(
        (each for each in objects(obj, "status", "conditions") if each.get("type") == "Available"),
        {},
    )
    available = text(found, "status") or "Unknown"
    if available != "True" and text(found, "reason"):
        available = f"{available} ({text(found, 'reason')})"
    return [name_of(obj), where, available, age(obj, now_ns)]


KINDS = (
    ServedKind(
        resource=resources.VALIDATING_WEBHOOK_CONFIGURATIONS,
        columns=_WEBHOOK_COLUMNS,
        cells=_webhook_cells,
        defaults=_default_validating,
        counts_generations=True,
        check=_check_webhooks,
        warn=_warn_not_called,
    ),
    ServedKind(
        resource=resources.MUTATING_WEBHOOK_CONFIGURATIONS,
        columns=_WEBHOOK_COLUMNS,
        cells=_webhook_cells,
        defaults=_default_mutating,
        counts_generations=True,
        check=_check_webhooks,
        warn=_warn_not_called,
    ),
    ServedKind(
        resource=resources.API_SERVICES,
        columns=_SERVICE_COLUMNS,
        cells=_api_service_cells,
        defaults=_default_api_service,
        on_create=_say_availability,
        name_rule=path_segment_name,
        has_status=True,
        open_status=(),
        check=_check_api_service,
        warn=_warn_not_aggregated,
    ),
)

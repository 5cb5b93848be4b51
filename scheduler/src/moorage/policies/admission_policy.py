"""Admission policies, validating and mutating, and their bindings: defaults and validation.

`moorage_sandbox.apiserver.policies` evaluates them. Mirrors kubernetes v1.36
pkg/apis/admissionregistration/{v1/defaults.go,validation/validation.go}.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api import resources
from moorage.cel.runtime import Refusal, is_installed
from moorage.kinds.cells import AGE, NAME, UNSET, column, count, format_selector
from moorage.kinds.fields import (
    defaults,
    each,
    each_one_of,
    if_present,
    needed,
    one_of,
    rules,
)
from moorage.kinds.kind import FieldError, Obj, forbidden, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, items, objects, strings, text
from moorage.kinds.values.selectors import check_label_selector
from moorage.policies.expressions import compiled, missing, parts, read_policy

_HERE: Final = frozenset({"CREATE", "UPDATE", "DELETE"})
_NO_CEL: Final = "stored and not evaluated: this server has no CEL"
_ONLY_WRITES: Final = "policies are not evaluated here for CONNECT"
_PATCHES: Final = {"applyConfiguration": "ApplyConfiguration", "jsonPatch": "JSONPatch"}
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")


def _match_defaults(path: str) -> dict[str, Any]:
    return {
        f"{path}?.matchPolicy": "Equivalent",
        f"{path}?.namespaceSelector": {},
        f"{path}?.objectSelector": {},
        f"{path}?.resourceRules[].scope": "*",
        f"{path}?.excludeResourceRules[].scope": "*",
    }


_resource_rule = rules(
    ("operations", needed()),
    ("apiGroups", needed()),
    ("apiVersions", needed()),
    ("resources", needed()),
    ("scope", one_of("*", "Cluster", "Namespaced")),
)
_match = rules(
    ("matchPolicy", one_of("Equivalent", "Exact")),
    ("namespaceSelector", check_label_selector),
    ("objectSelector", check_label_selector),
    ("resourceRules", each(_resource_rule)),
    ("excludeResourceRules", each(_resource_rule)),
)


def _constraints(value: Json | None, where: str) -> list[FieldError]:
    if value is None:
        return [required(where, "")]
    none = [] if items(value, "resourceRules") else [required(f"{where}.resourceRules", "")]
    return none + _match(value, where)


def _expressions(obj: Any, where: str) -> list[FieldError]:
    """Refuse expressions that do not compile; those with unknown functions are stored."""
    spec, errors = child(obj, "spec"), []
    policy = read_policy(spec)
    for field, expression, wanted in parts(policy):
        if not expression.strip():
            errors.append(required(field, "expression is not specified"))
            continue
        program = compiled(policy.variables, expression, wanted) if is_installed() else None
        if isinstance(program, Refusal) and not program.missing:
            errors.append(invalid(field, expression, program.message))
    return errors


def _any_validation(obj: Any, where: str) -> list[FieldError]:
    spec = child(obj, "spec")
    if objects(spec, "validations") or objects(spec, "auditAnnotations"):
        return []
    detail = "validations or auditAnnotations must be non-empty; please set at least one"
    return [required("spec.validations", detail)]


def _mutations(value: Any, where: str) -> list[FieldError]:
    if not value:
        return [required(where, "mutations must contain at least one item")]
    return each(_mutation)(value, where)


def _mutation(value: Json, where: str) -> list[FieldError]:
    """Check that a mutation has the expression of its type, and no other."""
    errors = one_of("ApplyConfiguration", "JSONPatch", empty="required")(
        value.get("patchType"), f"{where}.patchType"
    )
    for name, kind in _PATCHES.items():
        if value.get(name) is None and value.get("patchType") == kind:
            detail = f"must be specified when patchType is {kind}"
            errors.append(required(f"{where}.{name}", detail))
        elif value.get(name) is not None and value.get("patchType") != kind:
            detail = f"must not be specified when patchType is not {kind}"
            errors.append(invalid(f"{where}.{name}", value[name], detail))
    return errors


def _warn_of_policy(obj: Obj) -> list[str]:
    if not is_installed():
        return [_NO_CEL]
    spec = child(obj, "spec")
    try:
        absent = missing(read_policy(spec))
    except msgspec.ValidationError:
        # Nulls are still in the body; a field of a wrong type is refused.
        absent = []
    found = [f"{each}: stored and not evaluated, with the whole policy" for each in absent]
    wanted = objects(spec, "matchConstraints", "resourceRules")
    if any(not _HERE.issuperset(strings(rule, "operations")) for rule in wanted):
        found.append(_ONLY_WRITES)
    return found


def _actions(value: Any, where: str) -> list[FieldError]:
    if not value:
        return [required(where, "")]
    if {"Deny", "Warn"} <= set(value):
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        return [invalid(where, value, detail)]
    return each_one_of("Audit", "Deny", "Warn")(value, where)


def _param_ref(value: Json, where: str) -> list[FieldError]:
    errors = one_of("Allow", "Deny")(
        value.get("parameterNotFoundAction"), f"{where}.parameterNotFoundAction"
    )
    if value.get("name") and value.get("selector") is not None:
        errors.append(forbidden(f"{where}.name", "name and selector are mutually exclusive"))
    elif not value.get("name") and value.get("selector") is None:
        errors.append(required(where, "one of name or selector must be specified"))
    return errors


_policy_defaults = defaults(
    unset={"spec?.failurePolicy": "Fail", **_match_defaults("spec?.matchConstraints")}
)
_binding_defaults = defaults(unset=_match_defaults("spec?.matchResources"))
_policy_rules = rules(
    ("spec.failurePolicy", one_of("Fail", "Ignore")),
    ("spec.matchConstraints", _constraints),
    _expressions,
)
_binding_rules = rules(
    ("spec.policyName", needed()),
    ("spec.matchResources", if_present(_match)),
    ("spec.paramRef", if_present(_param_ref)),
)


def _param_kind(policy: Obj) -> str:
    kind = child(policy, "spec", "paramKind")
    return f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}" if kind else UNSET


def _param_name(binding: Obj) -> str:
    """Return the parameters of a binding; of a name alone nothing says where it is."""
    reference = child(binding, "spec", "paramRef")
    if name := text(reference, "name"):
        return f"{text(reference, 'namespace') or '*'}/{name}"
    selector = child(reference, "selector")
    return format_selector(selector) if selector else UNSET


_PARAM_KIND = column("ParamKind", _param_kind, "Kind of the parameters")
_BINDING_COLUMNS = (
    NAME,
    column("PolicyName", "spec.policyName", "Policy that is bound"),
    column("ParamRef", _param_name, "Parameters of the policy"),
    AGE,
)

KINDS = (
    ServedKind(
        resource=resources.VALIDATING_ADMISSION_POLICIES,
        needs_version=True,
        columns=(
            NAME,
            count(
                "Validations",
                lambda policy: len(objects(policy, "spec", "validations")),
                "Number of validations",
            ),
            _PARAM_KIND,
            AGE,
        ),
        defaults=_policy_defaults,
        counts_generations=True,
        open_status=(),
        rules=rules(
            _policy_rules,
            _any_validation,
            ("spec.validations", each(rules(("reason", if_present(one_of(*_REASONS)))))),
        ),
        warn=_warn_of_policy,
        acted_on_by="admission",
    ),
    ServedKind(
        resource=resources.VALIDATING_ADMISSION_POLICY_BINDINGS,
        needs_version=True,
        columns=_BINDING_COLUMNS,
        defaults=_binding_defaults,
        counts_generations=True,
        rules=rules(_binding_rules, ("spec.validationActions", _actions)),
        acted_on_by="admission",
    ),
    ServedKind(
        resource=resources.MUTATING_ADMISSION_POLICIES,
        needs_version=True,
        columns=(
            NAME,
            count(
                "Mutations",
                lambda policy: len(objects(policy, "spec", "mutations")),
                "Number of mutations",
            ),
            _PARAM_KIND,
            AGE,
        ),
        defaults=_policy_defaults,
        counts_generations=True,
        rules=rules(
            _policy_rules,
            ("spec.mutations", _mutations),
            ("spec.reinvocationPolicy", one_of("IfNeeded", "Never", empty="required")),
        ),
        warn=_warn_of_policy,
        acted_on_by="admission",
    ),
    ServedKind(
        resource=resources.MUTATING_ADMISSION_POLICY_BINDINGS,
        needs_version=True,
        columns=_BINDING_COLUMNS,
        defaults=_binding_defaults,
        counts_generations=True,
        rules=_binding_rules,
        acted_on_by="admission",
    ),
)

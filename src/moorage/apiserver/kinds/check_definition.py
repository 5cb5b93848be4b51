"""Rules of CustomResourceDefinitions: defaults, validation, status and columns.

Place in the flow: the row of `kinds.group_apiextensions`. Mirrors kubernetes v1.36
apiextensions-apiserver pkg/apis/apiextensions/{v1/defaults.go,validation}, and the controllers that
accept names and establish definitions, which act at once here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.api.resources import ResourceType
from moorage.apiserver.custom.json_path import compile_path, simple_path
from moorage.apiserver.custom.names import name_conflicts
from moorage.apiserver.custom.rules.compiled import compiled_rules, has_rules
from moorage.apiserver.custom.rules.runtime import is_installed
from moorage.apiserver.custom.structural import check_schema, places_of_rules
from moorage.apiserver.kind import (
    Column,
    Context,
    FieldError,
    Obj,
    duplicate,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.name_rules import service_name
from moorage.apiserver.kinds.tree import Json, attach, child, fill_empty, objects, text
from moorage.base.clock import rfc3339

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_APPROVED = "api-approved.kubernetes.io"
_PROTECTED = (".k8s.io", ".kubernetes.io")
_PROTECTED_DETAIL = (
    f'protected groups must have approval annotation "{_APPROVED}", see '
    "https://github.com/kubernetes/enhancements/pull/1111"
)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_SCOPES = ("Cluster", "Namespaced")

COLUMNS = (
    Column("Name", "string", "name", "Name of the definition, plural and group"),
    Column("Created At", "date", "", "When the definition was created"),
)


def cells(obj: Obj, now_ns: int) -> list[Any]:
    """Cells of a definition's row."""
    return [text(obj, "metadata", "name"), text(obj, "metadata", "creationTimestamp")]


def default_definition(obj: Json) -> None:
    """Default a definition: names derived from its kind, and no conversion."""
    spec = attach(obj, "spec")
    fill_empty(attach(spec, "conversion"), {"strategy": "None"})
    names = attach(spec, "names")
    kind = text(names, "kind")
    if kind:
        fill_empty(names, {"singular": kind.lower(), "listKind": f"{kind}List"})


def prepare_definition(obj: Obj, ctx: Context, resource: ResourceType) -> None:
    """Add the finalizer for its objects, and decide about its names."""
    meta = obj["metadata"]
    finalizers = meta.setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    obj["status"] = _status(obj, {}, ctx)


def complete_definition(new: Obj, old: Obj, ctx: Context) -> None:
    """Decide about the names again."""
    new["status"] = _status(new, child(old, "status"), ctx)


def _status(obj: Obj, before: Json, ctx: Context) -> Json:
    """Return the status of a definition after the decision about its names."""
    spec, now = obj["spec"], rfc3339(ctx.clock.now_ns())
    conflict = name_conflicts(obj, ctx)
    accepted = dict(spec.get("names") or {}) if not conflict else before.get("acceptedNames") or {}
    established = not conflict or _is_true(before, "Established")
    reason, message = conflict or ("NoConflicts", "no conflicts found")
    told = [
        ("NamesAccepted", not conflict, reason, message),
        (
            "Established",
            established,
            "InitialNamesAccepted" if established else "NotAccepted",
            "the initial names have been accepted" if established else "not all names are accepted",
        ),
    ]
    conditions = [_condition(before, each, now) for each in told]
    known = {each["type"] for each in conditions}
    conditions += [each for each in objects(before, "conditions") if each["type"] not in known]
    stored = list(before.get("storedVersions") or [])
    for version in objects(spec, "versions"):
        name = text(version, "name")
        if version.get("storage") and name not in stored:
            stored.append(name)
    return {
        "acceptedNames": accepted or {"kind": "", "plural": ""},
        "conditions": conditions,
        "storedVersions": stored,
    }


def _is_true(status: Json, kind: str) -> bool:
    return any(
        each["type"] == kind and each["status"] == "True" for each in objects(status, "conditions")
    )


def _condition(before: Json, told: tuple[str, bool, str, str], now: str) -> Json:
    kind, holds, reason, message = told
    status = "True" if holds else "False"
    for each in objects(before, "conditions"):
        if each["type"] == kind and each["status"] == status:
            now = each.get("lastTransitionTime", now)
    return {
        "lastTransitionTime": now,
        "message": message,
        "reason": reason,
        "status": status,
        "type": kind,
    }


def warnings(obj: Obj) -> list[str]:
    """Return a warning for each rule that this server does not evaluate."""
    found = []
    for index, version in enumerate(objects(obj, "spec", "versions")):
        schema = child(version, "schema", "openAPIV3Schema")
        where = f"spec.versions[{index}].schema.openAPIV3Schema"
        # The runtime is imported only for definitions with rules.
        if not has_rules(schema) or check_schema(schema, where):
            continue
        if is_installed():
            found += [
                f"{where}{place}: stored and not evaluated: this server's CEL has no {missing}"
                for place, missing in compiled_rules(schema).left_out
            ]
            continue
        places = list(places_of_rules(schema))
        shown = ", ".join(places[:3]) + (", ..." if len(places) > 3 else "")
        found.append(
            f"{where}: x-kubernetes-validations of {shown} are stored and not evaluated: "
            "this server has no CEL"
        )
    return found


def check_definition(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a definition."""
    spec = child(new, "spec")
    group, names = text(spec, "group"), child(spec, "names")
    errors = _check_group(new, group)
    name = f"{text(names, 'plural')}.{group}"
    if text(new, "metadata", "name") != name:
        detail = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid("metadata.name", text(new, "metadata", "name"), detail))
    errors += _check_names(names)
    if not text(spec, "scope"):
        errors.append(required("spec.scope"))
    elif spec["scope"] not in _SCOPES:
        errors.append(not_supported("spec.scope", spec["scope"], _SCOPES))
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        errors.append(invalid("spec.preserveUnknownFields", True, detail))
    errors += _check_conversion(child(spec, "conversion"))
    errors += _check_versions(objects(spec, "versions"))
    errors += _check_rules(spec, child(old or {}, "spec"))
    if old is not None:
        errors += _check_kept(spec, child(old, "spec"))
    return errors


def _check_group(obj: Obj, group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    errors = [invalid("spec.group", group, fault) for fault in dns_subdomain_faults(group)]
    if "." not in group:
        errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    if group.endswith(_PROTECTED) and not child(obj, "metadata", "annotations").get(_APPROVED):
        errors.append(required(f"metadata.annotations[{_APPROVED}]", _PROTECTED_DETAIL))
    return errors


def _check_names(names: Json) -> list[FieldError]:
    errors = []
    for key in ("plural", "singular", "kind", "listKind"):
        value, where = text(names, key), f"spec.names.{key}"
        if not value:
            errors.append(required(where))
            continue
        faults = service_name(value.lower())
        errors += [invalid(where, value, fault) for fault in faults]
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or []):
            where = f"spec.names.{key}[{index}]"
            errors += [invalid(where, value, fault) for fault in service_name(value)]
    if text(names, "kind") and names.get("kind") == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        errors.append(invalid("spec.names.listKind", names["listKind"], detail))
    return errors


def _check_conversion(conversion: Json) -> list[FieldError]:
    strategy = text(conversion, "strategy")
    if strategy != "None":
        # Upstream knows "Webhook" too; nothing here calls webhooks.
        return [not_supported("spec.conversion.strategy", strategy, ("None",))]
    return []


def _check_versions(versions: list[Json]) -> list[FieldError]:
    if not versions:
        return [
            invalid(
                "spec.versions", versions, "must have exactly one version marked as storage version"
            )
        ]
    errors, seen = [], set()
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        name = text(version, "name")
        errors += [invalid(f"{where}.name", name, fault) for fault in dns_label_faults(name)]
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        errors += _check_version(version, where)
    if sum(version.get("storage") is True for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", [text(each, "name") for each in versions], detail))
    return errors


def _check_version(version: Json, where: str) -> list[FieldError]:
    schema = child(version, "schema").get("openAPIV3Schema")
    if schema is None:
        errors = [required(f"{where}.schema.openAPIV3Schema", "schemas are required")]
    else:
        errors = check_schema(schema, f"{where}.schema.openAPIV3Schema")
    for index, column in enumerate(objects(version, "additionalPrinterColumns")):
        at = f"{where}.additionalPrinterColumns[{index}]"
        if text(column, "type") not in _COLUMN_TYPES:
            errors.append(not_supported(f"{at}.type", text(column, "type"), _COLUMN_TYPES))
        if not text(column, "name"):
            errors.append(required(f"{at}.name"))
        errors += _check_path(column, "jsonPath", at, compile_path)
    for index, each in enumerate(objects(version, "selectableFields")):
        errors += _check_path(each, "jsonPath", f"{where}.selectableFields[{index}]", simple_path)
    scale = child(version, "subresources", "scale")
    if scale:
        at = f"{where}.subresources.scale"
        for key, head in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
            faults = _check_path(scale, key, at, simple_path)
            if not faults and not scale[key].startswith(head):
                faults = [
                    invalid(f"{at}.{key}", scale[key], f"should be a json path under {head[:-1]}")
                ]
            errors += faults
        if scale.get("labelSelectorPath"):
            errors += _check_path(scale, "labelSelectorPath", at, simple_path)
    return errors


def _check_rules(spec: Json, before: Json) -> list[FieldError]:
    """Compile the rules of valid schemas; unchanged stored rules are not checked again."""
    stored = [child(each, "schema", "openAPIV3Schema") for each in objects(before, "versions")]
    errors = []
    for index, version in enumerate(objects(spec, "versions")):
        schema = child(version, "schema", "openAPIV3Schema")
        where = f"spec.versions[{index}].schema.openAPIV3Schema"
        if has_rules(schema) and schema not in stored and not check_schema(schema, where):
            errors += compiled_rules(schema).refusals(where)
    return errors


def _check_path(
    holder: Mapping[str, Any], key: str, where: str, read: Callable[[str], object]
) -> list[FieldError]:
    value = text(holder, key)
    if not value:
        return [required(f"{where}.{key}")]
    try:
        read(value)
    except ValueError as error:
        return [invalid(f"{where}.{key}", value, str(error))]
    return []


def _check_kept(spec: Json, before: Json) -> list[FieldError]:
    errors = [
        immutable(f"spec.{key}", spec.get(key))
        for key in ("group", "scope")
        if spec.get(key) != before.get(key)
    ]
    for key in ("kind", "plural"):
        value = child(spec, "names").get(key)
        if value != child(before, "names").get(key):
            errors.append(immutable(f"spec.names.{key}", value))
    return errors

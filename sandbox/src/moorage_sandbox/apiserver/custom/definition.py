"""CustomResourceDefinition; `moorage_sandbox.apiserver.custom.definitions` acts on the stored ones.

Mirrors kubernetes v1.36 apiextensions-apiserver pkg/apis/apiextensions/{v1/defaults.go,validation},
and the controllers that accept names and establish definitions, which act at once here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import resources
from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.api.resources import ResourceType
from moorage.base.clock import rfc3339
from moorage.cel.runtime import is_installed
from moorage.kinds.cells import CREATED_AT, is_true
from moorage.kinds.custom.json_path import compile_path, simple_path
from moorage.kinds.fields import (
    Rule,
    defaults,
    each,
    name_rule,
    needed,
    one_of,
    rules,
    unchanging,
)
from moorage.kinds.kind import Column, Context, FieldError, Obj, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import (
    Json,
    child,
    fill_empty,
    objects,
    put_condition,
    put_finalizer,
    text,
)
from moorage.kinds.values.name_rules import service_name
from moorage_sandbox.apiserver.custom.conversion import HTTPS_PORT, check_conversion
from moorage_sandbox.apiserver.custom.names import name_conflicts
from moorage_sandbox.apiserver.custom.structural import (
    check_schema,
    places_of_rules,
    unknown_formats,
)
from moorage_sandbox.rules.compiled import compiled_rules, has_rules

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_APPROVED = "api-approved.kubernetes.io"
_ACCEPTED = ("InitialNamesAccepted", "the initial names have been accepted")
_NOT_ACCEPTED = ("NotAccepted", "not all names are accepted")
_PROTECTED = (".k8s.io", ".kubernetes.io")
_PROTECTED_DETAIL = (
    f'protected groups must have approval annotation "{_APPROVED}", see '
    "https://github.com/kubernetes/enhancements/pull/1111"
)


def _default_names(obj: Json) -> None:
    """Derive names from the kind."""
    names = obj["spec"]["names"]
    if kind := text(names, "kind"):
        fill_empty(names, {"singular": kind.lower(), "listKind": f"{kind}List"})


def _prepare(obj: Obj, ctx: Context, resource: ResourceType) -> None:
    """Add the finalizer for its objects, and decide about its names."""
    put_finalizer(obj, CLEANUP)
    obj["status"] = _status(obj, {}, ctx)


def _settle(new: Obj, old: Obj, ctx: Context) -> None:
    """Decide about the names again; a client's own conditions stay."""
    new["status"] = _status(new, child(new, "status"), ctx)


def _status(obj: Obj, before: Json, ctx: Context) -> Json:
    """Return the status of a definition after the decision about its names."""
    spec, now = obj["spec"], rfc3339(ctx.clock.now_ns())
    conflict = name_conflicts(obj, ctx)
    accepted = dict(spec.get("names") or {}) if not conflict else before.get("acceptedNames") or {}
    established = not conflict or is_true({"status": before}, "Established")
    status: Json = {
        "acceptedNames": accepted or {"kind": "", "plural": ""},
        "conditions": [dict(each) for each in objects(before, "conditions")],
    }
    for kind, holds, (reason, message) in (
        ("NamesAccepted", not conflict, conflict or ("NoConflicts", "no conflicts found")),
        ("Established", established, _ACCEPTED if established else _NOT_ACCEPTED),
    ):
        told = {"type": kind, "status": str(holds), "reason": reason, "message": message}
        put_condition(status, told, now)
    stored = dict.fromkeys(before.get("storedVersions") or ())
    for version in objects(spec, "versions"):
        if version.get("storage"):
            stored[text(version, "name")] = None
    return status | {"storedVersions": list(stored)}


def _warnings(obj: Obj) -> list[str]:
    """Return a warning for each rule that this server does not evaluate."""
    warnings = []
    for index, version in enumerate(objects(obj, "spec", "versions")):
        schema = child(version, "schema", "openAPIV3Schema")
        where = f"spec.versions[{index}].schema.openAPIV3Schema"
        # The runtime is imported only for definitions with rules.
        if not has_rules(schema) or check_schema(schema, where):
            continue
        if is_installed():
            warnings += [
                f"{where}{place}: stored and not evaluated: this server's CEL has no {missing}"
                for place, missing in compiled_rules(schema).left_out
            ]
            continue
        places = list(places_of_rules(schema))
        shown = ", ".join(places[:3]) + (", ..." if len(places) > 3 else "")
        warnings.append(
            f"{where}: x-kubernetes-validations of {shown} are stored and not evaluated: "
            "this server has no CEL"
        )
    return warnings


def _warn_of_formats(obj: Obj) -> list[str]:
    """Return a warning for each format that no value is checked against."""
    return [
        f'unrecognized format "{form}"'
        for version in objects(obj, "spec", "versions")
        for form in unknown_formats(child(version, "schema", "openAPIV3Schema"))
    ]


def _name(obj: Any, where: str) -> list[FieldError]:
    expected = f"{text(obj, 'spec', 'names', 'plural')}.{text(obj, 'spec', 'group')}"
    if text(obj, "metadata", "name") == expected:
        return []
    detail = 'must be spec.names.plural+"."+spec.group'
    return [invalid("metadata.name", text(obj, "metadata", "name"), detail)]


def _group(obj: Any, where: str) -> list[FieldError]:
    group, where = text(obj, "spec", "group"), "spec.group"
    if not group:
        return [required(where)]
    errors = [invalid(where, group, fault) for fault in dns_subdomain_faults(group)]
    if "." not in group:
        errors.append(invalid(where, group, "should be a domain with at least one dot"))
    if group.endswith(_PROTECTED) and not child(obj, "metadata", "annotations").get(_APPROVED):
        errors.append(required(f"metadata.annotations[{_APPROVED}]", _PROTECTED_DETAIL))
    return errors


def _lower(value: str) -> list[str]:
    return service_name(value.lower())


def _each_name(listed: list[str] | None, where: str) -> list[FieldError]:
    return [
        invalid(f"{where}[{index}]", value, fault)
        for index, value in enumerate(listed or [])
        for fault in service_name(value)
    ]


def _list_kind(names: Json, where: str) -> list[FieldError]:
    kind = text(names, "kind")
    if not kind or kind != names.get("listKind"):
        return []
    return [invalid(f"{where}.listKind", kind, "kind and listKind may not be the same")]


_names = rules(
    ("plural singular kind listKind", name_rule(_lower, empty="required")),
    ("shortNames categories", _each_name),
    _list_kind,
)


def _no_unknown_fields(value: Any, where: str) -> list[FieldError]:
    detail = (
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        "spec.versions[*].schema instead"
    )
    return [invalid(where, True, detail)] if value else []


def _path(read: Callable[[str], object], head: str = "") -> Rule:
    """Return the rule of a JSON path; ``head`` is the field that it must be under."""

    def check(value: str | None, where: str) -> list[FieldError]:
        if not value:
            return [required(where)]
        try:
            read(value)
        except ValueError as error:
            return [invalid(where, value, str(error))]
        if value.startswith(head):
            return []
        return [invalid(where, value, f"should be a json path under {head[:-1]}")]

    return check


def _schema(schema: Json | None, where: str) -> list[FieldError]:
    if schema is None:
        return [required(where, "schemas are required")]
    return check_schema(schema, where)


_column = rules(
    ("type", one_of("boolean", "date", "integer", "number", "string")),
    ("name", needed()),
    ("jsonPath", _path(compile_path)),
)
_scale = rules(
    ("specReplicasPath", _path(simple_path, ".spec.")),
    ("statusReplicasPath", _path(simple_path, ".status.")),
    (
        "labelSelectorPath",
        lambda value, where: _path(simple_path)(value, where) if value else [],
    ),
)
_version = rules(
    ("schema.openAPIV3Schema", _schema),
    ("additionalPrinterColumns", each(_column)),
    ("selectableFields", each(rules(("jsonPath", _path(simple_path))))),
    ("subresources.scale", lambda scale, where: _scale(scale, where) if scale else []),
)
_versions = each(_version, unique="name", key=name_rule(dns_label_faults, empty="refused"))


def _storage(versions: list[Json] | None, where: str) -> list[FieldError]:
    errors = _versions(versions, where)
    if sum(version.get("storage") is True for version in versions or ()) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid(where, [text(each, "name") for each in versions or ()], detail))
    return errors


def _check(new: Obj, old: Obj | None) -> list[FieldError]:
    """Compile the rules of valid schemas; unchanged stored rules are not checked again."""
    spec, before = child(new, "spec"), child(old or {}, "spec")
    stored = {_encoded(each) for each in objects(before, "versions")}
    errors = []
    for index, version in enumerate(objects(spec, "versions")):
        schema = child(version, "schema", "openAPIV3Schema")
        where = f"spec.versions[{index}].schema.openAPIV3Schema"
        if (
            has_rules(schema)
            and _encoded(version) not in stored
            and not check_schema(schema, where)
        ):
            errors += compiled_rules(schema).refusals(where)
    return errors


def _encoded(version: Json) -> bytes:
    """Return the schema of a version as text; many schemas are compared by it."""
    return msgspec.json.encode(child(version, "schema", "openAPIV3Schema"), order="sorted")


KINDS = (
    ServedKind(
        resource=resources.CUSTOM_RESOURCE_DEFINITIONS,
        needs_version=True,
        acted_on_by="the server, which serves their kinds",
        columns=(
            Column(
                "Name",
                "string",
                "name",
                "Name of the definition, plural and group",
                cell=lambda obj, _: text(obj, "metadata", "name"),
            ),
            CREATED_AT,
        ),
        defaults=defaults(
            _default_names,
            empty={"spec.conversion.strategy": "None"},
            unset={
                "spec.names": {},
                "spec.conversion.webhook?.clientConfig?.service?.port": HTTPS_PORT,
            },
        ),
        on_create=_prepare,
        settle=_settle,
        open_status=(),
        counts_generations=True,
        rules=rules(
            _group,
            _name,
            ("spec.names", _names),
            ("spec.scope", one_of("Cluster", "Namespaced", empty="required")),
            ("spec.preserveUnknownFields", _no_unknown_fields),
            check_conversion,
            ("spec.versions", _storage),
        ),
        check=_check,
        change=unchanging("spec.group spec.scope spec.names.kind spec.names.plural"),
        warn=_warnings,
        warn_of_new=_warn_of_formats,
    ),
)

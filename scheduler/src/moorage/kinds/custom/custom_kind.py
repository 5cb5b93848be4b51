"""From one version of a CustomResourceDefinition to the rules of a kind.

Place in the flow: the API server builds these kinds of its definitions, and puts them into its
catalog. What-if builds those of the shipped definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from moorage.api.resources import ResourceType
from moorage.kinds.custom.columns import table_columns
from moorage.kinds.custom.json_path import find, simple_path
from moorage.kinds.custom.shape import CustomShape
from moorage.kinds.custom.validation import validate
from moorage.kinds.fields import name_fields
from moorage.kinds.kind import Context, FieldError, Obj, ScalePaths, invalid
from moorage.kinds.schema.pruning import Schema, fill_defaults
from moorage.kinds.served import ServedKind
from moorage.kinds.status import StatusError

BrokenRules: TypeAlias = Callable[[Obj, Obj | None], list[FieldError]]
"""Called with a new object and the object before; returns an error for each broken rule."""

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
# Errors after which the rules are not evaluated, as in strategy.go ``hasBlockingErr``.
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_UNCHECKED = invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def custom_resource(definition: Obj, version: Mapping[str, Any]) -> ResourceType:
    """Return the row that ``kubectl api-resources`` shows for one version of a definition."""
    spec = definition["spec"]
    names = definition.get("status", {}).get("acceptedNames") or spec["names"]
    return ResourceType(
        group=spec["group"],
        version=version["name"],
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
        singular=names.get("singular") or spec["names"]["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
    )


def custom_kind(
    definition: Obj,
    version: Mapping[str, Any],
    rules: Callable[[Schema], BrokenRules | None] | None = None,
) -> ServedKind:
    """Return the kind of one version of a definition.

    Parameters
    ----------
    definition, version
        The definition, and one of its versions.
    rules
        Finds the rules in CEL of a schema, if it has any; without it no rule is evaluated.
    """
    resource = custom_resource(definition, version)
    schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or _ANYTHING
    columns, cells = table_columns(version)
    subresources = version.get("subresources") or {}
    names = definition["spec"]["names"]

    broken = rules(schema) if rules is not None else None

    def check(new: Obj, old: Obj | None) -> list[FieldError]:
        errors = validate(schema, new, old=old)
        if broken is None:
            return errors
        if any(error.type in _BLOCKING for error in errors):
            return [*errors, _UNCHECKED]
        return errors + broken(new, old)

    deprecation = ""
    if version.get("deprecated"):
        named = f"{resource.api_version} {resource.kind} is deprecated"
        deprecation = version.get("deprecationWarning") or named
    return ServedKind(
        resource=resource,
        deprecation=deprecation,
        columns=columns,
        cells=cells,
        defaults=lambda obj: fill_defaults(schema, obj),
        on_create=_refuse_while_terminating,
        check=check,
        check_status=check,
        fields=_fields(definition["spec"]["versions"]),
        field_labels=frozenset(_fields([version])({})),
        has_status=subresources.get("status") is not None,
        counts_generations=True,
        open_status=(),
        scale=_scale(subresources.get("scale")),
        custom_shape=CustomShape(resource, schema, names.get("listKind") or f"{resource.kind}List"),
    )


def _refuse_while_terminating(obj: Obj, ctx: Context, resource: ResourceType) -> None:
    found = ctx.lookup("customresourcedefinitions", None, resource.qualified)
    if found is not None and found["metadata"].get("deletionTimestamp"):
        raise StatusError(
            405,
            "MethodNotAllowed",
            "create not allowed while custom resource definition is terminating",
            details={},
        )


def _paths(version: Mapping[str, Any]) -> list[str]:
    return [each["jsonPath"] for each in version.get("selectableFields") or ()]


def _fields(versions: Sequence[Mapping[str, Any]]) -> Callable[[Obj], dict[str, str]]:
    """Return the values by selectable field of all versions, because a record keeps them."""
    paths = {path for each in versions for path in _paths(each)}
    if not paths:
        return name_fields

    def fields(obj: Obj) -> dict[str, str]:
        found = name_fields(obj)
        for path in paths:
            values = find(path, obj)
            found[path.removeprefix(".")] = _shown(values[0]) if values else ""
        return found

    return fields


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scale(scale: Mapping[str, str] | None) -> ScalePaths | None:
    if scale is None:
        return None
    selector = scale.get("labelSelectorPath")
    return ScalePaths(
        spec_replicas=simple_path(scale["specReplicasPath"]),
        status_replicas=simple_path(scale["statusReplicasPath"]),
        selector=simple_path(selector) if selector else None,
    )
